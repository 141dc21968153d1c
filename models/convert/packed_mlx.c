/* Forms of MLX. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "unpacking.h"

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

/* Returns the value of that name for this tensor. NULL: it has the usual one. A tensor with an object of its own takes nothing from
 * that of all others. */
static const json_value *mlx_value(arch_conversion *c, const st_tensor *t, const char *name) {
    read_mlx(c);
    return llm_json_get(t->form ? t->form : c->mlx, name);
}

/* Returns a number of MLX's quantization; 0 if it is no number, or if there is none for all. */
static int64_t mlx_number(arch_conversion *c, const st_tensor *t, const char *name, int64_t usual) {
    const json_value *v = mlx_value(c, t, name);
    if (!v && t->form)
        return usual;
    return v && v->kind == JSON_NUMBER && v->whole && v->number >= 1 && v->number <= 1024
               ? (int64_t)v->number
               : 0;
}

/* True if the mode of a tensor is that one. */
static bool has_mode(arch_conversion *c, const st_tensor *t, const char *mode) {
    const json_value *v = mlx_value(c, t, "mode");
    return v ? llm_json_is(v, mode) : strcmp(mode, "affine") == 0;
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
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        if (t->n_dims < 2 || !llm_unpack_same_rows(t, scale) ||
            t->ne[0] != modes[k].words * scale->ne[0] || t->ne[0] > INT64_MAX / 8 ||
            !has_mode(u->ev->conv, t, modes[k].mode))
            continue;
        u->r->ne[0] = modes[k].numbers * t->ne[0];
        u->r->nearest = GGL_BF16;
        llm_unpack_set_rows(u, u->r->ne[0], modes[k].group);
        u->p->factor.kind = modes[k].kind;
        if (modes[k].numbers == 4)
            return llm_unpack_set_e4m3(u);
        llm_unpack_set_e2m1(u);
        return true;
    }
    return llm_unpack_odd(
        u,
        "tensors %s and %s are not MLX's mxfp4, nvfp4 or mxfp8, which have words of eight "
        "or four floats, and a byte for each 32 or 16 of a row",
        t->name.s, scale->name.s);
}

/* MLX's codes in 32-bit words, and a scale and a bias for each group of a row. */
bool llm_unpack_mlx(unpacking *u) {
    const st_tensor *t = u->t, *scale = u->scale;
    arch_conversion *c = u->ev->conv;
    if (llm_unpack_is(scale, "U8"))
        return unpack_mlx_floats(u);
    if (!has_mode(c, t, "affine")) {
        const json_value *mode = mlx_value(c, t, "mode");
        const ggl_str is = mode->kind == JSON_STRING ? json_str(mode) : (ggl_str){"", 0};
        return llm_unpack_odd(u,
                              "tensor %s has scales and biases, as in MLX's mode affine, but "
                              "config.json has the mode %.*s",
                              t->name.s, (int)ggl_utf8_cut(is.s, is.n, 40), is.s);
    }
    const st_tensor *bias = llm_unpack_beside(u, ".biases");
    const int64_t bits = mlx_number(c, t, "bits", 4), group = mlx_number(c, t, "group_size", 64);
    if (bits < 2 || bits > 8 || bits == 7 || group == 0)
        return llm_unpack_odd(
            u,
            "tensor %s has the type U32, but config.json has no \"quantization\" with a "
            "group_size and 2, 3, 4, 5, 6 or 8 bits for it",
            t->name.s);
    if (!bias || bias->type < 0 || bias->type != scale->type || t->n_dims < 2 ||
        t->ne[0] > INT64_MAX / 32 || t->ne[0] * 32 % bits != 0 ||
        t->ne[0] * 32 / bits % group != 0 || t->ne[0] * 32 / bits / group != scale->ne[0] ||
        bias->ne[0] != scale->ne[0] || !llm_unpack_same_rows(t, scale) ||
        !llm_unpack_same_rows(t, bias))
        return llm_unpack_odd(
            u,
            "tensors %s, .scales and .biases are not MLX's: rows of %" PRId64
            "-bit codes in words, with a scale and a bias of the same type for each %" PRId64,
            t->name.s, bits, group);
    u->r->ne[0] = t->ne[0] * 32 / bits;
    llm_unpack_set_rows(u, u->r->ne[0], group);
    u->p->code = llm_unpack_row_codes(t, (int)bits, 32, t->ne[0]);
    u->p->bias = bias;
    return true;
}
