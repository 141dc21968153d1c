/* Forms of integers: compressed-tensors, GPTQ and AWQ, BitNet, CTranslate2 and llama2.c. */
#include <inttypes.h>
#include <string.h>

#include "unpacking.h"

/* Signed bytes and a factor for each group of them, row after row; a group may end in another row. */
bool llm_unpack_bytes(unpacking *u) {
    const int64_t n = (int64_t)u->t->size;
    const st_tensor *scale = u->scale;
    if (scale->type != GGL_F32 || scale->n_dims != 1 || scale->ne[0] <= 0 || n <= 0 ||
        n % scale->ne[0] != 0)
        return llm_unpack_odd(u, "tensor %s does not have the factors for the groups of %s",
                              scale->name.s, u->t->name.s);
    llm_unpack_set_rows(u, n, n / scale->ne[0]);
    u->p->code = llm_unpack_row_codes(u->t, 8, 8, n);
    u->p->code.is_signed = true;
    u->r->nearest = GGL_F32;
    return true;
}

/* CTranslate2's integers, and what they were multiplied by: a number for each row of the outermost dimension, or one for all. */
bool llm_unpack_divided(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    const int64_t n = llm_recipe_count(u->r), n_scale = scale->n_dims > 0 ? scale->ne[0] : 1;
    const int bits = llm_unpack_is(t, "I16") ? 16 : 8;
    if (scale->type != GGL_F32 || scale->n_dims > 1 ||
        (n_scale != 1 && n_scale != t->ne[t->n_dims > 0 ? t->n_dims - 1 : 0]))
        return llm_unpack_odd(u, "tensor %s does not have one number for each row of %s",
                              scale->name.s, t->name.s);
    llm_unpack_set_rows(u, n / (n_scale > 0 ? n_scale : 1), n / (n_scale > 0 ? n_scale : 1));
    u->p->code = llm_unpack_row_codes(t, bits, bits, u->p->n_column);
    u->p->code.is_signed = true;
    u->p->factor.divides = true;
    u->r->nearest = GGL_F32;
    return true;
}

/* Takes the factors of integers: one for each group of a row, for each row, or for all. False: reported. */
static bool set_group_factors(unpacking *u) {
    const st_tensor *scale = u->scale;
    const int64_t n_column = u->r->ne[0],
                  n_row = llm_recipe_count(u->r) / (n_column > 0 ? n_column : 1),
                  n = llm_unpack_count(scale);
    const int64_t groups = n_row > 0 && n % n_row == 0 ? n / n_row : n == 1 ? 1 : 0;
    const bool by_row = scale->n_dims == 1 && n == n_row;
    if (scale->type < 0 || groups == 0 || n_column % groups != 0 ||
        (n > 1 && !by_row && (scale->ne[0] != groups || !llm_unpack_same_rows(u->t, scale))))
        return llm_unpack_odd(
            u, "tensor %s does not have one factor for each group of a row, each row, or all of %s",
            scale->name.s, u->t->name.s);
    llm_unpack_set_rows(u, n_column, n_column / groups);
    if (n == 1)
        u->p->factor.line = 0;
    return true;
}

/* Returns how many words of 32 bits n codes take. */
static int64_t words_of(int64_t n, int bits, bool gaps) {
    const int each = 32 / bits;
    return gaps ? (n + each - 1) / each : (n * bits + 31) / 32;
}

/* True if all groups of modules in config.json have codes with zeros. */
static bool needs_zeros(const unpacking *u) {
    const json_value *groups = llm_unpack_setting(u, "config_groups", JSON_OBJECT);
    bool all = groups && groups->n > 0;
    for (size_t i = 0; all && i < groups->n; i++) {
        const json_value *v =
            llm_json_get_kind(llm_json_get(&groups->item[i], "weights"), "symmetric", JSON_BOOL);
        all = v && !v->flag;
    }
    return all;
}

/* Sets the zeros, whole numbers of 8 bits beside the factors, or packed from row to row with `bits`. Those are stored less the
 * least code, as the codes are, so that this cancels out. */
