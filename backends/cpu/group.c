/* Which steps run as one task, so that threads meet less often and data is used while it is near.
 *
 *   side by side   steps of one wave (ggl/program.h): their units are numbered through
 *   by items       steps of which each needs, of the batch, only the item that it makes: the sum,
 *                  the norm and the rounding before a product; an activation, its gate and the
 *                  rounding. Some items pass through all of them before the next come.
 *
 * By items, a step runs on some items before an earlier step has seen the others. So the memory
 * that it writes must not be what another step of the group reads or writes, but for the same item:
 * the planner, who gave out memory step by step, may have reused it. */
#include <string.h>

#include "cpu.h"

enum {
    MOST_STEPS = 16,
    MOST_ITEMS = 16,
    NEAR = 128 << 10 /* bytes that a step's items may take */
};

/* --- memory -------------------------------------------------------------------------------- */

/* Bytes of one item. */
static size_t item_size(const ggl_operand *o) {
    size_t size = ggl_row_size(o->type, o->ne[0]);
    for (int d = 1; d < GGL_BATCH_DIM; d++)
        size += o->nb[d] * (size_t)(o->ne[d] - 1);
    return size;
}

static bool is_batched(const ggl_operand *o) {
    return o->ne[GGL_BATCH_DIM] == GGL_N;
}

/* Bytes from an operand's first to its last, for n of the batch, in all turns of a loop. */
static size_t reach(const ggl_operand *o, int64_t n) {
    int64_t items = is_batched(o) ? n : o->ne[GGL_BATCH_DIM];
    return item_size(o) + o->nb[GGL_BATCH_DIM] * (size_t)(items - 1) + o->loop * (size_t)(n - 1);
}

bool ggl_cpu_overlap(const ggl_operand *a, const ggl_operand *b, int64_t n_max) {
    return a->region >= 0 && a->region == b->region && a->offset < b->offset + reach(b, n_max) &&
           b->offset < a->offset + reach(a, n_max);
}

/* Whether item i of a shares memory with no item of b but the i-th: they lie in one grid. */
static bool item_to_item(const ggl_operand *a, const ggl_operand *b) {
    size_t step = a->nb[GGL_BATCH_DIM];
    if (!is_batched(a) || !is_batched(b) || b->nb[GGL_BATCH_DIM] != step)
        return false;
    size_t first = a->offset < b->offset ? a->offset : b->offset;
    return a->offset - first + item_size(a) <= step && b->offset - first + item_size(b) <= step;
}

static bool apart(const ggl_operand *a, const ggl_operand *b, int64_t n_max) {
    return !ggl_cpu_overlap(a, b, n_max) || item_to_item(a, b);
}

/* --- by items ------------------------------------------------------------------------------ */

static bool is_preparation(const cpu_step *s) {
    return s->op == &ggl_cpu_op_columns;
}

static bool can_go_by_items(const cpu_step *s) {
    if (s->kind != GGL_STEP_NODE || s->in_loop || !s->op->by_item)
        return false;
    return is_batched(is_preparation(s) ? &s->src[0] : &s->dst);
}

/* Whether b, behind a, may run on some items before a has run on others. What preparations write
 * is no operand, and stays until a step that is not in the group has used it. */
static bool can_interleave(const cpu_step *a, const cpu_step *b, int64_t n_max) {
    if (!apart(&a->dst, &b->dst, n_max))
        return false;
    for (int i = 0; i < a->n_src; i++)
        if (!apart(&b->dst, &a->src[i], n_max))
            return false;
    for (int i = 0; i < b->n_src; i++)
        if (!apart(&a->dst, &b->src[i], n_max))
            return false;
    return true;
}

static size_t bytes_of_item(const cpu_step *s) {
    size_t size = s->dst.region >= 0 ? item_size(&s->dst) : s->prepared_row;
    for (int i = 0; i < s->n_src; i++)
        if (s->src[i].region >= 0 && is_batched(&s->src[i]))
            size += item_size(&s->src[i]);
    return size;
}

/* How many steps from s on, of n at most, can go by items; sets how many items at a time. */
static size_t by_items(cpu_step *s, size_t n, int64_t n_max) {
    size_t k = 0, most = 1;
    for (; k < n && k < MOST_STEPS && can_go_by_items(&s[k]); k++) {
        for (size_t i = 0; i < k; i++)
            if (!can_interleave(&s[i], &s[k], n_max))
                goto end;
        most = bytes_of_item(&s[k]) > most ? bytes_of_item(&s[k]) : most;
    }
end:
    s->items = k > 1 ? (int)cpu_max(1, cpu_min(NEAR / (int64_t)most, MOST_ITEMS)) : 0;
    return k;
}

/* --- side by side -------------------------------------------------------------------------- */

/* What uses the scratch of all threads, or has something to do when all is done, runs alone. (What
 * makes a preparation has no wave.) */
static bool can_share(const cpu_step *s) {
    return s->wave > 0 && !s->in_loop && s->shared_size == 0 && !s->op->end;
}

static size_t side_by_side(const cpu_step *s, size_t n) {
    size_t k = 1;
    while (k < CPU_TOGETHER && k < n && can_share(s) && can_share(&s[k]) && s[k].wave == s->wave)
        k++;
    return k;
}

void ggl_cpu_group(cpu_step *step, size_t n_step, int64_t n_max) {
    for (size_t i = 0; i < n_step;) {
        size_t n = by_items(&step[i], n_step - i, n_max);
        if (n < 2)
            n = side_by_side(&step[i], n_step - i);
        for (size_t k = 0; k < n; k++) /* a run of one item takes them one by one */
            step[i + k].n_together = 1;
        step[i].n_together = (int)n;
        i += n;
    }
}
