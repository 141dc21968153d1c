/* The types of elements that a plan names, each an object of its own, so that a program has only those that it uses. */
#include "quant/quant.h"
#include "step.h"

static const struct ggl_type_info *const *used; /* of the plan that runs */

void small_use_types(const struct ggl_type_info *const *types) {
    used = types;
}

const ggl_type_info *ggl_type_get(int id) {
    for (const struct ggl_type_info *const *t = used; *t; t++)
        if ((int)(*t)->type == id)
            return *t;
    return NULL;
}

size_t ggl_row_size(ggl_type type, int64_t n) {
    const ggl_type_info *t = ggl_type_get((int)type);
    return t->row_meta + (size_t)(n / t->block) * t->size;
}

float ggl_row_scale(const ggl_type_info *t, const void *row) {
    return quant_row_scale(t->row_meta, row);
}

/* Only types in which stores keep rows are encoded. */
#define ENCODED_f32     ggl_f32_from_float
#define ENCODED_f16     ggl_f16_from_float
#define ENCODED_bf16    ggl_bf16_from_float
#define ENCODED_f8_e4m3 NULL
#define ENCODED_i32     NULL
#define ENCODED_i64     NULL
#define ENCODED_f64     NULL

#define PLAIN(id, NAME, name, size, text)                                                          \
    extern const ggl_type_info small_type_##name;                                                  \
    const ggl_type_info small_type_##name = QUANT_TYPE_INFO(                                       \
        NAME, name, 1, size, 0, PLAIN, "", ggl_##name##_to_float, ENCODED_##name, NULL);
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    static void name##_to_float(const void *src, float *dst, int64_t n) {                          \
        quant_rows_to_float(ggl_##name##_unpack, block, size, 0, src, dst, n);                     \
    }                                                                                              \
    extern const ggl_type_info small_type_##name;                                                  \
    const ggl_type_info small_type_##name = QUANT_TYPE_INFO(                                       \
        NAME, name, block, size, 0, form, "", name##_to_float,                                     \
        (id) == GGL_Q8_0 || (id) == GGL_Q4_0 ? ENCODED_QUANT(name) : NULL, ggl_##name##_unpack);
#define ENCODED_QUANT(name) ggl_##name##_from_float
#define QUANT_READ(id, NAME, name, block, size, form, text)                                        \
    QUANT_FOREIGN(id, NAME, name, block, size, 0, form, text)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)                                \
    static void name##_to_float(const void *src, float *dst, int64_t n) {                          \
        quant_rows_to_float(ggl_##name##_unpack, block, size, row, src, dst, n);                   \
    }                                                                                              \
    extern const ggl_type_info small_type_##name;                                                  \
    const ggl_type_info small_type_##name = QUANT_TYPE_INFO(                                       \
        NAME, name, block, size, row, form, "", name##_to_float, NULL, ggl_##name##_unpack);
#include "ggl/types.def"
