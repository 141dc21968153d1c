/* What of Anthropic's messages is read: a compaction stands for all before it, documents and results of searches are texts, and edits of
 * "context_management" clear earlier reasoning and results of tools. The messages become others with plain blocks. */
#include <inttypes.h>
#include <string.h>

#include "api_anthropic.h"
#include "api_shape.h"
#include "api_talk.h"
#include "fields_sampling.h"
#include "ggl/internal/index.h"
#include "llm/internal/tokenizer.h"

/* The conversation while it is edited: messages are copies, whose contents may be replaced. */
typedef struct editing {
    ask *a;
    const server_facts *facts;
    ggl_error *err;
    json_value *message; /* [n] */
    size_t n;
    llm_json_out applied; /* JSON of edits that have changed something, with commas */
} editing;

/* The blocks of a content that is being made. */
typedef struct block_list {
    json_value *block; /* [n] */
    size_t n, cap;
} block_list;

static ggl_status no_memory(const editing *e) {
    return ggl_fail(e->err, GGL_NOMEM, "out of memory for a conversation");
}

static const json_value *blocks_of(const json_value *message) {
    return llm_json_get_kind(message, "content", JSON_ARRAY);
}

static ggl_status add_block(const editing *e, block_list *l, json_value v) {
    if (!ggl_grow(&l->block, &l->cap, l->n + 1, sizeof *l->block))
        return no_memory(e);
    l->block[l->n++] = v;
    return GGL_OK;
}

/* Makes {"type": "text", "text": ..} of a text, which is freed. */
static ggl_status add_text(const editing *e, block_list *l, llm_json_out *text) {
    ggl_str kept;
    json_value block;
    const ggl_status st = ask_keep(e->a, text, &kept, e->err);
    if (st != GGL_OK)
        return st;
    const llm_json_member m[] = {{{"type", 4}, llm_json_of_text("text")},
                                 {{"text", 4}, llm_json_of_str(kept)}};
    return llm_json_make_object(&block, &e->a->arena, m, 2) ? add_block(e, l, block) : no_memory(e);
}

/* Copies an object with a list of blocks as its content; frees the list. */
static ggl_status set_content(const editing *e, json_value *object, block_list *l) {
    json_value list, copy;
    const bool made = llm_json_make_array(&list, &e->a->arena, l->block, l->n) &&
                      llm_json_make_with(&copy, &e->a->arena, object, "content", list);
    ggl_free(l->block);
    *l = (block_list){0};
    if (!made)
        return no_memory(e);
    *object = copy;
    return GGL_OK;
}

/* Names that are looked up. */
typedef struct name_set {
    ggl_str *name;
    ggl_index index;
} name_set;

/* --- documents ------------------------------------------------------------------------------------ */

typedef struct document {
    const json_value *source, *title, *context, *citations, *content;
} document;

static const shape_row document_rows[] = {
    {"type", SHAPE_IGNORED, 0, NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"source", SHAPE_OBJECT | SHAPE_REQUIRED, offsetof(document, source), NULL},
    {"title", SHAPE_STRING, offsetof(document, title), NULL},
    {"context", SHAPE_STRING, offsetof(document, context), NULL},
    {"citations", SHAPE_OBJECT, offsetof(document, citations), NULL},
    {0}};
static const shape_row search_rows[] = {
    {"type", SHAPE_IGNORED, 0, NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"source", SHAPE_STRING | SHAPE_REQUIRED, offsetof(document, source), NULL},
    {"title", SHAPE_STRING | SHAPE_REQUIRED, offsetof(document, title), NULL},
    {"content", SHAPE_LIST | SHAPE_REQUIRED, offsetof(document, content), NULL},
    {"citations", SHAPE_OBJECT, offsetof(document, citations), NULL},
    {0}};

static void put_line(llm_json_out *out, const char *tag, const json_value *v) {
    if (!v || v->kind != JSON_STRING || v->n == 0)
        return;
    llm_json_put_text(out, "<");
    llm_json_put_text(out, tag);
    llm_json_put_text(out, ">");
    llm_json_put(out, v->s, v->n);
    llm_json_put_text(out, "</");
    llm_json_put_text(out, tag);
    llm_json_put_text(out, ">\n");
}

