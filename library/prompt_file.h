/* A file from which generations start, and in which prompts are kept, as llm-cli --prompt-cache has it. Unlike llm_restore, it takes the
 * part that file and prompt have in common; and it keeps what the context has at the end of the prompt, also of models that cannot go
 * back to it. */
#ifndef LIBRARY_PROMPT_FILE_H
#define LIBRARY_PROMPT_FILE_H

#include "llm/llm.h"

typedef struct llm_prompt_file llm_prompt_file;

/* For an open context, which is borrowed; further generations keep what the file needs. Unless it is read_only, checks that the file can
 * be written. Close *out also after a failure. GGL_USAGE: another file has that name; GGL_IO, GGL_NOMEM. */
ggl_status llm_prompt_file_open(llm_prompt_file **out, llm_context *c, const char *path,
                                bool read_only, ggl_error *err);
void llm_prompt_file_close(llm_prompt_file *f); /* NULL is fine */
/* What llm_begin gets. */
typedef struct llm_file_prompt {
    const int32_t *id;   /* [n] */
    const int32_t *read; /* [n_read], as of llm_generate_params */
    size_t n, n_read;
} llm_file_prompt;
/* Sets the sequence to what the file has of a prompt, *n_held tokens of id, before llm_begin. If the model reads the prompt as a text,
 * these are all but one, as it writes a token of its own. why->status: why it is not used; GGL_OK: it is. Statuses of llm_restore. */
ggl_status llm_prompt_file_load(llm_prompt_file *f, const llm_file_prompt *prompt, int64_t *n_held,
                                ggl_error *why, ggl_error *err);
/* Writes the file, with the prompt, or with all of the sequence. GGL_NOT_FOUND, GGL_UNSUPPORTED: it cannot be kept any more. */
ggl_status llm_prompt_file_save(llm_prompt_file *f, const llm_file_prompt *prompt, bool all,
                                ggl_error *err);

#endif
