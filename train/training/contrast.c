/* Losses of texts that belong together: what models learn that make vectors of texts, or give a score to two of them.
 *
 * With u the vectors at length 1 and t a temperature:
 *
 *   TRAIN_MATCHES  -log softmax(u . u' / t) at the text that belongs to the query, among all texts of the step but queries (InfoNCE; van den
 *                  Oord et al., 2018, with the negatives of the other queries: Henderson et al., 2017). No negative is a text that is equal to the
 *                  right one, or that belongs to an equal query.
 *   TRAIN_SCORED   log(1 + sum exp((c_j - c_i) / t)) over all pairs i and j of the step of which i has the larger number, c = u . u'
 *                  (CoSENT; Su, 2022). It is one number for the step, counted as the mean of its pairs.
 *
 * With several numbers of dimensions (llm_training_params.dim), it is the mean of the losses of vectors that are cut to them
 * (Kusupati et al., 2022).
 *
 * Of models that score, x: -log softmax(x) at the text that belongs to the query, among those of its own group; and the cross entropy of
 * sigmoid(x) with the number.
 *
 * The gradient by a vector depends on all others of the step. So a first pass computes them, and a second one the gradients by the weights, with
 * the gradients by the vectors as its input (Gao et al., 2021): a step may have more texts than run at once. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/xxh64.h"
#include "training.h"

/* The items of a step. */
typedef struct scene {
    llm_training *t;
    const train_data *d;
    const int64_t *item;
    int64_t n, n_out;
    int64_t first,
        end; /* the items of which gradients are made, and whose losses are counted: a part of the step */
    double *row;      /* [n][n_out]: what the model says of each: a vector, or a score */
    double *gradient; /* [n][n_out]: of the loss, by these */
    double *unit,
        *by; /* [n][n_out]: vectors of length 1, cut to some dimensions, and the gradient by them */
    double *length;     /* [n]: what they were divided by */
    double *like;       /* [n]: room */
    uint64_t *identity; /* [n]: of a text's tokens */
} scene;

/* --- passes ----------------------------------------------------------------------------------- */

static void range_of(const scene *s, int64_t n, int64_t *first, int64_t *end) {
    const llm_train_output out = llm_trainer_output(s->t->trainer);
    llm_output_range(&out.rows, out.sees_all, s->t->pooling, 0, n, first, end);
}

/* Adds the rows of what has run to those of items from `at` on. Only the direction of the sum counts, so it is as good as the mean. */
static void take_rows(scene *s, int64_t at) {
    const train_load *l = &s->t->load;
    const float *row = l->row;
    for (int64_t i = 0; i < l->n_seq; row += l->length[i++] * s->n_out) {
        int64_t first, end;
        double *to = s->row + (at + i) * s->n_out;
        range_of(s, l->length[i], &first, &end);
        for (int64_t k = first; k < end; k++)
            for (int64_t j = 0; j < s->n_out; j++)
                to[j] += (double)row[k * s->n_out + j];
    }
}

static void give_gradients(const scene *s, int64_t at) {
    const train_load *l = &s->t->load;
    float *row = l->row;
    memset(row, 0, (size_t)(l->n * s->n_out) * sizeof *row);
    for (int64_t i = 0; i < l->n_seq; row += l->length[i++] * s->n_out) {
        int64_t first, end;
        const double *from = s->gradient + (at + i) * s->n_out;
        range_of(s, l->length[i], &first, &end);
        for (int64_t k = first; k < end; k++)
            for (int64_t j = 0; j < s->n_out; j++)
                row[k * s->n_out + j] = (float)from[j];
    }
}

/* Runs what is loaded, the items from `at` on. */
static ggl_status run_load(scene *s, bool learn, int64_t at, ggl_error *err) {
    llm_training *t = s->t;
    llm_train_batch b = llm_train_load_batch(&t->load);
    if (atomic_load(&t->stops))
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    if (learn) {
        give_gradients(s, at);
        b.gradient = t->load.row;
        return llm_trainer_add(t->trainer, &b, NULL, err);
    }
    const ggl_status st = llm_trainer_look(t->trainer, &b, t->load.row, err);
    if (st == GGL_OK)
        take_rows(s, at);
    return st;
}

/* Computes the model's output of all items, or the gradients of those of the part. */
static ggl_status pass(scene *s, bool learn, ggl_error *err) {
    const int64_t end = learn ? s->end : s->n;
    ggl_status st = GGL_OK;
    for (int64_t i = learn ? s->first : 0, some; i < end && st == GGL_OK; i += some) {
        some = llm_train_load_fill(&s->t->load, s->d, s->item + i, end - i, NULL, 1);
        st = run_load(s, learn, i, err);
    }
    return st;
}