/* Adds the texts and pictures of a document between its marks. */
static ggl_status add_parts(const editing *e, block_list *l, llm_json_out *text,
                            const json_value *content) {
    ggl_status st = GGL_OK;
    if (content->kind == JSON_STRING)
        llm_json_put(text, content->s, content->n);
    for (size_t i = 0; content->kind == JSON_ARRAY && i < content->n && st == GGL_OK; i++) {
        const json_value *part = &content->item[i],
                         *s = llm_json_get_kind(part, "text", JSON_STRING);
        if (llm_json_has(part, "type", "image")) {
            st = add_text(e, l, text);
            st = st == GGL_OK ? add_block(e, l, *part) : st;
        } else if (s && llm_json_has(part, "type", "text")) {
            llm_json_put_text(text, i > 0 ? "\n" : "");
            llm_json_put(text, s->s, s->n);
        } else {
            st = ggl_fail(e->err, GGL_UNSUPPORTED,
                          "content[%zu]: a document has blocks of type \"text\" and \"image\"", i);
        }
    }
    llm_json_put_text(text, "\n</document>");
    return st == GGL_OK ? add_text(e, l, text) : st;
}

/* Finds the text of a document; NULL: it is of another kind, such as PDF. */
static const json_value *text_of(const json_value *source) {
    const json_value *content = llm_json_get(source, "content");
    if (llm_json_has(source, "type", "text"))
        return llm_json_get_kind(source, "data", JSON_STRING);
    return llm_json_has(source, "type", "content") && content &&
                   (content->kind == JSON_STRING || content->kind == JSON_ARRAY)
               ? content
               : NULL;
}

/* Adds a document, or a result of a search, as texts. in_result: one that cannot be read stays, and becomes a text that says so. */
static ggl_status add_document(const editing *e, block_list *l, const json_value *block,
                               bool in_result) {
    const bool is_search = llm_json_has(block, "type", "search_result");
    document d;
    if (in_result && !is_search && !text_of(llm_json_get(block, "source")))
        return add_block(e, l, *block);
    const size_t outer = fields_enter(&e->a->ignored, "messages.content");
    ggl_status st = read_shape(&d, sizeof d, &e->a->ignored, block,
                               is_search ? search_rows : document_rows, e->err);
    fields_leave(&e->a->ignored, outer);
    if (st != GGL_OK)
        return st;
    const json_value *content = is_search ? d.content : text_of(d.source);
    if (!content)
        return ggl_fail(
            e->err, GGL_UNSUPPORTED,
            "a document must be a text: a \"source\" of type \"text\" with \"data\", or "
            "\"content\" with \"content\"; this server reads no PDF and keeps no files");
    if (d.citations && json_is_true(llm_json_get(d.citations, "enabled")))
        return ggl_fail(e->err, GGL_UNSUPPORTED,
                        "\"citations\" are not supported: leave them out, or set \"enabled\" to "
                        "false");
    llm_json_out text = {0};
    llm_json_put_text(&text, "<document>\n");
    put_line(&text, "title", d.title);
    put_line(&text, "source", is_search ? d.source : NULL);
    put_line(&text, "context", d.context);
    st = add_parts(e, l, &text, content);
    ggl_free(text.s);
    return st;
}

/* --- blocks --------------------------------------------------------------------------------------- */

static bool is_document(const json_value *block) {
    return llm_json_has(block, "type", "document") || llm_json_has(block, "type", "search_result");
}

/* The documents in a result of a tool become texts. */
static ggl_status edit_result(const editing *e, json_value *result) {
    const json_value *content = blocks_of(result);
    bool has = false;
    for (size_t i = 0; content && i < content->n; i++)
        has = has || is_document(&content->item[i]);
    if (!has)
        return GGL_OK;
    block_list l = {0};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < content->n && st == GGL_OK; i++) {
        const json_value *v = &content->item[i];
        st = is_document(v) ? add_document(e, &l, v, true) : add_block(e, &l, *v);
        if (st != GGL_OK)
            (void)ggl_within(e->err, st, "content[%zu]", i);
    }
    if (st == GGL_OK)
        return set_content(e, result, &l);
    ggl_free(l.block);
    return st;
}

