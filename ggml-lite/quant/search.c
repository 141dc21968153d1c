/* The search for scales: see search.h. The result depends on the order of every float operation. */
#include "search.h"

#include <math.h>

#include "quant.h"

enum { MAX_RUN = 32, RUN = QUANT_SYMMETRIC_RUN };

quant_steps ggl_quant_even_steps(const float *x, int n, int top) {
    float min = x[0], max = x[0], nan = quant_extreme(x, n);
    if (isnan(nan))
        return (quant_steps){.d = nan, .min = nan};
    for (int i = 1; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    quant_steps s = {.d = (max - min) / (float)top, .min = min};
    if (s.d != 0.0f && isfinite(s.d) && isfinite(1.0f / s.d))
        s.inverse = 1.0f / s.d;
    return s;
}

/* Sets the codes of x for the scale 1 / inverse and the minimum min. */
static void min_codes(const float *x, int n, float inverse, float min, int top, uint8_t *code) {
    for (int i = 0; i < n; i++)
        code[i] = (uint8_t)quant_clamp(quant_round(inverse * (x[i] - min)), 0, top);
}

/* Returns the weighted error of codes, scale and minimum. */
static float min_error(const quant_min_search *how, const float *x, const float *w, int n,
                       float scale, float min, const uint8_t *code) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float diff = scale * (float)code[i] + min - x[i];
        sum += w[i] * (how->absolute ? fabsf(diff) : diff * diff);
    }
    return sum;
}

/* Sets *scale and *min to the least-squares solution for the given codes; false if the codes do not
 * determine it. The format has no positive minimum: then *min is 0 and *scale the best for that. */
static bool min_regression(const float *x, const float *w, int n, float sum_w, float sum_x,
                           const uint8_t *code, float *scale, float *min) {
    float l = 0.0f, l2 = 0.0f, xl = 0.0f;
    for (int i = 0; i < n; i++) {
        float wl = w[i] * (float)code[i];
        l += wl;
        l2 += wl * (float)code[i];
        xl += wl * x[i];
    }
    float det = sum_w * l2 - l * l;
    if (!(det > 0.0f))
        return false;
    *scale = (sum_w * xl - sum_x * l) / det;
    *min = (l2 * sum_x - l * xl) / det;
    if (*min > 0.0f) {
        *min = 0.0f;
        *scale = xl / l2;
    }
    return true;
}

float ggl_quant_fit_min(const quant_min_search *how, const float *x, const float *w, int n,
                        uint8_t *code, float *min_out) {
    float min = x[0], max = x[0], sum_w = w[0], sum_x = w[0] * x[0];
    for (int i = 1; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
        sum_w += w[i];
        sum_x += w[i] * x[i];
    }
    if (min > 0.0f)
        min = 0.0f;
    if (max == min) {
        memset(code, 0, (size_t)n);
        *min_out = -min;
        return 0.0f;
    }

    float inverse = (float)how->top / (max - min), scale = 1.0f / inverse;
    min_codes(x, n, inverse, min, how->top, code);
    float best = min_error(how, x, w, n, scale, min, code);
    for (int step = 0; step <= how->n_steps; step++) {
        uint8_t trial[MAX_RUN];
        float s, m;
        inverse = (how->first + 0.1f * (float)step + (float)how->top) / (max - min);
        min_codes(x, n, inverse, min, how->top, trial);
        if (!min_regression(x, w, n, sum_w, sum_x, trial, &s, &m))
            continue;
        float error = min_error(how, x, w, n, s, m, trial);
        if (error < best) {
            memcpy(code, trial, (size_t)n);
            best = error;
            scale = s;
            min = m; /* the next steps start from it, too */
        }
    }
    *min_out = -min;
    return scale;
}

/* Sums over the codes q (-top .. top - 1) of a run. The best scale for these codes is xq / q2; its
 * error is xq^2 / q2 less than that of all zeros. */
struct symmetric_sums {
    float xq, q2;
};

/* Sets the codes q[] for the scale 1 / inverse, and returns their sums. */
static struct symmetric_sums symmetric_codes(const float *x, float inverse, int top, int8_t *q) {
    struct symmetric_sums s = {0.0f, 0.0f};
    for (int i = 0; i < RUN; i++) {
        q[i] = (int8_t)quant_clamp(quant_round(inverse * x[i]), -top, top - 1);
        float w = x[i] * x[i], v = (float)q[i];
        s.xq += w * x[i] * v;
        s.q2 += w * v * v;
    }
    return s;
}

static void put_symmetric(const int8_t *q, int top, uint8_t *code) {
    for (int i = 0; i < RUN; i++)
        code[i] = (uint8_t)(q[i] + top);
}

float ggl_quant_fit_symmetric(const float *x, int top, uint8_t *code) {
    int8_t q[RUN];
    float extreme = quant_extreme(x, RUN);
    memset(code, 0, RUN);
    if (fabsf(extreme) < QUANT_TINY)
        return 0.0f;
    struct symmetric_sums s = symmetric_codes(x, (float)-top / extreme, top, q);
    put_symmetric(q, top, code);
    float scale = s.q2 != 0.0f ? s.xq / s.q2 : 0.0f, best = scale * s.xq;
    for (int step = -9; step <= 9; step++) {
        if (step == 0)
            continue;
        s = symmetric_codes(x, -((float)top + 0.1f * (float)step) / extreme, top, q);
        if (s.q2 > 0.0f && s.xq * s.xq > best * s.q2) {
            put_symmetric(q, top, code);
            scale = s.xq / s.q2;
            best = scale * s.xq;
        }
    }
    return scale;
}

/* Tries for element i the code that fits the best scale of all other elements. If that reduces the
 * error, changes the code and the sums and returns true. */
static bool improve_code(const float *x, int i, int top, int8_t *q, struct symmetric_sums *s) {
    float w = x[i] * x[i], v = (float)q[i];
    struct symmetric_sums t = {s->xq - w * x[i] * v, s->q2 - w * v * v};
    if (!(t.xq > 0.0f))
        return false;
    int better = quant_clamp(quant_round(x[i] * t.q2 / t.xq), -top, top - 1);
    if (better == q[i])
        return false;
    v = (float)better;
    t.xq += w * x[i] * v;
    t.q2 += w * v * v;
    if (!(t.q2 > 0.0f && t.xq * t.xq * s->q2 > s->xq * s->xq * t.q2))
        return false;
    q[i] = (int8_t)better;
    *s = t;
    return true;
}

float ggl_quant_fit_greedy(const float *x, int top, uint8_t *code) {
    int8_t q[RUN];
    float extreme = quant_extreme(x, RUN);
    memset(code, 0, RUN);
    if (fabsf(extreme) < QUANT_TINY)
        return 0.0f;
    struct symmetric_sums s = symmetric_codes(x, (float)-top / extreme, top, q);
    for (int round = 0, changed = 1; round < 5 && changed; round++) {
        changed = 0;
        for (int i = 0; i < RUN; i++)
            changed |= improve_code(x, i, top, q, &s);
    }
    put_symmetric(q, top, code);
    return s.q2 > 0.0f ? s.xq / s.q2 : 0.0f;
}
