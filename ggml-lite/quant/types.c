/* The table of element types, and the names of GGUF types that this library does not read. See
 * ggl/types.h. */
#include "ggl/types.h"

#include "ggl/internal/alloc.h"
#include "quant/quant.h"

/* Indices of the table's rows, in the order of types.def. */
enum {
#define TYPE(id, NAME, name) ROW_##NAME,
#include "ggl/types.def"
    N_ROWS
};

#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    static void ggl_##name##_to_float(const void *src, float *dst, int64_t n) {                    \
        quant_rows_to_float(ggl_##name##_unpack, block, size, src, dst, n);                        \
    }
#define QUANT_READ QUANT
#include "ggl/types.def"

#define ROW(NAME, name_, block_, size_, form_, text_, from_, unpack_)                              \
    [ROW_##NAME] = QUANT_TYPE_INFO(NAME, name_, block_, size_, form_, text_,                       \
                                   ggl_##name_##_to_float, from_, unpack_),
static const ggl_type_info rows[N_ROWS] = {
#define PLAIN(id, NAME, name, size, text)                                                          \
    ROW(NAME, name, 1, size, PLAIN, text, ggl_##name##_from_float, NULL)
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    ROW(NAME, name, block, size, form, text, ggl_##name##_from_float, ggl_##name##_unpack)
#define QUANT_READ(id, NAME, name, block, size, form, text)                                        \
    ROW(NAME, name, block, size, form, text, NULL, ggl_##name##_unpack)
#include "ggl/types.def"
#define WEIGHTED(NAME, name) [ROW_##NAME].from_float_weighted = ggl_##name##_from_float_weighted,
    QUANT_WEIGHTED(WEIGHTED)};

const ggl_type_info *ggl_type_get(int id) {
    static const ggl_type_info *const by_id[GGL_TYPE_LIMIT] = {
#define TYPE(id, NAME, name) [id] = &rows[ROW_##NAME],
#include "ggl/types.def"
    };
    return id >= 0 && id < GGL_TYPE_LIMIT ? by_id[id] : NULL;
}

/* True if a, in small letters, is b in any letters; in ASCII, whatever the locale. */
static bool same_name(const char *a, const char *b) {
    while (*a && *a == (*b >= 'A' && *b <= 'Z' ? *b - 'A' + 'a' : *b))
        a++, b++;
    return *a == *b;
}

const ggl_type_info *ggl_type_find(const char *name) {
    for (int k = 0; k < N_ROWS; k++)
        if (same_name(rows[k].name, name))
            return &rows[k];
    return NULL;
}

const ggl_type_info *ggl_type_at(int k) {
    return k >= 0 && k < N_ROWS ? &rows[k] : NULL;
}

/* The table has every number that GGUF has given to a tensor type (enum ggml_type of its
 * specification and, above 39, of ggml.h), including withdrawn ones. A name stays here when its
 * type gets a row in types.def. */
const char *ggl_type_foreign_name(int id) {
    static const char *const names[] = {
        [0] = "F32",         [1] = "F16",         [2] = "Q4_0",        [3] = "Q4_1",
        [4] = "Q4_2",        [5] = "Q4_3",        [6] = "Q5_0",        [7] = "Q5_1",
        [8] = "Q8_0",        [9] = "Q8_1",        [10] = "Q2_K",       [11] = "Q3_K",
        [12] = "Q4_K",       [13] = "Q5_K",       [14] = "Q6_K",       [15] = "Q8_K",
        [16] = "IQ2_XXS",    [17] = "IQ2_XS",     [18] = "IQ3_XXS",    [19] = "IQ1_S",
        [20] = "IQ4_NL",     [21] = "IQ3_S",      [22] = "IQ2_S",      [23] = "IQ4_XS",
        [24] = "I8",         [25] = "I16",        [26] = "I32",        [27] = "I64",
        [28] = "F64",        [29] = "IQ1_M",      [30] = "BF16",       [31] = "Q4_0_4_4",
        [32] = "Q4_0_4_8",   [33] = "Q4_0_8_8",   [34] = "TQ1_0",      [35] = "TQ2_0",
        [36] = "IQ4_NL_4_4", [37] = "IQ4_NL_4_8", [38] = "IQ4_NL_8_8", [39] = "MXFP4",
        [40] = "NVFP4",      [41] = "Q1_0",       [42] = "Q2_0",
    };
    if (id < 0 || (size_t)id >= sizeof names / sizeof *names || ggl_type_get(id))
        return NULL;
    return names[id];
}

size_t ggl_row_size(ggl_type type, int64_t n) {
    const ggl_type_info *t = ggl_type_get((int)type);
    return t ? (size_t)(n / t->block) * t->size : 0;
}

bool ggl_row_size_checked(ggl_type type, int64_t n, size_t *out) {
    const ggl_type_info *t = ggl_type_get((int)type);
    if (!t || n < 0 || n % t->block != 0 || (uint64_t)(n / t->block) > SIZE_MAX)
        return false;
    return ggl_size_mul((size_t)(n / t->block), t->size, out);
}
