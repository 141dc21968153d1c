/* The options of sampling, as rows of a table for args_parse. */
#ifndef TOOLS_SAMPLING_OPTIONS_H
#define TOOLS_SAMPLING_OPTIONS_H

#include "args.h"
#include "llm/internal/sampler.h"
#include "llm/internal/tokenizer.h"

typedef struct sampling_options {
    double temp, top_p, min_p, typ_p, top_n_sigma, xtc_probability, xtc_threshold;
    double dynatemp_range, dynatemp_exponent, repeat_penalty, presence_penalty, frequency_penalty;
    double dry_multiplier, dry_base, mirostat_tau, mirostat_eta;
    int64_t top_k, repeat_last_n, dry_allowed_length, dry_last_n;
    int mirostat; /* index into sampling_mirostat_choices */
    const char *names, *letters;
    arg_list breakers, biases;
    /* Set by sampling_options_check. */
    uint8_t stage[LLM_SAMPLER_N_STAGES];
    int32_t n_stages;
    ggl_str *breaker;
    llm_logit_bias *bias;
    size_t n_breakers, n_biases;
} sampling_options;

extern const char *const sampling_mirostat_choices[];

#define SAMPLING_DEFAULTS                                                                          \
    {                                                                                              \
        .temp = 0.8, .top_p = 0.95, .min_p = 0.05, .typ_p = 1, .top_n_sigma = -1,                  \
        .xtc_threshold = 0.1, .dynatemp_exponent = 1, .repeat_penalty = 1, .dry_base = 1.75,       \
        .mirostat_tau = 5, .mirostat_eta = 0.1, .top_k = 40, .repeat_last_n = 64,                  \
        .dry_allowed_length = 2, .dry_last_n = -1                                                  \
    }

