/* The memory layout of stores of rows, which ggl/graph.h describes. Only this file, the CPU's kernels
 * and shaders know it; tests check them against this file.
 *
 * A quantized block is an f16 scale followed by its codes (ggml-lite/quant/quant.h). In a page, the
 * code bytes of 64 positions form words of four, and their scales follow. Byte k of position j is
 * stored at these places of its block:
 *
 *     keys     word (k / 4) * 64 + j, byte k % 4:          four dimensions of a position
 *     values   word (j / 4) * n_codes + k, byte j % 4:     four positions of a dimension
 */
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"

enum { SCALE = 2, PIECE = 64 }; /* bytes of a block's scale; elements converted at once */

/* Codes of q8_0 are stored with 128 added, which flips their highest bit: processors multiply
 * unsigned bytes by signed ones. Those of q4_0 have 8 added in the type itself. */
#define FLIP(type) ((type) == GGL_Q8_0 ? 0x80 : 0)

bool ggl_store_can_keep(ggl_type type) {
    return type == GGL_F32 || type == GGL_F16 || type == GGL_BF16 || type == GGL_Q8_0 ||
           type == GGL_Q4_0;
}

bool ggl_store_size(const ggl_store *s, int64_t n_pos, size_t *out) {
    size_t n;
    if (s->kind == GGL_STORE_STATE)
        return ggl_size_mul((uint64_t)s->ne[0], (uint64_t)s->ne[1], &n) &&
               ggl_size_mul(n, (uint64_t)s->ne[2], &n) && ggl_size_mul(n, sizeof(float), out);
    const uint64_t pages = ((uint64_t)n_pos + GGL_PAGE - 1) / GGL_PAGE;
    return ggl_row_size_checked(s->type, s->ne[0], &n) && ggl_size_mul(n, GGL_PAGE, &n) &&
           ggl_size_mul(n, (uint64_t)s->ne[1], &n) && ggl_size_mul(n, pages, out);
}

int64_t ggl_store_page(const ggl_store *s, const int32_t *table, int64_t slot, int64_t pos) {
    return s->ring ? slot * (s->n_pos / GGL_PAGE) + pos % s->n_pos / GGL_PAGE
                   : table[pos / GGL_PAGE];
}

size_t ggl_store_run(const ggl_store *s, size_t step, const int32_t *table, int64_t slot,
                     int64_t first, int64_t n_pos, size_t *at) {
    if (s->kind == GGL_STORE_STATE) {
        *at = (size_t)slot * s->slot_size;
        return s->slot_size;
    }
    const int64_t page = ggl_store_page(s, table, slot, first);
    int64_t n = 1;
    while (step == s->page_size && first + n * GGL_PAGE < n_pos &&
           ggl_store_page(s, table, slot, first + n * GGL_PAGE) == page + n)
        n++;
    *at = (size_t)page * step;
    return (size_t)n * s->page_size;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Returns the 64 rows of head h in a page. */
static char *rows_of(const ggl_store *s, const void *page, int64_t h) {
    return (char *)page + (size_t)h * GGL_PAGE * ggl_row_size(s->type, s->ne[0]);
}

/* Returns the offset of code byte k of position j in a block with n_codes bytes of a position. */
static size_t code_at(ggl_store_kind kind, size_t n_codes, size_t k, size_t j) {
    return kind == GGL_STORE_KEYS ? (k / 4 * GGL_PAGE + j) * 4 + k % 4
                                  : (j / 4 * n_codes + k) * 4 + j % 4;
}

static void move_bytes(char *page, char *row, size_t n, bool put) {
    memcpy(put ? page : row, put ? row : page, n);
}

/* Moves n elements of a quantized row; at: the 64 positions of the first block. */
static void move_blocks(const ggl_store *s, char *at, size_t lane, int64_t n, char *row, bool put) {
    const ggl_type_info *t = ggl_type_get(s->type);
    const size_t n_codes = t->size - SCALE;
    for (int64_t i = 0; i < n; i += t->block, at += GGL_PAGE * t->size, row += t->size) {
        for (size_t k = 0; k < n_codes; k++) {
            char *code = at + code_at(s->kind, n_codes, k, lane), flip = (char)FLIP(s->type);
            if (put)
                *code = (char)(row[SCALE + k] ^ flip);
            else
                row[SCALE + k] = (char)(*code ^ flip);
        }
        move_bytes(at + n_codes * GGL_PAGE + lane * SCALE, row, SCALE, put);
    }
}

/* Moves n elements of `size` bytes, a constant, of a row of keys, which lie GGL_PAGE elements apart in the page: calls of memcpy for
 * each of them took a tenth of an encoder's time. */
static inline void move_apart(char *page, char *row, int64_t n, const size_t size, bool put) {
    for (int64_t i = 0; i < n; i++, page += GGL_PAGE * size, row += size)
        memcpy(put ? page : row, put ? row : page, size);
}

/* Copies elements first .. first + n-1 of the row of position `lane` (0 .. 63) among the 64 rows of
 * a head: from row[], encoded in the store's type, to the page if `put`, else from the page to
 * row[]. */
static void move(const ggl_store *s, char *page, int64_t lane, int64_t first, int64_t n, char *row,
                 bool put) {
    const ggl_type_info *t = ggl_type_get(s->type);
    if (t->quantized) {
        move_blocks(s, page + GGL_PAGE * ggl_row_size(s->type, first), (size_t)lane, n, row, put);
        return;
    }
    if (s->kind == GGL_STORE_VALUES) {
        move_bytes(page + (size_t)(lane * s->ne[0] + first) * t->size, row, (size_t)n * t->size,
                   put);
        return;
    }
    page += (size_t)(first * GGL_PAGE + lane) * t->size;
    if (t->size == sizeof(float))
        move_apart(page, row, n, sizeof(float), put);
    else
        move_apart(page, row, n, sizeof(uint16_t), put); /* f16, bf16 */
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
    const size_t n_codes = t->size - SCALE;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < GGL_PAGE; j++) {
            const int q = at[code_at(GGL_STORE_KEYS, n_codes, (size_t)i % n_codes, (size_t)j)],
                      nibble = i < 16 ? q & 15 : q >> 4;
            out[i][j] = scale[j] * (float)(type == GGL_Q8_0 ? q - 128 : nibble - 8);
        }
}
