/* The push constants of each shader, a union in vk_call. Made from shaders/ by
 * `tests/vulkan/push.py . --write`, which also compares them with the SPIR-V; do not edit. */
#ifndef VULKAN_PUSH_H
#define VULKAN_PUSH_H

#include <stdint.h>

typedef struct vk_push_attend {
    uint32_t n_heads;
    uint32_t n_store_heads;
    uint32_t n_batch;
    uint32_t q_at;
    uint32_t q_step[2];
    uint32_t y_at;
    uint32_t y_step[2];
    uint32_t sinks_at;
    uint32_t sinks_step[2];
    uint32_t alibi_at;
    uint32_t alibi_step[2];
    uint32_t pos_at;
    uint32_t pos_step;
    uint32_t slot_at;
    uint32_t slot_step;
    uint32_t page_at;
    uint32_t page_step;
    uint32_t k_at;
    uint32_t v_at;
    uint32_t n_pos;
    uint32_t n_slots;
    int32_t window;
    float scale;
    float cap;
    uint32_t n_spans;
    uint32_t sums_at;
    uint32_t begins;
    uint32_t rel_row_at;
} vk_push_attend;
_Static_assert(sizeof(vk_push_attend) == 128, "as in attend.glsl");

typedef struct vk_push_attend_merge {
    uint32_t n_heads;
    uint32_t n_batch;
    uint32_t n_spans;
    uint32_t partial_at;
    uint32_t sums_at;
    uint32_t sinks_at;
    uint32_t sinks_step[2];
    uint32_t y_at;
    uint32_t y_step[2];
} vk_push_attend_merge;
_Static_assert(sizeof(vk_push_attend_merge) == 44, "as in attend_merge.comp");

typedef struct vk_push_cache {
    uint32_t n_batch;
    uint32_t pos_at;
    uint32_t pos_step;
    uint32_t slot_at;
    uint32_t slot_step;
    uint32_t page_at;
    uint32_t page_step;
    uint32_t n_slots;
    uint32_t n_pos;
    uint32_t n_pairs;
    uint32_t freq_at;
    float mag;
    struct {
        uint32_t n;
        uint32_t n_heads;
        uint32_t x_at;
        uint32_t x_step[2];
        uint32_t to_at;
    } part[3];
} vk_push_cache;
_Static_assert(sizeof(vk_push_cache) == 120, "as in cache.comp");

typedef struct vk_push_unary {
    uint32_t count;
    uint32_t y_at;
    uint32_t ne[3];
    struct {
        uint32_t at;
        uint32_t stride[4];
    } source[1];
} vk_push_unary;
_Static_assert(sizeof(vk_push_unary) == 40, "as in elementwise.comp");

typedef struct vk_push_binary {
    uint32_t count;
    uint32_t y_at;
    uint32_t ne[3];
    struct {
        uint32_t at;
        uint32_t stride[4];
    } source[2];
} vk_push_binary;
_Static_assert(sizeof(vk_push_binary) == 60, "as in elementwise.comp");

typedef struct vk_push_gated {
    uint32_t count;
    uint32_t y_at;
    uint32_t ne[3];
    struct {
        uint32_t at;
        uint32_t stride[4];
    } source[2];
    uint32_t blocks_at;
} vk_push_gated;
_Static_assert(sizeof(vk_push_gated) == 64, "as in elementwise.comp");

typedef struct vk_push_where {
    uint32_t count;
    uint32_t y_at;
    uint32_t ne[3];
    struct {
        uint32_t at;
        uint32_t stride[4];
    } source[3];
} vk_push_where;
_Static_assert(sizeof(vk_push_where) == 80, "as in elementwise.comp");

typedef struct vk_push_linear {
    uint32_t n_in;
    uint32_t first_row;
    uint32_t w_row;
    uint32_t column[3];
    uint32_t x_at;
    uint32_t x_step[3];
    uint32_t of_first[7];
    uint32_t of_others[15];
} vk_push_linear;
_Static_assert(sizeof(vk_push_linear) == 128, "as in linear.glsl");

