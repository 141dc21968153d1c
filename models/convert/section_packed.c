/* Sources of packed types: their numbers are codes in one tensor, and factors in a second one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conversion.h"

/* Returns the side k of the blocks that share a factor: 0 columns, 1 rows; from config.json,
 * else 128. */
static int64_t fp8_block(const arch_conversion *c, int k) {
    const json_value *list = llm_json_get_kind(llm_json_get(c->config, "quantization_config"),
                                               "weight_block_size", JSON_ARRAY);
    const json_value *v = list && list->n == 2 ? &list->item[1 - k] : NULL;
    return v && v->kind == JSON_NUMBER && v->whole && v->number >= 1 ? (int64_t)v->number : 128;
}

/* Returns how many of n numbers share one of n_scale factors; 0: the numbers do not fit. */
static int64_t share(int64_t n, int64_t n_scale, int64_t block) {
    return n_scale == 1 ? n : n_scale == n ? 1 : n_scale == (n + block - 1) / block ? block : 0;
}

/* FP8 with factors, one per block, row or tensor. False: the shapes do not fit, reported. */
static bool unpack_fp8(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                       st_tensor *scale) {
    const arch_conversion *c = ev->conv;
    bool fits = (scale->type >= 0 || strcmp(scale->dtype, "F8_E8M0") == 0) && t->n_dims <= 3 &&
                scale->n_dims <= t->n_dims;
    r->x = share(t->ne[0], scale->ne[0], fp8_block(c, 0));
    r->y = share(t->n_dims > 1 ? t->ne[1] : 1, scale->ne[1], fp8_block(c, 1));
    for (int d = 2; d < LLM_ST_MAX_DIMS; d++)
        fits = fits && scale->ne[d] == t->ne[d];
    if (!fits || r->x == 0 || r->y == 0)
        llm_arch_error(ev, e->place, "tensor %s does not have the factors for the blocks of %s",
                       scale->name.s, t->name.s);
    return fits && r->x > 0 && r->y > 0;
}

/* MXFP4 as [.., blocks, 16 bytes]: 16 bytes are a block of 32 numbers, so the two inner
 * dimensions become one. */
static bool unpack_mxfp4(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                         st_tensor *scale) {
    bool fits = t->n_dims >= 2 && t->n_dims <= GGL_MAX_DIMS + 1 && t->ne[0] == 16 &&
                scale->n_dims == t->n_dims - 1 && strcmp(scale->dtype, "U8") == 0;
    for (int d = 0; d < LLM_ST_MAX_DIMS - 1; d++)
        fits = fits && scale->ne[d] == t->ne[d + 1];
    if (!fits) {
        llm_arch_error(ev, e->place,
                       "tensors %s and %s are not MXFP4, which has blocks of 16 bytes, and an "
                       "exponent for each",
                       t->name.s, scale->name.s);
        return false;
    }
    r->n_dims = t->n_dims - 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = d < r->n_dims ? t->ne[d + 1] : 1;
    r->ne[0] *= 32;
    return true;
}

/* FP4 with two numbers in a byte and an exponent for each 32 numbers of a row. */
static bool unpack_fp4(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                       st_tensor *scale) {
    bool fits = scale->n_dims == t->n_dims && t->ne[0] == 16 * scale->ne[0] &&
                (strcmp(scale->dtype, "U8") == 0 || strcmp(scale->dtype, "F8_E8M0") == 0);
    for (int d = 1; d < LLM_ST_MAX_DIMS; d++)
        fits = fits && scale->ne[d] == t->ne[d];
    if (!fits)
        llm_arch_error(ev, e->place,
                       "tensors %s and %s are not FP4, which has two numbers in a byte, and an "
                       "exponent for each 32 of a row",
                       t->name.s, scale->name.s);
    r->ne[0] *= 2;
    return fits;
}

