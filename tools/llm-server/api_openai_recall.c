/* What requests of /v1/responses name: an answer before them, a conversation, single items.
 *
 *     {"previous_response_id": "resp_A", "input": [{"type": "item_reference", "id": "msg_B_0"}, X]}
 *     becomes {"previous_response_id": "resp_A", "input": [what A had, what A gave, the item of B, X]}
 *
 * An item's id has that of its answer: the second item that resp_A gave is msg_A_1, the second one that its request had
 * msg_A_i1. One that was put into conv_A is msg_A_x and random letters. */
#include <stdio.h>
#include <string.h>

#include "api_openai_input.h"
#include "api_recall.h"
#include "ggl/internal/index.h"

enum { LISTED_ID = STORE_ID + 32 };

/* A kept answer whose items are needed. */
typedef struct source {
    ggl_str id; /* the key */
    const stored *x;
    llm_json *sent, *answer; /* NULL: not parsed yet */
    ggl_str *name;           /* ids of the items of a conversation; NULL: not needed yet */
    ggl_index names;
} source;

typedef struct reading {
    ask *a;
    ggl_error *err;
    llm_json_out out;
    ggl_status failed; /* why an item could not be read */
    size_t n_items;
    source *source; /* [n] */
    size_t n, cap;
    ggl_index sources;
    ggl_str *seen; /* [n_seen] ids of references */
    size_t n_seen, cap_seen;
    ggl_index ids;
} reading;

static ggl_status no_memory(reading *r) {
    return ggl_fail(r->err, GGL_NOMEM, "out of memory for a conversation");
}

static void end(reading *r) {
    for (size_t i = 0; i < r->n; i++) {
        llm_json_free(r->source[i].sent);
        llm_json_free(r->source[i].answer);
        ggl_index_fini(&r->source[i].names);
        store_release(r->a->store, r->source[i].x);
    }
    ggl_free(r->source);
    ggl_free(r->seen);
    ggl_index_fini(&r->sources);
    ggl_index_fini(&r->ids);
}

/* --- references ------------------------------------------------------------------------------------- */

/* Its type may be left out. */
static bool is_reference(const json_value *item) {
    const json_value *type = llm_json_get(item, "type");
    if (type && type->kind != JSON_NULL)
        return llm_json_is(type, "item_reference");
    return llm_json_get_kind(item, "id", JSON_STRING) && !llm_json_get(item, "role");
}

static ggl_status gone(reading *r, ggl_str id) {
    const int n = (int)(id.n < 100 ? id.n : 100);
    if (!r->a->store)
        return ggl_fail(r->err, GGL_UNSUPPORTED,
                        "the item \"%.*s\" is not known: the server keeps no answers "
                        "(--no-store); give the item itself, or set \"store\" to false",
                        n, id.s);
    return ggl_fail(r->err, GGL_NOT_FOUND,
                    "Item with id '%.*s' not found: it was of an answer with \"store\": false, or "
                    "it is not kept any more (--store-time); give the item itself",
                    n, id.s);
}

/* Finds what was kept under an id, and holds it; NULL: nothing, or it has failed. */
static source *find_source(reading *r, ggl_str id) {
    const size_t k = ggl_index_find(&r->sources, r->source, id);
    if (k != SIZE_MAX)
        return &r->source[k];
    const stored *x = store_find(r->a->store, id, r->a->owner);
    if (!x)
        return NULL;
    if (!ggl_grow(&r->source, &r->cap, r->n + 1, sizeof *r->source) ||
        ggl_index_reserve(&r->sources, r->source, r->n + 1, NULL) != GGL_OK) {
        store_release(r->a->store, x);
        r->failed = no_memory(r);
        return NULL;
    }
    source *s = &r->source[r->n];
    *s = (source){.id = {x->id, strlen(x->id)}, .x = x};
    (void)ggl_index_put(&r->sources, r->source, r->n++);
    return s;
}

/* What the id of an item says. */
typedef struct item_id {
    char key[STORE_ID + 1]; /* of the answer, without "resp_", or of the conversation */
    char
        kind; /* 'g': the answer gave it; 'i': the request had it; 'x': the conversation has it; 0: it is no id of this server */
    size_t k; /* its index, but in a conversation */
} item_id;

