/* ggl_fit_scales and ggl_fit_four: types without minima. */
#include <math.h>

#include "fit_block.h"

/* Four runs. The error of codes v with scale s is sum w x^2 - 2 s xv + s^2 v2. */
struct runs {
    vf x[FIT_RUN], w[FIT_RUN], wx[FIT_RUN];
};

struct sums {
    vf xv, v2;
};

static void read_runs(struct runs *r, const float *x, const float *w, int n) {
    lanes_of(x, n, r->x);
    lanes_of(w, n, r->w);
    for (int i = 0; i < n; i++)
        r->wx[i] = r->w[i] * r->x[i];
}

static struct sums sums_for(const fit_form *f, const struct runs *r, vf inverse) {
    struct sums s = {vf_all(0.0f), vf_all(0.0f)};
    for (int i = 0; i < f->n; i++) {
        vf v = fit_value(f, inverse * r->x[i]);
        s.xv += r->wx[i] * v;
        s.v2 += r->w[i] * v * v;
    }
    return s;
}

/* The gain of the best scale for some codes: by how much it reduces the error of all zeros. */
struct best {
    vf scale, gain;
};

static void keep_better(struct best *b, const struct sums *s) {
    vf scale = s->xv / s->v2, gain = scale * s->xv;
    vi better = (s->v2 > vf_all(0.0f)) & (gain > b->gain);
    b->scale = vf_pick(better, scale, b->scale);
    b->gain = vf_pick(better, gain, b->gain);
}

/* Returns the best scales of four runs. Codes have one more step on one side than on the other, so
 * the element largest in magnitude is tried on both. */
static vf search(const fit_form *f, const struct runs *r) {
    const float outer = f->level ? f->level[0] : (float)f->low;
    struct best best = {vf_all(0.0f), vf_all(0.0f)};
    vf extreme = vf_all(0.0f);
    for (int i = 0; i < f->n; i++)
        extreme = vf_pick(vf_abs(r->x[i]) > vf_abs(extreme), r->x[i], extreme);
    extreme = vf_pick(extreme == vf_all(0.0f), vf_all(1.0f), extreme);
    for (int side = 1; side >= -1; side -= 2)
        for (int k = 0; k < f->n_steps; k++) {
            const float factor = (float)side * (outer - (f->first + f->step * (float)k));
            struct sums s = sums_for(f, r, vf_all(factor) / extreme);
            keep_better(&best, &s);
        }
    for (int k = 0; k < 2; k++) { /* the codes for the best scale may be better still */
        struct sums s = sums_for(f, r, vf_all(1.0f) / best.scale);
        keep_better(&best, &s);
    }
    return best.scale;
}

/* Returns the weighted error of a scale with its best codes, and their sums. */
static vf error_of(const fit_form *f, const struct runs *r, vf scale, struct sums *s) {
    vf error = vf_all(0.0f), inverse = vf_all(1.0f) / scale;
    inverse = vf_pick(scale == vf_all(0.0f), scale, inverse);
    *s = (struct sums){error, error};
    for (int i = 0; i < f->n; i++) {
        vf v = fit_value(f, inverse * r->x[i]), diff = r->x[i] - scale * v;
        error += r->w[i] * diff * diff;
        s->xv += r->wx[i] * v;
        s->v2 += r->w[i] * v * v;
    }
    return error;
}

/* The state of the search for the integer scales of a block. */
struct trial {
    float d, error;
    double xv, v2; /* sums over the block, of the codes times their integer scales */
    vf scale[FIT_RUNS / LANES];
};

