/* The texts that llm-perplexity, llm-imatrix and llm-quantize read, or let the model write, with their messages. */
#ifndef TOOLS_CALIBRATION_H
#define TOOLS_CALIBRATION_H

#include "llm/internal/model.h"
#include "measure/own_text.h"

/* Sets c->n_ctx: n_ctx, or, if it was not given, what fits the model. Prints notes. */
void calibration_choose(text_chunks *c, const char *tool, const llm_model *m, int64_t n_ctx,
                        bool given);
/* Reads the file `path` ("-": standard input) as llm_text_chunks_take does. The text must have two chunks at least. Returns -1, or
 * an exit code after a message. */
int calibration_read(text_chunks *c, const char *tool, const llm_tokenizer *t, const char *path,
                     bool special);
/* Returns whether a path means a text that the model writes, instead of a file: "self". */
bool calibration_is_own(const char *path);
/* Does what llm_own_text_write does, with progress. Returns -1, or an exit code after a message. */
int calibration_write(text_chunks *c, const char *tool, llm_session *s, const llm_tokenizer *t,
                      int64_t n_chunk);

#endif
