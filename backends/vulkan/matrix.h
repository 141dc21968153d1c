/* Matrix units (VK_KHR_cooperative_matrix), and the tiles of products on them. */
#ifndef VULKAN_MATRIX_H
#define VULKAN_MATRIX_H

#include "vulkan.h"

/* Chooses the largest matrices that suit linear_matrix.comp from a device's list: f16 by f16, added up
 * as f32, in a subgroup. False if none. */
bool ggl_vk_choose_matrix(const VkCooperativeMatrixPropertiesKHR *list, uint32_t n, vk_matrix *out);
/* The same, with the list of the device, whose extension is there. *found is false also if the device's
 * workgroups are too small for any tile. */
ggl_status ggl_vk_find_matrix(const vk_backend *b, VkInstance instance, VkPhysicalDevice physical,
                              vk_matrix *out, bool *found, ggl_error *err);

/* A tile of linear_matrix.comp: 64 rows by this number of columns. */
typedef struct vk_matrix_tile {
    uint32_t cols;
    uint32_t down; /* subgroups, of the four, that are one below the other */
} vk_matrix_tile;

enum {
    VK_MATRIX_SUBGROUPS = 4,
    VK_HALVES_UNIT = 16 /* bytes; a column of f16 is a multiple of it */
};

/* Returns the tile for products of n columns of a matrix: the narrowest that takes all columns, or
 * one that few columns stay empty in. */
vk_matrix_tile ggl_vk_matrix_tile(const vk_limits *l, int64_t n);

/* Returns the bytes of a column of n_in numbers as f16, with its power (linear_halves.comp). */
size_t ggl_vk_halves_size(int64_t n_in);
/* Rounds the columns of x, of n_in numbers, to f16, into the binding: one after another, with dimension 1
 * fastest. codes: x was rounded to bytes. by_runs: in the order that linear_matrix.comp has for runs of 32 weights. */
ggl_status ggl_vk_emit_halves(vk_emit *e, const ggl_operand *x, int64_t n_in, bool codes,
                              bool by_runs, const vk_binding *to, ggl_error *err);

#endif
