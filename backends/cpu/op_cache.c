/* cache: stores the rows of keys and values of a batch (docs/numeric.md, section 6). */
#include <string.h>

#include "attend.h"

ggl_status ggl_cpu_attend_stores(cpu_compiler *c, cpu_step *s, const ggl_tensor *cache,
                                 ggl_error *err) {
    if (!cache || cache->op != GGL_OP_CACHE)
        return ggl_fail(err, GGL_UNSUPPORTED, "attend needs a cache");
    const cpu_kernels *k = &ggl_cpu_compiler_backend(c)->k;
    for (int i = 0; i < 2; i++) {
        const ggl_store *store = cache->store[i];
        if (store && !k->scores[store->type] && !k->code_scores[store->type])
            return ggl_fail(err, GGL_UNSUPPORTED, "a cache of type %s is not supported",
                            ggl_type_get(store->type)->name);
        s->attend.kept[i] = ggl_cpu_compiler_store(c, store);
    }
    return GGL_OK;
}

static ggl_status cache_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    return ggl_cpu_attend_stores(c, s, s->node, err);
}

/* A unit is one token. */
static void cache_begin(cpu_task *t) {
    t->n_units = t->n;
    t->cost = 4 * (double)ggl_extents(t->src[CACHE_K].ne, 0, 2, 1);
}

/* Copies d elements to every step-th one. */
static void store_f32(float *to, int64_t step, const float *x, int64_t d) {
    if (step == 1)
        memcpy(to, x, (size_t)d * sizeof *to);
    else
        for (int64_t e = 0; e < d; e++)
            to[e * step] = x[e];
}

static void store_f16(const cpu_task *t, uint16_t *to, int64_t step, const float *x, int64_t d) {
    uint16_t half[64];
    for (int64_t i = 0; i < d; i += 64) {
        int64_t n = cpu_min(64, d - i);
        t->b->k.f32_to_f16(step == 1 ? to + i : half, x + i, n);
        for (int64_t e = 0; step != 1 && e < n; e++)
            to[(i + e) * step] = half[e];
    }
}

/* Encodes the row x of position pos into the rows of one head in its page: as ggl_store_put() does, which is for any type. */
static void store_row(const cpu_task *t, const ggl_store *s, char *rows, int64_t pos,
                      const float *x) {
    const int64_t d = s->ne[0], step = s->kind == GGL_STORE_KEYS ? GGL_PAGE : 1,
                  at = pos % GGL_PAGE * (step == 1 ? d : 1);
    if (s->type == GGL_F32)
        store_f32((float *)rows + at, step, x, d);
    else if (s->type == GGL_F16)
        store_f16(t, (uint16_t *)rows + at, step, x, d);
    else
        ggl_store_put(s, rows, pos, 0, x);
}

/* Stores the rows of tokens first .. last - 1, head by head, so that a page stays in the L1 cache
 * while its positions are written. */
static void cache_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int part = 0; part < 2; part++) {
        const ggl_store *s = t->step->attend.kept[part].store;
        const cpu_view *x = &t->src[part];
        for (int64_t h = 0; s && h < s->ne[1]; h++)
            for (int64_t l = first; l < last; l++) {
                const int64_t pos = cpu_attend_number(&t->src[CACHE_POS], l),
                              slot = cpu_attend_number(&t->src[CACHE_SLOT], l),
                              page = ggl_store_page(s, cpu_attend_table(&t->src[CACHE_PAGE], slot),
                                                    slot, pos);
                store_row(t, s,
                          cpu_attend_rows(t, part, h) +
                              (size_t)page * t->step->attend.kept[part].at.step,
                          pos,
                          (const float *)(x->p + (x->ne[3] == 1 ? 0 : (size_t)l * x->nb[3]) +
                                          (size_t)h * x->nb[1]));
            }
    }
}

const cpu_op ggl_cpu_op_cache = {.compile = cache_compile, .begin = cache_begin, .run = cache_run};
