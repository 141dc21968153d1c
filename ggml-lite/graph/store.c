/* The memory layout of stores of rows, which ggl/graph.h describes. Only this file and the CPU's
 * kernels know it; tests check the kernels against this file.
 *
 * A quantized block is an f16 scale followed by its codes (ggml-lite/quant/quant.h). In a page of
 * keys, the blocks of 64 positions are interleaved byte by byte:
 *
 *     block of 32 dimensions:  code byte 0 of position 0, 1, .. 63 | code byte 1 .. | scale 0 .. 63
 */
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/graph.h"

enum { SCALE = 2, PIECE = 64 }; /* bytes of a block's scale; elements converted at once */

bool ggl_store_can_keep(ggl_type type) {
    return type == GGL_F32 || type == GGL_F16 || type == GGL_BF16 || type == GGL_Q8_0 ||
           type == GGL_Q4_0;
}

bool ggl_store_size(const ggl_store *s, int64_t n_pos, size_t *out) {
    size_t n;
    if (s->kind == GGL_STORE_STATE)
        return ggl_size_mul((size_t)s->ne[0], (size_t)s->ne[1], &n) &&
               ggl_size_mul(n, (size_t)s->ne[2], &n) && ggl_size_mul(n, sizeof(float), out);
    size_t pages = ((size_t)n_pos + GGL_PAGE - 1) / GGL_PAGE;
    return ggl_row_size_checked(s->type, s->ne[0], &n) && ggl_size_mul(n, GGL_PAGE, &n) &&
           ggl_size_mul(n, (size_t)s->ne[1], &n) && ggl_size_mul(n, pages, out);
}

int64_t ggl_store_page(const ggl_store *s, const int32_t *table, int64_t slot, int64_t pos) {
    return s->ring ? slot * (s->n_pos / GGL_PAGE) + pos % s->n_pos / GGL_PAGE
                   : table[pos / GGL_PAGE];
}

size_t ggl_store_run(const ggl_store *s, const int32_t *table, int64_t slot, int64_t first,
                     int64_t n_pos, size_t *at) {
    if (s->kind == GGL_STORE_STATE) {
        *at = (size_t)slot * s->slot_size;
        return s->slot_size;
    }
    const int64_t page = ggl_store_page(s, table, slot, first);
    int64_t n = 1;
    while (first + n * GGL_PAGE < n_pos &&
           ggl_store_page(s, table, slot, first + n * GGL_PAGE) == page + n)
        n++;
    *at = (size_t)page * s->page_size;
    return (size_t)n * s->page_size;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Returns the 64 rows of head h in a page. */
static char *rows_of(const ggl_store *s, const void *page, int64_t h) {
    return (char *)page + (size_t)h * GGL_PAGE * ggl_row_size(s->type, s->ne[0]);
}

/* Copies elements first .. first + n-1 of the row of position `lane` (0 .. 63) among the 64 rows of
 * a head: from row[], encoded in the store's type, to the page if `put`, else from the page to
 * row[]. */
static void move(const ggl_store *s, char *page, int64_t lane, int64_t first, int64_t n, char *row,
                 bool put) {
    const ggl_type_info *t = ggl_type_get(s->type);
    char *to;
    if (s->kind == GGL_STORE_VALUES) {
        to = page + (size_t)lane * ggl_row_size(s->type, s->ne[0]) + ggl_row_size(s->type, first);
        memcpy(put ? to : row, put ? row : to, ggl_row_size(s->type, n));
        return;
    }
    to = page + GGL_PAGE * ggl_row_size(s->type, first);
    size_t part = t->quantized ? 1 : t->size, codes = t->quantized ? t->size - SCALE : t->size;
    for (int64_t i = 0; i < n; i += t->block, to += GGL_PAGE * t->size, row += t->size) {
        char *code = t->quantized ? row + SCALE : row;
        for (size_t k = 0; k < codes; k += part) {
            char *at = to + k * GGL_PAGE + (size_t)lane * part;
            memcpy(put ? at : code + k, put ? code + k : at, part);
        }
        char *scale = to + codes * GGL_PAGE + lane * SCALE;
        if (t->quantized)
            memcpy(put ? scale : row, put ? row : scale, SCALE);
    }
}

void ggl_store_put(const ggl_store *s, void *page, int64_t pos, int64_t h, const float *row) {
    char piece[PIECE * sizeof(float)], *rows = rows_of(s, page, h);
    for (int64_t i = 0; i < s->ne[0]; i += PIECE) {
        int64_t n = s->ne[0] - i < PIECE ? s->ne[0] - i : PIECE;
        ggl_type_get(s->type)->from_float(row + i, piece, n);
        move(s, rows, pos % GGL_PAGE, i, n, piece, true);
    }
}

void ggl_store_get(const ggl_store *s, const void *page, int64_t pos, int64_t h, float *row) {
    char piece[PIECE * sizeof(float)], *rows = rows_of(s, page, h);
    for (int64_t i = 0; i < s->ne[0]; i += PIECE) {
        int64_t n = s->ne[0] - i < PIECE ? s->ne[0] - i : PIECE;
        move(s, rows, pos % GGL_PAGE, i, n, piece, false);
        ggl_type_get(s->type)->to_float(piece, row + i, n);
    }
}

/* --- pages of keys ---------------------------------------------------------------------------- */

void ggl_keys_unpack(ggl_type type, const void *page, int64_t first, int n,
                     float (*out)[GGL_PAGE]) {
    const ggl_type_info *t = ggl_type_get(type);
    const uint8_t *at = (const uint8_t *)page + GGL_PAGE * ggl_row_size(type, first);
    if (!t->quantized) {
        t->to_float(at, out[0], (int64_t)n * GGL_PAGE);
        return;
    }
    float scale[GGL_PAGE];
    const uint8_t *scales = at + GGL_PAGE * (t->size - SCALE);
    for (int j = 0; j < GGL_PAGE; j++) {
        uint16_t d;
        memcpy(&d, scales + SCALE * j, sizeof d);
        scale[j] = ggl_f16_to_f32(d);
    }
    for (int i = 0; i < n; i++) {
        const uint8_t *q = at + i % (type == GGL_Q8_0 ? 32 : 16) * GGL_PAGE;
        for (int j = 0; j < GGL_PAGE; j++) {
            int nibble = i < 16 ? q[j] & 15 : q[j] >> 4;
            out[i][j] = scale[j] * (float)(type == GGL_Q8_0 ? (int8_t)q[j] : nibble - 8);
        }
    }
}
