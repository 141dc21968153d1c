#include "block.h"

#include <math.h>
#include <string.h>

#include "ggl/alloc.h"

/* --- the best score --------------------------------------------------------------------------- */

/* exp(x) for x <= 0, at most half a percent off: enough to judge a guess by, and compilers make it a loop over vectors. A vocabulary of
 * 150,000 tokens would else take half a millisecond for each guess. */
static float exp_about(float x) {
    const float y = (x > -80 ? x : -80) * 1.44269504f; /* 2^y */
    const int32_t whole = (int32_t)y;
    const float r = y - (float)whole; /* -1 < r <= 0 */
    const int32_t bits = (whole + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return scale * (1 + r * (0.693147f + r * (0.240227f + r * (0.055504f + r * 0.009618f))));
}

/* Returns the likeliest token, and about its probability *p: 0 if the logits are not finite. */
static int32_t likeliest(const float *logits, int64_t n, float *p) {
    enum { LANES = 16 };
    float most[LANES], sum[LANES] = {0}, best = -INFINITY, all = 0;
    const int64_t n_lanes = n - n % LANES;
    for (int j = 0; j < LANES; j++)
        most[j] = -INFINITY;
    for (int64_t i = 0; i < n_lanes; i += LANES)
        for (int j = 0; j < LANES; j++)
            most[j] = logits[i + j] > most[j] ? logits[i + j] : most[j];
    for (int j = 0; j < LANES; j++)
        best = most[j] > best ? most[j] : best;
    for (int64_t i = n_lanes; i < n; i++)
        best = logits[i] > best ? logits[i] : best;
    *p = 0;
    if (!isfinite(best))
        return 0;
    for (int64_t i = 0; i < n_lanes; i += LANES)
        for (int j = 0; j < LANES; j++)
            sum[j] += exp_about(logits[i + j] - best);
    for (int64_t i = n_lanes; i < n; i++)
        all += exp_about(logits[i] - best);
    for (int j = 0; j < LANES; j++)
        all += sum[j];
    *p = 1 / all;
    int64_t at = 0;
    while (logits[at] != best)
        at++;
    return (int32_t)at;
}

int32_t llm_guess_of(const llm_session *s, const float *logits, float *p) {
    const int32_t best = likeliest(logits, llm_session_n_logits(s), p);
    *p = llm_session_chance(s, logits, *p);
    *p = *p >= 0 && *p <= 1 ? *p : 0;
    return llm_session_token_of(s, logits, best);
}

/* --- blocks ----------------------------------------------------------------------------------- */

ggl_status llm_block_init(guess_block *b, llm_session *s, llm_session *turn, int slot,
                          ggl_error *err) {
    const llm_arch_result *built = llm_session_built(s);
    *b = (guess_block){.session = s, .turn = turn, .slot = slot, .first = built->guess_first};
    /* as many as the session computes at once */
    int64_t n = built->n_guess_block;
    const int64_t most[] = {llm_session_n_rows(s) + b->first, llm_session_n_ubatch(s),
                            LLM_GUESS_MOST + b->first};
    for (size_t k = 0; k < sizeof most / sizeof *most; k++)
        n = most[k] < n ? most[k] : n;
    b->n = n;
    if (!turn)
        return GGL_OK;
    b->n_told = llm_session_n_row(s);
    b->told = ggl_calloc((size_t)(LLM_GUESS_MOST * b->n_told), sizeof *b->told);
    return b->told ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a guesser");
}

void llm_block_fini(guess_block *b) {
    ggl_free(b->told);
}

/* A run of a block. */
typedef struct block_run {
    guess_block *b;
    block_guesses *g;
    float p_min;
    int64_t n_told;
    bool ended; /* a guess was too unlikely: those behind it do not count */
} block_run;

static void add_guess(block_run *r, const llm_session *s, const float *logits) {
    float p;
    const int32_t id = llm_guess_of(s, logits, &p);
    r->ended = r->ended || id < 0 || p < r->p_min;
    if (r->ended)
        return;
    r->g->id[r->g->n] = id;
    r->g->p[r->g->n++] = p;
}

static void take_guess(void *ctx, int64_t i, const float *logits) {
    block_run *r = ctx;
    (void)i;
    add_guess(r, r->b->session, logits);
}

static void take_row(void *ctx, int64_t i, const float *row) {
    block_run *r = ctx;
    (void)i;
    if (r->b->turn)
        memcpy(r->b->told + r->n_told++ * r->b->n_told, row, (size_t)r->b->n_told * sizeof *row);
}

/* Makes guesses from what was told of the places, each after the one before. */
static ggl_status guess_in_turn(block_run *r, int32_t newest, ggl_error *err) {
    const guess_block *b = r->b;
    ggl_status st = llm_session_clear(b->turn, b->slot, err);
    for (int64_t k = 0; k < r->n_told && !r->ended && st == GGL_OK; k++) {
        const int32_t before = k ? r->g->id[k - 1] : newest;
        st = llm_session_eval(
            b->turn,
            &(llm_batch){
                .n = 1, .token = &before, .slot = &b->slot, .row = b->told + k * b->n_told},
            err);
        if (st == GGL_OK)
            add_guess(r, b->turn, llm_session_logits(b->turn));
    }
    return st;
}

ggl_status llm_block_guess(guess_block *b, int32_t newest, int64_t n, float p_min, block_guesses *g,
                           ggl_error *err) {
    block_run r = {.b = b, .g = g, .p_min = p_min};
    int32_t id[LLM_GUESS_MOST + 1], slot[LLM_GUESS_MOST + 1];
    bool want[LLM_GUESS_MOST + 1];
    for (int64_t i = 0; i < n; i++) {
        id[i] = i ? llm_session_mask(b->session) : newest;
        slot[i] = b->slot;
        want[i] = i >= b->first && i < b->first + g->n_max;
    }
    g->n = 0;
    const ggl_status st = llm_session_eval(b->session,
                                           &(llm_batch){.n = n,
                                                        .token = id,
                                                        .slot = slot,
                                                        .is_block = true,
                                                        .want = want,
                                                        .each = b->turn ? NULL : take_guess,
                                                        .each_row = take_row,
                                                        .ctx = &r},
                                           err);
    return st == GGL_OK && b->turn ? guess_in_turn(&r, newest, err) : st;
}
