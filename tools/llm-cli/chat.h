/* Conversations with a model, and texts that a person continues by typing. */
#ifndef TOOLS_CHAT_H
#define TOOLS_CHAT_H

#include "opening.h"
#include "generation.h"
#include "record.h"

/* What a conversation takes from the rest of llm-cli. Everything is borrowed. */
typedef struct chat_setup {
    const cli_options *o;
    const char *model_name;
    llm_context *ctx;
    cli_generation *generation;
    ggl_str first; /* first message of the user; for interactive_run: the text; s NULL: none */
    ggl_str
        attached; /* marks of pictures that come before the first message that is typed; s NULL: none */
    const record_run *facts; /* for --json-output */
    bool (*progress)(void *user, int64_t n_done,
                     int64_t n); /* llm_generate_params.prompt_progress */
} chat_setup;

/* True if a prompt with pictures or sounds is a question that is to be answered, as one turn of a conversation: the model has a template, and
 * nothing asks for a text that goes on (-no-cnv). */
bool chat_answers_media(const cli_options *o, const ggl_gguf *file);
/* True if the options and the model's file ask for a conversation. file NULL: there is no -m, and the
 * built-in chat model would be the one. */
bool chat_begins(const cli_options *o, const ggl_gguf *file);
/* True if a terminal asked for a chat, and the model has no template for one. */
bool chat_lacks_template(const cli_options *o, const ggl_gguf *file);
/* Prints a note about -st and -cnv if a text is continued although the file has a chat template. */
void chat_note_template(const cli_options *o, const ggl_gguf *file);

/* Converse until the user ends it. Return the exit code. */
int chat_run(const chat_setup *s);
int interactive_run(const chat_setup *s); /* -i: without a template */

#endif
