#include "wants.h"

#include <string.h>

#include "common/json_write.h"
#include "ggl/internal/text.h"

/* --- messages ----------------------------------------------------------------------------------- */

/* The names of a message's reasoning, the usual one first. */
static const char *const thoughts[] = {"reasoning_content", "reasoning", "thinking"};
enum { N_THOUGHTS = sizeof thoughts / sizeof *thoughts };

static tv str(const char *s) {
    return tv_str((ggl_str){s, strlen(s)});
}

static void set(tv_heap *h, tv dict, const char *name, tv value) {
    llm_tv_dict_set(h, dict.dict, str(name), value);
}

/* What templates know in place of a role that only some do. */
static ggl_str role_of(const llm_wants *w, ggl_str role) {
    if (ggl_str_is(role, "developer") && !w->developer)
        return (ggl_str){"system", 6};
    return ggl_str_is(role, "function") ? (ggl_str){"tool", 4} : role;
}

/* A list with one part, or none of an empty text beside calls. */
static tv list_of(tv_heap *h, const llm_talk_message *m) {
    tv list = llm_tv_new_list(h, TV_LIST), part = llm_tv_new_dict(h);
    set(h, part, "type", str("text"));
    set(h, part, "text", tv_str(m->content));
    if (m->content.n > 0 || m->n_calls == 0)
        llm_tv_push(h, list, part);
    return list;
}

static tv content_of(tv_heap *h, const llm_wants *w, const llm_talk_message *m) {
    if (w->null_content && m->content.n == 0 && m->n_calls > 0)
        return tv_none();
    return w->parts ? list_of(h, m)
                    : tv_str((ggl_str){m->content.s ? m->content.s : "", m->content.n});
}

/* The JSON text of a value, with numbers as they were written. */
static tv text_of(tv_heap *h, const json_value *v) {
    llm_json_out out = {0};
    llm_json_put_value(&out, v);
    const ggl_str copy = {ggl_arena_strndup(&h->arena, out.s ? out.s : "", out.n), out.n};
    const bool failed = out.failed || !copy.s;
    ggl_free(out.s);
    if (failed)
        llm_tv_fail(h, GGL_NOMEM, "out of memory for a conversation");
    llm_tv_step(h, copy.n / 16 + 1);
    return tv_str(copy);
}

/* Calls of which the arguments that are objects become texts. */
static tv calls_with_texts(tv_heap *h, const json_value *calls) {
    tv list = llm_tv_new_list(h, TV_LIST);
    for (size_t i = 0; i < calls->n; i++) {
        tv call = llm_tv_from_json(h, &calls->item[i]);
        const tv *f = llm_tv_dict_find(call.dict, (ggl_str){"function", 8});
        const json_value *arguments =
            llm_json_get(llm_json_get(&calls->item[i], "function"), "arguments");
        if (arguments->kind == JSON_OBJECT)
            set(h, *f, "arguments", text_of(h, arguments));
        llm_tv_push(h, list, call);
    }
    return list;
}

/* The name under which the template reads a member: that of the reasoning. */
static ggl_str name_of(const llm_wants *w, const json_value *object, ggl_str name) {
    int own = 0, read = 0;
    while (own < N_THOUGHTS && !ggl_str_is(name, thoughts[own]))
        own++;
    while (read < N_THOUGHTS && !(w->reasoning >> read & 1))
        read++;
    if (own == N_THOUGHTS || read == N_THOUGHTS || w->reasoning >> own & 1 ||
        llm_json_get(object, thoughts[read]))
        return name;
    return (ggl_str){thoughts[read], strlen(thoughts[read])};
}

static tv message_of(tv_heap *h, const llm_wants *w, const llm_talk_message *m) {
    tv to = llm_tv_new_dict(h);
    const json_value *object = m->object;
    for (size_t i = 0; i < object->n; i++) {
        const ggl_str name = json_name(object, i);
        const json_value *v = &object->item[i];
        tv value;
        if (ggl_str_is(name, "role"))
            value = tv_str(role_of(w, m->role));
        else if (ggl_str_is(name, "content"))
            value = content_of(h, w, m);
        else if (w->text_arguments && ggl_str_is(name, "tool_calls"))
            value = calls_with_texts(h, v);
        else
            value = llm_tv_from_json(h, v);
        llm_tv_dict_set(h, to.dict, tv_str(name_of(w, object, name)), value);
    }
    if (!llm_json_get(object, "content"))
        set(h, to, "content", content_of(h, w, m));
    return to;
}

/* Gives the tools to the first system message, which is made if there is none. False: there is. */
static bool add_tools(tv_heap *h, const llm_wants *w, const llm_talk *t, tv *first) {
    const json_value *tools = llm_talk_get(t, "tools");
    const bool has = llm_talk_n(t) > 0 && ggl_str_is(role_of(w, llm_talk_at(t, 0)->role), "system");
    if (w->tools < WANTS_TOOLS_TEXT || !tools ||
        llm_json_is(llm_talk_get(t, "tool_choice"), "none"))
        return false;
    if (!has) {
        const llm_talk_message none = {.role = {"system", 6}};
        *first = llm_tv_new_dict(h);
        set(h, *first, "role", tv_str(none.role));
        set(h, *first, "content", content_of(h, w, &none));
    }
    set(h, *first, "tools",
        w->tools == WANTS_TOOLS_TEXT ? text_of(h, tools) : llm_tv_from_json(h, tools));
    return !has;
}

