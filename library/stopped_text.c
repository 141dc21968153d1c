#include "stopped_text.h"

#include <string.h>

#include "ggl/internal/alloc.h"

/* The length of the longest beginning of s[0 .. n) that does not end within a character of UTF-8. */
static size_t whole_characters(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char b = (unsigned char)s[n - back];
        if ((b & 0xc0) == 0x80)
            continue;
        const size_t need = b >= 0xf0 && b < 0xf8 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 1;
        return b < 0xf8 && need > back ? n - back : n;
    }
    return n;
}

static ggl_status add(stopped_text *t, const char *text, size_t n, ggl_error *err) {
    if (!ggl_grow(&t->text, &t->cap_text, t->n_text + n, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the text");
    memcpy(t->text + t->n_text, text, n);
    t->n_text += n;
    return GGL_OK;
}

/* Moves the first n bytes that were held back to the text, without those that are hidden. */
static ggl_status release(stopped_text *t, size_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0, end; i < n && st == GGL_OK; i = end) {
        for (end = i + 1; end < n && t->hidden[end] == t->hidden[i];)
            end++;
        if (!t->hidden[i])
            st = add(t, t->held + i, end - i, err);
    }
    if (n > 0 && n < t->n_held) {
        memmove(t->held, t->held + n, t->n_held - n);
        memmove(t->hidden, t->hidden + n, (t->n_held - n) * sizeof *t->hidden);
    }
    t->n_held -= n;
    return st;
}

ggl_status llm_stopped_text_put(stopped_text *t, ggl_str text, bool hidden, ggl_error *err) {
    if (text.n == 0)
        return GGL_OK;
    if (!t->stop)
        return hidden ? GGL_OK : add(t, text.s, text.n, err);
    if (!ggl_grow(&t->held, &t->cap_held, t->n_held + text.n, 1) ||
        !ggl_grow(&t->hidden, &t->cap_hidden, t->n_held + text.n, sizeof *t->hidden))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the text");
    memcpy(t->held + t->n_held, text.s, text.n);
    for (size_t i = 0; i < text.n; i++)
        t->hidden[t->n_held++] = hidden;
    ggl_status st = release(t, llm_stop_read(t->stop, text.s, text.n), err);
    t->found = llm_stop_found(t->stop);
    if (st == GGL_OK && t->found >= 0 && (size_t)t->found < t->n_shown)
        st = release(t, llm_stop_held(t->stop), err);
    return st;
}

void llm_stopped_text_fini(stopped_text *t) {
    ggl_free(t->held);
    ggl_free(t->hidden);
    ggl_free(t->text);
}

ggl_status llm_stopped_text_end(stopped_text *t, ggl_error *err) {
    return t->found < 0 ? release(t, t->n_held, err) : GGL_OK;
}

void llm_stopped_text_begin(stopped_text *t, llm_stop *stop) {
    t->stop = stop;
    t->found = -1;
    t->n_held = t->n_text = t->n_given = 0;
}

bool llm_stopped_text_has(const stopped_text *t) {
    return t->n_text > t->n_given &&
           whole_characters(t->text + t->n_given, t->n_text - t->n_given) > 0;
}

const char *llm_stopped_text_give(stopped_text *t, bool all, size_t *n) {
    if (t->n_given > 0)
        memmove(t->text, t->text + t->n_given, t->n_text - t->n_given);
    t->n_text -= t->n_given;
    t->n_given = t->n_text > 0 ? whole_characters(t->text, t->n_text) : 0;
    if (t->n_given == 0 && all)
        t->n_given = t->n_text; /* it ends within a character */
    *n = t->n_given;
    return t->n_given ? t->text : NULL;
}

const char *llm_stopped_text_take(stopped_text *t, size_t *n) {
    *n = t->n_text;
    t->n_text = 0;
    return t->text;
}