/* Adds a block as one that is read. Changes of tools were read before; a compaction without a text has failed. */
static ggl_status edit_block(const editing *e, block_list *l, const json_value *block) {
    json_value copy = *block;
    if (is_document(block))
        return add_document(e, l, block, false);
    if (llm_json_has(block, "type", "tool_addition") ||
        llm_json_has(block, "type", "tool_removal") || llm_json_has(block, "type", "compaction"))
        return GGL_OK;
    if (llm_json_has(block, "type", "mcp_tool_listing"))
        return fields_ignore(&e->a->ignored, "messages", (ggl_str){"mcp_tool_listing", 16}, e->err);
    const ggl_status st =
        llm_json_has(block, "type", "tool_result") ? edit_result(e, &copy) : GGL_OK;
    return st == GGL_OK ? add_block(e, l, copy) : st;
}

static bool is_edited(const json_value *block) {
    static const char *const names[] = {"document",      "search_result", "compaction",
                                        "tool_addition", "tool_removal",  "mcp_tool_listing",
                                        "tool_result"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (llm_json_has(block, "type", names[i]))
            return true;
    return false;
}

/* Edits the blocks of a message from number `first` on. *is_empty: nothing is left of them. */
static ggl_status edit_message(const editing *e, json_value *message, size_t first,
                               bool *is_empty) {
    const json_value *content = blocks_of(message);
    bool has = first > 0;
    *is_empty = false;
    for (size_t i = 0; content && i < content->n; i++)
        has = has || is_edited(&content->item[i]);
    if (!has)
        return GGL_OK;
    block_list l = {0};
    ggl_status st = GGL_OK;
    for (size_t i = first; i < content->n && st == GGL_OK; i++) {
        st = edit_block(e, &l, &content->item[i]);
        if (st != GGL_OK)
            (void)ggl_within(e->err, st, "content[%zu]", i);
    }
    *is_empty = l.n == 0;
    if (st == GGL_OK)
        return set_content(e, message, &l);
    ggl_free(l.block);
    return st;
}

/* --- compactions ---------------------------------------------------------------------------------- */

/* Finds the last compaction with a text. False: there is none. */
static bool find_compaction(const json_value *messages, size_t *i, size_t *k) {
    for (*i = messages->n; (*i)-- > 0;) {
        const json_value *content = blocks_of(&messages->item[*i]);
        for (*k = content ? content->n : 0; (*k)-- > 0;)
            if (llm_json_has(&content->item[*k], "type", "compaction") &&
                llm_json_get_kind(&content->item[*k], "content", JSON_STRING))
                return true;
    }
    return false;
}

/* Makes the user's message that has a summary. */
static ggl_status add_summary(editing *e, const json_value *block) {
    const json_value *content = llm_json_get(block, "content");
    llm_json_out text = {0};
    ggl_str kept;
    llm_json_put_text(&text, TALK_SUMMARY);
    llm_json_put(&text, content->s, content->n);
    const ggl_status st = ask_keep(e->a, &text, &kept, e->err);
    if (st != GGL_OK)
        return st;
    const llm_json_member m[] = {{{"role", 4}, llm_json_of_text("user")},
                                 {{"content", 7}, llm_json_of_str(kept)}};
    return llm_json_make_object(&e->message[e->n++], &e->a->arena, m, 2) ? GGL_OK : no_memory(e);
}

/* Copies the messages, from the last compaction on. */
static ggl_status copy_messages(editing *e, const json_value *messages) {
    size_t i = 0, k = 0;
    e->message = ggl_arena_alloc(&e->a->arena, messages->n + 1, sizeof *e->message);
    if (!e->message)
        return no_memory(e);
    const bool has_summary = find_compaction(messages, &i, &k);
    ggl_status st = has_summary ? add_summary(e, &blocks_of(&messages->item[i])->item[k]) : GGL_OK;
    size_t first = has_summary ? k + 1 : 0;
    for (i = has_summary ? i : 0; i < messages->n && st == GGL_OK; i++, first = 0) {
        bool is_empty;
        e->message[e->n] = messages->item[i];
        st = edit_message(e, &e->message[e->n], first, &is_empty);
        e->n += !is_empty;
        if (st != GGL_OK)
            (void)ggl_within(e->err, st, "messages[%zu]", /* the request counts its own */
                             i < e->a->n_recalled ? i : i - e->a->n_recalled);
    }
    return st;
}

/* --- counts --------------------------------------------------------------------------------------- */

/* About how many tokens a text is; without a tokenizer a quarter of its bytes. */
static int64_t count_text(const editing *e, ggl_str s) {
    llm_tokens ids = {0};
    int64_t n = (int64_t)s.n / 4;
    if (e->facts->tokenizer && ask_hold_text(e->a, s.n, NULL) == GGL_OK &&
        llm_tokenize(e->facts->tokenizer, s.s, s.n, 0, &ids, NULL) == GGL_OK)
        n = (int64_t)ids.n;
    llm_tokens_fini(&ids);
    return n;
}

/* The same for all strings in a value, without pictures. */
static int64_t count_value(const editing *e, const json_value *v) {
    int64_t n = 0;
    if (v->kind == JSON_STRING)
        return count_text(e, json_str(v));
    if (v->kind < JSON_ARRAY || llm_json_has(v, "type", "image"))
        return 0;
    for (uint32_t i = 0; i < v->n; i++)
        n += count_value(e, &v->item[i]);
    return n;
}

/* About how many tokens the conversation is. */
static int64_t count_all(const editing *e) {
    const anthropic_ask *own = e->a->own;
    int64_t n = own->system ? count_value(e, own->system) : 0;
    n += own->tools ? count_value(e, own->tools) : 0;
    for (size_t i = 0; i < e->n; i++)
        n += count_value(e, &e->message[i]);
    return n;
}

/* --- edits ---------------------------------------------------------------------------------------- */

typedef struct edit {
    const json_value *keep, *trigger, *at_least, *exclude, *inputs;
} edit;

static const shape_row thinking_rows[] = {
    {"type", SHAPE_IGNORED, 0, NULL},
    {"keep", SHAPE_STRING | SHAPE_OBJECT, offsetof(edit, keep), NULL},
    {0}};
static const shape_row uses_rows[] = {
    {"type", SHAPE_IGNORED, 0, NULL},
    {"keep", SHAPE_OBJECT, offsetof(edit, keep), NULL},
    {"trigger", SHAPE_OBJECT, offsetof(edit, trigger), NULL},
    {"clear_at_least", SHAPE_OBJECT, offsetof(edit, at_least), NULL},
    {"exclude_tools", SHAPE_LIST, offsetof(edit, exclude), NULL},
    {"clear_tool_inputs", SHAPE_BOOL | SHAPE_LIST, offsetof(edit, inputs), NULL},
    {0}};
static const shape_row compact_rows[] = {{"type", SHAPE_IGNORED, 0, NULL},
                                         {"trigger", SHAPE_OBJECT, offsetof(edit, trigger), NULL},
                                         {"instructions", SHAPE_IGNORED, 0, NULL},
                                         {"pause_after_compaction", SHAPE_IGNORED, 0, NULL},
                                         {0}};

/* Reads {"type": TYPE, "value": N}; v NULL: *n stays. */
static ggl_status read_amount(const editing *e, const json_value *v, const char *name,
                              const char *type, int64_t *n) {
    const json_value *value = llm_json_get_kind(v, "value", JSON_NUMBER);
    if (!v)
        return GGL_OK;
    if (!llm_json_has(v, "type", type) || !value || !value->whole || value->number < 0)
        return ggl_fail(e->err, GGL_USAGE,
                        "\"%s\" must be {\"type\": \"%s\", \"value\": N}, N a number of 0 or more",
                        name, type);
    *n = (int64_t)value->number;
    return GGL_OK;
}

static void note_edit(editing *e, const char *type, const char *what, int64_t n, int64_t n_tokens) {
    llm_json_format(&e->applied, "%s{'type': '%s', '%s': %lld, 'cleared_input_tokens': %lld}",
                    e->applied.n > 0 ? ", " : "", type, what, (long long)n, (long long)n_tokens);
}

/* True for a message with which the user begins a turn: not only results of tools. */
static bool begins_turn(const json_value *message) {
    const json_value *content = blocks_of(message);
    if (!llm_json_has(message, "role", "user"))
        return false;
    for (size_t i = 0; content && i < content->n; i++)
        if (!llm_json_has(&content->item[i], "type", "tool_result"))
            return true;
    return !content;
}

static bool is_thinking(const json_value *block) {
    return llm_json_has(block, "type", "thinking") ||
           llm_json_has(block, "type", "redacted_thinking");
}

/* Takes the reasoning out of a message. */
static ggl_status drop_thinking(editing *e, json_value *message, int64_t *n_tokens) {
    const json_value *content = blocks_of(message);
    block_list l = {0};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < content->n && st == GGL_OK; i++) {
        if (is_thinking(&content->item[i]))
            *n_tokens += count_value(e, &content->item[i]);
        else
            st = add_block(e, &l, content->item[i]);
    }
    if (st == GGL_OK)
        return set_content(e, message, &l);
    ggl_free(l.block);
    return st;
}

