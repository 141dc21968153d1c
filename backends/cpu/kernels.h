/* The kernel table: one struct of function pointers. The portable code (scalar/), which defines the
 * numeric contract, fills it; then faster kernels for this machine's instruction sets (x86/, arm/)
 * replace entries. All kernels of an entry have the same results, bit for bit: docs/numeric.md.
 * Kernels know no graphs, threads or memory regions.
 *
 * Counts n may be 0 unless noted. Pointers need the alignment of their element only; blocks need
 * none. An output may be an input where the comment says "in place", else they must not overlap. */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu_features.h"
#include "ggl/graph.h"

#define CPU_QBLOCK     32 /* elements of a block of a quantized activation row */
#define CPU_QUERIES    8  /* most queries that share the loads of a page */
#define CPU_TILE       6  /* most queries that share the loads of a panel */
#define CPU_MAX_COLS   64 /* most columns in one call of tile() */
#define CPU_CHAIN_ROWS 6  /* most rows in one call of chains(), and of chain_pairs() */

/* 32 elements of an activation row: x[i] = d * q[i]. */
typedef struct cpu_qblock {
    int8_t q[CPU_QBLOCK];
    float d, scaled_sum; /* d * sum, rounded */
    int32_t sum;         /* q[0] + .. + q[31] */
    int16_t half[2];     /* q[0] + .. + q[15], and q[16] + .. + q[31] */
} cpu_qblock;
_Static_assert(sizeof(cpu_qblock) == 48, "no padding");

/* Set a slot in a file of simd/, by the column of slots.def that says whether the file has a kernel. */
#define CPU_SET_simd(slot, kernel) (slot) = (kernel);
#define CPU_SET_scalar(slot, kernel)

/* Largest weight of a value, rounded to a whole number: 127 * 128, so that a weight is
 * high * 128 + low, with -127 <= high <= 127 and -64 <= low <= 63. */
#define CPU_MAX_WEIGHT 16256

typedef enum cpu_unary {
#define UNARY_SLOT(NAME, of, where) CPU_##NAME,
#include "slots.def"
    CPU_N_UNARY
} cpu_unary;

typedef enum cpu_binary {
#define BINARY_SLOT(NAME, where) CPU_##NAME,
#include "slots.def"
    CPU_N_BINARY
} cpu_binary;

/* y[i] = f(x[i]); in place. */
typedef void cpu_unary_fn(float *y, const float *x, int64_t n);
/* y[i] = f(a[i * step_a], b[i * step_b]), with steps 0 or 1; in place. */
typedef void cpu_binary_fn(float *y, const float *a, int step_a, const float *b, int step_b,
                           int64_t n);

/* The form in which a product needs its columns. */
typedef enum cpu_columns {
    CPU_COLUMNS_F32,  /* the f32 row as it is */
    CPU_COLUMNS_BF16, /* rounded to bf16, stored as f32; in each 32 the 16 odd elements come first;
                         padded to a multiple of 32 */
    CPU_COLUMNS_BF16_PAIRS, /* rounded to bf16, in order; padded to a multiple of 32 */
    CPU_COLUMNS_Q8,         /* cpu_qblock[n / 32] */
    CPU_COLUMNS_BF16_CHAIN, /* of products of gradients: pairs of bf16, see chain_pairs; an odd one out has 0 beside it */
    CPU_N_COLUMNS
} cpu_columns;

/* y[c][j] = dot(w row j, x[c]) for j < n_rows, c < n_cols (1 .. CPU_MAX_COLS), for one type of
 * weight. k: elements of a row; row_size: bytes from one row to the next. */
