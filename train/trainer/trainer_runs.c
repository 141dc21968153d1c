/* A trainer's runs: losses, gradients, outputs, and steps. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "trainer_impl.h"

static bool is_token(const llm_trainer *t, int32_t id) {
    return id >= 0 && id < t->n_tokens;
}

/* Fails if a length, a token or, with a loss, a target is out of range, or the layer is. */
static ggl_status check_batch(const llm_trainer *t, const llm_train_batch *b, bool loss,
                              ggl_error *err) {
    const int64_t n_targets = t->p.guess ? t->guesses.n_scores : t->n_vocab;
    int64_t n = 0;
    if (b->layer < 0 || b->layer >= t->guesses.n_layers)
        return ggl_fail(err, GGL_USAGE, "layer %d that guesses does not exist; there %s %d",
                        b->layer, t->guesses.n_layers == 1 ? "is" : "are", t->guesses.n_layers);
    if (loss && t->p.n_inputs > 0 && !b->input)
        return ggl_fail(err, GGL_USAGE, "the batch lacks the loss's input '%s'", t->p.input[0]);
    for (int64_t i = 0; i < b->n_seq; n += b->length[i++])
        if (b->length[i] < 1 || b->length[i] > t->p.n_ctx)
            return ggl_fail(err, GGL_USAGE,
                            "sequence %" PRId64 " of the batch has %" PRId64
                            " tokens; it must have 1 to %" PRId64,
                            i, b->length[i], t->p.n_ctx);
    for (int64_t i = 0; i < n; i++) {
        if (!is_token(t, b->token[i]))
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId64
                            " of the batch is %d; the vocabulary has 0 to %" PRId64,
                            i, b->token[i], t->n_tokens - 1);
        if (b->type && t->n_token_types > 1 && !(b->type[i] >= 0 && b->type[i] < t->n_token_types))
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId64 " of the batch has the type %d; the model knows the "
                            "types 0 to %" PRId64,
                            i, b->type[i], t->n_token_types - 1);
        if (loss && !t->p.output && !(b->target[i] >= 0 && b->target[i] < n_targets))
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId64 " of the batch is to be followed by %d; the "
                            "vocabulary has 0 to %" PRId64,
                            i, b->target[i], n_targets - 1);
    }
    return llm_reader_check(t, b, err);
}

/* Returns how many sequences from the first on fit into a run; sets pos and slot, and *n to their tokens. */
static int64_t fill(llm_trainer *t, const int64_t *length, int64_t n_seq, int64_t *n) {
    int64_t i = 0;
    *n = 0;
    for (; i < n_seq && i < t->p.n_slots && *n + length[i] <= t->p.n_batch; i++)
        for (int64_t k = 0; k < length[i]; k++, ++*n) {
            t->pos[*n] = (int32_t)k;
            t->slot[*n] = (int32_t)i;
            t->end[*n] = (int32_t)length[i];
        }
    return i;
}

/* Gives each of the n slots the pages for so many tokens. */
static ggl_status set_pages(llm_trainer *t, const ggl_graph *g, ggl_sched *s, const int64_t *length,
                            int64_t n, ggl_error *err) {
    const ggl_tensor *page = ggl_graph_find_input(g, "page");
    int64_t used = 0;
    for (int64_t i = 0; i < n && page; i++)
        for (int64_t k = 0; k * GGL_PAGE < length[i]; k++)
            t->page[i * page->ne[0] + k] = (int32_t)used++;
    return page ? ggl_sched_set(s, "page", t->page, (size_t)ggl_count(page) * sizeof *t->page, 1,
                                err)
                : GGL_OK;
}

/* Numbers for each token in llm_train_batch.gradient, and .row. */
static int64_t n_gradient(const llm_trainer *t) {
    return t->p.guess ? t->guesses.n_row : t->out.rows.n;
}

/* Sets what the batch says of n tokens from `at` on. */
static ggl_status set_tokens(llm_trainer *t, const ggl_graph *g, ggl_sched *s,
                             const llm_train_batch *b, int64_t at, int64_t n, ggl_error *err) {
    const void *data[TRAINER_INPUTS] = {b->feature ? b->feature + at * t->guesses.n_heard : NULL,
                                        b->given ? b->given + at : NULL,
                                        b->token + at,
                                        b->type ? b->type + at : t->no_type,
                                        b->target ? b->target + at : NULL,
                                        t->weight,
                                        t->pos,
                                        t->slot,
                                        t->end,
                                        b->gradient ? b->gradient + at * n_gradient(t) : t->zeros,
                                        b->row ? b->row + at * n_gradient(t) : NULL};
    ggl_status st = GGL_OK;
    for (int k = 0; k < TRAINER_INPUTS && st == GGL_OK; k++) {
        const ggl_tensor *x = ggl_graph_find_input(g, llm_trainer_input[k]);
        if (x && data[k]) /* else nothing that is computed reads it */
            st = ggl_sched_set(s, llm_trainer_input[k], data[k], (size_t)(n * ggl_count(x)) * 4, n,
                               err);
    }
    for (int k = 0; k < t->p.n_inputs && b->input && st == GGL_OK; k++) {
        const ggl_tensor *x = ggl_graph_find_input(g, t->p.input[k]);
        const size_t each = x ? (size_t)ggl_count(x) * 4 : 0;
        if (x)
            st = ggl_sched_set(s, t->p.input[k], (const char *)b->input[k] + (size_t)at * each,
                               (size_t)n * each, n, err);
    }
    return st;
}

