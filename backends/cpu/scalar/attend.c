/* docs/numeric.md, section 6: the parts of attention over one page of 64 positions. */
#include "scalar.h"

#include "ggl/math.h"

enum { PART = 32 }; /* dimensions unpacked at once: a block of the quantized types */

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
                    score[q][j] = fmaf(row[i][j], query[q][first + i], score[q][j]);
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
                    *to = fmaf(p[q][j], row[i], *to);
                }
        }
    }
}

#include "../attend_types_tmpl.h"

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
        total[i] = fmaf(total[i], a, p);
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
                o = fmaf(w[q][j], values[j * n + i], o);
            if (share)
                merge(total + q * n + i, &o, share[q][0], share[q][1], 1);
            else
                total[q * n + i] = o;
        }
}

void ggl_cpu_kernels_attend(cpu_kernels *k) {
    fill_by_type(k);
#define PAGE_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
