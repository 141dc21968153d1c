/* A model on trial: how far its predictions move when weights are changed. The text is cut as
 * llm-perplexity cuts it, into independent chunks whose second half is scored, and the divergence is the
 * one that llm-perplexity --kl-divergence prints: the mean over positions of
 * sum_i p(i) * log(p(i) / q(i)), p of the unchanged model, q of the changed one.
 *
 *     trial *t;
 *     int code = trial_open(&t, TOOL, &params);   // runs the unchanged model once
 *     if (code < 0) {
 *         .. change trial_tensor(t, name)->data ..
 *         code = trial_run(t, &kl);
 *     }
 *     trial_free(t);
 *
 * The weights are used as they lie in memory (no_repack), so that changing them there is all it takes. */
#ifndef TOOLS_TRIAL_H
#define TOOLS_TRIAL_H

#include "measure/ppl_stats.h"
#include "ggl/gguf.h"

typedef struct trial trial;

typedef struct trial_params {
    const char *model, *text;
    int64_t n_ctx;   /* tokens of a chunk; 0: 512, or the model's context if that is less */
    int64_t n_chunk; /* chunks to run, fewer if the text is shorter */
    int n_threads;   /* 0: one for each physical core */
} trial_params;

/* What identifies the text and the way it is cut. */
typedef struct trial_text {
    char sha256[65];
    int64_t n_ctx, n_chunk;
} trial_text;

/* Opens the model, in memory of its own, and the text. Returns -1, or an exit code after a message. */
int trial_open(trial **out, const char *tool, const trial_params *params);
void trial_free(trial *t);
const trial_text *trial_text_of(const trial *t);
/* A tensor, whose data may be changed between runs; NULL if none. */
const ggl_gguf_tensor *trial_tensor(const trial *t, const char *name);

/* Runs the unchanged model, which all later runs are compared with. *ppl: its perplexity; *seconds: how
 * long it took. Returns -1, or an exit code after a message, as also when the user stops it. */
int trial_base(trial *t, mean *ppl, double *seconds);
/* Runs the model as it is now. *kl: the divergence; *ppl: may be NULL. */
int trial_run(trial *t, mean *kl, mean *ppl);

#endif
