/* Weights in the layout of shaders/packed.def, which products read in place of the file's. */
#ifndef VULKAN_REPACK_H
#define VULKAN_REPACK_H

#include "vulkan.h"

enum { VK_TILE_ROWS = 4 };

/* Return the bytes of a tile of VK_TILE_ROWS rows with k elements, and of a matrix of n_rows such
 * rows. The type must have the layout. */
size_t ggl_vk_tile_size(ggl_type type, int64_t k);
size_t ggl_vk_packed_size(ggl_type type, int64_t k, int64_t n_rows);

/* ggl_backend_vtable.repack_size and .repack */
size_t ggl_vk_repack_size(const ggl_backend *b, const ggl_tensor *weight);
ggl_status ggl_vk_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *weight,
                         ggl_error *err);
/* The layout's name; changes whenever the bytes change. */
#define VK_REPACK_LAYOUT "tiles4 1"

#endif
