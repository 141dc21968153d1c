#include "api_recall.h"

#include <string.h>

#include "fields_sampling.h"

void recall_end(recalled *r) {
    for (size_t i = 0; i < r->n; i++)
        store_release(r->store, r->at[i]);
    ggl_free(r->at);
    *r = (recalled){0};
}

ggl_status recall_begin(recalled *r, const ask *a, ggl_str id, ggl_error *err) {
    ggl_status st = GGL_OK;
    *r = (recalled){.store = a->store};
    while (id.n > 0 && st == GGL_OK) {
        const stored *x = store_find(a->store, id, a->owner);
        if (!x)
            st = ggl_fail(err, GGL_NOT_FOUND, "an answer of the conversation is gone");
        else if (!ggl_grow(&r->at, &r->cap, r->n + 1, sizeof *r->at))
            st = ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
        else
            r->at[r->n++] = x;
        if (st != GGL_OK)
            store_release(a->store, x);
        else
            id = (ggl_str){x->parent, strlen(x->parent)};
    }
    for (size_t i = 0; i < r->n / 2; i++) {
        const stored *x = r->at[i];
        r->at[i] = r->at[r->n - 1 - i];
        r->at[r->n - 1 - i] = x;
    }
    if (st != GGL_OK)
        recall_end(r);
    return st;
}

ggl_status recall_parse(llm_json **doc, ggl_str text, ggl_error *err) {
    return llm_json_parse(doc, text.s, text.n, "answer", err);
}

ggl_status recall_keep(ask *a, const json_value *v, ggl_str *text, ggl_error *err) {
    llm_json_out out = {0};
    llm_json_put_value(&out, v);
    return ask_keep(a, &out, text, err);
}

void recall_limit(ask *a) {
    ask_keeping *k = &a->keep;
    if (k->is_wanted && !k->conversation && k->sent.n + k->fixed.n > store_most(a->store))
        *k = (ask_keeping){0};
}

/* Holds n bytes for a conversation of n_text. */
static ggl_status hold(ask *a, size_t n, size_t n_text, ggl_error *err) {
    const bool fits = n <= memory_most(a->held.of, MEMORY_REQUESTS);
    if (memory_set(&a->held, n))
        return GGL_OK;
    return ggl_fail(err, fits ? GGL_NOMEM : GGL_LIMIT,
                    "the whole conversation of %zu bytes may take %zu MiB, and requests hold "
                    "%zu of the %zu MiB that they may have together (--request-memory)",
                    n_text, n >> 20, memory_held(a->held.of, MEMORY_REQUESTS) >> 20,
                    memory_most(a->held.of, MEMORY_REQUESTS) >> 20);
}

ggl_status recall_parse_for(ask *a, llm_json **doc, ggl_str text, ggl_error *err) {
    a->n_named += text.n;
    const ggl_status st = hold(a, a->held.n + ask_doc_bytes(text) + text.n, a->n_named, err);
    return st == GGL_OK ? recall_parse(doc, text, err) : st;
}

/* Holds the memory for a body in place of the request's own. */
static ggl_status hold_body(ask *a, ggl_str body, ggl_error *err) {
    const size_t kept = ask_doc_bytes(body) + a->keep.sent.n + a->keep.fixed.n,
                 n_digits = ask_digit_bytes(body);
    const ggl_status st = hold(a, kept + ask_reading_bytes(body.n, n_digits), body.n, err);
    if (st != GGL_OK)
        return st;
    a->n_held_doc = kept;
    a->n_digits = n_digits;
    a->n_body = body.n;
    return GGL_OK;
}

ggl_status recall_replace(ask *a, llm_json_out *body, ggl_error *err) {
    llm_json *doc = NULL;
    ggl_status st =
        body->failed ? ggl_fail(err, GGL_NOMEM, "out of memory for a conversation") : GGL_OK;
    if (st == GGL_OK)
        st = hold_body(a, (ggl_str){body->s, body->n}, err);
    if (st == GGL_OK)
        st = llm_json_parse(&doc, body->s, body->n, "request", err);
    if (st != GGL_OK) {
        ggl_free(body->s);
        return st;
    }
    llm_json_free(a->doc);
    ggl_free(a->body);
    a->doc = doc;
    a->body = body->s;
    return GGL_OK;
}
