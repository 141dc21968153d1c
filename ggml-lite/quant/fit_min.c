/* ggl_fit_mins and ggl_fit_four_mins: types with minima. */
#include <math.h>

#include "fit_block.h"

/* Four runs. x is the distance from the run's offset, so it is not negative, and the sums over it
 * keep their digits even if all elements are nearly the same. The model is offset + x ~ s * q + m. */
struct runs {
    vf x[FIT_RUN], w[FIT_RUN], wx[FIT_RUN];
    vf offset, most, sum_w, sum_x, sum_x2;
};

/* Sums over the codes q. */
struct sums {
    vf q, q2, xq;
};

static void read_runs(struct runs *r, const float *x, const float *w, int n, bool below_zero) {
    const vf zero = vf_all(0.0f);
    vf low = lane_heads(x, n), high = low;
    lanes_of(x, n, r->x);
    lanes_of(w, n, r->w);
    for (int i = 1; i < n; i++) {
        low = vf_pick(r->x[i] < low, r->x[i], low);
        high = vf_pick(r->x[i] > high, r->x[i], high);
    }
    r->offset = below_zero ? vf_pick(low > zero, zero, low) : low;
    r->most = high - r->offset;
    r->sum_w = r->sum_x = r->sum_x2 = zero;
    for (int i = 0; i < n; i++) {
        r->x[i] -= r->offset;
        r->wx[i] = r->w[i] * r->x[i];
        r->sum_w += r->w[i];
        r->sum_x += r->wx[i];
        r->sum_x2 += r->wx[i] * r->x[i];
    }
}

/* Returns the sums for the codes (x + from) * inverse. */
static struct sums sums_for(const fit_form *f, const struct runs *r, vf inverse, vf from) {
    struct sums s = {vf_all(0.0f), vf_all(0.0f), vf_all(0.0f)};
    for (int i = 0; i < f->n; i++) {
        vf q = fit_value(f, inverse * (r->x[i] + from)), wq = r->w[i] * q;
        s.q += wq;
        s.q2 += wq * q;
        s.xq += r->wx[i] * q;
    }
    return s;
}

/* The best line so far: x ~ scale * q + m. */
struct line {
    vf scale, m, error;
};

/* Takes the least-squares line through the codes with the sums s, if it is better. m is at most
 * -offset if the type has no minimum above zero. */
static void keep_better(struct line *best, const struct runs *r, const struct sums *s,
                        bool below_zero) {
    const vf zero = vf_all(0.0f);
    vf det = r->sum_w * s->q2 - s->q * s->q;
    vf scale = (r->sum_w * s->xq - r->sum_x * s->q) / det;
    vf m = (s->q2 * r->sum_x - s->q * s->xq) / det;
    vf error = r->sum_x2 - scale * s->xq - m * r->sum_x;
    if (below_zero) {
        vi above = m + r->offset > zero;
        vf top = -r->offset, slope = (s->xq - top * s->q) / s->q2;
        vf clamped = r->sum_x2 - (top + top) * r->sum_x + top * top * r->sum_w -
                     slope * (s->xq - top * s->q);
        scale = vf_pick(above, slope, scale);
        error = vf_pick(above, clamped, error);
        m = vf_pick(above, top, m);
    }
    vi better = (det > zero) & (scale > zero) & (error < best->error);
    best->scale = vf_pick(better, scale, best->scale);
    best->m = vf_pick(better, m, best->m);
    best->error = vf_pick(better, error, best->error);
}

/* Finds scales and minima, the latter with the offset. A run without a line (all elements are the
 * same) has scale 0. */
static struct line search(const fit_form *f, const struct runs *r, bool below_zero) {
    const vf zero = vf_all(0.0f);
    struct line best = {zero, r->sum_x / r->sum_w, vf_all(INFINITY)};
    vf most = vf_pick(r->most > zero, r->most, vf_all(1.0f));
    for (int k = 0; k < f->n_steps; k++) {
        const float factor = (float)f->high + f->first + f->step * (float)k;
        struct sums s = sums_for(f, r, vf_all(factor) / most, -best.m * vf_all(k > 0));
        keep_better(&best, r, &s, below_zero);
    }
    for (int k = 0; k < 3; k++) {
        vf inverse = vf_pick(best.scale > zero, vf_all(1.0f) / best.scale, zero);
        struct sums s = sums_for(f, r, inverse, -best.m);
        keep_better(&best, r, &s, below_zero);
    }
    best.m += r->offset;
    if (below_zero)
        best.m = vf_pick(best.m > zero, zero, best.m);
    return best;
}

/* Returns the error of the line scale * q + m with its best codes, and their sums. */
static vf error_of(const fit_form *f, const struct runs *r, vf scale, vf m, struct sums *s) {
    vf error = vf_all(0.0f), inverse = vf_all(1.0f) / scale;
    inverse = vf_pick(scale == error, scale, inverse);
    m -= r->offset;
    *s = (struct sums){error, error, error};
    for (int i = 0; i < f->n; i++) {
        vf q = fit_value(f, inverse * (r->x[i] - m)), wq = r->w[i] * q;
        vf diff = r->x[i] - m - scale * q;
        error += r->w[i] * diff * diff;
        s->q += wq;
        s->q2 += wq * q;
        s->xq += r->wx[i] * q;
    }
    return error;
}

