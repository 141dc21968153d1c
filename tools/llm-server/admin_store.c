/* The answers and conversations that are kept (store.h), for OpenAI's clients: /v1/responses/ID and /v1/conversations. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin.h"
#include "api_recall.h"
#include "api_shape.h"
#include "ggl/internal/show.h"

enum { ID_LETTERS = 29, MOST_LISTED = 100, LISTED = 20 };

/* What a path says behind the name of its kind: /v1/responses/ID/input_items. */
typedef struct place {
    char id[STORE_ID + 1];
    const char *rest; /* "": the thing itself */
} place;

/* prefix: of ids. An id of another kind becomes "". */
static place place_of(const http_request *q, const char *kind, const char *prefix) {
    place p = {.rest = ""};
    const char *at = strstr(q->path, kind);
    if (!at)
        return p;
    at += strlen(kind);
    const size_t n = strcspn(at, "/");
    if (n <= STORE_ID && strncmp(at, prefix, strlen(prefix)) == 0)
        snprintf(p.id, sizeof p.id, "%.*s", (int)n, at);
    p.rest = at[n] ? at + n + 1 : "";
    return p;
}

static void fail(models *t, ggl_status st, ggl_error *err, const char *param, const http_request *q,
                 http_reply *r) {
    models_count(t, NULL, COUNT_ERRORS);
    answer_failed(request_errors(q), st, err, param, r);
}

/* Answers that a response or a conversation has no such part. parts: those that it has. */
static void no_part(models *t, const char *of, const char *parts, const http_request *q,
                    http_reply *r) {
    ggl_error err = {0};
    (void)ggl_fail(&err, GGL_NOT_FOUND, "there is no such part of a %s: %.120s; there %s", of,
                   q->path, parts);
    fail(t, GGL_NOT_FOUND, &err, NULL, q, r);
}

static const char response_parts[] = "is ID/input_items (GET), and ID/cancel (POST)",
                  talk_parts[] = "is ID/items, and ID/items/ITEM (GET, DELETE)",
                  response[] = "Response", conversation[] = "Conversation", item_kind[] = "Item";

/* Answers that there is no such thing. what: one of these names. */
static void not_found(models *t, const char *what, const http_request *q, http_reply *r) {
    ggl_error err = {0};
    if (!models_store(t))
        (void)ggl_fail(&err, GGL_NOT_FOUND, "the server keeps nothing (--no-store)");
    else if (what == item_kind)
        (void)ggl_fail(&err, GGL_NOT_FOUND, "Item not found: %.120s", q->path);
    else
        (void)ggl_fail(&err, GGL_NOT_FOUND,
                       "%s not found: %.120s; it is kept for --store-time after its last use%s",
                       what, q->path,
                       what == response ? ", if the request did not say \"store\": false" : "");
    fail(t, GGL_NOT_FOUND, &err, NULL, q, r);
}

/* Finds what a path names, and holds it. NULL: it was answered that it is not there. */
static const stored *find(models *t, const place *p, const char *what, const http_request *q,
                          http_reply *r) {
    const ggl_str id = {p->id, strlen(p->id)};
    answer_store *s = models_store(t);
    const stored *x = s && id.n > 0 ? store_find(s, id, models_client(t, q)) : NULL;
    if (!x)
        not_found(t, what, q, r);
    return x;
}

static void send_deleted(const char *id, const char *object, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    llm_json_format(&out, "{'id':'%s','object':'%s','deleted':true}", id, object);
    admin_send(&out, q, r);
}

/* --- lists ------------------------------------------------------------------------------------------ */

/* Which part of a list is wanted. */
typedef struct page_of {
    size_t n;
    bool ascends;
    const char *after; /* an id; NULL: from the beginning */
} page_of;

static ggl_status read_page(page_of *p, const http_request *q, const char **param, ggl_error *err) {
    const char *limit = q->parameter(q, "limit"), *order = q->parameter(q, "order");
    const size_t n = limit ? strspn(limit, "0123456789") : 0;
    *p = (page_of){.n = LISTED, .after = q->parameter(q, "after")};
    *param = "limit";
    if (limit && (n == 0 || n > 3 || limit[n]))
        return ggl_fail(err, GGL_USAGE, "?limit= must be a number from 1 to %d, not \"%.30s\"",
                        (int)MOST_LISTED, limit);
    if (limit)
        p->n = (size_t)atoi(limit);
    if (p->n < 1 || p->n > MOST_LISTED)
        return ggl_fail(err, GGL_USAGE, "?limit= is %zu, but must be from 1 to %d", p->n,
                        (int)MOST_LISTED);
    *param = "order";
    p->ascends = order && strcmp(order, "asc") == 0;
    if (order && !p->ascends && strcmp(order, "desc") != 0)
        return ggl_fail(err, GGL_USAGE, "?order= must be asc or desc, not \"%.30s\"", order);
    return GGL_OK;
}

