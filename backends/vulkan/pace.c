#include "pace.h"

#include <math.h>

#include "linear.h"

/* 10^11 multiply-adds, or 25 * 10^9 bytes, or 10^5 dispatches a second: a slow integrated GPU.
 * Attention reaches a smaller part of a device's speed than products, so it counts more. */
static const double OF_BYTE = 4, OF_DISPATCH = 1e6, OF_ATTENTION = 8;
static const double FIRST_LIMIT = 1e10; /* 100 ms at this speed */
static const double MOST_LIMIT = 1e12, SHORT_LIMIT = 4e6;
/* Submissions with less work do not show how fast the device is. */
static const double LEAST_MEASURED = 1e9;
static const double TARGET_NS = 50e6; /* half of 100 ms, as work of another kind may be slower */

/* --- work ------------------------------------------------------------------------------------- */

static double count_of(const ggl_operand *o, int64_t n) {
    double count = 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        count *= o->ne[d] == GGL_N ? (double)n : (double)o->ne[d];
    return count;
}

static double bytes_of(const ggl_operand *o, int64_t n) {
    const ggl_type_info *t = ggl_type_get(o->type);
    return o->region < 0 ? 0 : count_of(o, n) / (double)t->block * (double)t->size;
}

/* Returns the multiply-adds of a product. Products of a chosen matrix read at most one matrix for
 * each column: *unread are the bytes of the others. */
static double work_of_product(const ggl_step *s, int64_t n, double *unread) {
    const ggl_operand *w = &s->src[LINEAR_W];
    const double columns = count_of(&s->dst, n) / (double)s->dst.ne[0];
    *unread = ggl_vk_is_chosen(s) && columns < (double)w->ne[2]
                  ? bytes_of(w, n) * (1 - columns / (double)w->ne[2])
                  : 0;
    return count_of(&s->dst, n) * (double)w->ne[0];
}

/* Returns the multiply-adds of an attention over all positions that a slot can have. */
static double work_of_attention(const ggl_step *s, int64_t n) {
    const ggl_tensor *cache = s->node->src[ATTEND_KV];
    const int64_t window = ggl_attend_window(s->node), n_pos = cache->store[0]->n_pos;
    return (count_of(&s->src[ATTEND_Q], n) + count_of(&s->dst, n)) *
           (double)(window > 0 && window < n_pos ? window : n_pos);
}

/* Returns the multiply-adds of a recurrence: some for each element of the state and token. */
static double work_of_state(const ggl_tensor *call, int64_t n) {
    const ggl_store *s = ggl_composite_state(call);
    return s ? 4 * (double)(s->slot_size / sizeof(float)) * (double)n : 0;
}

static vk_cost cost_of_one(const ggl_step *s, int64_t n) {
    const ggl_op op = s->kind == GGL_STEP_NODE ? s->node->op : GGL_OP_RESHAPE; /* a form: bytes */
    double bytes = bytes_of(&s->dst, n), unread = 0;
    for (int k = 0; k < s->n_src; k++)
        bytes += bytes_of(&s->src[k], n);
    vk_cost c = {.least = OF_DISPATCH};
    if (op == GGL_OP_LINEAR)
        c.least += work_of_product(s, n, &unread);
    if (op == GGL_OP_CALL && s->node->body)
        c.least += work_of_state(s->node, n);
    if (op == GGL_OP_PICK) /* reads a part of its table */
        bytes = 2 * bytes_of(&s->dst, n);
    c.least += OF_BYTE * (bytes - unread);
    c.most = c.least;
    if (op == GGL_OP_ATTEND)
        c.most += OF_ATTENTION * work_of_attention(s, n);
    return c;
}

vk_cost ggl_vk_cost_of(const ggl_step *step, int64_t n) {
    vk_cost all = {0};
    const ggl_step *s = step;
    for (int k = 0; k < step->n_members; k++, s += s->n_links) {
        const vk_cost c = cost_of_one(s, n);
        all.least += c.least;
        all.most += c.most;
    }
    const double tail = step->has_tail ? OF_DISPATCH : 0;
    all.least += tail;
    all.most += tail;
    return all;
}

/* --- speed ------------------------------------------------------------------------------------ */

void ggl_vk_pace_open(vk_backend *b) {
    b->device->limit = b->features.pace ? FIRST_LIMIT : SHORT_LIMIT;
}

double ggl_vk_pace_limit(const vk_backend *b) {
    return b->device->limit;
}

void ggl_vk_pace_submitted(vk_backend *b, uint64_t number, double least) {
    b->device->submission[number % VK_IN_FLIGHT].least = least;
}

/* A submission may have waited for others, and may have ended before: the device is at least this
 * fast. */
void ggl_vk_pace_ended(vk_backend *b, uint64_t number, uint64_t now) {
    const vk_submission *s = &b->device->submission[number % VK_IN_FLIGHT];
    const double limit = s->least / ((double)(now - s->begin) + 1) * TARGET_NS;
    if (b->features.pace && s->least >= LEAST_MEASURED && limit > b->device->limit)
        b->device->limit = fmin(limit, MOST_LIMIT);
}
