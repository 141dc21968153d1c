/* ggl_grid_rows: the scales of a block of vectors from a codebook. */
#include "grid_fit.h"

#include <math.h>

enum { MAX_RUN_VECTORS = 4 }; /* of eight elements */

/* A run with its codes. The error for a scale s is xx - 2 s xv + s^2 vv. */
struct coded {
    float xv, vv;
    uint16_t index[2 * MAX_RUN_VECTORS];
    uint8_t signs[MAX_RUN_VECTORS], down[MAX_RUN_VECTORS];
};

/* What is encoded: elements without their signs, unless the entries have them. */
struct source {
    const grid_form *f;
    const grid_index *grid;
    float x[FIT_BLOCK];
    const float *w;
    uint8_t signs[GRID_VECTORS];
    float xx[GRID_MAX_RUNS];
};

static float error_at(const struct coded *c, float xx, float s) {
    return xx - 2.0f * s * c->xv + s * s * c->vv;
}

static float gain(const struct coded *c) {
    return c->vv > 0.0f && c->xv > 0.0f ? c->xv / c->vv * c->xv : 0.0f;
}

/* The levels of the codebook's codes times a scale, and as they are. */
struct levels {
    float scaled[8], plain[8];
};

static struct levels levels_of(const grid_form *f, float s, bool down) {
    struct levels to;
    for (int l = 0; l < 8; l++) {
        const int level = f->grid->level[l];
        to.plain[l] = (float)(!f->delta ? level : down ? 8 * level - 1 : 8 * level + 1);
        to.scaled[l] = s * to.plain[l];
    }
    return to;
}

/* Adds an entry to the sums. flip: its cheapest element is turned round; returns that element's
 * bit. */
static unsigned add_entry(const iq_grid *g, int index, const struct levels *v, const float *x,
                          const float *w, bool flip, struct coded *c) {
    unsigned code = g->code[index];
    float least = INFINITY, xv = 0.0f, vv = 0.0f;
    int turned = 0;
    for (int j = 0; j < g->width; j++, code >>= g->bits) {
        const float level = v->plain[code & ((1u << g->bits) - 1)], wx = w[j] * x[j] * level;
        xv += wx;
        vv += w[j] * level * level;
        turned = wx < least ? j : turned;
        least = wx < least ? wx : least;
    }
    c->xv += flip ? xv - 2.0f * least : xv;
    c->vv += vv;
    return flip ? 1u << turned : 0;
}

/* Encodes eight elements as two vectors of four. */
static void encode_two(const struct source *s, const struct levels *v, const float *x,
                       const float *w, bool flip, int at, struct coded *c) {
    const grid_index *grid = s->grid;
    float plain[2], flipped[2];
    int index[2], other[2], turned = -1;
    for (int h = 0; h < 2; h++) {
        index[h] = ggl_grid_nearest(grid, x + 4 * h, w + 4 * h, v->scaled, false, &plain[h]);
        if (flip)
            other[h] = ggl_grid_nearest(grid, x + 4 * h, w + 4 * h, v->scaled, true, &flipped[h]);
    }
    if (flip) {
        turned = plain[0] + flipped[1] < flipped[0] + plain[1];
        index[turned] = other[turned];
    }
    for (int h = 0; h < 2; h++) {
        c->index[2 * at + h] = (uint16_t)index[h];
        c->signs[at] ^=
            (uint8_t)(add_entry(grid->grid, index[h], v, x + 4 * h, w + 4 * h, turned == h, c)
                      << 4 * h);
    }
}

static bool is_odd(unsigned bits) {
    bits ^= bits >> 4;
    bits ^= bits >> 2;
    return (bits ^ bits >> 1) & 1;
}

/* Encodes vector `at` of run r with the given levels. */
static void encode_vector(const struct source *s, const struct levels *v, int r, int at,
                          struct coded *c) {
    const int first = r * s->f->n + 8 * at;
    const float *x = s->x + first, *w = s->w + first;
    const uint8_t signs = s->signs[first / 8];
    const bool flip = s->f->signs == GRID_EVEN && is_odd(signs);
    float error;
    c->signs[at] = signs;
    if (s->f->grid->width == 4) {
        encode_two(s, v, x, w, flip, at, c);
        return;
    }
    const int index = ggl_grid_nearest(s->grid, x, w, v->scaled, flip, &error);
    c->index[at] = (uint16_t)index;
    c->signs[at] ^= (uint8_t)add_entry(s->f->grid, index, v, x, w, flip, c);
}

/* Returns the best codes of run r for the scale `scale`. */
static struct coded encode_run(const struct source *s, int r, float scale) {
    struct coded c[2] = {{.xv = 0.0f}, {.xv = 0.0f}};
    const int n = s->f->n / 8;
    for (int down = 0; down <= (s->f->delta != GRID_NO_DELTA); down++) {
        const struct levels v = levels_of(s->f, scale, down);
        for (int at = 0; at < n; at++) {
            encode_vector(s, &v, r, at, &c[down]);
            c[down].down[at] = (uint8_t)down;
        }
    }
    if (s->f->delta == GRID_NO_DELTA)
        return c[0];
    return c[error_at(&c[1], 0.0f, scale) < error_at(&c[0], 0.0f, scale)];
}

