#include "order.h"

#include <math.h>
#include <stdlib.h>

#include "ggl/alloc.h"

/* A row and its place. */
typedef struct placed {
    int32_t y, x, row;
} placed;

static int by_place(const void *a, const void *b) {
    const placed *p = a, *q = b;
    if (p->y != q->y)
        return p->y < q->y ? -1 : 1;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return p->row < q->row ? -1 : p->row > q->row;
}

ggl_status llm_picture_order_new(llm_picture_order *out, const llm_arch_picture *rule,
                                 const int32_t *place, int64_t n, ggl_error *err) {
    const bool has_lines = *rule->line || *rule->line_end || *rule->tiles.line_end;
    placed *p = ggl_calloc((size_t)n + 1, sizeof *p);
    int64_t n_placed = 0;
    *out = (llm_picture_order){.at = ggl_calloc(2 * (size_t)n + 1, sizeof *out->at)};
    if (!p || !out->at) {
        ggl_free(p);
        llm_picture_order_fini(out);
        return ggl_fail(err, GGL_NOMEM, "out of memory for the rows of a picture");
    }
    for (int64_t i = 0; i < n; i++)
        if (place[3 * i] >= 0)
            p[n_placed++] = (placed){place[3 * i + 1], place[3 * i + 2], (int32_t)i};
    if (rule->tiles.woven || rule->tiles.in_lines)
        qsort(p, (size_t)n_placed, sizeof *p, by_place);
    for (int64_t i = 0; i < n_placed; i++) {
        out->at[out->n++] = p[i].row;
        if (has_lines && (i + 1 == n_placed || p[i + 1].y != p[i].y))
            out->at[out->n++] = LLM_PICTURE_LINE;
    }
    ggl_free(p);
    return GGL_OK;
}

ggl_status llm_picture_pairs_new(llm_picture_order *out, const llm_arch_picture *rule,
                                 const int32_t *place, int64_t n, ggl_error *err) {
    const int fill = llm_arch_row_named(rule->fill), line_end = llm_arch_row_named(rule->line_end);
    int64_t nx = 0, ny = 0;
    for (int64_t i = rule->n_marks; i < n; i++) {
        ny = place[3 * i + 1] >= ny ? place[3 * i + 1] + 1 : ny;
        nx = place[3 * i + 2] >= nx ? place[3 * i + 2] + 1 : nx;
    }
    *out = (llm_picture_order){
        .at = ggl_calloc((size_t)llm_arch_picture_tokens(rule, nx, ny) + 1, sizeof *out->at)};
    int32_t *row = ggl_calloc((size_t)(nx * ny) + 1, sizeof *row), *to = out->at;
    if (!row || !to) {
        ggl_free(row);
        llm_picture_order_fini(out);
        return ggl_fail(err, GGL_NOMEM, "out of memory for the rows of a picture");
    }
    for (int64_t i = rule->n_marks; i < n; i++)
        row[place[3 * i + 1] * nx + place[3 * i + 2]] = (int32_t)i;
    *to++ = fill;
    *to++ = llm_arch_row_named(rule->begin);
    for (int64_t y = 0; y < ny; y += 2)
        for (int64_t x = 0; x <= nx; x++) {
            *to++ = x < nx ? row[y * nx + x] : line_end;
            *to++ = y + 1 == ny ? fill : x < nx ? row[(y + 1) * nx + x] : line_end;
        }
    while ((to - out->at - 2) % rule->pairs != 0)
        *to++ = fill;
    *to++ = llm_arch_row_named(rule->end);
    out->n = to - out->at;
    ggl_free(row);
    return GGL_OK;
}

void llm_picture_order_fini(llm_picture_order *o) {
    ggl_free(o->at);
    *o = (llm_picture_order){0};
}

/* How many of n cells of a side show `seen` pixels of a picture whose other side fills all of its cells. */
static int64_t cells_of(int64_t seen, int64_t other, int64_t n_other) {
    const double n = (double)seen * ((double)n_other / (double)other);
    return (int64_t)(nearbyint(n * 1e7) / 1e7);
}

void llm_picture_seen_cells(int64_t width, int64_t height, int64_t nx, int64_t ny, int64_t *left,
                            int64_t *right, int64_t *top, int64_t *bottom) {
    const bool is_wide = (double)width / (double)height > (double)nx / (double)ny;
    const int64_t around =
        is_wide ? (ny - cells_of(height, width, nx)) / 2 : (nx - cells_of(width, height, ny)) / 2;
    *left = is_wide ? 0 : around;
    *right = nx - *left;
    *top = is_wide ? around : 0;
    *bottom = ny - *top;
}