/* Writes the page, in which each item has an id. */
static void put_page(const stored *x, const json_value *list, const page_of *p, llm_json_out *out) {
    llm_json_out item = {0};
    char first[2 * STORE_ID] = "", last[2 * STORE_ID] = "";
    size_t n = 0;
    bool is_after = !p->after, has_more = false;
    llm_json_put_text(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < list->n && !has_more; i++) {
        const size_t k = p->ascends ? i : list->n - 1 - i;
        llm_json *doc = NULL;
        item.n = 0;
        openai_put_listed(x, &list->item[k], k, &item);
        if (item.failed || llm_json_parse(&doc, item.s, item.n, "item", NULL) != GGL_OK)
            break;
        const json_value *id = llm_json_get(&doc->root, "id");
        has_more = is_after && n == p->n;
        if (is_after && !has_more) {
            llm_json_put_text(out, n > 0 ? "," : "");
            llm_json_put(out, item.s, item.n);
            snprintf(last, sizeof last, "%.*s", (int)(id->n < sizeof last ? id->n : 0), id->s);
            if (n++ == 0)
                memcpy(first, last, sizeof first);
        }
        is_after = is_after || ggl_str_is(json_str(id), p->after);
        llm_json_free(doc);
    }
    out->failed = out->failed || item.failed;
    ggl_free(item.s);
    llm_json_format(out, "],'first_id':%.*s,'last_id':%.*s,'has_more':%s}", LLM_JSON_TEXT(first),
                    LLM_JSON_TEXT(last), has_more ? "true" : "false");
}

static void send_page(models *t, const stored *x, const http_request *q, http_reply *r) {
    page_of p;
    ggl_error err = {0};
    llm_json *doc = NULL;
    llm_json_out out = {0};
    const char *param = NULL;
    ggl_status st = read_page(&p, q, &param, &err);
    if (st == GGL_OK)
        st = recall_parse(&doc, x->sent, &err);
    if (st == GGL_OK)
        put_page(x, &doc->root, &p, &out);
    llm_json_free(doc);
    if (st == GGL_OK)
        admin_send(&out, q, r);
    else
        fail(t, st, &err, param, q, r);
}

/* --- responses -------------------------------------------------------------------------------------- */

void admin_response(models *t, const http_request *q, http_reply *r) {
    const place p = place_of(q, "/responses/", "resp_");
    const char *stream = q->parameter(q, "stream");
    const bool is_list = strcmp(p.rest, "input_items") == 0;
    ggl_error err = {0};
    if (*p.rest && !is_list) {
        no_part(t, "response", response_parts, q, r);
        return;
    }
    if (stream && strcmp(stream, "true") == 0) {
        (void)ggl_fail(&err, GGL_UNSUPPORTED,
                       "?stream=true is not supported: a response that is kept has ended; a "
                       "running stream is read again by X-Conversation-Id and GET /v1/stream");
        fail(t, GGL_UNSUPPORTED, &err, "stream", q, r);
        return;
    }
    const stored *x = find(t, &p, response, q, r);
    if (!x)
        return;
    if (is_list) {
        send_page(t, x, q, r);
    } else {
        llm_json_out out = {0};
        llm_json_put(&out, x->answer.s, x->answer.n);
        admin_send(&out, q, r);
    }
    store_release(models_store(t), x);
}

/* No response runs without its client. */
void admin_response_cancel(models *t, const http_request *q, http_reply *r) {
    const place p = place_of(q, "/responses/", "resp_");
    ggl_error err = {0};
    const stored *x = find(t, &p, response, q, r);
    if (!x)
        return;
    store_release(models_store(t), x);
    (void)ggl_fail(&err, GGL_UNSUPPORTED,
                   "Cannot cancel a synchronous response: nothing runs in the background here "
                   "(\"background\" is not supported); an answer ends when its client closes the "
                   "connection");
    fail(t, GGL_UNSUPPORTED, &err, NULL, q, r);
}

void admin_response_delete(models *t, const http_request *q, http_reply *r) {
    const place p = place_of(q, "/responses/", "resp_");
    const ggl_str id = {p.id, strlen(p.id)};
    answer_store *s = models_store(t);
    if (*p.rest || !s || id.n == 0 || !store_remove(s, id, models_client(t, q)))
        not_found(t, response, q, r);
    else
        send_deleted(p.id, "response", q, r);
}