typedef struct vk_push_linear_halves {
    uint32_t n_in;
    uint32_t n[3];
    uint32_t x_at;
    uint32_t x_step[3];
    uint32_t halves_at;
    uint32_t pitch;
} vk_push_linear_halves;
_Static_assert(sizeof(vk_push_linear_halves) == 40, "as in linear_halves.comp");

typedef struct vk_push_linear_merge {
    uint32_t n_rows;
    uint32_t n[3];
    uint32_t slices_at;
    uint32_t slice;
    uint32_t y_at;
    uint32_t y_step[3];
    uint32_t bias_at;
    uint32_t bias_step[3];
} vk_push_linear_merge;
_Static_assert(sizeof(vk_push_linear_merge) == 56, "as in linear_merge.comp");

typedef struct vk_push_linear_sort {
    uint32_t index_at;
    uint32_t index_step[2];
    uint32_t column[3];
    uint32_t n_matrices;
    uint32_t n_tiles;
    uint32_t lists_at;
} vk_push_linear_sort;
_Static_assert(sizeof(vk_push_linear_sort) == 36, "as in linear_sort.comp");

typedef struct vk_push_move {
    uint32_t count;
    uint32_t ne[3];
    uint32_t y_at;
    uint32_t y_stride[4];
    uint32_t x_at;
    uint32_t x_stride[4];
} vk_push_move;
_Static_assert(sizeof(vk_push_move) == 56, "as in move.comp");

typedef struct vk_push_pick {
    uint32_t n;
    uint32_t rows[4];
    uint32_t table_step[4];
    uint32_t index_step[2];
    uint32_t y_step[4];
    uint32_t table_at;
    uint32_t index_at;
    uint32_t y_at;
    uint32_t n_table;
    uint32_t first;
    uint32_t n_bound;
    uint32_t n_units;
} vk_push_pick;
_Static_assert(sizeof(vk_push_pick) == 88, "as in pick.comp");

typedef struct vk_push_quantize {
    uint32_t in_row;
    uint32_t rows[3];
    uint32_t x_at;
    uint32_t x_step[3];
    uint32_t blocks_at;
} vk_push_quantize;
_Static_assert(sizeof(vk_push_quantize) == 36, "as in quantize.comp");

typedef struct vk_push_rank {
    uint32_t count;
    uint32_t ne[3];
    uint32_t y_at;
    uint32_t x_at;
    uint32_t x_stride[4];
} vk_push_rank;
_Static_assert(sizeof(vk_push_rank) == 40, "as in rank.comp");

typedef struct vk_push_recent {
    uint32_t n;
    uint32_t k;
    uint32_t n_batch;
    uint32_t x_at;
    uint32_t x_step;
    uint32_t y_at;
    uint32_t y_step[2];
    uint32_t slot_at;
    uint32_t slot_step;
    uint32_t store_at;
    uint32_t slot_size;
    uint32_t n_slots;
} vk_push_recent;
_Static_assert(sizeof(vk_push_recent) == 52, "as in recent.comp");

typedef struct vk_push_recur {
    uint32_t n;
    uint32_t n_rows;
    uint32_t n_heads;
    uint32_t n_batch;
    uint32_t into_at[3];
    uint32_t out_at[3];
    uint32_t to_at[3];
    uint32_t first_at[3];
    uint32_t second_at[3];
    uint32_t y_at[3];
    uint32_t slot_at;
    uint32_t slot_step;
    uint32_t store_at;
    uint32_t slot_size;
    uint32_t n_slots;
    float divisor;
} vk_push_recur;
_Static_assert(sizeof(vk_push_recur) == 112, "as in recur.comp");

typedef struct vk_push_reduce {
    uint32_t count;
    uint32_t ne[3];
    uint32_t y_at;
    uint32_t x_at;
    uint32_t x_stride[4];
    uint32_t terms;
    uint32_t step;
} vk_push_reduce;
_Static_assert(sizeof(vk_push_reduce) == 48, "as in reduce.comp");

