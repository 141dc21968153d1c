/* Layers that guess ahead, of the model itself or of another one that guesses for it (EAGLE): they learn what the model says, which stays as it is.
 *
 * With t[i] the tokens of a text, y[i] the row of the model that such layers read, and p[i] its probabilities of the token after t[i]: guess d = 0, 1, ..
 * of a chain reads t[i] and a row, and is compared with p[i]. The row is
 *
 *   d = 0                  y[i - 1]
 *   0 < d < n_layers       what layer d - 1 returned for t[i - 1]; or, of layers apart, y[i - 1 - d]
 *   else                   what the last layer returned for t[i - 1] when it made guess d - 1
 *
 * A model that guesses for another one reads rows of layers of that in place of y. If it has scores for some tokens only, the probabilities are those among
 * them, and a token counts by their sum.
 *
 * The loss is the mean of those of all guesses of a chain, in which each counts DECAY times the one before it.
 *
 * So each guess is a pass over the text, which reads the rows of the pass before it; their gradients go the same way back. All elements of a pass run at once, and each
 * attends to all that are before it in that pass. That is as in use for guesses with layers of their own. But a guess that the last layer makes of its own row
 * attends, in use, to elements with rows of the model for all tokens that are known, and to such rows only for guesses of its own chain; here to its own rows
 * everywhere. Passes in which only some tokens, each fourth or second, had such rows are nearer to use, but learned more slowly, as fewer guesses count: after
 * as many steps, these guessed worse. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "training.h"

#define DECAY 0.7

struct train_guesses {
    llm_train_guesses of;
    int depth; /* guesses in a chain */
    int64_t n_vocab;
    double share[TRAIN_MOST_GUESSES]; /* of each guess in the loss */
    int32_t *
        score_of; /* [n_vocab]: the score of each token; -1: it has none. NULL: that of its number */
    float *logits; /* [n_vocab]: of a token, if there are fewer scores */
    /* What is loaded, as guesses run it: without the first tokens of texts, if these are not run. */
    int64_t n, n_seq, cap;
    int64_t *length, *place,
        *at; /* place: in its text, without the first token; at: in what is loaded */
    int32_t *token, *target; /* target: a score */
    int32_t *best;           /* the likeliest token to the model */
    float *mass;         /* how much it counts: the probability of the tokens that have scores */
    float *heard;        /* [cap][n_heard]: what the model says of what is loaded */
    float *told, *back;  /* [depth][cap][n_row]: what each pass returned, and the gradient by it */
    float *row, *by_row; /* [cap][n_row]: what a pass reads, and the gradient by that */
    float *feature, *given; /* [cap][n_heard], [cap]: of a model that guesses for another one */
    float *score;           /* [cap][n_scores] */
    float *weight;          /* [cap]: of a pass */
    bool *right,
        *was_right; /* [cap]: the best score is that of `best`, in this guess and the one before it */
};

/* --- which rows are read ---------------------------------------------------------------------- */

static int last_of(const train_guesses *g) {
    return g->of.n_layers - 1;
}

static int layer_of(const train_guesses *g, int d) {
    return d < last_of(g) ? d : last_of(g);
}

/* The pass whose row of the token before is read; -1: it is the model's. */
static int source_of(const train_guesses *g, int d) {
    return g->of.apart && d <= last_of(g) ? -1 : d - 1;
}

/* How much guess d of the element counts, for a token that counts 1: nothing if the text has too few tokens before. */
static double weight_of(const train_guesses *g, int d, int64_t place) {
    return place < d ? 0 : g->share[d];
}

/* Sets what the elements read. */
static void make_rows(train_guesses *g, int d) {
    const size_t n_row = (size_t)g->of.n_row, size = n_row * sizeof *g->row;
    const int64_t late = g->of.apart ? layer_of(g, d) : 0;
    const int s = source_of(g, d);
    for (int64_t i = 0; i < g->n; i++) {
        float *to = g->row + (size_t)i * n_row;
        g->given[i] = s >= 0 && g->place[i] > 0; /* of the first one there is none */
        if (s < 0 && !g->feature && g->place[i] > late)
            memcpy(to, g->heard + (size_t)(i - 1 - late) * n_row, size);
        else if (s >= 0 && g->place[i] > 0)
            memcpy(to, g->told + (size_t)(s * g->cap + i - 1) * n_row, size);
        else
            memset(to, 0, size);
    }
}

/* Adds the gradients by what was read to those by what other passes have returned. */
static void give_back(train_guesses *g, int d) {
    const int64_t n_row = g->of.n_row;
    const int s = source_of(g, d);
    for (int64_t i = 0; i < g->n && s >= 0; i++)
        for (int64_t k = 0; k < n_row && g->place[i] > 0; k++)
            g->back[(s * g->cap + i - 1) * n_row + k] += g->by_row[i * n_row + k];
}

