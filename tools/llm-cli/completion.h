/* One text: the prompt, and what the model writes after it. */
#ifndef TOOLS_CLI_COMPLETION_H
#define TOOLS_CLI_COMPLETION_H

#include "options.h"
#include "record.h"

/* What a completion takes from the rest of llm-cli. Everything is borrowed. */
typedef struct completion_setup {
    const cli_options *o;
    const llm_model *model;
    const llm_tokenizer *tokenizer; /* NULL: not available; text is shown as ids */
    const llm_placement *placement;
    llm_session *session;
    const llm_tokens *prompt;
    ggl_str text;             /* of the prompt; s NULL: it was given as ids */
    constraint *constraint;   /* NULL: every text is allowed */
    speculation *speculation; /* NULL: nothing is guessed */
    const record_run *facts;  /* for --json-output */
    bool (*progress)(void *ctx, int64_t n_done, int64_t n); /* as llm_generator_params.progress */
    void *ctx;
} completion_setup;

/* Writes the text, then the timings on stderr. Returns -1, or an exit code after a message. */
int completion_run(const completion_setup *s);

#endif