/* Signed bytes and a factor for each group of them, row after row; a group may end in another row. */
static bool unpack_bytes(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                         st_tensor *scale) {
    const int64_t n = (int64_t)t->size;
    const bool fits = scale->type == GGL_F32 && scale->n_dims == 1 && scale->ne[0] > 0 && n > 0 &&
                      n % scale->ne[0] == 0;
    if (!fits)
        llm_arch_error(ev, e->place, "tensor %s does not have the factors for the groups of %s",
                       scale->name.s, t->name.s);
    r->bits = 8;
    r->x = fits ? n / scale->ne[0] : 1;
    return fits;
}

/* CTranslate2's integers, and what they were multiplied by: a number for each row of the outermost dimension, or one for all. */
static bool unpack_divided(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                           st_tensor *scale) {
    const int64_t n = llm_recipe_count(r), n_scale = scale->n_dims > 0 ? scale->ne[0] : 1;
    const bool fits = scale->type == GGL_F32 && scale->n_dims <= 1 &&
                      (n_scale == 1 || n_scale == t->ne[t->n_dims > 0 ? t->n_dims - 1 : 0]);
    if (!fits)
        llm_arch_error(ev, e->place, "tensor %s does not have one number for each row of %s",
                       scale->name.s, t->name.s);
    r->x = fits ? n / n_scale : 1;
    return fits;
}

/* Finds config.json's "quantization" of MLX, and stores in each source tensor that it names the
 * numbers for this tensor alone. Done once, because both may have many names. */
static void read_mlx(arch_conversion *c) {
    char name[600];
    if (c->mlx_read)
        return;
    c->mlx_read = true;
    c->mlx = llm_json_get_kind(c->config, "quantization", JSON_OBJECT);
    for (size_t i = 0; c->mlx && i < c->mlx->n; i++) {
        const ggl_str stem = json_name(c->mlx, i);
        if (c->mlx->item[i].kind != JSON_OBJECT || stem.n > 500)
            continue;
        snprintf(name, sizeof name, "%.*s.weight", (int)stem.n, stem.s);
        st_tensor *t = llm_safetensors_find(c->source, name);
        if (t)
            t->form = &c->mlx->item[i];
    }
}

/* Returns a number of MLX's quantization: for this tensor, else for all; 0 if none. */
static int64_t mlx_number(const arch_conversion *c, const st_tensor *t, const char *name) {
    const json_value *v = llm_json_get_kind(t->form ? t->form : c->mlx, name, JSON_NUMBER);
    return v && v->whole && v->number >= 1 && v->number <= 1024 ? (int64_t)v->number : 0;
}

/* True if tensors have the same dimensions except the innermost ones. */
static bool same_rows(const st_tensor *a, const st_tensor *b) {
    bool same = a->n_dims == b->n_dims;
    for (int d = 1; d < LLM_ST_MAX_DIMS; d++)
        same = same && a->ne[d] == b->ne[d];
    return same;
}

/* MLX's mode mxfp4: 32-bit words of eight numbers, and an exponent byte for each 32 numbers of a row. */
static bool unpack_mlx_fp4(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                           const st_tensor *scale) {
    const bool fits = t->n_dims >= 2 && t->ne[0] == 4 * scale->ne[0] && same_rows(t, scale);
    if (!fits)
        llm_arch_error(ev, e->place,
                       "tensors %s and %s are not MLX's mxfp4, which has eight numbers in a word, "
                       "and an exponent for each 32 of a row",
                       t->name.s, scale->name.s);
    r->kind = RECIPE_MXFP4;
    r->ne[0] = 8 * t->ne[0];
    return fits;
}