/* --- vectors ---------------------------------------------------------------------------------- */

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_times(double *to, const double *x, double by, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        to[i] += by * x[i];
}

static const double *unit(const scene *s, int64_t i) {
    return s->unit + i * s->n_out;
}

static double *by(const scene *s, int64_t i) {
    return s->by + i * s->n_out;
}

/* Cuts the vectors to n_dims numbers, of length 1. */
static void cut(scene *s, int64_t n_dims) {
    memset(s->by, 0, (size_t)(s->n * s->n_out) * sizeof *s->by);
    for (int64_t i = 0; i < s->n; i++) {
        const double *row = s->row + i * s->n_out;
        const double length = sqrt(dot(row, row, n_dims));
        s->length[i] = length > 0 ? length : 1;
        for (int64_t k = 0; k < n_dims; k++)
            s->unit[i * s->n_out + k] = row[k] / s->length[i];
    }
}

/* Adds `share` times the gradient by the cut vectors to that by the rows: what lies across the vector turns it. */
static void uncut(scene *s, int64_t n_dims, double share) {
    for (int64_t i = 0; i < s->n; i++) {
        double *to = s->gradient + i * s->n_out;
        const double along = dot(by(s, i), unit(s, i), n_dims), per = share / s->length[i];
        for (int64_t k = 0; k < n_dims; k++)
            to[k] += per * (by(s, i)[k] - along * unit(s, i)[k]);
    }
}

/* --- losses ----------------------------------------------------------------------------------- */

static double temperature(const scene *s) {
    return s->t->p.contrast_temp;
}

/* The item after the group that begins at item i of the scene. */
static int64_t group_end(const scene *s, int64_t i) {
    return i + llm_train_data_group(s->d, s->item[i]);
}

/* Makes the shares of a softmax over x[n] in place; what is -INFINITY has none. Returns the logarithm of the sum. */
static double softmax(double *x, int64_t n) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    const double log_sum = top + log(sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = exp(x[i] - log_sum);
    return log_sum;
}

/* True if text k, of the group that begins at `group`, is to be far from the query whose group begins at i. */
static bool is_negative(const scene *s, int64_t i, int64_t group, int64_t k) {
    const bool positive = k == group + 1, same_query = s->identity[group] == s->identity[i];
    return s->identity[k] != s->identity[i + 1] && !(positive && same_query);
}

/* How near each text is to the query of the group that begins at i: s->like, -INFINITY of those that are not compared. True: the right one is
 * the nearest. */
static bool compare(scene *s, int64_t i, int64_t n_dims) {
    double nearest = -INFINITY;
    for (int64_t group = 0, end; group < s->n; group = end) {
        end = group_end(s, group);
        s->like[group] = -INFINITY;
        for (int64_t k = group + 1; k < end; k++) {
            const bool right = k == i + 1, counts = right || is_negative(s, i, group, k);
            s->like[k] = counts ? dot(unit(s, i), unit(s, k), n_dims) / temperature(s) : -INFINITY;
            nearest = right ? nearest : fmax(nearest, s->like[k]);
        }
    }
    return s->like[i + 1] > nearest;
}

/* The loss of who thinks all texts equally near that compare() has found. */
static double guessed(const scene *s) {
    int64_t n = 0;
    for (int64_t k = 0; k < s->n; k++)
        n += s->like[k] > -INFINITY;
    return log((double)n);
}

/* Sets the gradient by the cut vectors, each group's times `weight`, and returns the loss. Adds to *of what is right, and the loss of guessing. */
static double of_matches(scene *s, int64_t n_dims, double weight, train_sum *of) {
    double loss = 0;
    for (int64_t i = 0; i < s->n; i = group_end(s, i)) {
        const bool is_nearest = compare(s, i, n_dims), counts = i >= s->first && i < s->end;
        of->guessing += counts ? guessed(s) : 0;
        const double right = s->like[i + 1], of_one = softmax(s->like, s->n) - right;
        of->n_right += counts && is_nearest;
        loss += counts ? of_one : 0;
        s->like[i + 1] -= 1;
        for (int64_t k = 0; k < s->n; k++) {
            const double slope = s->like[k] * weight / temperature(s);
            if (slope != 0) {
                add_times(by(s, i), unit(s, k), slope, n_dims);
                add_times(by(s, k), unit(s, i), slope, n_dims);
            }
        }
    }
    return loss;
}

