/* Codes and vectors that are chosen again: feedback.h. */
#include "feedback.h"

#include <math.h>

#include "grid_vector.h"

enum { SWEEPS = 3 }; /* over a block; a fourth changes nearly nothing */

void ggl_feedback_start(quant_feedback *f, const ggl_importance *of) {
    *f = (quant_feedback){.of = of && of->n_dir > 0 ? of : NULL};
}

void ggl_feedback_at(quant_feedback *f, int64_t first) {
    if (f->of && first % f->of->n_col == 0)
        memset(f->sum, 0, sizeof f->sum);
}

/* --- one element ------------------------------------------------------------------------------ */

static const float *direction(const quant_feedback *f, int64_t i) {
    return f->of->dir + i % f->of->n_col * f->of->n_dir;
}

static float dot(const quant_feedback *f, const float *u, const vf *sum) {
    vf s = vf_all(0.0f);
    for (int d = 0; d < f->of->n_dir / LANES; d++)
        s += vf_load(u + LANES * d) * sum[d];
    return vf_sum(s);
}

static void add(const quant_feedback *f, const float *u, float e, vf *sum) {
    for (int d = 0; d < f->of->n_dir / LANES; d++)
        sum[d] += vf_all(e) * vf_load(u + LANES * d);
}

/* The error e of an element costs own * e^2 by itself, and all * e^2 with its share in the directions. */
typedef struct cost {
    float own, all;
} cost;

/* Returns the cost of element i. Nothing, if its power is no positive number: then the element is left as it is. */
static cost cost_of(const quant_feedback *f, int64_t i) {
    const int64_t column = i % f->of->n_col;
    const float power = f->of->power[column];
    return power > 0.0f && power <= 0x1.fffffep127f ? (cost){f->of->own[column], power}
                                                    : (cost){0.0f, 0.0f};
}

/* --- codes ------------------------------------------------------------------------------------ */

static float value_of(const fit_form *form, int code) {
    return (float)(form->level ? form->level[code] : code + form->low);
}

/* Returns the code whose value is nearest to t, which is finite. */
static int nearest(const fit_form *form, float t) {
    int code = 0;
    if (!form->level) {
        const float low = (float)form->low, high = (float)form->high;
        return (int)rintf(t < low ? low : t > high ? high : t) - form->low;
    }
    while (code < form->high && t >= 0.5f * (float)(form->level[code] + form->level[code + 1]))
        code++;
    return code;
}

/* Returns the code next to `middle`, on the side of `code`, or the same. No element moves further for the others: what the directions say is
 * an estimate from a text. */
static int within_one(int code, int middle) {
    return code < middle - 1 ? middle - 1 : code > middle + 1 ? middle + 1 : code;
}

void ggl_feedback_codes(quant_feedback *f, const fit_form *form, const float *src, int64_t first,
                        int n, const float *scale, const float *min, uint8_t *code) {
    float e[FIT_BLOCK];
    cost c[FIT_BLOCK];
    if (!f->of)
        return;
    for (int i = 0; i < n; i++) {
        e[i] = scale[i / form->n] * value_of(form, code[i]) + min[i / form->n] - src[first + i];
        c[i] = cost_of(f, first + i);
        add(f, direction(f, first + i), e[i], f->sum);
    }
    bool changed = true;
    for (int sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        for (int i = 0; i < n; i++) {
            const float *u = direction(f, first + i), s = scale[i / form->n], m = min[i / form->n];
            if (c[i].all == 0.0f || s == 0.0f)
                continue;
            const float wanted =
                src[first + i] + e[i] - (dot(f, u, f->sum) + c[i].own * e[i]) / c[i].all;
            const float t = (wanted - m) / s, plain = (src[first + i] - m) / s;
            if (!isfinite(t) || !isfinite(plain))
                continue;
            const int to = within_one(nearest(form, t), nearest(form, plain));
            if (to == code[i])
                continue;
            const float now = s * value_of(form, to) + m - src[first + i];
            add(f, u, now - e[i], f->sum);
            e[i] = now;
            code[i] = (uint8_t)to;
            changed = true;
        }
    }
}

/* --- vectors ---------------------------------------------------------------------------------- */

