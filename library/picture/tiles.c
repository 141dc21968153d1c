#include "tiles.h"

#include <math.h>

#include "prepare.h"

typedef struct grid {
    int64_t nx, ny;
} grid;

/* --- choosing the grid ------------------------------------------------------------------------ */

/* The picture in a grid: the pixels of it that are seen, and those around it or seen twice. */
typedef struct merit {
    int64_t seen, lost;
} merit;

static merit merit_of(grid g, int64_t size, int64_t width, int64_t height) {
    const int64_t w = g.nx * size, h = g.ny * size;
    const float by_width = (float)w / (float)width, by_height = (float)h / (float)height;
    const float scale = by_width < by_height ? by_width : by_height;
    const int64_t seen = (int64_t)((float)width * scale) * (int64_t)((float)height * scale);
    const int64_t own = width * height, least = seen < own ? seen : own;
    return (merit){least, w * h - least};
}

/* Takes the grid if it is better. */
static void try_grid(grid *best, merit *most, grid g, int64_t size, int64_t width, int64_t height) {
    const merit m = merit_of(g, size, width, height);
    if (best->nx == 0 || m.seen > most->seen || (m.seen == most->seen && m.lost < most->lost)) {
        *best = g;
        *most = m;
    }
}

static grid fit_grid(const llm_arch_picture *rule, int64_t width, int64_t height) {
    const llm_arch_tiles *t = &rule->tiles;
    grid best = {0};
    merit most = {0};
    if (!t->always && width <= rule->size && height <= rule->size)
        return best;
    for (int k = 0; k < t->n_grid; k++)
        try_grid(&best, &most, (grid){t->grid[k][0], t->grid[k][1]}, rule->size, width, height);
    for (int64_t nx = 1; t->n_grid == 0 && nx <= t->most; nx++)
        for (int64_t ny = (t->least + nx - 1) / nx; nx * ny <= t->most; ny++)
            try_grid(&best, &most, (grid){nx, ny}, rule->size, width, height);
    return best;
}

/* The longer side is exactly `most` pixels; the other one is rounded up. */
static grid longest_grid(const llm_arch_picture *rule, int64_t width, int64_t height) {
    const int64_t most = rule->tiles.most, size = rule->size;
    const int64_t longer = width > height ? width : height;
    const int64_t unit = longer * size; /* of a side times `most` */
    return (grid){(width * most + unit - 1) / unit, (height * most + unit - 1) / unit};
}

static grid shape_grid(const llm_arch_picture *rule, int64_t width, int64_t height) {
    const double area = (double)width * (double)height, own = log((double)width / (double)height);
    const double n = ceil(area / ((double)rule->size * (double)rule->size));
    const int64_t most = rule->tiles.most;
    const int64_t about = n < (double)most ? (int64_t)n : most;
    grid best = {0};
    double least = INFINITY;
    for (int64_t k = about - 1; about > 1 && k <= about + 1; k++)
        for (int64_t nx = 1; k > 1 && k <= most && nx <= k; nx++) {
            const double off = fabs(own - log((double)nx * (double)nx / (double)k));
            if (k % nx == 0 && off < least) {
                least = off;
                best = (grid){nx, k / nx};
            }
        }
    return best;
}

/* True if a picture is large enough for tiles, with its sides as they count. */
static bool is_large(const llm_arch_picture *rule, double w, double h) {
    const llm_arch_tiles *t = &rule->tiles;
    return t->above > 0 ? w * h > t->above : fmax(w, h) > (double)t->size;
}

/* The grid whose shape is nearest; of equally near ones a larger one, unless it has more than twice the picture's pixels. */
static grid ratio_grid(const llm_arch_picture *rule, int64_t width, int64_t height) {
    const llm_arch_tiles *t = &rule->tiles;
    const double side = t->above > 0 ? (double)(rule->patch * rule->block) : 1,
                 own = (double)width / (double)height, tile = (double)t->size * (double)t->size;
    const double least_side = t->above > 0 ? (double)rule->patch : 1;
    const double w = fmax(nearbyint((double)width / side) * side, least_side),
                 h = fmax(nearbyint((double)height / side) * side, least_side);
    grid best = {0};
    double least = INFINITY;
    for (int64_t n = t->least; is_large(rule, w, h) && n <= t->most; n++)
        for (int64_t nx = 1; nx <= n; nx++) {
            const int64_t ny = n / nx;
            const double off = fabs(own - (double)nx / (double)ny);
            if (nx * ny == n && (off < least || (off == least && (double)width * (double)height >
                                                                     0.5 * tile * (double)n))) {
                least = off;
                best = (grid){nx, ny};
            }
        }
    return best;
}

/* The side of the windows; 0: the picture is seen as a whole alone. */
static int64_t window_of(const llm_arch_picture *rule, int64_t width, int64_t height) {
    const int64_t longer = width > height ? width : height, shorter = width + height - longer,
                  size = rule->tiles.size;
    if (longer <= rule->size)
        return 2 * longer > 3 * shorter ? shorter : 0;
    return longer > 4 * shorter && shorter < size ? shorter : size;
}

/* Windows along a side, of which more than a fifth is seen; the side becomes as long as they are. A side that is shorter than one keeps its length. */
static int64_t windows_along(int64_t side, int64_t window) {
    const int64_t n = side / window + (5 * (side % window) > window);
    return side < window ? 1 : n;
}