static double score(const scene *s, int64_t i) {
    return llm_train_data_score(s->d, s->item[i]);
}

/* As of_matches, for pairs with numbers. */
static double of_scored(scene *s, int64_t n_dims, double weight, train_sum *of) {
    const double t = temperature(s), n = (double)s->n / 2;
    double top = 0, sum = 0;
    (void)of;
    for (int64_t i = 0; i < s->n; i += 2)
        s->like[i] = dot(unit(s, i), unit(s, i + 1), n_dims) / t;
    for (int64_t i = 0; i < s->n; i += 2)
        for (int64_t j = 0; j < s->n; j += 2)
            if (score(s, i) > score(s, j))
                top = fmax(top, s->like[j] - s->like[i]);
    sum = exp(-top);
    for (int64_t i = 0; i < s->n; i += 2)
        for (int64_t j = 0; j < s->n; j += 2)
            if (score(s, i) > score(s, j))
                sum += exp(s->like[j] - s->like[i] - top);
    for (int64_t i = 0; i < s->n; i += 2) {
        double slope = 0; /* of the loss by like[i] */
        for (int64_t j = 0; j < s->n; j += 2) {
            if (score(s, i) > score(s, j))
                slope -= exp(s->like[j] - s->like[i] - top) / sum;
            else if (score(s, i) < score(s, j))
                slope += exp(s->like[i] - s->like[j] - top) / sum;
        }
        slope *= weight * n / t;
        add_times(by(s, i), unit(s, i + 1), slope, n_dims);
        add_times(by(s, i + 1), unit(s, i), slope, n_dims);
    }
    return (double)(s->end - s->first) / 2 * (top + log(sum));
}

static void of_vectors(scene *s, double weight, train_sum *sum) {
    const llm_training_params *p = &s->t->p;
    const size_t n_cuts = p->n_dims > 0 ? p->n_dims : 1;
    const double share = 1 / (double)n_cuts;
    for (size_t c = 0; c < n_cuts; c++) {
        const int64_t n_dims = p->n_dims > 0 ? p->dim[c] : s->n_out;
        train_sum of = {0};
        cut(s, n_dims);
        sum->loss += share * (s->t->kind == TRAIN_MATCHES ? of_matches(s, n_dims, weight, &of)
                                                          : of_scored(s, n_dims, weight, &of));
        sum->n_right += share * of.n_right;
        sum->guessing += share * of.guessing;
        uncut(s, n_dims, share);
    }
}

/* The same for models that score. */
static void of_scores(scene *s, double weight, train_sum *sum) {
    for (int64_t i = s->first, end; i < s->end; i = end) {
        end = group_end(s, i);
        const int64_t n = end - i;
        if (s->t->kind == TRAIN_SCORED) {
            const double x = s->row[i], y = score(s, i), less = exp(-fabs(x));
            sum->loss += log1p(less) + fmax(x, 0) - y * x;
            s->gradient[i] = weight * ((x > 0 ? 1 : less) / (1 + less) - y);
            continue;
        }
        double nearest = -INFINITY;
        memcpy(s->like, s->row + i, (size_t)n * sizeof *s->like);
        for (int64_t k = 1; k < n; k++)
            nearest = fmax(nearest, s->like[k]);
        sum->n_right += s->like[0] > nearest;
        sum->guessing += log((double)n);
        sum->loss += softmax(s->like, n) - s->row[i];
        s->like[0] -= 1;
        for (int64_t k = 0; k < n; k++)
            s->gradient[i + k] = weight * s->like[k];
    }
}

/* --- a step ----------------------------------------------------------------------------------- */

/* Numbers the texts by their tokens. */
static ggl_status identify(scene *s, ggl_error *err) {
    int64_t most = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t n = llm_train_data_length(s->d, s->item[i]);
        most = n > most ? n : most;
    }
    int32_t *token = ggl_calloc((size_t)most, sizeof *token);
    for (int64_t i = 0; i < s->n && token; i++) {
        ggl_xxh64 hash;
        ggl_xxh64_begin(&hash);
        llm_train_data_get(s->d, s->item[i], token, NULL, NULL);
        ggl_xxh64_add(&hash, token,
                      (size_t)llm_train_data_length(s->d, s->item[i]) * sizeof *token);
        s->identity[i] = ggl_xxh64_end(&hash);
    }
    ggl_free(token);
    return token ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a step");
}

