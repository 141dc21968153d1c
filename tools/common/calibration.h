/* The texts that llm-perplexity, llm-imatrix and llm-quantize read, or let the model write, with their messages. */
#ifndef TOOLS_CALIBRATION_H
#define TOOLS_CALIBRATION_H

#include "llm/llm.h"

enum { CALIBRATION_WINDOW = 512 }; /* tokens of a chunk where the model's context is not smaller */

/* A text as tokens, and the chunks into which it is cut. Set it to zero first. */
typedef struct calibration {
    int32_t *id; /* [n] */
    size_t n;
    int64_t n_ctx; /* tokens of a chunk */
    int64_t n_chunk;
} calibration;

/* Checks that the model has a tokenizer. Returns -1, or an exit code after a message. */
int calibration_check(const char *tool, const llm_context *c);
/* Sets t->n_ctx: n_ctx, or, if it was not given, what fits the model, which was trained on `own` tokens. Prints notes. */
void calibration_choose(calibration *t, const char *tool, int64_t own, int64_t n_ctx, bool given);
/* Reads the file `path` ("-": standard input), less a newline at its end; with `special`, names of special tokens stand for these. The
 * text must have two chunks at least. Returns -1, or an exit code after a message. */
int calibration_read(calibration *t, const char *tool, const llm_context *c, const char *path,
                     bool special);
/* Returns whether a path means a text that the model writes, instead of a file: "self". */
bool calibration_is_own(const char *path);
/* Lets the model write n_chunk chunks, with progress. Returns -1, or an exit code after a message. */
int calibration_write(calibration *t, const char *tool, llm_context *c, int64_t n_chunk);
void calibration_fini(calibration *t);

#endif