static void set_weights(train_guesses *g, int d, const train_load *l) {
    for (int64_t i = 0; i < g->n; i++)
        g->weight[i] = l->weight[g->at[i]] * g->mass[i] * (float)weight_of(g, d, g->place[i]);
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

/* Sets the probabilities of the tokens that have scores, those of element i, and how much it counts, from the logits of its token. */
static void set_shares(llm_training *t, int64_t i, const float *logits) {
    train_guesses *g = t->guesses;
    const train_load *l = &t->load;
    float *share = l->share + i * g->of.n_scores;
    const int32_t next = l->target[g->at[i]];
    g->best[i] = (int32_t)largest(logits, g->n_vocab);
    g->target[i] = next;
    g->mass[i] = 1;
    double all = log_sum(logits, g->n_vocab, (double)logits[g->best[i]]), sum = 0;
    if (g->score_of) {
        memcpy(g->logits, logits, (size_t)g->n_vocab * sizeof *logits);
        logits = g->logits;
        for (int64_t k = 0; k < g->of.n_scores; k++)
            sum += exp((double)logits[g->of.token[k]] - all);
        all += log(sum); /* of -infinity no share counts */
        g->target[i] = g->score_of[next] < 0 ? 0 : g->score_of[next];
        g->mass[i] = g->score_of[next] < 0 && t->p.teacher_share < 1 ? 0 : (float)sum;
    }
    for (int64_t k = 0; k < g->of.n_scores; k++) {
        const float x = logits[g->score_of ? g->of.token[k] : k];
        share[k] = g->mass[i] > 0 ? (float)exp((double)x - all) : 0;
    }
}

/* Sets the elements of what is loaded, with what the model says of them. */
static ggl_status hear(llm_training *t, ggl_error *err) {
    train_guesses *g = t->guesses;
    train_load *l = &t->load;
    const llm_train_batch b = llm_train_load_batch(l);
    const int64_t first = g->of.from_second, n_heard = g->of.n_heard;
    const ggl_status st = llm_trainer_hear(t->trainer, &b, g->heard, l->share, err);
    g->n = g->n_seq = 0;
    for (int64_t k = 0, at = 0; k < l->n_seq && st == GGL_OK; at += l->length[k++]) {
        for (int64_t i = first; i < l->length[k]; i++, g->n++) {
            g->place[g->n] = i - first;
            g->at[g->n] = at + i;
            g->token[g->n] = l->token[at + i];
            if (g->feature && at + i > 0)
                memcpy(g->feature + g->n * n_heard, g->heard + (at + i - 1) * n_heard,
                       (size_t)n_heard * sizeof *g->feature);
            set_shares(t, g->n, l->share + (at + i) * g->n_vocab);
        }
        if (l->length[k] > first)
            g->length[g->n_seq++] = l->length[k] - first;
    }
    return st;
}

/* --- passes ----------------------------------------------------------------------------------- */

static ggl_status learn(llm_training *t, llm_train_batch *b, train_sum *sum, ggl_error *err) {
    train_guesses *g = t->guesses;
    const int64_t all = g->cap * g->of.n_row;
    ggl_status st = GGL_OK;
    for (int d = 0; d + 1 < g->depth && st == GGL_OK; d++) {
        make_rows(g, d);
        b->layer = layer_of(g, d);
        st = llm_trainer_look(t->trainer, b, g->told + d * all, err);
    }
    memset(g->back, 0, (size_t)(g->depth * all) * sizeof *g->back);
    for (int d = g->depth - 1; d >= 0 && st == GGL_OK; d--) {
        double loss;
        make_rows(g, d);
        set_weights(g, d, &t->load);
        b->layer = layer_of(g, d);
        b->gradient = g->back + d * all;
        b->row_gradient = d > 0 ? g->by_row : NULL;
        st = llm_trainer_add(t->trainer, b, &loss, err);
        if (st == GGL_OK)
            sum->loss += loss;
        if (st == GGL_OK && d > 0)
            give_back(g, d);
    }
    return st;
}

/* Adds the loss of guess d, and whether it is right after guesses that were, in texts that go on as the model would. */
static void judge(llm_training *t, int d, train_sum *sum) {
    train_guesses *g = t->guesses;
    const train_load *l = &t->load;
    const int64_t n = g->of.n_scores;
    const double part = t->p.teacher_share;
    for (int64_t i = 0; i < g->n; i++) {
        const float *x = g->score + i * n, *share = l->share + i * n;
        const double weight = (double)l->weight[g->at[i]] * weight_of(g, d, g->place[i]);
        const int64_t best = largest(x, n);
        const bool reached =
            d == 0 || (g->place[i] >= d && g->was_right[i - 1] && g->token[i] == g->best[i - 1]);
        /* of a chain: all guesses before it were right, too */
        g->right[i] = reached && (g->of.token ? g->of.token[best] : best) == g->best[i];
        if (weight == 0)
            continue;
        const double all = log_sum(x, n, (double)x[best]);
        double said = 0;
        for (int64_t k = 0; k < n; k++)
            said += (double)share[k] * (double)x[k];
        sum->loss += weight * (double)g->mass[i] *
                     (all - part * said - (1 - part) * (double)x[g->target[i]]);
        const double times = reached ? weight / g->share[d] : 0;
        sum->n_judged += times;
        sum->n_right += g->right[i] ? times : 0;
    }
}

static ggl_status measure(llm_training *t, llm_train_batch *b, train_sum *sum, ggl_error *err) {
    train_guesses *g = t->guesses;
    ggl_status st = GGL_OK;
    for (int d = 0; d < g->depth && st == GGL_OK; d++) {
        bool *was_right = g->right;
        g->right = g->was_right;
        g->was_right = was_right;
        make_rows(g, d);
        b->layer = layer_of(g, d);
        st = llm_trainer_guess(t->trainer, b, g->told + d * g->cap * g->of.n_row, g->score, err);
        if (st == GGL_OK)
            judge(t, d, sum);
    }
    return st;
}

/* --- items ------------------------------------------------------------------------------------ */

static ggl_status run_load(llm_training *t, bool learns, train_sum *sum, ggl_error *err) {
    train_guesses *g = t->guesses;
    if (atomic_load(&t->stops))
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    ggl_status st = hear(t, err);
    llm_train_batch b = {.token = g->token,
                         .target = g->target,
                         .weight = g->weight,
                         .length = g->length,
                         .n_seq = g->n_seq,
                         .input = (const void *const *)&t->load.share,
                         .row = g->row,
                         .feature = g->feature,
                         .given = g->given};
    if (st == GGL_OK)
        st = learns ? learn(t, &b, sum, err) : measure(t, &b, sum, err);
    return st;
}

ggl_status llm_train_guess(llm_training *t, const train_data *d, bool learns, const int64_t *item,
                           int64_t n, double weight, train_sum *sum, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int64_t i = 0, some; i < n && st == GGL_OK; i += some) {
        some = llm_train_load_fill(&t->load, d, item + i, n - i, NULL, weight);
        st = run_load(t, learns, sum, err);
    }
    return st;
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
                        "draft_depth (--draft-depth) is %d; the model has %d layers that guess, "
                        "and each of them "
                        "makes one of %d guesses at most",
                        g->depth, g->of.n_layers, TRAIN_MOST_GUESSES);
    t->p.draft_depth = g->depth;
    double all = 0;
    for (int d = 0; d < g->depth; d++)
        all += g->share[d] = pow(DECAY, d);
    for (int d = 0; d < g->depth; d++)
        g->share[d] /= all;
    g->n_vocab = llm_trainer_n_vocab(t->trainer);
    g->cap = t->p.n_ubatch;
    const size_t cap = (size_t)g->cap, n_row = (size_t)g->of.n_row, n_heard = (size_t)g->of.n_heard,
                 all_rows = (size_t)g->depth * cap * n_row;
    bool ok = true;
