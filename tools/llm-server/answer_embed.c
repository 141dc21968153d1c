/* Embeddings: each prompt becomes a vector of length 1. */
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
    int64_t end;
    p->n_max = 0;
    p->embedded = on_embedded;
    llm_pooling_range(s->job->x.facts->pooling, (int64_t)p->n_prompt, &p->embed_from, &end);
    p->n_prompt = (size_t)end; /* later tokens do not change earlier vectors */
}

ggl_status seat_end_embedding(seat *s, ggl_error *err) {
    s->job->x.choice[s->choice].n_prompt = (int64_t)seat_prompt(s)->ids.n;
    return llm_pooling_result(s->sum, n_embd(s), s->job->embedding + s->choice * n_embd(s), err);
}
