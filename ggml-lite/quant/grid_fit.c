/* The scales of a block of vectors from a codebook. */
#include <math.h>

#include "grid_fit.h"
#include "grid_vector.h"

static float error_at(const grid_coded *c, float xx, float s) {
    return xx - 2.0f * s * c->xv + s * s * c->vv;
}

static float gain(const grid_coded *c) {
    return c->vv > 0.0f && c->xv > 0.0f ? c->xv / c->vv * c->xv : 0.0f;
}

/* Returns the best codes of run r for the scale `scale`. */
static grid_coded encode_run(const grid_source *s, int r, float scale) {
    grid_coded c[2] = {{.xv = 0.0f}, {.xv = 0.0f}};
    const int n = s->f->n / 8;
    for (int down = 0; down <= (s->f->delta != GRID_NO_DELTA); down++) {
        const grid_levels v = ggl_grid_levels(s->f, scale, down);
        for (int at = 0; at < n; at++) {
            ggl_grid_vector(s, &v, r, at, &c[down]);
            c[down].down[at] = (uint8_t)down;
        }
    }
    if (s->f->delta == GRID_NO_DELTA)
        return c[0];
    return c[error_at(&c[1], 0.0f, scale) < error_at(&c[0], 0.0f, scale)];
}

/* As encode_run, where each vector has its own delta. */
static grid_coded encode_deltas(const grid_source *s, int r, float scale) {
    grid_coded sum = {0};
    for (int at = 0; at < s->f->n / 8; at++) {
        grid_coded c[2] = {{.xv = 0.0f}, {.xv = 0.0f}};
        for (int down = 0; down < 2; down++) {
            const grid_levels v = ggl_grid_levels(s->f, scale, down);
            ggl_grid_vector(s, &v, r, at, &c[down]);
        }
        const int down = error_at(&c[1], 0.0f, scale) < error_at(&c[0], 0.0f, scale);
        sum.xv += c[down].xv;
        sum.vv += c[down].vv;
        sum.index[at] = c[down].index[at];
        sum.down[at] = (uint8_t)down;
    }
    return sum;
}

static grid_coded encode(const grid_source *s, int r, float scale) {
    return s->f->delta == GRID_DELTA_VECTOR ? encode_deltas(s, r, scale) : encode_run(s, r, scale);
}

/* Returns the best codes of run r with any scale: xv / vv. */
static grid_coded search(const grid_source *s, int r) {
    grid_coded best = {0};
    float sum_w = 0.0f;
    for (int i = r * s->f->n; i < (r + 1) * s->f->n; i++)
        sum_w += s->w[i];
    float scale = s->f->first * sqrtf(s->xx[r] / sum_w);
    if (!(scale > 0.0f))
        return best;
    for (int k = 0; k < s->f->n_trials; k++, scale *= s->f->ratio) {
        const grid_coded c = encode(s, r, scale);
        best = gain(&c) > gain(&best) ? c : best;
    }
    for (int k = 0; k < 2 && best.vv > 0.0f; k++) { /* the best codes for the best scale */
        const grid_coded c = encode(s, r, best.xv / best.vv);
        if (!(gain(&c) > gain(&best)))
            break;
        best = c;
    }
    return best;
}

/* --- the scales of a block -------------------------------------------------------------------- */

/* Returns the integer scale whose error is least for these codes, times d. */
static int nearest_scale(const grid_form *f, const grid_coded *c, float d) {
    const float wanted = c->vv > 0.0f && c->xv > 0.0f ? c->xv / c->vv / (d * f->unit) : 0.0f;
    const float l = rintf(0.5f * (wanted - 1.0f));
    return l > 0.0f ? l < (float)f->scale_high ? (int)l : f->scale_high : 0;
}

/* Returns the best d for the codes and integer scales. */
static float best_d(const grid_form *f, const grid_coded *c, const int *scale, int exponent) {
    double xv = 0.0, vv = 0.0;
    for (int r = 0; r < FIT_BLOCK / f->n; r++) {
        const double k = (double)ggl_grid_scale(f, scale[r], 1.0f);
        xv += k * (double)c[r].xv;
        vv += k * k * (double)c[r].vv;
    }
    return vv > 0.0 && xv > 0.0 ? ggl_fit_f16((float)(xv / vv), exponent) : 0.0f;
}