typedef struct cpu_product {
    cpu_columns columns;
    /* Multiplies rows as they are; for few columns. */
    void (*rows)(float *const *y, const void *const *x, int n_cols, const void *w, size_t row_size,
                 int64_t n_rows, int64_t k);
    /* Multiplies rows in the row-interleaved layout (quant/rows16.h), beginning with a group; for
     * few columns. Where it computes much between two loads, it prefetches in any case. NULL: the
     * type has no such layout. */
    void (*rows16)(float *const *y, const void *const *x, int n_cols, const void *w, int64_t n_rows,
                   int64_t k, cpu_reading reading);
    cpu_reading reading; /* what is fastest for rows16 on this machine */
    /* Writes the codes of that layout for k elements of 1 .. 16 rows, and nothing between them. */
    void (*interleave)(uint8_t *to, const void *w, size_t row_size, int n_rows, int64_t k);
    /* For many columns: pack() unpacks 1 .. panel_rows rows to a panel of panel_size(k) bytes,
     * 64-byte aligned, and tile() multiplies it, with the same n_rows, with all columns. pack16()
     * reads the row-interleaved layout. If pack is NULL, or k is not a multiple of panel_unit, rows() does
     * all. */
    int panel_rows, panel_unit;
    int min_cols; /* the least number of columns for which a panel pays */
    size_t (*panel_size)(int64_t k);
    void (*pack)(void *panel, const void *w, size_t row_size, int n_rows, int64_t k);
    void (*pack16)(void *panel, const void *w, int n_rows, int64_t k);
    void (*tile)(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k);
} cpu_product;

/* Recurrences whose state consists of rows. For each token, row j of the state is updated from row
 * j of the values, and gives row j of the result. Sources of the rules: docs/numeric.md, section
 * 7. */
typedef enum cpu_recur_kind {
#define RECUR_SLOT(NAME, where) CPU_##NAME,
#include "slots.def"
    CPU_N_RECUR
} cpu_recur_kind;

/* For row s of the state, value v = v[j] and result y = y[j]:
 *
 *          first                        s becomes                          y
 *   DELTA  e = (v - dot(s*w, k)) * rate   s*w + k*e                          dot(s, q)
 *   SCAN                                  s*w + k*(v*rate)                   dot(s, q)
 *   SELECT                                s*exp(a[j]*b[j]) + k*(v*b[j])      dot(s, q)
 *   WKV6                                  s*w + k*v                          dot(old s + k*v*b, q)
 *   WKV7   e = dot(s, a)                  (s*w + b*e) + k*v                  dot(s, q)
 *
 * w, k, q, a and b have n elements. In SELECT, row j has its own row of a (rows are adjacent) and
 * its own number b[j]. */
typedef struct cpu_recur {
    int64_t n; /* elements of a row */
    const float *w, *k, *q, *a, *b;
    const float *v; /* one number for each row */
    float rate;
} cpu_recur;

/* Updates n_rows adjacent rows of a state, from s on, for one token; y[j] is row j's result. */
typedef void cpu_recur_fn(float *s, float *y, int64_t n_rows, const cpu_recur *r);
/* y[i] = the sum of x[j][i] * w[i * k + j] over j < k, in the tree order of docs/numeric.md: a
 * convolution over k rows. */
typedef void cpu_conv_fn(float *y, const float *const *x, const float *w, int64_t n, int64_t k);

/* y += x * a, two roundings. */
typedef void cpu_mul_add_fn(float *y, const float *x, float a, int64_t n);
typedef void cpu_to_f16_fn(uint16_t *y, const float *x, int64_t n);
typedef float cpu_sum_fn(const float *x, int64_t n);
/* y: x times the matrix of Walsh and Hadamard, and scale; n is a power of two, and y may be x. */
typedef void cpu_hadamard_fn(float *y, const float *x, int64_t n, float scale);
typedef float cpu_largest_fn(const float *x, int64_t n); /* n > 0 */

/* y[c][i] = fma(a[e * a_step + i], b[c][e * b_step], y[c][i]) for e = 0 .. k-1 in order, for i < n and c < n_y, 1 ..
 * CPU_CHAIN_ROWS. */
