/* Factors of weights, as the model's descriptor uses them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/types.h"
#include "llm/internal/adapter.h"
#include "tool.h"

static void add(void *ctx, const char *weight, const char *factor) {
    lora_factors *f = ctx;
    if (!ggl_grow(&f->at, &f->cap, f->n + 1, sizeof *f->at)) {
        f->out_of_memory = true;
        return;
    }
    lora_factor *x = &f->at[f->n++];
    *x = (lora_factor){.from = factor ? ggl_gguf_find_tensor(f->file, factor) : NULL};
    const size_t size = strlen(weight) + 1;
    x->weight = ggl_calloc(1, size);
    if (x->weight)
        memcpy(x->weight, weight, size);
    if (x->from) {
        x->n = ggl_extents(x->from->ne, 0, GGL_MAX_DIMS, 1);
        x->value = ggl_calloc((size_t)x->n, sizeof *x->value);
    }
    if (x->value)
        ggl_to_float(ggl_type_get((int)x->from->type), x->from->data, x->from->ne[0], 0, x->n,
                     x->value);
    f->out_of_memory |= !x->weight || (x->from && !x->value);
}

ggl_status lora_factors_find(lora_factors *out, const llm_model *m, ggl_error *err) {
    *out = (lora_factors){.file = llm_model_file(m)};
    const ggl_status st = llm_adapter_factors(m, add, out, err);
    return st == GGL_OK && out->out_of_memory ? ggl_fail(err, GGL_NOMEM, "out of memory") : st;
}

void lora_factors_fini(lora_factors *f) {
    for (size_t i = 0; i < f->n; i++) {
        ggl_free(f->at[i].weight);
        ggl_free(f->at[i].value);
    }
    ggl_free(f->at);
    *f = (lora_factors){0};
}

ggl_status lora_factor_of(const lora_factors *f, const ggl_gguf_tensor *t, const lora_factor **out,
                          ggl_error *err) {
    const lora_factor *x = NULL;
    for (size_t i = 0; i < f->n; i++) {
        if (!ggl_str_is(t->name, f->at[i].weight))
            continue;
        if (!f->at[i].from || (x && x->from != f->at[i].from))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: tensor '%.*s' has a factor, the tensor named .scale, but not all "
                            "of its products are simply multiplied by it, so it is not known what "
                            "the weight is",
                            ggl_gguf_name(f->file), (int)t->name.n, t->name.s);
        x = &f->at[i];
    }
    *out = x;
    const bool one_way = t->ne[2] == 1 || t->ne[1] != t->ne[2];
    if (!x || x->n == 1 || (one_way && x->n == (t->ne[2] > 1 ? t->ne[2] : t->ne[1])))
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: tensor '%.*s' has %" PRId64
                    " numbers; the factor of '%.*s' must be one number, or one for each %s",
                    ggl_gguf_name(f->file), (int)x->from->name.n, x->from->name.s, x->n,
                    (int)t->name.n, t->name.s, t->ne[2] > 1 ? "matrix" : "row");
}

double lora_factor_at(const lora_factor *f, const ggl_gguf_tensor *t, int64_t m, int64_t row) {
    return !f ? 1 : (double)f->value[f->n == 1 ? 0 : t->ne[2] > 1 ? m : row];
}

bool lora_has_scales(const ggl_gguf *f) {
    const size_t end = strlen(".scale");
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_str name = ggl_gguf_tensor_at(f, i)->name;
        char weight[256];
        if (name.n <= end || memcmp(name.s + name.n - end, ".scale", end) != 0)
            continue;
        snprintf(weight, sizeof weight, "%.*s.weight", (int)(name.n - end), name.s);
        if (ggl_gguf_find_tensor(f, weight))
            return true;
    }
    return false;
}

bool lora_is_factor(const lora_factors *f, ggl_str name) {
    for (size_t i = 0; i < f->n; i++) {
        const ggl_gguf_tensor *t = f->at[i].from;
        if (t && t->name.n == name.n && memcmp(t->name.s, name.s, name.n) == 0)
            return true;
    }
    return false;
}
