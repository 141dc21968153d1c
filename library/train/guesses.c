/* Layers that guess ahead: they learn what the model says, which stays as it is.
 *
 * With t[i] the tokens of a text, y[i] the row of the model that such layers read, and p[i] its probabilities of the token after t[i]: guess d = 0, 1, ..
 * of a chain reads t[i] and a row, and is compared with p[i]. The row is
 *
 *   d = 0                  y[i - 1]
 *   0 < d < n_layers       what layer d - 1 returned for t[i - 1]; or, of layers apart, y[i - 1 - d]
 *   else                   what the last layer returned for t[i - 1] when it made guess d - 1
 *
 * The loss is the mean of those of all guesses of a chain, in which each counts DECAY times the one before it.
 *
 * So each guess is a pass over the text, which reads rows of passes before it; their gradients go the same way back. All elements of a pass run at once, and
 * each attends to all that are before it. That is as in use for guesses with layers of their own. But a guess that the last layer makes of its own row attends, in
 * use, to elements with rows of the model, and only to those of its own chain with rows of guesses. So in such a pass a chain begins at each STRIDE-th token
 * only, others in each step; all other elements have the row that guess n_layers - 1 has. What is left of the difference are the elements of the chains
 * before, one of STRIDE for each guess. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "training.h"

#define DECAY 0.7
enum { STRIDE = 4 };

struct train_guesses {
    llm_train_guesses of;
    int depth;      /* guesses in a chain */
    int64_t stride; /* tokens between the beginnings of two chains */
    int64_t phase;
    double share[TRAIN_MOST_GUESSES]; /* of each guess in the loss */
    float *heard;                     /* [cap][n_row]: what the model says */
    float *told, *back;  /* [depth][cap][n_row]: what each pass returned, and the gradient by it */
    float *row, *by_row; /* [cap][n_row]: what a pass reads, and the gradient by that */
    float *score;        /* [cap][n_vocab] */
    float *weight;       /* [cap]: of a pass */
    int32_t *best;       /* [cap]: the likeliest token to the model */
    bool *right, *was_right; /* [cap]: it is that of this guess, and of the one before it */
    int64_t *place;          /* [cap]: in its text */
};

/* --- which rows are read ---------------------------------------------------------------------- */

static int last_of(const train_guesses *g) {
    return g->of.n_layers - 1;
}

static int layer_of(const train_guesses *g, int d) {
    return d < last_of(g) ? d : last_of(g);
}

/* How many elements after the beginning of a chain the one at a place in its text is. */
static int64_t from_begin(const train_guesses *g, int64_t place) {
    return place > 0 ? (place - 1 + g->phase) % g->stride : g->stride;
}

/* The pass whose row of the token before is read; -1: it is the model's. */
static int source_of(const train_guesses *g, int d, int64_t place) {
    if (d > last_of(g))
        return from_begin(g, place) < d - last_of(g) ? d - 1 : source_of(g, last_of(g), place);
    return g->of.apart ? -1 : d - 1;
}

/* How much guess d of the element counts, for a token that counts 1. */
static double weight_of(const train_guesses *g, int d, int64_t place) {
    if (place < d)
        return 0;
    if (d <= last_of(g))
        return g->share[d];
    return from_begin(g, place) == d - last_of(g) - 1 ? g->share[d] * (double)g->stride : 0;
}

/* Sets what the n elements read. */
static void make_rows(train_guesses *g, int d, int64_t n, int64_t cap) {
    const size_t n_row = (size_t)g->of.n_row;
    const int64_t late = g->of.apart ? layer_of(g, d) : 0;
    for (int64_t i = 0; i < n; i++) {
        const int s = source_of(g, d, g->place[i]);
        const int64_t before = s < 0 ? 1 + late : 1;
        const float *from = s < 0 ? g->heard : g->told + (size_t)(s * cap) * n_row;
        if (g->place[i] < before)
            memset(g->row + (size_t)i * n_row, 0, n_row * sizeof *g->row);
        else
            memcpy(g->row + (size_t)i * n_row, from + (size_t)(i - before) * n_row,
                   n_row * sizeof *g->row);
    }
}

/* Adds the gradients by what was read to those by what other passes have returned. */
static void give_back(train_guesses *g, int d, int64_t n, int64_t cap) {
    const int64_t n_row = g->of.n_row;
    for (int64_t i = 0; i < n; i++) {
        const int s = source_of(g, d, g->place[i]);
        for (int64_t k = 0; k < n_row && s >= 0 && g->place[i] > 0; k++)
            g->back[(s * cap + i - 1) * n_row + k] += g->by_row[i * n_row + k];
    }
}

