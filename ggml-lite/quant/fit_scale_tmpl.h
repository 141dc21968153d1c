/* ggl_fit_scales and ggl_fit_rows_scales: types without minima, for LANES runs at once. fit_scale.c and fit_scale_avx2.c include this file. */
#include <math.h>

#include "fit_block.h"

/* LANES runs. */
struct runs {
    vf x[FIT_RUN], w[FIT_RUN];
};

/* The sums of a scale with its best codes v: of w times v^2, the scale's errors e times v, and e^2. What another scale gains for the same
 * codes is computed from these errors, not from the elements: see fit_min_tmpl.h. */
struct sums {
    vf v2, ev, ee;
};

static void read_runs(struct runs *r, const float *x, const float *w, int n) {
    lanes_of(x, n, r->x);
    lanes_of(w, n, r->w);
}

static struct sums sums_of(const fit_form *f, const struct runs *r, vf scale) {
    const vf zero = vf_all(0.0f);
    const vf inverse = vf_pick(scale == zero, zero, vf_all(1.0f) / scale);
    struct sums s = {zero, zero, zero};
    for (int i = 0; i < f->n; i++) {
        const vf v = fit_value(f, inverse * r->x[i]), e = r->x[i] - scale * v;
        const vf wv = r->w[i] * v;
        s.v2 += wv * v;
        s.ev += wv * e;
        s.ee += r->w[i] * e * e;
    }
    return s;
}

/* The best scale so far. steepness: how much a wrong one costs. */
struct best {
    vf scale, error, steepness;
};

/* Takes the best scale for the codes of `scale` if it is better. */
static void keep_better(struct best *b, vf scale, const struct sums *s) {
    const vf by = s->ev / s->v2, error = s->ee - by * s->ev;
    const vi better = (s->v2 > vf_all(0.0f)) & (error + vf_all(FIT_NOISE) * s->ee < b->error);
    b->scale = vf_pick(better, scale + by, b->scale);
    b->error = vf_pick(better, error, b->error);
    b->steepness = vf_pick(better, s->v2, b->steepness);
}

/* Whether codes are the same on both sides: then scales are positive, as those of the published encoder. */
static bool is_symmetric(const fit_form *f) {
    return f->low == -f->high;
}

/* Returns the best scales of LANES runs. Codes mostly have one more step on one side than on the other, so
 * the element largest in magnitude is tried on both. */
static struct best search(const fit_form *f, const struct runs *r) {
    const float outer = f->level ? f->level[0] : (float)f->low;
    const vf zero = vf_all(0.0f);
    vf extreme = zero;
    for (int i = 0; i < f->n; i++)
        extreme = vf_pick(vf_abs(r->x[i]) > vf_abs(extreme), r->x[i], extreme);
    if (is_symmetric(f))
        extreme = -vf_abs(extreme);
    const vf none = (vf)((vi)vf_all(INFINITY) & (extreme != zero));
    struct best best = {zero, none, zero};
    const int last_side = is_symmetric(f) ? 1 : -1;
    for (int side = 1; side >= last_side; side -= 2)
        /* first as the published encoders, whose scale is kept where others are no better */
        for (int k = -1; k < f->n_steps; k++) {
            const float more = k < 0 ? 0.0f : f->first + f->step * (float)k;
            const float factor = (float)side * (outer - more);
            const vf scale = extreme * vf_all(1.0f / factor);
            const struct sums s = sums_of(f, r, scale);
            keep_better(&best, scale, &s);
        }
    for (int k = 0; k < 2; k++) { /* the codes for the best scale may be better still */
        const vf scale = best.scale;
        const struct sums s = sums_of(f, r, scale);
        best.error = s.ee; /* the very error, no difference of sums */
        keep_better(&best, scale, &s);
    }
    return best;
}

/* The state of the search for the integer scales of a block. */
struct trial {
    float d;
    double error, ev, v2; /* sums over the block, of the codes times their integer scales */
    vf scale[FIT_RUNS / LANES];
};

/* Chooses the integer scales for t->d: the wanted ones, rounded, or one above or below. */
static void choose_scales(const fit_form *f, const struct runs *r, const struct best *wanted,
                          struct trial *t) {
    t->error = t->ev = t->v2 = 0.0;
    for (int b = 0; b < FIT_BLOCK / f->n / LANES; b++) {
        vi middle = __builtin_convertvector(
            fit_value(&(fit_form){.low = f->scale_low, .high = f->scale_high},
                      wanted[b].scale / vf_all(t->d)),
            vi);
        vf least = vf_all(INFINITY), ev = vf_all(0.0f), v2 = ev;
        for (int beside = -1; beside <= 1; beside++) {
            const vf k = vf_of(vi_clamp(middle + vi_all(beside), f->scale_low, f->scale_high));
            const struct sums s = sums_of(f, &r[b], k * vf_all(t->d));
            const vi better = s.ee < least;
            least = vf_pick(better, s.ee, least);
            t->scale[b] = vf_pick(better, k, t->scale[b]);
            ev = vf_pick(better, k * s.ev, ev);
            v2 = vf_pick(better, k * k * s.v2, v2);
        }
        lanes_add(&t->error, least);
        lanes_add(&t->ev, ev);
        lanes_add(&t->v2, v2);
    }
}

static double sum_of_squares(const fit_source *s) {
    double sum = 0.0;
    for (int i = 0; i < FIT_BLOCK; i++)
        sum += (double)(s->w[i] * s->x[i] * s->x[i]);
    return sum;
}

