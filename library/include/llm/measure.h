/* Measures, verifies and describes models: perplexity, importance matrices, whether a device computes right, and what a model
 * would take. A part of llm/llm.h, which says what all calls have in common: sizes of structs, NULL, threads.
 *
 * Tier: stable (docs/library.md says what that promises). */
#ifndef LLM_MEASURE_H
#define LLM_MEASURE_H

#include "llm/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- measuring -------------------------------------------------------------------------------- */

/* The shares of tokens of llm_perplexity_result's quantiles: 0 (the least), 0.001, 0.01, 0.05, 0.1, 0.25, 0.5 (the median), 0.75,
 * 0.9, 0.95, 0.99, 0.999, 1. */
enum { LLM_N_QUANTILES = 13 };

typedef struct llm_perplexity_result {
    size_t size; /* sizeof(llm_perplexity_result), set by the caller */
    int64_t n_window, n_chunks;
    int64_t n_scored;      /* tokens */
    double nll;            /* mean of -log p(token), in nats */
    double ppl, ppl_error; /* exp of it, with its standard error */
    double kld,
        kld_error;   /* with base: mean of the divergence from the base to this model, in nats */
    double same_top; /* with base: share of the tokens whose likeliest token is the base's */
    /* All that follows is with base, too. */
    double same_top_error;
    double ppl_base, ppl_base_error;
    double ln_ratio, ln_ratio_error;     /* ln(ppl / ppl_base) on the same tokens */
    double ratio, ratio_error;           /* ppl / ppl_base */
    double difference, difference_error; /* ppl - ppl_base */
    double correlation;                  /* between the -log p(token) of both */
    double p_diff, p_diff_error;         /* p(token) less that of the base: the mean */
    double p_rms, p_rms_error;           /* and the root of the mean of squares */
    double kld_quantile[LLM_N_QUANTILES], p_diff_quantile[LLM_N_QUANTILES]; /* over the tokens */
} llm_perplexity_result;

/* Where a measurement is. This struct stays as it is. */
typedef struct llm_perplexity_window {
    int64_t n_done, n;                   /* windows that have run, and all */
    double ppl;                          /* of the last one by itself */
    const llm_perplexity_result *so_far; /* of those that have run, without quantiles */
} llm_perplexity_window;

typedef struct llm_perplexity_params {
    size_t size; /* sizeof(llm_perplexity_params) */
    int64_t
        n_window; /* tokens that the model sees at once, at least 4; 0: 512, or the context if that is smaller */
    int64_t n_chunks; /* most windows to run; 0: all */
    /* A file for the log-probabilities of all tokens, in llama.cpp's format; NULL: none. */
    const char *save;
    /* Such a file, of another model: this one is compared with it, on the text from which it was made. NULL: none. */
    const char *base;
    /* Called with the tokens that were run, and all. False: the call returns GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *user, size_t done, size_t total);
    void *user;
    const int32_t *id; /* [n_id]: the text's tokens, in place of the text */
    size_t n_id;
    /* Called before the first window and after each. False: the call returns GGL_CANCELLED. NULL: none. */
    bool (*each)(void *user, const llm_perplexity_window *window);
} llm_perplexity_params;

/* Measures how well the model predicts n bytes of text, as llm-perplexity does: the text is cut into windows of n_window
 * tokens, and the second half of each is scored. text is NULL with base, or with tokens. params may be NULL. The sequence is empty
 * afterwards. GGL_LIMIT: the text has fewer than two windows, or a window exceeds the context; GGL_USAGE: params are
 * wrong, or the base has another vocabulary; GGL_FORMAT: logits are not numbers, or the base is damaged;
 * GGL_UNSUPPORTED: the model's tokenizer is unknown; GGL_CANCELLED, GGL_IO, GGL_NOMEM, GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status llm_perplexity(llm_context *c, const char *text, size_t n,
                                                const llm_perplexity_params *params,
                                                llm_perplexity_result *result, ggl_error *err);

typedef struct llm_base_info {
    size_t size;                         /* sizeof(llm_base_info), set by the caller */
    int64_t n_window, n_chunks, n_vocab; /* of the model that was measured */
} llm_base_info;
/* Reads what a file of llm_perplexity_params.base is of. GGL_IO, GGL_FORMAT, GGL_NOMEM; GGL_USAGE: info->size is wrong. */
GGL_API GGL_NODISCARD ggl_status llm_perplexity_base(const char *path, llm_base_info *info,
                                                     ggl_error *err);

