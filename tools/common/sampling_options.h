/* The options of sampling. Their rows come into a table for args_parse by
 *
 *     #define SAMPLING o->sampling
 *     #include "common/sampling_options.def" */
#ifndef TOOLS_SAMPLING_OPTIONS_H
#define TOOLS_SAMPLING_OPTIONS_H

#include "args.h"
#include "llm/internal/sampler.h"
#include "llm/internal/tokenizer.h"
#include "opening.h"

/* Types of the kinds of numbers (samplers.def). */
typedef double sampling_FLOAT;
typedef int64_t sampling_INT, sampling_TOP_K;
typedef int sampling_MIROSTAT; /* index into sampling_mirostat_choices */

typedef struct sampling_options {
#define SAMPLER_NUMBER(kind, name, ...) sampling_##kind name;
#include "llm/internal/samplers.def"
    const char *names, *letters;
    arg_list breakers, biases;
    bool given[LLM_SAMPLER_N_NUMBERS]; /* by an option */
    /* Set by sampling_options_check. */
    uint8_t stage[LLM_SAMPLER_N_STAGES];
    int32_t n_stages;
    ggl_str *breaker;
    llm_logit_bias *bias;
    size_t n_breakers, n_biases;
} sampling_options;

extern const char *const sampling_mirostat_choices[];

extern const sampling_options sampling_defaults;

/* Reads the order of stages and the lists. escape: resolve \n and the like in breakers. Can be
 * called again after --samplers changed; the lists must be as they were. Returns -1, or an exit code
 * after an error. */
int sampling_options_check(const char *tool, sampling_options *o, bool escape);
/* Checks that the biases' tokens exist. Returns as above. */
int sampling_options_check_vocab(const char *tool, const sampling_options *o, int64_t n_vocab);
/* Takes over what the model's file says, where no option does. o borrows from *file. */
void sampling_options_resolve(sampling_options *o, const llm_file_sampling *file);
/* Notes what it takes over, and what of the file is not used. opening: of the context. */
void sampling_options_note(const char *tool, const sampling_options *o, const llm_context *c,
                           const llm_opening *opening);
/* The result borrows from o. */
llm_sampler_params sampling_params(const sampling_options *o);
void sampling_options_fini(sampling_options *o);

#endif