static bool has_thinking(const json_value *message) {
    const json_value *content =
        llm_json_has(message, "role", "assistant") ? blocks_of(message) : NULL;
    for (size_t i = 0; content && i < content->n; i++)
        if (is_thinking(&content->item[i]))
            return true;
    return false;
}

/* Takes a message without blocks out of the conversation. */
static void drop_empty(editing *e) {
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        const json_value *content = blocks_of(&e->message[i]);
        if (!content || content->n > 0)
            e->message[n++] = e->message[i];
    }
    e->n = n;
}

static ggl_status clear_thinking(editing *e, const edit *x) {
    int64_t n_keep = 1, n_turns = 0, n_tokens = 0, n_cleared = 0;
    bool is_counted = false, is_noted = false;
    ggl_status st = GGL_OK;
    if (x->keep && (llm_json_is(x->keep, "all") || llm_json_has(x->keep, "type", "all")))
        return GGL_OK;
    st = read_amount(e, x->keep, "keep", "thinking_turns", &n_keep);
    for (size_t i = e->n; i-- > 0 && st == GGL_OK;) {
        json_value *m = &e->message[i];
        if (begins_turn(m))
            is_counted = is_noted = false;
        if (!has_thinking(m))
            continue;
        n_turns += !is_counted;
        is_counted = true;
        if (n_turns <= n_keep)
            continue;
        n_cleared += !is_noted;
        is_noted = true;
        st = drop_thinking(e, m, &n_tokens);
    }
    drop_empty(e);
    if (st == GGL_OK && n_cleared > 0)
        note_edit(e, "clear_thinking_20251015", "cleared_thinking_turns", n_cleared, n_tokens);
    return st;
}

