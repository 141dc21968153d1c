/* --override-kv, for all tools that run a model: other values of the keys of its file, for this run. */
#ifndef TOOLS_OVERRIDE_OPTIONS_H
#define TOOLS_OVERRIDE_OPTIONS_H

#include "args.h"
#include "ggl/status.h"

/* llama.cpp's flags of the rotation, each of which sets a key. */
enum {
    ROPE_SCALING,
    ROPE_SCALE,
    ROPE_FREQ_SCALE,
    ROPE_FREQ_BASE,
    YARN_ORIG_CTX,
    YARN_EXT_FACTOR,
    YARN_ATTN_FACTOR,
    YARN_BETA_FAST,
    YARN_BETA_SLOW,
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

#define ROPE_NUMBER(o, k, flag, low, high, about)                                                  \
    {                                                                                              \
        flag, ARG_FLOAT, &(o).rope[k], .value = "N", .min = (low), .max = (high),                  \
                                       .given = &(o).has_rope[k], .help = about                    \
    }

/* Rows of an option table, for a tool_overrides. */
#define OVERRIDE_OPTIONS(o)                                                                        \
    {"--override-kv", ARG_LIST, &(o).given, .value = "KEY=TYPE:VALUE,..",                          \
     .help = "use this value of a key instead of the file's, or add "                              \
             "it, for this run; TYPE is int, float, bool or str, a "                               \
             "KEY .x is that of the architecture; repeatable"},                                    \
        {"--rope-scaling",                                                                         \
         ARG_CHOICE,                                                                               \
         &(o).scaling,                                                                             \
         .value = "KIND",                                                                          \
         .choices = rope_scalings,                                                                 \
         .given = &(o).has_rope[ROPE_SCALING],                                                     \
         .help = "how positions are stretched for a longer context: none, linear or yarn"},        \
        ROPE_NUMBER(o, ROPE_SCALE, "--rope-scale", 0.001, 1e6, "stretch the context to N times"),  \
        ROPE_NUMBER(o, ROPE_FREQ_SCALE, "--rope-freq-scale", 0, 1000,                              \
                    "the same, for 1/N times; 0: as the file says"),                               \
        ROPE_NUMBER(o, ROPE_FREQ_BASE, "--rope-freq-base", 0, 1e15,                                \
                    "base of the rotation; 0: the file's"),                                        \
        {"--yarn-orig-ctx",                                                                        \
         ARG_INT,                                                                                  \
         &(o).orig_ctx,                                                                            \
         .value = "N",                                                                             \
         .max = INT32_MAX,                                                                         \
         .given = &(o).has_rope[YARN_ORIG_CTX],                                                    \
         .help = "context that the model was trained on; 0: as the file says"},                    \
        ROPE_NUMBER(o, YARN_EXT_FACTOR, "--yarn-ext-factor", -1, 1e6,                              \
                    "share of YaRN: 0 stretches all frequencies alike; -1: as the file says"),     \
        ROPE_NUMBER(o, YARN_ATTN_FACTOR, "--yarn-attn-factor", -1, 1e6,                            \
                    "magnitude without YaRN; -1 and 1: as the file says"),                         \
        ROPE_NUMBER(o, YARN_BETA_FAST, "--yarn-beta-fast", -1, 1e6,                                \
                    "turns above which YaRN stretches nothing; -1: as the file says"),             \
        ROPE_NUMBER(o, YARN_BETA_SLOW, "--yarn-beta-slow", -1, 1e6,                                \
                    "turns below which YaRN stretches in full; -1: as the file says")

/* Reads what was given into o->text. Returns -1, or an exit code after a message. */
int overrides_read(const char *tool, tool_overrides *o);
void overrides_fini(tool_overrides *o);
/* Adds to the error of a failed opening which flags set the keys that nothing reads. */
void overrides_advise(ggl_error *err);

#endif
