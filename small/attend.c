/* Rotations by position, caches and attention (docs/numeric.md, sections 5 and 6). */
#include "step.h"

#include "../backends/cpu/scalar/attend.c"
#include "../backends/cpu/scalar/rope.c"
#include "ggl/internal/op_args.h"

enum { SPAN = 1024 };

void small_columns_q8(char *y, const float *x, int64_t n); /* products.c */

/* --- rope ------------------------------------------------------------------------------------- */

/* A row of cosines and sines of position view[1] times the frequencies view[2]. n[0]: these are doubles. */
void small_op_rope_table(const small_op *op, char *ram);
void small_op_rope_table(const small_op *op, char *ram) {
    const small_view *f = op->view[2];
    const double at = *(const int32_t *)(const void *)small_data(op->view[1], ram);
    const char *from = small_data(f, ram);
    float *cs = (float *)(void *)small_data(op->view[0], ram);
    for (int32_t i = 0; i < f->ne[0]; i++) {
        const double angle = at * (op->n[0] ? ((const double *)(const void *)from)[i]
                                            : (double)((const float *)(const void *)from)[i]);
        cs[2 * i] = (float)(ggl_cos(angle) * op->d);
        cs[2 * i + 1] = (float)(ggl_sin(angle) * op->d);
    }
}

void small_rope_half(float *y, const float *x, const float *cs, int64_t r);
void small_rope_half(float *y, const float *x, const float *cs, int64_t r) {
    rope_half(y, x, cs, r);
}

void small_rope_pair(float *y, const float *x, const float *cs, int64_t r);
void small_rope_pair(float *y, const float *x, const float *cs, int64_t r) {
    rope_pair(y, x, cs, r);
}

/* n[0]: pairs that are rotated; view[3]: their table. */
void small_op_rope(const small_op *op, char *ram);
void small_op_rope(const small_op *op, char *ram) {
    const float *cs = (const float *)(const void *)small_data(op->view[3], ram);
    const int32_t r = op->n[0];
    const small_view *to = op->view[0];
    for (int32_t u = 0; u < small_n_rows(to); u++) {
        const float *x = (const float *)(const void *)small_row(op->view[1], to, u, ram);
        float *y = (float *)(void *)small_row(to, to, u, ram);
        ((cpu_rope_fn *)op->kernel)(y, x, cs, r);
        memcpy(y + 2 * r, x + 2 * r, (size_t)(to->ne[0] - 2 * r) * sizeof *y);
    }
}

/* --- cache ------------------------------------------------------------------------------------ */

static char *page_of(const small_store *s, int32_t pos, char *ram) {
    return ram + s->at + (size_t)(pos / GGL_PAGE % s->n_pages) * s->page_size;
}

/* The store as store_layout.c knows it. */
static ggl_store layout_of(const small_store *s) {
    return (ggl_store){
        .kind = (ggl_store_kind)s->kind, .type = s->type->type, .ne = {s->ne[0], s->ne[1], 1}};
}

void small_op_cache(const small_op *op, char *ram);
void small_op_cache(const small_op *op, char *ram) {
    const int32_t pos = *(const int32_t *)(const void *)small_data(op->view[1 + CACHE_POS], ram);
    for (int part = 0; part < 2; part++) {
        const small_store *s = op->store[part];
        const small_view *x = op->view[1 + part];
        for (int32_t h = 0; s && h < s->ne[1]; h++) {
            const ggl_store layout = layout_of(s);
            ggl_store_put(
                &layout, page_of(s, pos, ram), pos, h,
                (const float *)(const void *)(small_data(x, ram) + (size_t)h * (size_t)x->nb[1]));
        }
    }
}

/* --- attend ----------------------------------------------------------------------------------- */

/* A partial result: the largest score, the sum of weights, and that of weights times values, e numbers. */
typedef struct partial {
    bool any;
    float m, l, *o;
} partial;

