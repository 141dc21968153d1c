/* Groups steps that run as one task, so that threads synchronize less often and data is still in
 * the cache when it is read. An item is one element of the batch. There are two kinds of groups:
 *
 *   side by side   The groups of the program (ggl/program.h): steps of one wave. Their units form
 *                  one list that all threads take from.
 *   by items       Consecutive steps that compute item l of their result from item l of their
 *                  sources: for example sum, norm and quantization before a product. A thread takes
 *                  a few items through all steps before it takes the next items.
 *
 * In a group by items, a step runs on some items before an earlier step has run on the others. The
 * program has assigned memory as if steps ran one after another, so a step's result may overlap
 * memory of another step of the group. That is allowed only if equal items overlap. */
#include <string.h>

#include "cpu.h"

enum {
    MOST_STEPS = 16,
    MOST_ITEMS = 16,
    NEAR = 128 << 10 /* most bytes of a step's items taken at a time, so that they stay cached */
};

/* --- memory -------------------------------------------------------------------------------- */

/* Returns the bytes from the first to the last element of one item. */
static size_t item_size(const ggl_operand *o) {
    size_t size = ggl_row_size(o->type, o->ne[0]);
    for (int d = 1; d < GGL_BATCH_DIM; d++)
        size += o->nb[d] * (size_t)(o->ne[d] - 1);
    return size;
}

/* True if the operand has one item for each element of the batch. */
static bool is_batched(const ggl_operand *o) {
    return o->ne[GGL_BATCH_DIM] == GGL_N;
}

/* Returns the bytes from an operand's first element to its last, for a batch of n and for all turns
 * of a loop. */
static size_t reach(const ggl_operand *o, int64_t n) {
    int64_t items = is_batched(o) ? n : o->ne[GGL_BATCH_DIM];
    return item_size(o) + o->nb[GGL_BATCH_DIM] * (size_t)(items - 1) + o->loop * (size_t)(n - 1);
}

/* True if the operands overlap in memory, in a plan for batches of up to n_max. */
static bool overlap(const ggl_operand *a, const ggl_operand *b, int64_t n_max) {
    return a->region >= 0 && a->region == b->region && a->offset < b->offset + reach(b, n_max) &&
           b->offset < a->offset + reach(a, n_max);
}

/* True if item i of a can overlap no item of b except the i-th: both have the same stride between
 * items, and each pair of items fits into one stride. */
static bool item_to_item(const ggl_operand *a, const ggl_operand *b) {
    size_t step = a->nb[GGL_BATCH_DIM];
    if (!is_batched(a) || !is_batched(b) || b->nb[GGL_BATCH_DIM] != step)
        return false;
    size_t first = a->offset < b->offset ? a->offset : b->offset;
    return a->offset - first + item_size(a) <= step && b->offset - first + item_size(b) <= step;
}

/* True if no item of a overlaps a different item of b. */
static bool apart(const ggl_operand *a, const ggl_operand *b, int64_t n_max) {
    return !overlap(a, b, n_max) || item_to_item(a, b);
}

/* --- by items ------------------------------------------------------------------------------ */

/* True if s may be in a group by items: it is batched, outside of loops, and its operator computes
 * each item from the same item of its sources. */
static bool can_go_by_items(const cpu_step *s) {
    return s->kind == GGL_STEP_NODE && !s->in_loop && s->op->by_item && is_batched(&s->dst);
}

/* True if step b, which follows a, may run on some items before a has run on all others. */
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

/* Returns the bytes that the step reads and writes for one item. */
static size_t bytes_of_item(const cpu_step *s) {
    size_t size = item_size(&s->dst);
    for (int i = 0; i < s->n_src; i++)
        if (s->src[i].region >= 0 && is_batched(&s->src[i]))
            size += item_size(&s->src[i]);
    return size;
}

/* Returns how many of the n steps from s on form a group by items, and sets s->items: how many
 * items a thread takes at a time, or 0 if there is no such group (fewer than two steps). */
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

/* Returns how many of the n steps from s on run side by side; at least 1. By items may have taken
 * the first members of a group. */
static size_t side_by_side(const cpu_step *s, size_t n) {
    size_t k = 1;
    while (k < n && s[k].n_members == 0)
        k++;
    return k;
}

void ggl_cpu_group(cpu_step *step, size_t n_step, int64_t n_max) {
    for (size_t i = 0; i < n_step;) {
        size_t n = by_items(&step[i], n_step - i, n_max);
        if (n < 2)
            n = side_by_side(&step[i], n_step - i);
        for (size_t k = 0; k < n; k++) /* a batch of one item runs the steps of a group singly */
            step[i + k].n_together = 1;
        step[i].n_together = (int)n;
        i += n;
    }
}
