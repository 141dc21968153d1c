#include "pieces.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "packed.h"

/* Fails if a finite number would become infinite in f16, whose maximum is 65504. */
static ggl_status check_range(const float *x, int64_t n, ggl_type type, ggl_error *err) {
    int large = 0; /* a loop without an end in the middle, which compilers compute in vectors */
    for (int64_t i = 0; type == GGL_F16 && i < n; i++) {
        const float size = fabsf(x[i]);
        large |= (size >= 65520) & (size <= FLT_MAX);
    }
    for (int64_t i = 0; large && i < n; i++)
        if (fabsf(x[i]) >= 65520 && isfinite(x[i]))
            return ggl_fail(err, GGL_LIMIT,
                            "%g is too large for f16; --type bf16 or f32 can represent it",
                            (double)x[i]);
    return GGL_OK;
}

ggl_status llm_convert_piece(recipe *r, const ggl_type_info *type, int64_t first, int64_t n,
                             float *x, void *out, size_t *bad, ggl_error *err) {
    const st_tensor *from;
    if (type->quantized && llm_recipe_blocks(r) == (int)type->type) {
        const size_t size = ggl_row_size(type->type, n);
        const char *data = llm_recipe_in_place(r, &from);
        memcpy(out, data + ggl_row_size(type->type, first), size);
        *bad += llm_convert_count_bad(out, (size_t)n, type->type);
        return GGL_OK;
    }
    if (type->quantized) {
        llm_packed_pack(r, type->type, first, n, out, bad);
        return GGL_OK;
    }
    ggl_status s = llm_recipe_read(r, first, n, x, err);
    if (s == GGL_OK)
        s = check_range(x, n, type->type, err);
    if (s != GGL_OK)
        return s;
    type->from_float(x, out, n);
    *bad += llm_convert_count_bad(out, (size_t)n, type->type);
    return GGL_OK;
}

/* The files' bytes are in the order of the machine's, but need not be aligned. */
static size_t count_bad_32(const char *data, size_t n, uint32_t mask) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, data + 4 * i, sizeof u);
        bad += (u & mask) == mask;
    }
    return bad;
}

static size_t count_bad_16(const char *data, size_t n, uint16_t mask) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint16_t u;
        memcpy(&u, data + 2 * i, sizeof u);
        bad += (u & mask) == mask;
    }
    return bad;
}

/* Of blocks: those that a factor spoils count whole. */
static size_t count_bad_blocks(const char *data, size_t n, const ggl_type_info *type) {
    float x[256];
    char block[256];
    size_t bad = 0;
    for (size_t i = 0; i < n / (size_t)type->block; i++) {
        memcpy(block, data + i * type->size, type->size);
        type->to_float(block, x, type->block);
        bad += count_bad_32((const char *)x, (size_t)type->block, 0x7f800000);
    }
    return bad;
}

size_t llm_convert_count_bad(const void *data, size_t n, ggl_type type) {
    switch (type) { /* numbers whose exponent has all bits set */
    case GGL_F32:
        return count_bad_32(data, n, 0x7f800000);
    case GGL_F16:
        return count_bad_16(data, n, 0x7c00);
    case GGL_BF16:
        return count_bad_16(data, n, 0x7f80);
    default:
        return ggl_type_get((int)type)->quantized
                   ? count_bad_blocks(data, n, ggl_type_get((int)type))
                   : 0; /* integers */
    }
}

/* Returns the name of a recipe's first source tensor, or "". */
static const char *first_source(const recipe *r) {
    if (r->source)
        return llm_safetensors_text(r->source);
    const char *name = "";
    for (int k = 0; k < r->n_part && !name[0]; k++)
        name = first_source(r->part[k]);
    return name;
}

ggl_status llm_convert_check_bad(const recipe *r, size_t n_bad, ggl_error *err) {
    if (n_bad == 0)
        return GGL_OK;
    const char *from = first_source(r);
    return ggl_fail(
        err, GGL_FORMAT,
        "%zu of its %" PRId64
        " weights %s NaN or infinite%s%s: the folder is damaged, or its training failed",
        n_bad, llm_recipe_count(r), n_bad == 1 ? "is" : "are", from[0] ? "; it comes from " : "",
        from);
}