static void merge_into(partial *total, const partial *part, int32_t e) {
    if (!part->any)
        return;
    if (!total->any) {
        total->any = true;
        total->m = part->m;
        total->l = part->l;
        memcpy(total->o, part->o, (size_t)e * sizeof *part->o);
        return;
    }
    const float top = max_of(total->m, part->m), a = ggl_expf(total->m - top),
                b = ggl_expf(part->m - top), l = part->l * b;
    total->m = top;
    total->l = fused_float(total->l, a, l);
    merge(total->o, part->o, a, b, e);
}

/* A query, and what it sees. */
typedef struct looker {
    const small_op *op;
    char *ram;
    const float *query;
    const cpu_qblock *rounded; /* if keys have codes */
    int32_t head, store_head, pos, first, end, e;
    float *values; /* [64][e], if values are the first part of keys */
} looker;

static const float *numbers(const looker *q, int k) {
    const small_view *v = q->op->view[1 + k];
    return v ? (const float *)(const void *)small_data(v, q->ram) : NULL;
}

/* Returns the number of query q's head in source k, which has one for all or for each. */
static float of_head(const looker *q, int k) {
    return numbers(q, k)[q->op->view[1 + k]->ne[0] == 1 ? 0 : q->head];
}

/* Returns m + distance, at most m on both sides. */
static int32_t place_of(int32_t m, int32_t distance) {
    return m + (distance < -m ? -m : distance > m ? m : distance);
}

/* Returns the row of relative positions for a distance, in source k; NULL: there is no such source. */
static const float *relative_row(const looker *q, int k, int32_t distance) {
    const small_view *rows = q->op->view[1 + k], *map = q->op->view[1 + ATTEND_REL_ROW];
    if (!rows)
        return NULL;
    const float *of = numbers(q, ATTEND_REL_ROW);
    const int64_t row =
        ggl_relative_row((double)of[place_of(map->ne[0] / 2, distance)], rows->ne[1]);
    return (const float *)(const void *)(small_data(rows, q->ram) +
                                         (rows->ne[2] == 1 ? 0 : q->store_head * rows->nb[2]) +
                                         (size_t)row * (size_t)rows->nb[1]);
}

/* Adds what relative positions add to the scores of positions lo .. hi-1 of the page from `first` on. */
static void add_relative(const looker *q, const void *keys, int32_t first, int lo, int hi,
                         float *w) {
    const small_store *s = q->op->store[0];
    const int32_t d = s->ne[0];
    float sum[2][GGL_PAGE] = {{0}};
    for (int32_t i = 0; i < d; i += PART) {
        float part[PART][GGL_PAGE];
        const int n = part_of(d, i);
        ggl_keys_unpack(s->type->type, keys, i, n, part);
        for (int j = lo; j < hi; j++) {
            const float *rk = relative_row(q, ATTEND_REL_K, first + j - q->pos),
                        *rq = relative_row(q, ATTEND_REL_Q, first + j - q->pos);
            for (int k = 0; k < n; k++) {
                sum[0][j] = rk ? fused_float(rk[i + k], q->query[i + k], sum[0][j]) : 0.0f;
                sum[1][j] = rq ? fused_float(rq[i + k], part[k][j], sum[1][j]) : 0.0f;
            }
        }
    }
    for (int j = lo; j < hi; j++) {
        if (q->op->view[1 + ATTEND_REL_K])
            w[j] += sum[0][j];
        if (q->op->view[1 + ATTEND_REL_Q])
            w[j] += sum[1][j];
    }
}

/* Scales the scores of positions first + lo .. first + hi - 1; applies cap, slopes and biases. Returns false if there are none of these
 * three, and does nothing. */
