/* Weights of all types, as shaders/types.glsl decodes them: operators that read them bind them
 * here. */
#ifndef VULKAN_WEIGHTS_H
#define VULKAN_WEIGHTS_H

#include "vulkan.h"

/* Whether a type's numbers can be decoded to f32. */
bool ggl_vk_decodes(ggl_type type);
/* The type's codes are looked up: it needs the shader's variant with CODEBOOKS. */
bool ggl_vk_has_codebook(ggl_type type);
/* The codebooks, in memory of the device. */
ggl_status ggl_vk_codebooks_open(vk_backend *b, ggl_error *err);
void ggl_vk_codebooks_close(vk_backend *b);
void ggl_vk_bind_codebooks(vk_call *c);
/* As ggl_vk_bind_part; the address is in bytes for every type. */
uint32_t ggl_vk_bind_weight(vk_emit *e, vk_call *c, const ggl_operand *w, size_t offset,
                            size_t size);
/* From one to the next along d, in bytes; 0 where there is but one. */
uint32_t ggl_vk_weight_stride(const vk_emit *e, const ggl_operand *w, int d);
/* Whether all words that the shader reads lie at multiples of 4, if the operand does at `at`. */
bool ggl_vk_weight_aligned(const vk_emit *e, const ggl_operand *w, uint32_t at);
/* Bytes that one binding can have, wherever it begins. */
size_t ggl_vk_most_bound(const vk_emit *e);

#endif
