/* Opens models by path or by the name of a built-in one. */
#include "builtin/builtin.h"
#include "context.h"
#include "ggl/internal/backends.h"

ggl_status llm_context_load(llm_model **out, const char *path, const char *arch,
                            const llm_open_params *p, ggl_error *err) {
    const llm_load_params load = {.size = sizeof load,
                                  .open_backend = ggl_backend_open,
                                  .close_backend = ggl_backend_close,
                                  .n_threads = p->n_threads > 0 ? p->n_threads
                                                                : ggl_backend_default_threads(),
                                  .progress = p->progress,
                                  .ctx = p->user};
    const llm_model_params mp = {.size = sizeof mp, .arch_path = arch, .load = &load};
    llm_builtin built_in;
    if (!path)
        return ggl_fail(err, GGL_USAGE, "llm_open needs the path of a model");
    if (!llm_builtin_find(path, &built_in))
        return llm_model_open(out, path, &mp, err);
    if (!built_in.name)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s: the built-in models are builtin:stories and builtin:chat", path);
    return llm_model_open_memory(out, built_in.data, built_in.size, built_in.name, &mp, err);
}