tv llm_wants_messages(tv_heap *h, const llm_wants *w, const llm_talk *t, const llm_chat_params *p,
                      const size_t **at) {
    const size_t n = p->n > 0 && p->n < llm_talk_n(t) ? p->n : llm_talk_n(t),
                 begin = llm_talk_begin(t);
    size_t *index = llm_tv_alloc(h, n + 1, sizeof *index), k = 0;
    tv list = llm_tv_new_list(h, TV_LIST),
       first = n > 0 ? message_of(h, w, llm_talk_at(t, 0)) : tv_none();
    if (add_tools(h, w, t, &first)) {
        llm_tv_push(h, list, first);
        index[k++] = SIZE_MAX;
    }
    for (size_t i = 0; i < n; i++) {
        if (i >= begin && i < p->first)
            continue;
        index[k++] = i;
        llm_tv_push(h, list, i == 0 && index[0] == 0 ? first : message_of(h, w, llm_talk_at(t, i)));
    }
    *at = index;
    return list;
}

/* --- what a template wants ---------------------------------------------------------------------- */

/* A search in progress. */
typedef struct search {
    llm_wants *w;
    ggl_str text;
    llm_wants_shows *shows;
    void *ctx;
    ggl_error *err;
} search;

/* Tries n forms, each of which want() makes the wanted one: the first one in which the mark is shown counts, or, if there is none, the
 * first of all. */
static ggl_status try_forms(const search *s, void (*want)(llm_wants *w, int k), int n,
                            const char *json, const char *mark, bool *found) {
    ggl_status st = GGL_OK;
    *found = false;
    for (int k = 0; k < n && !*found && st == GGL_OK; k++) {
        want(s->w, k);
        st = s->shows(s->ctx, s->w, json, mark, found, s->err);
    }
    if (!*found)
        want(s->w, 0);
    return st;
}

static void want_content(llm_wants *w, int k) {
    w->parts = k == 1;
}

static void want_calls(llm_wants *w, int k) {
    w->null_content = k & 1;
    w->text_arguments = k >> 1;
}

static void want_tools(llm_wants *w, int k) {
    w->tools = k == 0 ? WANTS_NO_TOOLS : k == 1 ? WANTS_TOOLS_TEXT : WANTS_TOOLS_LIST;
}

/* True if the template's text has a member's name: .name, 'name' or "name". */
static bool names(const search *x, const char *name) {
    const size_t n = strlen(name);
    const char *s = x->text.s, *end = x->text.s + x->text.n;
    for (; (s = ggl_find_bytes(s, (size_t)(end - s), name, n)); s += n) {
        const char before = s > x->text.s ? s[-1] : ' ', after = s + n < end ? s[n] : ' ';
        const bool is_part = after == '_' || (after >= '0' && after <= '9') ||
                             (after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z');
        if ((before == '.' && !is_part) || ((before == '\'' || before == '"') && after == before))
            return true;
    }
    return false;
}

#define TOOLS                                                                                      \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"zqf\", \"description\": "     \
    "\"\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}]}"

#define CALLS(id)                                                                                  \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "         \
    "\"content\": \"\", \"tool_calls\": [{\"id\": \"" id                                           \
    "\", \"type\": \"function\", \"function\": {\"name\": \"zqf\", \"arguments\": {\"zq\": "       \
    "\"qvz\"}}}]}, {\"role\": \"tool\", \"tool_call_id\": \"" id                                   \
    "\", \"content\": \"b\"}], " TOOLS

/* A user says zqc, or asks with the tool zqf, which a call names. The arguments of the call, {"zq": "qvz"}, appear in quotes that are not
 * escaped if they are shown as JSON; in other forms, only the value may appear. */
static const char talk[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"zqc\"}]}",
                  tools[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], " TOOLS,
                  calls[] = CALLS("abcdefghi"),
                  other_ids[] = CALLS("call_0123456789abcdefghijklmn");

ggl_status llm_wants_find(llm_wants *w, const llm_template *t, ggl_str text, llm_wants_shows *shows,
                          void *ctx, ggl_error *err) {
    const search s = {.w = w, .text = text, .shows = shows, .ctx = ctx, .err = err};
    const bool has_variable =
        llm_template_mentions(t, "tools") || llm_template_mentions(t, "functions");
    *w = (llm_wants){.developer = names(&s, "developer")};
    for (int i = 0; i < N_THOUGHTS; i++)
        w->reasoning |= (unsigned)names(&s, thoughts[i]) << i;
    bool found;
    ggl_status st = try_forms(&s, want_content, 2, talk, "zqc", &found);
    if (st == GGL_OK && !has_variable && names(&s, "tools"))
        st = try_forms(&s, want_tools, 3, tools, "zqf", &found);
    if (has_variable)
        w->tools = WANTS_VARIABLE;
    if (st != GGL_OK || !names(&s, "tool_calls"))
        return st;
    st = try_forms(&s, want_calls, 4, calls, "\"zq\"", &found);
    if (st == GGL_OK && !found) /* it does not show them as JSON */
        st = try_forms(&s, want_calls, 4, calls, "qvz", &found);
    bool shown = true;
    if (st == GGL_OK && found)
        st = shows(ctx, w, other_ids, "qvz", &shown, err);
    w->short_ids = !shown;
    return st;
}
