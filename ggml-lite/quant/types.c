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
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)                                \
    static void ggl_##name##_to_float(const void *src, float *dst, int64_t n) {                    \
        quant_rows_to_float(ggl_##name##_unpack, block, size, row, src, dst, n);                   \
    }
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    QUANT_FOREIGN(id, NAME, name, block, size, 0, form, text)
#define QUANT_READ QUANT
#include "ggl/types.def"

#define ROW(NAME, name_, block_, size_, row_, form_, text_, from_, unpack_)                        \
    [ROW_##NAME] = QUANT_TYPE_INFO(NAME, name_, block_, size_, row_, form_, text_,                 \
                                   ggl_##name_##_to_float, from_, unpack_),
static const ggl_type_info rows[N_ROWS] = {
#define PLAIN(id, NAME, name, size, text)                                                          \
    ROW(NAME, name, 1, size, 0, PLAIN, text, ggl_##name##_from_float, NULL)
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    ROW(NAME, name, block, size, 0, form, text, ggl_##name##_from_float, ggl_##name##_unpack)
#define QUANT_READ(id, NAME, name, block, size, form, text)                                        \
    ROW(NAME, name, block, size, 0, form, text, NULL, ggl_##name##_unpack)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)                                \
    ROW(NAME, name, block, size, row, form, text, NULL, ggl_##name##_unpack)
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
 * specification and, above 39, of ggml.h), including withdrawn ones, and the numbers of ik_llama.cpp
 * and PrismML's llama.cpp from 133 on. A name stays here when its type gets a row in types.def. */
const char *ggl_type_foreign_name(int id) {
    static const char *const names[] = {
        [0] = "F32",          [1] = "F16",         [2] = "Q4_0",         [3] = "Q4_1",
        [4] = "Q4_2",         [5] = "Q4_3",        [6] = "Q5_0",         [7] = "Q5_1",
        [8] = "Q8_0",         [9] = "Q8_1",        [10] = "Q2_K",        [11] = "Q3_K",
        [12] = "Q4_K",        [13] = "Q5_K",       [14] = "Q6_K",        [15] = "Q8_K",
        [16] = "IQ2_XXS",     [17] = "IQ2_XS",     [18] = "IQ3_XXS",     [19] = "IQ1_S",
        [20] = "IQ4_NL",      [21] = "IQ3_S",      [22] = "IQ2_S",       [23] = "IQ4_XS",
        [24] = "I8",          [25] = "I16",        [26] = "I32",         [27] = "I64",
        [28] = "F64",         [29] = "IQ1_M",      [30] = "BF16",        [31] = "Q4_0_4_4",
        [32] = "Q4_0_4_8",    [33] = "Q4_0_8_8",   [34] = "TQ1_0",       [35] = "TQ2_0",
        [36] = "I2_S",        [37] = "IQ4_NL_4_8", [38] = "IQ4_NL_8_8",  [39] = "MXFP4",
        [40] = "NVFP4",       [41] = "Q1_0",       [42] = "Q2_0",        [43] = "F8_E4M3",
        [133] = "Q6_0",       [134] = "IQ1_BN",    [135] = "IQ2_BN",     [136] = "Q8_K64",
        [137] = "IQ2_K",      [138] = "IQ3_K",     [139] = "IQ4_K",      [140] = "IQ5_K",
        [141] = "IQ6_K",      [142] = "PQ2_0",     [143] = "PTQ1_0",     [144] = "IQ4_KS",
        [145] = "IQ2_KS",     [146] = "IQ4_KSS",   [147] = "Q8_K16",     [148] = "Q8_K32",
        [149] = "Q8_KR8",     [150] = "Q8_K128",   [151] = "Q8_KV",      [152] = "IQ5_KS",
        [153] = "IQ2_KT",     [154] = "IQ3_KT",    [155] = "IQ4_KT",     [156] = "IQ3_KS",
        [157] = "IQ2_KL",     [158] = "IQ1_KT",    [202] = "Q4_0_R8",    [206] = "Q5_0_R4",
        [208] = "Q8_0_R8",    [210] = "Q2_K_R4",   [211] = "Q3_K_R4",    [212] = "Q4_K_R4",
        [213] = "Q5_K_R4",    [214] = "Q6_K_R4",   [216] = "IQ2_XXS_R4", [217] = "IQ2_XS_R4",
        [218] = "IQ3_XXS_R4", [219] = "IQ1_S_R4",  [220] = "IQ4_NL_R4",  [221] = "IQ3_S_R4",
        [222] = "IQ2_S_R4",   [223] = "IQ4_XS_R8", [229] = "IQ1_M_R4",   [230] = "BF16_R16",
        [233] = "Q6_0_R4",    [335] = "IQ2_BN_R4", [337] = "IQ2_K_R4",   [338] = "IQ3_K_R4",
        [339] = "IQ4_K_R4",   [340] = "IQ5_K_R4",  [344] = "IQ4_KS_R4",  [352] = "IQ5_KS_R4",
        [353] = "MXFP4_R8",   [397] = "Q8_K_R16",  [398] = "Q8_KV_R8",   [399] = "Q8_K_R8",
    };
    if (id < 0 || (size_t)id >= sizeof names / sizeof *names || ggl_type_get(id))
        return NULL;
    return names[id];
}

const char *ggl_type_advice(int id) {
    if (id >= 200) /* names end with _R4, _R8 or _R16 */
        return ": its rows are interleaved for one program; make the file again from the original "
               "model with the type of the "
               "same name without _R4, _R8 or _R16";
    return id > 100
               ? ": make the file again from the original model with another type, such as IQ4_KS"
               : "";
}

const char *ggl_type_other_uses(int id) {
    switch (id) {
    case 36: /* I2_S */
        return "IQ4_NL_4_4 of llama.cpp in 2024";
    case GGL_Q2_0:
        return "FP8 (E4M3) and for q2_0 in groups of 128 (here number 142, pq2_0)";
    case GGL_F8_E4M3:
        return "FP8 (E4M3 with scales, or E5M2), q2_0 in groups of 128 and TurboQuant";
    case GGL_PQ2_0:
    case GGL_PTQ1_0:
        return "the ternary types IQ2_TN and IQ1_TN";
    default:
        return id > GGL_Q1_0 ? "other types" : NULL;
    }
}

size_t ggl_row_size(ggl_type type, int64_t n) {
    const ggl_type_info *t = ggl_type_get((int)type);
    return t ? t->row_meta + (size_t)(n / t->block) * t->size : 0;
}

bool ggl_row_size_checked(ggl_type type, int64_t n, size_t *out) {
    const ggl_type_info *t = ggl_type_get((int)type);
    if (!t || n < 0 || n % t->block != 0 || (uint64_t)(n / t->block) > SIZE_MAX)
        return false;
    return ggl_size_mul((size_t)(n / t->block), t->size, out) &&
           ggl_size_add(*out, t->row_meta, out);
}

float ggl_row_scale(const ggl_type_info *t, const void *row) {
    return quant_row_scale(t->row_meta, row);
}

size_t ggl_bytes_before(const ggl_type_info *t, int64_t n_row, int64_t at) {
    if (t->row_meta == 0)
        return (size_t)(at / t->block) * t->size;
    const int64_t row = at / n_row, rest = at % n_row;
    return (size_t)row * ggl_row_size(t->type, n_row) +
           (rest > 0 ? ggl_row_size(t->type, rest) : 0);
}

/* Decodes elements first .. first + n - 1 of a row. */
static void part_to_float(const ggl_type_info *t, const uint8_t *row, int64_t first, int64_t n,
                          float *dst) {
    const float scale = ggl_row_scale(t, row);
    for (int64_t i = first; i < first + n; i += 32, dst += 32) {
        ggl_codes c;
        t->unpack(row + t->row_meta + (size_t)(i / t->block) * t->size, (int)(i % t->block / 32),
                  &c);
        c.s[0] *= scale, c.s[1] *= scale;
        quant_codes_to_float(&c, dst);
    }
}

void ggl_to_float(const ggl_type_info *t, const void *data, int64_t n_row, int64_t first, int64_t n,
                  float *dst) {
    const uint8_t *p = data;
    if (t->row_meta == 0) {
        t->to_float(p + ggl_bytes_before(t, n_row, first), dst, n);
        return;
    }
    for (int64_t k; n > 0; n -= k, first += k, dst += k) {
        const int64_t at = first % n_row;
        k = n_row - at < n ? n_row - at : n;
        part_to_float(t, p + ggl_bytes_before(t, n_row, first - at), at, k, dst);
    }
}