typedef struct vk_push_rope {
    uint32_t n;
    uint32_t n_pairs;
    uint32_t rows[2];
    uint32_t n_batch;
    uint32_t x_at;
    uint32_t x_step[3];
    uint32_t y_at;
    uint32_t y_step[3];
    uint32_t freq_at;
    uint32_t pos_at;
    uint32_t pos_step;
    float mag;
} vk_push_rope;
_Static_assert(sizeof(vk_push_rope) == 68, "as in rope.comp");

typedef struct vk_push_route {
    uint32_t rows;
    uint32_t n;
    uint32_t k;
    struct {
        uint32_t at;
        uint32_t stride[2];
    } to_e;
    struct {
        uint32_t at;
        uint32_t stride[2];
    } to_w;
    struct {
        uint32_t at;
        uint32_t stride[2];
    } of_x;
    struct {
        uint32_t at;
        uint32_t stride[2];
    } of_bias;
    struct {
        uint32_t at;
        uint32_t stride[2];
    } of_table;
    struct {
        uint32_t at;
        uint32_t stride[2];
    } of_least;
    struct {
        uint32_t at;
        uint32_t stride[2];
    } of_times;
} vk_push_route;
_Static_assert(sizeof(vk_push_route) == 96, "as in route.comp");

typedef struct vk_push_rows {
    uint32_t rows;
    uint32_t n;
    uint32_t ne[2];
    uint32_t y_at;
    uint32_t x_at;
    uint32_t x_stride[4];
    float eps;
    uint32_t addend_at;
    uint32_t addend_stride[4];
    uint32_t sums_at;
    uint32_t weight_at;
    uint32_t weight_stride[4];
    uint32_t blocks_at;
} vk_push_rows;
_Static_assert(sizeof(vk_push_rows) == 92, "as in rows.comp");

typedef struct vk_push_slots {
    uint32_t n;
    uint32_t from_at;
    uint32_t to_at;
} vk_push_slots;
_Static_assert(sizeof(vk_push_slots) == 12, "as in slots.comp");

typedef struct vk_push_state {
    uint32_t n[3];
    uint32_t x_at;
    uint32_t x_step[3];
    uint32_t slot_at;
    uint32_t store_at;
    uint32_t slot_size;
    uint32_t n_slots;
} vk_push_state;
_Static_assert(sizeof(vk_push_state) == 44, "as in state.comp");

typedef struct vk_push_topk {
    uint32_t rows;
    uint32_t n;
    uint32_t k;
    uint32_t y_at;
    uint32_t y_batch;
    uint32_t x_at;
    uint32_t x_batch;
} vk_push_topk;
_Static_assert(sizeof(vk_push_topk) == 28, "as in topk.comp");

typedef struct vk_push_weighted {
    uint32_t n;
    uint32_t rows;
    uint32_t y_at;
    uint32_t terms;
    uint32_t x_at;
    uint32_t x_stride[3];
    uint32_t w_at;
    uint32_t w_stride[2];
    uint32_t addend_at;
    uint32_t addend_stride[2];
    float eps;
    uint32_t norm_weight_at;
    uint32_t normed_at;
    uint32_t blocks_at;
} vk_push_weighted;
_Static_assert(sizeof(vk_push_weighted) == 72, "as in weighted.comp");

typedef union vk_push {
    vk_push_attend attend;
    vk_push_attend_merge attend_merge;
    vk_push_cache cache;
    vk_push_unary unary;
    vk_push_binary binary;
    vk_push_gated gated;
    vk_push_where where;
    vk_push_linear linear;
    vk_push_linear_halves linear_halves;
    vk_push_linear_merge linear_merge;
    vk_push_linear_sort linear_sort;
    vk_push_move move;
    vk_push_pick pick;
    vk_push_quantize quantize;
    vk_push_rank rank;
    vk_push_recent recent;
    vk_push_recur recur;
    vk_push_reduce reduce;
    vk_push_rope rope;
    vk_push_route route;
    vk_push_rows rows;
    vk_push_slots slots;
    vk_push_state state;
    vk_push_topk topk;
    vk_push_weighted weighted;
} vk_push;

#endif
