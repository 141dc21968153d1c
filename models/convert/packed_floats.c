/* Forms of FP8 and FP4. */
#include "unpacking.h"

/* Returns the side k of the blocks that share a factor: 0 columns, 1 rows; from config.json,
 * else 128. */
static int64_t fp8_block(const unpacking *u, int k) {
    const json_value *list = llm_unpack_setting(u, "weight_block_size", JSON_ARRAY);
    const json_value *v = list && list->n == 2 ? &list->item[1 - k] : NULL;
    return v && v->kind == JSON_NUMBER && v->whole && v->number >= 1 && v->number < 0x1p31
               ? (int64_t)v->number
               : 128;
}

/* Returns how many of n numbers share one of n_scale factors; 0: the numbers do not fit. */
static int64_t share(int64_t n, int64_t n_scale, int64_t block) {
    return n_scale == 1 ? n : n_scale == n ? 1 : n_scale == (n + block - 1) / block ? block : 0;
}

/* FP8 with factors, one per block, row or tensor, or an exponent for each 32 numbers of a row. */
bool llm_unpack_fp8(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    packed_factors *f = &u->p->factor;
    const int64_t columns = t->ne[0], rows = t->n_dims > 1 ? t->ne[1] : 1;
    llm_unpack_set_rows(u, columns, columns);
    u->r->nearest = GGL_BF16;
    if (llm_unpack_is(scale, "U8")) {
        f->kind = FACTOR_E8M0;
        f->columns = 32;
        f->line = scale->ne[0];
        if (columns != 32 * scale->ne[0] || !llm_unpack_same_rows(t, scale))
            return llm_unpack_no_factors(u);
        return llm_unpack_set_e4m3(u);
    }
    bool fits = (scale->type >= 0 || llm_unpack_is(scale, "F8_E8M0")) && t->n_dims <= 3 &&
                scale->n_dims <= t->n_dims;
    for (int d = 2; d < LLM_ST_MAX_DIMS; d++)
        fits = fits && scale->ne[d] == t->ne[d];
    const bool by_row = scale->n_dims == 1 && t->n_dims == 2 && scale->ne[0] == rows;
    f->kind = scale->type >= 0 ? FACTOR_NUMBER : FACTOR_E8M0;
    f->columns = by_row ? columns : share(columns, scale->ne[0], fp8_block(u, 0));
    f->rows = by_row ? 1 : share(rows, scale->ne[1], fp8_block(u, 1));
    f->line = by_row ? 1 : scale->ne[0];
    u->p->n_row = rows;
    u->p->n_factor_row = by_row ? rows : scale->ne[1];
    return fits && f->columns > 0 && f->rows > 0 ? llm_unpack_set_e4m3(u)
                                                 : llm_unpack_no_factors(u);
}

/* Checks that factors of FP4 are there, one for each `columns` of a row. */
static bool unpack_fp4_rows(unpacking *u, factor_kind kind, int columns, const char *form) {
    if (u->scale->n_dims != u->t->n_dims || u->r->ne[0] != columns * u->scale->ne[0] ||
        !llm_unpack_same_rows(u->t, u->scale))
        return llm_unpack_odd(
            u,
            "tensors %s and %s are not %s, which has two numbers in a byte, and %s for each "
            "%d of a row",
            u->t->name.s, u->scale->name.s, form,
            kind == FACTOR_E8M0 ? "an exponent" : "a float of 8 bits", columns);
    llm_unpack_set_rows(u, u->r->ne[0], columns);
    u->p->factor.kind = kind;
    u->r->nearest = GGL_BF16;
    llm_unpack_set_e2m1(u);
    return true;
}

/* MXFP4 as [.., blocks, 16 bytes]: 16 bytes are a block of 32 numbers, so the two inner
 * dimensions become one. */
bool llm_unpack_mxfp4(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    recipe *r = u->r;
    bool fits = t->n_dims >= 2 && t->n_dims <= GGL_MAX_DIMS + 1 && t->ne[0] == 16 &&
                scale->n_dims == t->n_dims - 1 && llm_unpack_is(scale, "U8");
    for (int d = 0; d < LLM_ST_MAX_DIMS - 1; d++)
        fits = fits && scale->ne[d] == t->ne[d + 1];
    if (!fits)
        return llm_unpack_odd(
            u,
            "tensors %s and %s are not MXFP4, which has blocks of 16 bytes, and an exponent "
            "for each",
            t->name.s, scale->name.s);
    r->n_dims = t->n_dims - 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = d < r->n_dims ? t->ne[d + 1] : 1;
    r->ne[0] *= 32;
    r->nearest = GGL_BF16;
    llm_unpack_set_rows(u, r->ne[0], 32);
    u->p->factor.kind = FACTOR_E8M0;
    llm_unpack_set_e2m1(u);
    return true;
}

/* FP4 with two numbers in a byte and an exponent for each 32 numbers of a row. */
bool llm_unpack_fp4(unpacking *u) {
    u->r->ne[0] *= 2;
    if (!llm_unpack_is(u->scale, "U8") && !llm_unpack_is(u->scale, "F8_E8M0"))
        return llm_unpack_odd(
            u,
            "tensors %s and %s are not FP4, which has two numbers in a byte, and an "
            "exponent for each 32 of a row",
            u->t->name.s, u->scale->name.s);
    return unpack_fp4_rows(u, FACTOR_E8M0, 32, "FP4");
}

/* The same; or NVFP4: a float of 8 bits for each 16 numbers, and a number for the tensor, by which they are multiplied
 * (scale_2), or divided (global_scale). */
bool llm_unpack_fp4_packed(unpacking *u) {
    st_tensor *times, *divided;
    if (llm_unpack_is(u->scale, "U8") || llm_unpack_is(u->scale, "F8_E8M0"))
        return llm_unpack_fp4(u);
    if (!llm_unpack_is(u->scale, "F8_E4M3"))
        return llm_unpack_odd(
            u, "tensor %s has the type %s; the factors of FP4 are U8, F8_E8M0 or F8_E4M3",
            u->scale->name.s, u->scale->dtype);
    u->r->ne[0] *= 2;
    if ((times = llm_unpack_beside(u, "_scale_2")) && !llm_unpack_set_by(u, times, false))
        return false;
    if (!times && (divided = llm_unpack_beside(u, "_global_scale")) &&
        !llm_unpack_set_by(u, divided, true))
        return false;
    return unpack_fp4_rows(u, FACTOR_E4M3, 16, "NVFP4");
}
