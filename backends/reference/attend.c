/* What attention keeps, and how it reads it. */
#include <math.h>

#include "ggl/math.h"
#include "reference.h"

static char *slot_at(const step_args *a, const ggl_store *s, int64_t slot) {
    return a->stores + a->store_loc[s->id] + (size_t)slot * s->slot_size;
}

void ref_cache(const step_args *a) {
    const view *pos = &a->src[2], *slot = &a->src[3];
    for (int part = 0; part < 2; part++) {
        const ggl_store *s = a->node->store[part];
        if (!s)
            continue;
        const view *x = &a->src[part];
        for (int64_t l = 0; l < pos->ne[3]; l++) /* rows may be the same for the whole batch */
            for (int64_t j = 0; j < x->ne[1]; j++) {
                for (int64_t i = 0; i < x->ne[0]; i++)
                    a->stored[i] = (float)ref_get(x, i, j, 0, l);
                ggl_store_put(s, slot_at(a, s, (int64_t)ref_get(slot, 0, 0, 0, l)),
                              (int64_t)ref_get(pos, 0, 0, 0, l), j, a->stored);
            }
    }
}

static double score(const step_args *a, const ggl_store *keys, int64_t head, int64_t l,
                    int64_t slot, int64_t pos, int64_t at) {
    const view *q = &a->src[0], *alibi = &a->src[3];
    double scale = a->node->num[0], cap = a->node->num[2], s = 0;
    ggl_store_get(keys, slot_at(a, keys, slot), at, head * keys->ne[1] / q->ne[1], a->stored);
    for (int64_t i = 0; i < q->ne[0]; i++)
        s += ref_get(q, i, head, 0, l) * (double)a->stored[i];
    s *= isnan(scale) ? 1 / sqrt((double)q->ne[0]) : scale;
    if (!isnan(cap))
        s = cap * ggl_tanh(s / cap);
    if (alibi->data)
        s -= ref_get(alibi, head, 0, 0, l) * (double)(pos - at);
    return s;
}

/* Softmax over the visible positions of the token's own slot, in two passes; a sink takes a share
 * that goes nowhere. */
void ref_attend(const step_args *a) {
    const ggl_tensor *kv = a->node->src[1];
    const ggl_store *keys = kv->store[0], *values = kv->store[1] ? kv->store[1] : keys;
    const view *sinks = &a->src[2];
    double window = a->node->num[1];
    for (int64_t l = 0; l < a->dst.ne[3]; l++)
        for (int64_t head = 0; head < a->dst.ne[1]; head++) {
            int64_t pos = (int64_t)ref_get(&a->src[4], 0, 0, 0, l),
                    slot = (int64_t)ref_get(&a->src[5], 0, 0, 0, l);
            int64_t first = isnan(window) || (double)pos < window ? 0 : pos - (int64_t)window + 1;
            int64_t g = head * keys->ne[1] / a->src[0].ne[1];
            double top = sinks->data ? ref_get(sinks, head, 0, 0, l) : -INFINITY, total = 0;
            for (int64_t p = first; p <= pos; p++)
                top = fmax(top, score(a, keys, head, l, slot, pos, p));
            for (int64_t i = 0; i < a->dst.ne[0]; i++)
                a->row[i] = 0;
            for (int64_t p = first; p <= pos; p++) {
                double e = ggl_exp(score(a, keys, head, l, slot, pos, p) - top);
                total += e;
                ggl_store_get(values, slot_at(a, values, slot), p, g, a->stored);
                for (int64_t i = 0; i < a->dst.ne[0]; i++)
                    a->row[i] += e * (double)a->stored[i];
            }
            if (sinks->data)
                total += ggl_exp(ref_get(sinks, head, 0, 0, l) - top);
            for (int64_t i = 0; i < a->dst.ne[0]; i++)
                ref_set(&a->dst, i, head, 0, l, a->row[i] / total);
        }
}