/* The state of the search for the integer scales and minima of a block. The sums are over all
 * elements, of a = integer scale times code, b = integer minimum, and the element. */
struct trial {
    float d, dmin, error;
    double aa, ab, bb, ax, bx;
    vf scale[FIT_RUNS / LANES], min[FIT_RUNS / LANES];
};

static vf whole(vf x, int high) {
    return fit_value(&(fit_form){.low = 0, .high = high}, x);
}

/* What is found for four runs. */
struct choice {
    vf k, l, error;
    struct sums s;
};

/* Takes the integer scale k with the minimum l if that is better. */
static void try_choice(const fit_form *f, const struct runs *r, const struct trial *t, vf k, vf l,
                       struct choice *c) {
    struct sums s;
    vf error = error_of(f, r, k * vf_all(t->d), -l * vf_all(t->dmin), &s);
    vi better = error < c->error;
    c->error = vf_pick(better, error, c->error);
    c->k = vf_pick(better, k, c->k);
    c->l = vf_pick(better, l, c->l);
    c->s.q = vf_pick(better, s.q, c->s.q);
    c->s.q2 = vf_pick(better, s.q2, c->s.q2);
    c->s.xq = vf_pick(better, s.xq, c->s.xq);
}

/* Chooses the integers of four runs near the wanted line, and adds their sums to t. */
static void choose_four(const fit_form *f, const struct runs *r, const struct line *wanted,
                        struct trial *t, int b) {
    const vf zero = vf_all(0.0f), inverse = vf_all(t->dmin > 0.0f ? 1.0f / t->dmin : 0.0f);
    struct choice c = {zero, zero, vf_all(INFINITY), {zero, zero, zero}};
    vf middle = wanted->scale / vf_all(t->d);
    for (int beside = -1; beside <= 1; beside++) {
        struct sums s;
        vf k = whole(middle + vf_all((float)beside), f->scale_high), scale = k * vf_all(t->d);
        vf l = whole(-wanted->m * inverse, f->min_high);
        try_choice(f, r, t, k, l, &c);
        /* the best minimum for this scale */
        (void)error_of(f, r, scale, -l * vf_all(t->dmin), &s);
        vf m = (r->sum_x - scale * s.q) / r->sum_w + r->offset;
        vf other = whole(-m * inverse, f->min_high);
        if (vi_any(other != l))
            try_choice(f, r, t, k, other, &c);
    }
    t->scale[b] = c.k;
    t->min[b] = c.l;
    t->error += vf_sum(c.error);
    vf sum_x = r->sum_x + r->offset * r->sum_w, xq = c.s.xq + r->offset * c.s.q;
    t->aa += (double)vf_sum(c.k * c.k * c.s.q2);
    t->ab += (double)vf_sum(c.k * c.l * c.s.q);
    t->bb += (double)vf_sum(c.l * c.l * r->sum_w);
    t->ax += (double)vf_sum(c.k * xq);
    t->bx += (double)vf_sum(c.l * sum_x);
}

static void choose(const fit_form *f, const struct runs *r, const struct line *wanted,
                   struct trial *t) {
    t->error = 0.0f;
    t->aa = t->ab = t->bb = t->ax = t->bx = 0.0;
    for (int b = 0; b < FIT_BLOCK / f->n / LANES; b++)
        choose_four(f, &r[b], &wanted[b], t, b);
}

/* Sets t->d and t->dmin to the best ones for the integers and codes of t; false: t has these
 * already, or they are not valid. */
static bool better_factors(struct trial *t, int exponent) {
    const double det = t->aa * t->bb - t->ab * t->ab;
    double d = t->aa > 0.0 ? t->ax / t->aa : 0.0, dmin = 0.0;
    if (det > 1e-9 * t->aa * t->bb) {
        d = (t->ax * t->bb - t->ab * t->bx) / det;
        dmin = (t->ab * t->ax - t->aa * t->bx) / det;
    }
    const float d16 = ggl_fit_f16((float)d, exponent), min16 = ggl_fit_f16((float)dmin, exponent);
    if (!(d16 > 0.0f) || !(min16 >= 0.0f) || (d16 == t->d && min16 == t->dmin))
        return false;
    t->d = d16;
    t->dmin = min16;
    return true;
}

static void put_codes(const fit_form *f, const float *x, const struct trial *t, fit_block *out) {
    for (int i = 0; i < FIT_BLOCK; i += LANES) {
        const int run = i / f->n;
        const float k = t->scale[run / LANES][run % LANES], l = t->min[run / LANES][run % LANES];
        const float scale = k * t->d;
        vf v;
        memcpy(&v, x + i, sizeof v);
        v = fit_value(f, (v + vf_all(l * t->dmin)) * vf_all(scale != 0.0f ? 1.0f / scale : 0.0f));
        out->scale[run] = (int)k;
        out->min[run] = (int)l;
        for (int e = 0; e < LANES; e++)
            out->code[i + e] = (uint8_t)v[e];
    }
}

