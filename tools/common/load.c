#include "load.h"

#include "args.h"
#include "ggl/backends.h"
#include "process.h"
#include "progress.h"
#include "work_threads.h"

static bool on_progress(void *ctx, size_t done, size_t total) {
    return progress_share(ctx, done, total) && !process_stopped;
}

static void on_note(void *ctx, const char *text) {
    (void)ctx;
    tool_note(NULL, "%s", text);
}

static llm_load_params load_params(const char *arch) {
    return (llm_load_params){.size = sizeof(llm_load_params),
                             .arch_path = arch,
                             .open_backend = ggl_backend_open,
                             .close_backend = ggl_backend_close,
                             .n_threads = work_threads(),
                             .progress = on_progress,
                             .note = on_note};
}

ggl_status tool_load_model(llm_model **out, const char *path, const llm_model_params *p,
                           ggl_error *err) {
    if (!llm_load_converts(path))
        return llm_model_open(out, path, p, err);
    const llm_load_params load = load_params(p->arch_path);
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
    llm_load_params load = load_params(NULL);
    load.vocab_only = vocab_only;
    progress_begin(PROGRESS_BYTES, 0, "reading %s", path);
    const ggl_status st = llm_load(out, path, p, &load, err);
    progress_end();
    return st;
}
