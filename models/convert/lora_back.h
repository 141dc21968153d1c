/* A convert section read backwards: which weights of a Hugging Face folder the tensors of a model come from, number by
 * number.
 *
 *     tensor (made)                    weights of the folder
 *     attn_q = pairs(q_proj, heads)    row o of attn_q is row p(o) of q_proj
 *     attn_qkv = concat(q, k, v)       the rows of attn_qkv are those of three weights: three spans
 *     attn_k = rows(qkv, n, m)         all rows of attn_k are some of qkv's
 *     ffn_up = transpose(c_fc)         row o is column o of c_fc: a span that is `turned`
 *
 * A span is the part of one matrix that one weight has. A pair changes a weight by low rank as it does the matrix, if whole rows and
 * columns of the span are whole rows and columns of the weight, or parts of these, in any order. That is checked for each number. */
#ifndef LLM_LORA_BACK_H
#define LLM_LORA_BACK_H

#include "convert_impl.h"
#include "llm/internal/adapter_pairs.h"
#include "common/new_folder.h"
#include "llm/internal/lora_folder.h"

typedef struct lora_span {
    const converted_tensor *t;
    int64_t m;          /* the matrix of t */
    const recipe *leaf; /* leaf->source: the weight */
    bool turned;        /* rows of the matrix are columns of the weight as it is stored */
    double factor;      /* the matrix is factor times the weight */
    /* for each row and each column of the matrix the one of the weight (if turned: column and row); -1: of another weight */
    int64_t *row, *column;
    int64_t n_row, n_column, n_seen; /* how many are not -1; numbers found */
} lora_span;

/* What is looked up in a converter for each pair or weight. */
typedef struct lora_lookup {
    ggl_str *name; /* of the converted tensors */
    ggl_index by_name;
    /* those that read tensor i of the folder: n_reader[i] of reader[first[i]], .., in their order */
    size_t *first, *n_reader, *reader;
} lora_lookup;

typedef struct lora_back {     /* the folder of a model, and its tensors; zero-initialized */
    llm_converter *text, *eye; /* eye: NULL: there is none, or no adapter needs it */
    lora_lookup of_text, of_eye;
    const char *folder;
    lora_span *span;
    size_t n_span, cap_span;
    ggl_arena arena;
} lora_back;

/* Opens the model's folder, and its eye if one of the adapters has pairs for one. */
GGL_NODISCARD ggl_status llm_lora_back_open(lora_back *b, const char *folder,
                                            const llm_adapter_use *use, size_t n_use,
                                            const llm_lora_folder_params *params, ggl_error *err);
void llm_lora_back_fini(lora_back *b);
/* Checks that all pairs of an adapter are for tensors of the model, in their shapes, and without a factor NAME.scale. */
GGL_NODISCARD ggl_status llm_lora_back_check(const lora_back *b, const llm_adapter *a,
                                             ggl_error *err);
/* True if an adapter changes the tensor. */
bool llm_lora_back_changes(const converted_tensor *t, const llm_adapter_use *use, size_t n_use);
/* Calls f for the runs of row `row` (of all matrices of t) that are adjacent in the tensor and in a row of a
 * weight: n numbers from column `first` on. GGL_UNSUPPORTED: a number is no weight's times a factor; or what f returns. */
typedef ggl_status lora_run_fn(void *ctx, int64_t row, int64_t first, int64_t n,
                               const recipe_spot *at, ggl_error *err);
GGL_NODISCARD ggl_status llm_lora_back_row(const lora_back *b, const converted_tensor *t,
                                           int64_t row, lora_run_fn *f, void *ctx, ggl_error *err);
/* Adds the spans of a tensor. GGL_UNSUPPORTED: it has none, or numbers are in other orders than rows and columns. */
GGL_NODISCARD ggl_status llm_lora_back_spans(lora_back *b, const converted_tensor *t,
                                             ggl_error *err);
/* Returns the indices of the n converted tensors of c that are made from the weight. */
const size_t *llm_lora_back_readers(const lora_back *b, const llm_converter *c,
                                    const st_tensor *weight, size_t *n);
/* True if the weight is stored as [in, out]: all tensors that are made from it have its columns as rows. */
bool llm_lora_back_is_turned(const lora_back *b, const llm_converter *c, const st_tensor *weight);
/* Checks that each number of the weights that change is read once, by one tensor: else a tensor would change that no
 * pair is for. */
GGL_NODISCARD ggl_status llm_lora_back_check_alone(const lora_back *b, const llm_converter *c,
                                                   const llm_adapter_use *use, size_t n_use,
                                                   ggl_error *err);
/* Sets changed[i] for each tensor i of the folder from which a tensor that changes is made. */
void llm_lora_back_changed(const llm_converter *c, const llm_adapter_use *use, size_t n_use,
                           bool *changed);
/* As llm_new_folder_open. GGL_USAGE: `out` is also the folder `base`. */
GGL_NODISCARD ggl_status llm_lora_back_make(llm_new_folder *f, const char *out, const char *base,
                                            ggl_error *err);

#endif