static void set_weights(train_guesses *g, int d, const train_load *l) {
    for (int64_t i = 0; i < l->n; i++)
        g->weight[i] = l->weight[i] * (float)weight_of(g, d, g->place[i]);
}

/* --- what the model says ---------------------------------------------------------------------- */

/* The largest number of x[n]. */
static int64_t largest(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = x[k] > x[best] ? k : best;
    return best;
}

/* Returns log sum exp(x). */
static double log_sum(const float *x, int64_t n, double top) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += exp((double)x[k] - top);
    return top + log(sum);
}

/* Sets the rows and probabilities of the model for what is loaded. */
static ggl_status hear(llm_training *t, const llm_train_batch *b, ggl_error *err) {
    train_guesses *g = t->guesses;
    train_load *l = &t->load;
    const int64_t n_vocab = llm_trainer_n_vocab(t->trainer);
    const ggl_status st = llm_trainer_hear(t->trainer, b, g->heard, l->share, err);
    for (int64_t i = 0; i < l->n && st == GGL_OK; i++) {
        float *x = l->share + i * n_vocab;
        g->best[i] = (int32_t)largest(x, n_vocab);
        const double all = log_sum(x, n_vocab, (double)x[g->best[i]]);
        for (int64_t k = 0; k < n_vocab; k++)
            x[k] = (float)exp((double)x[k] - all);
    }
    for (int64_t i = 0, k = 0; i < l->n_seq; i++)
        for (int64_t j = 0; j < l->length[i]; j++)
            g->place[k++] = j;
    return st;
}

/* --- passes ----------------------------------------------------------------------------------- */

static ggl_status learn(llm_training *t, llm_train_batch *b, train_sum *sum, ggl_error *err) {
    train_guesses *g = t->guesses;
    const int64_t n = t->load.n, cap = t->load.cap, n_row = g->of.n_row;
    ggl_status st = GGL_OK;
    g->phase = t->step % g->stride;
    for (int d = 0; d + 1 < g->depth && st == GGL_OK; d++) {
        make_rows(g, d, n, cap);
        b->layer = layer_of(g, d);
        st = llm_trainer_look(t->trainer, b, g->told + d * cap * n_row, err);
    }
    memset(g->back, 0, (size_t)(g->depth * cap * n_row) * sizeof *g->back);
    b->weight = g->weight;
    for (int d = g->depth - 1; d >= 0 && st == GGL_OK; d--) {
        double loss;
        make_rows(g, d, n, cap);
        set_weights(g, d, &t->load);
        b->layer = layer_of(g, d);
        b->gradient = g->back + d * cap * n_row;
        b->row_gradient = d > 0 ? g->by_row : NULL;
        st = llm_trainer_add(t->trainer, b, &loss, err);
        if (st == GGL_OK)
            sum->loss += loss;
        if (st == GGL_OK && d > 0)
            give_back(g, d, n, cap);
    }
    return st;
}

/* Adds the loss of guess d, and whether it is right after guesses that were, in texts that go on as the model would. */
static void judge(llm_training *t, int d, train_sum *sum) {
    train_guesses *g = t->guesses;
    const train_load *l = &t->load;
    const int64_t n_vocab = llm_trainer_n_vocab(t->trainer);
    const double part = t->p.teacher_share;
    for (int64_t i = 0; i < l->n; i++) {
        const float *x = g->score + i * n_vocab, *share = l->share + i * n_vocab;
        const double weight = (double)g->weight[i];
        const int64_t best = largest(x, n_vocab);
        g->right[i] = best == g->best[i];
        if (weight == 0)
            continue;
        const double all = log_sum(x, n_vocab, (double)x[best]);
        double said = 0;
        for (int64_t k = 0; k < n_vocab; k++)
            said += (double)share[k] * (double)x[k];
        sum->loss += weight * (all - part * said - (1 - part) * (double)x[l->target[i]]);
        const bool reached =
            d == 0 || (g->was_right[i - 1] && l->token[i] == g->best[i - 1]); /* place >= d */
        /* each guess of a chain counts as much as others do */
        const double times = reached ? weight / g->share[d] : 0;
        sum->n_judged += times;
        sum->n_right += g->right[i] ? times : 0;
    }
}