void ggl_fit_mins(const fit_form *f, const float *src, const float *importance, fit_block *out) {
    enum { ROUNDS = 4 };
    fit_source s;
    struct runs r[FIT_RUNS / LANES];
    struct line wanted[FIT_RUNS / LANES];
    float max_scale = 0.0f, max_min = 0.0f;
    *out = (fit_block){0};
    if (!ggl_fit_read(&s, src, importance, FIT_BLOCK))
        return;
    for (int b = 0, at = 0; at < FIT_BLOCK; b++, at += f->n * LANES) {
        read_runs(&r[b], s.x + at, s.w + at, f->n, true);
        wanted[b] = search(f, &r[b], true);
        for (int l = 0; l < LANES; l++) {
            max_scale = wanted[b].scale[l] > max_scale ? wanted[b].scale[l] : max_scale;
            max_min = -wanted[b].m[l] > max_min ? -wanted[b].m[l] : max_min;
        }
    }
    struct trial best = {.error = INFINITY};
    for (int start = 0; start < f->n_starts; start++) {
        struct trial t = {.d = ggl_fit_f16(max_scale / (float)(f->scale_high - start), s.exponent),
                          .dmin = ggl_fit_f16(max_min / (float)(f->min_high - start), s.exponent)};
        if (t.d == 0.0f) /* all elements of each run are the same: minima alone hold them */
            t.d = 1.0f;
        for (int round = 0; round < ROUNDS; round++) {
            choose(f, r, wanted, &t);
            if (t.error < best.error)
                best = t;
            if (!better_factors(&t, s.exponent))
                break;
        }
    }
    put_codes(f, s.x, &best, out);
    double xx = 0.0;
    for (int i = 0; i < FIT_BLOCK; i++)
        xx += (double)(s.w[i] * s.x[i] * s.x[i]);
    const float gain = ggl_fit_gain(xx, (double)best.d * best.ax - (double)best.dmin * best.bx);
    out->d = ldexpf(best.d * gain, s.exponent);
    out->dmin = ldexpf(best.dmin * gain, s.exponent);
}

/* --- four blocks of 32 ------------------------------------------------------------------------ */

void ggl_fit_four_mins(const fit_form *f, const float *src, const float *importance,
                       fit_four *out) {
    fit_source s[LANES];
    float x[LANES * FIT_RUN], w[LANES * FIT_RUN];
    struct runs r;
    *out = (fit_four){0};
    for (int l = 0; l < LANES; l++) {
        const float *at = src + FIT_RUN * l;
        out->d[l] = isnan(quant_extreme(at, FIT_RUN)) ? NAN : 0.0f;
        if (!ggl_fit_read(&s[l], at, importance ? importance + FIT_RUN * l : NULL, FIT_RUN)) {
            s[l] = (fit_source){.exponent = 0};
            for (int i = 0; i < FIT_RUN; i++)
                s[l].w[i] = 1.0f;
        }
        memcpy(x + FIT_RUN * l, s[l].x, FIT_RUN * sizeof *x);
        memcpy(w + FIT_RUN * l, s[l].w, FIT_RUN * sizeof *w);
    }
    read_runs(&r, x, w, f->n, false);
    struct line line = search(f, &r, false), best = {vf_all(0.0f), line.m, vf_all(INFINITY)};
    for (int round = 0; round < 3; round++) {
        struct sums sums;
        for (int l = 0; l < LANES; l++) {
            line.scale[l] = ggl_fit_f16(line.scale[l], s[l].exponent);
            line.m[l] = ggl_fit_f16(line.m[l], s[l].exponent);
        }
        vf error = error_of(f, &r, line.scale, line.m, &sums);
        vi better = error < best.error;
        best.scale = vf_pick(better, line.scale, best.scale);
        best.m = vf_pick(better, line.m, best.m);
        best.error = vf_pick(better, error, best.error);
        struct line next = {line.scale, line.m - r.offset, vf_all(INFINITY)};
        keep_better(&next, &r, &sums, false);
        line = (struct line){next.scale, next.m + r.offset, next.error};
    }
    vf inverse = vf_pick(best.scale == vf_all(0.0f), best.scale, vf_all(1.0f) / best.scale);
    vf xx = vf_all(0.0f), xy = xx;
    for (int i = 0; i < FIT_RUN; i++) {
        vf element = r.x[i] + r.offset, v = fit_value(f, inverse * (element - best.m));
        xx += r.w[i] * element * element;
        xy += r.w[i] * element * (v * best.scale + best.m);
        for (int l = 0; l < LANES; l++)
            out->code[FIT_RUN * l + i] = (uint8_t)v[l];
    }
    for (int l = 0; l < LANES; l++) {
        const float gain = ggl_fit_gain((double)xx[l], (double)xy[l]);
        out->d[l] += ldexpf(best.scale[l] * gain, s[l].exponent);
        out->m[l] = ldexpf(best.m[l] * gain, s[l].exponent);
    }
}
