/* A text of a model of the diffusion kind: shown as it unmasks. */
#ifndef TOOLS_CLI_DIFFUSION_H
#define TOOLS_CLI_DIFFUSION_H

#include "completion.h"

/* True if the context's model is of that kind. */
bool diffusion_is(const llm_context *c);
/* Refuses options that a text by diffusion cannot have. Returns -1, or an exit code after a message. */
int diffusion_check(const cli_options *o);
/* Sets *ids to the tokens of a message as the model's chat template forms it, if there is a template and `chats`; else to those
 * of the text. Returns -1, or an exit code after a message. */
int diffusion_prompt(llm_context *c, const char *text, size_t n, bool chats, llm_tokens *ids);
/* Writes the text. Returns -1, or an exit code after a message. */
int diffusion_run(const completion_setup *s);

#endif
