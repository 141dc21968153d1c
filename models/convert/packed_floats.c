/* Forms of FP8 and FP4. */
#include "unpacking.h"

/* Returns how many of n numbers share one of n_scale factors; 0: the numbers do not fit. */
static int64_t share(int64_t n, int64_t n_scale, int64_t block) {
    return n_scale == 1 ? n : n_scale == n ? 1 : n_scale == (n + block - 1) / block ? block : 0;
}

/* Sets how many columns and rows share a factor, for blocks of [rows, columns]; NULL: of 128 each. False: the factors do not
 * fit them. */
static bool set_blocks(packed_factors *f, int64_t columns, int64_t rows, const st_tensor *scale,
                       const json_value *sides) {
    int64_t side[2] = {128, 128};
    for (size_t k = 0; sides && k < 2; k++) {
        const json_value *v = sides->n == 2 ? &sides->item[k] : NULL;
        if (!v || v->kind != JSON_NUMBER || !v->whole || v->number < 1 || v->number > 0x1p31)
            return false;
        side[k] = (int64_t)v->number;
    }
    f->rows = share(rows, scale->ne[1], side[0]);
    f->columns = share(columns, scale->ne[0], side[1]);
    return f->rows > 0 && f->columns > 0;
}

int64_t llm_packed_parts(int64_t rows, int64_t n_factor, int64_t block) {
    int64_t found = 1;
    if (n_factor == (rows + block - 1) / block)
        return 1;
    for (int64_t parts = 2; parts <= 64 && rows % parts == 0; parts *= 2)
        if (n_factor == parts * ((rows / parts + block - 1) / block)) {
            if (found > 1)
                return 1;
            found = parts;
        }
    return found;
}

/* Sets the factors of a matrix that was saved in parts. False: it was not. */
static bool set_parts(unpacking *u, int64_t columns, int64_t rows, const st_tensor *scale,
                      const json_value *sides) {
    packed_factors *f = &u->p->factor;
    st_tensor first = *scale; /* of the first part */
    const bool is_named = sides && sides->n == 2 && sides->item[0].kind == JSON_NUMBER &&
                          sides->item[0].number >= 1 && sides->item[0].number < 0x1p31;
    const int64_t parts =
        llm_packed_parts(rows, scale->ne[1], is_named ? (int64_t)sides->item[0].number : 128);
    if (parts == 1)
        return false;
    first.ne[1] /= parts;
    if (!set_blocks(f, columns, rows / parts, &first, sides))
        return false;
    u->p->n_row = rows / parts;
    u->p->n_factor_row = first.ne[1];
    return true;
}

/* The same for the blocks that config.json names: one size for all, or one for each group of modules. */
static bool find_blocks(unpacking *u, int64_t columns, int64_t rows, const st_tensor *scale) {
    packed_factors *f = &u->p->factor;
    const json_value *one = llm_unpack_setting(u, "weight_block_size", JSON_ARRAY),
                     *groups = llm_unpack_setting(u, "config_groups", JSON_OBJECT);
    bool any = one != NULL;
    if (one &&
        (set_blocks(f, columns, rows, scale, one) || set_parts(u, columns, rows, scale, one)))
        return true;
    for (size_t i = 0; groups && i < groups->n; i++) {
        const json_value *sides = llm_json_get_kind(llm_json_get(&groups->item[i], "weights"),
                                                    "block_structure", JSON_ARRAY);
        any = any || sides;
        if (sides && set_blocks(f, columns, rows, scale, sides))
            return true;
    }
    /* no blocks, but one factor for each row, or for all */
    return set_blocks(f, columns, rows, scale, NULL) &&
           (!any || (f->columns == columns && (f->rows == 1 || f->rows == rows)));
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
    st_tensor squeezed = *scale; /* ModelOpt's [rows, 1, columns, 1] */
    if (scale->n_dims == 4 && t->n_dims == 2 && scale->ne[0] == 1 && scale->ne[2] == 1) {
        squeezed.n_dims = 2;
        squeezed.ne[0] = scale->ne[1];
        squeezed.ne[1] = scale->ne[3];
        squeezed.ne[2] = squeezed.ne[3] = 1;
        scale = &squeezed;
    }
    bool fits = (scale->type >= 0 || llm_unpack_is(scale, "F8_E8M0")) && t->n_dims <= 3 &&
                scale->n_dims <= t->n_dims;
    for (int d = 2; d < LLM_ST_MAX_DIMS; d++)
        fits = fits && scale->ne[d] == t->ne[d];
    const bool by_row = scale->n_dims == 1 && t->n_dims == 2 && scale->ne[0] == rows && rows != 1;
    f->kind = scale->type >= 0 ? FACTOR_NUMBER : FACTOR_E8M0;
    u->p->n_row = rows;
    if (by_row) {
        f->columns = columns;
        f->rows = f->line = 1;
        u->p->n_factor_row = rows;
        return fits && columns > 0 ? llm_unpack_set_e4m3(u) : llm_unpack_no_factors(u);
    }
    f->line = scale->ne[0];
    u->p->n_factor_row = scale->ne[1];
    return fits && find_blocks(u, columns, rows, scale) ? llm_unpack_set_e4m3(u)
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
    times = llm_unpack_beside(u, "_scale_2");
    divided = times ? NULL : llm_unpack_beside(u, "_global_scale");
    if (!times && !divided)
        return llm_unpack_odd(u,
                              "tensor %.*s_scale_2 or %.*s_global_scale, by which NVFP4 is "
                              "multiplied or divided, is missing",
                              (int)u->stem.n, u->stem.s, (int)u->stem.n, u->stem.s);
    if (!llm_unpack_set_by(u, times ? times : divided, divided != NULL))
        return false;
    return unpack_fp4_rows(u, FACTOR_E4M3, 16, "NVFP4");
}