/* --- importance ------------------------------------------------------------------------------- */

/* An importance matrix: for each weight of a model, how large the inputs of its columns are on average over texts.
 * llm-quantize --imatrix rounds weights such that the columns with large inputs lose least.
 *
 *     llm_imatrix *m;
 *     st = llm_imatrix_begin(&m, &err);
 *     if (st == GGL_OK)
 *         st = llm_imatrix_run(m, c, text, n, NULL, &result, &err);      // maybe more texts, or llm_imatrix_read
 *     if (st == GGL_OK)
 *         st = llm_imatrix_save(m, "imatrix.gguf", false, &err);
 *     llm_imatrix_end(m);
 *
 * Threads: only one at a time may use a matrix. */
typedef struct llm_imatrix llm_imatrix;

/* Makes an empty matrix. GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status llm_imatrix_begin(llm_imatrix **out, ggl_error *err);
GGL_API void llm_imatrix_end(llm_imatrix *m); /* NULL is fine */

typedef struct llm_imatrix_file {
    size_t size;       /* sizeof(llm_imatrix_file), set by the caller */
    bool tells_window; /* the file has the size of its windows; else the call's was used */
    int64_t n_weights;
    int64_t n_directed; /* of them, those with directions */
} llm_imatrix_file;
/* Adds what a file has, of llama.cpp's formats (GGUF, or the old one). n_window: the tokens of a window, by which files are weighted,
 * for one that does not tell; 0: 512. file may be NULL; it is also filled in if the file was read but does not fit. GGL_USAGE: weights
 * have other sizes than what was added before, or n_window is negative; GGL_IO, GGL_FORMAT, GGL_NOMEM. The message begins
 * with the path. */
GGL_API GGL_NODISCARD ggl_status llm_imatrix_read(llm_imatrix *m, const char *path,
                                                  int64_t n_window, llm_imatrix_file *file,
                                                  ggl_error *err);
/* Checks that what was added is of the context's model. name: how the message names it; NULL: "the files that were added".
 * GGL_USAGE: it is not. */
GGL_API GGL_NODISCARD ggl_status llm_imatrix_check(const llm_imatrix *m, const llm_context *c,
                                                   const char *name, ggl_error *err);

typedef struct llm_imatrix_result {
    size_t size; /* sizeof(llm_imatrix_result), set by the caller */
    int64_t n_window;
    int64_t n_chunks, n_wanted; /* windows that have run, and those that were to run */
    int64_t n_scored;           /* tokens */
    double ppl, ppl_error;      /* of these, as llm_perplexity gives it; 0 without */
    size_t
        n_missed; /* weights for which nothing can be collected, because they are multiplied within an operation, or in parts */
    const char *missed; /* one of them, in `each`; "": none */
} llm_imatrix_result;

typedef struct llm_imatrix_params {
    size_t size;      /* sizeof(llm_imatrix_params) */
    int64_t n_window; /* as of llm_perplexity_params, but the context does not limit it */
    int64_t first_chunk, n_chunks; /* leave out the first windows; run at most n_chunks, 0: all */
    const int32_t *id;             /* [n_id]: the text's tokens, in place of the text */
    size_t n_id;
    bool read_special; /* names of special tokens in the text stand for these */
    bool output;       /* collect for the product that makes the logits, too */
    /* Numbers for each column that tell which columns vary together, a multiple of 4, up to 64; 0: 32; -1: none. */
    int32_t n_directions;
    bool no_perplexity; /* do not compute the text's perplexity, which is faster */
    const char *name;   /* of the text, for the file; NULL: none */
    /* Called with the tokens that were run, and all. False: the call returns GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *user, size_t done, size_t total);
    /* Called before the first window and after each. It may save the matrix, which has the windows so far. Returning false ends
     * the run, as if the text ended there. NULL: none. */
    bool (*each)(void *user, const llm_imatrix_result *so_far);
    void *user; /* of both */
} llm_imatrix_params;

