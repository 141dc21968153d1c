#include "pieces.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "groups.h"

/* Fails if a finite number would become infinite in f16, whose maximum is 65504. */
static ggl_status check_range(const float *x, int64_t n, ggl_type type, ggl_error *err) {
    for (int64_t i = 0; type == GGL_F16 && i < n; i++)
        if (fabsf(x[i]) >= 65520 && isfinite(x[i]))
            return ggl_fail(err, GGL_LIMIT,
                            "%g is too large for f16; --type bf16 or f32 can represent it",
                            (double)x[i]);
    return GGL_OK;
}

ggl_status llm_convert_piece(recipe *r, const ggl_type_info *type, int64_t first, int64_t n,
                             float *x, void *out, size_t *bad, ggl_error *err) {
    if (type->quantized) {
        llm_groups_pack(r, type->type, first, n, out, bad);
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

size_t llm_convert_count_bad(const void *data, size_t n, ggl_type type) {
    const uint32_t mask = type == GGL_F32 ? 0x7f800000 : type == GGL_F16 ? 0x7c00 : 0x7f80;
    const size_t size = type == GGL_F32 ? 4 : 2;
    size_t bad = 0;
    for (size_t i = 0; type != GGL_I32 && i < n; i++) {
        uint32_t u = 0;
        memcpy(&u, (const char *)data + i * size, size); /* little-endian, like the file */
        bad += (u & mask) == mask;
    }
    return bad;
}

/* Returns the name of a recipe's first source tensor, or "". */
static const char *first_source(const recipe *r) {
    if (r->source)
        return r->source->name.s;
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
        " weights are NaN or infinite%s%s: the folder is damaged, or its training failed",
        n_bad, llm_recipe_count(r), from[0] ? "; it comes from " : "", from);
}
