#include "open_model.h"

#include <inttypes.h>
#include <stdio.h>

#include "args.h"
#include "builtin/builtin.h"
#include "load.h"
#include "process.h"

int tool_no_builtin(const char *tool, const char *name) {
    return tool_error(tool, 2, "-m %s: the built-in models are builtin:stories and builtin:chat",
                      name);
}

int tool_open_model(llm_model **out, const char *tool, const char *name, const llm_model_params *p,
                    int type) {
    ggl_error err = {0};
    llm_builtin built_in;
    *out = NULL;
    const bool is_built_in = llm_builtin_find(name, &built_in);
    if (is_built_in && !built_in.name)
        return tool_no_builtin(tool, name);
    if (is_built_in && type > 0)
        return tool_error(tool, 2, "--type: the built-in models are quantized already");
    const ggl_status st = is_built_in ? llm_model_open_memory(out, built_in.data, built_in.size,
                                                              built_in.name, p, &err)
                                      : tool_load_model(out, name, p, type, &err);
    if (st == GGL_CANCELLED)
        return tool_error(tool, process_stop_code(), "interrupted");
    if (st != GGL_OK)
        return tool_error(tool, 1, "%s", err.msg);
    if (ggl_gguf_lock_failed(llm_model_file(*out)))
        tool_warning(tool, "the model could not be locked into memory (see ulimit -l); it runs "
                           "without the lock");
    return -1;
}

void tool_note_context(const char *tool, const llm_model *m, int64_t n_ctx) {
    const int64_t own = llm_model_n_ctx(m);
    if (own > 0 && n_ctx > own)
        tool_note(tool,
                  "the model was trained on %" PRId64
                  " tokens at once; text beyond them may make no sense",
                  own);
}
