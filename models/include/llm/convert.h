/* From a Hugging Face folder (config.json, safetensors, tokenizer) to a GGUF file, as a descriptor's convert section says:
 * docs/architectures.md, "Conversion from Hugging Face".
 *
 *     llm_convert_params params = llm_convert_default();
 *     params.backend = reference;                       // computes what is a constant, such as rope factors
 *     llm_converter *c;
 *     if (llm_converter_open(&c, "TinyLlama-1.1B", &params, &err) == GGL_OK &&
 *         llm_converter_write(c, "tinyllama.gguf", &err) == GGL_OK) ..
 *     llm_converter_free(c);
 *
 * The folder is not trusted: everything is checked before anything is written. */
#ifndef LLM_CONVERT_H
#define LLM_CONVERT_H

#include "ggl/backend.h"
#include "llm/arch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* of matrices; what is read otherwise stays f32 */
typedef enum llm_convert_type {
    /* as the folder has each: f16 and bf16 stay, all else becomes f32 */
    LLM_CONVERT_AUTO,
    LLM_CONVERT_F32,
    LLM_CONVERT_F16,
    LLM_CONVERT_BF16
} llm_convert_type;

/* tokens of the tokenizer for which the model has no row */
typedef enum llm_convert_extra {
    LLM_CONVERT_REFUSE_EXTRA,
    LLM_CONVERT_CUT_EXTRA /* they are left out, and a note says so */
} llm_convert_extra;

typedef struct llm_convert_params {
    /* a descriptor, or the name of a built-in one; NULL: the built-in one whose convert section
     * names the architecture */
    const char *arch_path;
    const char *arch_class; /* in place of config.json's "architectures"; NULL: that */
    llm_convert_type type;
    /* borrowed; computes in double. NULL: a conversion that wants constants is refused */
    ggl_backend *backend;
    bool vocab_only; /* keys and tokenizer; no tensors are looked for */
    /* errors of the folder and the section do not fail llm_converter_open; llm_converter_report
     * lists them */
    bool dry_run;
    bool no_tokenizer; /* the folder's tokenizer is not looked at: the file has none */
    llm_convert_extra extra_tokens;
    /* Patterns ('*' stands for anything) of values of config.json ("a.b") and of source tensors that are no error where no line
     * reads them, at the user's own risk. What was ignored stands in the notes. */
    llm_arch_ignore ignore;
    void (*progress)(void *ctx, size_t done, size_t total); /* bytes of tensors; may be NULL */
    void *progress_ctx;
} llm_convert_params;

GGL_API llm_convert_params llm_convert_default(void);

typedef struct llm_converter llm_converter;

/* Reads config.json and the tokenizer, computes the keys, builds the descriptor with them, finds each tensor's sources; no
 * tensor data is read yet. On failure *out is NULL. GGL_NOT_FOUND: no descriptor for the architecture, or no tensors;
 * GGL_FORMAT, GGL_SHAPE, GGL_UNSUPPORTED, GGL_LIMIT, GGL_IO, GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status llm_converter_open(llm_converter **out, const char *folder,
                                                    const llm_convert_params *params,
                                                    ggl_error *err);
/* One tensor at a time, to a temporary file that is renamed in the end. GGL_FORMAT: weights are NaN or infinite; GGL_LIMIT: too large
 * for f16; GGL_IO, GGL_NOMEM. Nothing is left behind then. */
GGL_API GGL_NODISCARD ggl_status llm_converter_write(llm_converter *c, const char *path,
                                                     ggl_error *err);
/* Of a dry run: calls line(ctx, text) for each line of a report: the keys with the lines that make them, values of config.json that
 * no line reads, the folder's tensors with the lines that read them, and all faults that were found. *n_faults of them: 0, it
 * would be written. GGL_NOMEM; GGL_USAGE: it is none. */
GGL_API GGL_NODISCARD ggl_status llm_converter_report(const llm_converter *c,
                                                      void (*line)(void *ctx, const char *text),
                                                      void *ctx, size_t *n_faults, ggl_error *err);
GGL_API void llm_converter_free(llm_converter *c);

GGL_API const char *llm_converter_origin(const llm_converter *c); /* "built-in llama.arch" */
GGL_API const char *llm_converter_class(const llm_converter *c);  /* "LlamaForCausalLM" */
GGL_API const char *llm_converter_family(const llm_converter *c); /* "llama" */
GGL_API bool llm_converter_has_tokenizer(const llm_converter *c); /* one that is written */
GGL_API size_t llm_converter_n_tensors(const llm_converter *c);
GGL_API size_t
llm_converter_size(const llm_converter *c); /* bytes of tensors that will be written */
/* What is no error but worth a line, each ended by a newline; "": nothing. */
GGL_API const char *llm_converter_notes(const llm_converter *c);

#ifdef __cplusplus
}
#endif
#endif
