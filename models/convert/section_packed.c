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
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conversion.h"
#include "ggl/internal/text.h"
#include "packed.h"

typedef struct unpacking {
    arch_eval *ev;
    const arch_expr *e;
    recipe *r;
    st_tensor *t, *scale;
    packed_numbers *p;
    ggl_str stem; /* the name of t without the form's ending */
} unpacking;

/* --- helpers ----------------------------------------------------------------------------------- */

/* Reports what does not fit. Always false. */
static bool odd(const unpacking *u, const char *fmt, ...) GGL_PRINTF(2, 3);
static bool odd(const unpacking *u, const char *fmt, ...) {
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    llm_arch_error(u->ev, u->e->place, "%s", text);
    return false;
}

/* Always false. */
static bool no_memory(const unpacking *u) {
    llm_arch_nomem(u->ev);
    return false;
}

static bool no_factors(const unpacking *u) {
    return odd(u, "tensor %s does not have the factors for the blocks of %s", u->scale->name.s,
               u->t->name.s);
}

static void add_tensor(unpacking *u, st_tensor *t) {
    if (u->p->n_tensor < PACKED_TENSORS)
        u->p->tensor[u->p->n_tensor++] = t;
    llm_arch_convert_use(u->ev->conv, t);
}

/* Returns the tensor named stem + end, and adds it to those that are read. NULL: there is none. */
static st_tensor *beside(unpacking *u, const char *end) {
    char name[700];
    snprintf(name, sizeof name, "%.*s%s", (int)u->stem.n, u->stem.s, end);
    st_tensor *t = llm_safetensors_find(u->ev->conv->source, name);
    if (t)
        add_tensor(u, t);
    return t;
}

static bool is(const st_tensor *t, const char *dtype) {
    return strcmp(t->dtype, dtype) == 0;
}

static int64_t count(const st_tensor *t) {
    int64_t n = 1;
    for (int d = 0; d < t->n_dims; d++)
        n *= t->ne[d];
    return n;
}

/* Returns a value of config.json's "quantization_config". NULL: it has none of that kind. */
static const json_value *setting(const unpacking *u, const char *name, json_kind kind) {
    return llm_json_get_kind(llm_json_get(u->ev->conv->config, "quantization_config"), name, kind);
}

/* Returns a whole number of it from 1 to most; 0: none. */
static int64_t whole_setting(const unpacking *u, const char *name, int64_t most) {
    const json_value *v = setting(u, name, JSON_NUMBER);
    return v && v->whole && v->number >= 1 && v->number <= (double)most ? (int64_t)v->number : 0;
}

/* True if tensors have the same dimensions except the innermost ones. */
static bool same_rows(const st_tensor *a, const st_tensor *b) {
    bool same = a->n_dims == b->n_dims;
    for (int d = 1; d < LLM_ST_MAX_DIMS; d++)
        same = same && a->ne[d] == b->ne[d];
    return same;
}

/* Sets the matrix: rows of n_column codes, and a factor for each `columns` of a row. Rows follow one another, those of outer
 * dimensions too. */
static void set_rows(unpacking *u, int64_t n_column, int64_t columns) {
    packed_numbers *p = u->p;
    p->n_column = n_column;
    p->n_row = p->n_factor_row = n_column > 0 ? llm_recipe_count(u->r) / n_column : 1;
    p->factor.columns = columns;
    p->factor.rows = 1;
    p->factor.next = 1;
    p->factor.line = columns > 0 ? (n_column + columns - 1) / columns : 1;
}

/* Codes of rows, with the units of a row's side by side. */
static packed_codes row_codes(const st_tensor *t, int bits, int unit, int64_t units) {
    return (packed_codes){.t = t, .bits = bits, .unit = unit, .next = 1, .line = units};
}

/* Floats of 4 bits, two in a byte. */
static void set_e2m1(unpacking *u) {
    u->p->code = row_codes(u->t, 4, 8, u->p->n_column / 2);
    u->p->value = llm_packed_e2m1;
}

/* Floats of 8 bits. False: out of memory. */
static bool set_e4m3(unpacking *u) {
    float *value = ggl_arena_alloc(&u->ev->conv->arena, 256, sizeof *value);
    for (int k = 0; value && k < 256; k++)
        value[k] = llm_packed_e4m3(k);
    u->p->code = row_codes(u->t, 8, 8, u->p->n_column);
    u->p->value = value;
    return value || no_memory(u);
}