/* clang-format off */
#define SAMPLING_OPTIONS(o)                                                                        \
    {"--samplers", ARG_STRING, &(o).names, .value = "NAMES",                                       \
     .help = "the samplers, in order, separated by ; (default: penalties; dry; top_n_sigma; "   \
             "top_k; typ_p; top_p; min_p; xtc; temperature)"},                                     \
    {"--sampling-seq --sampler-seq", ARG_STRING, &(o).letters, .value = "LETTERS",                 \
     .help = "the same as a letter for each (default: edskypmxt)"},                                          \
    {"--temp --temperature", ARG_FLOAT, &(o).temp, .value = "T",                                   \
     .help = "randomness; 0: always the likeliest token (default 0.8)", .min = 0, .max = 1000},    \
    {"--top-k", ARG_INT, &(o).top_k, .value = "N",                                                 \
     .help = "choose from the N likeliest tokens; 0: from all (default 40)", .min = 0,             \
     .max = INT32_MAX},                                                                            \
    {"--top-p", ARG_FLOAT, &(o).top_p, .value = "P",                                               \
     .help = "choose from the likeliest tokens whose probabilities add up to P; 1: from all (default 0.95)", .min = 0, \
     .max = 1},                                                                                    \
    {"--min-p", ARG_FLOAT, &(o).min_p, .value = "P",                                               \
     .help = "leave out tokens less probable than P times the likeliest (default 0.05)", .min = 0, .max = 1},    \
    {"--typical --typical-p", ARG_FLOAT, &(o).typ_p, .value = "P",                                 \
     .help = "choose from the most typical tokens whose probabilities add up to P; 1: from all (default)",          \
     .min = 0, .max = 1},                                                                          \
    {"--top-nsigma --top-n-sigma", ARG_FLOAT, &(o).top_n_sigma, .value = "N",                      \
     .help = "leave out tokens whose logit is more than N standard deviations below the largest; -1: none (default)",      \
     .min = -1, .max = 1000},                                                                      \
    {"--xtc-probability", ARG_FLOAT, &(o).xtc_probability, .value = "P",                           \
     .help = "how often, 0 to 1, XTC leaves out the likeliest tokens (default 0: never)", .min = 0,           \
     .max = 1},                                                                                    \
    {"--xtc-threshold", ARG_FLOAT, &(o).xtc_threshold, .value = "P",                               \
     .help = "XTC leaves out all tokens of at least this probability, except the least likely of them (default 0.1)", .min = 0,        \
     .max = 1},                                                                                    \
    {"--dynatemp-range", ARG_FLOAT, &(o).dynatemp_range, .value = "R",                             \
     .help = "let the temperature vary by up to R, higher where the model is less sure (default 0)", .min = 0, .max = 1000}, \
    {"--dynatemp-exp", ARG_FLOAT, &(o).dynatemp_exponent, .value = "X",                            \
     .help = "with --dynatemp-range: exponent of the entropy (default 1)", .min = 0, .max = 1000},                         \
    {"--mirostat", ARG_CHOICE, &(o).mirostat, .value = "N", .choices = sampling_mirostat_choices,  \
     .help = "2: keep the surprise of each token near a target, instead of top-k, top-p and the like (default 0: off)"},                                                                           \
    {"--mirostat-ent", ARG_FLOAT, &(o).mirostat_tau, .value = "TAU",                               \
     .help = "with --mirostat: the target, in bits (default 5)", .min = 0, .max = 1000},                           \
    {"--mirostat-lr", ARG_FLOAT, &(o).mirostat_eta, .value = "ETA",                                \
     .help = "with --mirostat: the learning rate (default 0.1)", .min = 0, .max = 1000},                            \
    {"--repeat-penalty", ARG_FLOAT, &(o).repeat_penalty, .value = "X",                             \
     .help = "make recent tokens less likely; 1: off (default)", .min = 0.001, .max = 1000},       \
    {"--presence-penalty", ARG_FLOAT, &(o).presence_penalty, .value = "X",                         \
     .help = "subtract X from the logits of recent tokens (default 0)", .min = -1000,              \
     .max = 1000},                                                                                 \
    {"--frequency-penalty", ARG_FLOAT, &(o).frequency_penalty, .value = "X",                       \
     .help = "subtract X from a recent token's logit for each time that it occurs (default 0)", .min = -1000, .max = 1000},          \
    {"--repeat-last-n", ARG_INT, &(o).repeat_last_n, .value = "N",                                 \
     .help = "how many tokens count as recent for these penalties; -1: all (default 64)", .min = -1, .max = INT32_MAX},        \
    {"--dry-multiplier", ARG_FLOAT, &(o).dry_multiplier, .value = "X",                             \
     .help = "subtract X * BASE^(length - allowed length) from the logits of tokens that continue a repetition of that length (default 0: off)", .min = 0, .max = 1000},                           \
    {"--dry-base", ARG_FLOAT, &(o).dry_base, .value = "BASE", .help = "BASE of --dry-multiplier, at least 1 (default 1.75)",            \
     .min = 1, .max = 1000},                                                                       \
    {"--dry-allowed-length", ARG_INT, &(o).dry_allowed_length, .value = "N",                       \
     .help = "allow repetitions shorter than N tokens (default 2)", .min = 0, .max = INT32_MAX},           \
    {"--dry-penalty-last-n", ARG_INT, &(o).dry_last_n, .value = "N",                               \
     .help = "tokens in which to look for repetitions; -1: the whole context (default)", .min = -1, .max = INT32_MAX},       \
    {"--dry-sequence-breaker", ARG_LIST, &(o).breakers, .value = "TEXT",                           \
     .help = "a repetition does not extend across this text; repeatable; none: no such text (default: newline, colon, quotation mark, asterisk)"},                                         \
    {"-l --logit-bias", ARG_LIST, &(o).biases, .value = "ID+X",                                    \
     .help = "add X to the logit of token ID; ID-X subtracts X, and ID-inf forbids the token; repeatable"}
/* clang-format on */

/* Reads the order of stages and the lists. escape: resolve \n and the like in breakers. Can be
 * called again after --samplers changed; the lists must be as they were. Returns -1, or an exit code
 * after an error. */
int sampling_options_check(const char *tool, sampling_options *o, bool escape);
/* Checks that the biases' tokens exist. Returns as above. */
int sampling_options_check_vocab(const char *tool, const sampling_options *o, int64_t n_vocab);
/* The result borrows from o. */
llm_sampler_params sampling_params(const sampling_options *o);
void sampling_options_fini(sampling_options *o);
/* Makes the sampler of the options, which remembers n_ctx tokens. Returns -1, or an exit code after an
 * error. t may be NULL. */
int sampling_open(llm_sampler **out, const char *tool, const sampling_options *o, uint64_t seed,
                  const llm_tokenizer *t, int64_t n_vocab, int64_t n_ctx);

#endif