/* Reads an id such as "msg_ABC_3", "msg_ABC_i3" or "msg_ABC_xR4nd0m". */
static item_id read_item_id(ggl_str id) {
    item_id x = {.kind = 0};
    const char *first = id.n > 0 ? memchr(id.s, '_', id.n) : NULL, *end = id.s + id.n, *last = end;
    while (first && last[-1] != '_')
        last--;
    if (!first || last == end || last - 2 <= first)
        return x;
    const int n = (int)(last - 1 - (first + 1));
    snprintf(x.key, sizeof x.key, "%.*s", n < STORE_ID ? n : STORE_ID, first + 1);
    if (*last == 'x') {
        x.kind = 'x';
        return x;
    }
    const char *digits = last + (*last == 'i');
    for (const char *at = digits; at < end; at++) {
        if (*at < '0' || *at > '9' || end - digits > 9)
            return x;
        x.k = x.k * 10 + (size_t)(*at - '0');
    }
    if (digits < end)
        x.kind = *last == 'i' ? 'i' : 'g';
    return x;
}

/* The k-th item that a request had, or that its answer gave. */
static const json_value *item_at(reading *r, source *s, bool was_sent, size_t k) {
    llm_json **doc = was_sent ? &s->sent : &s->answer;
    const ggl_str text = was_sent ? s->x->sent : s->x->answer;
    if (!*doc && text.n > 0)
        r->failed = recall_parse_for(r->a, doc, text, r->err);
    if (!*doc)
        return NULL;
    const json_value *list =
        was_sent ? &(*doc)->root : llm_json_get_kind(&(*doc)->root, "output", JSON_ARRAY);
    return list && k < list->n ? &list->item[k] : NULL;
}

static bool has_id(const json_value *item, ggl_str id) {
    const json_value *own = llm_json_get_kind(item, "id", JSON_STRING);
    return own && ggl_str_equal(json_str(own), id);
}

/* Notes the ids of a conversation's items. */
static ggl_status note_names(reading *r, source *s) {
    const json_value *list = &s->sent->root;
    ggl_str *name = ggl_arena_alloc(&r->a->arena, list->n, sizeof *name);
    if (!name ||
        ggl_index_init(&s->names, list->n, sizeof *name, GGL_INDEX_STRINGS, NULL) != GGL_OK)
        return no_memory(r);
    for (size_t i = 0; i < list->n; i++) {
        const json_value *own = llm_json_get_kind(&list->item[i], "id", JSON_STRING);
        name[i] = own ? json_str(own) : (ggl_str){"", 0};
        (void)ggl_index_put(&s->names, name, i);
    }
    s->name = name;
    return GGL_OK;
}

/* Finds an item of a conversation by its id. */
static const json_value *item_of_talk(reading *r, source *s, ggl_str id) {
    if (!item_at(r, s, true, 0))
        return NULL;
    if (!s->name)
        r->failed = note_names(r, s);
    const size_t i = s->name ? ggl_index_find(&s->names, s->name, id) : SIZE_MAX;
    return i != SIZE_MAX ? &s->sent->root.item[i] : NULL;
}

/* Writes the id by which lists name the k-th item of an entry, if it has none of its own: "msg_ABC_i3". */
static void write_listed_id(const stored *of, size_t k, char *out, size_t size) {
    const char *key = strchr(of->id, '_');
    snprintf(out, size, "msg%s_i%zu", key ? key : "_", k);
}

/* An item has one such id: with two of them, a request could have it twice. */
static bool is_listed_as(const stored *of, size_t k, ggl_str id) {
    char own[LISTED_ID];
    write_listed_id(of, k, own, sizeof own);
    return ggl_str_is(id, own);
}