/* Runs a text through the context's model, cut into windows as llm_perplexity cuts it, and adds what it collects to the matrix.
 * text NULL without tokens: the text of llm_own_text, of n_chunks windows, or 16384 tokens. The model is planned
 * once more for that, which takes the memory of a window's values, and on devices with memory of their own that of the weights; the sequence is not changed. params and result may be NULL.
 * GGL_LIMIT: the text has fewer than two windows, or none after first_chunk; GGL_USAGE: params are wrong, the matrix is of another
 * model, or the model's numbers are not finite; else as llm_perplexity. After a failure the matrix is as before. */
GGL_API GGL_NODISCARD ggl_status llm_imatrix_run(llm_imatrix *m, llm_context *c, const char *text,
                                                 size_t n, const llm_imatrix_params *params,
                                                 llm_imatrix_result *result, ggl_error *err);
/* Writes the matrix to a GGUF file, which appears when it is complete. GGL_USAGE: the matrix is empty; GGL_IO, GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status llm_imatrix_save(const llm_imatrix *m, const char *path,
                                                  ggl_error *err);
/* Windows that were collected in all files and texts. */
GGL_API int64_t llm_imatrix_windows(const llm_imatrix *m);

/* The sums for one weight, which has n_mat matrices (experts; else 1) with n_col columns. This struct stays as it is. */
typedef struct llm_imatrix_entry {
    const char *name; /* "blk.0.ffn_down.weight" */
    int64_t n_col, n_mat;
    const float *sum2;    /* [n_mat][n_col]: sums of squares of the inputs */
    const int64_t *count; /* [n_mat]: the number of inputs that each matrix has seen */
    int32_t n_directions;
} llm_imatrix_entry;
/* Gets entry i = 0, 1, ..; false past the last one. It is valid until the matrix changes. */
GGL_API bool llm_imatrix_get(const llm_imatrix *m, size_t i, llm_imatrix_entry *entry);

/* Lets the model write a text of n tokens by itself, with the probabilities that it gives them (temperature 1), in pieces of at most
 * n_window tokens (0: as of llm_imatrix_params). It depends on the model, n and n_window alone. The caller frees *id by ggl_free.
 * progress as of llm_imatrix_params; it may be NULL. The sequence is not changed. GGL_UNSUPPORTED: the model has no token to begin
 * with, or its tokenizer is unknown; GGL_USAGE, GGL_CANCELLED, GGL_NOMEM, GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status llm_own_text(llm_context *c, int64_t n_window, size_t n,
                                              bool (*progress)(void *user, size_t done,
                                                               size_t total),
                                              void *user, int32_t **id, ggl_error *err);

/* --- verifying and describing ----------------------------------------------------------------- */

/* A node of the model's graph: how far a backend's result is from that in double precision. Texts are valid during the
 * call. This struct stays as it is. */
typedef struct llm_verify_node {
    const char *text;       /* "linear blk.0.attn_q.weight" */
    const char *origin;     /* the line of the descriptor, "llama.arch:12"; "": not known */
    const char *what;       /* which values: "value", or of a cache "keys", "values" */
    double departure;       /* in limits of what rounding can explain: above 1 it departs */
    int64_t token, element; /* the worst element's place */
    double got, want;       /* its value, and the exact one */
    double error, unit;     /* their distance, and about what rounding explains of it */
    const char *shape;      /* "f32 [64, 8]" */
} llm_verify_node;

