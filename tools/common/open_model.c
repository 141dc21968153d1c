#include "open_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "args.h"
#include "load.h"
#include "process.h"

int tool_open_model(llm_model **out, const char *tool, const char *name, const llm_model_params *p,
                    int type) {
    ggl_error err = {0};
    const bool is_builtin = !name || strncmp(name, "builtin:", 8) == 0;
    *out = NULL;
    const int code = name ? tool_check_builtin(tool, name) : -1;
    if (code >= 0)
        return code;
    const ggl_status st = tool_load_model(out, name ? name : "builtin:stories", p, type, &err);
    if (st == GGL_CANCELLED)
        return tool_error(tool, process_stop_code(), "interrupted");
    if (st != GGL_OK)
        return tool_error(tool, is_builtin && st == GGL_USAGE ? 2 : 1, "%s", err.msg); /* --type */
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