/* MLX's codes in 32-bit words, and a scale and a bias for each group of a row. */
static bool unpack_mlx(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                       st_tensor *scale) {
    char name[620];
    if (strcmp(scale->dtype, "U8") == 0)
        return unpack_mlx_fp4(ev, e, r, t, scale);
    snprintf(name, sizeof name, "%.*s.biases", (int)(t->name.n - strlen(".weight")), t->name.s);
    st_tensor *bias = llm_safetensors_find(ev->conv->source, name);
    read_mlx(ev->conv);
    const int64_t bits = mlx_number(ev->conv, t, "bits"),
                  group = mlx_number(ev->conv, t, "group_size");
    if (bits < 2 || bits > 8 || bits == 7 || group == 0) {
        llm_arch_error(ev, e->place,
                       "tensor %s has the type U32, but config.json has no \"quantization\" with a "
                       "group_size and 2, 3, 4, 5, 6 or 8 bits for it",
                       t->name.s);
        return false;
    }
    const bool fits = bias && bias->type >= 0 && bias->type == scale->type && t->n_dims >= 2 &&
                      t->ne[0] <= INT64_MAX / 32 && t->ne[0] * 32 % bits == 0 &&
                      t->ne[0] * 32 / bits % group == 0 &&
                      t->ne[0] * 32 / bits / group == scale->ne[0] && bias->ne[0] == scale->ne[0] &&
                      same_rows(t, scale) && same_rows(t, bias);
    if (!fits) {
        llm_arch_error(
            ev, e->place,
            "tensors %s, .scales and .biases are not MLX's: rows of %" PRId64
            "-bit codes in words, with a scale and a bias of the same type for each %" PRId64,
            t->name.s, bits, group);
        return false;
    }
    llm_arch_convert_use(ev->conv, bias);
    r->bits = (int)bits;
    r->x = group;
    r->bias = bias;
    r->ne[0] = t->ne[0] * 32 / bits;
    return true;
}

/* Packed types, which need a second tensor with factors. Its name has `other` in place of `end`. */
static const struct {
    const char *dtype, *end, *other;
    recipe_kind kind;
    bool (*unpack)(arch_eval *ev, const arch_expr *e, recipe *r, const st_tensor *t,
                   st_tensor *scale);
} packed[] = {
    {"F8_E4M3", "", "_scale_inv", RECIPE_FP8, unpack_fp8},
    {"F8_E4M3", "", "_scale", RECIPE_FP8, unpack_fp8},
    {"F8_E4M3", ".weight", ".scale", RECIPE_FP8, unpack_fp8},
    {"U8", "_blocks", "_scales", RECIPE_MXFP4, unpack_mxfp4},
    {"I8", ".weight", ".scale", RECIPE_MXFP4, unpack_fp4},
    {"I8", ".weight", ".scales", RECIPE_GROUPS, unpack_bytes},
    {"U32", ".weight", ".scales", RECIPE_GROUPS, unpack_mlx},
    {"I8", "", "_divisor", RECIPE_DIVIDED, unpack_divided},
    {"I16", "", "_divisor", RECIPE_DIVIDED, unpack_divided},
};

bool llm_arch_convert_unpack(arch_eval *ev, const arch_expr *e, recipe *r, st_tensor *t) {
    char name[600];
    const char *wanted = NULL;
    for (size_t k = 0; k < sizeof packed / sizeof *packed; k++) {
        const size_t n = strlen(packed[k].end);
        if (strcmp(t->dtype, packed[k].dtype) != 0 || t->name.n < n ||
            strcmp(t->name.s + t->name.n - n, packed[k].end) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s%s", (int)(t->name.n - n), t->name.s, packed[k].other);
        st_tensor *scale = llm_safetensors_find(ev->conv->source, name);
        wanted = wanted ? wanted : packed[k].other;
        if (!scale)
            continue;
        r->kind = packed[k].kind;
        r->scale = scale;
        llm_arch_convert_use(ev->conv, scale);
        return packed[k].unpack(ev, e, r, t, scale);
    }
    llm_arch_error(ev, e->place,
                   "tensor %s has the type %s; a weight can be made from F32, F16, BF16 or F64, or "
                   "from F8_E4M3, FP4, MXFP4 and MLX's U32 with their factors%s%s",
                   t->name.s, t->dtype, wanted ? ", here in a tensor that is missing, .." : "",
                   wanted ? wanted : "");
    return false;
}
