/* What a run did, as one line of JSON: enough to repeat it and to look at how sure the model was. */
#ifndef TOOLS_CLI_RECORD_H
#define TOOLS_CLI_RECORD_H

#include <stdbool.h>
#include <stdio.h>

#include "ggl/str.h"
#include "llm/internal/sampler.h"
#include "llm/internal/session.h"

typedef struct record {
    int32_t *id; /* [n] tokens that were drawn, and their logarithms of probability */
    double *logprob;
    size_t n, cap_id, cap_logprob;
    char *text; /* what was shown */
    size_t n_text, cap_text;
} record;

/* Adds a token that was drawn from logits [n_vocab]. False: out of memory. */
bool record_token(record *r, int32_t id, const float *logits, int32_t n_vocab);
/* Adds text that was shown. */
bool record_text(record *r, const char *text, size_t n);
void record_clear(record *r); /* for another text */
void record_fini(record *r);

/* Facts of the run that the record does not collect itself. */
typedef struct record_run {
    const llm_model *model;
    const llm_session *session;
    const llm_session_params *params;
    const llm_sampler_params *sampling;
    const llm_tokens *prompt_ids;
    const char *prompt_text; /* NULL: the prompt was given as ids */
    size_t n_prompt_text;
    const char *finish; /* why it ended: "stop", "length", "context", .. */
    const char *backends;
    /* Of an answer in a conversation: the text besides reasoning and calls, and the calls as elements of
     * a JSON array. content.s NULL: it is no answer. */
    ggl_str content, calls;
    int64_t n_predict, n_reused;
    double load, prompt, generation; /* seconds */
    double repacking;                /* those of the generation */
    double
        looked[2]; /* seconds for which the eye looked at n_pictures, and the ear heard n_sounds */
    size_t n_pictures, n_sounds;
} record_run;

/* Returns the line, which the caller frees by free; NULL: out of memory. */
char *record_line(const record *r, const record_run *run, size_t *n);

#endif