static const json_value *find_item(reading *r, ggl_str id) {
    const item_id x = read_item_id(id);
    char key[STORE_ID + 8];
    snprintf(key, sizeof key, "%s%s", x.kind == 'x' ? "conv_" : "resp_", x.key);
    source *s = x.kind ? find_source(r, (ggl_str){key, strlen(key)}) : NULL;
    if (!s)
        return NULL;
    const json_value *item =
        x.kind == 'x' ? item_of_talk(r, s, id) : item_at(r, s, x.kind == 'i', x.k);
    const bool is_it = item && (x.kind == 'i' ? is_listed_as(s->x, x.k, id) : has_id(item, id));
    return is_it && !is_reference(item) ? item : NULL;
}

/* An item twice would make the prompt longer than all that was kept. */
static ggl_status check_once(reading *r, ggl_str id) {
    if (!ggl_grow(&r->seen, &r->cap_seen, r->n_seen + 1, sizeof *r->seen) ||
        ggl_index_reserve(&r->ids, r->seen, r->n_seen + 1, NULL) != GGL_OK)
        return no_memory(r);
    r->seen[r->n_seen] = id;
    if (ggl_index_put(&r->ids, r->seen, r->n_seen) != r->n_seen)
        return ggl_fail(r->err, GGL_USAGE,
                        "Duplicate item found with id '%.*s': an item can be named once",
                        (int)(id.n < 100 ? id.n : 100), id.s);
    r->n_seen++;
    return GGL_OK;
}

static void put_value(reading *r, const json_value *v) {
    if (r->n_items++ > 0)
        llm_json_put_text(&r->out, ",");
    llm_json_put_value(&r->out, v);
}

/* --- lists ------------------------------------------------------------------------------------------ */

/* Writes an item, or the one that it names. The text of its id must live until the end. */
static ggl_status put_item(reading *r, const json_value *item) {
    if (item->kind != JSON_OBJECT || !is_reference(item)) {
        put_value(r, item);
        return GGL_OK;
    }
    const json_value *id = llm_json_get_kind(item, "id", JSON_STRING);
    if (!id)
        return ggl_fail(r->err, GGL_USAGE, "\"id\" of an item_reference must be a string");
    const ggl_status st = check_once(r, json_str(id));
    const json_value *found = st == GGL_OK && r->a->store ? find_item(r, json_str(id)) : NULL;
    if (st != GGL_OK || r->failed != GGL_OK)
        return st != GGL_OK ? st : r->failed;
    if (!found)
        return gone(r, json_str(id));
    put_value(r, found);
    return GGL_OK;
}

/* is_named: it was kept, and is no list of the request. */
static ggl_status put_list(reading *r, const json_value *list, bool is_named) {
    ggl_status st = GGL_OK;
    char where[OPENAI_WHERE];
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        st = put_item(r, &list->item[i]);
        if (st == GGL_OK)
            continue;
        openai_name_item(r->a, &list->item[i], i, is_named, where);
        return ggl_within(r->err, st, "%s", where);
    }
    return st;
}

/* Writes what an answer's request had, and what it gave. */
static ggl_status put_stored(reading *r, const stored *x) {
    source *s = find_source(r, (ggl_str){x->id, strlen(x->id)});
    ggl_status st = s ? GGL_OK : no_memory(r);
    if (st == GGL_OK && !s->sent)
        st = recall_parse_for(r->a, &s->sent, x->sent, r->err);
    if (st == GGL_OK && !s->answer && x->answer.n > 0)
        st = recall_parse_for(r->a, &s->answer, x->answer, r->err);
    const llm_json *sent = s ? s->sent : NULL, *body = s ? s->answer : NULL;
    if (st == GGL_OK)
        st = put_list(r, &sent->root, true); /* which may move the sources */
    const json_value *output = body ? llm_json_get_kind(&body->root, "output", JSON_ARRAY) : NULL;
    for (size_t i = 0; st == GGL_OK && output && i < output->n; i++)
        put_value(r, &output->item[i]);
    return st;
}

/* --- the fields ------------------------------------------------------------------------------------- */

/* The string of a field; s NULL: it is absent. */
static ggl_status read_id(const ask *a, const char *name, ggl_str *id, ggl_error *err) {
    const json_value *v = llm_json_get(&a->doc->root, name);
    const json_value *given = v;
    if (v && v->kind == JSON_OBJECT)
        v = llm_json_get_kind(v, "id", JSON_STRING);
    else if (!v || v->kind == JSON_NULL)
        return GGL_OK;
    if (!v)
        return ggl_fail(err, GGL_USAGE,
                        "\"%s\" must be a string, or an object with the string \"id\"", name);
    if (v->kind != JSON_STRING)
        return field_wrong(err, name, given, "a string");
    *id = json_str(v);
    return GGL_OK;
}

