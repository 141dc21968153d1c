/* Takes adapters back to the Hugging Face folders of their models. */
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "ggl/backends.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "llm/internal/lora_folder.h"

/* Sets *type. GGL_USAGE: there is no such type of pairs. */
static ggl_status read_type(const char *name, llm_convert_type *type, ggl_error *err) {
    static const struct {
        const char *name;
        llm_convert_type type;
    } types[] = {{"f32", LLM_CONVERT_F32}, {"f16", LLM_CONVERT_F16}, {"bf16", LLM_CONVERT_BF16}};
    *type = LLM_CONVERT_AUTO;
    for (size_t k = 0; name && k < sizeof types / sizeof *types; k++)
        if (strcmp(name, types[k].name) == 0)
            *type = types[k].type;
    return name && *type == LLM_CONVERT_AUTO
               ? ggl_fail(err, GGL_USAGE, "type: '%.40s' is none of f32, f16, bf16", name)
               : GGL_OK;
}

/* Reads the caller's struct. On success the caller closes to->backend. */
static ggl_status begin(llm_lora_folder_params *to, llm_kept **kept, const llm_folder_params *p,
                        ggl_error *err) {
    llm_folder_params own = {.size = sizeof own};
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = 1, .n_threads_batch = 1};
    ggl_status s = GGL_READ_PARAMS(llm_folder_params, &own, p, err);
    *to = (llm_lora_folder_params){.arch_path = own.arch,
                                   .base_name = own.base_name,
                                   .progress = own.progress,
                                   .progress_ctx = own.user};
    if (s == GGL_OK)
        s = read_type(own.type, &to->type, err);
    if (s == GGL_OK && (own.n_threads < 0 || own.n_threads > 512))
        s = ggl_fail(err, GGL_USAGE, "n_threads must be from 0 to 512, but is %lld",
                     (long long)own.n_threads);
    to->n_threads = (int)own.n_threads;
    *kept = own.kept;
    return s == GGL_OK ? ggl_backend_open(&to->backend, "reference", &bp, err) : s;
}

static void tell_kept(llm_kept *to, const llm_lora_kept *k) {
    *to = (llm_kept){.share = llm_lora_share(k->change, k->lost), .least = 1};
    if (k->change == 0)
        return;
    to->least = k->least;
    snprintf(to->weight, sizeof to->weight, "%s", k->weight);
}

ggl_status llm_export_adapter(const char *adapter, const char *folder, const char *out,
                              const llm_folder_params *p, ggl_error *err) {
    llm_lora_folder_params own;
    llm_lora_folder_result r;
    llm_kept *none;
    llm_adapter *a = NULL;
    if (!adapter || !folder || !out)
        return ggl_fail(err, GGL_USAGE, "adapter, folder and out must not be NULL");
    ggl_status s = begin(&own, &none, p, err);
    if (s != GGL_OK)
        return s;
    s = llm_adapter_open(&a, adapter, NULL, err);
    if (s == GGL_OK)
        s = llm_lora_export(a, folder, out, &own, &r, err);
    llm_adapter_free(a);
    ggl_backend_close(own.backend);
    return s;
}

ggl_status llm_merge_adapters(const llm_lora *adapter, size_t n, const char *folder,
                              const char *out, const llm_folder_params *p, ggl_error *err) {
    llm_lora_folder_params own;
    llm_lora_folder_result r;
    llm_kept *kept;
    if (n == 0 || !adapter || !folder || !out)
        return ggl_fail(err, GGL_USAGE, "an adapter, folder and out are needed");
    ggl_status s = begin(&own, &kept, p, err);
    if (s != GGL_OK)
        return s;
    llm_adapter **opened = ggl_calloc(n, sizeof *opened);
    llm_adapter_use *use = ggl_calloc(n, sizeof *use);
    if (!opened || !use)
        s = ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < n && s == GGL_OK; i++) {
        s = adapter[i].path ? llm_adapter_open(&opened[i], adapter[i].path, NULL, err)
                            : ggl_fail(err, GGL_USAGE, "adapter %zu has no path", i);
        use[i] = (llm_adapter_use){.adapter = opened[i], .scale = adapter[i].scale};
    }
    if (s == GGL_OK)
        s = llm_lora_merge(use, n, folder, out, &own, &r, err);
    if (s == GGL_OK && kept)
        tell_kept(kept, &r.kept);
    for (size_t i = 0; i < n && opened; i++)
        llm_adapter_free(opened[i]);
    ggl_free(opened);
    ggl_free(use);
    ggl_backend_close(own.backend);
    return s;
}
