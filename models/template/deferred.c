#include "deferred.h"

#include <string.h>

#include "common/json_make.h"
#include "common/json_write.h"
#include "ggl/internal/index.h"
#include "talk_impl.h"

static const char flag[] = "defer_loading";

/* The object with a tool's name: "function", or the tool itself. */
static const json_value *function_of(const json_value *tool) {
    const json_value *f = llm_json_get_kind(tool, "function", JSON_OBJECT);
    return f ? f : tool;
}

static bool is_true(const json_value *v) {
    return v && v->kind == JSON_BOOL && v->flag;
}

static bool is_deferred(const json_value *tool) {
    return is_true(llm_json_get(tool, flag)) || is_true(llm_json_get(function_of(tool), flag));
}

/* --- lists -------------------------------------------------------------------------------------- */

/* Copies an object without the flag. */
static bool without_flag(json_value *out, const json_value *object, ggl_arena *arena) {
    llm_json_member *m = ggl_arena_alloc(arena, object->n + 1, sizeof *m);
    size_t n = 0;
    for (uint32_t i = 0; m && i < object->n; i++)
        if (!ggl_str_is(json_name(object, i), flag))
            m[n++] = (llm_json_member){json_name(object, i), object->item[i]};
    return m && llm_json_make_object(out, arena, m, n);
}

/* The tool as it is shown. */
static bool shown_tool(json_value *out, const json_value *tool, ggl_arena *arena) {
    json_value f;
    *out = *tool;
    if (llm_json_get(tool, flag) && !without_flag(out, tool, arena))
        return false;
    const json_value *own = llm_json_get_kind(out, "function", JSON_OBJECT), copy = *out;
    return !own || !llm_json_get(own, flag) ||
           (without_flag(&f, own, arena) && llm_json_make_with(out, arena, &copy, "function", f));
}

static bool has_flags(const json_value *tools) {
    for (uint32_t i = 0; tools && tools->kind == JSON_ARRAY && i < tools->n; i++)
        if (llm_json_get(&tools->item[i], flag) || llm_json_get(function_of(&tools->item[i]), flag))
            return true;
    return false;
}

/* Makes a list of the tools that are not deferred, or are found. found: [tools->n]; NULL: none is. */
static ggl_status make_list(const json_value **out, const json_value *tools, const bool *found,
                            ggl_arena *arena, ggl_error *err) {
    json_value *list = ggl_arena_alloc(arena, 1, sizeof *list),
               *item = ggl_arena_alloc(arena, (size_t)tools->n + 1, sizeof *item);
    uint32_t n = 0;
    bool made = list && item;
    for (uint32_t i = 0; made && i < tools->n; i++)
        if (!is_deferred(&tools->item[i]) || (found && found[i]))
            made = shown_tool(&item[n++], &tools->item[i], arena);
    if (!made)
        return llm_talk_no_memory(err);
    *list = (json_value){.kind = JSON_ARRAY, .n = n, .item = item};
    *out = n > 0 ? list : NULL;
    return GGL_OK;
}

ggl_status llm_tools_shown(const json_value **out, const json_value *tools, ggl_arena *arena,
                           ggl_error *err) {
    *out = tools;
    return has_flags(tools) ? make_list(out, tools, NULL, arena, err) : GGL_OK;
}

/* --- names -------------------------------------------------------------------------------------- */

/* A deferred tool. */
typedef struct entry {
    ggl_str name; /* first, for ggl_index */
    uint32_t at;  /* in the list */
} entry;

typedef struct names {
    entry *entry;
    size_t n;
    ggl_index index;
} names;

static void names_fini(names *x) {
    ggl_index_fini(&x->index);
    ggl_free(x->entry);
    *x = (names){0};
}

static ggl_status names_init(names *x, const json_value *tools, ggl_error *err) {
    *x = (names){0};
    x->entry = ggl_calloc((size_t)tools->n + 1, sizeof *x->entry);
    ggl_status st = x->entry ? ggl_index_init(&x->index, (size_t)tools->n + 1, sizeof *x->entry,
                                              GGL_INDEX_STRINGS, err)
                             : llm_talk_no_memory(err);
    for (uint32_t i = 0; st == GGL_OK && i < tools->n; i++) {
        const json_value *name =
            llm_json_get_kind(function_of(&tools->item[i]), "name", JSON_STRING);
        if (!name || !is_deferred(&tools->item[i]))
            continue;
        x->entry[x->n] = (entry){json_str(name), i};
        x->n += ggl_index_put(&x->index, x->entry, x->n) == x->n;
    }
    if (st != GGL_OK)
        names_fini(x);
    return st;
}

/* The place of a deferred tool in the list; SIZE_MAX: there is none of this name. */
static size_t place_of(const names *x, ggl_str name) {
    const size_t k = ggl_index_find(&x->index, x->entry, name);
    return k == SIZE_MAX ? SIZE_MAX : x->entry[k].at;
}

