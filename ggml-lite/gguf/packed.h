/* I2_S, a type of GGUF files (36, of microsoft/BitNet) that is no row of types.def, because a tensor has one scale behind all of its
 * data. When a file is opened, such a tensor becomes one of GGL_IQ2_BN with equal numbers, whose rows all have this scale. Private
 * to ggml-lite/gguf. */
#ifndef GGL_GGUF_PACKED_H
#define GGL_GGUF_PACKED_H

#include "gguf_file.h"

enum {
    GGUF_I2_S = 36,
    GGUF_I2_S_BLOCK = 128, /* elements */
    GGUF_I2_S_TAIL = 32    /* bytes behind the last block: the scale, f32, and padding */
};

/* Replaces the tensor's data by what it is as GGL_IQ2_BN, which h owns. Nothing is done if it has no data. */
ggl_status ggl_gguf_i2_s_convert(gguf_head *h, ggl_gguf_tensor *t, ggl_error *err);

#endif