typedef void cpu_chains_fn(float *const *y, int n_y, const float *a, int64_t a_step,
                           const float *const *b, int64_t b_step, int64_t k, int64_t n);

/* The same of pairs of bf16: the upper 16 bits of a number are the bf16 of one term, the lower ones that of the term after it; each is 0, no
 * finite number, or at least 2^-56 in magnitude. y[c][i] is rounded to a multiple of 2^-126 first, as all sums of such products are. */
typedef void cpu_chain_pairs_fn(float *const *y, int n_y, const uint32_t *a, int64_t a_step,
                                const uint32_t *const *b, int64_t b_step, int64_t k, int64_t n);
/* Makes such pairs, y[i] of first[i] and second[i], which are rounded; second NULL: of zeros. */
typedef void cpu_pair_fn(uint32_t *y, const float *first, const float *second, int64_t n);
/* The same of numbers that are bf16 already; those below 2^-56 become 0. */
typedef void cpu_pair_bf16_fn(uint32_t *y, const uint16_t *first, const uint16_t *second,
                              int64_t n);
/* y[i] of x[2i] and x[2i + 1], for n elements of x. */
typedef void cpu_pair_up_fn(uint32_t *y, const float *x, int64_t n);

/* Columns of products (cpu_columns). */
typedef void cpu_quantize_fn(cpu_qblock *y, const float *x, int64_t n); /* n a multiple of 32 */
typedef void cpu_round_fn(float *y, const float *x, int64_t n);
typedef void cpu_round_pairs_fn(uint16_t *y, const float *x, int64_t n);

/* Rotates r pairs; cs[2i], cs[2i+1] = cosine and sine of frequency i. */
typedef void cpu_rope_fn(float *y, const float *x, const float *cs, int64_t r);

/* s[j] = exp(s[j] * scale - m) for lo <= j < hi, where m is the largest s[j] * scale; all other
 * s[j] become 0. Returns m and sets *sum to the sum of the s[j]. lo < hi. */
typedef float cpu_softmax_page_fn(float *s, int lo, int hi, float scale, float *sum);
/* The same for n whole pages; m[q] is what the former returns. */
typedef void cpu_softmax_pages_fn(float (*s)[GGL_PAGE], int n, float scale, float *m, float *sum);
/* Attention of 1 .. CPU_TILE queries over a page as panels of f32.
 *
 * score[q][j] = sum over i < d of keys[i * 64 + j] * query[q][i], in order of i. */
typedef void cpu_panel_scores_fn(float (*score)[GGL_PAGE], const float *const *query, int n_q,
                                 const float *keys, int64_t d);
/* total[q * n + i] = fma(total[q * n + i], share[q][0], o * share[q][1]), or o if share is NULL,
 * where o = the sum over all 64 positions j of w[q][j] * values[j * n + i], in order of j. n: a
 * multiple of 16. */
typedef void cpu_panel_values_fn(float *total, int64_t n, float (*w)[GGL_PAGE], int n_q,
                                 const float *values, float (*share)[2]);
/* total[i] = fma(total[i], a, part[i] * b) */
typedef void cpu_merge_fn(float *total, const float *part, float a, float b, int64_t n);
/* Merges the partial softmax (m, l) of each of n queries with that of a part: top = m[q] if it is larger than part_m[q] or NaN, else part_m[q];
 * factor[q][0] = exp(m[q] - top), factor[q][1] = exp(part_m[q] - top); l[q] = fma(l[q], factor[q][0], part_l[q] * factor[q][1]); m[q] = top. */
typedef void cpu_merge_sums_fn(float *m, float *l, const float *part_m, const float *part_l,
                               float (*factor)[2], int n);

