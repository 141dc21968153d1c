/* Repacks weights of products: quantized ones with 16 rows interleaved (quant/rows16.h), f16 ones
 * as rows of bf16 if ggl_backend_params.f16_as_bf16 is set. */
#include <string.h>

#include "cpu.h"
#include "ggl/internal/alloc.h"
#include "quant/rows16.h"

/* Groups of 16 rows that a thread repacks at a time. */
enum { UNIT_GROUPS = 8 };

/* Returns the number of groups of 16 rows in each matrix of w. */
static int64_t groups_of(const ggl_tensor *w) {
    return (w->ne[1] + CPU_GROUP - 1) / CPU_GROUP;
}

/* A matrix of fewer than 16 rows is not interleaved: it would be mostly padding, and it is read
 * from the cache anyway. */
size_t ggl_cpu_repacked_matrix_size(const cpu_backend *b, ggl_type type, int64_t n_rows,
                                    int64_t k) {
    if (type == GGL_F16)
        return b->f16_as_bf16 ? (ggl_row_size(GGL_BF16, k) * (size_t)n_rows + 63) / 64 * 64 : 0;
    return b->k.product[type].rows16 && n_rows >= CPU_GROUP ? ggl_cpu_rows16_size(type, n_rows, k)
                                                            : 0;
}

size_t ggl_cpu_repack_size(const ggl_backend *b, const ggl_tensor *w) {
    return ggl_cpu_repacked_matrix_size((const cpu_backend *)b, w->type, w->ne[1], w->ne[0]) *
           (size_t)ggl_extents(w->ne, 2, GGL_MAX_DIMS, 1);
}

/* Groups of rows are kept apart, and their products have the bits of those with the file's rows; but
 * rounding f16 changes them. */
int64_t ggl_cpu_repack_rows(const ggl_backend *b, const ggl_tensor *w) {
    /* With several nodes of memory, all rows must be repacked at once, by the threads that will read them. */
    return w->type == GGL_F16 || cpu_rows_first((const cpu_backend *)b) ? 0
                                                                        : UNIT_GROUPS * CPU_GROUP;
}

typedef struct repack_task {
    const cpu_backend *b;
    const ggl_tensor *w;
    char *to;
} repack_task;

/* Rounds n f16 numbers to bf16. */
static void round_to_bf16(const cpu_kernels *k, char *to, const char *from, int64_t n) {
    enum { AT_ONCE = 256 };
    float f32[AT_ONCE];
    uint16_t bf16[AT_ONCE];
    for (int64_t i = 0; i < n; i += AT_ONCE) {
        int64_t m = cpu_min(n - i, AT_ONCE);
        k->to_f32[GGL_F16](from + 2 * i, f32, m);
        k->round_bf16_pairs(bf16, f32, m); /* no f16 is small enough to be cut to 0 */
        memcpy(to + 2 * i, bf16, (size_t)m * sizeof *bf16);
    }
}

/* Repacks units first .. last - 1, each UNIT_GROUPS groups of a matrix (cpu_pool_fn). */
static void repack_units(void *ctx, int64_t first, int64_t last, int thread) {
    const repack_task *t = ctx;
    const ggl_tensor *w = t->w;
    const int64_t groups = groups_of(w), units = (groups + UNIT_GROUPS - 1) / UNIT_GROUPS,
                  matrices = ggl_extents(w->ne, 2, GGL_MAX_DIMS, 1);
    const size_t row = ggl_row_size(w->type, w->ne[0]), size = row * (size_t)w->ne[1];
    const size_t to_size = ggl_cpu_repacked_matrix_size(t->b, w->type, w->ne[1], w->ne[0]);
    (void)thread;
    for (int64_t u = first; u < last; u++) {
        const bool rows_first = cpu_rows_first(t->b); /* as in op_linear.c */
        const int64_t m = rows_first ? u % matrices : u / units,
                      j = (rows_first ? u / matrices : u % units) * UNIT_GROUPS;
        int64_t end = cpu_min(j + UNIT_GROUPS, groups);
        const char *from = (const char *)w->data + (size_t)m * size;
        char *to = t->to + (size_t)m * to_size;
        if (w->type == GGL_F16) {
            size_t at = (size_t)j * CPU_GROUP * row;
            round_to_bf16(&t->b->k, to + at, from + at,
                          (cpu_min(end * CPU_GROUP, w->ne[1]) - j * CPU_GROUP) * w->ne[0]);
        } else {
            ggl_cpu_rows16_pack(&t->b->k.product[w->type], to, w->type, from, row, w->ne[1],
                                w->ne[0], j, end);
        }
    }
}

/* All threads repack. The first to write a page decides on which node of memory it is, so each node gets the rows that its threads
 * will multiply. */
ggl_status ggl_cpu_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                          ggl_error *err) {
    cpu_backend *c = (cpu_backend *)b;
    (void)err;
    repack_task t = {c, w, dst->data + offset};
    int64_t units =
        (groups_of(w) + UNIT_GROUPS - 1) / UNIT_GROUPS * ggl_extents(w->ne, 2, GGL_MAX_DIMS, 1);
    if (!dst->huge)
        ggl_prefer_huge_pages(dst->data, dst->size);
    dst->huge = true;
    ggl_cpu_pool_run(c->pool, (int)cpu_max(c->n_threads, c->n_threads_batch), repack_units, &t,
                     units, 1, NULL);
    return GGL_OK;
}
