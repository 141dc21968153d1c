/* One text: the prompt, and what the model writes after it. */
#ifndef TOOLS_CLI_COMPLETION_H
#define TOOLS_CLI_COMPLETION_H

#include "opening.h"
#include "generation.h"
#include "record.h"

/* What a completion takes from the rest of llm-cli. Everything is borrowed. */
typedef struct completion_setup {
    const cli_options *o;
    llm_context *ctx;
    const cli_generation *generation;
    const llm_tokens *prompt;
    ggl_str text;            /* of the prompt; s NULL: it was given as ids */
    const record_run *facts; /* for --json-output */
    bool (*progress)(void *user, int64_t n_done,
                     int64_t n); /* llm_generate_params.prompt_progress */
} completion_setup;

/* Writes the text, then the timings on stderr. Returns -1, or an exit code after a message. */
int completion_run(const completion_setup *s);

#endif
