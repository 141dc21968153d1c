/* docs/numeric.md, section 6: the parts of attention over one page of 64 positions. */
#include "scalar.h"

#include "ggl/internal/graph.h"
#include "ggl/internal/math.h"
#include "ggl/internal/types.h"

enum { PART = 32 }; /* dimensions unpacked at once */

static int part_of(int64_t n, int64_t i) {
    return n - i < PART ? (int)(n - i) : PART;
}

static void scores(float (*score)[GGL_PAGE], const float *const *query, int n_q, const void *keys,
                   int64_t d, const void *next, ggl_type type) {
    (void)next;
    float row[PART][GGL_PAGE];
    for (int q = 0; q < n_q; q++)
        memset(score[q], 0, sizeof score[q]);
    for (int64_t first = 0; first < d; first += PART) {
        int n = part_of(d, first);
        ggl_keys_unpack(type, keys, first, n, row);
        for (int q = 0; q < n_q; q++)
            for (int i = 0; i < n; i++)
                for (int j = 0; j < GGL_PAGE; j++)
                    score[q][j] = fused_float(row[i][j], query[q][first + i], score[q][j]);
    }
}

static void values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                   int64_t e, int j0, int j1, const void *next, ggl_type type) {
    (void)next;
    size_t row_size = ggl_row_size(type, e);
    for (int64_t first = 0; first < e; first += PART) {
        int n = part_of(e, first);
        const char *at = (const char *)v + ggl_row_size(type, first);
        for (int j = j0; j < j1; j++) {
            float row[PART];
            ggl_type_get(type)->to_float(at + (size_t)j * row_size, row, n);
            for (int q = 0; q < n_q; q++)
                for (int i = 0; i < n; i++) {
                    float *to = o + q * o_step + first + i;
                    *to = fused_float(p[q][j], row[i], *to);
                }
        }
    }
}

#include "../attend_types_tmpl.h"

/* --- stores with codes ---------------------------------------------------------------------- */

/* A block of 32 dimensions of 64 positions (ggl/graph.h). */
typedef struct page_block {
    ggl_type type;
    bool keys;
    const uint8_t *codes, *scales;
    size_t size; /* bytes */
} page_block;

static page_block block_at(ggl_type type, bool keys, const void *page, int64_t b) {
    const size_t size = GGL_PAGE * ggl_type_get(type)->size;
    const uint8_t *p = (const uint8_t *)page + (size_t)b * size;
    return (page_block){type, keys, p, p + size - 2 * GGL_PAGE, size};
}

/* Returns the code of dimension i of position j. */
static int code_of(const page_block *b, int i, int j) {
    const int n = b->type == GGL_Q8_0 ? 32 : 16, k = i % n,
              at = b->keys ? (k / 4 * GGL_PAGE + j) * 4 + k % 4 : (j / 4 * n + k) * 4 + j % 4,
              c = b->codes[at];
    return b->type == GGL_Q8_0 ? c - 128 : (i < 16 ? c & 15 : c >> 4) - 8;
}

static float scale_of(const page_block *b, int j) {
    uint16_t half;
    memcpy(&half, b->scales + 2 * j, sizeof half);
    return ggl_f16_to_f32(half);
}

static void code_scores(float (*score)[GGL_PAGE], const cpu_qblock *const *query, int n_q,
                        const void *keys, int64_t d, const void *next, ggl_type type) {
    (void)next;
    for (int q = 0; q < n_q; q++)
        for (int j = 0; j < GGL_PAGE; j++) {
            float a = 0;
            for (int64_t n = 0; n < d / CPU_QBLOCK; n++) {
                const page_block b = block_at(type, true, keys, n);
                const cpu_qblock *x = &query[q][n];
                int32_t sum = 0;
                for (int i = 0; i < CPU_QBLOCK; i++)
                    sum += code_of(&b, i, j) * x->q[i];
                a = fused_float((float)sum * scale_of(&b, j), x->d, a);
            }
            score[q][j] = a;
        }
}

