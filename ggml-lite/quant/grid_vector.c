/* One vector from a codebook: grid_vector.h. */
#include "grid_vector.h"

#include <math.h>

float ggl_grid_scale(const grid_form *f, int l, float d) {
    return d * (float)(2 * l + 1) * f->unit;
}

float ggl_grid_step(const grid_form *f) {
    return (float)((f->grid->level[1] - f->grid->level[0]) * (f->delta ? 8 : 1));
}

grid_levels ggl_grid_levels(const grid_form *f, float s, bool down) {
    grid_levels to;
    for (int l = 0; l < 8; l++) {
        const int level = f->grid->level[l];
        to.plain[l] = (float)(!f->delta ? level : down ? 8 * level - 1 : 8 * level + 1);
        to.scaled[l] = s * to.plain[l];
    }
    return to;
}

/* Adds an entry to the sums. flip: its cheapest element is turned round; returns that element's
 * bit. */
static unsigned add_entry(const iq_grid *g, int index, const grid_levels *v, const float *x,
                          const float *w, bool flip, grid_coded *c) {
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
static void encode_two(const grid_source *s, const grid_levels *v, const float *x, const float *w,
                       bool flip, int at, grid_coded *c) {
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

void ggl_grid_vector(const grid_source *s, const grid_levels *v, int r, int at, grid_coded *c) {
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

/* --- vectors of a finished block -------------------------------------------------------------- */

void ggl_grid_choose(const grid_source *s, float scale, int down, int at, grid_block *g) {
    const int per_eight = 8 / s->f->grid->width;
    const grid_levels v = ggl_grid_levels(s->f, scale, down);
    grid_coded c = {.xv = 0.0f};
    ggl_grid_vector(s, &v, 0, 0, &c);
    memcpy(g->index + per_eight * at, c.index, (size_t)per_eight * sizeof *c.index);
    g->signs[at] = c.signs[0];
    g->down[at] = (uint8_t)down;
}

void ggl_grid_decode(const grid_form *f, const grid_block *g, int at, float scale, float *y) {
    const iq_grid *grid = f->grid;
    const grid_levels v = ggl_grid_levels(f, scale, g->down[at]);
    for (int i = 0; i < 8; i++) {
        const unsigned code =
            grid->code[g->index[(8 * at + i) / grid->width]] >> i % grid->width * grid->bits;
        const float level = v.scaled[code & ((1u << grid->bits) - 1)];
        y[i] = g->signs[at] >> i & 1 ? -level : level;
    }
}
