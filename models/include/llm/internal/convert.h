/* Converts a Hugging Face folder (config.json, safetensors, tokenizer) to a GGUF file by a
 * descriptor's convert section: docs/architectures.md, "Conversion from Hugging Face". A checkpoint
 * file of llama2.c, or a speech model's file in ggml's format before GGUF, may be given in place of the folder.
 *
 *     llm_convert_params params = llm_convert_default();
 *     params.backend = reference;  // computes constants, such as rope factors
 *     llm_converter *c;
 *     if (llm_converter_open(&c, "TinyLlama-1.1B", &params, &err) == GGL_OK &&
 *         llm_converter_write(c, "tinyllama.gguf", &err) == GGL_OK) ..
 *     llm_converter_free(c);
 *
 * The folder is not trusted: everything is checked before anything is written.
 *
 * Threads: a converter belongs to one thread at a time; different ones may run at the same time. */
#ifndef LLM_CONVERT_H
#define LLM_CONVERT_H

#include "ggl/backend.h"
#include "ggl/internal/file.h"
#include "llm/internal/arch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* type of the matrices in the file; weights that are not matrices are f32 */
typedef enum llm_convert_type {
    /* as in the folder: f16 and bf16 stay, codes in groups become those of a block type if one can hold
     * them, all others become f32 */
    LLM_CONVERT_AUTO,
    LLM_CONVERT_F32,
    LLM_CONVERT_F16,
    LLM_CONVERT_BF16,
    LLM_CONVERT_NUMBERS /* as AUTO, but f32 for FP8 and codes in groups: for quantizing it */
} llm_convert_type;

/* what to do with tokens of the tokenizer for which the model has no row */
typedef enum llm_convert_extra {
    LLM_CONVERT_REFUSE_EXTRA,
    LLM_CONVERT_CUT_EXTRA /* drop them, with a note */
} llm_convert_extra;

typedef struct llm_convert_params {
    size_t size; /* sizeof(llm_convert_params): ggl/internal/params.h */
    /* A descriptor file, or the name of a built-in one. NULL: the built-in one whose convert
     * section names the folder's architecture. */
    const char *arch_path;
    /* Convert what sees or hears that the folder has beside the text model: by a section of a descriptor that makes rows of pictures or sounds. Such a
     * file (mmproj) has no tokenizer. */
    bool eye;
    /* Of a folder with an eye and an ear: both, which is for llm_converter_write; the eye; the ear. */
    enum { LLM_CONVERT_BOTH_SENSES, LLM_CONVERT_FIRST_SENSE, LLM_CONVERT_EAR } senses;
    const char *arch_class; /* replaces config.json's "architectures"; NULL: use that */
    llm_convert_type type;
    /* Computes constants, in double; borrowed. NULL: refuse a conversion with constants. */
    ggl_backend *backend;
    /* A PEFT folder (adapter_config.json, adapter_model.safetensors): convert this adapter, to the
     * form of llm/internal/adapter.h. Of the model's folder config.json is needed, and the tensors' names
     * and shapes if it has any. NULL: convert the model. */
    const char *adapter;
    /* Convert the adapter for this task, which the folder has beside the model, as jina-embeddings-v3. NULL: the model. */
    const char *task;
    /* Of a causal model that judges a query and a document with "yes" or "no": keep what makes it a reranker. By default, if the
     * folder, or _name_or_path in config.json, is named so. */
    enum { LLM_CONVERT_RERANKER_BY_NAME, LLM_CONVERT_RERANKER, LLM_CONVERT_NO_RERANKER } reranker;
    /* Only find where the weights come from, for an adapter (lora_back.h): values of config.json and tensors that no
     * line reads are fine, as the model's own conversion judges them. */
    bool for_adapter;
    bool vocab_only; /* write keys and tokenizer; do not look for tensors */
    /* Do not fail llm_converter_open for errors of folder and section, but collect them for
     * llm_converter_report. */
    bool dry_run;
    /* The model for which the folder's guesses, borrowed: its keys are the section's target.a, and a folder without a tokenizer gets its.
     * With it, a draft that the folder has beside a model of the same class is converted. NULL: unknown. No other model needs it. */
    const ggl_gguf *target;
    bool no_tokenizer; /* write a file without tokenizer; do not read the folder's */
    const char *
        tokenizer_advice; /* follows the message about a tokenizer that is not supported; NULL: nothing */
    llm_convert_extra extra_tokens;
    /* Patterns ('*' matches anything) for values of config.json ("a.b") and source tensors that
     * no line need read, at the user's own risk. The notes list what was ignored. */
    llm_arch_ignore ignore;
    void (*progress)(void *ctx, size_t done, size_t total); /* bytes of tensors; may be NULL */
    void *progress_ctx;
    ggl_file_how how; /* how the files of tensors are opened; zeros: mapped */
    /* The path of a llama2.c checkpoint's tokenizer. NULL: the checkpoint's folder is searched for
     * tokN.bin, such as tok512.bin for 512 tokens, and then for tokenizer.bin. */
    const char *tokenizer;
    /* May be NULL. Set to true if the conversion failed because a key depends on the tensors, which are not
     * there; with vocab_only, others do not. */
    bool *needs_weights;
} llm_convert_params;

