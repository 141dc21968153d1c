/* Calls in reasoning that is never closed. Models mention calls while they reason, and they forget to close the reasoning
 * before they call. So calls in reasoning are calls only if nothing but calls follows until the answer ends. Until this is
 * known, the text from the first mark on is held back. */
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

static void begin_doubt(llm_calls *c) {
    c->doubtful = true;
    c->doubt = c->pos;
    c->n_sure_events = c->n_events;
    c->a.p = NULL;
    c->a.mark = NULL;
}

/* It is reasoning: the calls found are dropped, and marks up to here are text. */
static progress is_thought(llm_calls *c, size_t up_to) {
    c->n_events = c->n_sure_events;
    c->doubtful = false;
    c->sure = up_to > c->doubt ? up_to : c->doubt + 1;
    c->pos = c->doubt;
    return STEP_FAIL;
}

/* Between calls: the next one, marks that are left out, or white space. */
static progress between(llm_calls *c) {
    while (c->pos < c->n) {
        bool wait;
        if (llm_calls_is_white(c->text[c->pos])) {
            c->pos++;
            continue;
        }
        const progress closes = llm_calls_compare(c, c->pos, c->think->close);
        const mark *m = llm_calls_mark_at(c, c->pos, &wait);
        if (wait || closes == STEP_WAIT)
            return STEP_WAIT;
        if (closes == STEP_DONE || !m || m->role == MARK_THINK)
            return STEP_FAIL;
        if (m->role == MARK_CALL) {
            llm_calls_begin(c, m, c->pos);
            return STEP_DONE;
        }
        c->pos += m->text.n;
    }
    return c->final ? STEP_FAIL : STEP_WAIT;
}

/* All of the answer was read: reasoning ends where calls begin, if there are any. */
static bool has_calls(const llm_calls *c) {
    return c->final && c->pos >= c->n && c->n_events > c->n_sure_events;
}

progress llm_calls_thought(llm_calls *c, ggl_status *st, ggl_error *err) {
    if (!c->doubtful)
        begin_doubt(c);
    for (;;) {
        if (!c->a.mark) {
            const progress p = between(c);
            if (p == STEP_WAIT)
                return p;
            if (p == STEP_FAIL && has_calls(c)) {
                c->doubtful = false;
                return STEP_DONE;
            }
            if (p == STEP_FAIL)
                return is_thought(c, c->pos);
        }
        const bool strict = c->strict;
        c->strict = true; /* so that no text is read again and again */
        const progress p = llm_calls_step(c, &c->a);
        c->strict = strict;
        if (p == STEP_WAIT)
            return p;
        if (c->a.no_memory)
            *st = GGL_NOMEM;
        else if (p == STEP_DONE)
            *st = llm_calls_read(c, &c->a, err);
        if (*st == GGL_NOMEM)
            return STEP_DONE;
        if (p == STEP_FAIL || *st == GGL_FORMAT || c->a.rest > 0) {
            *st = GGL_OK;
            return is_thought(c, c->a.scan);
        }
        c->pos = c->a.scan;
        c->a.mark = NULL;
    }
}
