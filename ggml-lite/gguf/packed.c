#include "packed.h"

#include <string.h>

#include "../quant/blocks.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/types.h"

/* Converts 128 elements, of which 32 * g + j has bits 6 - 2 * g and up of from[j], to two blocks. */
static void convert_block(const uint8_t *from, struct block_iq2_bn *to) {
    for (int e = 0; e < GGUF_I2_S_BLOCK; e++) {
        const int code = from[e % 32] >> (6 - 2 * (e / 32)) & 3, i = e % 64;
        to[e / 64].b[i % 16] |= (uint8_t)(code << 2 * (i / 16));
    }
}

ggl_status ggl_gguf_i2_s_convert(gguf_head *h, ggl_gguf_tensor *t, ggl_error *err) {
    if (!t->data || t->size == 0)
        return GGL_OK;
    const size_t row = ggl_row_size(t->type, t->ne[0]), n_rows = t->size / row,
                 row_in_file = (size_t)(t->ne[0] / 4);
    uint8_t *made = ggl_calloc(t->size, 1);
    if (!made || !ggl_grow(&h->made, &h->cap_made, h->n_made + 1, sizeof *h->made)) {
        ggl_free(made);
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu bytes of tensor '%s'", t->size,
                        ggl_gguf_show(t->name).s);
    }
    h->made[h->n_made++] = made;
    const uint8_t *from = t->data, *scale = from + n_rows * row_in_file;
    uint8_t *to = made;
    for (size_t r = 0; r < n_rows; r++, from += row_in_file, to += row) {
        memcpy(to, scale, sizeof(float));
        for (size_t b = 0; b < row_in_file / 32; b++)
            convert_block(from + 32 * b,
                          (struct block_iq2_bn *)(void *)(to + sizeof(float)) + 2 * b);
    }
    t->data = made;
    return GGL_OK;
}