/* As encode_run, where each vector has its own delta. */
static struct coded encode_deltas(const struct source *s, int r, float scale) {
    struct coded sum = {0};
    for (int at = 0; at < s->f->n / 8; at++) {
        struct coded c[2] = {{.xv = 0.0f}, {.xv = 0.0f}};
        for (int down = 0; down < 2; down++) {
            const struct levels v = levels_of(s->f, scale, down);
            encode_vector(s, &v, r, at, &c[down]);
        }
        const int down = error_at(&c[1], 0.0f, scale) < error_at(&c[0], 0.0f, scale);
        sum.xv += c[down].xv;
        sum.vv += c[down].vv;
        sum.index[at] = c[down].index[at];
        sum.down[at] = (uint8_t)down;
    }
    return sum;
}

static struct coded encode(const struct source *s, int r, float scale) {
    return s->f->delta == GRID_DELTA_VECTOR ? encode_deltas(s, r, scale) : encode_run(s, r, scale);
}

/* Returns the best codes of run r with any scale: xv / vv. */
static struct coded search(const struct source *s, int r) {
    struct coded best = {0};
    float sum_w = 0.0f;
    for (int i = r * s->f->n; i < (r + 1) * s->f->n; i++)
        sum_w += s->w[i];
    float scale = s->f->first * sqrtf(s->xx[r] / sum_w);
    if (!(scale > 0.0f))
        return best;
    for (int k = 0; k < s->f->n_trials; k++, scale *= s->f->ratio) {
        const struct coded c = encode(s, r, scale);
        best = gain(&c) > gain(&best) ? c : best;
    }
    for (int k = 0; k < 2 && best.vv > 0.0f; k++) { /* the best codes for the best scale */
        const struct coded c = encode(s, r, best.xv / best.vv);
        if (!(gain(&c) > gain(&best)))
            break;
        best = c;
    }
    return best;
}

/* --- the scales of a block -------------------------------------------------------------------- */

/* Returns the integer scale whose error is least for these codes, times d. */
static int nearest_scale(const grid_form *f, const struct coded *c, float d) {
    const float wanted = c->vv > 0.0f && c->xv > 0.0f ? c->xv / c->vv / (d * f->unit) : 0.0f;
    const float l = rintf(0.5f * (wanted - 1.0f));
    return l > 0.0f ? l < (float)f->scale_high ? (int)l : f->scale_high : 0;
}

static float scale_of(const grid_form *f, int l, float d) {
    return d * (float)(2 * l + 1) * f->unit;
}

/* Returns the best d for the codes and integer scales. */
static float best_d(const grid_form *f, const struct coded *c, const int *scale, int exponent) {
    double xv = 0.0, vv = 0.0;
    for (int r = 0; r < FIT_BLOCK / f->n; r++) {
        const double k = (double)scale_of(f, scale[r], 1.0f);
        xv += k * (double)c[r].xv;
        vv += k * k * (double)c[r].vv;
    }
    return vv > 0.0 && xv > 0.0 ? ggl_fit_f16((float)(xv / vv), exponent) : 0.0f;
}

/* Returns the d with the least error of the block, if codes do not change. */
static float search_d(const struct source *s, const struct coded *c, int exponent) {
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
                error += error_at(&c[r], s->xx[r], scale_of(f, scale[r], d));
            }
            best = error < least ? d : best;
            least = error < least ? error : least;
            d = best_d(f, c, scale, exponent);
        }
    }
    return best;
}

static void put_run(const grid_form *f, const struct coded *c, int r, grid_block *out) {
    const int n = f->n / 8, per_eight = 8 / f->grid->width;
    memcpy(out->index + r * n * per_eight, c->index, (size_t)(n * per_eight) * sizeof *c->index);
    memcpy(out->signs + r * n, c->signs, (size_t)n);
    memcpy(out->down + r * n, c->down, (size_t)n);
}

/* Chooses the codes again for d, with the integer scales that suit the earlier ones, or one beside.
 * Returns the error of the block. */
static float choose(const struct source *s, struct coded *c, float d, int beside, int *scale) {
    const grid_form *f = s->f;
    float sum = 0.0f;
    for (int r = 0; r < FIT_BLOCK / f->n; r++) {
        const int middle = beside ? nearest_scale(f, &c[r], d) : scale[r];
        struct coded best = c[r];
        float least = INFINITY;
        for (int l = middle - beside; l <= middle + beside; l++) {
            if (l < 0 || l > f->scale_high)
                continue;
            const float k = scale_of(f, l, d);
            const struct coded trial = encode(s, r, k);
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

static void read_source(struct source *s, const fit_source *from) {
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

/* Encodes a block of finite elements; leaves *out as it is if they are zeros. */
static void fit_block_of(const grid_form *f, const grid_index *grid, const float *src,
                         const float *importance, grid_block *out) {
    fit_source from;
    struct source s = {.f = f, .grid = grid};
    struct coded c[GRID_MAX_RUNS], other[GRID_MAX_RUNS];
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
        xy += (double)(scale_of(f, scale[r], d) * c[r].xv);
    }
    memcpy(out->scale, scale, sizeof scale);
    out->d = ldexpf(d * ggl_fit_gain(xx, xy), from.exponent);
}

void ggl_grid_rows(const grid_form *f, const float *src, const float *importance, void *dst,
                   int64_t n, size_t size, void (*put)(const grid_block *g, void *block)) {
    grid_index grid;
    uint8_t *to = dst;
    ggl_grid_index(&grid, f->grid);
    memset(dst, 0, (size_t)(n / FIT_BLOCK) * size);
    for (int64_t i = 0; i < n; i += FIT_BLOCK, to += size) {
        grid_block g = {.d = quant_extreme(src + i, FIT_BLOCK)};
        if (!isnan(g.d)) {
            g.d = 0.0f;
            fit_block_of(f, &grid, src + i, importance ? importance + i : NULL, &g);
        }
        put(&g, to);
    }
}