void llm_convert_fill_default(llm_convert_params *p, size_t size); /* ggl/internal/params.h */
static inline llm_convert_params llm_convert_default(void) {
    llm_convert_params p;
    llm_convert_fill_default(&p, sizeof p);
    return p;
}

typedef struct llm_converter llm_converter;

/* Reads config.json and the tokenizer, computes the keys, builds the descriptor with them and
 * finds each tensor's sources, without reading tensor data. *out is NULL on failure. Fails with
 * GGL_NOT_FOUND (no descriptor for the architecture, or no tensors), GGL_FORMAT, GGL_SHAPE,
 * GGL_UNSUPPORTED, GGL_LIMIT, GGL_IO or GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_converter_open(llm_converter **out, const char *folder,
                                            const llm_convert_params *params, ggl_error *err);
/* Writes the file, one tensor at a time, under a temporary name that is changed to `path` at the
 * end. On failure no file remains. Fails with GGL_FORMAT (a weight is NaN or infinite),
 * GGL_LIMIT (too large for f16), GGL_IO or GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_converter_write(llm_converter *c, const char *path, ggl_error *err);
/* After a dry run: calls line(ctx, text) for each line of a report: the keys and the lines that
 * make them, unread values of config.json, the folder's tensors and the lines that read them,
 * and all faults found. *n_faults is their number; with 0 the conversion would succeed. Fails
 * with GGL_USAGE (not a dry run) or GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_converter_report(const llm_converter *c,
                                              void (*line)(void *ctx, const char *text), void *ctx,
                                              size_t *n_faults, ggl_error *err);
void llm_converter_free(llm_converter *c);

/* Returns true if a built-in descriptor converts the eye of the folder (llm_convert_params.eye), by its files of JSON alone. *why (NULL is fine): if
 * one of these is damaged, so that nothing is known, the error; else its text is empty. */
bool llm_convert_finds_eye(const char *folder, ggl_error *why);
/* The same of an ear beside the eye of the folder. */
bool llm_convert_finds_ear(const char *folder);
/* True if the folder has an ear, and no eye beside it. */
bool llm_convert_finds_ear_alone(const char *folder);

/* Calls `each` for each folder in the folder that has files of the model: those of modules.json, and those that sections for
 * the class read, by the files of JSON alone. While some of these are missing, there may be more than is said. needs_weights: the
 * model cannot do without the folder's tensors. arch_path: as in llm_convert_params. Fails with what `each` returns, or GGL_NOMEM. */
typedef ggl_status llm_convert_on_folder(void *user, const char *name, bool needs_weights,
                                         ggl_error *err);
GGL_NODISCARD ggl_status llm_convert_each_folder(const char *folder, const char *arch_path,
                                                 llm_convert_on_folder *each, void *user,
                                                 ggl_error *err);
/* True if the folder is one that llm_convert_each_folder names in the folder above, whose path is written to `whole`. */
bool llm_convert_is_part(const char *folder, char *whole, size_t size);

const char *llm_converter_origin(const llm_converter *c); /* "built-in llama.arch" */
const char *llm_converter_class(const llm_converter *c);  /* "LlamaForCausalLM" */
const char *llm_converter_family(const llm_converter *c); /* "llama" */
/* true: the model guesses for another one (llm_convert_params.target) */
bool llm_converter_is_draft(const llm_converter *c);
/* true: a tokenizer will be written */
bool llm_converter_has_tokenizer(const llm_converter *c);
size_t llm_converter_n_tensors(const llm_converter *c);
/* Bytes of tensors that will be written. */
size_t llm_converter_size(const llm_converter *c);
/* Returns warnings, one per line, each with a newline; "" if none. */
const char *llm_converter_notes(const llm_converter *c);

#ifdef __cplusplus
}
#endif
#endif