/* Chooses the integer scales for t->d: the wanted ones, rounded, or one above or below. */
static void choose_scales(const fit_form *f, const struct runs *r, const vf *wanted,
                          struct trial *t) {
    t->error = 0.0f;
    t->xv = t->v2 = 0.0;
    for (int b = 0; b < FIT_BLOCK / f->n / LANES; b++) {
        vi middle = __builtin_convertvector(
            fit_value(&(fit_form){.low = f->scale_low, .high = f->scale_high},
                      wanted[b] / vf_all(t->d)),
            vi);
        vf least = vf_all(INFINITY), xv = vf_all(0.0f), v2 = xv;
        for (int beside = -1; beside <= 1; beside++) {
            struct sums s;
            vf k = vf_of(vi_clamp(middle + vi_all(beside), f->scale_low, f->scale_high));
            vf error = error_of(f, &r[b], k * vf_all(t->d), &s);
            vi better = error < least;
            least = vf_pick(better, error, least);
            t->scale[b] = vf_pick(better, k, t->scale[b]);
            xv = vf_pick(better, k * s.xv, xv);
            v2 = vf_pick(better, k * k * s.v2, v2);
        }
        t->error += vf_sum(least);
        t->xv += (double)vf_sum(xv);
        t->v2 += (double)vf_sum(v2);
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

void ggl_fit_scales(const fit_form *f, const float *src, const float *importance, fit_block *out) {
    enum { ROUNDS = 3 };
    fit_source s;
    struct runs r[FIT_RUNS / LANES];
    vf wanted[FIT_RUNS / LANES];
    float extreme = 0.0f;
    *out = (fit_block){0};
    if (!ggl_fit_read(&s, src, importance, FIT_BLOCK))
        return;
    for (int b = 0, at = 0; at < FIT_BLOCK; b++, at += f->n * LANES) {
        read_runs(&r[b], s.x + at, s.w + at, f->n);
        wanted[b] = search(f, &r[b]);
        for (int l = 0; l < LANES; l++)
            extreme = fabsf(wanted[b][l]) > fabsf(extreme) ? wanted[b][l] : extreme;
    }
    struct trial t, best = {.error = INFINITY};
    for (int start = 0; start < f->n_starts; start++) {
        t.d = ggl_fit_f16(extreme / (float)(f->scale_low + start), s.exponent);
        if (t.d == 0.0f)
            return;
        choose_scales(f, r, wanted, &t);
        if (t.error < best.error)
            best = t;
    }
    t = best;
    for (int round = 1; round < ROUNDS && t.v2 > 0.0; round++) {
        const float d = ggl_fit_f16((float)(t.xv / t.v2), s.exponent);
        if (d == t.d || d == 0.0f)
            break;
        t.d = d;
        choose_scales(f, r, wanted, &t);
        if (t.error < best.error)
            best = t;
    }
    put_codes(f, s.x, &best, out);
    const float gain = ggl_fit_gain(sum_of_squares(&s), (double)best.d * best.xv);
    out->d = ldexpf(best.d * gain, s.exponent);
}

/* --- four blocks of 32 ------------------------------------------------------------------------ */

void ggl_fit_four(const fit_form *f, const float *src, const float *importance, fit_four *out) {
    fit_source s[LANES];
    float x[LANES * FIT_RUN], w[LANES * FIT_RUN];
    struct runs r;
    struct sums sums;
    *out = (fit_four){0};
    for (int l = 0; l < LANES; l++) {
        const float *at = src + FIT_RUN * l;
        out->d[l] = isnan(quant_extreme(at, FIT_RUN)) ? NAN : 0.0f;
        if (!ggl_fit_read(&s[l], at, importance ? importance + FIT_RUN * l : NULL, FIT_RUN))
            s[l] = (fit_source){.exponent = 0};
        memcpy(x + FIT_RUN * l, s[l].x, FIT_RUN * sizeof *x);
        memcpy(w + FIT_RUN * l, s[l].w, FIT_RUN * sizeof *w);
    }
    read_runs(&r, x, w, f->n);
    vf scale = search(f, &r), best = vf_all(0.0f), least = vf_all(INFINITY);
    for (int round = 0; round < 3; round++) {
        for (int l = 0; l < LANES; l++)
            scale[l] = ggl_fit_f16(scale[l], s[l].exponent);
        vf error = error_of(f, &r, scale, &sums);
        vi better = error < least;
        if (!vi_any(better))
            break;
        least = vf_pick(better, error, least);
        best = vf_pick(better, scale, best);
        scale = vf_pick(sums.v2 > vf_all(0.0f), sums.xv / sums.v2, scale);
    }
    vf inverse = vf_pick(best == vf_all(0.0f), best, vf_all(1.0f) / best);
    vf xx = vf_all(0.0f), xy = xx;
    for (int i = 0; i < FIT_RUN; i++) {
        vf v = fit_value(f, inverse * r.x[i]);
        xx += r.wx[i] * r.x[i];
        xy += r.wx[i] * v * best;
        for (int l = 0; l < LANES; l++)
            out->code[FIT_RUN * l + i] = (uint8_t)fit_code(f, v[l]);
    }
    for (int l = 0; l < LANES; l++)
        out->d[l] += ldexpf(best[l] * ggl_fit_gain((double)xx[l], (double)xy[l]), s[l].exponent);
}