static ggl_status measure(llm_training *t, llm_train_batch *b, train_sum *sum, ggl_error *err) {
    train_guesses *g = t->guesses;
    const int64_t n = t->load.n, cap = t->load.cap;
    ggl_status st = GGL_OK;
    g->phase = 0;
    for (int d = 0; d < g->depth && st == GGL_OK; d++) {
        bool *was_right = g->right;
        g->right = g->was_right;
        g->was_right = was_right;
        make_rows(g, d, n, cap);
        set_weights(g, d, &t->load);
        b->layer = layer_of(g, d);
        st = llm_trainer_guess(t->trainer, b, g->told + d * cap * g->of.n_row, g->score, err);
        if (st == GGL_OK)
            judge(t, d, sum);
    }
    return st;
}

/* --- items ------------------------------------------------------------------------------------ */

static ggl_status run_load(llm_training *t, bool learns, train_sum *sum, ggl_error *err) {
    llm_train_batch b = llm_train_load_batch(&t->load);
    if (atomic_load(&t->stops))
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    ggl_status st = hear(t, &b, err);
    b.row = t->guesses->row;
    if (st == GGL_OK)
        st = learns ? learn(t, &b, sum, err) : measure(t, &b, sum, err);
    return st;
}

ggl_status llm_train_guess(llm_training *t, const train_data *d, bool learns, const int64_t *item,
                           int64_t n, double weight, train_sum *sum, ggl_error *err) {
    ggl_status st = GGL_OK;
    llm_train_load_clear(&t->load);
    for (int64_t i = 0; i < n && st == GGL_OK; i++) {
        if (llm_train_load_add(&t->load, d, item[i], weight))
            continue;
        st = run_load(t, learns, sum, err);
        llm_train_load_clear(&t->load);
        llm_train_load_add(&t->load, d, item[i], weight); /* an item alone has room */
    }
    return st == GGL_OK && n > 0 ? run_load(t, learns, sum, err) : st;
}

/* --- making ----------------------------------------------------------------------------------- */

ggl_status llm_train_guesses_new(llm_training *t, ggl_error *err) {
    train_guesses *g = t->guesses = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for guesses");
    g->of = llm_trainer_guesses(t->trainer);
    g->depth = (int)t->p.draft_depth;
    if (g->depth == 0)
        g->depth = g->of.n_layers > TRAIN_GUESSES ? g->of.n_layers : TRAIN_GUESSES;
    if (g->depth < g->of.n_layers || g->depth > TRAIN_MOST_GUESSES)
        return ggl_fail(err, GGL_USAGE,
                        "draft_depth is %d; the model has %d layers that guess, and each of them "
                        "makes one of %d guesses at most",
                        g->depth, g->of.n_layers, TRAIN_MOST_GUESSES);
    t->p.draft_depth = g->depth;
    g->stride = STRIDE;
    double all = 0;
    for (int d = 0; d < g->depth; d++)
        all += g->share[d] = pow(DECAY, d);
    for (int d = 0; d < g->depth; d++)
        g->share[d] /= all;
    const size_t cap = (size_t)t->p.n_ubatch, n_row = (size_t)g->of.n_row,
                 all_rows = (size_t)g->depth * cap * n_row;
    g->heard = ggl_calloc(cap, n_row * sizeof *g->heard);
    g->told = ggl_calloc(all_rows, sizeof *g->told);
    g->back = ggl_calloc(all_rows, sizeof *g->back);
    g->row = ggl_calloc(cap, n_row * sizeof *g->row);
    g->by_row = ggl_calloc(cap, n_row * sizeof *g->by_row);
    g->score = ggl_calloc(cap, (size_t)llm_trainer_n_vocab(t->trainer) * sizeof *g->score);
    g->weight = ggl_calloc(cap, sizeof *g->weight);
    g->best = ggl_calloc(cap, sizeof *g->best);
    g->right = ggl_calloc(cap, sizeof *g->right);
    g->was_right = ggl_calloc(cap, sizeof *g->was_right);
    g->place = ggl_calloc(cap, sizeof *g->place);
    return g->heard && g->told && g->back && g->row && g->by_row && g->score && g->weight &&
                   g->best && g->right && g->was_right && g->place
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory for guesses");
}

void llm_train_guesses_free(train_guesses *g) {
    if (!g)
        return;
    ggl_free(g->heard);
    ggl_free(g->told);
    ggl_free(g->back);
    ggl_free(g->row);
    ggl_free(g->by_row);
    ggl_free(g->score);
    ggl_free(g->weight);
    ggl_free(g->best);
    ggl_free(g->right);
    ggl_free(g->was_right);
    ggl_free(g->place);
    ggl_free(g);
}
