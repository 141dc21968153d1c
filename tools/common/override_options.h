/* --override-kv, for all tools that run a model: other values of the keys of its file, for this run. */
#ifndef TOOLS_OVERRIDE_OPTIONS_H
#define TOOLS_OVERRIDE_OPTIONS_H

#include "args.h"

typedef struct tool_overrides {
    arg_list given;
    /* [n], for llm_model_params, after overrides_read. */
    const char **text;
    size_t n;
    char *copy; /* of what was given, which texts point into */
} tool_overrides;

/* Rows of an option table, for a tool_overrides. */
#define OVERRIDE_OPTIONS(o)                                                                        \
    {                                                                                              \
        "--override-kv", ARG_LIST, &(o).given,                                                     \
            .value = "KEY=TYPE:VALUE,..",                                                          \
            .help = "use this value of a key instead of the file's, or add "                       \
                    "it, for this run; TYPE is int, float, bool or str, a "                        \
                    "KEY .x is that of the architecture; repeatable"                               \
    }

/* Reads what was given into o->text. Returns -1, or an exit code after a message. */
int overrides_read(const char *tool, tool_overrides *o);
void overrides_fini(tool_overrides *o);

#endif
