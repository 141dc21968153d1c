#include "load.h"

#include <string.h>
#include <strings.h>

#include "args.h"
#include "ggl/backends.h"
#include "process.h"
#include "progress.h"
#include "quant/quant_mix.h"
#include "work_threads.h"

/* Adds a name, unless it is there in another case; returns the number of names. */
static int add_name(const char **name, int n, const char *one) {
    for (int i = 0; i < n; i++)
        if (strcasecmp(name[i], one) == 0)
            return n;
    name[n] = one;
    return n + 1;
}

static bool on_progress(void *ctx, size_t done, size_t total) {
    return progress_share(ctx, done, total) && !process_stopped;
}

static void on_note(void *ctx, const char *text) {
    (void)ctx;
    tool_note(NULL, "%s", text);
}

const char *const *tool_load_types(void) {
    enum { MOST = 160 };
    static const char *name[MOST + 1] = {"auto", "f32", "f16", "bf16"};
    int n = 4;
    for (int k = 0; llm_quant_mix_at(k) && n < MOST; k++)
        n = add_name(name, n, llm_quant_mix_at(k)->name);
    for (int k = 0; ggl_type_at(k) && n < MOST; k++)
        if (llm_quant_type_usable(ggl_type_at(k)))
            n = add_name(name, n, ggl_type_at(k)->name);
    name[n] = NULL;
    return name;
}

static llm_load_params load_params(const char *arch, int type) {
    return (llm_load_params){.size = sizeof(llm_load_params),
                             .arch_path = arch,
                             .type = type > 0 ? tool_load_types()[type] : NULL,
                             .open_backend = ggl_backend_open,
                             .close_backend = ggl_backend_close,
                             .n_threads = work_threads(),
                             .progress = on_progress,
                             .note = on_note};
}

ggl_status tool_load_model(llm_model **out, const char *path, const llm_model_params *p, int type,
                           ggl_error *err) {
    if (type <= 0 && !llm_load_converts(path))
        return llm_model_open(out, path, p, err);
    const llm_load_params load = load_params(p->arch_path, type);
    llm_model_params own = *p;
    own.load = &load;
    progress_begin(PROGRESS_BYTES, 0, "reading %s", path);
    const ggl_status st = llm_model_open(out, path, &own, err);
    progress_end();
    return st;
}

ggl_status tool_load_file(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          bool vocab_only, ggl_error *err) {
    if (!llm_load_converts(path))
        return ggl_gguf_open(out, path, p, err);
    llm_load_params load = load_params(NULL, 0);
    load.vocab_only = vocab_only;
    progress_begin(PROGRESS_BYTES, 0, "reading %s", path);
    const ggl_status st = llm_load(out, path, p, &load, err);
    progress_end();
    return st;
}

ggl_status tool_check_folder(const char *path, const char *arch, ggl_error *err) {
    llm_load_params load = load_params(arch, 0);
    ggl_gguf *f;
    load.vocab_only = true;
    load.note = NULL; /* printed when the model is opened */
    const ggl_status st = llm_load(&f, path, NULL, &load, err);
    ggl_gguf_close(f);
    /* A key that depends on the weights fails with the name of their file. */
    return st == GGL_NOMEM || st == GGL_OK || !strstr(err->msg, ".safetensors") ? st : GGL_OK;
}