/* Makes by what all numbers are multiplied by: the number of a tensor, or 1 divided by it. */
static bool set_by(unpacking *u, const st_tensor *t, bool divide) {
    if (t->type < 0 || count(t) != 1)
        return odd(u, "tensor %s is not one number, by which %s is multiplied", t->name.s,
                   u->t->name.s);
    const float x = llm_packed_number(t, 0);
    u->p->by = divide ? 1.0f / x : x;
    return isfinite(u->p->by) || odd(u, "tensor %s is %g", t->name.s, (double)x);
}

/* --- FP8 and FP4 ------------------------------------------------------------------------------- */

/* Returns the side k of the blocks that share a factor: 0 columns, 1 rows; from config.json,
 * else 128. */
static int64_t fp8_block(const unpacking *u, int k) {
    const json_value *list = setting(u, "weight_block_size", JSON_ARRAY);
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
static bool unpack_fp8(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    packed_factors *f = &u->p->factor;
    const int64_t columns = t->ne[0], rows = t->n_dims > 1 ? t->ne[1] : 1;
    set_rows(u, columns, columns);
    u->r->nearest = GGL_BF16;
    if (is(scale, "U8")) {
        f->kind = FACTOR_E8M0;
        f->columns = 32;
        f->line = scale->ne[0];
        if (columns != 32 * scale->ne[0] || !same_rows(t, scale))
            return no_factors(u);
        return set_e4m3(u);
    }
    bool fits =
        (scale->type >= 0 || is(scale, "F8_E8M0")) && t->n_dims <= 3 && scale->n_dims <= t->n_dims;
    for (int d = 2; d < LLM_ST_MAX_DIMS; d++)
        fits = fits && scale->ne[d] == t->ne[d];
    const bool by_row = scale->n_dims == 1 && t->n_dims == 2 && scale->ne[0] == rows;
    f->kind = scale->type >= 0 ? FACTOR_NUMBER : FACTOR_E8M0;
    f->columns = by_row ? columns : share(columns, scale->ne[0], fp8_block(u, 0));
    f->rows = by_row ? 1 : share(rows, scale->ne[1], fp8_block(u, 1));
    f->line = by_row ? 1 : scale->ne[0];
    u->p->n_row = rows;
    u->p->n_factor_row = by_row ? rows : scale->ne[1];
    return fits && f->columns > 0 && f->rows > 0 ? set_e4m3(u) : no_factors(u);
}

/* Checks that factors of FP4 are there, one for each `columns` of a row. */
static bool unpack_fp4_rows(unpacking *u, factor_kind kind, int columns, const char *form) {
    if (u->scale->n_dims != u->t->n_dims || u->r->ne[0] != columns * u->scale->ne[0] ||
        !same_rows(u->t, u->scale))
        return odd(u,
                   "tensors %s and %s are not %s, which has two numbers in a byte, and %s for each "
                   "%d of a row",
                   u->t->name.s, u->scale->name.s, form,
                   kind == FACTOR_E8M0 ? "an exponent" : "a float of 8 bits", columns);
    set_rows(u, u->r->ne[0], columns);
    u->p->factor.kind = kind;
    u->r->nearest = GGL_BF16;
    set_e2m1(u);
    return true;
}

/* MXFP4 as [.., blocks, 16 bytes]: 16 bytes are a block of 32 numbers, so the two inner
 * dimensions become one. */
static bool unpack_mxfp4(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    recipe *r = u->r;
    bool fits = t->n_dims >= 2 && t->n_dims <= GGL_MAX_DIMS + 1 && t->ne[0] == 16 &&
                scale->n_dims == t->n_dims - 1 && is(scale, "U8");
    for (int d = 0; d < LLM_ST_MAX_DIMS - 1; d++)
        fits = fits && scale->ne[d] == t->ne[d + 1];
    if (!fits)
        return odd(u,
                   "tensors %s and %s are not MXFP4, which has blocks of 16 bytes, and an exponent "
                   "for each",
                   t->name.s, scale->name.s);
    r->n_dims = t->n_dims - 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = d < r->n_dims ? t->ne[d + 1] : 1;
    r->ne[0] *= 32;
    r->nearest = GGL_BF16;
    set_rows(u, r->ne[0], 32);
    u->p->factor.kind = FACTOR_E8M0;
    set_e2m1(u);
    return true;
}

/* FP4 with two numbers in a byte and an exponent for each 32 numbers of a row. */
static bool unpack_fp4(unpacking *u) {
    u->r->ne[0] *= 2;
    if (!is(u->scale, "U8") && !is(u->scale, "F8_E8M0"))
        return odd(u,
                   "tensors %s and %s are not FP4, which has two numbers in a byte, and an "
                   "exponent for each 32 of a row",
                   u->t->name.s, u->scale->name.s);
    return unpack_fp4_rows(u, FACTOR_E8M0, 32, "FP4");
}

/* The same; or NVFP4: a float of 8 bits for each 16 numbers, and a number for the tensor, by which they are multiplied
 * (scale_2), or divided (global_scale). */
static bool unpack_fp4_packed(unpacking *u) {
    st_tensor *times, *divided;
    if (is(u->scale, "U8") || is(u->scale, "F8_E8M0"))
        return unpack_fp4(u);
    if (!is(u->scale, "F8_E4M3"))
        return odd(u, "tensor %s has the type %s; the factors of FP4 are U8, F8_E8M0 or F8_E4M3",
                   u->scale->name.s, u->scale->dtype);
    u->r->ne[0] *= 2;
    if ((times = beside(u, "_scale_2")) && !set_by(u, times, false))
        return false;
    if (!times && (divided = beside(u, "_global_scale")) && !set_by(u, divided, true))
        return false;
    return unpack_fp4_rows(u, FACTOR_E4M3, 16, "NVFP4");
}

/* --- integers ---------------------------------------------------------------------------------- */

/* Signed bytes and a factor for each group of them, row after row; a group may end in another row. */
static bool unpack_bytes(unpacking *u) {
    const int64_t n = (int64_t)u->t->size;
    const st_tensor *scale = u->scale;
    if (scale->type != GGL_F32 || scale->n_dims != 1 || scale->ne[0] <= 0 || n <= 0 ||
        n % scale->ne[0] != 0)
        return odd(u, "tensor %s does not have the factors for the groups of %s", scale->name.s,
                   u->t->name.s);
    set_rows(u, n, n / scale->ne[0]);
    u->p->code = row_codes(u->t, 8, 8, n);
    u->p->code.is_signed = true;
    u->r->nearest = GGL_F32;
    return true;
}

/* CTranslate2's integers, and what they were multiplied by: a number for each row of the outermost dimension, or one for all. */
static bool unpack_divided(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    const int64_t n = llm_recipe_count(u->r), n_scale = scale->n_dims > 0 ? scale->ne[0] : 1;
    const int bits = is(t, "I16") ? 16 : 8;
    if (scale->type != GGL_F32 || scale->n_dims > 1 ||
        (n_scale != 1 && n_scale != t->ne[t->n_dims > 0 ? t->n_dims - 1 : 0]))
        return odd(u, "tensor %s does not have one number for each row of %s", scale->name.s,
                   t->name.s);
    set_rows(u, n / (n_scale > 0 ? n_scale : 1), n / (n_scale > 0 ? n_scale : 1));
    u->p->code = row_codes(t, bits, bits, u->p->n_column);
    u->p->code.is_signed = true;
    u->p->factor.divides = true;
    u->r->nearest = GGL_F32;
    return true;
}

/* Takes the factors of integers: one for each group of a row, for each row, or for all. False: reported. */
static bool set_group_factors(unpacking *u) {
    const st_tensor *scale = u->scale;
    const int64_t n_column = u->r->ne[0],
                  n_row = llm_recipe_count(u->r) / (n_column > 0 ? n_column : 1), n = count(scale);
    const int64_t groups = n_row > 0 && n % n_row == 0 ? n / n_row : n == 1 ? 1 : 0;
    if (scale->type < 0 || groups == 0 || n_column % groups != 0 ||
        (groups > 1 && scale->ne[0] != groups))
        return odd(
            u, "tensor %s does not have one factor for each group of a row, each row, or all of %s",
            scale->name.s, u->t->name.s);
    set_rows(u, n_column, n_column / groups);
    if (n == 1)
        u->p->factor.line = 0;
    return true;
}

/* Returns how many words of 32 bits n codes take. */
static int64_t words_of(int64_t n, int bits, bool gaps) {
    const int each = 32 / bits;
    return gaps ? (n + each - 1) / each : (n * bits + 31) / 32;
}

/* Sets the zeros, whole numbers of 8 bits beside the factors, or packed from row to row with `bits`. Those are stored less the
 * least code, as the codes are, so that this cancels out. */
static bool set_zero_points(unpacking *u, int bits) {
    packed_numbers *p = u->p;
    const int64_t groups = p->factor.columns > 0 ? p->n_column / p->factor.columns : 0;
    st_tensor *zero = beside(u, "_zero_point");
    if (!zero)
        return true;
    if (is(zero, "I8") && count(zero) == count(u->scale)) {
        p->zero = row_codes(zero, 8, 8, p->factor.line);
        p->zero.is_signed = true;
        return true;
    }
    if (bits == 0 || !is(zero, "I32") || zero->n_dims != 2 || u->r->n_dims != 2 ||
        zero->ne[0] != groups || zero->ne[1] != words_of(p->n_row, bits, p->code.gaps))
        return odd(
            u, "tensor %s does not have the zeros of %s: %" PRId64 " groups of %" PRId64 " rows",
            zero->name.s, u->t->name.s, groups, p->n_row);
    p->zero = (packed_codes){.t = zero,
                             .bits = bits,
                             .unit = 32,
                             .down = true,
                             .gaps = p->code.gaps,
                             .next = groups,
                             .line = 1};
    p->zero_of_all = 0;
    return true;
}

/* compressed-tensors' bytes: a factor and maybe a zero for each group, row or tensor. */
static bool unpack_integers(unpacking *u) {
    if (!set_group_factors(u))
        return false;
    u->p->code = row_codes(u->t, 8, 8, u->p->n_column);
    u->p->code.is_signed = true;
    return set_zero_points(u, 0);
}

/* Returns whole number i of a tensor of I32 or I64; below 0: it has none. */
static int64_t whole_at(const st_tensor *t, int64_t i) {
    int64_t wide = -1;
    int32_t narrow = -1;
    if (i >= count(t) || (!is(t, "I64") && !is(t, "I32")))
        return -1;
    if (is(t, "I32"))
        memcpy(&narrow, (const char *)t->data + 4 * i, sizeof narrow);
    else
        memcpy(&wide, (const char *)t->data + 8 * i, sizeof wide);
    return is(t, "I32") ? narrow : wide;
}

/* True if config.json has a group of modules with so many bits. */
static bool names_bits(const unpacking *u, int bits) {
    const json_value *groups = setting(u, "config_groups", JSON_OBJECT);
    for (size_t i = 0; groups && i < groups->n; i++) {
        const json_value *v =
            llm_json_get_kind(llm_json_get(&groups->item[i], "weights"), "num_bits", JSON_NUMBER);
        if (v && v->number == bits)
            return true;
    }
    return false;
}

/* Returns how many bits codes have, if rows of n of them take `words` of 32 bits; 0: no number of bits does. *gaps: those that
 * are left over in each word are unused, as versions of compressed-tensors up to 0.12 had it. Of several
 * numbers, one that config.json has counts. */
static int bits_of_words(const unpacking *u, int64_t n, int64_t words, bool *gaps) {
    int found = 0, best = -1;
    for (int bits = 1; bits <= 8; bits++)
        for (int apart = 0; apart < 2; apart++) {
            const int rank = 2 * names_bits(u, bits) + !apart;
            if (words != words_of(n, bits, apart) || (apart && 32 % bits == 0) || rank <= best)
                continue;
            best = rank;
            found = bits;
            *gaps = apart;
        }
    return found;
}

/* Takes the group of each column from a tensor of them. Those of columns in order are left out. */
static bool set_group_index(unpacking *u, st_tensor *index, int64_t n_group) {
    packed_numbers *p = u->p;
    bool in_order = true;
    if (!index)
        return true;
    if (!is(index, "I32") || count(index) != p->n_column)
        return odd(u, "tensor %s does not have the group of each of the %" PRId64 " columns of %s",
                   index->name.s, p->n_column, u->t->name.s);
    for (int64_t i = 0; i < p->n_column; i++) {
        const int64_t g = whole_at(index, i);
        if (g < 0 || g >= n_group)
            return odd(u, "tensor %s has the group %" PRId64 "; %s has %" PRId64, index->name.s, g,
                       u->scale->name.s, n_group);
        in_order = in_order && g == i / p->factor.columns;
    }
    p->group = in_order ? NULL : index;
    return true;
}

/* compressed-tensors' packed integers: rows of words, whose number of columns another tensor has. */
static bool unpack_words(unpacking *u) {
    st_tensor *shape = beside(u, "_shape");
    const int64_t n = shape ? whole_at(shape, count(shape) - 1) : -1;
    bool gaps = false;
    if (n <= 0 || n > INT64_MAX / 64)
        return odd(u, "tensor %.*s_shape, the shape of %s, is missing or not one", (int)u->stem.n,
                   u->stem.s, u->t->name.s);
    const int bits = bits_of_words(u, n, u->t->ne[0], &gaps);
    if (bits == 0)
        return odd(u,
                   "tensor %s has rows of %" PRId64 " words, in which %" PRId64
                   " columns of 1 to 8 bits do not fit",
                   u->t->name.s, u->t->ne[0], n);
    u->r->ne[0] = n;
    if (!set_group_factors(u))
        return false;
    u->p->code = row_codes(u->t, bits, 32, u->t->ne[0]);
    u->p->code.gaps = gaps;
    u->p->zero_of_all = 1 << (bits - 1);
    return set_group_index(u, beside(u, "_g_idx"), u->p->factor.line) && set_zero_points(u, bits);
}

/* GPTQ's words, each of which has codes of adjacent columns of one row; a line of words has all rows. The first version
 * stores zeros less 1. AWQ's words have codes of adjacent rows of one column. */
static bool unpack_qweight(unpacking *u) {
    static const unsigned char awq_order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const st_tensor *t = u->t, *scale = u->scale;
    packed_numbers *p = u->p;
    st_tensor *zeros = beside(u, ".qzeros"), *index = beside(u, ".g_idx");
    const int64_t n_row = scale->ne[0], n_group = scale->ne[1];
    const bool awq = t->ne[0] * 8 == n_row, known = t->ne[0] == n_row || awq;
    int64_t bits = awq ? 4 : whole_setting(u, "bits", 8), n = awq ? t->ne[1] : 0;
    if (!awq && index && count(index) > 0 && t->ne[1] * 32 % count(index) == 0)
        bits = t->ne[1] * 32 / count(index);
    if (!awq && bits > 0)
        n = t->ne[1] * 32 / bits;
    const int64_t size = whole_setting(u, "group_size", INT32_MAX);
    const int64_t columns = size > 0 && n_group > 1 && (n + size - 1) / size == n_group ? size
                            : n_group > 0 && n % n_group == 0 ? n / n_group
                                                              : 0;
    if (!known || t->n_dims != 2 || scale->n_dims != 2 || scale->type < 0 || n <= 0 ||
        (bits != 2 && bits != 3 && bits != 4 && bits != 8) || columns == 0 ||
        (!awq && t->ne[1] != (n * bits + 31) / 32))
        return odd(
            u, "tensors %s and %s are neither GPTQ's, with 2, 3, 4 or 8 bits, nor AWQ's, with 4",
            t->name.s, scale->name.s);
    if (!zeros || !is(zeros, "I32") || zeros->n_dims != 2 || zeros->ne[1] != n_group ||
        zeros->ne[0] != (n_row * bits + 31) / 32)
        return odd(u, "tensor %.*s.qzeros, the zeros of %s, is missing or has another shape",
                   (int)u->stem.n, u->stem.s, t->name.s);
    u->r->n_dims = 2;
    u->r->ne[0] = n;
    u->r->ne[1] = n_row;
    set_rows(u, n, columns);
    p->factor.next = n_row;
    p->factor.line = 1;
    p->code = (packed_codes){.t = t,
                             .bits = (int)bits,
                             .unit = 32,
                             .down = awq,
                             .next = awq ? 1 : n_row,
                             .line = awq ? t->ne[0] : 1};
    p->zero = (packed_codes){
        .t = zeros, .bits = (int)bits, .unit = 32, .down = true, .next = 1, .line = zeros->ne[0]};
    p->zero.less_one =
        !awq && !llm_json_has(llm_json_get(u->ev->conv->config, "quantization_config"),
                              "checkpoint_format", "gptq_v2");
    p->code.order = p->zero.order = awq ? awq_order : NULL;
    return set_group_index(u, index, n_group);
}

/* BitNet's: four rows' numbers -1, 0 and 1 in a byte, and a number by which all are divided, or with the class autobitlinear
 * multiplied. */
static bool unpack_ternary(unpacking *u) {
    const bool times = llm_json_has(llm_json_get(u->ev->conv->config, "quantization_config"),
                                    "linear_class", "autobitlinear");
    if (u->t->n_dims != 2 || !set_by(u, u->scale, !times))
        return u->t->n_dims != 2 &&
               odd(u, "tensor %s has %d dimensions instead of 2", u->t->name.s, u->t->n_dims);
    u->r->ne[1] *= 4;
    set_rows(u, u->t->ne[0], u->t->ne[0]);
    u->p->code = (packed_codes){.t = u->t,
                                .bits = 2,
                                .unit = 8,
                                .down = true,
                                .next = u->t->ne[0],
                                .line = 1,
                                .plane = u->t->ne[1]};
    u->p->factor.t = NULL;
    u->p->zero_of_all = 1;
    return true;
}

/* U8 with factors: ModelOpt's NVFP4, or ternary numbers. */
static bool unpack_u8(unpacking *u) {
    return u->scale->type >= 0 ? unpack_ternary(u) : unpack_fp4_packed(u);
}

/* --- bitsandbytes ------------------------------------------------------------------------------ */

/* Reads a table of n numbers. NULL: reported. */
static const float *read_map(unpacking *u, const char *end, int n) {
    st_tensor *t = beside(u, end);
    float *map = ggl_arena_alloc(&u->ev->conv->arena, 256, sizeof *map);
    if (!map)
        return no_memory(u), NULL;
    if (!t || t->type != GGL_F32 || count(t) != n)
        return odd(u, "tensor %.*s%s, %d numbers of F32, is missing or another", (int)u->stem.n,
                   u->stem.s, end, n),
               NULL;
    for (int k = 0; k < n; k++)
        map[k] = llm_packed_number(t, k);
    return map;
}

/* Reads the numbers of one byte that stand for factors. */
static bool set_mapped(unpacking *u, const json_value *state, int64_t n_block) {
    packed_factors *f = &u->p->factor;
    const json_value *block = llm_json_get_kind(state, "nested_blocksize", JSON_NUMBER),
                     *offset = llm_json_get_kind(state, "nested_offset", JSON_NUMBER);
    st_tensor *inner = beside(u, ".nested_absmax");
    f->kind = FACTOR_MAPPED;
    f->map = read_map(u, ".nested_quant_map", 256);
    f->inner = inner;
    f->inner_block = block && block->whole && block->number >= 1 && block->number <= 65536
                         ? (int64_t)block->number
                         : 0;
    f->offset = offset ? (float)offset->number : 0;
    if (!f->map)
        return false;
    return (inner && inner->type == GGL_F32 && f->inner_block > 0 && offset &&
            count(inner) == (n_block + f->inner_block - 1) / f->inner_block) ||
           odd(u,
               "the factors of tensor %s are packed, but nested_absmax, nested_blocksize or "
               "nested_offset do not fit them",
               u->t->name.s);
}

/* What bitsandbytes stores as JSON in a tensor. */
static bool set_state(unpacking *u, const json_value *state) {
    static const struct {
        const char *name;
        ggl_type type;
    } types[] = {{"float16", GGL_F16}, {"bfloat16", GGL_BF16}, {"float32", GGL_F32}};
    const json_value *shape = llm_json_get_kind(state, "shape", JSON_ARRAY),
                     *block = llm_json_get_kind(state, "blocksize", JSON_NUMBER);
    int64_t n = 1;
    recipe *r = u->r;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        r->ne[d] = 1;
    for (size_t d = 0; shape && d < shape->n && d < GGL_MAX_DIMS; d++) {
        const json_value *v = &shape->item[shape->n - 1 - d];
        r->ne[d] = v->kind == JSON_NUMBER && v->whole && v->number >= 1 && v->number < 0x1p40
                       ? (int64_t)v->number
                       : 0;
        n = r->ne[d] > 0 && n <= INT64_MAX / 2 / r->ne[d] ? n * r->ne[d] : 0;
    }
    if (!shape || shape->n < 1 || shape->n > GGL_MAX_DIMS || n == 0 ||
        (int64_t)u->t->size != (n + 1) / 2)
        return odd(u, "the shape in quant_state of tensor %s does not fit its %zu bytes",
                   u->t->name.s, u->t->size);
    r->n_dims = (int)shape->n;
    const int64_t size = block && block->whole && block->number >= 1 && block->number <= 65536
                             ? (int64_t)block->number
                             : 0,
                  n_block = size > 0 ? (n + size - 1) / size : 0;
    if (n_block == 0 || count(u->scale) != n_block)
        return no_factors(u);
    set_rows(u, n, size);
    u->p->code = row_codes(u->t, 4, 8, (n + 1) / 2);
    u->p->code.high_first = true;
    r->nearest = GGL_F32;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (llm_json_has(state, "dtype", types[k].name))
            r->nearest = types[k].type;
    if (!(u->p->value = read_map(u, ".quant_map", 16)))
        return false;
    return u->scale->type == GGL_F32 ||
           (is(u->scale, "U8") ? set_mapped(u, state, n_block) : no_factors(u));
}

static bool unpack_bnb4(unpacking *u) {
    static const char *const ends[] = {".quant_state.bitsandbytes__nf4",
                                       ".quant_state.bitsandbytes__fp4"};
    ggl_error err = {0};
    llm_json *doc = NULL;
    st_tensor *state = NULL;
    for (int k = 0; k < 2 && !state; k++)
        state = beside(u, ends[k]);
    if (!state || !is(state, "U8"))
        return odd(u, "tensor %s.quant_state.bitsandbytes__nf4 or __fp4 is missing", u->t->name.s);
    if (llm_json_parse(&doc, state->data, state->size, state->name.s, &err) != GGL_OK)
        return odd(u, "%s", err.msg);
    const bool ok = set_state(u, &doc->root);
    llm_json_free(doc);
    return ok;
}

/* Bytes, and the largest number of each row, which stands for 127. */
static bool unpack_bnb8(unpacking *u) {
    const st_tensor *format = beside(u, ".weight_format");
    if (format && (format->size != 1 || *(const char *)format->data != 0))
        return odd(u, "tensor %s says that the bytes of %s are not in rows", format->name.s,
                   u->t->name.s);
    if (u->scale->type != GGL_F32 || u->t->n_dims != 2 || count(u->scale) != u->t->ne[1])
        return no_factors(u);
    set_rows(u, u->t->ne[0], u->t->ne[0]);
    u->p->code = row_codes(u->t, 8, 8, u->t->ne[0]);
    u->p->code.is_signed = true;
    u->p->by = 7.874015718698502e-3f; /* 1/127, as that program writes it */
    u->r->nearest = GGL_F16;
    return true;
}

/* --- MLX --------------------------------------------------------------------------------------- */

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

/* Returns the mode of a tensor's quantization; NULL: none is given. */
static const json_value *mlx_mode(arch_conversion *c, const st_tensor *t) {
    read_mlx(c);
    const json_value *own = llm_json_get(t->form, "mode");
    return own ? own : llm_json_get(c->mlx, "mode");
}

/* MLX's modes of floats in 32-bit words, with a byte for each group of a row. */
static bool unpack_mlx_floats(unpacking *u) {
    static const struct {
        const char *mode;
        int words; /* for a byte */
        int numbers, group;
        factor_kind kind;
    } modes[] = {{"mxfp4", 4, 8, 32, FACTOR_E8M0},
                 {"nvfp4", 2, 8, 16, FACTOR_E4M3},
                 {"mxfp8", 8, 4, 32, FACTOR_E8M0}};
    const st_tensor *t = u->t, *scale = u->scale;
    const json_value *mode = mlx_mode(u->ev->conv, t);
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        if (t->n_dims < 2 || !same_rows(t, scale) || t->ne[0] != modes[k].words * scale->ne[0] ||
            t->ne[0] > INT64_MAX / 8 || (mode && !llm_json_is(mode, modes[k].mode)))
            continue;
        u->r->ne[0] = modes[k].numbers * t->ne[0];
        u->r->nearest = GGL_BF16;
        set_rows(u, u->r->ne[0], modes[k].group);
        u->p->factor.kind = modes[k].kind;
        if (modes[k].numbers == 4)
            return set_e4m3(u);
        set_e2m1(u);
        return true;
    }
    return odd(u,
               "tensors %s and %s are not MLX's mxfp4, nvfp4 or mxfp8, which have words of eight "
               "or four floats, and a byte for each 32 or 16 of a row",
               t->name.s, scale->name.s);
}

