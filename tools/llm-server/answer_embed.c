/* Embeddings: each prompt becomes a vector of length 1. */
#include <math.h>

#include "answer_impl.h"

static int64_t n_embd(const seat *s) {
    return s->job->x.facts->n_embd;
}

/* Adds a token's vector; they come in order, so the sum has the same bits whoever else is served. */
static void on_embedded(void *ctx, int64_t i, const float *embedding) {
    seat *s = ctx;
    (void)i;
    for (int64_t k = 0; k < n_embd(s); k++)
        s->sum[k] += (double)embedding[k];
}

void seat_embed_params(seat *s, llm_sequence_params *p) {
    const server_pooling pooling = s->job->x.facts->pooling;
    p->n_max = 0;
    p->embedded = on_embedded;
    if (pooling == POOL_CLS)
        p->n_prompt = 1; /* later tokens do not change its vector */
    p->embed_from = pooling == POOL_LAST ? (int64_t)p->n_prompt - 1 : 0;
}

ggl_status seat_end_embedding(seat *s, ggl_error *err) {
    float *out = s->job->embedding + s->choice * n_embd(s);
    double length = 0;
    for (int64_t k = 0; k < n_embd(s); k++)
        length += s->sum[k] * s->sum[k];
    length = sqrt(length);
    if (!isfinite(length))
        return ggl_fail(err, GGL_FORMAT,
                        "the embedding has numbers that are not finite: the model's numbers or "
                        "its descriptor are wrong");
    for (int64_t k = 0; k < n_embd(s); k++)
        out[k] = length > 0 ? (float)(s->sum[k] / length) : 0;
    s->job->x.choice[s->choice].n_prompt = (int64_t)seat_prompt(s)->ids.n;
    return GGL_OK;
}
