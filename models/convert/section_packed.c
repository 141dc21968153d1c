/* Sources of packed types: their numbers are codes in one tensor, and factors in others. Each form is known by the type of
 * the tensor with the codes, and by the name of that with the factors:
 *
 *     w.weight_packed I32, .._scale, .._shape     compressed-tensors, pack-quantized; .._zero_point
 *     w.weight_packed U8, .._scale                the same, nvfp4- and mxfp4-pack-quantized; .._global_scale
 *     w.weight I8, w.weight_scale                 the same, int-quantized; .._zero_point
 *     w.weight F8_E4M3, w.weight_scale(_inv)      FP8 with a factor for each block, row or tensor; MXFP8
 *     w.weight U8, w.weight_scale                 ModelOpt's NVFP4, .._scale_2; ternary numbers of BitNet
 *     w.qweight I32, w.scales, w.qzeros           GPTQ, with w.g_idx; AWQ
 *     w.weight U8, w.weight.absmax                bitsandbytes, 4 bits; .quant_map, .quant_state.bitsandbytes__nf4
 *     w.weight I8, w.SCB                          the same, 8 bits
 *     w.weight U32, w.scales                      MLX; w.biases
 *     w_blocks U8, w_scales                       MXFP4, in blocks
 *     w.weight I8, w.scale                        MXFP4, in rows
 *     w.weight I8, w.scales                       llama2.c's checkpoints
 *     w I8 or I16, w_divisor                      CTranslate2
 *
 * Sources: compressed-tensors 0.20, gptqmodel 7.7, autoawq 0.2.9, bitsandbytes 0.50, mlx-lm 0.30 and llama.cpp's converter. */
#include <stdio.h>
#include <string.h>

#include "unpacking.h"

/* U8 with factors: ModelOpt's NVFP4, or ternary numbers. */
static bool unpack_u8(unpacking *u) {
    return u->scale->type >= 0 ? llm_unpack_ternary(u) : llm_unpack_fp4_packed(u);
}

/* --- all forms --------------------------------------------------------------------------------- */

/* `other`: what the tensor with the factors has in place of `end`. */
static const struct {
    const char *dtype, *end, *other;
    bool (*unpack)(unpacking *u);
} forms[] = {
    {"F8_E4M3", "", "_scale_inv", llm_unpack_fp8},
    {"F8_E4M3", "", "_scale", llm_unpack_fp8},
    {"F8_E4M3", ".weight", ".scale", llm_unpack_fp8},
    {"F8_E4M3", ".weight", ".qscale_weight", llm_unpack_fp8},
    {"F8_E4M3", ".weight", ".scales", llm_unpack_fp8},
    {"U8", "_blocks", "_scales", llm_unpack_mxfp4},
    {"U8", "_packed", "_scale", llm_unpack_fp4_packed},
    {"U8", "", ".absmax", llm_unpack_bnb4},
    {"U8", "", "_scale", unpack_u8},
    {"I32", "_packed", "_scale", llm_unpack_words},
    {"I32", ".qweight", ".scales", llm_unpack_qweight},
    {"I8", ".weight", ".scale", llm_unpack_fp4},
    {"I8", ".weight", ".scales", llm_unpack_bytes},
    {"I8", ".weight", ".SCB", llm_unpack_bnb8},
    {"I8", "", "_scale", llm_unpack_integers},
    {"U32", ".weight", ".scales", llm_unpack_mlx},
    {"I8", "", "_divisor", llm_unpack_divided},
    {"I16", "", "_divisor", llm_unpack_divided},
};

static bool begin(unpacking *u) {
    u->p = ggl_arena_alloc(&u->ev->conv->arena, 1, sizeof *u->p);
    if (!u->p)
        return llm_unpack_no_memory(u);
    u->p->by = 1;
    u->p->factor.t = u->scale;
    llm_unpack_add_tensor(u, u->scale);
    u->ev->conv->has_packed = true;
    u->r->kind = RECIPE_PACKED;
    u->r->packed = u->p;
    u->r->nearest = -1;
    return true;
}

bool llm_arch_convert_unpack(arch_eval *ev, const arch_expr *e, recipe *r, st_tensor *t) {
    char name[600], wanted[700] = "";
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        const size_t n = strlen(forms[k].end);
        if (!llm_unpack_is(t, forms[k].dtype) || t->name.n < n ||
            strcmp(t->name.s + t->name.n - n, forms[k].end) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s%s", (int)(t->name.n - n), t->name.s, forms[k].other);
        st_tensor *scale = llm_safetensors_find(ev->conv->source, name);
        if (!scale) {
            const size_t used = strlen(wanted);
            snprintf(wanted + used, sizeof wanted - used, "%s%s", used ? " or " : "", name);
            continue;
        }
        unpacking u = {
            .ev = ev, .e = e, .r = r, .t = t, .scale = scale, .stem = {t->name.s, t->name.n - n}};
        if (!begin(&u) || !forms[k].unpack(&u))
            return false;
        if ((int)r->nearest < 0)
            r->nearest = llm_packed_number_type(r);
        return true;
    }
    llm_arch_error(ev, e->place,
                   "tensor %s has the type %s; a weight can be made from F32, F16, BF16 or F64, or "
                   "from the packed types of docs/tools.md with their factors%s%s",
                   llm_safetensors_text(t), t->dtype,
                   wanted[0] ? ", here in a tensor that is missing: " : "", wanted);
    return false;
}

/* --- what need not be read --------------------------------------------------------------------- */

static bool ends_with(ggl_str name, const char *end) {
    const size_t n = strlen(end);
    return name.n > n && memcmp(name.s + name.n - n, end, n) == 0;
}

/* True for a bias of zeros beside GPTQ's codes: its programs write one for each matrix. */
static bool is_no_bias(const arch_conversion *c, const st_tensor *t) {
    char name[600];
    const unsigned char *data = t->data;
    if (!ends_with(t->name, ".bias") || t->type < 0 || t->name.n > 500)
        return false;
    snprintf(name, sizeof name, "%.*s.qweight", (int)(t->name.n - strlen(".bias")), t->name.s);
    for (size_t i = 0; i < t->size; i++)
        if (data[i] != 0)
            return false;
    return llm_safetensors_find(c->source, name) != NULL;
}

bool llm_arch_convert_is_beside(const arch_conversion *c, const st_tensor *t) {
    /* one number each, by which other programs round activations and what the cache holds */
    static const char *const ends[] = {".input_scale",      ".output_scale", ".activation_scale",
                                       "_activation_scale", ".qscale_act",   ".input_global_scale",
                                       ".input_zero_point", ".q_scale",      ".k_scale",
                                       ".v_scale",          ".k_zero_point", ".v_zero_point"};
    if (!c->has_packed)
        return false;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        if (llm_unpack_count(t) == 1 && ends_with(t->name, ends[k]))
            return true;
    return is_no_bias(c, t);
}