/* --- what can be called ------------------------------------------------------------------------- */

ggl_status llm_talk_callable(llm_talk *t, const json_value **out, ggl_error *err) {
    const json_value *tools = llm_talk_get(t, "tools");
    names x;
    *out = tools;
    if (!has_flags(tools))
        return GGL_OK;
    bool *found = ggl_arena_alloc(&t->arena, (size_t)tools->n + 1, sizeof *found);
    ggl_status st = found ? names_init(&x, tools, err) : llm_talk_no_memory(err);
    if (st != GGL_OK)
        return st;
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->message[i].n_references; k++) {
            const size_t at = place_of(&x, t->message[i].reference[k]);
            if (at != SIZE_MAX)
                found[at] = true;
        }
    names_fini(&x);
    return make_list(out, tools, found, &t->arena, err);
}

/* --- texts -------------------------------------------------------------------------------------- */

/* The conversation whose texts are made. */
typedef struct making {
    const json_value *tools;
    const names *names; /* NULL: no tool is deferred */
    bool *told;         /* [tools->n]: which definitions stand in messages before */
    ggl_arena *arena;
    llm_tools_text *write;
    void *ctx;
} making;

/* Puts the definitions of tools: as the template writes them, or else as lines of JSON. */
static ggl_status put_definitions(const making *m, const json_value *tools, llm_json_out *out,
                                  ggl_error *err) {
    char *text = NULL;
    size_t n = 0;
    const ggl_status st = m->write(m->ctx, tools, &text, &n, err);
    if (st != GGL_OK)
        return st;
    llm_json_put_text(out, out->n > 0 ? "\n<functions>" : "<functions>");
    if (text) {
        llm_json_put_text(out, "\n");
        llm_json_put(out, text, n);
    }
    for (uint32_t i = 0; !text && i < tools->n; i++) {
        llm_json_put_text(out, "\n");
        llm_json_put_value(out, &tools->item[i]);
    }
    llm_json_put_text(out, "\n</functions>");
    ggl_free(text);
    return GGL_OK;
}

/* Makes the text of a message. */
static ggl_status make_text(const making *m, const llm_talk_message *message, ggl_str *text,
                            ggl_error *err) {
    json_value *item = ggl_arena_alloc(m->arena, message->n_references + 1, sizeof *item);
    llm_json_out out = {0};
    uint32_t n = 0;
    bool made = item;
    for (size_t k = 0; made && k < message->n_references; k++) {
        const ggl_str name = message->reference[k];
        const size_t at = m->names ? place_of(m->names, name) : SIZE_MAX;
        if (at != SIZE_MAX && !m->told[at]) {
            m->told[at] = true;
            made = shown_tool(&item[n++], &m->tools->item[at], m->arena);
            continue;
        }
        llm_json_put_text(&out, out.n > 0 ? "\ntool: " : "tool: ");
        llm_json_put(&out, name.s, name.n);
    }
    const json_value list = {.kind = JSON_ARRAY, .n = n, .item = item};
    ggl_status st = made ? GGL_OK : llm_talk_no_memory(err);
    if (st == GGL_OK && n > 0)
        st = put_definitions(m, &list, &out, err);
    *text = (ggl_str){ggl_arena_strndup(m->arena, out.s ? out.s : "", out.n), out.n};
    if (st == GGL_OK && (out.failed || !text->s))
        st = llm_talk_no_memory(err);
    ggl_free(out.s);
    return st;
}

static ggl_status make_all(const making *m, const llm_talk *t, const llm_chat_params *p,
                           ggl_str *text, ggl_error *err) {
    const size_t n = p->n > 0 && p->n < t->n ? p->n : t->n, begin = llm_talk_begin(t);
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        if (t->message[i].n_references > 0 && (i < begin || i >= p->first))
            st = make_text(m, &t->message[i], &text[i], err);
    return st;
}

ggl_status llm_deferred_texts(const ggl_str **texts, const llm_talk *t, const llm_chat_params *p,
                              ggl_arena *arena, llm_tools_text *write, void *ctx, ggl_error *err) {
    const json_value *tools = llm_talk_get(t, "tools");
    const bool has = has_flags(tools);
    names x = {0};
    bool any = false;
    *texts = NULL;
    for (size_t i = 0; i < t->n && !any; i++)
        any = t->message[i].n_references > 0;
    if (!any)
        return GGL_OK;
    ggl_str *text = ggl_arena_alloc(arena, t->n, sizeof *text);
    bool *told = ggl_arena_alloc(arena, has ? (size_t)tools->n + 1 : 1, sizeof *told);
    ggl_status st = text && told ? GGL_OK : llm_talk_no_memory(err);
    if (st == GGL_OK && has)
        st = names_init(&x, tools, err);
    const making m = {tools, has ? &x : NULL, told, arena, write, ctx};
    if (st == GGL_OK)
        st = make_all(&m, t, p, text, err);
    names_fini(&x);
    *texts = text;
    return st;
}