static grid window_grid(const llm_arch_picture *rule, int64_t width, int64_t height) {
    const int64_t w = window_of(rule, width, height);
    return w > 0 ? (grid){windows_along(width, w), windows_along(height, w)} : (grid){0};
}

static grid grid_of(const llm_arch_picture *rule, int64_t width, int64_t height) {
    switch (rule->tiles.by) {
    case LLM_TILES_FIT:
        return fit_grid(rule, width, height);
    case LLM_TILES_LONGEST:
        return longest_grid(rule, width, height);
    case LLM_TILES_SHAPE:
        return shape_grid(rule, width, height);
    case LLM_TILES_RATIO:
        return ratio_grid(rule, width, height);
    case LLM_TILES_WINDOWS:
        return window_grid(rule, width, height);
    case LLM_TILES_NONE:
        break;
    }
    return (grid){0};
}

/* --- the tiles -------------------------------------------------------------------------------- */

/* All windows together: what a side lacks to a whole one has the color. */
static void place_windows(llm_picture_tiles *t, int64_t window, int64_t width, int64_t height) {
    t->window = window;
    t->all.width = window * t->nx;
    t->all.height = window * t->ny;
    t->all.inner_width = width < window ? width : t->all.width;
    t->all.inner_height = height < window ? height : t->all.height;
}

ggl_status llm_picture_tiles_for(llm_picture_tiles *t, const llm_arch_picture *rule, int64_t width,
                                 int64_t height, const char *name, ggl_error *err) {
    llm_picture_fit whole;
    *t = (llm_picture_tiles){0};
    ggl_status st = llm_picture_fit_for(&whole, rule, width, height, name, err);
    if (st != GGL_OK || rule->tiles.by == LLM_TILES_NONE)
        return st;
    const grid g = grid_of(rule, width, height);
    if (g.nx == 0)
        return GGL_OK;
    if (g.nx > LLM_ARCH_MAX_TILES || g.ny > LLM_ARCH_MAX_TILES || g.nx * g.ny > LLM_ARCH_MAX_TILES)
        return ggl_fail(err, GGL_LIMIT, "%s: the model would see it in %lld x %lld parts", name,
                        (long long)g.nx, (long long)g.ny);
    t->width = t->height = llm_arch_tiles_sized(&rule->tiles) ? rule->tiles.size : rule->size;
    if (rule->tiles.by == LLM_TILES_SHAPE) {
        /* a tile has the shape of its part of the picture, whose sides are rounded to whole pixels of each */
        const int64_t w = (int64_t)fmax(nearbyint((double)width / (double)g.nx), 1),
                      h = (int64_t)fmax(nearbyint((double)height / (double)g.ny), 1);
        st = llm_picture_fit_for(&whole, rule, w, h, name, err);
        t->width = whole.width;
        t->height = whole.height;
    }
    if (st != GGL_OK)
        return st;
    if (t->width * g.nx * t->height * g.ny > LLM_PICTURE_SEEN)
        return ggl_fail(
            err, GGL_LIMIT, "%s: the model would see %lld x %lld pixels of it, more than %d", name,
            (long long)(t->width * g.nx), (long long)(t->height * g.ny), LLM_PICTURE_SEEN);
    t->nx = g.nx;
    t->ny = g.ny;
    t->all.width = t->all.inner_width = t->width * g.nx;
    t->all.height = t->all.inner_height = t->height * g.ny;
    if (rule->tiles.fit == LLM_FIT_PAD)
        llm_picture_pad(&t->all, width, height);
    if (rule->tiles.by == LLM_TILES_WINDOWS)
        place_windows(t, window_of(rule, width, height), width, height);
    return GGL_OK;
}

ggl_status llm_picture_all_tiles(llm_picture **out, const llm_arch_picture *rule,
                                 const llm_picture_tiles *t, const llm_picture *from,
                                 const char *name, ggl_error *err) {
    const llm_picture_part all = {0, 0, t->all.width, t->all.height};
    return llm_picture_draw(out, from, &t->all, &all, rule->tiles.resize, rule->tiles.color, name,
                            err);
}

ggl_status llm_picture_tile(llm_picture **out, const llm_arch_picture *rule,
                            const llm_picture_tiles *t, const llm_picture *from, int64_t y,
                            int64_t x, const char *name, ggl_error *err) {
    const int64_t w = t->window > 0 ? t->window : t->width,
                  h = t->window > 0 ? t->window : t->height;
    const llm_picture_part part = {x * w, y * h, w, h}, whole = {0, 0, t->width, t->height};
    const llm_picture_fit fit = {
        .width = t->width, .height = t->height, .inner_width = t->width, .inner_height = t->height};
    llm_picture *window = NULL;
    *out = NULL;
    ggl_status st = llm_picture_draw(&window, from, &t->all, &part, rule->tiles.resize,
                                     rule->tiles.color, name, err);
    if (st != GGL_OK || (w == t->width && h == t->height)) {
        *out = window;
        return st;
    }
    st = llm_picture_draw(out, window, &fit, &whole, rule->tiles.resize, rule->tiles.color, name,
                          err);
    llm_picture_free(window);
    return st;
}
