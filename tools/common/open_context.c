#include "open_context.h"

#include <string.h>

#include "ggl/internal/gguf.h"
#include "load.h"
#include "placement_options.h"
#include "process.h"
#include "progress.h"
#include "speculate.h"

static int tell_model(const char *tool, const llm_opening *o, ggl_status st, ggl_error *err) {
    const bool is_builtin = o->loading.path && strncmp(o->loading.path, "builtin:", 8) == 0;
    if (st == GGL_CANCELLED)
        return tool_error(tool, process_stop_code(), "interrupted");
    (void)tool_load_advise(st, o->loading.path, err);
    return tool_error(tool, is_builtin && st == GGL_USAGE ? 2 : 1, "%s", err->msg); /* --type */
}

/* Reports why the step after c->opened has failed. Returns an exit code. */
static int tell(const llm_context *c, const char *tool, const llm_opening *o,
                const tool_adapters *adapters, ggl_status st, ggl_error *err) {
    switch (c->opened + 1) {
    case LLM_OPENED_MODEL:
        return tell_model(tool, o, st, err);
    case LLM_OPENED_ADAPTERS:
        if (adapters)
            (void)adapters_within(adapters, c->n_adapters, st, err);
        return tool_error(tool, st == GGL_USAGE ? 2 : 1, "%s", err->msg);
    case LLM_OPENED_GUESSES:
        return speculate_tell(tool, o->guessing.draft, st, c->misused, err);
    default:
        if (st == GGL_CANCELLED && process_stopped)
            return process_stop_code();
        return tool_error(tool, c->misused ? 2 : 1, "%s", err->msg);
    }
}

int tool_open_context(llm_context *c, const char *tool, const llm_opening *o,
                      const tool_adapters *adapters, llm_opened until) {
    ggl_error err = {0};
    const bool is_new = c->opened < LLM_OPENED_MODEL;
    const bool has_begun = is_new && tool_loading_begin(&o->loading);
    const ggl_status st = llm_context_open(c, o, until, &err);
    if (has_begun)
        progress_end();
    if (is_new && c->model && ggl_gguf_lock_failed(llm_model_file(c->model)))
        tool_warning(tool, "the model could not be locked into memory (see ulimit -l); it runs "
                           "without the lock");
    return st == GGL_OK ? -1 : tell(c, tool, o, adapters, st, &err);
}
