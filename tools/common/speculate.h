/* Speculative decoding: --lookup, --draft and their flags. */
#ifndef TOOLS_SPECULATE_H
#define TOOLS_SPECULATE_H

#include "args.h"
#include "guessing.h"
#include "placement_options.h"

typedef struct speculate_options {
    bool lookup;
    bool own;          /* layers of the model itself guess: --draft without a file */
    const char *draft; /* a file; NULL: none */
    int64_t n_max, n_min, n_ctx;
    double p_min;
    bool max_given, min_given, p_min_given;
    bool always; /* also where guesses do not pay */
    bool
        draft_comes; /* a draft will be downloaded (common/hub_options.h); then `draft` names its file */
    placement_options placement; /* of the draft: only devices and n_gpu_layers */
} speculate_options;

#define SPECULATE_DEFAULTS                                                                         \
    { .n_max = 16, .p_min = 0.75 }

/* clang-format off */
#define SPECULATE_OPTIONS(o)                                                                       \
    {NULL, .help = "speed"},                                                                       \
    {"--lookup", ARG_FLAG, &(o).lookup,                                                            \
     .help = "guess the next tokens from earlier text, and check the guesses; faster where text repeats"},  \
    {"-md --model-draft --draft", ARG_STRING, &(o).draft, .value = "MODEL", .missing = speculate_own,    \
     .help = "let a smaller model with the same tokenizer guess the next tokens, or, without MODEL, layers of the model itself " \
             "that guess, if it has some; faster, and the text stays the same"}, \
    {"--draft-max --draft-n", ARG_INT, &(o).n_max, .value = "N",                                   \
     .help = "guess at most N tokens at once (default 16)", .min = 1, .max = LLM_GUESS_MOST,         \
     .given = &(o).max_given},                                                                     \
    {"--draft-min --draft-n-min", ARG_INT, &(o).n_min, .value = "N",                               \
     .help = "ignore guesses of fewer than N tokens (default 0)", .min = 0, .max = LLM_GUESS_MOST,              \
     .given = &(o).min_given},                                                                     \
    {"--draft-p-min", ARG_FLOAT, &(o).p_min, .value = "P",                                         \
     .help = "stop guessing when the draft's best token is less probable than P (default 0.75)", .min = 0, .max = 1, \
     .given = &(o).p_min_given},                                                                   \
    {"--guess-always", ARG_FLAG, &(o).always,                                                      \
     .help = "use all guesses, also where they are measured to make generation slower"},           \
    {"-cd --ctx-size-draft", ARG_INT, &(o).n_ctx, .value = "N",                                    \
     .help = "context of the draft model (default 0: as -c)", .min = 0, .max = 1 << 30},                 \
    {"-devd --device-draft", ARG_STRING, &(o).placement.devices, .value = "NAME,..",               \
     .typed = (o).placement.devices_flag,                                                          \
     .help = "devices that the draft model runs on (default: the CPU)"},                                         \
    {"-ngld --n-gpu-layers-draft --gpu-layers-draft", ARG_INT, &(o).placement.n_gpu_layers,        \
     .value = "N", .help = "run the draft model's last N layers on the device", .min = 0, .max = 1e6,        \
     .given = &(o).placement.n_gpu_layers_given}
/* clang-format on */

/* The value of --draft without a file. */
extern const char speculate_own[];
/* Checks the options against each other, and sets `own`. Returns -1, or an exit code after a message. */
int speculate_check(const char *tool, speculate_options *o);
/* Most tokens that are guessed at once; 0 if none are. The session needs a row more. */
int64_t speculate_n_max(const speculate_options *o);
/* The choice, which borrows from o. */
llm_guessing_choice speculate_choice(const char *tool, const speculate_options *o);
/* Reports why llm_guessing_open failed, which gave st, misused and err. Returns an exit code. */
int speculate_tell(const char *tool, const char *draft, ggl_status st, bool misused,
                   ggl_error *err);

#endif