/* Runs n tokens from `at` on, of n_seq sequences from `first` on; with the outputs of the first n_rows. */
static ggl_status run_some(llm_trainer *t, const train_plan *p, const llm_train_batch *b,
                           int64_t first, int64_t n_seq, int64_t at, int64_t n, int64_t n_rows,
                           ggl_error *err) {
    const int64_t *length = b->length + first;
    const bool has_pos = ggl_graph_n_stores(p->g) > 0; /* what a run leaves there */
    ggl_status st = set_pages(t, p->g, p->s, length, n_seq, err);
    for (int64_t i = 0; i < n; i++)
        t->weight[i] = b->weight ? b->weight[at + i] : 1;
    for (int64_t i = 0; i < n_seq && has_pos && st == GGL_OK; i++)
        st = ggl_sched_clear_slot(p->s, (int)i, err);
    if (st == GGL_OK)
        st = set_tokens(t, p->g, p->s, b, at, n, err);
    if (st == GGL_OK)
        st = llm_reader_read(t, b, first, n_seq, at, n, err);
    if (st == GGL_OK)
        st = llm_reader_set(t, p, b, first, at, n, err);
    return st == GGL_OK ? ggl_sched_run(p->s, n, n_rows ? NULL : t->pos, n_rows, err) : st;
}

static ggl_status run(llm_trainer *t, const train_plan *p, const llm_train_batch *b, double *loss,
                      double *each, ggl_error *err) {
    ggl_status st = check_batch(t, b, true, err);
    const bool asked = b->row_gradient && ggl_graph_n_outputs(p->g) > 1 &&
                       strcmp(ggl_graph_get_output(p->g, 1)->name, ROW_GRADIENT) == 0;
    const bool passes = t->reader.is.is_there && ggl_graph_n_outputs(p->g) > 1;
    const size_t n_row = (size_t)t->guesses.n_row;
    double sum = 0;
    int64_t at = 0, n;
    for (int64_t i = 0, n_seq; i < b->n_seq && st == GGL_OK; i += n_seq, at += n) {
        n_seq = fill(t, b->length + i, b->n_seq - i, &n);
        memset(t->loss, 0, (size_t)t->p.n_slots * sizeof *t->loss);
        st = run_some(t, p, b, i, n_seq, at, n, asked || passes ? n : 0, err);
        if (st == GGL_OK && p == t->learn)
            st = llm_reader_learn(t, p, b, i, n_seq, at, n, err);
        llm_reader_forget(t, b);
        if (st == GGL_OK && b->row_gradient)
            memcpy(b->row_gradient + (size_t)at * n_row,
                   asked ? ggl_sched_output(p->s, 1) : t->zeros, (size_t)n * n_row * sizeof(float));
        for (int64_t k = 0; k < n_seq; k++) {
            sum += (double)t->loss[k];
            if (each)
                each[i + k] = (double)t->loss[k];
        }
    }
    if (st == GGL_OK && loss)
        *loss = sum;
    return st;
}

/* Fails unless the batch is one of layers that guess. */
static ggl_status check_guess(const llm_trainer *t, const llm_train_batch *b, ggl_error *err) {
    const ggl_status st = check_batch(t, b, false, err);
    if (st == GGL_OK && t->p.other && !(b->feature && b->given))
        return ggl_fail(err, GGL_USAGE, "the batch lacks what the other model says");
    if (st == GGL_OK && !(t->p.guess && b->row))
        return ggl_fail(err, GGL_USAGE,
                        t->p.guess ? "the batch lacks the rows that the layer reads"
                                   : "no layer that guesses learns");
    return st;
}

ggl_status llm_trainer_add(llm_trainer *t, const llm_train_batch *b, double *loss, ggl_error *err) {
    if (t->p.output && !b->gradient)
        return ggl_fail(err, GGL_USAGE, "the batch lacks the gradient by the output '%s'",
                        t->p.output);
    const ggl_status st = t->p.guess ? check_guess(t, b, err) : check_batch(t, b, false, err);
    return st == GGL_OK ? run(t, &t->learn[b->layer], b, loss, NULL, err) : st;
}

/* Where an output of all tokens goes; NULL: it is not wanted. */
typedef struct wanted {
    float *to;
    int64_t n; /* numbers for each token */
} wanted;