static bool adjust(const looker *q, int32_t first, int lo, int hi, float *w) {
    const float scale = q->op->f[0], cap = q->op->f[1];
    const small_view *alibi = q->op->view[1 + ATTEND_ALIBI], *bias = q->op->view[1 + ATTEND_BIAS];
    if (cap == 0 && !alibi && !bias)
        return false;
    for (int j = lo; j < hi; j++) {
        w[j] *= scale;
        if (cap != 0)
            w[j] = cap * ggl_tanhf(w[j] / cap);
        if (alibi) {
            const float drop = of_head(q, ATTEND_ALIBI) * fabsf((float)(q->pos - first - j));
            w[j] -= drop;
        }
        if (bias)
            w[j] += ((const float *)(const void *)(small_data(bias, q->ram) +
                                                   q->head *
                                                       bias->nb[1]))[place_of(bias->ne[0] / 2,
                                                                              first + j - q->pos)];
    }
    return true;
}

/* Decodes the values of a page that are the first part of its keys. */
static const float *values_of_keys(const looker *q, const void *keys) {
    const ggl_type type = q->op->store[0]->type->type;
    for (int32_t i = 0; i < q->e; i += PART) {
        float part[PART][GGL_PAGE];
        const int n = part_of(q->e, i);
        ggl_keys_unpack(type, keys, i, n, part);
        for (int j = 0; j < GGL_PAGE; j++)
            for (int k = 0; k < n; k++)
                q->values[j * q->e + i + k] = part[k][j];
    }
    return q->values;
}

static const char *head_rows(const looker *q, const small_store *s, int32_t pos) {
    return page_of(s, pos, q->ram) +
           (size_t)q->store_head * GGL_PAGE * (size_t)(s->ne[0] / s->type->block) * s->type->size;
}

/* A number of a store without blocks. */
static inline float number_at(const char *p, ggl_type type, int32_t i) {
    if (type == GGL_F32)
        return float_of(load32(p + 4 * i));
    return type == GGL_F16 ? small_half(load16(p + 2 * i)) : ggl_bf16_to_f32(load16(p + 2 * i));
}

/* The score of each position lo .. hi-1, from keys [d][64]: the kernel of the CPU computes all 64. */
static inline void plain_scores(float *w, const looker *q, const char *keys, ggl_type type,
                                int32_t d, int lo, int hi) {
    for (int j = lo; j < hi; j++) {
        float a = 0;
        for (int32_t i = 0; i < d; i++)
            a = fused_float(number_at(keys, type, i * GGL_PAGE + j), q->query[i], a);
        w[j] = a;
    }
}

/* Adds weights times values [64][e] of these positions to o. */
static inline void plain_values(float *o, const float *w, const char *rows, ggl_type type,
                                int32_t e, int lo, int hi) {
    for (int j = lo; j < hi; j++)
        for (int32_t i = 0; i < e; i++)
            o[i] = fused_float(w[j], number_at(rows, type, j * e + i), o[i]);
}

/* The type becomes a constant of the loop. */
#define BY_TYPE(type, call)                                                                        \
    switch (type) {                                                                                \
    case GGL_F32: {                                                                                \
        enum { TYPE = GGL_F32 };                                                                   \
        call;                                                                                      \
        break;                                                                                     \
    }                                                                                              \
    case GGL_F16: {                                                                                \
        enum { TYPE = GGL_F16 };                                                                   \
        call;                                                                                      \
        break;                                                                                     \
    }                                                                                              \
    default: {                                                                                     \
        enum { TYPE = GGL_BF16 };                                                                  \
        call;                                                                                      \
    }                                                                                              \
    }