/* --- conversations ---------------------------------------------------------------------------------- */

static void send_talk(const stored *x, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    llm_json_format(&out, "{'id':'%s','object':'conversation','created_at':%" PRId64 ",'metadata':",
                    x->id, x->created);
    llm_json_put(&out, x->fixed.s, x->fixed.n);
    llm_json_put_text(&out, "}");
    admin_send(&out, q, r);
}

static ggl_status no_room(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM,
                    "no memory to keep the conversation (--request-memory); try again later");
}

/* A conversation that is longer than an entry of the store may be cannot be kept at any time. */
static ggl_status check_room(const answer_store *s, const stored *x, size_t n_more,
                             ggl_error *err) {
    const size_t n = x->sent.n + x->fixed.n + n_more, most = store_most(s);
    return n <= most ? GGL_OK
                     : ggl_fail(err, GGL_LIMIT,
                                "the conversation would have %zu bytes, but may have at most %zu "
                                "(--request-memory): begin another one",
                                n, most);
}

/* The body of a request about a conversation. */
typedef struct talk_body {
    ask *a; /* which reads the items */
    bool has_items;
    llm_json_out items, metadata; /* as they are kept */
    const char *param;            /* the field that is wrong; NULL: none */
} talk_body;

static void free_body(talk_body *b) {
    ask_free(b->a);
    ggl_free(b->items.s);
    ggl_free(b->metadata.s);
}

/* Makes an ask that accepts what the only model does, or, where there are several or it is not loaded, any of them may. */
static ask *ask_for(models *t, const http_request *q) {
    const server_facts any = {.strict_fields = models_options(t)->strict_fields};
    server *s = models_is_single(t) ? model_peek(models_get_list(t)->at[0]) : NULL;
    ask *a = ask_new(s ? server_get_facts(s) : &any);
    if (a && !s)
        a->sees = a->listens = a->fetches = true;
    if (s)
        model_unpeek(s);
    if (a) {
        a->store = models_store(t);
        a->owner = models_client(t, q);
        a->held = (memory_hold){.of = models_memory(t), .use = MEMORY_REQUESTS};
    }
    return a;
}

static ggl_status check_metadata(const json_value *v, ggl_error *err) {
    for (size_t i = 0; i < v->n; i++) {
        const ggl_str name = json_name(v, i);
        if (v->item[i].kind != JSON_STRING)
            return ggl_fail(err, GGL_USAGE,
                            "\"metadata\": the value of \"%.*s\" must be a string, not %s",
                            (int)ggl_utf8_cut(name.s, name.n, 60), name.s,
                            llm_json_kind_text((json_kind)v->item[i].kind));
    }
    return GGL_OK;
}

/* Checks that requests can use the items, by what reads those of their input. */
static ggl_status check_items(talk_body *b, const json_value *list, const char *id,
                              ggl_error *err) {
    b->has_items = true;
    b->param = "items";
    for (uint32_t i = 0; i < list->n; i++)
        if (list->item[i].kind != JSON_OBJECT)
            return ggl_fail(err, GGL_USAGE, "items[%u] must be an object, not %s", (unsigned)i,
                            llm_json_kind_text((json_kind)list->item[i].kind));
    openai_put_talk_items(id, list, &b->items);
    return list->n > 0 ? openai_check_items(b->a, &b->param, err) : GGL_OK;
}

/* Reads {"items": [..], "metadata": {..}}, of which one may be needed; null is as absent. id: of the conversation. The caller calls free_body. */
static ggl_status read_talk(models *t, talk_body *b, const http_request *q, const char *id,
                            const char *needed, ggl_error *err) {
    static const shape_row rows[] = {{"items", SHAPE_LIST, 0, NULL},
                                     {"metadata", SHAPE_OBJECT, sizeof(json_value *), NULL},
                                     {0}};
    const json_value *v[2] = {NULL, NULL};
    *b = (talk_body){.a = ask_for(t, q), .param = needed};
    if (!b->a)
        return no_room(err);
    if (q->body.n == 0 && !needed)
        return GGL_OK;
    ggl_status st =
        llm_json_parse(&b->a->doc, q->body.s ? q->body.s : "", q->body.n, "request", err);
    const json_value *root = st == GGL_OK ? &b->a->doc->root : NULL;
    if (st == GGL_OK)
        st = read_shape(v, sizeof v, &b->a->ignored, root, rows, err);
    if (st == GGL_OK && needed && !llm_json_get(root, needed))
        st = ggl_fail(err, GGL_USAGE, "\"%s\" is missing", needed);
    if (st == GGL_OK && v[1]) {
        llm_json_put_value(&b->metadata, v[1]);
        st = check_metadata(v[1], err);
        b->param = st == GGL_OK ? b->param : "metadata";
    }
    if (st == GGL_OK && v[0]) /* the last, because it may free the values */
        st = check_items(b, v[0], id, err);
    if (st == GGL_OK && (b->items.failed || b->metadata.failed))
        st = no_room(err);
    return st;
}

