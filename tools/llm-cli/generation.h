/* What the options of llm-cli say about generating: stop texts, grammars and sampling. */
#ifndef TOOLS_CLI_GENERATION_H
#define TOOLS_CLI_GENERATION_H

#include "opening.h"
#include "options.h"

typedef struct cli_generation {
    llm_generate_params
        p; /* for llm_begin. It lacks the callbacks, and what conversations and texts have of their own */
    llm_sampler_params sampling; /* llm_context.sampling */
    ggl_str *texts;
    const char **stop;
    grammar_text grammar;
    grammar_notes notes;
} cli_generation;

/* Reads and checks what the options say. The context, whose session is there, gets the sampling. Returns -1, or an exit code after a
 * message; close *g in any case. */
int cli_generation_open(cli_generation *g, const cli_options *o, llm_context *c);
/* Reads the options for sampling again. Returns the same. */
int cli_generation_set_sampling(cli_generation *g, const cli_options *o, llm_context *c);
void cli_generation_close(cli_generation *g);
/* Why a generation has ended, as --json-output calls it. */
const char *cli_finish(llm_finish finish);

#endif
