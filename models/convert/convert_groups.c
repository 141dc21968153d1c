/* The types of tensors whose sources are codes in groups: see packed.h. */
#include <stdio.h>
#include <string.h>

#include "convert_impl.h"
#include "packed.h"

/* Tensors of a kind: codes of `bits` bits that get the type. */
typedef struct group_kind {
    int bits;
    ggl_type type;
    size_t n;
    double error; /* the largest */
} group_kind;

enum { MOST_KINDS = 32 };

static void count(group_kind *kind, int *n, int bits, ggl_type type, double error) {
    int k = 0;
    while (k < *n && (kind[k].bits != bits || kind[k].type != type))
        k++;
    if (k == MOST_KINDS)
        return;
    if (k == *n)
        kind[(*n)++] = (group_kind){.bits = bits, .type = type};
    kind[k].n++;
    kind[k].error = error > kind[k].error ? error : kind[k].error;
}

static bool add_note(llm_converter *c, const group_kind *k) {
    char text[200];
    const char *tensors = k->n == 1 ? "tensor" : "tensors";
    const ggl_type_info *info = ggl_type_get((int)k->type);
    /* of f16 and bf16, only some numbers were looked at */
    if (k->error == 0 && !info->quantized && k->type != GGL_F32)
        snprintf(text, sizeof text, "%zu %s of %d-bit codes: %s, the nearest type", k->n, tensors,
                 k->bits, info->name);
    else if (k->error == 0)
        snprintf(text, sizeof text, "%zu %s of %d-bit codes: %s, without loss", k->n, tensors,
                 k->bits, info->name);
    else
        snprintf(text, sizeof text,
                 "%zu %s of %d-bit codes: %s, the nearest type (relative error %.2g)", k->n,
                 tensors, k->bits, info->name, k->error);
    return llm_converter_note(c, text);
}

/* Adds the tensor NAME.scale of what blocks of the i-th tensor leave out. False: out of memory. */
static bool add_factor(llm_converter *c, size_t i) {
    arch_conversion *v = &c->conv;
    const converted_tensor *t = &v->tensor[i];
    const int64_t n = t->n_dims > 2 ? t->ne[2] : 1;
    const size_t stem = strlen(t->name) - strlen(".weight");
    float *held = ggl_arena_alloc(&v->arena, (size_t)n, sizeof *held);
    recipe *r = ggl_arena_alloc(&v->arena, 1, sizeof *r);
    const char *name = ggl_arena_printf(&v->arena, "%.*s.scale", (int)stem, t->name);
    if (!held || !r || !name)
        return false;
    if (!llm_packed_has_factors(t->recipe, (ggl_type)t->block_type, held, n))
        return true;
    *r = (recipe){.kind = RECIPE_HELD, .n_dims = 1, .ne = {n, 1, 1, 1}, .held = held};
    if (!ggl_grow(&v->tensor, &v->cap_tensor, v->n_tensor + 1, sizeof *v->tensor))
        return false;
    v->tensor[v->n_tensor++] = (converted_tensor){.name = name,
                                                  .n_dims = 1,
                                                  .ne = {n, 1, 1, 1},
                                                  .recipe = r,
                                                  .only_f32 = true,
                                                  .block_type = -1};
    return true;
}

/* True if the name ends in ".weight". */
static bool is_weight(const char *name) {
    const size_t n = strlen(name), m = strlen(".weight");
    return n > m && strcmp(name + n - m, ".weight") == 0;
}

ggl_status llm_converter_choose_blocks(llm_converter *c, ggl_error *err) {
    group_kind kind[MOST_KINDS];
    int n = 0;
    bool ok = true;
    const size_t n_tensor = c->conv.n_tensor;
    for (size_t i = 0; ok && i < n_tensor; i++) {
        converted_tensor *t = &c->conv.tensor[i];
        const recipe *groups = llm_packed_of(t->recipe);
        double error = 0;
        if (!t->only_f32 && c->params.type == LLM_CONVERT_AUTO)
            t->block_type = llm_recipe_blocks(t->recipe);
        if (!groups || t->only_f32 || c->params.type != LLM_CONVERT_AUTO)
            continue;
        t->block_type = is_weight(t->name) ? llm_packed_block_type(t->recipe, &error) : -1;
        if (t->block_type < 0) {
            llm_packed_settle(t->recipe);
            error = llm_packed_number_error(groups);
        }
        count(kind, &n, groups->packed->code.bits, llm_converter_type(c, t), error);
        ok = t->block_type < 0 || add_factor(c, i);
    }
    for (int k = 0; ok && k < n; k++)
        ok = add_note(c, &kind[k]);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}
