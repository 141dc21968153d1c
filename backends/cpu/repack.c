/* Weights of products in the row-interleaved layout: 16 rows side by side (quant/rows16.h). */
#include "cpu.h"
#include "ggl/alloc.h"
#include "quant/rows16.h"

/* A unit of work: groups of 16 rows that follow each other. */
enum { UNIT_GROUPS = 8 };

static int64_t groups_of(const ggl_tensor *w) {
    return (w->ne[1] + CPU_GROUP - 1) / CPU_GROUP;
}

/* A few rows would mostly be padding, and are read from the inner cache anyway. */
size_t cpu_repack_size(const ggl_backend *b, const ggl_tensor *w) {
    const cpu_product *p = &((const cpu_backend *)b)->k.product[w->type];
    if (!p->rows16 || w->ne[1] < CPU_GROUP)
        return 0;
    return cpu_rows16_size(w->type, w->ne[1], w->ne[0]) * (size_t)(w->ne[2] * w->ne[3]);
}

typedef struct repack_task {
    const cpu_product *product;
    const ggl_tensor *w;
    char *to;
} repack_task;

static void repack_units(void *ctx, int64_t first, int64_t last, int thread) {
    const repack_task *t = ctx;
    const ggl_tensor *w = t->w;
    const int64_t groups = groups_of(w), units = (groups + UNIT_GROUPS - 1) / UNIT_GROUPS;
    const size_t row = ggl_row_size(w->type, w->ne[0]), size = row * (size_t)w->ne[1];
    (void)thread;
    for (int64_t u = first; u < last; u++) {
        int64_t m = u / units, j = u % units * UNIT_GROUPS;
        cpu_rows16_pack(t->product,
                        t->to + (size_t)m * cpu_rows16_size(w->type, w->ne[1], w->ne[0]), w->type,
                        (const char *)w->data + (size_t)m * size, row, w->ne[1], w->ne[0], j,
                        cpu_min(j + UNIT_GROUPS, groups));
    }
}

ggl_status cpu_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                      ggl_error *err) {
    cpu_backend *c = (cpu_backend *)b;
    (void)err;
    repack_task t = {&c->k.product[w->type], w, dst->data + offset};
    int64_t units = (groups_of(w) + UNIT_GROUPS - 1) / UNIT_GROUPS * w->ne[2] * w->ne[3];
    if (!dst->huge)
        ggl_prefer_huge_pages(dst->data, dst->size);
    dst->huge = true;
    cpu_pool_run(c->pool, (int)cpu_max(c->n_threads, c->n_threads_batch), repack_units, &t, units,
                 1);
    return GGL_OK;
}