static bool set_zero_points(unpacking *u, int bits) {
    packed_numbers *p = u->p;
    const int64_t groups = p->factor.columns > 0 ? p->n_column / p->factor.columns : 0;
    st_tensor *zero = llm_unpack_beside(u, "_zero_point");
    if (!zero)
        return !needs_zeros(u) ||
               llm_unpack_odd(u,
                              "tensor %.*s_zero_point, the zeros of %s, is missing, but "
                              "config.json says that its codes are not symmetric",
                              (int)u->stem.n, u->stem.s, u->t->name.s);
    if (llm_unpack_is(zero, "I8") && llm_unpack_count(zero) == llm_unpack_count(u->scale)) {
        p->zero = llm_unpack_row_codes(zero, 8, 8, p->factor.line);
        p->zero.is_signed = true;
        return true;
    }
    if (bits == 0 || !llm_unpack_is(zero, "I32") || zero->n_dims != 2 || u->r->n_dims != 2 ||
        zero->ne[0] != groups || zero->ne[1] != words_of(p->n_row, bits, p->code.gaps))
        return llm_unpack_odd(
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
bool llm_unpack_integers(unpacking *u) {
    if (!set_group_factors(u))
        return false;
    u->p->code = llm_unpack_row_codes(u->t, 8, 8, u->p->n_column);
    u->p->code.is_signed = true;
    return set_zero_points(u, 0);
}

/* Returns whole number i of a tensor of I32 or I64; below 0: it has none. */
static int64_t whole_at(const st_tensor *t, int64_t i) {
    int64_t wide = -1;
    int32_t narrow = -1;
    if (i >= llm_unpack_count(t) || (!llm_unpack_is(t, "I64") && !llm_unpack_is(t, "I32")))
        return -1;
    if (llm_unpack_is(t, "I32"))
        memcpy(&narrow, (const char *)t->data + 4 * i, sizeof narrow);
    else
        memcpy(&wide, (const char *)t->data + 8 * i, sizeof wide);
    return llm_unpack_is(t, "I32") ? narrow : wide;
}

/* True if config.json has a group of modules with so many bits. */
static bool names_bits(const unpacking *u, int bits) {
    const json_value *groups = llm_unpack_setting(u, "config_groups", JSON_OBJECT);
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
    if (!llm_unpack_is(index, "I32") || llm_unpack_count(index) != p->n_column)
        return llm_unpack_odd(
            u, "tensor %s does not have the group of each of the %" PRId64 " columns of %s",
            index->name.s, p->n_column, u->t->name.s);
    for (int64_t i = 0; i < p->n_column; i++) {
        const int64_t g = whole_at(index, i);
        if (g < 0 || g >= n_group)
            return llm_unpack_odd(u, "tensor %s has the group %" PRId64 "; %s has %" PRId64,
                                  index->name.s, g, u->scale->name.s, n_group);
        in_order = in_order && g == i / p->factor.columns;
    }
    p->group = in_order ? NULL : index;
    return true;
}

/* compressed-tensors' packed integers: rows of words, whose number of columns another tensor has. */
bool llm_unpack_words(unpacking *u) {
    st_tensor *shape = llm_unpack_beside(u, "_shape");
    const int64_t n = shape ? whole_at(shape, llm_unpack_count(shape) - 1) : -1;
    bool gaps = false;
    if (n <= 0 || n > INT64_MAX / 64)
        return llm_unpack_odd(u, "tensor %.*s_shape, the shape of %s, is missing or not one",
                              (int)u->stem.n, u->stem.s, u->t->name.s);
    const int bits = bits_of_words(u, n, u->t->ne[0], &gaps);
    if (bits == 0)
        return llm_unpack_odd(u,
                              "tensor %s has rows of %" PRId64 " words, in which %" PRId64
                              " columns of 1 to 8 bits do not fit",
                              u->t->name.s, u->t->ne[0], n);
    u->r->ne[0] = n;
    if (!set_group_factors(u))
        return false;
    u->p->code = llm_unpack_row_codes(u->t, bits, 32, u->t->ne[0]);
    u->p->code.gaps = gaps;
    u->p->zero_of_all = 1 << (bits - 1);
    return set_group_index(u, llm_unpack_beside(u, "_g_idx"), u->p->factor.line) &&
           set_zero_points(u, bits);
}

/* True if config.json says by one of its keys that the folder's words are in this form. */
static bool names_form(const unpacking *u, const char *form) {
    static const char *const key[] = {"version", "format", "checkpoint_format"};
    bool found = false;
    for (size_t k = 0; k < sizeof key / sizeof *key; k++)
        found = found || llm_json_is(llm_unpack_setting(u, key[k], JSON_STRING), form);
    return found;
}

/* AWQ's second form, for one token at a time: rows of words, with codes of adjacent columns in order, and for each row its
 * factors and its zeros, after which places are left over. Their number is that of config.json. */
static bool unpack_word_rows(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    st_tensor *zeros = llm_unpack_beside(u, ".qzeros");
    if (t->n_dims != 2 || scale->n_dims != 2 || scale->type < 0 || scale->ne[1] != t->ne[1] ||
        !zeros || !llm_unpack_is(zeros, "I32") || zeros->n_dims != 2 || zeros->ne[1] != t->ne[1] ||
        zeros->ne[0] != scale->ne[0] / 8)
        return llm_unpack_odd(
            u, "tensors %s, %s and %.*s.qzeros do not have the rows of AWQ's form gemv", t->name.s,
            scale->name.s, (int)u->stem.n, u->stem.s);
    const int64_t n = t->ne[0] * 8, size = llm_unpack_whole_setting(u, "group_size", INT32_MAX);
    const json_value *said = llm_unpack_setting(u, "group_size", JSON_NUMBER);
    const int64_t columns = said && said->number == -1 ? n : size;
    if (columns <= 0 || n % columns != 0 || n / columns > zeros->ne[0] * 8)
        return llm_unpack_odd(u,
                              "rows of %s have %" PRId64 " columns, and %s and %s %" PRId64
                              " factors and zeros, which config.json's group_size does not fit",
                              t->name.s, n, scale->name.s, zeros->name.s, zeros->ne[0] * 8);
    u->r->n_dims = 2;
    u->r->ne[0] = n;
    u->r->ne[1] = t->ne[1];
    llm_unpack_set_rows(u, n, columns);
    u->p->of_linear = true;
    u->p->factor.line = scale->ne[0];
    u->p->code = llm_unpack_row_codes(t, 4, 32, t->ne[0]);
    u->p->zero = llm_unpack_row_codes(zeros, 4, 32, zeros->ne[0]);
    return true;
}

/* GPTQ's words, each of which has codes of adjacent columns of one row; a line of words has all rows. The first version
 * stores zeros less 1. AWQ's words have codes of adjacent rows of one column. */
bool llm_unpack_qweight(unpacking *u) {
    static const unsigned char awq_order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    if (names_form(u, "gemv"))
        return unpack_word_rows(u);
    const st_tensor *t = u->t, *scale = u->scale;
    packed_numbers *p = u->p;
    st_tensor *zeros = llm_unpack_beside(u, ".qzeros"), *index = llm_unpack_beside(u, ".g_idx");
    const int64_t n_row = scale->ne[0], n_group = scale->ne[1];
    const bool awq = t->ne[0] * 8 == n_row, known = t->ne[0] == n_row || awq;
    int64_t bits = awq ? 4 : llm_unpack_whole_setting(u, "bits", 8), n = awq ? t->ne[1] : 0;
    if (!awq && index && llm_unpack_count(index) > 0 &&
        t->ne[1] * 32 % llm_unpack_count(index) == 0)
        bits = t->ne[1] * 32 / llm_unpack_count(index);
    if (!awq && bits > 0)
        n = t->ne[1] * 32 / bits;
    const int64_t size = llm_unpack_whole_setting(u, "group_size", INT32_MAX);
    const int64_t columns = size > 0 && n_group > 1 && (n + size - 1) / size == n_group ? size
                            : n_group > 0 && n % n_group == 0 ? n / n_group
                                                              : 0;
    if (!known || t->n_dims != 2 || scale->n_dims != 2 || scale->type < 0 || n <= 0 ||
        (bits != 2 && bits != 3 && bits != 4 && bits != 8) || columns == 0 ||
        (!awq && t->ne[1] != (n * bits + 31) / 32))
        return llm_unpack_odd(
            u, "tensors %s and %s are neither GPTQ's, with 2, 3, 4 or 8 bits, nor AWQ's, with 4",
            t->name.s, scale->name.s);
    if (!zeros || !llm_unpack_is(zeros, "I32") || zeros->n_dims != 2 || zeros->ne[1] != n_group ||
        zeros->ne[0] != (n_row * bits + 31) / 32)
        return llm_unpack_odd(
            u, "tensor %.*s.qzeros, the zeros of %s, is missing or has another shape",
            (int)u->stem.n, u->stem.s, t->name.s);
    u->r->n_dims = 2;
    u->r->ne[0] = n;
    u->r->ne[1] = n_row;
    llm_unpack_set_rows(u, n, columns);
    p->factor.next = n_row;
    p->of_linear = true;
    p->factor.line = 1;
    p->code = (packed_codes){.t = t,
                             .bits = (int)bits,
                             .unit = 32,
                             .down = awq,
                             .next = awq ? 1 : n_row,
                             .line = awq ? t->ne[0] : 1};
    p->zero = (packed_codes){
        .t = zeros, .bits = (int)bits, .unit = 32, .down = true, .next = 1, .line = zeros->ne[0]};
    p->zero.less_one = !awq && !names_form(u, "gptq_v2");
    p->code.order = p->zero.order = awq ? awq_order : NULL;
    return set_group_index(u, index, n_group);
}

/* BitNet's: four rows' numbers -1, 0 and 1 in a byte, and a number by which all are divided, or with the class autobitlinear
 * multiplied. */
bool llm_unpack_ternary(unpacking *u) {
    const json_value *settings = llm_json_get(u->ev->conv->config, "quantization_config");
    const bool times = llm_json_has(settings, "linear_class", "autobitlinear");
    /* of the methods in known_config.txt, the one that is none of these */
    static const char *const others[] = {"fp8",  "mxfp4", "compressed-tensors", "modelopt",
                                         "gptq", "awq",   "bitsandbytes"};
    bool is_own = llm_unpack_setting(u, "quant_method", JSON_STRING) != NULL;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        is_own = is_own && !llm_json_has(settings, "quant_method", others[k]);
    if (!is_own)
        return llm_unpack_odd(u,
                              "tensor %s has the type U8 with one factor, as BitNet has it, but "
                              "config.json has another quant_method, or none",
                              u->t->name.s);
    if (u->t->n_dims != 2 || !llm_unpack_set_by(u, u->scale, !times))
        return u->t->n_dims != 2 && llm_unpack_odd(u, "tensor %s has %d dimensions instead of 2",
                                                   u->t->name.s, u->t->n_dims);
    u->r->ne[1] *= 4;
    llm_unpack_set_rows(u, u->t->ne[0], u->t->ne[0]);
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
