/* Compares gradients with differences of the loss, both in double. */
#include "gradient_check.h"

#include <math.h>

#include "ggl/internal/alloc.h"
#include "llm/internal/rows_gather.h"
#include "llm/internal/trainer.h"

enum { N_SEQ = 3 };

/* Steps of a difference, one after the other until it fits: a large one has an error of its own, a small one is lost in rounding, and one that
 * lets another expert be chosen tells nothing. */
static const float steps[] = {1e-2f, 2.5e-3f, 6e-4f};
enum { N_STEPS = sizeof steps / sizeof *steps };
#define GOOD 1e-3 /* of the largest gradient */

typedef struct check {
    llm_trainer *t;
    llm_train_batch b;
    int32_t *token; /* [N_SEQ * n_tokens + 1] */
    int64_t length[N_SEQ];
    /* of a model whose tokens read something: what all of them read, made up */
    llm_train_reading reading;
    int32_t read[N_SEQ], *text;
    float *row;
    double largest;
} check;

/* splitmix64 (Steele, Lea, Flood, 2014). */
static uint64_t draw(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static ggl_status loss_of(const check *c, double *loss, ggl_error *err) {
    return llm_trainer_evaluate(c->t, &c->b, loss, NULL, err);
}

/* Sets *out to how the loss changes with *x, from a step to both sides. */
static ggl_status difference(const check *c, float *x, float h, double *out, ggl_error *err) {
    const float was = *x, up = was + h, down = was - h;
    double above = NAN, below = NAN;
    *x = up;
    ggl_status st = loss_of(c, &above, err);
    *x = down;
    if (st == GGL_OK)
        st = loss_of(c, &below, err);
    *x = was;
    *out = (above - below) / ((double)up - (double)down);
    return st;
}

static ggl_status compare(const check *c, const llm_train_weight *w, int64_t element,
                          llm_gradient *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    *g = (llm_gradient){.weight = w->name,
                        .element = element,
                        .gradient = (double)w->grad[element],
                        .difference = INFINITY};
    for (int k = 0; k < N_STEPS && st == GGL_OK; k++) {
        double d = NAN;
        st = difference(c, &w->data[element], steps[k], &d, err);
        if (!(fabs(d - g->gradient) >= fabs(g->difference - g->gradient)))
            g->difference = d;
        if (fabs(g->difference - g->gradient) <= GOOD * c->largest)
            break;
    }
    return st;
}

/* By '>', as gcc 12 for aarch64 stops at fmax() of converted numbers in a loop. */
static void find_largest(check *c) {
    for (int k = 0; k < llm_trainer_n_weights(c->t); k++) {
        const llm_train_weight w = llm_trainer_weight(c->t, k);
        for (int64_t i = 0; i < llm_train_weight_count(&w); i++) {
            const double x = fabs((double)w.grad[i]);
            c->largest = x > c->largest ? x : c->largest;
        }
    }
}

/* Picks an element of w, at random, that is not among element[k - n], [k - 2 n], .. (-1: none): those of the same weight. -1: all are. */
static int64_t pick(const llm_train_weight *w, const int64_t *element, int64_t k, int64_t n,
                    uint64_t *state) {
    const int64_t count = llm_train_weight_count(w),
                  from = (int64_t)(draw(state) % (uint64_t)count);
    for (int64_t step = 0; step < count && step <= k / n; step++) {
        const int64_t e = (from + step) % count;
        int64_t before = k - n;
        while (before >= 0 && element[before] != e)
            before -= n;
        if (before < 0)
            return e;
    }
    return -1;
}

static ggl_status compare_all(check *c, const llm_gradients_params *p, uint64_t *state,
                              llm_gradients_result *r, ggl_error *err) {
    const int n = llm_trainer_n_weights(c->t);
    ggl_status st = llm_trainer_add(c->t, &c->b, NULL, err);
    if (st != GGL_OK)
        return st;
    find_largest(c);
    r->largest = c->largest;
    r->n_weights = n;
    int64_t *element = NULL, last = 0; /* the last k that had an element left */
    size_t cap = 0;
    for (int64_t k = 0; r->n_numbers < p->n_numbers && k - last <= n && st == GGL_OK; k++) {
        /* weights in turn, each element once; of fewer numbers than weights, those in even distances */
        const llm_train_weight w =
            llm_trainer_weight(c->t, (int)(p->n_numbers < n ? k * n / p->n_numbers : k % n));
        llm_gradient g;
        if (!ggl_grow(&element, &cap, (size_t)k + 1, sizeof *element)) {
            st = ggl_fail(err, GGL_NOMEM, "out of memory for a check of gradients");
            break;
        }
        element[k] = pick(&w, element, k, n, state);
        if (element[k] < 0)
            continue;
        last = k;
        st = compare(c, &w, element[k], &g, err);
        if (st != GGL_OK)
            break;
        const double error = fabs(g.difference - g.gradient) / (c->largest > 0 ? c->largest : 1);
        r->error = error > r->error || isnan(error) ? error : r->error;
        r->n_numbers++;
        if (p->each && !p->each(p->user, &g))
            st = ggl_fail(err, GGL_CANCELLED, "cancelled");
    }
    ggl_free(element);
    return st;
}

/* Makes up what is read. */
static ggl_status give_reading(check *c, uint64_t *state, int64_t n_vocab, ggl_error *err) {
    const llm_train_reader r = llm_trainer_reader(c->t);
    if (!r.is_there)
        return GGL_OK;
    c->text = ggl_calloc((size_t)r.n_most, sizeof *c->text);
    const int64_t n_rows = r.of_text ? r.n_most : llm_rows_with_after(&r.input, r.n_most);
    c->row = ggl_calloc((size_t)(n_rows * r.n_input) + 1, sizeof *c->row);
    if (!c->text || !c->row)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a check of gradients");
    for (int64_t i = 0; i < r.n_most; i++)
        c->text[i] = (int32_t)(draw(state) % (uint64_t)n_vocab);
    for (int64_t i = 0; i < n_rows * r.n_input; i++)
        c->row[i] = (float)(draw(state) >> 40) / (float)(1 << 23) - 1;
    c->reading = (llm_train_reading){
        .row = r.of_text ? NULL : c->row, .token = r.of_text ? c->text : NULL, .n = r.n_most};
    c->b.reading = &c->reading;
    c->b.n_readings = 1;
    c->b.read = c->read;
    return GGL_OK;
}

ggl_status llm_train_check_gradients(const llm_model *m, ggl_backend *reference,
                                     const llm_gradients_params *p, llm_gradients_result *r,
                                     ggl_error *err) {
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    const int64_t n = N_SEQ * p->n_tokens;
    const llm_train_params of = {.size = sizeof of,
                                 .backend = reference,
                                 .reference = reference,
                                 .n_ctx = p->n_tokens,
                                 .n_batch = n,
                                 .n_read = 2 * p->n_tokens,
                                 .n_slots = N_SEQ};
    check c = {.token = ggl_calloc((size_t)n + 1, sizeof *c.token)};
    uint64_t state = p->seed;
    if (!c.token)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a check of gradients");
    ggl_status st = llm_trainer_new(&c.t, llm_model_arch(m), &source, &of, err);
    const int64_t n_vocab = st == GGL_OK ? llm_trainer_n_vocab(c.t) : 1;
    for (int64_t i = 0; i <= n; i++)
        c.token[i] = (int32_t)(draw(&state) % (uint64_t)n_vocab);
    for (int i = 0; i < N_SEQ; i++) /* of different lengths, of which the last is the longest */
        c.length[i] = i == N_SEQ - 1 ? p->n_tokens : (p->n_tokens + i) / 2 + i;
    for (int i = 0; i < N_SEQ; i++)
        c.length[i] = c.length[i] < p->n_tokens ? c.length[i] : p->n_tokens;
    c.b = (llm_train_batch){
        .token = c.token, .target = c.token + 1, .length = c.length, .n_seq = N_SEQ};
    if (st == GGL_OK)
        st = give_reading(&c, &state, n_vocab, err);
    if (st == GGL_OK)
        st = compare_all(&c, p, &state, r, err);
    llm_trainer_free(c.t);
    ggl_free(c.token);
    ggl_free(c.text);
    ggl_free(c.row);
    return st;
}
