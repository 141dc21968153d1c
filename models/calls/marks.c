/* Marks and white space in answers. */
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

bool llm_calls_is_white(char ch) {
    return ch == ' ' || ch == '\n' || ch == '\r' || ch == '\t';
}

ggl_str llm_calls_trimmed(ggl_str s) {
    while (s.n > 0 && llm_calls_is_white(s.s[0])) {
        s.s++;
        s.n--;
    }
    while (s.n > 0 && llm_calls_is_white(s.s[s.n - 1]))
        s.n--;
    return s;
}

ggl_str llm_calls_first_key(ggl_str keys) {
    const char *bar = memchr(keys.s, '|', keys.n);
    return bar ? (ggl_str){keys.s, (size_t)(bar - keys.s)} : keys;
}

size_t llm_calls_skip_white(const llm_calls *c, size_t i) {
    for (; i < c->n && llm_calls_is_white(c->text[i]); i++)
        GGL_STEPS(1);
    return i;
}

progress llm_calls_compare(const llm_calls *c, size_t i, ggl_str s) {
    const size_t left = c->n - i, n = left < s.n ? left : s.n;
    if (n > 0 && memcmp(c->text + i, s.s, n) != 0)
        return STEP_FAIL;
    return n == s.n ? STEP_DONE : c->final ? STEP_FAIL : STEP_WAIT;
}

const mark *llm_calls_mark_at(const llm_calls *c, size_t i, bool *wait) {
    const mark *best = NULL;
    *wait = false;
    GGL_STEPS(1);
    if (!c->f.first[(unsigned char)c->text[i]])
        return NULL;
    for (int k = 0; k < c->f.n_marks; k++) {
        const mark *m = &c->f.mark[k];
        if (best && m->text.n <= best->text.n)
            continue;
        progress p = llm_calls_compare(c, i, m->text);
        if (p == STEP_DONE)
            best = m;
        *wait = *wait || p == STEP_WAIT;
    }
    return best;
}

progress llm_calls_closes(const llm_calls *c, size_t i, size_t *n) {
    const ggl_str close = c->think->close, other = c->think->other_close;
    const progress p = llm_calls_compare(c, i, close),
                   q = other.n > 0 ? llm_calls_compare(c, i, other) : STEP_FAIL;
    *n = p == STEP_DONE ? close.n : other.n;
    return p == STEP_DONE || q == STEP_DONE   ? STEP_DONE
           : p == STEP_WAIT || q == STEP_WAIT ? STEP_WAIT
                                              : STEP_FAIL;
}