#define MAKE(array, n) ok = (g->array = ggl_calloc(n, sizeof *g->array)) != NULL && ok
    MAKE(length, cap);
    MAKE(place, cap);
    MAKE(at, cap);
    MAKE(token, cap);
    MAKE(target, cap);
    MAKE(best, cap);
    MAKE(mass, cap);
    MAKE(heard, cap * n_heard);
    MAKE(told, all_rows);
    MAKE(back, all_rows);
    MAKE(row, cap * n_row);
    MAKE(by_row, cap * n_row);
    MAKE(given, cap);
    MAKE(score, cap * (size_t)g->of.n_scores);
    MAKE(weight, cap);
    MAKE(right, cap);
    MAKE(was_right, cap);
    if (t->of.draft)
        MAKE(feature, cap * n_heard);
    if (g->of.token) {
        MAKE(logits, (size_t)g->n_vocab);
        MAKE(score_of, (size_t)g->n_vocab);
    }
#undef MAKE
    if (!ok)
        return ggl_fail(err, GGL_NOMEM, "out of memory for guesses");
    for (int64_t i = 0; g->score_of && i < g->n_vocab; i++)
        g->score_of[i] = -1;
    for (int64_t k = 0; g->score_of && k < g->of.n_scores; k++)
        g->score_of[g->of.token[k]] = (int32_t)k;
    return GGL_OK;
}

void llm_train_guesses_free(train_guesses *g) {
    if (!g)
        return;
    void *const of[] = {g->score_of, g->logits, g->length, g->place,  g->at,
                        g->token,    g->target, g->best,   g->mass,   g->heard,
                        g->told,     g->back,   g->row,    g->by_row, g->feature,
                        g->given,    g->score,  g->weight, g->right,  g->was_right};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        ggl_free(of[i]);
    ggl_free(g);
}