/* Computes outputs 0 and 1 of a plan, which is made if it is not there. */
static ggl_status look(llm_trainer *t, train_plan *p, bool own, bool with_scores,
                       const llm_train_batch *b, const wanted out[2], ggl_error *err) {
    ggl_status st = check_batch(t, b, false, err);
    if (st == GGL_OK && !p->s)
        st = llm_trainer_plan_look(t, p, b->layer, own, with_scores, err);
    if (st != GGL_OK && !p->s)
        llm_train_plan_fini(p);
    for (int64_t i = 0, at = 0, n, n_seq; i < b->n_seq && st == GGL_OK; i += n_seq, at += n) {
        n_seq = fill(t, b->length + i, b->n_seq - i, &n);
        st = run_some(t, p, b, i, n_seq, at, n, n, err);
        llm_reader_forget(t, b);
        for (int k = 0; k < 2 && st == GGL_OK; k++)
            if (out[k].to)
                memcpy(out[k].to + at * out[k].n, ggl_sched_output(p->s, k),
                       (size_t)(n * out[k].n) * sizeof(float));
    }
    return st;
}

ggl_status llm_trainer_look(llm_trainer *t, const llm_train_batch *b, float *row, ggl_error *err) {
    const wanted out[2] = {{row, n_gradient(t)}};
    if (!t->p.guess)
        return look(t, &t->look, false, true, b, out, err);
    const ggl_status st = check_guess(t, b, err);
    return st == GGL_OK ? look(t, &t->told[b->layer], false, false, b, out, err) : st;
}

ggl_status llm_trainer_guess(llm_trainer *t, const llm_train_batch *b, float *row, float *score,
                             ggl_error *err) {
    const wanted out[2] = {{score, t->out.rows.n}, {row, t->guesses.n_row}};
    const ggl_status st = check_guess(t, b, err);
    return st == GGL_OK ? look(t, &t->guessed[b->layer], false, true, b, out, err) : st;
}

ggl_status llm_trainer_hear(llm_trainer *t, const llm_train_batch *b, float *row, float *logits,
                            ggl_error *err) {
    const wanted out[2] = {{logits, t->n_logits}, {row, t->guesses.n_heard}};
    return t->p.guess ? look(t, &t->hear, true, true, b, out, err)
                      : ggl_fail(err, GGL_USAGE, "no layer that guesses learns");
}

ggl_status llm_trainer_evaluate(llm_trainer *t, const llm_train_batch *b, double *loss,
                                double *each, ggl_error *err) {
    ggl_status st =
        t->p.guess ? ggl_fail(err, GGL_USAGE, "layers that guess have scores (llm_trainer_guess)")
        : t->p.output
            ? ggl_fail(err, GGL_USAGE, "the loss of the output '%s' is the program's", t->p.output)
        : t->evaluate.s ? GGL_OK
                        : llm_trainer_plan(t, &t->evaluate, 0, false, err);
    if (st != GGL_OK)
        llm_train_plan_fini(&t->evaluate);
    return st == GGL_OK ? run(t, &t->evaluate, b, loss, each, err) : st;
}

/* Returns the length of the gradient; infinite or NaN if a number of it is. There are several sums, so that none waits for another. */
static double length_of(const train_weights *list) {
    enum { SUMS = 16 };
    double sum[SUMS] = {0}, all = 0;
    for (int k = 0; k < list->n; k++) {
        const llm_train_weight *w = &list->at[k].w;
        const int64_t n = llm_train_weight_count(w), whole = n / SUMS * SUMS;
        for (int64_t i = 0; i < whole; i += SUMS)
            for (int j = 0; j < SUMS; j++)
                sum[j] += (double)w->grad[i + j] * (double)w->grad[i + j];
        for (int64_t i = whole; i < n; i++)
            sum[i - whole] += (double)w->grad[i] * (double)w->grad[i];
    }
    for (int j = 0; j < SUMS; j++)
        all += sum[j];
    return sqrt(all);
}

ggl_status llm_trainer_step(llm_trainer *t, double rate, double *norm, ggl_error *err) {
    const double steps = (double)(t->n_steps + 1), length = length_of(&t->weights);
    const bool is_long = t->p.max_norm > 0 && length > t->p.max_norm;
    const float in[STEP_INPUTS] = {[STEP_RATE] = (float)rate,
                                   [STEP_SHORTEN] = (float)(is_long ? t->p.max_norm / length : 1),
                                   [STEP_MEAN_BY] = (float)(1 / (1 - pow(t->p.beta1, steps))),
                                   [STEP_SQUARE_BY] = (float)(1 / (1 - pow(t->p.beta2, steps)))};
    ggl_status st = isfinite(rate) ? GGL_OK
                                   : ggl_fail(err, GGL_USAGE,
                                              "a step with the rate %g: a number is needed", rate);
    if (norm)
        *norm = length;
    if (isfinite(length) && st == GGL_OK) {
        st = llm_train_step_run(&t->step, in, err);
        t->n_steps += st == GGL_OK;
        llm_train_weights_round(&t->weights);
    }
    if (st == GGL_OK)
        llm_trainer_forget(t);
    return st;
}

void llm_trainer_forget(llm_trainer *t) {
    for (int k = 0; k < t->weights.n; k++) {
        const llm_train_weight *w = &t->weights.at[k].w;
        memset(w->grad, 0, (size_t)llm_train_weight_count(w) * sizeof *w->grad);
    }
}
