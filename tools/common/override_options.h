/* --override-kv, for all tools that run a model: other values of the keys of its file, for this run. */
#ifndef TOOLS_OVERRIDE_OPTIONS_H
#define TOOLS_OVERRIDE_OPTIONS_H

#include "args.h"
#include "ggl/status.h"

/* llama.cpp's flags of the rotation, each of which sets a key. */
enum {
#define OPEN_ROPE(kind, id, ...) id,
#include "open_params.def"
    N_ROPE_FLAGS
};

typedef struct tool_overrides {
    arg_list given;
    double rope[N_ROPE_FLAGS];
    int64_t orig_ctx;
    int scaling; /* among rope_scalings */
    bool has_rope[N_ROPE_FLAGS];
    /* [n], for llm_model_params, after overrides_read. */
    const char **text;
    size_t n;
    char *copy; /* of what was given, which texts point into */
} tool_overrides;

extern const char *const rope_scalings[];

/* Reads what was given into o->text. Returns -1, or an exit code after a message. */
int overrides_read(const char *tool, tool_overrides *o);
void overrides_fini(tool_overrides *o);
/* Adds to the error of a failed opening which flags set the keys that nothing reads. */
void overrides_advise(ggl_error *err);

#endif
