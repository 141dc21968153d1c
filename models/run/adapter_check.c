/* llm_adapter_check, llm_control_check, llm_adapter_factors: build the model's graph, and drop it. */
#include "compile/adapter.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/nearest.h"
#include "llm/internal/model.h"

static ggl_status build(const llm_model *m, llm_arch_params ap, ggl_error *err) {
    const int64_t n_ctx = llm_model_n_ctx(m);
    /* positions do not change what the adapter is compared with; a large context costs nothing */
    const ggl_graph_params gp = {.size = sizeof gp,
                                 .n_pos = n_ctx > 0 && n_ctx <= 1 << 30 ? n_ctx : 4096,
                                 .n_batch = 1,
                                 .n_slots = 1,
                                 .type_k = GGL_F16,
                                 .type_v = GGL_F16};
    ap.size = sizeof ap;
    ap.n_ctx = gp.n_pos;
    ap.ignore = llm_model_ignore(m);
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    ggl_graph *g = ggl_graph_new(&gp);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const ggl_status st = llm_arch_build(llm_model_arch(m), &source, &ap, g, NULL, err);
    ggl_graph_free(g);
    return st;
}

/* Finds the pairs that change the model, used[n_pairs]. */
static ggl_status find_used(const llm_adapter *a, const llm_model *m, bool beside, bool *used,
                            ggl_error *err) {
    const llm_adapter_use use = {.adapter = a, .scale = 1, .beside = beside};
    return build(m, (llm_arch_params){.adapter = &use, .n_adapters = 1, .used = used}, err);
}

/* Fails because neither file has the tensor of a pair; `f` is the one that it would be in. */
static ggl_status refuse_unknown(const llm_adapter *a, const char *name, const ggl_gguf *f,
                                 ggl_error *err) {
    ggl_nearest near = ggl_nearest_to(name);
    ggl_str best = {"", 0};
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_str other = ggl_gguf_tensor_at(f, i)->name;
        ggl_nearest_try(&near, other.s, other.n);
        best = near.best == other.s ? other : best;
    }
    const int n = best.n < 200 ? (int)best.n : 200;
    return ggl_fail(err, GGL_NOT_FOUND,
                    "%s: %.200s.lora_a: neither the model nor the eye or ear beside it has a "
                    "tensor %.200s%s%.*s%s",
                    llm_adapter_name(a), name, name, n ? "; did you mean " : "", n, best.s,
                    n ? "?" : "; is it another model's adapter?");
}

/* Checks that each pair changes one of the two, and counts them. */
static ggl_status count(const llm_adapter *a, const bool *of_model, const bool *of_eye,
                        const llm_model *m, const llm_model *eye, llm_adapter_parts *parts,
                        ggl_error *err) {
    for (size_t i = 0; i < a->n_pairs; i++) {
        const char *name = a->pair[i].name.s;
        if (!of_model[i] && !of_eye[i])
            return refuse_unknown(a, name, llm_model_file(llm_adapter_is_of_sense(name) ? eye : m),
                                  err);
        if (of_model[i] && of_eye[i])
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: %.200s.lora_a: both the model and the eye or ear beside it have a "
                            "tensor %.200s, and it is not known which of them is meant",
                            llm_adapter_name(a), name, name);
        parts->n_model += of_model[i];
        parts->n_eye += of_eye[i];
    }
    return GGL_OK;
}

ggl_status llm_adapter_check(const llm_adapter *a, const llm_model *m, const llm_model *eye,
                             llm_adapter_parts *parts, ggl_error *err) {
    llm_adapter_parts own = {0};
    bool *used = ggl_calloc(2 * a->n_pairs, sizeof *used);
    if (!used)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = find_used(a, m, eye != NULL, used, err);
    if (st == GGL_OK && eye)
        st = find_used(a, eye, true, used + a->n_pairs, err);
    if (st == GGL_OK && eye)
        st = count(a, used, used + a->n_pairs, m, eye, &own, err);
    else
        own.n_model = a->n_pairs;
    ggl_free(used);
    if (parts)
        *parts = own;
    return st;
}

ggl_status llm_control_check(const llm_adapter_use *use, const llm_model *m, ggl_error *err) {
    return build(m, (llm_arch_params){.adapter = use, .n_adapters = 1}, err);
}

bool llm_adapter_can_vary(const llm_adapter *a, const llm_model *m) {
    const llm_adapter_use use = {.adapter = a, .scale = 1, .task = 1, .varies = true};
    for (size_t i = 0; i < a->n_pairs; i++)
        if (a->pair[i].magnitude)
            return false;
    return build(m, (llm_arch_params){.adapter = &use, .n_adapters = 1}, NULL) == GGL_OK;
}

ggl_status llm_adapter_count(const llm_adapter *a, const llm_model *m, size_t *n, ggl_error *err) {
    bool *used = ggl_calloc(a->n_pairs, sizeof *used);
    *n = 0;
    if (!used)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const bool is_sense = llm_arch_is_sense(llm_model_arch(m));
    ggl_status st = find_used(a, m, true, used, err);
    for (size_t i = 0; i < a->n_pairs && st == GGL_OK; i++) {
        const char *name = a->pair[i].name.s;
        *n += used[i];
        if (!used[i] && llm_adapter_is_of_sense(name) == is_sense)
            st = ggl_fail(err, GGL_NOT_FOUND,
                          "%s: %.200s.lora_a: %.200s has no tensor %.200s; is it another model's "
                          "adapter?",
                          llm_adapter_name(a), name, ggl_gguf_name(llm_model_file(m)), name);
    }
    ggl_free(used);
    return st == GGL_OK && *n == 0
               ? ggl_fail(err, GGL_NOT_FOUND, "%s: it changes no tensor of %.200s",
                          llm_adapter_name(a), ggl_gguf_name(llm_model_file(m)))
               : st;
}

ggl_status llm_adapter_factors(const llm_model *m,
                               void (*fn)(void *ctx, const char *weight, const char *factor),
                               void *ctx, ggl_error *err) {
    return build(m, (llm_arch_params){.scaled = fn, .ctx = ctx}, err);
}