typedef struct cpu_kernels {
    cpu_unary_fn *unary[CPU_N_UNARY];
    cpu_binary_fn *binary[CPU_N_BINARY];
    cpu_recur_fn *recur[CPU_N_RECUR];
    /* the others of slots.def: cpu_sum_fn *sum, .. */
#define SLOT(name, fn, where) fn *name;
#include "slots.def"

    /* --- by type */
    /* decodes n elements, by ggl_type; NULL: there is no such type */
    void (*to_f32[GGL_TYPE_LIMIT])(const void *src, float *dst, int64_t n);
    cpu_product product[GGL_TYPE_LIMIT]; /* by ggl_type; rows NULL: not a weight type */
    /* Attention over one page of 64 positions, by type of store; NULL: not a type of stores, or one
     * with codes. n_q: 1 .. CPU_QUERIES. ggl/graph.h has the layout of pages. `next` is memory that
     * is read after the page: it is prefetched, never accessed.
     *
     * score[q][j] = sum_i keys[i][j] * query[q][i], in order of i, for all 64 positions j. */
    void (*scores[GGL_TYPE_LIMIT])(float (*score)[GGL_PAGE], const float *const *query, int n_q,
                                   const void *keys, int64_t d, const void *next);
    /* o[q * o_step + i] += sum over j0 <= j < j1 of p[q][j] * values[j][i], in order of j. */
    void (*values[GGL_TYPE_LIMIT])(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q,
                                   const void *values, int64_t e, int j0, int j1, const void *next);
    /* The same for stores with codes; NULL: not such a type. d and e are whole blocks.
     *
     * score[q][j] = dot(keys of j, query[q]) by section 4, for all 64 positions j. */
    void (*code_scores[GGL_TYPE_LIMIT])(float (*score)[GGL_PAGE], const cpu_qblock *const *query,
                                        int n_q, const void *keys, int64_t d, const void *next);
    /* o[q * o_step + i] = sum over lo[q] <= j < hi[q] of values[j][i] * p[q][j], where p times the
     * scale of the value is rounded (section 6); no j: 0. p[q][j] is from 0 to 1 for these j, and 0
     * for others. With NaN among them, the results have no meaning. */
    void (*code_values[GGL_TYPE_LIMIT])(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q,
                                        const void *values, int64_t e, const int *lo, const int *hi,
                                        const void *next);
} cpu_kernels;

/* Fills the table with the best kernels for these features (cpu_features.h). */
void ggl_cpu_kernels_init(cpu_kernels *k, uint32_t features);

/* Returns the elements of a row in a panel, and of a column that is rounded to bf16: zeros make them a multiple of 32. */
static inline int64_t cpu_padded(int64_t n) {
    return (n + 31) / 32 * 32;
}

/* Returns the bytes of a column of n elements in this form. */
size_t ggl_cpu_column_size(cpu_columns form, int64_t n);
/* Writes the column x to y in this form. */
void ggl_cpu_column_make(const cpu_kernels *k, cpu_columns form, void *y, const float *x,
                         int64_t n);

/* Set the entries for which a file of scalar/ has the portable kernels. */
void ggl_cpu_kernels_elementwise(cpu_kernels *k);
void ggl_cpu_kernels_rows(cpu_kernels *k);
void ggl_cpu_kernels_quantize(cpu_kernels *k);
void ggl_cpu_kernels_pairs(cpu_kernels *k);
void ggl_cpu_kernels_dot(cpu_kernels *k);
void ggl_cpu_kernels_rope(cpu_kernels *k);
void ggl_cpu_kernels_attend(cpu_kernels *k);
void ggl_cpu_kernels_recur(cpu_kernels *k);

/* <isa>/init.c: replace entries by the kernels that the features allow, lowest instruction set
 * first. */
void ggl_cpu_kernels_init_x86(cpu_kernels *k, uint32_t features);
void ggl_cpu_kernels_init_arm(cpu_kernels *k, uint32_t features);
void ggl_cpu_kernels_init_vectors(cpu_kernels *k, uint32_t features);
void ggl_cpu_kernels_init_wasm(cpu_kernels *k, uint32_t features);

#endif