/* Rounds the weights of positions lo .. hi-1, times the scales of a block, to whole numbers w[] up
 * to CPU_MAX_WEIGHT. Returns the number that they are multiples of. */
static float round_weights(int32_t *w, const float *p, const page_block *b, int lo, int hi) {
    uint32_t largest = 0;
    for (int j = lo; j < hi; j++) {
        const uint32_t u = float_bits(scale_of(b, j)) & 0x7fffffff;
        largest = u > largest ? u : largest;
    }
    memset(w, 0, GGL_PAGE * sizeof *w);
    if (largest == 0 || largest >= 0x7f800000)
        return largest ? NAN : 0.0f;
    const float m = float_of(largest), inverse = CPU_MAX_WEIGHT / m;
    for (int j = lo; j < hi; j++) {
        const float s = scale_of(b, j) * inverse, x = p[j] * s;
        w[j] = x == x ? (int32_t)rintf(x) : 0;
    }
    return m / CPU_MAX_WEIGHT;
}

static void code_values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                        int64_t e, const int *lo, const int *hi, const void *next, ggl_type type) {
    (void)next;
    for (int q = 0; q < n_q; q++)
        for (int64_t n = 0; n < e / PART; n++) {
            const page_block b = block_at(type, false, v, n);
            int32_t w[GGL_PAGE];
            const float unit = round_weights(w, p[q], &b, lo[q], hi[q]);
            for (int i = 0; i < PART; i++) {
                int32_t sum = 0;
                for (int j = 0; j < GGL_PAGE; j++)
                    sum += w[j] * code_of(&b, i, j);
                o[q * o_step + n * PART + i] = (float)sum * unit;
            }
        }
}

#include "../attend_codes_tmpl.h"

/* --- softmax -------------------------------------------------------------------------------- */

static float softmax_page(float *s, int lo, int hi, float scale, float *sum) {
    float m = s[lo] * scale, part[16] = {0};
    for (int j = lo; j < hi; j++) {
        s[j] *= scale;
        m = max_of(m, s[j]);
    }
    m += 0.0f;
    for (int j = 0; j < GGL_PAGE; j++) {
        s[j] = j >= lo && j < hi ? ggl_expf(s[j] - m) : 0;
        part[j % 16] += s[j];
    }
    *sum = tree16(part);
    return m;
}

static void softmax_pages(float (*s)[GGL_PAGE], int n, float scale, float *m, float *sum) {
    for (int q = 0; q < n; q++)
        m[q] = softmax_page(s[q], 0, GGL_PAGE, scale, sum + q);
}

static void merge(float *total, const float *part, float a, float b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = part[i] * b;
        total[i] = fused_float(total[i], a, p);
    }
}

static void merge_sums(float *m, float *l, const float *part_m, const float *part_l,
                       float (*factor)[2], int n) {
    for (int q = 0; q < n; q++) {
        const float top = max_of(m[q], part_m[q]);
        factor[q][0] = ggl_expf(m[q] - top);
        factor[q][1] = ggl_expf(part_m[q] - top);
        float p = part_l[q] * factor[q][1];
        l[q] = fused_float(l[q], factor[q][0], p);
        m[q] = top;
    }
}

static void panel_scores(float (*score)[GGL_PAGE], const float *const *query, int n_q,
                         const float *keys, int64_t d) {
    scores(score, query, n_q, keys, d, keys, GGL_F32);
}

static void panel_values(float *total, int64_t n, float (*w)[GGL_PAGE], int n_q,
                         const float *values, float (*share)[2]) {
    for (int q = 0; q < n_q; q++)
        for (int64_t i = 0; i < n; i++) {
            float o = 0;
            for (int j = 0; j < GGL_PAGE; j++)
                o = fused_float(w[q][j], values[j * n + i], o);
            if (share)
                merge(total + q * n + i, &o, share[q][0], share[q][1], 1);
            else
                total[q * n + i] = o;
        }
}

void ggl_cpu_kernels_attend(cpu_kernels *k) {
    fill_by_type(k);
    fill_codes(k);
#define PAGE_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
