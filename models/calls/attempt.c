/* What calls.c and the readers of calls write: events, and the attempt to read a call. */
#include "calls_impl.h"

event *llm_calls_push(llm_calls *c, llm_calls_kind kind, span text) {
    if (!ggl_grow(&c->event, &c->cap_events, c->n_events + 1, sizeof *c->event))
        return NULL;
    event *e = &c->event[c->n_events++];
    *e = (event){.kind = kind, .begins = true, .text = text};
    return e;
}

void llm_calls_begin(llm_calls *c, const mark *m, size_t begin) {
    argument *arg = c->a.arg;
    const size_t cap = c->a.cap_args, body = begin + (m ? m->text.n : 0);
    mender mend = c->a.mend; /* its memory is used again */
    llm_mend_begin(&mend);
    c->a = (attempt){.mark = m,
                     .begin = begin,
                     .scan = body,
                     .body = body,
                     .mend = mend,
                     .arg = arg,
                     .cap_args = cap};
}