/* Returns the d with the least error of the block, if codes do not change. */
static float search_d(const grid_source *s, const grid_coded *c, int exponent) {
    const grid_form *f = s->f;
    float most = 0.0f, least = INFINITY, best = 0.0f;
    for (int r = 0; r < FIT_BLOCK / f->n; r++)
        if (gain(&c[r]) > 0.0f)
            most = c[r].xv / c[r].vv > most ? c[r].xv / c[r].vv : most;
    const float outer = (float)(2 * f->scale_high + 1);
    for (int k = -2; k < 12; k++) {
        float d = ggl_fit_f16(most / (f->unit * outer * (1.0f - 0.04f * (float)k)), exponent);
        for (int round = 0; round < 2 && d > 0.0f; round++) {
            int scale[GRID_MAX_RUNS];
            float error = 0.0f;
            for (int r = 0; r < FIT_BLOCK / f->n; r++) {
                scale[r] = nearest_scale(f, &c[r], d);
                error += error_at(&c[r], s->xx[r], ggl_grid_scale(f, scale[r], d));
            }
            best = error < least ? d : best;
            least = error < least ? error : least;
            d = best_d(f, c, scale, exponent);
        }
    }
    return best;
}

static void put_run(const grid_form *f, const grid_coded *c, int r, grid_block *out) {
    const int n = f->n / 8, per_eight = 8 / f->grid->width;
    memcpy(out->index + r * n * per_eight, c->index, (size_t)(n * per_eight) * sizeof *c->index);
    memcpy(out->signs + r * n, c->signs, (size_t)n);
    memcpy(out->down + r * n, c->down, (size_t)n);
}

/* Chooses the codes again for d, with the integer scales that suit the earlier ones, or one beside.
 * Returns the error of the block. */
static float choose(const grid_source *s, grid_coded *c, float d, int beside, int *scale) {
    const grid_form *f = s->f;
    float sum = 0.0f;
    for (int r = 0; r < FIT_BLOCK / f->n; r++) {
        const int middle = beside ? nearest_scale(f, &c[r], d) : scale[r];
        grid_coded best = c[r];
        float least = INFINITY;
        for (int l = middle - beside; l <= middle + beside; l++) {
            if (l < 0 || l > f->scale_high)
                continue;
            const float k = ggl_grid_scale(f, l, d);
            const grid_coded trial = encode(s, r, k);
            const float error = error_at(&trial, s->xx[r], k);
            if (error < least) {
                least = error;
                best = trial;
                scale[r] = l;
            }
        }
        c[r] = best;
        sum += least;
    }
    return sum;
}

static void read_source(grid_source *s, const fit_source *from) {
    s->w = from->w;
    memset(s->signs, 0, sizeof s->signs);
    for (int i = 0; i < FIT_BLOCK; i++) {
        const bool minus = s->f->signs != GRID_SIGNED && from->x[i] < 0.0f;
        s->x[i] = minus ? -from->x[i] : from->x[i];
        s->signs[i / 8] |= (uint8_t)(minus << i % 8);
    }
    for (int r = 0; r < FIT_BLOCK / s->f->n; r++) {
        s->xx[r] = 0.0f;
        for (int i = r * s->f->n; i < (r + 1) * s->f->n; i++)
            s->xx[r] += s->w[i] * s->x[i] * s->x[i];
    }
}

void ggl_grid_fit(const grid_form *f, const grid_index *grid, const float *src,
                  const float *importance, grid_block *out) {
    fit_source from;
    grid_source s = {.f = f, .grid = grid};
    grid_coded c[GRID_MAX_RUNS], other[GRID_MAX_RUNS];
    int scale[GRID_MAX_RUNS] = {0};
    if (!ggl_fit_read(&from, src, importance, FIT_BLOCK))
        return;
    read_source(&s, &from);
    for (int r = 0; r < FIT_BLOCK / f->n; r++)
        c[r] = search(&s, r);
    float d = search_d(&s, c, from.exponent);
    if (!(d > 0.0f))
        return;
    const float error = choose(&s, c, d, 1, scale);
    const float better = best_d(f, c, scale, from.exponent);
    if (better > 0.0f && better != d) {
        memcpy(other, c, sizeof c);
        if (choose(&s, other, better, 0, scale) < error) {
            d = better;
            memcpy(c, other, sizeof c);
        }
    }
    double xx = 0.0, xy = 0.0;
    for (int r = 0; r < FIT_BLOCK / f->n; r++) {
        put_run(f, &c[r], r, out);
        xx += (double)s.xx[r];
        xy += (double)(ggl_grid_scale(f, scale[r], d) * c[r].xv);
    }
    memcpy(out->scale, scale, sizeof scale);
    out->d = ldexpf(d * ggl_fit_gain(xx, xy), from.exponent);
}
