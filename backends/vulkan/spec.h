/* The specialization constants of each shader, a union in vk_call. Made from shaders/ by
 * `tests/vulkan/push.py . --write`, which also compares them with the SPIR-V; do not edit. */
#ifndef VULKAN_SPEC_H
#define VULKAN_SPEC_H

#include <stdint.h>

enum { VK_MAX_SPEC = 17 };

typedef struct vk_spec_attend {
    uint32_t local;
    uint32_t type_k;
    uint32_t type_v;
    uint32_t q;
    uint32_t e;
    uint32_t d;
    uint32_t options;
    uint32_t ahead;
    uint32_t bias_most;
    uint32_t bias_step;
    uint32_t rel_most;
    uint32_t rel_rows;
    uint32_t rel_k_step;
    uint32_t rel_k_head;
    uint32_t rel_q_step;
    uint32_t rel_q_head;
} vk_spec_attend;
_Static_assert(sizeof(vk_spec_attend) == 64, "as in attend.comp");

typedef struct vk_spec_attend_distance {
    uint32_t unused_0;
    uint32_t unused_1;
    uint32_t unused_2;
    uint32_t unused_3;
    uint32_t unused_4;
    uint32_t unused_5;
    uint32_t unused_6;
    uint32_t unused_7;
    uint32_t bias_most;
    uint32_t bias_step;
    uint32_t rel_most;
    uint32_t rel_rows;
    uint32_t rel_k_step;
    uint32_t rel_k_head;
    uint32_t rel_q_step;
    uint32_t rel_q_head;
} vk_spec_attend_distance;
_Static_assert(sizeof(vk_spec_attend_distance) == 64, "as in attend_distance.glsl");

typedef struct vk_spec_attend_matrix {
    uint32_t local;
    uint32_t type_k;
    uint32_t type_v;
    uint32_t e;
    uint32_t d;
    uint32_t options;
    uint32_t m;
    uint32_t n;
    uint32_t k;
    uint32_t exact_half;
    uint32_t own;
} vk_spec_attend_matrix;
_Static_assert(sizeof(vk_spec_attend_matrix) == 44, "as in attend_matrix.comp");

typedef struct vk_spec_attend_merge {
    uint32_t local;
    uint32_t sinks;
    uint32_t e;
    uint32_t round;
} vk_spec_attend_merge;
_Static_assert(sizeof(vk_spec_attend_merge) == 16, "as in attend_merge.comp");

typedef struct vk_spec_attend_tiles {
    uint32_t local;
    uint32_t type_k;
    uint32_t type_v;
    uint32_t e;
    uint32_t d;
    uint32_t options;
    uint32_t unused_6;
    uint32_t unused_7;
    uint32_t bias_most;
    uint32_t bias_step;
    uint32_t rel_most;
    uint32_t rel_rows;
    uint32_t rel_k_step;
    uint32_t rel_k_head;
    uint32_t rel_q_step;
    uint32_t rel_q_head;
} vk_spec_attend_tiles;
_Static_assert(sizeof(vk_spec_attend_tiles) == 64, "as in attend_tiles.comp");

typedef struct vk_spec_cache {
    uint32_t local;
    uint32_t type_k;
    uint32_t type_v;
    uint32_t ring;
    uint32_t half;
    uint32_t doubles;
    uint32_t part_0;
    uint32_t part_1;
    uint32_t part_2;
} vk_spec_cache;
_Static_assert(sizeof(vk_spec_cache) == 36, "as in cache.comp");

typedef struct vk_spec_unary {
    uint32_t local;
    uint32_t kind;
    uint32_t flat;
} vk_spec_unary;
_Static_assert(sizeof(vk_spec_unary) == 12, "as in elementwise.comp");

typedef struct vk_spec_binary {
    uint32_t local;
    uint32_t kind;
    uint32_t flat;
} vk_spec_binary;
_Static_assert(sizeof(vk_spec_binary) == 12, "as in elementwise.comp");

typedef struct vk_spec_gated {
    uint32_t local;
    uint32_t kind;
    uint32_t flat;
    uint32_t round;
    uint32_t store;
} vk_spec_gated;
_Static_assert(sizeof(vk_spec_gated) == 20, "as in elementwise.comp");

typedef struct vk_spec_where {
    uint32_t local;
    uint32_t kind;
    uint32_t flat;
} vk_spec_where;
_Static_assert(sizeof(vk_spec_where) == 12, "as in elementwise.comp");

