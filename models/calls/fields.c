/* Follows the fields of patterns through an answer, as far as it is there. */
#include <ctype.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

progress llm_calls_fail(attempt *a, const char *error) {
    a->error = error;
    return STEP_FAIL;
}

progress llm_calls_wait_or(const llm_calls *c, attempt *a, const char *error) {
    return c->final ? llm_calls_fail(a, error) : STEP_WAIT;
}

ggl_str llm_calls_stop_after(const pattern *p, int at) {
    return at + 1 < p->n && p->piece[at + 1].kind == PIECE_TEXT ? p->piece[at + 1].text
                                                                : (ggl_str){0};
}

progress llm_calls_strict_border(const llm_calls *c, attempt *a, size_t i) {
    bool wait;
    if (!c->strict)
        return STEP_DONE;
    if (c->doubtful) { /* in reasoning */
        size_t n;
        const progress p = llm_calls_closes(c, i, &n);
        if (p != STEP_FAIL)
            return p == STEP_WAIT ? p : llm_calls_fail(a, "the call is not complete");
    }
    const mark *m = llm_calls_mark_at(c, i, &wait);
    if (wait)
        return STEP_WAIT;
    return m ? llm_calls_fail(a, "the call is not complete") : STEP_DONE;
}

bool llm_calls_is_begun(const llm_calls *c, const attempt *a) {
    return !c->doubtful && (a->sure || a->part.n_begun > 0);
}

progress llm_calls_step_name(const llm_calls *c, attempt *a, span *out) {
    const size_t begin = a->scan = llm_calls_skip_white(c, a->scan);
    size_t end = begin;
    while (end < c->n && c->text[end] && llm_calls_is_name(c->text[end]))
        if (end++ - begin == MAX_NAME)
            return llm_calls_fail(a, "the name is too long");
    if (end == c->n && !c->final)
        return STEP_WAIT;
    if (end == begin)
        return llm_calls_fail(a, "there is no name of a function");
    *out = (span){begin, end};
    a->scan = end;
    return STEP_DONE;
}

progress llm_calls_step_until(const llm_calls *c, attempt *a, ggl_str stop, size_t most,
                              span *out) {
    if (!a->entered) {
        a->entered = true;
        *out = (span){a->scan, a->scan};
    }
    for (; a->scan < c->n; a->scan++) {
        GGL_STEPS(1);
        if (a->scan - out->begin > most)
            return llm_calls_fail(a, "the name of an argument is too long");
        if (c->text[a->scan] == stop.s[0]) {
            progress p = llm_calls_compare(c, a->scan, stop);
            if (p == STEP_WAIT)
                return STEP_WAIT;
            if (p == STEP_DONE) {
                out->end = a->scan;
                a->entered = false;
                return STEP_DONE;
            }
        }
        progress p = llm_calls_strict_border(c, a, a->scan);
        if (p != STEP_DONE)
            return p;
    }
    return llm_calls_wait_or(c, a, "the call is not complete");
}
