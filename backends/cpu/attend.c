#include "attend.h"

#include <math.h>
#include <string.h>

void ggl_cpu_attend_shares(const group *g, partial *total, const partial *part, int first, int last,
                           shares *share) {
    for (int q = first; q < last; q++) {
        const int from = q;
        while (q < last && part->any[q] && total->any[q])
            share->first[q++] = false;
        if (q > from)
            g->t->b->k.merge_sums(total->m + from, total->l + from, part->m + from, part->l + from,
                                  share->factor + from, q - from);
        if (q == last)
            return;
        share->first[q] = !total->any[q];
        share->factor[q][0] = share->factor[q][1] = 0;
        if (part->any[q]) {
            total->m[q] = part->m[q];
            total->l[q] = part->l[q];
            total->any[q] = true;
        }
    }
}

void ggl_cpu_attend_merge(const group *g, partial *total, const partial *part, const float *o,
                          int first, int last, const shares *share) {
    for (int q = first; q < last; q++, o += g->step) {
        float *to = total->o + q * g->step;
        if (part->any[q] && share->first[q])
            memcpy(to, o, (size_t)g->e * sizeof *to);
        else if (part->any[q])
            g->t->b->k.merge(to, o, share->factor[q][0], share->factor[q][1], g->e);
    }
}

/* True if scores need an ALiBi slope, a bias or a cap, besides the scale. */
static bool is_adjusted(const group *g) {
    return g->t->step->attend.cap != 0 || g->t->src[ATTEND_ALIBI].p || g->t->src[ATTEND_BIAS].p;
}

/* Adds the biases of the distances of positions from .. from+n-1 to query q's scores v[n]. */
static void add_bias(const group *g, int q, float *v, int64_t from, int64_t n) {
    const cpu_view *bias = &g->t->src[ATTEND_BIAS];
    const float *row = (const float *)(bias->p + (size_t)g->head[q] * bias->nb[1]);
    const int64_t far = bias->ne[0] / 2, first = from - g->pos[q];
    for (int64_t j = 0; j < n; j++)
        v[j] += row[far + cpu_max(-far, cpu_min(far, first + j))];
}

/* Scales query q's scores v[n] for positions from `from` on, and applies the cap, alibi and the bias. */
static void adjust(const group *g, int q, float *v, int64_t from, int64_t n) {
    const cpu_task *t = g->t;
    const cpu_kernels *k = &t->b->k;
    const float cap = t->step->attend.cap;
    k->binary[CPU_MUL](v, v, 1, &t->step->attend.scale, 0, n);
    if (cap != 0) {
        k->binary[CPU_DIV](v, v, 1, &cap, 0, n);
        k->unary[CPU_TANH](v, v, n);
        k->binary[CPU_MUL](v, &cap, 0, v, 1, n);
    }
    if (t->src[ATTEND_ALIBI].p) {
        float slope = cpu_attend_per_head(&t->src[ATTEND_ALIBI], g->head[q], g->token[q]);
        for (int64_t j = 0; j < n; j++) {
            float drop = slope * fabsf((float)(g->pos[q] - from - j));
            v[j] -= drop;
        }
    }
    if (t->src[ATTEND_BIAS].p)
        add_bias(g, q, v, from, n);
}

bool ggl_cpu_attend_weigh(const group *g, int64_t first, float (*w)[GGL_PAGE], int *lo, int *hi,
                          partial *out) {
    const cpu_kernels *k = &g->t->b->k;
    const bool adjusted = is_adjusted(g);
    const float scale = adjusted ? 1 : g->t->step->attend.scale;
    const bool whole = g->all_from <= first && first + GGL_PAGE <= g->all_end;
    for (int q = 0; q < g->n; q++) {
        lo[q] = whole ? 0 : (int)cpu_max(0, cpu_min(GGL_PAGE, g->from[q] - first));
        hi[q] = whole ? GGL_PAGE : (int)cpu_max(0, cpu_min(GGL_PAGE, g->end[q] - first));
        out->any[q] = lo[q] < hi[q];
    }
    for (int q = 0; q < g->n && adjusted; q++)
        if (out->any[q])
            adjust(g, q, w[q] + lo[q], first + lo[q], hi[q] - lo[q]);
    if (whole)
        k->softmax_pages(w, g->n, scale, out->m, out->l);
    for (int q = 0; q < g->n && !whole; q++)
        if (out->any[q])
            out->m[q] = k->softmax_page(w[q], lo[q], hi[q], scale, &out->l[q]);
    return whole;
}

/* Positions that all queries see are added for all of them at once; those before and after are added
 * query by query. */
void ggl_cpu_attend_values(const cpu_kernels *k, int n, float (*w)[GGL_PAGE], const int *lo,
                           const int *hi, const void *page, ggl_type type, int64_t e,
                           const void *next, float *o, int64_t o_step) {
    void (*values)(float *, int64_t, float(*)[GGL_PAGE], int, const void *, int64_t, int, int,
                   const void *) = k->values[type];
    int all_lo = 0, all_hi = GGL_PAGE;
    for (int q = 0; q < n; q++) {
        all_lo = lo[q] > all_lo ? lo[q] : all_lo;
        all_hi = hi[q] < all_hi ? hi[q] : all_hi;
    }
    if (all_lo >= all_hi) {
        for (int q = 0; q < n; q++)
            if (lo[q] < hi[q])
                values(o + q * o_step, o_step, w + q, 1, page, e, lo[q], hi[q], next);
        return;
    }
    for (int q = 0; q < n; q++)
        if (lo[q] < all_lo)
            values(o + q * o_step, o_step, w + q, 1, page, e, lo[q], all_lo, page);
    values(o, o_step, w, n, page, e, all_lo, all_hi, next);
    for (int q = 0; q < n; q++)
        if (hi[q] > all_hi)
            values(o + q * o_step, o_step, w + q, 1, page, e, all_hi, hi[q], next);
}
