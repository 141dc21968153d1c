/* Options of models that write by diffusion, of llm-cli and llm-server. */
#ifndef TOOLS_DIFFUSION_OPTIONS_H
#define TOOLS_DIFFUSION_OPTIONS_H

#include "args.h"
#include "llm/internal/diffuse.h"

typedef struct diffusion_options {
    int64_t steps, block;
    int algorithm; /* index into diffusion_algorithms */
    double eps, alg_temp, cfg;
} diffusion_options;

#define DIFFUSION_DEFAULTS                                                                         \
    { .algorithm = LLM_DIFFUSE_CONFIDENCE }

/* Names, then numbers, of llm_diffusion_order. */
extern const char *const diffusion_algorithms[];

/* The schedule that the options say. */
llm_diffusion diffusion_schedule(const diffusion_options *o);

/* The first flag whose value is not its default; NULL: none. */
const char *diffusion_options_given(const diffusion_options *o);

/* clang-format off */
#define DIFFUSION_OPTIONS(o)                                                                       \
    {"--diffusion-steps", ARG_INT, &(o).steps, .value = "N",                                       \
     .help = "of a diffusion model: steps in which the tokens of the answer (-n, default 64) are unmasked (default " \
             "0: one for each token)", .max = 1 << 20},                                            \
    {"--diffusion-block-length", ARG_INT, &(o).block, .value = "N",                                \
     .help = "tokens of a block; one block is unmasked after the other (default 0: all at once)", .max = 1 << 20}, \
    {"--diffusion-eps", ARG_FLOAT, &(o).eps, .value = "E",                                         \
     .help = "without blocks: the share of masks for the last step (default 0.001)", .max = 0.999999}, \
    {"--diffusion-algorithm", ARG_CHOICE, &(o).algorithm, .value = "HOW",                          \
     .help = "which masks are replaced first: origin, entropy, margin, random or confidence "      \
             "(default), or their numbers from 0 on", .choices = diffusion_algorithms},            \
    {"--diffusion-alg-temp", ARG_FLOAT, &(o).alg_temp, .value = "T",                               \
     .help = "randomness of that order (default 0: none)", .max = 100},                            \
    {"--diffusion-cfg-scale", ARG_FLOAT, &(o).cfg, .value = "S",                                   \
     .help = "how far to go away from what the model writes without the prompt (default 0)", .max = 100}
/* clang-format on */

#endif
