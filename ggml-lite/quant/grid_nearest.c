/* ggl_grid_nearest: the exact search in a codebook. */
#include <math.h>

#include "grid.h"

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

/* The errors of an element, by its level: with its sign, and with the other one. */
struct element {
    float near[8], far[8];
};

static void errors_of(float x, float w, const float *level, bool flip, struct element *to) {
    for (int l = 0; l < 8; l++)
        to->near[l] = w * (x - level[l]) * (x - level[l]);
    for (int l = 0; l < 8 && flip; l++)
        to->far[l] = w * (x + level[l]) * (x + level[l]);
}

/* Sets the errors of two elements by their code b << bits | a: with their signs, and with one of
 * them flipped. */
static void pairs_of(const struct element *e, int bits, bool flip, float *plain, float *flipped) {
    const int n = 1 << bits; /* in codes of 2 bits, the fourth level is in no entry */
    for (int b = 0; b < n; b++)
        for (int a = 0; a < n; a++)
            plain[b << bits | a] = e[1].near[b] + e[0].near[a];
    for (int b = 0; b < n && flip; b++)
        for (int a = 0; a < n; a++)
            flipped[b << bits | a] =
                least_of(e[1].far[b] + e[0].near[a], e[1].near[b] + e[0].far[a]);
}

static void half_of_four(const struct element *e, bool flip, struct half *to) {
    float low[PAIR] = {0}, high[PAIR] = {0}, low_flipped[PAIR] = {0}, high_flipped[PAIR] = {0};
    pairs_of(e, 2, flip, low, low_flipped);
    pairs_of(e + 2, 2, flip, high, high_flipped);
    for (int b = 0; b < 11; b++) { /* codes of three levels: 0 1 2, 4 5 6, 8 9 10 */
        if ((b & 3) == 3)
            continue;
        for (int a = 0; a < 12; a += LANES) {
            const vf sum = vf_load(low + a) + vf_all(high[b]);
            memcpy(to->plain + PAIR * b + a, &sum, sizeof sum);
            if (!flip)
                continue;
            const vf p = vf_load(low_flipped + a) + vf_all(high[b]);
            const vf q = vf_load(low + a) + vf_all(high_flipped[b]), r = vf_pick(p < q, p, q);
            memcpy(to->flipped + PAIR * b + a, &r, sizeof r);
        }
    }
}

/* Sets the tables of a half, and the least errors of any codes, whether they are in the codebook or
 * not. */
static void half_of(const iq_grid *g, const float *x, const float *w, const float *level, bool flip,
                    struct half *to) {
    const int n = g->width / 2, n_level = g->bits == 2 ? 3 : 8;
    struct element e[4];
    float turn = INFINITY;
    to->least = 0.0f;
    for (int j = 0; j < n; j++) {
        float best = INFINITY, best_turned = INFINITY;
        errors_of(x[j], w[j], level, flip, &e[j]);
        for (int l = 0; l < n_level; l++)
            best = least_of(best, e[j].near[l]);
        for (int l = 0; l < n_level && flip; l++)
            best_turned = least_of(best_turned, e[j].far[l]);
        to->least += best;
        turn = least_of(turn, best_turned - best);
    }
    to->least_flipped = to->least + (turn > 0.0f ? turn : 0.0f);
    /* rounding must not make a bound too high */
    to->least *= 0.99999f;
    to->least_flipped *= 0.99999f;
    if (n == 4)
        half_of_four(e, flip, to);
    else
        pairs_of(e, 3, flip, to->plain, to->flipped);
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
