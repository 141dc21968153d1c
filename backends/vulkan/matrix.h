/* Matrix units (VK_KHR_cooperative_matrix), and the tiles of products on them. */
#ifndef VULKAN_MATRIX_H
#define VULKAN_MATRIX_H

#include "vulkan.h"

/* Chooses the largest matrices that suit linear_matrix.comp from a device's list: f16 by f16, added up
 * as f32, in a subgroup. False: there are none. */
bool ggl_vk_choose_matrix(const VkCooperativeMatrixPropertiesKHR *list, uint32_t n, vk_matrix *out);
/* The same, with the list of the device, whose extension is there. False also if the device's
 * workgroups are too small for any tile. */
bool ggl_vk_find_matrix(const vk_backend *b, vk_matrix *out);

/* A tile of linear_matrix.comp: 64 rows by so many columns. */
typedef struct vk_matrix_tile {
    uint32_t cols;
    uint32_t down; /* subgroups, of the four, that are one below the other */
} vk_matrix_tile;

enum { VK_MATRIX_SUBGROUPS = 4 };

/* Returns the tile for products of n columns of a matrix: the narrowest that takes all columns, or
 * one that few columns stay empty in. */
vk_matrix_tile ggl_vk_matrix_tile(const vk_limits *l, int64_t n);

#endif