static ggl_status no_store(const char *name, ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "\"%s\" is not supported: the server keeps no answers (--no-store); give the "
                    "whole conversation in \"input\"",
                    name);
}

/* Writes the conversation before the request. */
static ggl_status put_previous(reading *r, ggl_str id) {
    const bool is_one = id.n > 5 && memcmp(id.s, "resp_", 5) == 0;
    recalled before = {0};
    ggl_status st = is_one ? recall_begin(&before, r->a, id, r->err) : GGL_NOT_FOUND;
    if (st == GGL_OK && before.at[0]->answer.n == 0)
        st = ggl_fail(r->err, GGL_USAGE,
                      "the response \"%.*s\" belongs to the conversation \"%s\": continue it by "
                      "\"conversation\"",
                      (int)(id.n < 100 ? id.n : 100), id.s, before.at[0]->id);
    for (size_t i = 0; i < before.n && st == GGL_OK; i++)
        st = put_stored(r, before.at[i]);
    recall_end(&before);
    if (st != GGL_NOT_FOUND)
        return st;
    r->a->code = "previous_response_not_found";
    return ggl_fail(r->err, GGL_USAGE,
                    "Previous response with id '%.*s' not found: it had \"store\": false, or it, "
                    "or what it follows, is not kept any more (--store-time); give the whole "
                    "conversation in \"input\"",
                    (int)(id.n < 100 ? id.n : 100), id.s);
}

/* Refuses an answer for which a conversation has no room: it is kept whole or not at all, so a quarter of the most that it may have is left
 * for the answer. */
static ggl_status check_room(const reading *r, const stored *talk) {
    const ask_keeping *k = &r->a->keep;
    const size_t n = talk->sent.n + talk->fixed.n + k->sent.n,
                 most = store_most(r->a->store) / 4 * 3;
    if (!k->is_wanted || n <= most)
        return GGL_OK;
    return ggl_fail(r->err, GGL_LIMIT,
                    "the conversation has %zu bytes with this request, but answers are added to at "
                    "most %zu (--request-memory): begin another one, or set \"store\" to false",
                    n, most);
}

static ggl_status put_talk(reading *r, ggl_str id) {
    const bool is_one = id.n > 5 && memcmp(id.s, "conv_", 5) == 0;
    const stored *x = is_one ? store_find(r->a->store, id, r->a->owner) : NULL;
    if (!x)
        return ggl_fail(r->err, GGL_NOT_FOUND,
                        "Conversation with id '%.*s' not found: POST /v1/conversations makes one, "
                        "which is kept for --store-time after its last use",
                        (int)(id.n < 100 ? id.n : 100), id.s);
    ggl_status st = check_room(r, x);
    if (st == GGL_OK)
        st = put_stored(r, x);
    store_release(r->a->store, x);
    return st;
}

/* Writes the request without the list of its items, up to this. */
static void put_others(reading *r, const json_value *root) {
    llm_json_put_text(&r->out, "{");
    for (size_t i = 0; i < root->n; i++) {
        const ggl_str name = json_name(root, i);
        if (ggl_str_is(name, r->a->talk_name))
            continue;
        llm_json_put_string(&r->out, name);
        llm_json_put_text(&r->out, ":");
        llm_json_put_value(&r->out, &root->item[i]);
        llm_json_put_text(&r->out, ",");
    }
    llm_json_format(&r->out, "'%s':[", r->a->talk_name);
}

static ggl_status put_input(reading *r, const json_value *input) {
    if (!input || input->kind == JSON_NULL)
        return GGL_OK;
    if (input->kind == JSON_ARRAY)
        return put_list(r, input, false);
    if (input->kind != JSON_STRING)
        return ggl_fail(r->err, GGL_USAGE, "\"input\" must be a string or a list of items");
    llm_json_format(&r->out, "%s{'type':'message','role':'user','content':%.*s}",
                    r->n_items++ > 0 ? "," : "", LLM_JSON_STR(json_str(input)));
    return GGL_OK;
}