/* Sets *out to the partial result of the page that begins with position `first`. */
static void one_page(const looker *q, int32_t first, partial *out) {
    const small_store *ks = q->op->store[0], *vs = q->op->store[1];
    const int lo = q->first > first ? q->first - first : 0,
              hi = q->end - first < GGL_PAGE ? q->end - first : GGL_PAGE;
    const char *keys = head_rows(q, ks, first);
    float w[1][GGL_PAGE];
    if (ks->type->quantized)
        code_scores(w, &q->rounded, 1, keys, ks->ne[0], NULL, ks->type->type);
    else
        BY_TYPE(ks->type->type, plain_scores(w[0], q, keys, (ggl_type)TYPE, ks->ne[0], lo, hi))
    if (q->op->view[1 + ATTEND_REL_ROW])
        add_relative(q, keys, first, lo, hi, w[0]);
    const float scale = adjust(q, first, lo, hi, w[0]) ? 1.0f : q->op->f[0];
    out->any = true;
    out->m = softmax_page(w[0], lo, hi, scale, &out->l);
    memset(out->o, 0, (size_t)q->e * sizeof *out->o);
    if (!vs)
        plain_values(out->o, w[0], (const char *)values_of_keys(q, keys), GGL_F32, q->e, lo, hi);
    else if (vs->type->quantized)
        code_values(out->o, q->e, w, 1, head_rows(q, vs, first), q->e, &lo, &hi, NULL,
                    vs->type->type);
    else
        BY_TYPE(vs->type->type,
                plain_values(out->o, w[0], head_rows(q, vs, first), (ggl_type)TYPE, q->e, lo, hi))
}

/* The pages of a span are merged, then the spans. scratch: three times e floats. */
static void look(const looker *q, float *y, float *scratch) {
    partial page = {.o = scratch}, span = {.o = scratch + q->e}, total = {.o = scratch + 2 * q->e};
    for (int32_t s = q->first / SPAN; s <= (q->end - 1) / SPAN; s++) {
        const int32_t to = (s + 1) * SPAN < q->end ? (s + 1) * SPAN : q->end;
        int32_t first = q->first > s * SPAN ? q->first / GGL_PAGE * GGL_PAGE : s * SPAN;
        for (span.any = false; first < to; first += GGL_PAGE) {
            one_page(q, first, &page);
            merge_into(&span, &page, q->e);
        }
        merge_into(&total, &span, q->e);
    }
    if (q->op->view[1 + ATTEND_SINKS]) {
        page.m = of_head(q, ATTEND_SINKS);
        page.l = 1;
        memset(page.o, 0, (size_t)q->e * sizeof *page.o);
        merge_into(&total, &page, q->e);
    }
    for (int32_t i = 0; i < q->e; i++)
        y[i] = total.o[i] / total.l;
}

/* n[0]: the window; n[1]: scratch in RAM: three times e floats, the rounded query, and a page of values that are part of the keys. */
void small_op_attend(const small_op *op, char *ram);
void small_op_attend(const small_op *op, char *ram) {
    const small_view *y = op->view[0], *x = op->view[1 + ATTEND_Q];
    const int32_t pos = *(const int32_t *)(const void *)small_data(op->view[1 + ATTEND_POS], ram);
    looker q = {.op = op, .ram = ram, .pos = pos, .e = y->ne[0]};
    const small_view *within = op->view[1 + ATTEND_WITHIN];
    const ggl_visible v = ggl_visible_within(ggl_visible_rows(pos, 0, op->n[0], 0),
                                             within ? numbers(&q, ATTEND_WITHIN) : NULL);
    float *scratch = (float *)(void *)(ram + op->n[1]);
    q.first = (int32_t)v.first;
    q.end = (int32_t)v.end;
    q.values = scratch + 3 * q.e;
    for (int32_t h = 0; h < y->ne[1]; h++) {
        q.head = h;
        q.store_head = h / (y->ne[1] / op->store[0]->ne[1]);
        q.query = (const float *)(const void *)(small_data(x, ram) + h * x->nb[1]);
        if (op->store[0]->type->quantized) {
            small_columns_q8((char *)(scratch + 3 * q.e), q.query, x->ne[0]);
            q.rounded = (cpu_qblock *)(void *)(scratch + 3 * q.e);
            q.values = scratch + 3 * q.e +
                       x->ne[0] / CPU_QBLOCK * (int32_t)(sizeof(cpu_qblock) / sizeof(float));
        }
        look(&q, (float *)(void *)(small_data(y, ram) + h * y->nb[1]), scratch);
    }
}
