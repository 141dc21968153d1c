#include "guessing.h"

#include <inttypes.h>

struct guessing {
    llm_placement *placement; /* of the draft: the CPU */
    llm_model *draft;         /* NULL: the text is looked up */
    llm_session *session;
    llm_guess *guess;
    int64_t n_max;
};

int64_t llm_guessing_n_max(const llm_open_params *p) {
    if (!p->draft && !p->lookup)
        return 0;
    return p->n_guess > 0 ? p->n_guess : llm_guess_default().n_max;
}

static ggl_status check(const llm_open_params *p, ggl_error *err) {
    if (p->draft && p->lookup)
        return ggl_fail(err, GGL_USAGE, "draft and lookup cannot be used together");
    if (p->n_guess < 0 || p->n_guess > LLM_GUESS_MOST)
        return ggl_fail(err, GGL_USAGE, "n_guess must be 0 to %d, but is %" PRId64, LLM_GUESS_MOST,
                        p->n_guess);
    return GGL_OK;
}

static ggl_status open_session(struct guessing *g, const llm_context *c, const llm_open_params *p,
                               ggl_error *err) {
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = p->n_threads};
    const llm_placement_choice cpu = {.names = {.device = "device"}};
    llm_session_params sp = llm_session_default();
    sp.n_ctx = llm_session_n_ctx(c->session);
    sp.n_ubatch = c->session_params.n_ubatch;
    sp.no_repack = p->no_repack;
    sp.cancelled = c->session_params.cancelled;
    sp.cancelled_ctx = c->session_params.cancelled_ctx;
    ggl_status st = llm_placement_new(&g->placement, &cpu, &bp, err);
    if (st == GGL_OK)
        st = llm_placement_session(g->placement, &g->session, g->draft, &sp, err);
    return st == GGL_OK ? llm_session_alloc(g->session, err) : st;
}

static ggl_status open_draft(struct guessing *g, const llm_context *c, const llm_open_params *p,
                             ggl_error *err) {
    const llm_tokenizer *tokenizer;
    if (!c->tokenizer)
        return ggl_fail(err, c->why_no_tokenizer.status, "%s", c->why_no_tokenizer.msg);
    ggl_status st = llm_context_load(&g->draft, p->draft, NULL, p, err);
    if (st == GGL_OK)
        st = llm_model_tokenizer(g->draft, &tokenizer, err);
    if (st == GGL_OK)
        st = llm_draft_fits(c->tokenizer, tokenizer, err);
    if (st == GGL_OK)
        st = open_session(g, c, p, err);
    return st == GGL_OK ? st : ggl_within(err, st, "draft %s", p->draft);
}

static ggl_status open_guess(struct guessing *g, const llm_context *c, const llm_open_params *p,
                             ggl_error *err) {
    llm_guess_params gp = llm_guess_default();
    llm_draft_params dp = llm_draft_default();
    gp.n_max = g->n_max;
    if (p->lookup)
        return llm_guess_lookup(&g->guess, &gp, err);
    const ggl_status st = open_draft(g, c, p, err);
    dp.session = g->session;
    return st == GGL_OK ? llm_guess_draft(&g->guess, &gp, &dp, err) : st;
}

ggl_status llm_guessing_open(struct guessing **out, const llm_context *c, const llm_open_params *p,
                             ggl_error *err) {
    *out = NULL;
    ggl_status st = check(p, err);
    if (st != GGL_OK || llm_guessing_n_max(p) == 0)
        return st;
    struct guessing *g = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    g->n_max = llm_guessing_n_max(p);
    st = open_guess(g, c, p, err);
    if (st == GGL_OK)
        *out = g;
    else
        llm_guessing_close(g);
    return st;
}

void llm_guessing_close(struct guessing *g) {
    if (!g)
        return;
    llm_guess_free(g->guess);
    llm_session_free(g->session);
    (void)llm_placement_close(g->placement, NULL); /* it writes no timeline */
    llm_model_free(g->draft);
    ggl_free(g);
}

ggl_status llm_context_make_generator(llm_generator **out, const llm_context *c,
                                      llm_session *session, ggl_error *err) {
    const struct guessing *g = c->guessing;
    const llm_generator_params gp = {.size = sizeof gp,
                                     .session = session,
                                     .sampler = c->sampler,
                                     .tokenizer = c->tokenizer,
                                     .guesser = g ? llm_guess_guesser(g->guess) : NULL,
                                     .n_guess_max = g ? g->n_max : 0};
    return llm_generator_new(out, &gp, err);
}
