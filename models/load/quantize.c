/* The types that tensors get while they are loaded: llm_load_params.type. */
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/text.h"
#include "load_impl.h"

ggl_status llm_load_read_type(loaded *l, bool converts, ggl_error *err) {
    static const char *const types[] = {[LLM_CONVERT_AUTO] = "auto",
                                        [LLM_CONVERT_F32] = "f32",
                                        [LLM_CONVERT_F16] = "f16",
                                        [LLM_CONVERT_BF16] = "bf16"};
    const char *name = l->params.type ? l->params.type : "auto";
    for (int k = 0; k < 4 && (converts || k == LLM_CONVERT_AUTO); k++)
        if (ggl_case_compare(name, types[k]) == 0) {
            l->convert_type = (llm_convert_type)k;
            return GGL_OK;
        }
    l->quantizes = true;
    l->convert_type = LLM_CONVERT_NUMBERS;
    const ggl_status s = llm_quant_choice_read(&l->choice, name, err);
    return s == GGL_NOT_FOUND ? ggl_within(err, GGL_USAGE, "type") : s;
}

ggl_status llm_load_check_type(const char *type, ggl_error *err) {
    loaded l = {.params = {.type = type}};
    return llm_load_read_type(&l, true, err);
}

/* Quantizing a second time loses more than the type says, so it is left to a tool that asks. */
static ggl_status refuse_quantized(const ggl_gguf *f, ggl_error *err) {
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        const ggl_type_info *type = ggl_type_get((int)t->type);
        if (!type)
            return ggl_fail(err, GGL_UNSUPPORTED, "a tensor has an unknown type");
        if (type->quantized)
            return ggl_fail(
                err, GGL_USAGE,
                "the file is quantized already (it has tensors of %s), and another type "
                "can be made only of f32, f16 or bf16; llm-quantize "
                "--allow-requantize does it anyway",
                type->name);
    }
    return GGL_OK;
}

static ggl_status list_file(loaded *l, ggl_error *err) {
    l->n = ggl_gguf_n_tensors(l->plain);
    l->tensor = ggl_calloc(l->n + 1, sizeof *l->tensor);
    if (!l->tensor)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tensors", l->n);
    for (size_t i = 0; i < l->n; i++) {
        const ggl_gguf_tensor *from = ggl_gguf_tensor_at(l->plain, i);
        load_tensor *t = &l->tensor[i];
        t->name = l->plan.tensor[i].name;
        t->n_dims = from->n_dims;
        t->ne = from->ne;
        t->source = ggl_type_get((int)from->type);
        t->count = (int64_t)(from->size / t->source->size) * t->source->block;
        t->from = t->data = from->data;
    }
    return GGL_OK;
}

ggl_status llm_load_plan(loaded *l, ggl_error *err) {
    ggl_status s = refuse_quantized(l->plain, err);
    if (s == GGL_OK)
        s = llm_quant_plan_make(&l->plan, l->plain, &l->choice, err);
    if (s == GGL_OK && !l->converter)
        s = list_file(l, err);
    for (size_t i = 0; s == GGL_OK && i < l->n; i++) {
        load_tensor *t = &l->tensor[i];
        t->type = l->plan.tensor[i].type;
        t->size = l->plan.tensor[i].size;
        l->copied = l->copied || t->type != t->source;
    }
    for (size_t i = 0; s == GGL_OK && i < l->n && l->copied; i++)
        l->tensor[i].data = NULL;
    return s;
}