/* A call of a tool. */
typedef struct tool_use {
    ggl_str id; /* the key */
    ggl_str name;
    bool has_result, is_cleared, clears_input;
} tool_use;

/* All calls of the conversation, and the names in the lists of an edit. */
typedef struct uses {
    tool_use *use; /* [n] */
    size_t n, cap;
    ggl_index ids;
    name_set excluded, with_inputs;
} uses;

static ggl_status make_set(const editing *e, name_set *s, const json_value *list) {
    const size_t n = list && list->kind == JSON_ARRAY ? list->n : 0;
    s->name = ggl_arena_alloc(&e->a->arena, n + 1, sizeof *s->name);
    if (!s->name)
        return no_memory(e);
    ggl_status st = ggl_index_init(&s->index, n + 1, sizeof *s->name, GGL_INDEX_STRINGS, e->err);
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        if (list->item[i].kind != JSON_STRING)
            return ggl_fail(e->err, GGL_USAGE, "names of tools must be strings");
        s->name[i] = json_str(&list->item[i]);
        (void)ggl_index_put(&s->index, s->name, i);
    }
    return st;
}

static bool is_in(const name_set *s, ggl_str name) {
    return ggl_index_find(&s->index, s->name, name) != SIZE_MAX;
}

static ggl_str string_of(const json_value *v, const char *name) {
    const json_value *s = llm_json_get_kind(v, name, JSON_STRING);
    return s ? json_str(s) : (ggl_str){"", 0};
}

/* The call of a block, or the one whose result it is; NULL: it is neither. */
static tool_use *use_of(const uses *u, const json_value *block, bool is_result) {
    const size_t i =
        ggl_index_find(&u->ids, u->use, string_of(block, is_result ? "tool_use_id" : "id"));
    return i != SIZE_MAX && llm_json_has(block, "type", is_result ? "tool_result" : "tool_use")
               ? &u->use[i]
               : NULL;
}

/* Notes a call, or that it has a result. */
static ggl_status note_use(const editing *e, uses *u, const json_value *block) {
    tool_use *has = use_of(u, block, true);
    if (has)
        has->has_result = true;
    if (!llm_json_has(block, "type", "tool_use"))
        return GGL_OK;
    if (!ggl_grow(&u->use, &u->cap, u->n + 1, sizeof *u->use) ||
        ggl_index_reserve(&u->ids, u->use, u->n + 1, NULL) != GGL_OK)
        return no_memory(e);
    u->use[u->n] = (tool_use){.id = string_of(block, "id"), .name = string_of(block, "name")};
    (void)ggl_index_put(&u->ids, u->use, u->n++);
    return GGL_OK;
}

