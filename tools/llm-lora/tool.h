/* Functions that the commands of llm-lora share. */
#ifndef TOOLS_LORA_TOOL_H
#define TOOLS_LORA_TOOL_H

#include "common/args.h"
#include "common/gguf_copy.h"

/* A command; argv[0] is its name, such as "merge". Returns the exit code. */
typedef int lora_command(int argc, char **argv);
lora_command lora_convert, lora_extract, lora_merge, lora_show;

/* The two tensors that change a weight: W + scale * rows * columns. */
typedef struct lora_pair {
    const ggl_gguf_tensor *rows;    /* [rank, out] or [rank, out, n] */
    const ggl_gguf_tensor *columns; /* [in, rank], [in, rank, n]; of the embedding [rank, in] */
    bool flipped;                   /* the latter */
    int64_t rank;
} lora_pair;
/* Finds the pair of a weight in an adapter's file, which llm_adapter_open has checked. False: it has
 * none. */
bool lora_find_pair(const ggl_gguf *adapter, ggl_str name, lora_pair *out);
/* Decodes the columns of matrix m of the pair to out[rank][in]. False: out of memory. */
bool lora_columns(const lora_pair *p, int64_t m, int64_t n_in, float *out);
/* Decodes row `row` of matrix m to out[rank]. */
void lora_row(const lora_pair *p, int64_t m, int64_t row, float *out);

#endif