/* MLX's codes in 32-bit words, and a scale and a bias for each group of a row. */
static bool unpack_mlx(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    arch_conversion *c = u->ev->conv;
    if (is(scale, "U8"))
        return unpack_mlx_floats(u);
    const json_value *mode = mlx_mode(c, t);
    if (mode && !llm_json_is(mode, "affine"))
        return odd(u,
                   "tensor %s has scales and biases, as in MLX's mode affine, but config.json has "
                   "the mode %.*s",
                   t->name.s,
                   (int)ggl_utf8_cut(mode->kind == JSON_STRING ? mode->s : "",
                                     mode->kind == JSON_STRING ? mode->n : 0, 40),
                   mode->kind == JSON_STRING ? mode->s : "");
    const st_tensor *bias = beside(u, ".biases");
    const int64_t bits = mlx_number(c, t, "bits"), group = mlx_number(c, t, "group_size");
    if (bits < 2 || bits > 8 || bits == 7 || group == 0)
        return odd(u,
                   "tensor %s has the type U32, but config.json has no \"quantization\" with a "
                   "group_size and 2, 3, 4, 5, 6 or 8 bits for it",
                   t->name.s);
    if (!bias || bias->type < 0 || bias->type != scale->type || t->n_dims < 2 ||
        t->ne[0] > INT64_MAX / 32 || t->ne[0] * 32 % bits != 0 ||
        t->ne[0] * 32 / bits % group != 0 || t->ne[0] * 32 / bits / group != scale->ne[0] ||
        bias->ne[0] != scale->ne[0] || !same_rows(t, scale) || !same_rows(t, bias))
        return odd(
            u,
            "tensors %s, .scales and .biases are not MLX's: rows of %" PRId64
            "-bit codes in words, with a scale and a bias of the same type for each %" PRId64,
            t->name.s, bits, group);
    u->r->ne[0] = t->ne[0] * 32 / bits;
    set_rows(u, u->r->ne[0], group);
    u->p->code = row_codes(t, (int)bits, 32, t->ne[0]);
    u->p->bias = bias;
    return true;
}

