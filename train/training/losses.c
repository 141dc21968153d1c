/* What is learned of items: their tokens, which of two answers is better, or what a teacher says.
 *
 * Preferences (DPO; Rafailov et al., 2023): with g the log-probability of an answer less what it was before the training,
 *
 *     loss = -log sigmoid(beta (g chosen - g rejected))
 *
 * Its gradient by the log-probabilities is -+ beta sigmoid(-beta (..)). So a first pass measures these, and a second one learns with
 * this factor as the weight of the tokens.
 *
 * A teacher (Hinton et al., 2015): the loss is the cross entropy with the teacher's probabilities, both at a temperature, times its
 * square, so that the gradient has the same size at any temperature. */
#include <math.h>

#include "ggl/compose.h"
#include "training.h"

const char *const llm_train_share_input[1] = {"share"};

ggl_tensor *llm_train_taught(void *ctx, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target) {
    const llm_training *t = ctx;
    const double temp = t->p.teacher_temp, part = t->p.teacher_share;
    ggl_tensor *share = ggl_graph_input(g, llm_train_share_input[0], GGL_F32, 1, logits->ne, true),
               *x = temp == 1 ? logits
                              : ggl_binary(g, GGL_OP_MUL, logits, ggl_graph_number(g, 1 / temp)),
               *all = ggl_binary(g, GGL_OP_ADD, ggl_cross_entropy(g, x, target),
                                 ggl_binary(g, GGL_OP_PICK, x, target)), /* log sum exp x */
                   *said = ggl_unary(g, GGL_OP_SUM, ggl_binary(g, GGL_OP_MUL, share, x)),
               *loss = ggl_binary(g, GGL_OP_MUL, ggl_binary(g, GGL_OP_SUB, all, said),
                                  ggl_graph_number(g, part * temp * temp));
    if (part == 1)
        return loss;
    return ggl_binary(g, GGL_OP_ADD, loss,
                      ggl_binary(g, GGL_OP_MUL, ggl_cross_entropy(g, logits, target),
                                 ggl_graph_number(g, 1 - part)));
}

/* --- batches ---------------------------------------------------------------------------------- */

/* Runs what is loaded of the data: each (may be NULL) gets the losses of its sequences. */
static ggl_status run_load(llm_training *t, const train_data *d, bool learn, double *sum,
                           double *each, ggl_error *err) {
    train_load *l = &t->load;
    double loss = 0;
    if (atomic_load(&t->stops))
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    ggl_status st = llm_train_load_read(t, d, err);
    if (st != GGL_OK)
        return st;
    const llm_train_batch b = llm_train_load_batch(l);
    if (t->of.teach)
        st = t->of.teach(t->of.teacher, l->token, l->length, l->n_seq, l->share, err);
    if (st == GGL_OK)
        st = learn ? llm_trainer_add(t->trainer, &b, &loss, err)
                   : llm_trainer_evaluate(t->trainer, &b, &loss, each, err);
    *sum += loss;
    return st;
}

/* Runs the items, whose tokens count weight[i] each, or `one` if weight is NULL. each[i] (may be NULL): their losses. */
static ggl_status run_items(llm_training *t, const train_data *d, bool learn, const int64_t *item,
                            int64_t n, const double *weight, double one, double *sum, double *each,
                            ggl_error *err) {
    ggl_status st = GGL_OK;
    *sum = 0;
    for (int64_t i = 0, some; i < n && st == GGL_OK; i += some) {
        some = llm_train_load_fill(&t->load, d, item + i, n - i, weight ? weight + i : NULL, one);
        st = run_load(t, d, learn, sum, each ? each + i : NULL, err);
    }
    return st;
}

/* The weights of all tokens that count. */
static double weight_of(const train_data *d, const int64_t *item, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += llm_train_data_weight(d, item[i]);
    return sum;
}

/* --- preferences ------------------------------------------------------------------------------ */

/* Where the probabilities of d before the training are. */
static double *before_of(const llm_training *t, const train_data *d) {
    return t->before + (d == t->data ? 0 : llm_train_data_n(t->data));
}

