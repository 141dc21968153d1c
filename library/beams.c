/* A search of beams that runs alone: each place of a beam is the slot of the same number. */
#include "beams.h"

#include "ggl/internal/os_clock.h"

typedef struct running {
    llm_beams *b;
    const int32_t *place; /* [n] of the batch; NULL: it is the prompt, in place 0 */
} running;

static void on_logits(void *ctx, int64_t i, const float *logits) {
    const running *r = ctx;
    llm_beams_logits(r->b, r->place ? r->place[i] : 0, logits);
}

/* Copies slots for beams that have got another place than the text that they continue, and runs the last token of each. */
static ggl_status run(llm_context *c, llm_beams *b, ggl_error *err) {
    int32_t token[LLM_MAX_BEAMS], slot[LLM_MAX_BEAMS];
    bool want[LLM_MAX_BEAMS];
    const int32_t n = llm_beams_n(b);
    ggl_status st = GGL_OK;
    for (int32_t k = 0; k < n && st == GGL_OK; k++) {
        const llm_beam x = llm_beams_at(b, k);
        token[k] = x.token;
        slot[k] = x.place;
        want[k] = true;
        if (x.place != x.parent)
            st = llm_session_copy(c->session, x.place, x.parent, err);
    }
    const llm_batch batch = {.n = n,
                             .token = token,
                             .slot = slot,
                             .want = want,
                             .each = on_logits,
                             .ctx = &(running){b, slot}};
    return st == GGL_OK ? llm_session_eval(c->session, &batch, err) : st;
}

static ggl_status search_on(llm_context *c, llm_beams *b, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (bool is_done = false; st == GGL_OK && !is_done;) {
        if (llm_context_is_cancelled(c))
            return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
        st = llm_beams_step(b, &is_done, err);
        if (st == GGL_OK && !is_done)
            st = run(c, b, err);
    }
    return st;
}

ggl_status llm_context_search(llm_context *c, llm_beams *b, int32_t n_beams, const int32_t *id,
                              size_t n, double *prompt_seconds, ggl_error *err) {
    const double begin = ggl_os_seconds();
    const llm_batch prompt = {
        .n = (int64_t)n, .token = id, .each = on_logits, .ctx = &(running){b, NULL}};
    ggl_status st = llm_session_eval(c->session, &prompt, err);
    *prompt_seconds = ggl_os_seconds() - begin;
    if (st == GGL_OK)
        st = search_on(c, b, err);
    for (int32_t k = 0; k < n_beams; k++)
        if (llm_session_clear(c->session, k, NULL) != GGL_OK && st == GGL_OK)
            st = ggl_fail(err, GGL_DEVICE, "slot %d cannot be cleared", (int)k);
    return st;
}