static ggl_str text_or(const llm_json_out *out, const char *text) {
    return out->n > 0 ? (ggl_str){out->s, out->n} : (ggl_str){text, strlen(text)};
}

static ggl_status make_talk(models *t, const http_request *q, stored *x, talk_body *b,
                            ggl_error *err) {
    *x = (stored){.owner = models_client(t, q), .created = (int64_t)time(NULL)};
    memcpy(x->id, "conv_", 5);
    random_text(x->id + 5, ID_LETTERS);
    ggl_status st = read_talk(t, b, q, x->id, NULL, err);
    x->sent = text_or(&b->items, "[]");
    x->fixed = text_or(&b->metadata, "{}");
    if (st == GGL_OK)
        st = check_room(models_store(t), x, 0, err);
    if (st == GGL_OK && !store_put(models_store(t), x))
        st = no_room(err);
    return st;
}

void admin_talk_create(models *t, const http_request *q, http_reply *r) {
    stored x;
    ggl_error err = {0};
    if (!models_store(t)) {
        not_found(t, conversation, q, r);
        return;
    }
    talk_body b;
    const ggl_status st = make_talk(t, q, &x, &b, &err);
    if (b.a)
        models_say_ignored(t, &b.a->ignored, q, r);
    if (st != GGL_OK)
        fail(t, st, &err, b.param, q, r);
    free_body(&b);
    if (st != GGL_OK)
        return;
    const stored *kept = store_find(models_store(t), (ggl_str){x.id, strlen(x.id)}, x.owner);
    if (kept)
        send_talk(kept, q, r);
    else
        not_found(t, conversation, q, r);
    store_release(models_store(t), kept);
}

/* The id of an item that a path names, /v1/conversations/ID/items/ITEM; s NULL: it names none. */
static ggl_str item_of(const place *p) {
    static const char items[] = "items/";
    const size_t n = sizeof items - 1;
    const bool names = strncmp(p->rest, items, n) == 0 && p->rest[n];
    return names ? (ggl_str){p->rest + n, strlen(p->rest + n)} : (ggl_str){NULL, 0};
}

/* Writes an item, or, without `one`, all but that one, as a list. False: it is not there. */
static bool put_item_of(const stored *x, ggl_str id, bool one, llm_json_out *out) {
    llm_json *doc = NULL;
    bool found = false;
    size_t n = 0;
    if (recall_parse(&doc, x->sent, NULL) != GGL_OK)
        return false;
    llm_json_put_text(out, one ? "" : "[");
    for (uint32_t i = 0; i < doc->root.n; i++) {
        const json_value *item = &doc->root.item[i],
                         *own = llm_json_get_kind(item, "id", JSON_STRING);
        const bool is = own && ggl_str_equal(json_str(own), id);
        found = found || is;
        if (is && one) {
            openai_put_listed(x, item, i, out);
            break;
        }
        if (is || one)
            continue;
        llm_json_put_text(out, n++ > 0 ? "," : "");
        llm_json_put_value(out, item);
    }
    llm_json_put_text(out, one ? "" : "]");
    llm_json_free(doc);
    return found;
}

static void send_item(models *t, const stored *x, ggl_str id, const http_request *q,
                      http_reply *r) {
    llm_json_out out = {0};
    if (put_item_of(x, id, true, &out)) {
        admin_send(&out, q, r);
        return;
    }
    ggl_free(out.s);
    not_found(t, item_kind, q, r);
}

void admin_talk(models *t, const http_request *q, http_reply *r) {
    const place p = place_of(q, "/conversations/", "conv_");
    const ggl_str item = item_of(&p);
    if (*p.rest && strcmp(p.rest, "items") != 0 && !item.s) {
        no_part(t, "conversation", talk_parts, q, r);
        return;
    }
    const stored *x = find(t, &p, conversation, q, r);
    if (!x)
        return;
    if (item.s)
        send_item(t, x, item, q, r);
    else if (*p.rest)
        send_page(t, x, q, r);
    else
        send_talk(x, q, r);
    store_release(models_store(t), x);
}