/* Eight elements, and the row's sums without their errors. */
typedef struct eight {
    const float *x;
    const float *u[8];
    cost c[8];
    vf others[GGL_MAX_DIRECTIONS / LANES];
} eight;

/* Adds the errors of y to `sum`, and returns what they and the sums cost. */
static float cost_with(const quant_feedback *f, const eight *v, const float *y, vf *sum) {
    float own = 0.0f;
    vf squares = vf_all(0.0f);
    memcpy(sum, v->others, sizeof v->others);
    for (int i = 0; i < 8; i++) {
        const float e = y[i] - v->x[i];
        own += v->c[i].own * e * e;
        add(f, v->u[i], e, sum);
    }
    for (int d = 0; d < f->of->n_dir / LANES; d++)
        squares += sum[d] * sum[d];
    return own + vf_sum(squares);
}

/* Sets the elements that would be best if each were the only one to change, at most a step away, and their weights. */
static void wanted_of(const quant_feedback *f, const eight *v, float step, grid_source *to,
                      float *w) {
    float most = 0.0f;
    to->signs[0] = 0;
    for (int i = 0; i < 8; i++) {
        const float by = v->c[i].all > 0.0f ? dot(f, v->u[i], v->others) / v->c[i].all : 0.0f;
        const float x = v->x[i] - (by < -step ? -step : by > step ? step : by == by ? by : 0.0f);
        const bool minus = to->f->signs != GRID_SIGNED && x < 0.0f;
        to->x[i] = minus ? -x : x;
        to->signs[0] |= (uint8_t)(minus << i);
        w[i] = v->c[i].all;
        most = w[i] > most ? w[i] : most;
    }
    for (int i = 0; i < 8; i++) /* columns that are never used do not become noise */
        w[i] += 1e-6f * most;
}

/* Chooses vector `at` of the block again. */
static bool choose(quant_feedback *f, const grid_form *form, const grid_index *grid,
                   const float *src, int64_t first, int at, grid_block *g) {
    float w[8];
    grid_source s = {.f = form, .grid = grid, .w = w};
    const float scale = ggl_grid_scale(form, g->scale[8 * at / form->n], g->d);
    eight v = {.x = src + first};
    float y[8];
    vf sum[GGL_MAX_DIRECTIONS / LANES];
    ggl_grid_decode(form, g, at, scale, y);
    memcpy(v.others, f->sum, sizeof v.others);
    for (int i = 0; i < 8; i++) {
        v.u[i] = direction(f, first + i);
        v.c[i] = cost_of(f, first + i);
        add(f, v.u[i], v.x[i] - y[i], v.others);
    }
    wanted_of(f, &v, fabsf(scale) * ggl_grid_step(form), &s, w);
    float least = cost_with(f, &v, y, f->sum);
    bool changed = false;
    const bool both = form->delta == GRID_DELTA_VECTOR;
    const int first_down = both ? 0 : g->down[at], last_down = both ? 1 : g->down[at];
    for (int down = first_down; down <= last_down; down++) {
        grid_block other = *g;
        ggl_grid_choose(&s, scale, down, at, &other);
        ggl_grid_decode(form, &other, at, scale, y);
        const float trial = cost_with(f, &v, y, sum);
        if (!(trial < least))
            continue;
        least = trial;
        *g = other;
        memcpy(f->sum, sum, sizeof sum);
        changed = true;
    }
    return changed;
}

void ggl_feedback_grid(quant_feedback *f, const grid_form *form, const grid_index *grid,
                       const float *src, int64_t first, grid_block *g) {
    if (!f->of)
        return;
    g->d = ggl_fit_f16(g->d, 0);
    if (!isfinite(g->d))
        return;
    for (int at = 0; at < GRID_VECTORS; at++) {
        float y[8];
        ggl_grid_decode(form, g, at, ggl_grid_scale(form, g->scale[8 * at / form->n], g->d), y);
        for (int i = 0; i < 8; i++)
            add(f, direction(f, first + 8 * at + i), y[i] - src[first + 8 * at + i], f->sum);
    }
    bool changed = true;
    for (int sweep = 0; sweep < SWEEPS && changed; sweep++) {
        changed = false;
        for (int at = 0; at < GRID_VECTORS; at++)
            changed |= choose(f, form, grid, src, first + 8 * at, at, g);
    }
}
