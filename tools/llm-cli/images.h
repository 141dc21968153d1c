/* Pictures and sounds that the command line names. */
#ifndef TOOLS_CLI_IMAGES_H
#define TOOLS_CLI_IMAGES_H

#include "common/args.h"
#include "llm/llm.h"

/* Shows the pictures to the model and plays it the sounds, and puts each where the prompt has the next "<__media__>"; those beyond go before it. *text,
 * of *n bytes, is replaced by one that the caller frees by free(). *n_before: bytes of the marks before the prompt. Without any, the text stays, with a note if it has such places. Returns -1, or an
 * exit code after an error message. */
int images_show(llm_context *c, const arg_list *image, const arg_list *audio, char **text,
                size_t *n, size_t *n_before, double seconds[2]);

/* Returns the first mark of a picture in a text, LLM_IMAGE_MARK - 1 bytes; NULL: it has none. */
const char *images_find(const char *text, size_t n);

/* Puts "<__media__>" in the places of the marks in a text, which becomes shorter. Returns its new length. */
size_t images_hide(char *text, size_t n);

#endif
