/* ngrams; docs/ops.md defines it. A unit is an element of the batch. */
#include "cpu.h"
#include "ggl/internal/graph.h"

static ggl_status ngrams_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    (void)c;
    for (int i = NGRAMS_X; i <= NGRAMS_FIRST; i++)
        if (s->src[i].type != GGL_F32)
            return ggl_fail(err, GGL_UNSUPPORTED, "ngrams supports only f32 values");
    return GGL_OK;
}

static void ngrams_begin(cpu_task *t) {
    t->n_units = t->dst.ne[3];
    t->cost = 20 * (double)t->dst.ne[0] * (double)t->src[NGRAMS_X].ne[0];
}

static const char *element_of(const cpu_view *v, int64_t l) {
    return v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]);
}

/* Returns the number whose digits are in column i of v. */
static uint64_t digits_of(const cpu_view *v, int64_t i, int64_t l) {
    const char *column = element_of(v, l) + (size_t)i * v->nb[1];
    float digit[GGL_N_DIGITS];
    for (size_t k = 0; k < GGL_N_DIGITS; k++)
        digit[k] = *(const float *)(column + k * v->nb[0]);
    return ggl_from_digits(digit);
}

/* Sets y[from .. to - 1], which are all of one length n, whose hash is given. */
static void choose(const cpu_task *t, int64_t l, uint64_t hash, int64_t from, int64_t to) {
    const int64_t rows = (int64_t)t->step->node->num[NGRAMS_ROWS];
    int32_t *y = (int32_t *)(t->dst.p + (size_t)l * t->dst.nb[3]);
    for (int64_t i = from; i < to; i++)
        y[i] = (int32_t)ggl_hashed_index(hash, digits_of(&t->src[NGRAMS_INTO], i, l),
                                         digits_of(&t->src[NGRAMS_FIRST], i, l), rows);
}

static void ngrams_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    const cpu_view *x = &t->src[NGRAMS_X];
    const int64_t m = x->ne[0], each = t->dst.ne[0] / (m - 1);
    for (int64_t l = first; l < last; l++) {
        uint64_t hash = 0;
        for (int64_t j = 0; j < m; j++) {
            const float number = *(const float *)(element_of(x, l) + (size_t)j * x->nb[0]);
            hash ^= ggl_hashed_number(number) * digits_of(&t->src[NGRAMS_BY], j, l);
            if (j > 0)
                choose(t, l, hash, (j - 1) * each, j * each);
        }
    }
}

const cpu_op ggl_cpu_op_ngrams = {
    .by_item = true, .compile = ngrams_compile, .begin = ngrams_begin, .run = ngrams_run};