/* Stores the codes for the scales. */
static void put_codes(const fit_form *f, const float *x, const struct trial *t, fit_block *out) {
    for (int i = 0; i < FIT_BLOCK; i += LANES) {
        const int run = i / f->n;
        const float k = t->scale[run / LANES][run % LANES], scale = k * t->d;
        vf v, y;
        memcpy(&y, x + i, sizeof y);
        v = fit_value(f, y * vf_all(scale != 0.0f ? 1.0f / scale : 0.0f));
        out->scale[run] = (int)k;
        for (int l = 0; l < LANES; l++)
            out->code[i + l] = (uint8_t)fit_code(f, v[l]);
    }
}

void FIT(ggl_fit_scales)(const fit_form *f, const float *src, const float *importance,
                         fit_block *out) {
    enum { ROUNDS = 3 };
    fit_source s;
    struct runs r[FIT_RUNS / LANES];
    struct best wanted[FIT_RUNS / LANES];
    float scale[FIT_RUNS], steepness[FIT_RUNS];
    fit_start start[FIT_STARTS];
    const int n = FIT_BLOCK / f->n / LANES;
    *out = (fit_block){0};
    if (!ggl_fit_read(&s, src, importance, FIT_BLOCK))
        return;
    for (int b = 0; b < n; b++) {
        read_runs(&r[b], s.x + b * f->n * LANES, s.w + b * f->n * LANES, f->n);
        wanted[b] = search(f, &r[b]);
        lanes_store(scale + LANES * b, wanted[b].scale);
        lanes_store(steepness + LANES * b, wanted[b].steepness);
    }
    ggl_fit_starts(&(fit_numbers){scale, steepness, NULL, LANES * n, f->scale_low, f->scale_high},
                   start);
    struct trial t = {.d = 0.0f}, best = {.error = INFINITY};
    for (int k = 0; k < f->n_starts; k++) {
        t.d = ggl_fit_f16(start[k].d, s.exponent);
        if (t.d == 0.0f)
            continue;
        choose_scales(f, r, wanted, &t);
        if (t.error < best.error)
            best = t;
    }
    if (best.d == 0.0f)
        return;
    t = best;
    for (int round = 1; round < ROUNDS && t.v2 > 0.0; round++) {
        const float d = ggl_fit_f16(t.d + (float)(t.ev / t.v2), s.exponent);
        if (d == t.d || d == 0.0f)
            break;
        t.d = d;
        choose_scales(f, r, wanted, &t);
        if (t.error < best.error)
            best = t;
    }
    put_codes(f, s.x, &best, out);
    const double d = (double)best.d;
    const float gain = ggl_fit_gain(sum_of_squares(&s), d * (d * best.v2 + best.ev));
    out->d = ldexpf(best.d * gain, s.exponent);
}

/* --- blocks of 32 -------------------------------------------------------------------------- */

/* Takes the scale as f16 if it is better. Sets it to the best one for its codes. */
static void try_scale(const fit_form *f, const struct runs *r, const fit_source *s, vf *scale,
                      struct best *best) {
    for (int l = 0; l < LANES; l++)
        (*scale)[l] = ggl_fit_f16((*scale)[l], s[l].exponent);
    const struct sums sums = sums_of(f, r, *scale);
    const vi better = sums.ee < best->error;
    best->scale = vf_pick(better, *scale, best->scale);
    best->error = vf_pick(better, sums.ee, best->error);
    *scale += vf_pick(sums.v2 > vf_all(0.0f), sums.ev / sums.v2, vf_all(0.0f));
}

/* Returns the scales of the published encoders: the element largest in magnitude gets the outermost code. */
static vf plain_scale(const fit_form *f, const float *x) {
    vf d;
    for (int l = 0; l < LANES; l++)
        d[l] = quant_extreme(x + FIT_RUN * l, FIT_RUN);
    if (is_symmetric(f))
        d = -vf_abs(d);
    return d * vf_all(1.0f / (f->level ? (float)f->level[0] : (float)f->low));
}

static void fit_lanes(const fit_form *f, const float *src, const float *importance, fit_rows *out,
                      int first) {
    fit_source s[LANES];
    float x[LANES * FIT_RUN], w[LANES * FIT_RUN];
    struct runs r;
    for (int l = 0; l < LANES; l++) {
        out->d[first + l] = ggl_fit_read_run(&s[l], src, importance, first + l);
        out->m[first + l] = 0.0f;
        memcpy(x + FIT_RUN * l, s[l].x, FIT_RUN * sizeof *x);
        memcpy(w + FIT_RUN * l, s[l].w, FIT_RUN * sizeof *w);
    }
    read_runs(&r, x, w, f->n);
    const vf zero = vf_all(0.0f);
    struct best best = {zero, vf_all(INFINITY), zero};
    vf plain = plain_scale(f, x), scale = search(f, &r).scale;
    try_scale(f, &r, s, &plain, &best);
    for (int round = 0; round < 3; round++)
        try_scale(f, &r, s, &scale, &best);
    vf inverse = vf_pick(best.scale == zero, zero, vf_all(1.0f) / best.scale);
    vf xx = zero, xy = xx;
    for (int i = 0; i < FIT_RUN; i++) {
        const vf v = fit_value(f, inverse * r.x[i]), wx = r.w[i] * r.x[i];
        xx += wx * r.x[i];
        xy += wx * v * best.scale;
        for (int l = 0; l < LANES; l++)
            out->code[FIT_RUN * (first + l) + i] = (uint8_t)fit_code(f, v[l]);
    }
    for (int l = 0; l < LANES; l++) {
        const float gain = ggl_fit_gain((double)xx[l], (double)xy[l]);
        out->d[first + l] += ldexpf(best.scale[l] * gain, s[l].exponent);
    }
}

void FIT(ggl_fit_rows_scales)(const fit_form *f, const float *src, const float *importance,
                              fit_rows *out) {
    for (int first = 0; first < FIT_AT_ONCE; first += LANES)
        fit_lanes(f, src, importance, out, first);
}