/* True if an item of the input names another one. */
static bool has_references(const json_value *input) {
    for (size_t i = 0; input && input->kind == JSON_ARRAY && i < input->n; i++)
        if (input->item[i].kind == JSON_OBJECT && is_reference(&input->item[i]))
            return true;
    return false;
}

static ggl_status expand(reading *r, ggl_str previous, ggl_str talk, const char **param) {
    const json_value *root = &r->a->doc->root, *input = llm_json_get(root, r->a->talk_name);
    ggl_status st = GGL_OK;
    put_others(r, root);
    *param = previous.s ? "previous_response_id" : "conversation";
    if (previous.s)
        st = put_previous(r, previous);
    else if (talk.s)
        st = put_talk(r, talk);
    if (st != GGL_OK)
        return st;
    r->a->n_recalled = r->n_items;
    *param = r->a->talk_name;
    st = put_input(r, input);
    llm_json_put_text(&r->out, "]}");
    return st;
}

/* Decides what is kept of the request. */
static ggl_status keep(ask *a, bool keeps, ggl_str previous, ggl_str talk, const char **param,
                       ggl_error *err) {
    const json_value *store = llm_json_get(&a->doc->root, "store"),
                     *input = llm_json_get(&a->doc->root, "input");
    ask_keeping *k = &a->keep;
    llm_json_out out = {0};
    *param = "store";
    if (store && store->kind != JSON_NULL && store->kind != JSON_BOOL)
        return ggl_fail(err, GGL_USAGE, "\"store\" must be true or false");
    k->is_wanted = keeps && a->store && !(store && store->kind == JSON_BOOL && !store->flag);
    if (!k->is_wanted)
        return GGL_OK;
    if (previous.n > 0)
        k->parent = ggl_arena_strndup(&a->arena, previous.s, previous.n);
    if (talk.n > 0)
        k->parent = k->conversation = ggl_arena_strndup(&a->arena, talk.s, talk.n);
    if ((previous.n > 0 || talk.n > 0) && !k->parent)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    if (input && input->kind == JSON_ARRAY)
        return recall_keep(a, input, &k->sent, err);
    if (input && input->kind == JSON_STRING)
        llm_json_format(&out, "[{'type':'message','role':'user','content':%.*s}]",
                        LLM_JSON_STR(json_str(input)));
    else
        llm_json_put_text(&out, "[]");
    return ask_keep(a, &out, &k->sent, err);
}

/* Puts what is named in the place of its names. */
static ggl_status replace(ask *a, ggl_str previous, ggl_str talk, const char **param,
                          ggl_error *err) {
    reading r = {.a = a, .err = err};
    ggl_status st = ggl_index_init(&r.sources, 8, sizeof *r.source, GGL_INDEX_STRINGS, err);
    if (st == GGL_OK)
        st = ggl_index_init(&r.ids, 8, sizeof *r.seen, GGL_INDEX_STRINGS, err);
    if (st == GGL_OK)
        st = expand(&r, previous, talk, param);
    end(&r);
    if (st == GGL_OK)
        return recall_replace(a, &r.out, err);
    ggl_free(r.out.s);
    return st;
}

ggl_status openai_recall(ask *a, bool keeps, const char **param, ggl_error *err) {
    ggl_str previous = {NULL, 0}, talk = {NULL, 0};
    const bool names_items = has_references(llm_json_get(&a->doc->root, "input"));
    *param = "previous_response_id";
    ggl_status st = read_id(a, *param, &previous, err);
    if (st == GGL_OK && previous.s && !a->store)
        st = no_store(*param, err);
    if (st == GGL_OK) {
        *param = "conversation";
        st = read_id(a, *param, &talk, err);
    }
    if (st == GGL_OK && talk.s && !a->store)
        st = no_store(*param, err);
    if (st == GGL_OK && previous.s && talk.s)
        st = ggl_fail(err, GGL_USAGE,
                      "\"conversation\" and \"previous_response_id\" cannot be used together");
    if (st == GGL_OK)
        st = keep(a, keeps, previous, talk, param, err);
    recall_limit(a);
    return st == GGL_OK && (previous.s || talk.s || names_items)
               ? replace(a, previous, talk, param, err)
               : st;
}

