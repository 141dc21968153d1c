/* --choose: which of several labels comes after the prompt. */
#ifndef TOOLS_CLI_CHOOSE_H
#define TOOLS_CLI_CHOOSE_H

#include "opening.h"
#include "options.h"

/* Sets how many labels run at once, of a model that is open. */
void choose_set_session(llm_session_params *p, const cli_options *o, const llm_model *m);
/* Prints the labels, the likeliest first. text: the prompt, or with `chat` the message of the user. Returns an exit code. */
int choose_run(llm_context *c, const cli_options *o, ggl_str text, bool chat);

#endif
