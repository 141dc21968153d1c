/* The command line of llm-train. */
#ifndef TOOLS_TRAIN_OPTIONS_H
#define TOOLS_TRAIN_OPTIONS_H

#include "common/args.h"
#include "common/hub_options.h"
#include "llm/llm.h"
#include "llm/train.h"

#define TOOL "llm-train"

typedef struct train_options {
    const char *model, *out, *svg, *log, *teacher, *adapter, *separator, *chat_template, *arch,
        *round_to, *draft_model, *mmproj, *mmproj_out;
    char *template_text; /* of chat_template, if that is a file */
    char *save; /* where the state is saved: OUT.train. NULL: OUT is not given, or no file */
    hub_options hub;
    arg_list files, valid, matrix, learn, samples;
    bool lora, rs, dora, draft, resume, all_tokens, drop_long, no_valid, best, f32, bf16, plan;
    double valid_share, epochs, minutes, rate, rate_end, rate_hold, decay, beta1, beta2, eps,
        max_norm, alpha;
    double save_minutes, dpo_beta, teacher_share, teacher_temp, contrast_temp;
    const char *memory, *record;
    arg_list dims;
    int64_t *dim; /* [dims.n] */
    size_t memory_bytes;
    int optimizer_bits; /* which of `bits` in options.c */
    int64_t rank, draft_depth, n_ctx, n_batch, n_seq, n_ubatch, n_steps, n_warmup, n_parts,
        n_threads, save_every, valid_every, valid_max, record_top, patience, n_sample;
    uint64_t seed;
    int schedule, optimizer;
    int pooling; /* which of `poolings` in options.c; -1: as the model's file says */
} train_options;

/* Reads them. Returns -1 to continue, else the exit code. train_options_fini must be called in any case. */
int train_options_read(train_options *o, int argc, char **argv);
void train_options_fini(train_options *o);
/* What they say to the library. */
llm_training_params train_params_of(const train_options *o);

#endif