/* Takes an item out of a conversation, which is the answer. */
static void delete_item(models *t, const place *p, ggl_str item, const http_request *q,
                        http_reply *r) {
    enum { TRIES = 8 }; /* others may change it meanwhile */
    bool found = true, is_done = false;
    for (int i = 0; i < TRIES && found && !is_done; i++) {
        const stored *x = find(t, p, conversation, q, r);
        llm_json_out rest = {0};
        if (!x)
            return;
        found = put_item_of(x, item, false, &rest);
        stored shorter = *x;
        shorter.sent = (ggl_str){rest.s, rest.n};
        is_done = found && !rest.failed && store_replace(models_store(t), x, &shorter);
        if (is_done)
            send_talk(x, q, r);
        store_release(models_store(t), x);
        ggl_free(rest.s);
    }
    ggl_error err = {0};
    if (!found)
        not_found(t, item_kind, q, r);
    else if (!is_done)
        fail(t, no_room(&err), &err, NULL, q, r);
}

/* Adds items to a conversation, and sends them. */
static ggl_status add_items(models *t, const stored *x, const llm_json_out *items,
                            const http_request *q, http_reply *r, ggl_error *err) {
    const ggl_str id = {x->id, strlen(x->id)}, none = {"[]", 2}, text = {items->s, items->n};
    llm_json *doc = NULL;
    llm_json_out out = {0};
    ggl_status st = check_room(models_store(t), x, text.n, err);
    if (st == GGL_OK)
        st = recall_parse(&doc, text, err);
    if (st == GGL_OK && !store_append(models_store(t), id, x->owner, text, none))
        st = no_room(err);
    if (st == GGL_OK) {
        put_page(x, &doc->root, &(page_of){.n = doc->root.n, .ascends = true}, &out);
        admin_send(&out, q, r);
    }
    llm_json_free(doc);
    return st;
}

/* Gives a conversation other metadata, and sends it. */
static ggl_status set_metadata(models *t, const stored *x, const llm_json_out *metadata,
                               const http_request *q, http_reply *r, ggl_error *err) {
    const ggl_str id = {x->id, strlen(x->id)}, text = text_or(metadata, "{}");
    if (!store_set_fixed(models_store(t), id, x->owner, text))
        return no_room(err);
    stored changed = *x;
    changed.fixed = text;
    send_talk(&changed, q, r);
    return GGL_OK;
}

/* POST /v1/conversations/ID/items adds items, POST /v1/conversations/ID changes the metadata. */
void admin_talk_change(models *t, const http_request *q, http_reply *r) {
    const place p = place_of(q, "/conversations/", "conv_");
    const bool adds = strcmp(p.rest, "items") == 0;
    const char *needed = adds ? "items" : "metadata";
    talk_body b;
    ggl_error err = {0};
    if (*p.rest && !adds) {
        no_part(t, "conversation", talk_parts, q, r);
        return;
    }
    const stored *x = find(t, &p, conversation, q, r);
    if (!x)
        return;
    ggl_status st = read_talk(t, &b, q, x->id, needed, &err);
    if (st == GGL_OK && adds && b.items.n <= 2)
        st = ggl_fail(&err, GGL_USAGE, "\"items\" must be a list of at least one item");
    if (st == GGL_OK && !adds && b.has_items)
        st = ggl_fail(
            &err, GGL_USAGE,
            "only \"metadata\" can be changed: POST /v1/conversations/ID/items adds items");
    if (b.a)
        models_say_ignored(t, &b.a->ignored, q, r);
    if (st == GGL_OK)
        st = adds ? add_items(t, x, &b.items, q, r, &err)
                  : set_metadata(t, x, &b.metadata, q, r, &err);
    if (st != GGL_OK)
        fail(t, st, &err, b.param, q, r);
    store_release(models_store(t), x);
    free_body(&b);
}

void admin_talk_delete(models *t, const http_request *q, http_reply *r) {
    const place p = place_of(q, "/conversations/", "conv_");
    const ggl_str id = {p.id, strlen(p.id)}, item = item_of(&p);
    answer_store *s = models_store(t);
    if (item.s) {
        delete_item(t, &p, item, q, r);
        return;
    }
    if (*p.rest || !s || id.n == 0 || !store_remove(s, id, models_client(t, q)))
        not_found(t, conversation, q, r);
    else
        send_deleted(p.id, "conversation.deleted", q, r);
}