typedef struct vk_spec_linear {
    uint32_t local;
    uint32_t type;
    uint32_t aligned;
    uint32_t bias;
    uint32_t index;
    uint32_t x4;
    uint32_t unused_6;
    uint32_t unused_7;
    uint32_t packed_weights;
    uint32_t aligned_16;
    uint32_t exact_half;
    uint32_t unused_11;
    uint32_t unused_12;
    uint32_t unused_13;
    uint32_t unused_14;
    uint32_t members;
} vk_spec_linear;
_Static_assert(sizeof(vk_spec_linear) == 64, "as in linear.glsl");

typedef struct vk_spec_linear_halves {
    uint32_t local;
    uint32_t by_runs;
} vk_spec_linear_halves;
_Static_assert(sizeof(vk_spec_linear_halves) == 8, "as in linear_halves.comp");

typedef struct vk_spec_linear_mat {
    uint32_t local;
    uint32_t type;
    uint32_t aligned;
    uint32_t bias;
    uint32_t index;
    uint32_t x4;
    uint32_t cols;
    uint32_t unused_7;
    uint32_t packed_weights;
    uint32_t aligned_16;
    uint32_t exact_half;
    uint32_t slices;
    uint32_t unused_12;
    uint32_t unused_13;
    uint32_t unused_14;
    uint32_t members;
} vk_spec_linear_mat;
_Static_assert(sizeof(vk_spec_linear_mat) == 64, "as in linear_mat.comp");

typedef struct vk_spec_linear_matrix {
    uint32_t local;
    uint32_t type;
    uint32_t aligned;
    uint32_t bias;
    uint32_t index;
    uint32_t x4;
    uint32_t tile;
    uint32_t subgroups_down;
    uint32_t packed_weights;
    uint32_t aligned_16;
    uint32_t exact_half;
    uint32_t slices;
    uint32_t m;
    uint32_t n;
    uint32_t k;
    uint32_t members;
} vk_spec_linear_matrix;
_Static_assert(sizeof(vk_spec_linear_matrix) == 64, "as in linear_matrix.comp");

typedef struct vk_spec_linear_merge {
    uint32_t local;
    uint32_t slices;
    uint32_t bias;
} vk_spec_linear_merge;
_Static_assert(sizeof(vk_spec_linear_merge) == 12, "as in linear_merge.comp");

typedef struct vk_spec_linear_sort {
    uint32_t local;
    uint32_t tile;
} vk_spec_linear_sort;
_Static_assert(sizeof(vk_spec_linear_sort) == 8, "as in linear_sort.comp");

typedef struct vk_spec_linear_tiles {
    uint32_t unused_0;
    uint32_t unused_1;
    uint32_t unused_2;
    uint32_t unused_3;
    uint32_t unused_4;
    uint32_t unused_5;
    uint32_t unused_6;
    uint32_t unused_7;
    uint32_t unused_8;
    uint32_t unused_9;
    uint32_t unused_10;
    uint32_t slices;
} vk_spec_linear_tiles;
_Static_assert(sizeof(vk_spec_linear_tiles) == 48, "as in linear_tiles.glsl");

typedef struct vk_spec_linear_vec {
    uint32_t local;
    uint32_t type;
    uint32_t aligned;
    uint32_t bias;
    uint32_t index;
    uint32_t x4;
    uint32_t cols;
    uint32_t lanes;
    uint32_t packed_weights;
    uint32_t aligned_16;
    uint32_t exact_half;
    uint32_t rows;
    uint32_t at_once;
    uint32_t kind;
    uint32_t gated;
    uint32_t members;
    uint32_t then;
} vk_spec_linear_vec;
_Static_assert(sizeof(vk_spec_linear_vec) == 68, "as in linear_vec.comp");

typedef struct vk_spec_move {
    uint32_t local;
    uint32_t from;
} vk_spec_move;
_Static_assert(sizeof(vk_spec_move) == 8, "as in move.comp");

typedef struct vk_spec_pick {
    uint32_t local;
    uint32_t type;
    uint32_t aligned;
} vk_spec_pick;
_Static_assert(sizeof(vk_spec_pick) == 12, "as in pick.comp");

