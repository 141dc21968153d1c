/* Embeddings: each prompt becomes a vector of length 1, or its tokens' vectors as they are. */
#include <math.h>
#include <string.h>

#include "answer_impl.h"

static int64_t n_embd(const seat *s) {
    return s->job->x.facts->n_embd;
}

int64_t job_count_vectors(job *j) {
    int64_t n = 0;
    for (int i = 0; i < j->x.n_choices; i++) {
        answer_choice *c = &j->x.choice[i];
        c->first_vector = n;
        c->n_vectors = j->x.facts->all_vectors ? c->n_prompt : 1;
        n += c->n_vectors;
    }
    return n;
}

/* The first vector of the seat's choice. */
static float *vectors(const seat *s) {
    return s->job->embedding + s->job->x.choice[s->choice].first_vector * n_embd(s);
}

/* Adds a token's vector; they come in order, so the sum has the same bits whoever else is served. */
static void on_embedded(void *ctx, int64_t i, const float *embedding) {
    seat *s = ctx;
    if (s->job->x.facts->all_vectors)
        memcpy(vectors(s) + i * n_embd(s), embedding, (size_t)n_embd(s) * sizeof *embedding);
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
    for (int64_t k = 0; k < n_embd(s); k++) /* a sum has what its numbers have */
        if (!isfinite(s->sum[k]))
            return ggl_fail(err, GGL_FORMAT,
                            "the embedding has numbers that are not finite: the model's numbers or "
                            "its descriptor are wrong");
    return s->job->x.facts->all_vectors ? GGL_OK
                                        : llm_pooling_result(s->sum, n_embd(s), vectors(s), err);
}
