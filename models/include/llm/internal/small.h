/* Writes a model as tables in C, which the runtime in small/ runs on a board without an operating system: the operators of one token
 * with the places of their operands in one block of RAM, the weights as constants, and the tokenizer. docs/small.md.
 *
 * Threads: any number may call llm_small_write at the same time, with different paths. */
#ifndef LLM_INTERNAL_SMALL_H
#define LLM_INTERNAL_SMALL_H

#include "ggl/backend.h"
#include "llm/internal/arch.h"
#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_small_source {
    const llm_arch *arch;
    const llm_arch_source *weights;
    const char *name; /* of the model, for messages */
    llm_arch_ignore ignore;
    const llm_tokenizer *words;        /* NULL: the plan gets no tokenizer */
    int64_t n_ctx;                     /* positions */
    ggl_type type_k, type_v;           /* of the cache */
    ggl_backend *fold, *fold_products; /* compute constants: ggl_graph_fold_by */
} llm_small_source;

/* Bytes. */
typedef struct llm_small_bytes {
    int64_t n_ctx, n_vocab, n_ops;
    size_t weights, words; /* in flash: weights and constants; the tokenizer */
    size_t ram;            /* of these, stores are what the context takes */
    size_t stores;
    char no_words[256]; /* why the plan has no tokenizer although `words` is one; "": it has one */
} llm_small_bytes;

/* Writes the file `path`, whose name ends with .c, and the header beside it. GGL_UNSUPPORTED: the model has an operator or an input
 * that the runtime lacks, which the message names; GGL_LIMIT: it does not fit into 31 bits; GGL_USAGE: n_ctx or the name
 * of the file; and the statuses of llm_arch_build and ggl_new_file_open. */
GGL_NODISCARD ggl_status llm_small_write(const llm_small_source *source, const char *path,
                                         llm_small_bytes *out, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