typedef struct vk_spec_quantize {
    uint32_t local;
} vk_spec_quantize;
_Static_assert(sizeof(vk_spec_quantize) == 4, "as in quantize.comp");

typedef struct vk_spec_rank {
    uint32_t local;
} vk_spec_rank;
_Static_assert(sizeof(vk_spec_rank) == 4, "as in rank.comp");

typedef struct vk_spec_recent {
    uint32_t local;
} vk_spec_recent;
_Static_assert(sizeof(vk_spec_recent) == 4, "as in recent.comp");

typedef struct vk_spec_recur {
    uint32_t local;
    uint32_t scan;
    uint32_t by_element;
    uint32_t group;
} vk_spec_recur;
_Static_assert(sizeof(vk_spec_recur) == 16, "as in recur.comp");

typedef struct vk_spec_reduce {
    uint32_t local;
    uint32_t kind;
} vk_spec_reduce;
_Static_assert(sizeof(vk_spec_reduce) == 8, "as in reduce.comp");

typedef struct vk_spec_rope {
    uint32_t local;
    uint32_t half;
    uint32_t doubles;
} vk_spec_rope;
_Static_assert(sizeof(vk_spec_rope) == 12, "as in rope.comp");

typedef struct vk_spec_route {
    uint32_t local;
    uint32_t first;
    uint32_t second;
    uint32_t bias;
    uint32_t table;
    uint32_t shares;
    uint32_t sum;
    uint32_t least;
    uint32_t times;
} vk_spec_route;
_Static_assert(sizeof(vk_spec_route) == 36, "as in route.comp");

typedef struct vk_spec_rows {
    uint32_t local;
    uint32_t kind;
    uint32_t addend;
    uint32_t keep;
    uint32_t weight;
    uint32_t round;
    uint32_t store;
} vk_spec_rows;
_Static_assert(sizeof(vk_spec_rows) == 28, "as in rows.comp");

typedef struct vk_spec_slots {
    uint32_t local;
} vk_spec_slots;
_Static_assert(sizeof(vk_spec_slots) == 4, "as in slots.comp");

typedef struct vk_spec_state {
    uint32_t local;
} vk_spec_state;
_Static_assert(sizeof(vk_spec_state) == 4, "as in state.comp");

typedef struct vk_spec_topk {
    uint32_t local;
} vk_spec_topk;
_Static_assert(sizeof(vk_spec_topk) == 4, "as in topk.comp");

typedef struct vk_spec_weighted {
    uint32_t local;
    uint32_t addend;
    uint32_t unused_2;
    uint32_t unused_3;
    uint32_t unused_4;
    uint32_t unused_5;
    uint32_t unused_6;
    uint32_t unused_7;
    uint32_t unused_8;
    uint32_t unused_9;
    uint32_t unused_10;
    uint32_t unused_11;
    uint32_t unused_12;
    uint32_t unused_13;
    uint32_t unused_14;
    uint32_t unused_15;
    uint32_t then;
} vk_spec_weighted;
_Static_assert(sizeof(vk_spec_weighted) == 68, "as in weighted.comp");

typedef union vk_spec {
    uint32_t word[VK_MAX_SPEC];
    vk_spec_attend attend;
    vk_spec_attend_distance attend_distance;
    vk_spec_attend_matrix attend_matrix;
    vk_spec_attend_merge attend_merge;
    vk_spec_attend_tiles attend_tiles;
    vk_spec_cache cache;
    vk_spec_unary unary;
    vk_spec_binary binary;
    vk_spec_gated gated;
    vk_spec_where where;
    vk_spec_linear linear;
    vk_spec_linear_halves linear_halves;
    vk_spec_linear_mat linear_mat;
    vk_spec_linear_matrix linear_matrix;
    vk_spec_linear_merge linear_merge;
    vk_spec_linear_sort linear_sort;
    vk_spec_linear_tiles linear_tiles;
    vk_spec_linear_vec linear_vec;
    vk_spec_move move;
    vk_spec_pick pick;
    vk_spec_quantize quantize;
    vk_spec_rank rank;
    vk_spec_recent recent;
    vk_spec_recur recur;
    vk_spec_reduce reduce;
    vk_spec_rope rope;
    vk_spec_route route;
    vk_spec_rows rows;
    vk_spec_slots slots;
    vk_spec_state state;
    vk_spec_topk topk;
    vk_spec_weighted weighted;
} vk_spec;

#endif
