/* Answers to requests that ask for nothing, with which Ollama's clients load a model. */
#include <time.h>

#include "answer_impl.h"

void answer_empty(server *s, const dialect *d, ask *a, http_reply *r) {
    llm_json_out out = {0};
    answer x = {.ask = a, .facts = server_get_facts(s), .created = (int64_t)time(NULL)};
    random_text(x.id, 29);
    if (a->has_keep)
        server_keep(s, a->keep_seconds);
    x.own = ggl_calloc(1, d->own_size);
    out.failed = !x.own;
    if (a->stream && d->begin && x.own)
        d->begin(&x, &out);
    if (x.own)
        (a->stream ? d->end : d->whole)(&x, &out);
    if (out.failed) {
        answer_failed(d, GGL_NOMEM, NULL, NULL, r);
    } else {
        http_reply_begin(r, 200, a->stream ? d->stream_type : "application/json", a->stream);
        http_reply_write(r, out.s, out.n);
        http_reply_end(r);
    }
    ggl_free(out.s);
    ggl_free(x.own);
    ask_free(a);
}
