/* state and keep, which pass values from token to token. They run only in loops, where the batch
 * is 1. */
#include "reference.h"

static view stored(const step_args *a, const ggl_store *s, const view *slot) {
    size_t e = s->type == GGL_F32 ? 4 : 2;
    char *at = ggl_ref_store(a, s) + (size_t)ggl_ref_get(slot, 0, 0, 0, 0) * s->slot_size;
    return (view){at,
                  s->type,
                  {s->ne[0], s->ne[1], s->ne[2], 1},
                  {e, e * (size_t)s->ne[0], e * (size_t)ggl_extents(s->ne, 0, 2, 1), 0}};
}

/* Returns a row of the memory of states that end with the run. */
static view row_of(const view *room, int64_t row) {
    view v = *room;
    v.ne[GGL_BATCH_DIM] = 1;
    v.data += row < 0 ? 0 : (size_t)row * v.nb[GGL_BATCH_DIM];
    return v;
}

void ggl_ref_state(const step_args *a) {
    const ggl_store *store = a->node->store[0];
    const bool zeros = !store && a->turns->from < 0;
    view s = store ? stored(a, store, &a->src[0]) : row_of(&a->src[1], a->turns->from);
    FOR_EACH(a->dst)
    ggl_ref_set(&a->dst, i, j, k, l, zeros ? 0 : ggl_ref_get(&s, i, j, k, l));
}

void ggl_ref_keep(const step_args *a) {
    const ggl_store *store = a->node->src[KEEP_STATE]->store[0];
    view s =
        store ? stored(a, store, &a->src[KEEP_SLOT]) : row_of(&a->src[KEEP_STATE], a->turns->to);
    if (!store && a->turns->to < 0)
        return;
    FOR_EACH(s)
    ggl_ref_set(&s, i, j, k, l, ggl_ref_get(&a->src[KEEP_X], i, j, k, l));
}
