#include "weights.h"

#include <string.h>

#include "../../ggml-lite/quant/iq_grids.h"
#include "memory.h"

enum { CODES = 1, CODEBOOK };

/* How shaders/types.glsl decodes the rows of types.def; 0: not at all. */
static const uint8_t how[GGL_TYPE_LIMIT] = {
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)      [GGL_##NAME] = CODES,
#define QUANT_READ(id, NAME, name, block, size, form, text) [GGL_##NAME] = CODEBOOK,
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)
#include "ggl/types.def"
    [GGL_F32] = CODES,
    [GGL_F16] = CODES,
    [GGL_BF16] = CODES,
};

bool ggl_vk_decodes(ggl_type type) {
    return how[type] != 0;
}

bool ggl_vk_has_codebook(ggl_type type) {
    return how[type] == CODEBOOK;
}

/* Returns the bytes of the unit of ggl_vk_bind_part and ggl_vk_stride. */
static uint32_t unit(const ggl_operand *w) {
    const ggl_type_info *t = ggl_type_get(w->type);
    return t->block > 1 ? 1 : (uint32_t)t->size;
}

uint32_t ggl_vk_bind_weight(vk_emit *e, vk_call *c, const ggl_operand *w, size_t offset,
                            size_t size) {
    return ggl_vk_bind_part(e, c, w, offset, size, false) * unit(w);
}

uint32_t ggl_vk_weight_stride(const vk_emit *e, const ggl_operand *w, int d) {
    return ggl_vk_stride(e, w, d) * unit(w);
}

bool ggl_vk_weight_aligned(const vk_emit *e, const ggl_operand *w, uint32_t at) {
    uint32_t all = at;
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        all |= ggl_vk_weight_stride(e, w, d);
    const ggl_type_info *t = ggl_type_get(w->type); /* see types.glsl for the multiples of 4 */
    return (t->block == 1 || t->size % 4 == 0) && all % 4 == 0;
}

size_t ggl_vk_most_bound(const vk_backend *b) {
    return b->limits.max_range - 2 * (size_t)b->limits.offset_align;
}

/* --- codebooks -------------------------------------------------------------------------------- */

/* The codebooks, entries of 16 bits, in the order of shaders/codebooks.glsl. */
static const iq_grid *const grid[] = {&ggl_iq2_xxs_grid, &ggl_iq2_xs_grid, &ggl_iq2_s_grid,
                                      &ggl_iq3_xxs_grid, &ggl_iq3_s_grid,  &ggl_iq1_grid};

enum { ENTRIES = 256 + 512 + 1024 + 256 + 512 + 2048 };

ggl_status ggl_vk_codebooks_open(vk_backend *b, ggl_error *err) {
    uint16_t entry[ENTRIES];
    size_t n = 0;
    for (size_t i = 0; i < sizeof grid / sizeof *grid; n += (size_t)grid[i++]->n)
        memcpy(entry + n, grid[i]->code, (size_t)grid[i]->n * sizeof *entry);
    ggl_status st =
        ggl_vk_buffer_alloc(&b->base, GGL_REGION_WEIGHT, sizeof entry, NULL, &b->codebooks, err);
    return st == GGL_OK ? ggl_vk_buffer_upload(&b->base, b->codebooks, 0, entry, sizeof entry, err)
                        : st;
}

void ggl_vk_codebooks_close(vk_backend *b) {
    if (b->codebooks)
        ggl_vk_buffer_free(&b->base, b->codebooks);
}

void ggl_vk_bind_codebooks(vk_call *c) {
    c->bind[c->n_bind++] = (vk_binding){.region = VK_CODEBOOKS, .size = ENTRIES * sizeof(uint16_t)};
}
