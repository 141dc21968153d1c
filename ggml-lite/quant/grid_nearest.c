/* ggl_grid_nearest: the exact search in a codebook. */
#include <math.h>

#include "grid_fit.h"

enum { HALF = 256, PAIR = 16 };

void ggl_grid_index(grid_index *x, const iq_grid *g) {
    const int half_bits = g->bits * g->width / 2;
    x->grid = g;
    x->n_groups = 0;
    for (int i = 0; i < g->n; i++) {
        const int high = g->code[i] >> half_bits;
        x->low[i] = (uint8_t)(g->code[i] & ((1 << half_bits) - 1));
        if (x->n_groups == 0 || x->high[x->n_groups - 1] != high) {
            x->high[x->n_groups] = (uint8_t)high;
            x->first[x->n_groups++] = (uint16_t)i;
        }
    }
    x->first[x->n_groups] = (uint16_t)g->n;
}

/* The errors of half an entry, by its code: with the signs as they are, and with the cheapest of
 * its elements turned round; and the least of them. */
struct half {
    _Alignas(16) float plain[HALF], flipped[HALF];
    float least, least_flipped;
};

static float least_of(float a, float b) {
    return a < b ? a : b;
}

/* Sets to[] to the errors of two elements, by the code b << bits | a: those of elements a and b, or
 * those with one of them flipped. */
static void pairs_of(const float *x, const float *w, const float *level, int bits, bool flip,
                     float *plain, float *flipped) {
    float error[2][8], turned[2][8];
    const int n = bits == 2 ? 3 : 8;
    for (int j = 0; j < 2; j++)
        for (int l = 0; l < n; l++) {
            const float near = x[j] - level[l], far = x[j] + level[l];
            error[j][l] = w[j] * near * near;
            turned[j][l] = w[j] * far * far;
        }
    for (int b = 0; b < n; b++)
        for (int a = 0; a < n; a++)
            plain[b << bits | a] = error[1][b] + error[0][a];
    for (int b = 0; b < n && flip; b++)
        for (int a = 0; a < n; a++)
            flipped[b << bits | a] =
                least_of(turned[1][b] + error[0][a], error[1][b] + turned[0][a]);
}

static vf load4(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void half_of_four(const float *x, const float *w, const float *level, bool flip,
                         struct half *to) {
    float low[PAIR] = {0}, high[PAIR] = {0}, low_flipped[PAIR] = {0}, high_flipped[PAIR] = {0};
    pairs_of(x, w, level, 2, flip, low, low_flipped);
    pairs_of(x + 2, w + 2, level, 2, flip, high, high_flipped);
    for (int b = 0; b < 11; b++) { /* codes of three levels: 0 1 2, 4 5 6, 8 9 10 */
        if ((b & 3) == 3)
            continue;
        for (int a = 0; a < 12; a += LANES) {
            const vf sum = load4(low + a) + vf_all(high[b]);
            memcpy(to->plain + PAIR * b + a, &sum, sizeof sum);
            if (!flip)
                continue;
            const vf p = load4(low_flipped + a) + vf_all(high[b]);
            const vf q = load4(low + a) + vf_all(high_flipped[b]), r = vf_pick(p < q, p, q);
            memcpy(to->flipped + PAIR * b + a, &r, sizeof r);
        }
    }
}

/* Sets the tables of a half, and the least errors of any codes, whether they are in the codebook or
 * not. */
static void half_of(const iq_grid *g, const float *x, const float *w, const float *level, bool flip,
                    struct half *to) {
    const int n = g->width / 2, n_level = g->bits == 2 ? 3 : 8;
    float turn = INFINITY;
    to->least = 0.0f;
    for (int j = 0; j < n; j++) {
        float best = INFINITY, best_turned = INFINITY;
        for (int l = 0; l < n_level; l++) {
            const float near = x[j] - level[l], far = x[j] + level[l];
            best = least_of(best, w[j] * near * near);
            best_turned = least_of(best_turned, w[j] * far * far);
        }
        to->least += best;
        turn = least_of(turn, best_turned - best);
    }
    to->least_flipped = to->least + (turn > 0.0f ? turn : 0.0f);
    /* rounding must not make a bound too high */
    to->least *= 0.99999f;
    to->least_flipped *= 0.99999f;
    if (n == 4)
        half_of_four(x, w, level, flip, to);
    else
        pairs_of(x, w, level, 3, flip, to->plain, to->flipped);
}

/* The best entry so far. */
struct found {
    int index;
    float error;
};

static void scan(const grid_index *grid, int group, const struct half *low, float high,
                 struct found *best) {
    for (int i = grid->first[group]; i < grid->first[group + 1]; i++) {
        const float error = low->plain[grid->low[i]] + high;
        if (error < best->error)
            *best = (struct found){i, error};
    }
}

static void scan_flipped(const grid_index *grid, int group, const struct half *low, float high,
                         float high_flipped, struct found *best) {
    for (int i = grid->first[group]; i < grid->first[group + 1]; i++) {
        const int code = grid->low[i];
        const float error = least_of(low->plain[code] + high_flipped, low->flipped[code] + high);
        if (error < best->error)
            *best = (struct found){i, error};
    }
}

int ggl_grid_nearest(const grid_index *grid, const float *x, const float *w, const float *level,
                     bool flip, float *error) {
    const int n = grid->grid->width / 2;
    struct half low, high;
    half_of(grid->grid, x, w, level, flip, &low);
    half_of(grid->grid, x + n, w + n, level, flip, &high);
    /* the group with the best upper half first: it makes most of the others not worth a look */
    int start = 0;
    for (int k = 1; k < grid->n_groups; k++)
        if (high.plain[grid->high[k]] < high.plain[grid->high[start]])
            start = k;
    struct found best = {0, INFINITY};
    for (int k = -1; k < grid->n_groups; k++) {
        const int group = k < 0 ? start : k, code = grid->high[group];
        const float a = high.plain[code];
        if (k == start)
            continue;
        if (!flip) {
            if (a + low.least < best.error)
                scan(grid, group, &low, a, &best);
            continue;
        }
        const float b = high.flipped[code];
        if (least_of(a + low.least_flipped, b + low.least) < best.error)
            scan_flipped(grid, group, &low, a, b, &best);
    }
    *error = best.error;
    return best.index;
}
