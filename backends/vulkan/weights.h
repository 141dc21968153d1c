/* Binding of weights of all types, which shaders/types.glsl decodes. */
#ifndef VULKAN_WEIGHTS_H
#define VULKAN_WEIGHTS_H

#include "vulkan.h"

/* True if shaders can decode the type to f32. */
bool ggl_vk_decodes(ggl_type type);
/* True if the type's codes are looked up in codebooks, so that shaders must be built with
 * CODEBOOKS. */
bool ggl_vk_has_codebook(ggl_type type);
/* Upload the codebooks to the device, and free them. */
ggl_status ggl_vk_codebooks_open(vk_backend *b, ggl_error *err);
void ggl_vk_codebooks_close(vk_backend *b);
void ggl_vk_bind_codebooks(vk_call *c);
/* Like ggl_vk_bind_part, but returns bytes for all types. */
uint32_t ggl_vk_bind_weight(vk_emit *e, vk_call *c, const ggl_operand *w, size_t offset,
                            size_t size);
/* Returns the stride along d in bytes; 0 if the extent is 1. */
uint32_t ggl_vk_weight_stride(const vk_emit *e, const ggl_operand *w, int d);
/* True if all words that the shader reads are at multiples of 4, given the operand's offset
 * `at`. */
bool ggl_vk_weight_aligned(const vk_emit *e, const ggl_operand *w, uint32_t at);
/* Returns the most bytes of a binding, wherever it begins. */
size_t ggl_vk_most_bound(const vk_backend *b);

#endif
