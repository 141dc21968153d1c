#include "prepare.h"

#include <string.h>

#include "ggl/alloc.h"
#include "resize.h"

enum { LEVELS = 256, CHANNELS = 3 };

static void paint(llm_picture *p, const uint8_t color[CHANNELS]) {
    for (int64_t i = 0; i < p->width * p->height; i++)
        memcpy(p->rgb + i * CHANNELS, color, CHANNELS);
}

ggl_status llm_picture_draw(llm_picture **out, const llm_picture *from, const llm_picture_fit *f,
                            const llm_picture_part *part, llm_arch_resize resize,
                            const uint8_t color[CHANNELS], const char *name, ggl_error *err) {
    llm_picture *p = NULL;
    *out = NULL;
    ggl_status st = llm_picture_new(&p, part->width, part->height, name, err);
    if (st != GGL_OK)
        return st;
    paint(p, color);
    /* where the resized picture is, from the part's corner, and what of it is in the part */
    const int64_t x = f->left - part->x, y = f->top - part->y;
    const int64_t left = x > 0 ? x : 0, top = y > 0 ? y : 0;
    const int64_t right = x + f->inner_width < p->width ? x + f->inner_width : p->width,
                  bottom = y + f->inner_height < p->height ? y + f->inner_height : p->height;
    const picture_window w = {.x = left - x,
                              .y = top - y,
                              .width = right - left,
                              .height = bottom - top,
                              .to = p->rgb + (top * p->width + left) * CHANNELS,
                              .stride = p->width * CHANNELS};
    if (right > left && bottom > top)
        st = llm_picture_resize(&w, resize, from, f->inner_width, f->inner_height, name, err);
    if (st == GGL_OK)
        *out = p;
    else
        llm_picture_free(p);
    return st;
}

ggl_status llm_picture_seen(llm_picture **out, const llm_arch_picture *rule,
                            const llm_picture *from, const char *name, ggl_error *err) {
    llm_picture_fit f;
    *out = NULL;
    const ggl_status st = llm_picture_fit_for(&f, rule, from->width, from->height, name, err);
    const llm_picture_part all = {0, 0, f.width, f.height};
    return st == GGL_OK
               ? llm_picture_draw(out, from, &f, &all, rule->resize, rule->color, name, err)
               : st;
}

/* The numbers that the 256 values of each color become. */
typedef struct levels {
    float of[CHANNELS][LEVELS];
} levels;

static levels levels_of(const llm_arch_picture *rule) {
    levels l;
    for (int c = 0; c < CHANNELS; c++)
        for (int i = 0; i < LEVELS; i++)
            l.of[c][i] = ((float)i / 255.0F - (float)rule->mean[c]) / (float)rule->std[c];
    return l;
}

void llm_picture_normalize(float *to, const llm_arch_picture *rule, const llm_picture *seen) {
    const levels l = levels_of(rule);
    for (int64_t i = 0; i < seen->width * seen->height * CHANNELS; i++)
        to[i] = l.of[i % CHANNELS][seen->rgb[i]];
}

/* Between which entries of a table's side the patch i of n lies: the first is *at. Returns how far behind it. */
static double table_place(int64_t i, int64_t n, int64_t side, int64_t *at) {
    const double x = n > 1 ? (double)(i * (side - 1)) / (double)(n - 1) : 0;
    *at = (int64_t)x;
    return x - (double)*at;
}

/* The cell of a table in which the patch begins. */
static void find_cell(llm_picture_rows *r, int64_t k, int64_t side) {
    for (int i = 0; i < 4; i++)
        r->entry[k][i] = (int32_t)(r->y[k] * side / r->ny * side + r->x[k] * side / r->nx);
    r->share[k][0] = 1;
}

static void find_entries(llm_picture_rows *r, int64_t k, int64_t side) {
    int64_t x0, y0;
    const double fx = table_place(r->x[k], r->nx, side, &x0),
                 fy = table_place(r->y[k], r->ny, side, &y0);
    for (int i = 0; i < 4; i++) {
        const int64_t x = x0 + i % 2 < side ? x0 + i % 2 : side - 1,
                      y = y0 + i / 2 < side ? y0 + i / 2 : side - 1;
        r->entry[k][i] = (int32_t)(y * side + x);
        r->share[k][i] = (float)((i / 2 ? fy : 1 - fy) * (i % 2 ? fx : 1 - fx));
    }
}

static void fill_row(float *to, const llm_picture *p, int64_t patch, int64_t px, int64_t py,
                     const levels *l) {
    for (int c = 0; c < CHANNELS; c++)
        for (int64_t y = 0; y < patch; y++) {
            const uint8_t *from =
                p->rgb + ((py * patch + y) * p->width + px * patch) * CHANNELS + c;
            for (int64_t x = 0; x < patch; x++)
                *to++ = l->of[c][from[x * CHANNELS]];
        }
}

static void fill(llm_picture_rows *r, const llm_arch_picture *rule, const llm_picture *p) {
    const levels l = levels_of(rule);
    const int64_t block = rule->block, n_across = r->nx / block;
    for (int64_t k = rule->first; k < r->n; k++) {
        const int64_t i = k - rule->first, b = i / (block * block), j = i % (block * block);
        r->x[k] = (int32_t)(b % n_across * block + j % block);
        r->y[k] = (int32_t)(b / n_across * block + j / block);
        fill_row(r->row + k * r->n_row, p, rule->patch, r->x[k], r->y[k], &l);
        if (r->entry)
            (rule->cells ? find_cell : find_entries)(r, k, rule->table);
    }
}

ggl_status llm_picture_rows_new(llm_picture_rows **out, const llm_arch_picture *rule,
                                const llm_picture *seen, const char *name, ggl_error *err) {
    const int64_t side = rule->patch * rule->block;
    *out = NULL;
    if (side < 1 || seen->width < side || seen->height < side ||
        seen->width / rule->patch % rule->block || seen->height / rule->patch % rule->block)
        return ggl_fail(
            err, GGL_USAGE,
            "%s: %lld x %lld pixels, which are no blocks of %lld x %lld patches of %lld", name,
            (long long)seen->width, (long long)seen->height, (long long)rule->block,
            (long long)rule->block, (long long)rule->patch);
    llm_picture_rows *r = ggl_calloc(1, sizeof *r);
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    r->nx = seen->width / rule->patch;
    r->ny = seen->height / rule->patch;
    r->n = rule->first + r->nx * r->ny;
    r->n_row = CHANNELS * rule->patch * rule->patch;
    const size_t n = (size_t)r->n;
    r->row = ggl_calloc(n, (size_t)r->n_row * sizeof *r->row);
    r->y = ggl_calloc(n, sizeof *r->y);
    r->x = ggl_calloc(n, sizeof *r->x);
    if (rule->table > 0) {
        r->entry = ggl_calloc(n, sizeof *r->entry);
        r->share = ggl_calloc(n, sizeof *r->share);
    }
    if (!r->row || !r->y || !r->x || (rule->table > 0 && (!r->entry || !r->share))) {
        llm_picture_rows_free(r);
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory for %zu rows", name, n);
    }
    fill(r, rule, seen);
    *out = r;
    return GGL_OK;
}

void llm_picture_rows_free(llm_picture_rows *r) {
    if (!r)
        return;
    ggl_free(r->row);
    ggl_free(r->y);
    ggl_free(r->x);
    ggl_free(r->entry);
    ggl_free(r->share);
    ggl_free(r);
}
