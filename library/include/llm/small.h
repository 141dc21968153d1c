/* Writes a model as tables in C, for boards without an operating system. docs/small.md says what such a board needs.
 *
 *     llm_small_result r = {.size = sizeof r};
 *     if (llm_write_small("model.gguf", "plan.c", NULL, &r, &err) != GGL_OK)
 *         return fprintf(stderr, "%s\n", err.msg), 1;
 *
 * Threads: any number may call this at the same time, with different paths.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef LLM_SMALL_H
#define LLM_SMALL_H

#include "llm/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_small_params {
    size_t size;   /* sizeof(llm_small_params) */
    int64_t n_ctx; /* positions of a text; 0: the context that the model was trained with */
    const char *cache_type_k; /* as llm_open_params; NULL: f16 */
    const char *cache_type_v;
    const char *type; /* as llm_open_params.type: the weights become this while they are loaded */
    int n_threads;    /* that do so; 0: all that we may use */
    void (*note)(void *user, const char *text); /* as llm_open_params.note */
    void *user;
} llm_small_params;

/* How many bytes of a board the files take. The runtime also needs some for its code and its stack. */
typedef struct llm_small_result {
    size_t size;    /* sizeof(llm_small_result), set by the caller */
    int64_t n_ctx;  /* positions */
    int64_t n_ops;  /* operators of a step */
    size_t weights; /* constants, in flash */
    size_t words;   /* the tokenizer's tables, in flash */
    size_t ram;     /* the block that small_step gets */
    size_t cache;   /* of this, what stays from token to token */
} llm_small_result;

/* Writes the C file `path`, whose name ends with .c, and the header of the same name that ends with .h. model: as llm_open. params
 * and result may be NULL. GGL_UNSUPPORTED: an operator, an input or a tokenizer of the model is not in the runtime for
 * small boards; GGL_USAGE: n_ctx, a type, or the name of the file; GGL_LIMIT: too large; GGL_IO; and the statuses of llm_open. */
GGL_API GGL_NODISCARD ggl_status llm_write_small(const char *model, const char *path,
                                                 const llm_small_params *params,
                                                 llm_small_result *result, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