typedef struct llm_verify_params {
    size_t size;        /* sizeof(llm_verify_params) */
    const char *device; /* "cpu", "vulkan0"; NULL: "cpu" */
    int32_t n_threads;  /* of the CPU; 0: one for each physical core */
    const int32_t *id;  /* [n]: the tokens to run, at most 4096; NULL: n fixed ones; n 0: 8 */
    size_t n;
    bool all; /* `each` gets all nodes, not only those that depart */
    /* Called afterwards for the nodes that depart, in the order of the graph. NULL: none. */
    void (*each)(void *user, const llm_verify_node *node);
    /* Called with the nodes done and in total. False: the call returns GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *user, size_t done, size_t total);
    void *user; /* of all callbacks */
    const char
        *mask; /* features that the device does not use, as --cpu-mask-isa; NULL: it uses all */
    const char *device_name; /* how messages name `device`, such as "--backend"; NULL: not at all */
    /* Gets what the descriptor notes about the model, a sentence a line, before anything is compared. NULL: none. */
    void (*note)(void *user, const char *text);
} llm_verify_params;

typedef struct llm_verify_result {
    size_t size;     /* sizeof(llm_verify_result), set by the caller */
    int64_t n_nodes; /* that were compared */
    int64_t
        n_departed; /* of them, those that depart; 0 and not whole_departs: the device computes the model right */
    int64_t n_refused; /* nodes that the device refuses, which were not compared */
    int64_t
        n_nan; /* logits that are no numbers in double precision, too: the model is wrong, not the device */
    double worst;       /* the largest departure */
    bool whole_departs; /* each node is right by itself, but not the run of all */
    double whole;    /* largest difference of logits between the whole run and its single nodes */
    double rounding; /* between the single nodes, one after the other, and double precision */
    double largest;  /* logit */
    int64_t n_logits;
    /* The first node that is no number in double precision, with its origin; "": none. What was verified: "cpu: 2 threads, avx2". */
    char first_nan[512], device[512];
} llm_verify_result;

/* Compares a device with the reference backend, which computes in double precision and is slow: runs tokens through the
 * context's model, each node of its graph on both, with the same inputs. It uses neither the context's session nor its
 * devices, and changes nothing. params may be NULL. GGL_NOT_FOUND: no device of that name; GGL_USAGE: params are wrong;
 * GGL_UNSUPPORTED, GGL_CANCELLED, GGL_NOMEM, GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status llm_verify(llm_context *c, const llm_verify_params *params,
                                            llm_verify_result *result, ggl_error *err);

/* Describes a model, opened by its file alone, as JSON: {"name", "architecture", "descriptor", "tokenizer" (null: not
 * known), "has_chat", "n_params", "bytes" (of its weights), "n_layer", "n_embd", "n_ctx" (on which it was trained; 0: not
 * known), "types": {"q4_0": {"tensors", "bytes"}, ..}}. path, params, errors: of llm_open. The caller frees *json, of *n bytes and a
 * NUL, by ggl_free. */
GGL_API GGL_NODISCARD ggl_status llm_describe(const char *path, const llm_open_params *params,
                                              char **json, size_t *n, ggl_error *err);
/* Returns as JSON where llm_open would run the layers, and how much memory it would take, in bytes, without allocating it:
 * {"n_ctx", "n_ctx_fits" (the most, up to n_ctx, that fits into the memory now), "placement", "devices": [{"name", "description", "memory" (0:
 * not known), "weights_mapped" (in the file), "weights_copied", "weights_repacked", "cache", "states", "scratch", "mmproj" (of an eye or an ear: {"weights_mapped" .. "scratch"}), "stages" (of stages of the
 * model that run before its tokens, such as Whisper's first convolution: the same)}, ..]}.
 * A draft model is not counted. Else as llm_describe. */
GGL_API GGL_NODISCARD ggl_status llm_plan(const char *path, const llm_open_params *params,
                                          char **json, size_t *n, ggl_error *err);
/* Returns as JSON which models are in the cache of downloads (llm_open of "hf:..", -hf and -mu of the tools): {"folder", "models":
 * [{"path" (for llm_open), "repository" ("USER/REPO"; absent for one from a URL), "file" (within the repository; "": the Hugging Face folder),
 * "bytes", "n_files", "is_whole" (false: its download was interrupted)}, ..], "problems": [{"path", "problem"}, ..], what else lies
 * there}. The caller frees *json by ggl_free. GGL_NOT_FOUND: no folder for it is known. */
GGL_API GGL_NODISCARD ggl_status llm_cached_models(char **json, size_t *n, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
