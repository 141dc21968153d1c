/* Prompt caches in llm-cli: --prompt-cache and its flags. */
#ifndef TOOLS_CLI_SAVED_PROMPT_H
#define TOOLS_CLI_SAVED_PROMPT_H

#include "common/args.h"
#include "llm/internal/tokenizer.h"
#include "llm/llm.h"
#include "prompt_file.h"

typedef struct saved_prompt_options {
    const char *path; /* NULL: none */
    bool read_only, all;
} saved_prompt_options;

/* clang-format off */
#define SAVED_PROMPT_OPTIONS(o)                                                                    \
    {"--prompt-cache", ARG_STRING, &(o).path, .value = "FILE",                                     \
     .help = "start from the part of the prompt that FILE has, and save the prompt in it at the end"}, \
    {"--prompt-cache-all", ARG_FLAG, &(o).all, .help = "save the generated text, too"},            \
    {"--prompt-cache-ro", ARG_FLAG, &(o).read_only, .help = "do not change the file"}
/* clang-format on */

/* Checks the options against each other. Returns -1, or an exit code after a message. */
int saved_prompt_check(const char *tool, const saved_prompt_options *o);

typedef struct saved_prompt saved_prompt;

/* For an open context, which is borrowed. *out is NULL without --prompt-cache. Returns -1, or an exit code after a message. */
int saved_prompt_open(saved_prompt **out, const char *tool, const saved_prompt_options *o,
                      llm_context *c);
void saved_prompt_close(saved_prompt *s); /* NULL is fine */
/* Sets the sequence to what the file has of the prompt, before llm_begin. Problems with the file are only noted. s may be NULL. */
ggl_status saved_prompt_load(saved_prompt *s, const llm_file_prompt *prompt, ggl_error *err);
/* Tokens of the prompt that came from the file. */
int64_t saved_prompt_n_held(const saved_prompt *s);
/* Writes the file at the end, if it does not have all of the prompt. False, after a message: it could not. */
bool saved_prompt_write(saved_prompt *s, const llm_file_prompt *prompt);

#endif
