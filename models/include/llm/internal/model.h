/* A model: a GGUF file, or a Hugging Face folder, and the descriptor that interprets its keys and
 * tensors.
 *
 *     llm_model *m;
 *     if (llm_model_open(&m, "model.gguf", NULL, &err) != GGL_OK) ...
 *     llm_session *s = .. (session.h) ..
 *
 * An opened model is read-only, so any number of sessions and threads may share it. */
#ifndef LLM_MODEL_H
#define LLM_MODEL_H

#include "ggl/sched.h"
#include "llm/internal/arch.h"
#include "llm/internal/load.h"
#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_model llm_model;

typedef struct llm_model_params {
    size_t size; /* sizeof(llm_model_params): ggl/internal/params.h */
    /* A descriptor file, or the name of a built-in one, that replaces the file's own choice;
     * NULL: none. */
    const char *arch_path;
    /* Folders, separated by ':', to search for NAME.arch, where NAME is the file's
     * general.architecture. NULL: the environment variable LLM_ARCH_PATH; "": none. */
    const char *arch_dirs;
    const ggl_gguf_params *gguf; /* how the file is read; NULL: the defaults */
    llm_arch_ignore ignore;      /* keys and tensors that need not be read; copied */
    const llm_load_params *load; /* how a folder is opened; NULL: the defaults */
    /* [n_override]: keys that get another value or are added, KEY=TYPE:VALUE; TYPE is int, float, bool or str. A KEY that begins
     * with '.' is one of the file's general.architecture. The last value of a key counts. */
    const char *const *override;
    size_t n_override;
    const char *
        mtp; /* a file of layers that guess, which become the model's (llm/internal/mtp.h); NULL: none */
    bool ear; /* of a file with an eye and an ear: the ear */
} llm_model_params;

/* Opens a file or folder by llm_load (load.arch_path is arch_path if it is NULL). params may be NULL.
 * The descriptor is arch_path, else one found in arch_dirs,
 * else the file's key general.descriptor, else the built-in one for the file's
 * general.architecture. Fails with GGL_NOT_FOUND (no descriptor of that name; the message lists
 * the built-in ones), GGL_USAGE (override) or as llm_load and llm_arch_parse do. *out is NULL on failure. */
GGL_NODISCARD ggl_status llm_model_open(llm_model **out, const char *path,
                                        const llm_model_params *params, ggl_error *err);
/* The same for a file in memory that outlives the model, e.g. one linked into the program. */
GGL_NODISCARD ggl_status llm_model_open_memory(llm_model **out, const void *data, size_t size,
                                               const char *name, const llm_model_params *params,
                                               ggl_error *err);
/* The same for an opened file, which may have no data (ggl_gguf_compose). Takes over the file, also on failure. */
GGL_NODISCARD ggl_status llm_model_open_file(llm_model **out, ggl_gguf *file,
                                             const llm_model_params *params, ggl_error *err);
/* Makes another one of the same file, which has everything in common with m but the marks of its tokenizer (llm_model_set_marks) and what this
 * remembers. What they share is freed with the last of them, so they may be freed in any order. Any thread may call this, and use what it
 * makes. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_model_beside(llm_model **out, llm_model *m, ggl_error *err);
void llm_model_free(llm_model *m);

GGL_INTERNAL_API const ggl_gguf *llm_model_file(const llm_model *m);
GGL_INTERNAL_API const llm_arch *llm_model_arch(const llm_model *m);
/* Returns llm_model_params.mtp, the file of layers that it was opened with; NULL: none. */
const char *llm_model_mtp(const llm_model *m);
/* Returns by which of the descriptor's names the file is one of its family: "llama", "clip:mlp". The first one, where it has none of them. */
const char *llm_model_family(const llm_model *m);
/* Where the descriptor came from: "built-in llama.arch", "general.descriptor of model.gguf",
 * "my.arch" or "archs/llama.arch (search path)". */
const char *llm_model_arch_origin(const llm_model *m);
/* Returns llm_model_params.ignore, to pass on as llm_arch_params.ignore. */
GGL_INTERNAL_API llm_arch_ignore llm_model_ignore(const llm_model *m);
/* Returns the table of repacked weights that its sessions share (ggl_sched_params.repacked). */
ggl_repacked *llm_model_repacked(const llm_model *m);
/* Return the context that the model was trained with ({arch}.context_length). 0: the key is
 * absent or not a whole number >= 1, which building the graph reports. */
GGL_INTERNAL_API int64_t llm_model_n_ctx(const llm_model *m);
int64_t llm_model_file_n_ctx(const ggl_gguf *file);
/* Returns the most pictures that a text may have (general.max_images); 0: the file does not say. */
int64_t llm_model_max_images(const llm_model *m);
/* Finds the token with which a model of the family that reads a text begins to write: the file's own key, FAMILY.decoder_start_token_id, or else the one that begins
 * texts. GGL_FORMAT: it is none of n_vocab tokens, and *out is as it was. */
GGL_NODISCARD ggl_status llm_model_start_token(const llm_model *m, const char *family,
                                               int64_t n_vocab, int32_t *out, ggl_error *err);
/* Lists the model's *n inputs and stages over rows, in the order in which they run (llm_arch_result.source). Statuses of llm_arch_build. */
GGL_NODISCARD ggl_status llm_model_rows(const llm_model *m,
                                        llm_arch_rows_of out[LLM_ARCH_MAX_SOURCES], int *n,
                                        ggl_error *err);

/* Returns the model's tokenizer, which it owns and makes at the first call. Only programs that
 * handle text need it. GGL_UNSUPPORTED: its kind is not built in. Any number of threads may call
 * this at once; all get the same one. */
GGL_NODISCARD ggl_status llm_model_tokenizer(llm_model *m, const llm_tokenizer **out,
                                             ggl_error *err);
/* Marks of texts that its tokenizer reads (llm_tokenizer_set_marks), if that was made. */
void llm_model_set_marks(llm_model *m, const llm_marks *marks);
/* Has its tokenizer remember texts (llm_tokenizer_remember), if that was made. */
GGL_NODISCARD ggl_status llm_model_remember_texts(llm_model *m, size_t most, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