/* row: what the model has said of these items; NULL: there is room for it. */
static ggl_status scene_init(scene *s, double *row, ggl_error *err) {
    const size_t n = (size_t)s->n, n_out = (size_t)s->n_out;
    s->row = row ? row : ggl_calloc(n * n_out, sizeof *s->row);
    s->gradient = ggl_calloc(n * n_out, sizeof *s->gradient);
    s->unit = ggl_calloc(n * n_out, sizeof *s->unit);
    s->by = ggl_calloc(n * n_out, sizeof *s->by);
    s->length = ggl_calloc(n, sizeof *s->length);
    s->like = ggl_calloc(n, sizeof *s->like);
    s->identity = ggl_calloc(n, sizeof *s->identity);
    return s->row && s->gradient && s->unit && s->by && s->length && s->like && s->identity
               ? identify(s, err)
               : ggl_fail(err, GGL_NOMEM, "out of memory for a step of %" PRId64 " texts", s->n);
}

static void scene_fini(scene *s) {
    ggl_free(s->row);
    ggl_free(s->gradient);
    ggl_free(s->unit);
    ggl_free(s->by);
    ggl_free(s->length);
    ggl_free(s->like);
    ggl_free(s->identity);
}

/* Adds the loss of items first .. end - 1 to *sum, which are compared with all n, and learns if `weight`, of each group, is not 0.
 * *looked: the model's output of all n; NULL: it is made, and kept there. looked NULL: it is made, and not kept. */
static ggl_status of_some(llm_training *t, const train_data *d, const train_step_items *of,
                          double weight, double **looked, train_sum *sum, ggl_error *err) {
    scene s = {.t = t,
               .d = d,
               .item = of->item,
               .n = of->n,
               .n_out = llm_trainer_output(t->trainer).rows.n,
               .first = of->first,
               .end = of->end};
    ggl_status st = scene_init(&s, looked ? *looked : NULL, err);
    if (st == GGL_OK && !(looked && *looked))
        st = pass(&s, false, err);
    if (st == GGL_OK) {
        const double n =
            (double)llm_train_data_n_groups(d, of->item + of->first, of->end - of->first);
        sum->n += n;
        sum->n_judged += t->kind == TRAIN_MATCHES ? n : 0;
        if (t->pooling == LLM_POOL_RANK)
            of_scores(&s, weight, sum);
        else
            of_vectors(&s, weight, sum);
        if (weight != 0)
            st = pass(&s, true, err);
    }
    if (looked && st == GGL_OK) {
        *looked = s.row;
        s.row = NULL;
    } else if (looked) {
        *looked = NULL; /* is freed with the scene */
    }
    scene_fini(&s);
    return st;
}

ggl_status llm_train_contrast(llm_training *t, const train_step_items *of, double total,
                              train_sum *sum, ggl_error *err) {
    return of_some(t, t->data, of, 1 / total, &t->looked, sum, err);
}

void llm_train_contrast_forget(llm_training *t) {
    ggl_free(t->looked);
    t->looked = NULL;
}

ggl_status llm_train_measure_contrast(llm_training *t, const train_data *d, const int64_t *item,
                                      int64_t n, train_sum *sum, ggl_error *err) {
    ggl_status st = GGL_OK;
    /* as many groups at once as a step has, so that the losses can be compared; none is left alone */
    for (int64_t i = 0, end; i < n && st == GGL_OK; i = end) {
        int64_t n_groups = llm_train_step_groups(t, llm_train_data_n_groups(d, item + i, n - i));
        for (end = i; n_groups > 0; n_groups--)
            end += llm_train_data_group(d, item[end]);
        const train_step_items of = {.item = item + i, .n = end - i, .end = end - i};
        st = of_some(t, d, &of, 0, NULL, sum, err);
    }
    return st;
}

ggl_status llm_train_check_output(const llm_training *t, ggl_error *err) {
    const llm_train_output out = llm_trainer_output(t->trainer);
    int64_t first, end;
    llm_output_range(&out.rows, out.sees_all, t->pooling, 0, 2, &first, &end);
    if (t->pooling == LLM_POOL_RANK && (out.rows.n != 1 || end - first != 1))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model gives %" PRId64
                        " scores to %s: only one score for each two texts can be learned",
                        out.rows.n, end - first == 1 ? "two texts" : "each token");
    for (size_t i = 0; i < t->p.n_dims; i++)
        if (t->p.dim[i] < 1 || t->p.dim[i] > out.rows.n)
            return ggl_fail(err, GGL_USAGE,
                            "dim (--dims) is %" PRId64 "; the model's vectors have 1 to %" PRId64
                            " numbers",
                            t->p.dim[i], out.rows.n);
    return GGL_OK;
}
