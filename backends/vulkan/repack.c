/* Repacks weights for products (shaders/packed.def): pieces of a weight are packed on the host by
 * several threads, and uploaded. */
#include "repack.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../../ggml-lite/quant/blocks.h"
#include "../../ggml-lite/quant/raw_scales.h"
#include "ggl/alloc.h"
#include "memory.h"
#include "threads.h"
#include "weights.h"

enum {
    PIECE = 8 << 20, /* bytes that are packed before they are uploaded; at least one tile */
    MATRIX_ALIGN = 64
};

/* How the byte that is stored for a code is made of it; packed.def says which of these. */
typedef enum levels { PLAIN, IQ4, FP4, TWICE } levels;

typedef struct layout {
    int low, high;  /* bits; both 0: the type has no such layout */
    int once, each; /* bytes of scales of a row: for a block, and for a run */
    int form;       /* of the scales */
    int offset;
    levels levels;
    raw_scales (*scales)(const uint8_t *block);
} layout;

enum {
#define SCALES(FORM, id, once, each) FORM_##FORM = id, ONCE_##FORM = once, EACH_##FORM = each,
#include "shaders/packed.def"
};

static const layout layouts[GGL_TYPE_LIMIT] = {
#define PACKED(NAME, name, offset, low, high, FORM, levels)                                        \
    [GGL_##NAME] = {low, high, ONCE_##FORM, EACH_##FORM, FORM_##FORM, offset, levels, raw_##name},
#include "shaders/packed.def"
};

/* Types whose blocks have their codes as the low planes do, 16 bytes for each run: where these begin.
 * They are copied. 0: codes are unpacked and packed again. */
static const uint8_t nibbles_at[GGL_TYPE_LIMIT] = {
    [GGL_Q4_0] = offsetof(struct block_q4_0, b),
    [GGL_Q4_1] = offsetof(struct block_q4_1, b),
    [GGL_IQ4_NL] = offsetof(struct block_iq4_nl, b),
    [GGL_IQ4_XS] = offsetof(struct block_iq4_xs, b),
    [GGL_MXFP4] = offsetof(struct block_mxfp4, b),
};

/* --- sizes ------------------------------------------------------------------------------------ */

static int64_t runs_of_block(ggl_type type) {
    return ggl_type_get(type)->block / 32;
}

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

size_t ggl_vk_tile_size(ggl_type type, int64_t k) {
    const layout *l = &layouts[type];
    const size_t n_runs = (size_t)k / 32, n_blocks = n_runs / (size_t)runs_of_block(type);
    const size_t run = (size_t)(4 * (l->low + l->high) + l->each);
    return round_up(VK_TILE_ROWS * (n_runs * run + n_blocks * (size_t)l->once), 16);
}

static int64_t n_tiles(int64_t n_rows) {
    return (n_rows + VK_TILE_ROWS - 1) / VK_TILE_ROWS;
}

size_t ggl_vk_packed_size(ggl_type type, int64_t k, int64_t n_rows) {
    return round_up((size_t)n_tiles(n_rows) * ggl_vk_tile_size(type, k), MATRIX_ALIGN);
}

/* 0, for a weight that is left as it is, if one tile is larger than a binding. */
size_t ggl_vk_repack_size(const ggl_backend *base, const ggl_tensor *w) {
    const vk_backend *b = (const vk_backend *)base;
    if (!b->features.repack || layouts[w->type].low + layouts[w->type].high == 0 ||
        ggl_vk_tile_size(w->type, w->ne[0]) > ggl_vk_most_bound(b))
        return 0;
    return ggl_vk_packed_size(w->type, w->ne[0], w->ne[1]) *
           (size_t)ggl_extents(w->ne, 2, GGL_MAX_DIMS, 1);
}

/* --- a row ------------------------------------------------------------------------------------ */

/* By number of ggl_codes, as an unsigned byte: what is stored for it. */
typedef uint8_t stored[256];

static void stored_of(const layout *l, stored to) {
    static const int8_t iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
    static const int8_t fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    for (int q = -128; q < 128; q++)
        to[(uint8_t)q] = (uint8_t)(l->levels == TWICE ? (q + l->offset) / 2 : q + l->offset);
    for (int i = 15; i >= 0 && (l->levels == IQ4 || l->levels == FP4); i--)
        to[(uint8_t)(l->levels == IQ4 ? iq4 : fp4)[i]] = (uint8_t)i;
}

static void stored_codes(const layout *l, const stored of, const int8_t q[32], uint8_t code[32]) {
    if (l->levels == PLAIN)
        for (int i = 0; i < 32; i++)
            code[i] = (uint8_t)(q[i] + l->offset);
    else
        for (int i = 0; i < 32; i++)
            code[i] = of[(uint8_t)q[i]];
}

/* Writes 8 bytes with the two bits from `shift` on of each code. */
static void put_twos(uint8_t *to, const uint8_t code[32], int shift) {
    for (int i = 0; i < 8; i++) {
        const uint8_t *c = code + i / 4 * 16 + i % 4;
        unsigned v = 0;
        for (int s = 0; s < 4; s++)
            v |= (unsigned)(c[4 * s] >> shift & 3) << 2 * s;
        to[i] = (uint8_t)v;
    }
}

static void put_low(uint8_t *to, const uint8_t code[32], int low) {
    if (low == 8)
        memcpy(to, code, 32);
    else if (low == 4)
        for (int i = 0; i < 16; i++)
            to[i] = (uint8_t)((code[i] & 15) | code[i + 16] << 4);
    else if (low == 2)
        put_twos(to, code, 0);
}

/* The bits of codes above the low ones. */
static void put_high(uint8_t *to, const uint8_t code[32], int low, int high) {
    if (high == 2)
        put_twos(to, code, low);
    for (int i = 0; i < 4 && high == 1; i++) {
        unsigned v = 0;
        for (int g = 0; g < 8; g++)
            v |= (unsigned)(code[4 * g + i] >> low & 1) << g;
        to[i] = (uint8_t)v;
    }
}

static void put16(uint8_t *to, unsigned v) {
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
}

/* Returns byte i of the scales of runs, or of halves of runs. */
static uint8_t scale_byte(const raw_scales *s, int i) {
    return (uint8_t)(s->sc[i / 8] >> 8 * (i % 8));
}

/* Writes the scales of one block of row `row` of a tile to the places of the block and of its
 * first run. */
static void put_scales(const layout *l, raw_scales s, int runs, int row, uint8_t *once,
                       uint8_t *each) {
    once += l->once * row;
    if (l->once == 1)
        *once = (uint8_t)s.d;
    if (l->once >= 2)
        put16(once, s.d);
    if (l->once == 4)
        put16(once + 2, s.m);
    const bool minima = l->form == FORM_SC8_MIN;
    for (int k = 0; k < runs && l->each > 0; k++) {
        uint8_t *to = each + (k * VK_TILE_ROWS + row) * l->each;
        to[0] = scale_byte(&s, l->each == 1 || minima ? k : 2 * k);
        if (l->each == 2)
            to[1] = minima ? (uint8_t)(s.mn >> 8 * k) : scale_byte(&s, 2 * k + 1);
    }
}

/* Packs one row at `from` as row `row` of a tile. */
static void pack_row(ggl_type type, int64_t k, const stored of, const uint8_t *from, uint8_t *tile,
                     int row) {
    const layout *l = &layouts[type];
    const ggl_type_info *info = ggl_type_get(type);
    const int runs = (int)runs_of_block(type);
    const int64_t n = k / 32, low = 4 * l->low, high = 4 * l->high;
    uint8_t *lows = tile + row * n * low, *highs = tile + VK_TILE_ROWS * n * low + row * n * high;
    uint8_t *once = tile + VK_TILE_ROWS * n * (low + high),
            *each = once + VK_TILE_ROWS * (n / runs) * l->once;
    for (int64_t b = 0; b < n / runs; b++, from += info->size) {
        for (int i = 0; i < runs; i++, lows += low, highs += high) {
            ggl_codes c;
            uint8_t code[32];
            if (nibbles_at[type]) {
                memcpy(lows, from + nibbles_at[type] + 16 * i, 16);
                continue;
            }
            info->unpack(from, i, &c);
            stored_codes(l, of, c.q, code);
            put_low(lows, code, l->low);
            put_high(highs, code, l->low, l->high);
        }
        put_scales(l, l->scales(from), runs, row, once, each);
        once += VK_TILE_ROWS * l->once;
        each += VK_TILE_ROWS * runs * l->each;
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Tiles of one matrix to pack. */
typedef struct task {
    ggl_type type;
    int64_t k, n_rows; /* of the rows from the first tile on */
    const uint8_t *from;
    uint8_t *to;
    int64_t n_tiles;
    atomic_llong next; /* tile that no thread has taken yet */
} task;

static void *pack_tiles(void *ctx) {
    task *t = ctx;
    const size_t row_size = ggl_row_size(t->type, t->k), size = ggl_vk_tile_size(t->type, t->k);
    stored of;
    stored_of(&layouts[t->type], of);
    for (int64_t i; (i = atomic_fetch_add(&t->next, 1)) < t->n_tiles;) {
        uint8_t *tile = t->to + (size_t)i * size;
        memset(tile, 0, size);
        for (int r = 0; r < VK_TILE_ROWS && i * VK_TILE_ROWS + r < t->n_rows; r++)
            pack_row(t->type, t->k, of, t->from + (size_t)(i * VK_TILE_ROWS + r) * row_size, tile,
                     r);
    }
    return NULL;
}

/* --- a weight --------------------------------------------------------------------------------- */

/* Packs and uploads one matrix, `piece` bytes at a time. */
static ggl_status repack_matrix(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                                const uint8_t *from, uint8_t *piece, int64_t at_once,
                                ggl_error *err) {
    const size_t size = ggl_vk_tile_size(w->type, w->ne[0]);
    const int64_t all = n_tiles(w->ne[1]);
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < all && st == GGL_OK; i += at_once) {
        const int64_t row = i * VK_TILE_ROWS;
        task t = {.type = w->type, .k = w->ne[0], .n_rows = w->ne[1] - row};
        t.from = from + (size_t)row * ggl_row_size(w->type, w->ne[0]);
        t.to = piece;
        t.n_tiles = all - i < at_once ? all - i : at_once;
        ggl_vk_in_threads(pack_tiles, &t, t.n_tiles);
        st = ggl_vk_buffer_upload(b, dst, offset + (size_t)i * size, piece,
                                  (size_t)t.n_tiles * size, err);
    }
    return st;
}

ggl_status ggl_vk_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                         ggl_error *err) {
    const size_t size = ggl_vk_tile_size(w->type, w->ne[0]),
                 matrix = ggl_vk_packed_size(w->type, w->ne[0], w->ne[1]),
                 in_file = ggl_row_size(w->type, w->ne[0]) * (size_t)ggl_extents(w->ne, 1, 2, 1);
    const int64_t n = ggl_extents(w->ne, 2, GGL_MAX_DIMS, 1);
    int64_t at_once = PIECE / (int64_t)size + 1;
    at_once = at_once < n_tiles(w->ne[1]) ? at_once : n_tiles(w->ne[1]);
    uint8_t *piece = ggl_calloc((size_t)at_once, size);
    if (!piece)
        return ggl_fail(err, GGL_NOMEM, "out of memory for repacking");
    ggl_status st = GGL_OK;
    for (int64_t m = 0; m < n && st == GGL_OK; m++)
        st = repack_matrix(b, dst, offset + (size_t)m * matrix, w,
                           (const uint8_t *)w->data + (size_t)m * in_file, piece, at_once, err);
    ggl_free(piece);
    return st;
}
