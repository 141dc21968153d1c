/* The searches of search.h for LANES runs at once. search.c and search_avx2.c include this file, which
 * include search.h and define SEARCH_TABLE, so that each has the code for its vectors. */
#include <math.h>

#include "lanes.h"

enum { MAX_RUN = 32, RUN = QUANT_SYMMETRIC_RUN };

/* Sets the codes of x for the scale 1 / inverse and the minimum min. */
static void min_codes(const vf *x, int n, vf inverse, vf min, int top, vi *code) {
    for (int i = 0; i < n; i++)
        code[i] = vi_clamp(vf_round(inverse * (x[i] - min)), 0, top);
}

/* Returns the weighted error of codes, scale and minimum. */
static vf min_error(const quant_min_search *how, const vf *x, const vf *w, int n, vf scale, vf min,
                    const vi *code) {
    vf sum = vf_all(0.0f);
    for (int i = 0; i < n; i++) {
        vf diff = scale * vf_of(code[i]) + min - x[i];
        sum += w[i] * (how->absolute ? vf_abs(diff) : diff * diff);
    }
    return sum;
}

/* Sets *scale and *min to the least-squares solution for the given codes, and returns where the
 * codes determine it. The format has no positive minimum: then *min is 0 and *scale the best for
 * that. */
static vi min_regression(const vf *x, const vf *w, int n, vf sum_w, vf sum_x, const vi *code,
                         vf *scale, vf *min) {
    vf l = vf_all(0.0f), l2 = l, xl = l;
    for (int i = 0; i < n; i++) {
        vf q = vf_of(code[i]), wl = w[i] * q;
        l += wl;
        l2 += wl * q;
        xl += wl * x[i];
    }
    vf det = sum_w * l2 - l * l, m = (l2 * sum_x - l * xl) / det;
    vi positive = m > vf_all(0.0f);
    *scale = vf_pick(positive, xl / l2, (sum_w * xl - sum_x * l) / det);
    *min = vf_pick(positive, vf_all(0.0f), m);
    return det > vf_all(0.0f);
}

/* The elements of LANES runs, their weights and the sums over them. */
struct min_runs {
    vf x[MAX_RUN], w[MAX_RUN], min, max, sum_w, sum_x;
};

static void min_runs_of(struct min_runs *r, const float *x, const float *w, int n) {
    lanes_of(x, n, r->x);
    lanes_of(w, n, r->w);
    r->min = r->max = lane_heads(x, n);
    r->sum_w = lane_heads(w, n);
    r->sum_x = r->sum_w * r->min;
    for (int i = 1; i < n; i++) {
        r->min = vf_pick(r->x[i] < r->min, r->x[i], r->min);
        r->max = vf_pick(r->x[i] > r->max, r->x[i], r->max);
        r->sum_w += r->w[i];
        r->sum_x += r->w[i] * r->x[i];
    }
    r->min = vf_pick(r->min > vf_all(0.0f), vf_all(0.0f), r->min);
}

static void fit_min(const quant_min_search *how, const float *x, const float *w, int n,
                    uint8_t *code_out, float *scale_out, float *min_out) {
    struct min_runs r;
    vi code[MAX_RUN], trial[MAX_RUN];
    min_runs_of(&r, x, w, n);
    const vi constant = r.max == r.min;
    vf min = r.min, inverse = vf_all((float)how->top) / (r.max - min);
    vf scale = vf_all(1.0f) / inverse, s, m;
    min_codes(r.x, n, inverse, min, how->top, code);
    vf best = min_error(how, r.x, r.w, n, scale, min, code);
    for (int step = 0; step <= how->n_steps; step++) {
        inverse = vf_all(how->first + 0.1f * (float)step + (float)how->top) / (r.max - min);
        min_codes(r.x, n, inverse, min, how->top, trial);
        vi better = min_regression(r.x, r.w, n, r.sum_w, r.sum_x, trial, &s, &m);
        vf error = min_error(how, r.x, r.w, n, s, m, trial);
        better &= error < best;
        if (!vi_any(better))
            continue;
        for (int i = 0; i < n; i++)
            code[i] = vi_pick(better, trial[i], code[i]);
        best = vf_pick(better, error, best);
        scale = vf_pick(better, s, scale);
        min = vf_pick(better, m, min); /* the next steps start from it, too */
    }
    for (int i = 0; i < n; i++)
        code[i] &= ~constant;
    lanes_to_bytes(code, n, 0, code_out);
    lanes_store(scale_out, vf_pick(constant, vf_all(0.0f), scale));
    lanes_store(min_out, -vf_pick(constant, r.min, min));
}

/* LANES runs x, with x^2 as weights and their products with x, and the elements largest in
 * magnitude. The codes q (-top .. top - 1) have these sums: the best scale for them is xq / q2; its
 * error is xq^2 / q2 less than that of all zeros. */
struct symmetric_runs {
    vf x[RUN], w[RUN], wx[RUN], extreme;
    vi tiny;
};

struct symmetric_sums {
    vf xq, q2;
};

static void symmetric_runs_of(struct symmetric_runs *r, const float *x) {
    vf most = vf_all(0.0f);
    lanes_of(x, RUN, r->x);
    r->extreme = most;
    for (int i = 0; i < RUN; i++) {
        vf a = vf_abs(r->x[i]);
        vi more = a > most;
        most = vf_pick(more, a, most);
        r->extreme = vf_pick(more, r->x[i], r->extreme);
        r->w[i] = r->x[i] * r->x[i];
        r->wx[i] = r->w[i] * r->x[i];
    }
    r->tiny = most < vf_all(QUANT_TINY);
}

