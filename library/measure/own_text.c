#include "own_text.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/pass.h"
#include "llm/internal/engine.h"

enum { SLOTS = 16 };

typedef struct writer writer;

typedef struct piece {
    writer *w;
    llm_tokens tokens;
    int slot; /* of w->sampler; -1: the piece is complete */
} piece;

struct writer {
    int64_t n_ctx, n_wanted;
    int32_t first; /* begins each piece */
    llm_engine *engine;
    llm_sampler *sampler[SLOTS];
    bool busy[SLOTS];
    piece **piece; /* [n], in the order in which they were begun */
    size_t n, cap;
    int n_running;
    int64_t n_drawn; /* tokens of all pieces, also of those that are not complete */
    bool (*progress)(void *ctx, size_t done, size_t n);
    void *ctx;
    ggl_status status;
    ggl_error err;
};

void llm_own_text_session(llm_session_params *sp, int64_t n_ctx) {
    sp->n_ctx = n_ctx;
    sp->n_slots = SLOTS;
    sp->n_rows = SLOTS;
    sp->watch = NULL;
}

/* --- pieces ----------------------------------------------------------------------------------- */

static ggl_status put(piece *p, int32_t id, ggl_error *err) {
    if (!ggl_grow(&p->tokens.id, &p->tokens.cap, p->tokens.n + 1, sizeof *p->tokens.id))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->tokens.id[p->tokens.n++] = id;
    p->w->n_drawn++;
    return GGL_OK;
}

static bool on_token(void *ctx, int32_t id, const float *logits) {
    (void)logits;
    piece *p = ctx;
    if (p->w->status == GGL_OK)
        p->w->status = put(p, id, &p->w->err);
    return p->w->status == GGL_OK;
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    (void)stats;
    piece *p = ctx;
    writer *w = p->w;
    if (why == LLM_END_FAILED && w->status == GGL_OK)
        w->status = ggl_pass(&w->err, err);
    w->busy[p->slot] = false;
    w->n_running--;
    p->slot = -1;
}

/* Begins another piece, in a slot that is free. */
static ggl_status begin_piece(writer *w, ggl_error *err) {
    piece *p = ggl_calloc(1, sizeof *p);
    if (!p || !ggl_grow(&w->piece, &w->cap, w->n + 1, sizeof *w->piece)) {
        ggl_free(p);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    *p = (piece){.w = w};
    w->piece[w->n] = p;
    while (w->busy[p->slot])
        p->slot++;
    llm_sampler_reseed(w->sampler[p->slot], w->n++);
    const llm_sequence_params sp = {.size = sizeof sp,
                                    .prompt = &w->first,
                                    .n_prompt = 1,
                                    .sampler = w->sampler[p->slot],
                                    .n_max = w->n_ctx - 1,
                                    .no_reuse = true,
                                    .token = on_token,
                                    .ended = on_end,
                                    .ctx = p};
    uint64_t id;
    ggl_status st = put(p, w->first, err);
    if (st == GGL_OK)
        st = llm_engine_add(w->engine, &sp, &id, err);
    if (st == GGL_OK) {
        w->busy[p->slot] = true;
        w->n_running++;
    }
    return st;
}

/* Returns the tokens of the first pieces, up to the first that is not complete, and of all that are complete. */
static int64_t count(const writer *w, int64_t *complete) {
    int64_t n = 0;
    bool in_order = true;
    *complete = 0;
    for (size_t i = 0; i < w->n; i++) {
        in_order = in_order && w->piece[i]->slot < 0;
        n += in_order ? (int64_t)w->piece[i]->tokens.n : 0;
        *complete += w->piece[i]->slot < 0 ? (int64_t)w->piece[i]->tokens.n : 0;
    }
    return n;
}

/* Begins as many pieces as are needed if all that run become as long as they can. */
static ggl_status begin_pieces(writer *w, int64_t complete, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && w->n_running < SLOTS && complete + w->n_running * w->n_ctx < w->n_wanted)
        st = begin_piece(w, err);
    return st;
}

static ggl_status write_pieces(writer *w, ggl_error *err) {
    int64_t complete;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && count(w, &complete) < w->n_wanted) {
        st = begin_pieces(w, complete, err);
        if (st == GGL_OK)
            st = llm_engine_step(w->engine, err);
        if (w->status != GGL_OK)
            st = ggl_pass(err, &w->err);
        const int64_t n_done = w->n_drawn < w->n_wanted ? w->n_drawn : w->n_wanted;
        if (st == GGL_OK && w->progress &&
            !w->progress(w->ctx, (size_t)n_done, (size_t)w->n_wanted))
            st = ggl_fail(err, GGL_CANCELLED, "cancelled");
    }
    return st;
}

/* --- the text --------------------------------------------------------------------------------- */

static ggl_status open_engine(writer *w, llm_session *s, const llm_tokenizer *t, ggl_error *err) {
    llm_sampler_params p = llm_sampler_default();
    p.temp = 1;
    p.stage[0] = LLM_SAMPLER_TEMPERATURE;
    p.n_stages = 1;
    const int32_t n_vocab = (int32_t)llm_session_n_vocab(s);
    const llm_engine_params ep = {
        .size = sizeof ep, .session = s, .tokenizer = t, .n_parallel = SLOTS};
    ggl_status st = llm_engine_new(&w->engine, &ep, err);
    for (int i = 0; st == GGL_OK && i < SLOTS; i++)
        st = llm_sampler_new(&w->sampler[i], &p, n_vocab, (int32_t)w->n_ctx, err);
    return st;
}

/* Takes the pieces in their order, and cuts what is too much. */
static ggl_status take_pieces(const writer *w, llm_tokens *to, ggl_error *err) {
    to->id = ggl_calloc((size_t)w->n_wanted, sizeof *to->id);
    if (!to->id)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    to->cap = (size_t)w->n_wanted;
    for (size_t i = 0; to->n < to->cap; i++) {
        const llm_tokens *from = &w->piece[i]->tokens;
        const size_t n = from->n < to->cap - to->n ? from->n : to->cap - to->n;
        memcpy(to->id + to->n, from->id, n * sizeof *to->id);
        to->n += n;
    }
    return GGL_OK;
}

static void writer_fini(writer *w) {
    llm_engine_free(w->engine); /* ends the pieces that run */
    for (int i = 0; i < SLOTS; i++)
        llm_sampler_free(w->sampler[i]);
    for (size_t i = 0; i < w->n; i++) {
        llm_tokens_fini(&w->piece[i]->tokens);
        ggl_free(w->piece[i]);
    }
    ggl_free(w->piece);
}

ggl_status llm_own_text_write(text_chunks *c, llm_session *s, const llm_tokenizer *t,
                              int64_t n_chunk, bool (*progress)(void *ctx, size_t done, size_t n),
                              void *ctx, ggl_error *err) {
    writer w = {
        .n_ctx = c->n_ctx, .n_wanted = n_chunk * c->n_ctx, .progress = progress, .ctx = ctx};
    w.first = llm_tokenizer_bos(t) >= 0 ? llm_tokenizer_bos(t) : llm_tokenizer_eos(t);
    if (w.first < 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model has no token that begins or ends texts, so it cannot write one "
                        "by itself: a text is needed");
    ggl_status st = open_engine(&w, s, t, err);
    if (st == GGL_OK)
        st = write_pieces(&w, err);
    if (st == GGL_OK)
        st = take_pieces(&w, &c->tokens, err);
    writer_fini(&w);
    c->n_chunk = n_chunk;
    return st;
}