/* --- all forms --------------------------------------------------------------------------------- */

/* `other`: what the tensor with the factors has in place of `end`. */
static const struct {
    const char *dtype, *end, *other;
    bool (*unpack)(unpacking *u);
} forms[] = {
    {"F8_E4M3", "", "_scale_inv", unpack_fp8},
    {"F8_E4M3", "", "_scale", unpack_fp8},
    {"F8_E4M3", ".weight", ".scale", unpack_fp8},
    {"F8_E4M3", ".weight", ".qscale_weight", unpack_fp8},
    {"F8_E4M3", ".weight", ".scales", unpack_fp8},
    {"U8", "_blocks", "_scales", unpack_mxfp4},
    {"U8", "_packed", "_scale", unpack_fp4_packed},
    {"U8", "", ".absmax", unpack_bnb4},
    {"U8", "", "_scale", unpack_u8},
    {"I32", "_packed", "_scale", unpack_words},
    {"I32", ".qweight", ".scales", unpack_qweight},
    {"I8", ".weight", ".scale", unpack_fp4},
    {"I8", ".weight", ".scales", unpack_bytes},
    {"I8", ".weight", ".SCB", unpack_bnb8},
    {"I8", "", "_scale", unpack_integers},
    {"U32", ".weight", ".scales", unpack_mlx},
    {"I8", "", "_divisor", unpack_divided},
    {"I16", "", "_divisor", unpack_divided},
};