static ggl_status list_uses(const editing *e, uses *u) {
    ggl_status st = ggl_index_init(&u->ids, 8, sizeof *u->use, GGL_INDEX_STRINGS, e->err);
    for (size_t i = 0; i < e->n && st == GGL_OK; i++) {
        const json_value *content = blocks_of(&e->message[i]);
        for (size_t k = 0; content && k < content->n && st == GGL_OK; k++)
            st = note_use(e, u, &content->item[k]);
    }
    return st;
}

/* Chooses what is cleared: all but the last n_keep, and those that are excluded. Returns how many. */
static int64_t choose(uses *u, const edit *x, int64_t n_keep) {
    int64_t n_left = 0, n_cleared = 0;
    for (size_t i = u->n; i-- > 0;) {
        tool_use *use = &u->use[i];
        if (!use->has_result || is_in(&u->excluded, use->name) || n_left++ < n_keep)
            continue;
        use->is_cleared = true;
        use->clears_input = json_is_true(x->inputs) || is_in(&u->with_inputs, use->name);
        n_cleared++;
    }
    return n_cleared;
}

/* Clears the result or the input in a copy of a block. *n_tokens grows by what was there. */
static ggl_status clear_block(editing *e, const uses *u, json_value *block, int64_t *n_tokens) {
    const tool_use *of_result = use_of(u, block, true), *of_call = use_of(u, block, false);
    const bool clears_result = of_result && of_result->is_cleared,
               clears_input = of_call && of_call->clears_input;
    const char *member = clears_result ? "content" : "input";
    const json_value *old = llm_json_get(block, member), was = *block;
    const json_value value = clears_result ? llm_json_of_text("[result cleared to save room]")
                                           : (json_value){.kind = JSON_OBJECT};
    if (!old || !(clears_result || clears_input))
        return GGL_OK;
    *n_tokens += count_value(e, old);
    return llm_json_make_with(block, &e->a->arena, &was, member, value) ? GGL_OK : no_memory(e);
}

static ggl_status clear_chosen(editing *e, const uses *u, int64_t *n_tokens) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < e->n && st == GGL_OK; i++) {
        const json_value *content = blocks_of(&e->message[i]);
        block_list l = {0};
        for (size_t k = 0; content && k < content->n && st == GGL_OK; k++) {
            json_value block = content->item[k];
            st = clear_block(e, u, &block, n_tokens);
            st = st == GGL_OK ? add_block(e, &l, block) : st;
        }
        if (st == GGL_OK && l.n > 0)
            st = set_content(e, &e->message[i], &l);
        ggl_free(l.block);
    }
    return st;
}

/* True if the conversation is as long as the edit's trigger says. */
static ggl_status is_triggered(const editing *e, const json_value *trigger, int64_t n_uses,
                               int64_t most, bool *is) {
    int64_t n = -1;
    ggl_status st = GGL_OK;
    if (llm_json_has(trigger, "type", "tool_uses")) {
        st = read_amount(e, trigger, "trigger", "tool_uses", &n);
        *is = n_uses > n;
        return st;
    }
    st = read_amount(e, trigger, "trigger", "input_tokens", &most);
    *is = st == GGL_OK && count_all(e) > most;
    return st;
}

/* Clears results, and takes it back if too little is saved. */
static ggl_status clear_uses(editing *e, const edit *x, uses *u) {
    enum { TRIGGER = 100000, KEEP = 3 };
    int64_t n_keep = KEEP, least = 0, n_tokens = 0;
    bool is = false;
    json_value *before = ggl_arena_alloc(&e->a->arena, e->n + 1, sizeof *before);
    ggl_status st = before ? GGL_OK : no_memory(e);
    if (st == GGL_OK)
        st = read_amount(e, x->keep, "keep", "tool_uses", &n_keep);
    if (st == GGL_OK)
        st = read_amount(e, x->at_least, "clear_at_least", "input_tokens", &least);
    if (st == GGL_OK)
        st = is_triggered(e, x->trigger, (int64_t)u->n, TRIGGER, &is);
    const int64_t n_cleared = st == GGL_OK && is ? choose(u, x, n_keep) : 0;
    if (n_cleared == 0)
        return st;
    memcpy(before, e->message, e->n * sizeof *before);
    st = clear_chosen(e, u, &n_tokens);
    if (st == GGL_OK && n_tokens < least)
        memcpy(e->message, before, e->n * sizeof *before);
    else if (st == GGL_OK)
        note_edit(e, "clear_tool_uses_20250919", "cleared_tool_uses", n_cleared, n_tokens);
    return st;
}

