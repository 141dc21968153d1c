#include "serve_stream.h"

#include <stdio.h>
#include <string.h>

/* the library's own parser, which is made for files and requests of strangers */
#include "../../models/common/json.h"
#include "ggl/alloc.h"

ggl_status serve_bytes_add(serve_bytes *b, const char *s, size_t n, size_t most, ggl_error *err) {
    if (n > most - b->n)
        return ggl_fail(err, GGL_LIMIT, "the server sends more than %zu bytes at once", most);
    if (!ggl_grow(&b->s, &b->cap, b->n + n, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (n > 0)
        memcpy(b->s + b->n, s, n);
    b->n += n;
    return GGL_OK;
}

void serve_bytes_fini(serve_bytes *b) {
    ggl_free(b->s);
    *b = (serve_bytes){.s = NULL};
}

/* --- errors ----------------------------------------------------------------------------------- */

/* Returns the message of an error as servers send it: {"error": {"message": ".."}}, {"error":
 * ".."}, or {"message": ".."}; NULL: v has none. */
static const json_value *error_message(const json_value *v) {
    const json_value *e = llm_json_get(v, "error");
    if (e && e->kind == JSON_STRING)
        return e;
    return llm_json_get_kind(e && e->kind == JSON_OBJECT ? e : v, "message", JSON_STRING);
}

const char *serve_error_text(const char *body, size_t n, char *buf, size_t size) {
    llm_json *doc = NULL;
    const json_value *message = NULL;
    if (llm_json_parse(&doc, body, n, "answer", NULL) == GGL_OK)
        message = error_message(&doc->root);
    size_t line = 0;
    while (line < n && body[line] != '\n' && body[line] != '\r' && body[line])
        line++;
    ggl_str said = message ? json_str(message) : (ggl_str){body, line};
    if (said.n >= size)
        said.n = size - 1;
    if (said.n > 0)
        memcpy(buf, said.s, said.n);
    buf[said.n] = '\0';
    llm_json_free(doc);
    return buf;
}

/* --- events ----------------------------------------------------------------------------------- */

static int64_t get_count(const json_value *v, const char *name) {
    const json_value *x = llm_json_get_kind(v, name, JSON_NUMBER);
    return x && x->whole && x->number >= 0 ? (int64_t)x->number : -1;
}

static void read_usage(serve_answer *a, const json_value *usage) {
    if (!usage || usage->kind != JSON_OBJECT) /* null in all events but the last */
        return;
    const json_value *details = llm_json_get(usage, "prompt_tokens_details");
    a->prompt_tokens = get_count(usage, "prompt_tokens");
    a->completion_tokens = get_count(usage, "completion_tokens");
    a->cached_tokens = get_count(details, "cached_tokens");
}

/* Returns the string of that name, also an empty one; NULL if none. */
static const json_value *get_text(const json_value *v, const char *name) {
    return llm_json_get_kind(v, name, JSON_STRING);
}

/* Takes the text of a choice: `text` of /completions, `delta` of /chat/completions. */
static ggl_status read_choice(serve_answer *a, const json_value *choice, ggl_error *err) {
    const json_value *delta = llm_json_get(choice, "delta"), *reason;
    const json_value *text = delta ? get_text(delta, "content") : get_text(choice, "text");
    const json_value *thought = get_text(delta, "reasoning_content");
    const json_value *calls = llm_json_get_kind(delta, "tool_calls", JSON_ARRAY);
    reason = get_text(choice, "finish_reason");
    bool words = (text && text->n > 0) || (thought && thought->n > 0) || (calls && calls->n > 0);
    /* an empty text is a token, too, unless the event only says who speaks or why it ends */
    bool empty = (text || thought) && !get_text(delta, "role") && !reason;
    if (words || empty) {
        a->n_pieces++;
        if (a->arrived)
            a->arrived(a->ctx);
    }
    a->finished = a->finished || reason;
    return text ? serve_bytes_add(&a->text, text->s, text->n, SERVE_MAX_ANSWER, err) : GGL_OK;
}

static ggl_status read_object(serve_answer *a, const json_value *v, ggl_error *err) {
    const json_value *choices = llm_json_get_kind(v, "choices", JSON_ARRAY);
    if (v->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_FORMAT, "an event of the answer is %s, not an object",
                        llm_json_kind_text((json_kind)v->kind));
    if (!choices) {
        const json_value *said = error_message(v);
        char text[256];
        if (said)
            snprintf(text, sizeof text, "%.*s", (int)(said->n < 255 ? said->n : 255), said->s);
        return said ? ggl_fail(err, GGL_IO, "the server ends the answer: %s", text)
                    : ggl_fail(err, GGL_FORMAT, "an event of the answer has no `choices`");
    }
    read_usage(a, llm_json_get(v, "usage"));
    return choices->n > 0 ? read_choice(a, &choices->item[0], err) : GGL_OK;
}

static ggl_status read_event(serve_answer *a, ggl_error *err) {
    llm_json *doc;
    const char *data = a->data.s;
    size_t n = a->data.n;
    a->data.n = 0;
    if (a->done)
        return ggl_fail(err, GGL_FORMAT, "the answer goes on after [DONE]");
    if (ggl_str_is((ggl_str){data, n}, "[DONE]")) {
        a->done = a->finished = true;
        return GGL_OK;
    }
    ggl_status st = llm_json_parse(&doc, data, n, "an event of the answer", err);
    if (st != GGL_OK)
        return st;
    st = read_object(a, &doc->root, err);
    llm_json_free(doc);
    return st;
}

/* --- lines ------------------------------------------------------------------------------------ */

static ggl_status read_line(serve_answer *a, ggl_error *err) {
    static const char field[] = "data:";
    const size_t n_field = sizeof field - 1;
    const char *s = a->line.s;
    size_t n = a->line.n;
    a->line.n = 0;
    if (n == 0)
        return a->data.n > 0 ? read_event(a, err) : GGL_OK;
    if (n < n_field || memcmp(s, field, n_field) != 0)
        return GGL_OK; /* a comment, or a field that does not matter here */
    size_t from = n_field + (n > n_field && s[n_field] == ' ');
    ggl_status st = GGL_OK;
    if (a->data.n > 0) /* an event of several lines */
        st = serve_bytes_add(&a->data, "\n", 1, SERVE_MAX_EVENT, err);
    return st == GGL_OK ? serve_bytes_add(&a->data, s + from, n - from, SERVE_MAX_EVENT, err) : st;
}

ggl_status serve_answer_feed(serve_answer *a, const char *bytes, size_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (!a->begun)
        a->prompt_tokens = a->cached_tokens = a->completion_tokens = -1;
    a->begun = true;
    for (size_t i = 0; i < n && st == GGL_OK;) {
        size_t end = i;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r')
            end++;
        st = serve_bytes_add(&a->line, bytes + i, end - i, SERVE_MAX_EVENT, err);
        bool second = a->after_cr && end == i && bytes[end] == '\n';
        if (end > i)
            a->after_cr = false;
        if (end < n) { /* "\r\n" ends one line, also if it is split between two calls */
            if (st == GGL_OK && !second)
                st = read_line(a, err);
            a->after_cr = bytes[end] == '\r';
        }
        i = end + 1;
    }
    return st;
}

ggl_status serve_answer_end(const serve_answer *a, ggl_error *err) {
    if (a->finished)
        return GGL_OK;
    if (a->n_pieces > 0)
        return ggl_fail(err, GGL_FORMAT,
                        "the answer breaks off after %lld pieces, without a finish_reason",
                        (long long)a->n_pieces);
    return ggl_fail(err, GGL_FORMAT, "the answer is not a stream of events, or an empty one");
}

void serve_answer_fini(serve_answer *a) {
    serve_bytes_fini(&a->text);
    serve_bytes_fini(&a->line);
    serve_bytes_fini(&a->data);
    *a = (serve_answer){.arrived = a->arrived, .ctx = a->ctx};
}