static bool begin(unpacking *u) {
    u->p = ggl_arena_alloc(&u->ev->conv->arena, 1, sizeof *u->p);
    if (!u->p)
        return no_memory(u);
    u->p->by = 1;
    u->p->factor.t = u->scale;
    add_tensor(u, u->scale);
    u->ev->conv->has_packed = true;
    u->r->kind = RECIPE_PACKED;
    u->r->packed = u->p;
    u->r->nearest = -1;
    return true;
}

bool llm_arch_convert_unpack(arch_eval *ev, const arch_expr *e, recipe *r, st_tensor *t) {
    char name[600];
    const char *wanted = NULL;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        const size_t n = strlen(forms[k].end);
        if (!is(t, forms[k].dtype) || t->name.n < n ||
            strcmp(t->name.s + t->name.n - n, forms[k].end) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s%s", (int)(t->name.n - n), t->name.s, forms[k].other);
        st_tensor *scale = llm_safetensors_find(ev->conv->source, name);
        wanted = wanted ? wanted : forms[k].other;
        if (!scale)
            continue;
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
                   "from F8_E4M3, FP4, MXFP4 and MLX's U32 with their factors%s%s",
                   t->name.s, t->dtype, wanted ? ", here in a tensor that is missing, .." : "",
                   wanted ? wanted : "");
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
        if (count(t) == 1 && ends_with(t->name, ends[k]))
            return true;
    return is_no_bias(c, t);
}
