/* One text: the prompt, and what the model writes after it. */
#ifndef TOOLS_CLI_COMPLETION_H
#define TOOLS_CLI_COMPLETION_H

#include "opening.h"
#include "options.h"
#include "record.h"

/* What a completion takes from the rest of llm-cli. Everything is borrowed. */
typedef struct completion_setup {
    const cli_options *o;
    llm_context *ctx; /* all but a generator is opened */
    const llm_tokens *prompt;
    ggl_str text;               /* of the prompt; s NULL: it was given as ids */
    constraint *constraint;     /* NULL: every text is allowed */
    const llm_guesser *guesser; /* NULL: none */
    const record_run *facts;    /* for --json-output */
    bool (*progress)(void *ctx, int64_t n_done, int64_t n); /* as llm_generator_params.progress */
} completion_setup;

/* Writes the text, then the timings on stderr. Returns -1, or an exit code after a message. */
int completion_run(const completion_setup *s);

#endif
