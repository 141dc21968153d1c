#include "resize.h"

#include <math.h>

#include "ggl/alloc.h"

enum { POINTS = 4 };

/* Where a new pixel lies between old ones: those whose values it is computed from, and how far behind the first, or the second of four. */
typedef struct place {
    int64_t at[POINTS];
    float behind;
} place;

static int64_t within(int64_t i, int64_t n) {
    return i < 0 ? 0 : i < n ? i : n - 1;
}

/* Pixels 0 and n_to - 1 are the old ones' first and last. */
static place linear_place(int64_t i, int64_t n_from, int64_t n_to) {
    const float step = n_to > 1 ? (float)(n_from - 1) / (float)(n_to - 1) : 0;
    const float x = (float)i * step;
    const int64_t at = within((int64_t)x, n_from);
    return (place){{at, within(at + 1, n_from)}, x - (float)at};
}

static place cubic_place(int64_t i, int64_t n_from, int64_t n_to) {
    const float step = (float)n_from / (float)n_to;
    const float x = step * (float)i;
    const int64_t at = (int64_t)x;
    return (place){{within(at - 1, n_from), within(at, n_from), within(at + 1, n_from),
                    within(at + 2, n_from)},
                   x - (float)at};
}

static float between(float a, float b, float behind) {
    return a + (b - a) * behind;
}

static uint8_t linear(const llm_picture *p, const place *x, const place *y, int c) {
    const uint8_t *const top = p->rgb + y->at[0] * p->width * 3 + c, *const bottom =
                                                                         p->rgb +
                                                                         y->at[1] * p->width * 3 +
                                                                         c;
    const float a = between(top[x->at[0] * 3], top[x->at[1] * 3], x->behind);
    const float b = between(bottom[x->at[0] * 3], bottom[x->at[1] * 3], x->behind);
    return (uint8_t)between(a, b, y->behind);
}

/* Lagrange's polynomial through four points, at `d` behind the second one. What is double here and what is float is the published
 * processors' choice: every bit counts where the result is rounded to a byte. */
static float polynomial(const float v[POINTS], float d) {
    const float d0 = v[0] - v[1], d2 = v[2] - v[1], d3 = v[3] - v[1];
    const float a1 = (float)(-1.0 / 3 * (double)d0 + (double)d2 - 1.0 / 6 * (double)d3);
    const float a2 = 0.5F * d0 + 0.5F * d2;
    const float a3 = (float)(-1.0 / 6 * (double)d0 - 0.5 * (double)d2 + 1.0 / 6 * (double)d3);
    return v[1] + a1 * d + a2 * d * d + a3 * d * d * d;
}

static uint8_t cubic(const llm_picture *p, const place *x, const place *y, int c) {
    float column[POINTS];
    for (int i = 0; i < POINTS; i++) {
        const uint8_t *const row = p->rgb + y->at[i] * p->width * 3 + c;
        const float v[POINTS] = {row[x->at[0] * 3], row[x->at[1] * 3], row[x->at[2] * 3],
                                 row[x->at[3] * 3]};
        column[i] = polynomial(v, x->behind);
    }
    const float value = floorf(polynomial(column, y->behind) + 0.5F); /* below 0 all becomes 0 */
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

ggl_status llm_picture_resize(const picture_window *w, llm_arch_resize how, const llm_picture *from,
                              int64_t width, int64_t height, const char *name, ggl_error *err) {
    if (how != LLM_RESIZE_LINEAR && how != LLM_RESIZE_CUBIC)
        return llm_picture_resize_filter(w, how, from, width, height, name, err);
    const bool is_linear = how == LLM_RESIZE_LINEAR;
    place (*const find)(int64_t i, int64_t n_from, int64_t n_to) =
        is_linear ? linear_place : cubic_place;
    uint8_t (*const value)(const llm_picture *p, const place *x, const place *y, int c) =
        is_linear ? linear : cubic;
    place *const column = ggl_calloc((size_t)w->width, sizeof *column);
    if (!column)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    for (int64_t x = 0; x < w->width; x++)
        column[x] = find(w->x + x, from->width, width);
    for (int64_t y = 0; y < w->height; y++) {
        const place row = find(w->y + y, from->height, height);
        uint8_t *to = w->to + y * w->stride;
        for (int64_t x = 0; x < w->width; x++)
            for (int c = 0; c < 3; c++)
                *to++ = value(from, &column[x], &row, c);
    }
    ggl_free(column);
    return GGL_OK;
}
