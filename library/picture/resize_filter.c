/* Resizing as Pillow does it: a filter that becomes wider as the picture becomes smaller, along the lines first and then down the columns, with a
 * byte for each value between the two, and weights of whole numbers. */
#include <math.h>

#include "ggl/alloc.h"
#include "resize.h"

enum {
    BITS = 22,
    CHANNELS = 3
}; /* of a weight, behind the point; a sum of bytes then has room in 32 bits */

static const double pi = 3.14159265358979323846;

/* --- filters --------------------------------------------------------------------------------- */

static double triangle(double x) {
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* Keys' cubic convolution with its parameter at -1/2. */
static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x) {
    return x == 0 ? 1 : sin(x * pi) / (x * pi);
}

static double lanczos(double x) {
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

typedef struct filter {
    double (*weight)(double x);
    double reach; /* old pixels to each side, where the picture does not become smaller */
} filter;

/* NULL: of another kind. */
static const filter *filter_of(llm_arch_resize how) {
    static const filter filters[] = {[LLM_RESIZE_PIL_LINEAR] = {triangle, 1},
                                     [LLM_RESIZE_PIL_CUBIC] = {cubic, 2},
                                     [LLM_RESIZE_PIL_LANCZOS] = {lanczos, 3}};
    return (size_t)how < sizeof filters / sizeof *filters && filters[how].weight ? &filters[how]
                                                                                 : NULL;
}

/* --- weights --------------------------------------------------------------------------------- */

/* The old pixels of which a new one is made. */
typedef struct weights {
    int64_t begin, n;
    const int32_t *weight; /* [n] */
} weights;

/* Weights of n new pixels of a side, from number `first` on. */
typedef struct side_weights {
    weights *of;
    int32_t *all;
} side_weights;

static void free_weights(side_weights *w) {
    ggl_free(w->of);
    ggl_free(w->all);
}

/* The shares of old pixels in new pixel i; shares has room for as many numbers as the filter is wide. */
static int64_t find_shares(const filter *f, int64_t i, int64_t n_from, int64_t n_to, double *shares,
                           int64_t *begin) {
    const double step = (double)n_from / (double)n_to, wide = step < 1 ? 1 : step,
                 middle = ((double)i + 0.5) * step, reach = f->reach * wide, narrow = 1 / wide;
    const double low = middle - reach + 0.5, high = middle + reach + 0.5;
    const int64_t first = low < 0 ? 0 : (int64_t)low,
                  end = high > (double)n_from ? n_from : (int64_t)high;
    double sum = 0;
    for (int64_t k = first; k < end; k++) {
        shares[k - first] = f->weight(((double)k - middle + 0.5) * narrow);
        sum += shares[k - first];
    }
    for (int64_t k = first; k < end && sum != 0; k++)
        shares[k - first] /= sum;
    *begin = first;
    return end - first;
}

int64_t llm_picture_shares(llm_arch_resize how, int64_t i, int64_t n_from, int64_t n_to,
                           double *shares, int64_t *first) {
    return find_shares(filter_of(how), i, n_from, n_to, shares, first);
}

/* The weights of new pixel i. */
static int64_t find_weights(const filter *f, int64_t i, int64_t n_from, int64_t n_to,
                            double *shares, int32_t *to, int64_t *begin) {
    const int64_t n = find_shares(f, i, n_from, n_to, shares, begin);
    for (int64_t k = 0; k < n; k++) {
        const double share = shares[k] * (1 << BITS);
        to[k] = (int32_t)(share < 0 ? share - 0.5 : share + 0.5);
    }
    return n;
}

static ggl_status make_weights(side_weights *w, const filter *f, int64_t n_from, int64_t n_to,
                               int64_t first, int64_t n, const char *name, ggl_error *err) {
    const double step = (double)n_from / (double)n_to;
    double most = 2 * ceil(f->reach * (step < 1 ? 1 : step)) + 1;
    if (most > (double)n_from)
        most = (double)n_from;
    const size_t width = (size_t)most;
    w->of = ggl_calloc((size_t)n, sizeof *w->of);
    w->all = ggl_calloc((size_t)n, width * sizeof *w->all);
    double *shares = ggl_calloc(width, sizeof *shares);
    const bool is_ok = w->of && w->all && shares;
    for (int64_t i = 0; i < n && is_ok; i++) {
        int32_t *const to = w->all + (size_t)i * width;
        w->of[i].n = find_weights(f, first + i, n_from, n_to, shares, to, &w->of[i].begin);
        w->of[i].weight = to;
    }
    ggl_free(shares);
    return is_ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
}

/* --- passes ---------------------------------------------------------------------------------- */

/* The weighted sum of bytes that are `stride` bytes apart. */
static uint8_t sum_of(const weights *w, const uint8_t *from, int64_t stride) {
    uint32_t sum =
        1
        << (BITS -
            1); /* unsigned: weights that round up may exceed it where millions of pixels become one */
    for (int64_t k = 0; k < w->n; k++)
        sum += from[k * stride] * (uint32_t)w->weight[k];
    const int32_t value = (int32_t)sum < 0 ? 0 : (int32_t)sum >> BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

/* Rows of bytes; `row` is the first one's number in the picture. */
typedef struct lines {
    const uint8_t *p;
    int64_t stride, row;
} lines;

/* Writes [n_rows][n][3], of old rows from `row` on. */
static void pass_along(uint8_t *to, const side_weights *w, int64_t n, const llm_picture *from,
                       int64_t row, int64_t n_rows) {
    for (int64_t y = row; y < row + n_rows; y++)
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < CHANNELS; c++)
                *to++ =
                    sum_of(&w->of[i], from->rgb + (y * from->width + w->of[i].begin) * CHANNELS + c,
                           CHANNELS);
}

static void pass_down(const picture_window *to, const side_weights *w, const lines *from) {
    for (int64_t i = 0; i < to->height; i++)
        for (int64_t x = 0; x < to->width * CHANNELS; x++)
            to->to[i * to->stride + x] = sum_of(
                &w->of[i], from->p + (w->of[i].begin - from->row) * from->stride + x, from->stride);
}

ggl_status llm_picture_resize_filter(const picture_window *w, llm_arch_resize how,
                                     const llm_picture *from, int64_t width, int64_t height,
                                     const char *name, ggl_error *err) {
    const filter *const f = filter_of(how);
    side_weights along = {0}, down = {0};
    uint8_t *between = NULL;
    if (!f)
        return ggl_fail(err, GGL_USAGE, "%s: no resizing has the number %d", name, (int)how);
    ggl_status st = make_weights(&along, f, from->width, width, w->x, w->width, name, err);
    if (st == GGL_OK)
        st = make_weights(&down, f, from->height, height, w->y, w->height, name, err);
    if (st == GGL_OK) {
        const weights *const last = &down.of[w->height - 1];
        const int64_t row = down.of[0].begin, n_rows = last->begin + last->n - row;
        between = ggl_calloc((size_t)n_rows, (size_t)w->width * CHANNELS);
        if (!between)
            st = ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
        if (between) {
            pass_along(between, &along, w->width, from, row, n_rows);
            pass_down(w, &down, &(lines){between, w->width * CHANNELS, row});
        }
    }
    ggl_free(between);
    free_weights(&along);
    free_weights(&down);
    return st;
}
