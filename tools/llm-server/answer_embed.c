/* Embeddings and scores. Each prompt becomes a vector of length 1, or its tokens' vectors as they are; or, with a query, a
 * score. */
#include <math.h>
#include <string.h>

#include "answer_impl.h"
#include "common/max_sim.h"

static bool has_all_vectors(const job *j) {
    return j->ask->kind == ASK_EMBED && j->x.facts->all_vectors;
}

int64_t job_count_vectors(job *j) {
    int64_t n = 0;
    for (int i = 0; i < j->x.n_choices; i++) {
        answer_choice *c = &j->x.choice[i];
        c->first_vector = n;
        c->n_vectors = has_all_vectors(j)           ? c->n_prompt
                       : j->ask->kind == ASK_CHOOSE ? (int64_t)j->ask->question[i].n_labels
                                                    : 1;
        n += c->n_vectors;
    }
    return n;
}

/* The first row of the seat's choice. */
static float *rows(const seat *s) {
    const job *j = s->job;
    return j->embedding + j->x.choice[s->choice].first_vector * answer_width(&j->x);
}

/* Adds a token's row; they come in order, so the sum has the same bits whoever else is served. */
static void on_row(void *ctx, int64_t i, const float *row) {
    seat *s = ctx;
    const int64_t n = answer_width(&s->job->x);
    if (s->sum)
        llm_head_add(server_head(s->job->server), s->sum, i, row);
    else if (has_all_vectors(s->job))
        memcpy(rows(s) + i * n, row, (size_t)n * sizeof *row);
    else if (s->n_rows++ ==
             0) /* a score for each token: that of the first counts, as in llm_rerank */
        memcpy(rows(s), row, (size_t)n * sizeof *row);
}

ggl_status seat_make_sum(seat *s, ggl_error *err) {
    if (s->job->ask->kind != ASK_EMBED || has_all_vectors(s->job))
        return GGL_OK;
    s->sum = ggl_calloc(llm_head_sum_size(server_head(s->job->server)), sizeof *s->sum);
    return s->sum ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a vector");
}

void seat_begin_sum(seat *s) {
    s->n_rows = 0;
    if (s->sum)
        llm_head_begin(server_head(s->job->server), s->sum);
}

void seat_embed_params(const seat *s, llm_sequence_params *p) {
    p->n_max = 0;
    p->embedded = on_row;
    p->n_seen = seat_prompt(s)->n_seen;
    p->type = seat_prompt(s)->types.n > 0 ? seat_prompt(s)->types.id : NULL;
    p->n_before = seat_prompt(s)->n_before;
    p->pooling = s->job->ask->kind == ASK_RANK ? LLM_POOL_RANK : s->job->x.facts->pooling;
}

ggl_status seat_end_embedding(seat *s, ggl_error *err) {
    const job *j = s->job;
    const ask *a = j->ask;
    const int64_t n = answer_width(&j->x);
    j->x.choice[s->choice].n_prompt = (int64_t)seat_prompt(s)->ids.n;
    if (s->sum)
        return llm_head_end(server_head(j->server), s->sum, answer_dims(&j->x), !a->keeps_length,
                            rows(s), err);
    const int64_t n_rows = has_all_vectors(j) ? j->x.choice[s->choice].n_vectors : 1;
    for (int64_t k = 0; k < n_rows * n; k++)
        if (!isfinite(rows(s)[k]))
            return ggl_fail(err, GGL_FORMAT,
                            "the %s has numbers that are not finite: the model's numbers or "
                            "its descriptor are wrong",
                            a->kind == ASK_RANK ? "score" : "embedding");
    return GGL_OK;
}

void job_compare(job *j) {
    const int64_t n = answer_width(&j->x);
    const answer_choice *query = &j->x.choice[j->x.n_choices - 1];
    const float *of_query = j->embedding + query->first_vector * n;
    for (int i = 0; i + 1 < j->x.n_choices;
         i++) { /* the vectors of text i begin at row i or later */
        const answer_choice *c = &j->x.choice[i];
        j->embedding[i * n] = (float)tool_max_sim(of_query, (size_t)query->n_vectors,
                                                  j->embedding + c->first_vector * n,
                                                  (size_t)c->n_vectors, (size_t)n, true);
    }
}