/* Sets weight[n], the factors of the tokens' losses, from each[n], the negative log-probabilities of the items now. */
static void prefer(const llm_training *t, const train_data *d, const int64_t *item, int64_t n,
                   double n_pairs, const double *each, double *weight, train_sum *sum) {
    const double beta = t->p.dpo_beta, *before = before_of(t, d);
    for (int64_t i = 0; i + 1 < n; i += 2) {
        const double gain = before[item[i]] - each[i], other = before[item[i + 1]] - each[i + 1],
                     margin = beta * (gain - other),
                     less = exp(-fabs(margin)); /* never overflows */
        sum->loss += margin > 0 ? log1p(less) : log1p(less) - margin;
        sum->n_right += margin > 0;
        sum->n_judged++;
        sum->n++;
        weight[i] = beta * (margin > 0 ? less : 1) / (1 + less) / n_pairs;
        weight[i + 1] = -weight[i];
    }
}

static ggl_status of_pairs(llm_training *t, const train_data *d, bool learn, const int64_t *item,
                           int64_t n, double n_pairs, train_sum *sum, ggl_error *err) {
    double *each = ggl_calloc((size_t)n * 2, sizeof *each), ignored;
    ggl_status st = each ? run_items(t, d, false, item, n, NULL, 1, &ignored, each, err)
                         : ggl_fail(err, GGL_NOMEM, "out of memory for a step");
    if (st == GGL_OK)
        prefer(t, d, item, n, n_pairs, each, each + n, sum);
    if (st == GGL_OK && learn)
        st = run_items(t, d, true, item, n, each + n, 0, &ignored, NULL, err);
    ggl_free(each);
    return st;
}

static ggl_status look_at(llm_training *t, const train_data *d, ggl_error *err) {
    const int64_t n = llm_train_data_n(d);
    double *to = before_of(t, d), ignored;
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < n && st == GGL_OK; i += 2) {
        const int64_t pair[2] = {i, i + 1};
        st = run_items(t, d, false, pair, 2, NULL, 1, &ignored, to + i, err);
        if (st == GGL_OK && t->p.progress &&
            !t->p.progress(t->p.user, "probabilities before the training", (size_t)i + 2,
                           (size_t)n))
            st = ggl_fail(err, GGL_CANCELLED, "cancelled");
    }
    return st;
}

ggl_status llm_train_look_before(llm_training *t, ggl_error *err) {
    const int64_t n = llm_train_data_n(t->data) + (t->valid ? llm_train_data_n(t->valid) : 0);
    t->before = ggl_calloc((size_t)n, sizeof *t->before);
    ggl_status st = t->before
                        ? look_at(t, t->data, err)
                        : ggl_fail(err, GGL_NOMEM, "out of memory for %lld answers", (long long)n);
    return st == GGL_OK && t->valid ? look_at(t, t->valid, err) : st;
}

/* --- all kinds -------------------------------------------------------------------------------- */

static ggl_status of_items(llm_training *t, const train_data *d, bool learn, const int64_t *item,
                           int64_t n, double total, train_sum *sum, ggl_error *err) {
    *sum = (train_sum){0};
    if (t->kind == TRAIN_PAIRS)
        return of_pairs(t, d, learn, item, n, total, sum, err);
    sum->n = weight_of(d, item, n);
    const double one = learn ? 1 / total : 1;
    const ggl_status st = t->guesses
                              ? llm_train_guess(t, d, learn, item, n, one, sum, err)
                              : run_items(t, d, learn, item, n, NULL, one, &sum->loss, NULL, err);
    if (learn) /* the gradient is that of the mean */
        sum->loss *= total;
    return st;
}

double llm_train_total(const llm_training *t, const int64_t *item, int64_t n) {
    return t->kind >= TRAIN_PAIRS ? (double)llm_train_data_n_groups(t->data, item, n)
                                  : weight_of(t->data, item, n);
}

ggl_status llm_train_learn(llm_training *t, const train_step_items *of, double total,
                           train_sum *sum, ggl_error *err) {
    *sum = (train_sum){0};
    return llm_train_is_contrast(t->kind) ? llm_train_contrast(t, of, total, sum, err)
                                          : of_items(t, t->data, true, of->item + of->first,
                                                     of->end - of->first, total, sum, err);
}

ggl_status llm_train_measure(llm_training *t, const train_data *d, const int64_t *item,
                             int64_t n_items, train_sum *sum, ggl_error *err) {
    *sum = (train_sum){0};
    return llm_train_is_contrast(t->kind)
               ? llm_train_measure_contrast(t, d, item, n_items, sum, err)
               : of_items(t, d, false, item, n_items, 0, sum, err);
}