/* Sets the codes q[] for the scale 1 / inverse, and returns their sums. */
static struct symmetric_sums symmetric_codes(const struct symmetric_runs *r, vf inverse, int top,
                                             vi *q) {
    struct symmetric_sums s = {vf_all(0.0f), vf_all(0.0f)};
    for (int i = 0; i < RUN; i++) {
        q[i] = vi_clamp(vf_round(inverse * r->x[i]), -top, top - 1);
        vf v = vf_of(q[i]);
        s.xq += r->wx[i] * v;
        s.q2 += r->w[i] * v * v;
    }
    return s;
}

/* Stores the codes and scales; where all elements are tiny, zeros. */
static void put_symmetric(const struct symmetric_runs *r, vi *q, vf scale, int top, uint8_t *code,
                          float *scale_out) {
    for (int i = 0; i < RUN; i++)
        q[i] = vi_pick(r->tiny, vi_all(-top), q[i]);
    lanes_to_bytes(q, RUN, top, code);
    lanes_store(scale_out, vf_pick(r->tiny, vf_all(0.0f), scale));
}

static void fit_symmetric(const float *x, int top, uint8_t *code, float *scale_out) {
    struct symmetric_runs r;
    vi q[RUN], trial[RUN];
    const vf zero = vf_all(0.0f);
    symmetric_runs_of(&r, x);
    struct symmetric_sums s = symmetric_codes(&r, vf_all((float)-top) / r.extreme, top, q);
    vf scale = vf_pick(s.q2 != zero, s.xq / s.q2, zero), best = scale * s.xq;
    for (int step = -9; step <= 9; step++) {
        if (step == 0)
            continue;
        vf inverse = vf_all(-((float)top + 0.1f * (float)step)) / r.extreme;
        s = symmetric_codes(&r, inverse, top, trial);
        vi better = (s.q2 > zero) & (s.xq * s.xq > best * s.q2);
        if (!vi_any(better))
            continue;
        for (int i = 0; i < RUN; i++)
            q[i] = vi_pick(better, trial[i], q[i]);
        scale = vf_pick(better, s.xq / s.q2, scale);
        best = vf_pick(better, scale * s.xq, best);
    }
    put_symmetric(&r, q, scale, top, code, scale_out);
}

/* Tries for element i the code that fits the best scale of all other elements. Where that reduces
 * the error, changes the code and the sums. Returns where. */
static vi improve_code(const struct symmetric_runs *r, int i, int top, vi *q,
                       struct symmetric_sums *s) {
    vf v = vf_of(q[i]);
    struct symmetric_sums t = {s->xq - r->wx[i] * v, s->q2 - r->w[i] * v * v};
    vi better = vi_clamp(vf_round(r->x[i] * t.q2 / t.xq), -top, top - 1);
    vi use = (t.xq > vf_all(0.0f)) & (better != q[i]);
    v = vf_of(better);
    t.xq += r->wx[i] * v;
    t.q2 += r->w[i] * v * v;
    use &= (t.q2 > vf_all(0.0f)) & (t.xq * t.xq * s->q2 > s->xq * s->xq * t.q2);
    q[i] = vi_pick(use, better, q[i]);
    s->xq = vf_pick(use, t.xq, s->xq);
    s->q2 = vf_pick(use, t.q2, s->q2);
    return use;
}

static void fit_greedy(const float *x, int top, uint8_t *code, float *scale_out) {
    struct symmetric_runs r;
    vi q[RUN];
    symmetric_runs_of(&r, x);
    struct symmetric_sums s = symmetric_codes(&r, vf_all((float)-top) / r.extreme, top, q);
    vi changed = ~r.tiny;
    for (int round = 0; round < 5 && vi_any(changed); round++) {
        changed = vi_all(0);
        for (int i = 0; i < RUN; i++)
            changed |= improve_code(&r, i, top, q, &s) & ~r.tiny;
    }
    vf scale = vf_pick(s.q2 > vf_all(0.0f), s.xq / s.q2, vf_all(0.0f));
    put_symmetric(&r, q, scale, top, code, scale_out);
}

/* --- QUANT_AT_ONCE runs ----------------------------------------------------------------------- */

static void fit_mins(const quant_min_search *how, const float *x, const float *w, int n,
                     uint8_t *code, float *scale, float *min) {
    for (int r = 0; r < QUANT_AT_ONCE; r += LANES)
        fit_min(how, x + r * n, w + r * n, n, code + r * n, scale + r, min + r);
}

static void fit_symmetrics(const float *x, int top, uint8_t *code, float *scale) {
    for (int r = 0; r < QUANT_AT_ONCE; r += LANES)
        fit_symmetric(x + r * RUN, top, code + r * RUN, scale + r);
}

static void fit_greedies(const float *x, int top, uint8_t *code, float *scale) {
    for (int r = 0; r < QUANT_AT_ONCE; r += LANES)
        fit_greedy(x + r * RUN, top, code + r * RUN, scale + r);
}

const quant_search SEARCH_TABLE = {fit_mins, fit_symmetrics, fit_greedies};
