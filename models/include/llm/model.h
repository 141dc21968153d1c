/* A model: a GGUF file and the descriptor that says what its keys and tensors mean.
 *
 *     llm_model *m;
 *     if (llm_model_open(&m, "model.gguf", NULL, &err) != GGL_OK) ...
 *     llm_session *s = .. (session.h) ..
 *
 * A model is only read after it was opened; sessions share it, also those of several threads. */
#ifndef LLM_MODEL_H
#define LLM_MODEL_H

#include "llm/arch.h"
#include "llm/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_model llm_model;

typedef struct llm_model_params {
    /* a descriptor, or a built-in one's name, to use instead of what the file wants; NULL: none */
    const char *arch_path;
    const char *arch_dirs;  /* folders, separated by ':', that may hold NAME.arch, NAME the file's
                            * general.architecture; NULL: as the environment variable LLM_ARCH_PATH
                            * says; "": none */
    ggl_gguf_params gguf;   /* how the file is read */
    llm_arch_ignore ignore; /* what may stay unread; copied */
} llm_model_params;

/* params may be NULL. The descriptor: arch_path, else one in arch_dirs, else the file's key
 * general.descriptor, else the built-in one of the file's general.architecture. GGL_NOT_FOUND: no
 * descriptor of that name (lists those built in); else as ggl_gguf_open and llm_arch_parse. On
 * failure *out is NULL. */
GGL_API GGL_NODISCARD ggl_status llm_model_open(llm_model **out, const char *path,
                                                const llm_model_params *params, ggl_error *err);
/* From memory that outlives the model, such as one linked into the program. */
GGL_API GGL_NODISCARD ggl_status llm_model_open_memory(llm_model **out, const void *data,
                                                       size_t size, const char *name,
                                                       const llm_model_params *params,
                                                       ggl_error *err);
GGL_API void llm_model_free(llm_model *m);

GGL_API const ggl_gguf *llm_model_file(const llm_model *m);
GGL_API const llm_arch *llm_model_arch(const llm_model *m);
/* "built-in llama.arch", "general.descriptor of model.gguf", "my.arch", "archs/llama.arch (search
 * path)". */
GGL_API const char *llm_model_arch_origin(const llm_model *m);
/* llm_model_params.ignore, for whoever builds the model's graph (llm_arch_params.ignore). */
GGL_API llm_arch_ignore llm_model_ignore(const llm_model *m);
/* The context it was trained with ({arch}.context_length); 0: the file has no such key, or one that
 * is no whole number from 1 on, which building its graph reports. */
GGL_API int64_t llm_model_n_ctx(const llm_model *m);

/* The tokenizer, made at the first call; text is all that needs it. GGL_UNSUPPORTED: of a kind that
 * is not built in. The model owns it. Several threads may call this at once; all get the same one. */
GGL_API GGL_NODISCARD ggl_status llm_model_tokenizer(llm_model *m, const llm_tokenizer **out,
                                                     ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