/* --- conversations ---------------------------------------------------------------------------------- */

ggl_status openai_check_items(ask *a, const char **param, ggl_error *err) {
    const ggl_str none = {NULL, 0};
    talk_writer t;
    ggl_status st = openai_begin(a, ASK_CHAT, err);
    a->talk_name = *param = "items";
    if (st == GGL_OK && has_references(llm_json_get(&a->doc->root, a->talk_name)))
        st = replace(a, none, none, param, err);
    *param = "items";
    if (st == GGL_OK)
        st = talk_start(&t, a, err);
    if (st != GGL_OK)
        return st;
    st = openai_add_input(a, &t, err);
    talk_free(&t);
    return st;
}

void openai_put_talk_items(const char *talk_id, const json_value *list, llm_json_out *out) {
    enum { LETTERS = 16 };
    const char *key = strchr(talk_id, '_');
    char letters[LETTERS + 1];
    llm_json_put_text(out, "[");
    for (uint32_t i = 0; i < list->n; i++) {
        const json_value *item = &list->item[i];
        llm_json_put_text(out, i > 0 ? "," : "");
        if (item->kind != JSON_OBJECT || llm_json_get_kind(item, "id", JSON_STRING)) {
            llm_json_put_value(out, item);
            continue;
        }
        random_text(letters, LETTERS);
        llm_json_format(out, "{'id':'msg%s_x%s'", key ? key : "_", letters);
        for (uint32_t k = 0; k < item->n; k++)
            if (!ggl_str_is(json_name(item, k), "id")) {
                llm_json_format(out, ",%.*s:", LLM_JSON_STR(json_name(item, k)));
                llm_json_put_value(out, &item->item[k]);
            }
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "]");
}

/* --- lists of items --------------------------------------------------------------------------------- */

/* The content of a message as parts. */
static void put_parts(const json_value *item, llm_json_out *out) {
    const json_value *content = llm_json_get(item, "content");
    const bool answers = llm_json_has(item, "role", "assistant");
    if (!content || content->kind != JSON_STRING) {
        content ? llm_json_put_value(out, content) : llm_json_put_text(out, "[]");
        return;
    }
    llm_json_format(out, "[{'type':'%s','text':%.*s%s}]", answers ? "output_text" : "input_text",
                    LLM_JSON_STR(json_str(content)), answers ? ",\"annotations\":[]" : "");
}

void openai_put_listed(const stored *of, const json_value *item, size_t k, llm_json_out *out) {
    const json_value *id = llm_json_get_kind(item, "id", JSON_STRING),
                     *type = llm_json_get_kind(item, "type", JSON_STRING);
    const bool is_message = type ? llm_json_is(type, "message") : !is_reference(item);
    char own[LISTED_ID];
    write_listed_id(of, k, own, sizeof own);
    llm_json_format(out, "{'id':%.*s",
                    LLM_JSON_STR(id ? json_str(id) : ((ggl_str){own, strlen(own)})));
    if (is_message)
        llm_json_put_text(out, ",\"type\":\"message\"");
    for (uint32_t i = 0; i < item->n; i++) {
        const ggl_str name = json_name(item, i);
        if (ggl_str_is(name, "id") || ggl_str_is(name, "status") ||
            (is_message && (ggl_str_is(name, "type") || ggl_str_is(name, "content"))))
            continue;
        llm_json_format(out, ",%.*s:", LLM_JSON_STR(name));
        llm_json_put_value(out, &item->item[i]);
    }
    if (is_message) {
        llm_json_put_text(out, ",\"content\":");
        put_parts(item, out);
    }
    const json_value *status = llm_json_get_kind(item, "status", JSON_STRING);
    if (!is_reference(item))
        llm_json_format(out, ",'status':%.*s",
                        LLM_JSON_STR(status ? json_str(status) : ((ggl_str){"completed", 9})));
    llm_json_put_text(out, "}");
}