static ggl_status clear_tool_uses(editing *e, const edit *x) {
    uses u = {0};
    ggl_status st = make_set(e, &u.excluded, x->exclude);
    if (st == GGL_OK)
        st = make_set(e, &u.with_inputs, x->inputs);
    if (st == GGL_OK)
        st = list_uses(e, &u);
    if (st == GGL_OK)
        st = clear_uses(e, x, &u);
    ggl_index_fini(&u.excluded.index);
    ggl_index_fini(&u.with_inputs.index);
    ggl_index_fini(&u.ids);
    ggl_free(u.use);
    return st;
}

/* A conversation is summed up only by a request of its own. */
static ggl_status check_compact(editing *e, const edit *x) {
    enum { TRIGGER = 150000 };
    bool is = false;
    const ggl_status st = is_triggered(e, x->trigger, 0, TRIGGER, &is);
    if (st != GGL_OK || !is)
        return st;
    return ggl_fail(
        e->err, GGL_UNSUPPORTED,
        "the conversation has about %" PRId64
        " tokens, more than the edit's \"trigger\", but is not summed up by the way: ask "
        "for a summary by \"compaction\", and send that in its place",
        count_all(e));
}

static const struct edit_type {
    const char *name;
    const shape_row *rows;
    ggl_status (*apply)(editing *e, const edit *x);
} edit_types[] = {{"clear_thinking_20251015", thinking_rows, clear_thinking},
                  {"clear_tool_uses_20250919", uses_rows, clear_tool_uses},
                  {"compact_20260112", compact_rows, check_compact}};

static ggl_status apply_edit(editing *e, const json_value *v) {
    edit x;
    for (size_t k = 0; k < sizeof edit_types / sizeof *edit_types; k++)
        if (llm_json_has(v, "type", edit_types[k].name)) {
            const size_t outer = fields_enter(&e->a->ignored, "context_management.edits");
            const ggl_status st =
                read_shape(&x, sizeof x, &e->a->ignored, v, edit_types[k].rows, e->err);
            fields_leave(&e->a->ignored, outer);
            return st == GGL_OK ? edit_types[k].apply(e, &x) : st;
        }
    return ggl_fail(e->err, GGL_UNSUPPORTED,
                    "\"type\" must be \"clear_thinking_20251015\", \"clear_tool_uses_20250919\" or "
                    "\"compact_20260112\"");
}

static ggl_status apply_edits(editing *e, const json_value *edits) {
    anthropic_ask *own = e->a->own;
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < edits->n && st == GGL_OK; i++) {
        st = apply_edit(e, &edits->item[i]);
        if (st != GGL_OK)
            (void)ggl_within(e->err, st, "context_management: edits[%zu]", i);
    }
    llm_json_out all = {0};
    llm_json_put_text(&all, "{\"applied_edits\": [");
    if (e->applied.n > 0)
        llm_json_put(&all, e->applied.s, e->applied.n);
    llm_json_put_text(&all, "]}");
    all.failed = all.failed || e->applied.failed;
    ggl_free(e->applied.s);
    if (st == GGL_OK)
        return ask_keep(e->a, &all, &own->applied, e->err);
    ggl_free(all.s);
    return st;
}

ggl_status anthropic_edit(ask *a, const server_facts *facts, const char **param, ggl_error *err) {
    anthropic_ask *own = a->own;
    editing e = {.a = a, .facts = facts, .err = err};
    if (!own->messages || own->messages->kind != JSON_ARRAY)
        return GGL_OK; /* an error that is found later */
    *param = "messages";
    ggl_status st = copy_messages(&e, own->messages);
    if (st == GGL_OK && own->edits) {
        *param = "context_management";
        st = apply_edits(&e, own->edits);
    }
    json_value *list = st == GGL_OK ? ggl_arena_alloc(&a->arena, 1, sizeof *list) : NULL;
    if (st == GGL_OK && !list)
        return no_memory(&e);
    if (st != GGL_OK)
        return st;
    *list = (json_value){.kind = JSON_ARRAY, .n = (uint32_t)e.n, .item = e.message};
    own->messages = list;
    return GGL_OK;
}
