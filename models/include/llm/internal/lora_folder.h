/* Takes an adapter back to the Hugging Face folder of its model: as a folder of PEFT, or merged into the
 * weights of a copy of the folder.
 *
 * The convert section of the folder's class says where each number of the model's file comes from. Read
 * backwards, it says which rows and columns of which module the rows of a pair change; see lora_back.h.
 *
 * Threads: calls have no state of their own; adapters may be shared. */
#ifndef LLM_LORA_FOLDER_H
#define LLM_LORA_FOLDER_H

#include "llm/internal/adapter.h"
#include "llm/internal/convert.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_lora_folder_params {
    const char *arch_path; /* as llm_convert_params */
    ggl_backend *backend;  /* as llm_convert_params */
    /* Of an export: the type of the halves. AUTO: f16 or bf16 if all of them have it in the file, else f32. */
    llm_convert_type type;
    /* Of an export: base_model_name_or_path in adapter_config.json. NULL: the path of the folder. */
    const char *base_name;
    int n_threads; /* of a merge; the result does not depend on it. 0: 1 */
    /* Of a merge: called with the bytes that are written, and all. False: the call ends with GGL_CANCELLED. May be NULL. */
    bool (*progress)(void *ctx, size_t done, size_t total);
    void *progress_ctx;
} llm_lora_folder_params;

/* What is left of a change after the changed weights are rounded to their types: with the change D of W and the rounded result Q, the share of a
 * weight is 1 - |Q - W - D|^2 / |D|^2, and at least 0. Zero-initialize it. */
typedef struct llm_lora_kept {
    double change, lost; /* |D|^2 and |Q - W - D|^2 of all weights */
    double least;        /* the smallest share of a weight, if change is not 0, */
    char weight[256];    /* and whose it is */
} llm_lora_kept;
/* Adds a weight. */
void llm_lora_keep(llm_lora_kept *k, const char *name, double change, double lost);
/* Returns the share, from 0 to 1; 1 without a change. */
double llm_lora_share(double change, double lost);

typedef struct llm_lora_folder_result {
    size_t n_modules; /* of an export: pairs of the folder; of a merge: weights that changed */
    size_t n_weights; /* of a merge: all */
    size_t
        n_left_out; /* of a merge: files that were not copied, because they would have the old weights */
    char left_out[256]; /* the name of the first one */
    size_t bytes;       /* of what was written, without small files */
    llm_lora_kept kept; /* of a merge */
} llm_lora_folder_result;

/* Writes adapter_config.json and adapter_model.safetensors into the folder `out`, which must be empty or not there: after a failure it is as it was. `base`: the
 * Hugging Face folder of the model, of whose tensors only names and shapes are read. GGL_UNSUPPORTED: PEFT has
 * no form for a pair, which the message names; GGL_NOT_FOUND: the folder has no weight for one; GGL_SHAPE; or as
 * llm_converter_open. */
GGL_NODISCARD ggl_status llm_lora_export(const llm_adapter *a, const char *base, const char *out,
                                         const llm_lora_folder_params *params,
                                         llm_lora_folder_result *result, ggl_error *err);
/* Writes a copy of the Hugging Face folder `base` into the folder `out`, which must be empty or not there: weights that
 * adapters change are computed in double precision and rounded once to the type that they have; other files are copied. Files of weights in
 * other formats are left out. Fails as llm_lora_export; GGL_FORMAT also if a changed weight is NaN or infinite. */
GGL_NODISCARD ggl_status llm_lora_merge(const llm_adapter_use *use, size_t n_use, const char *base,
                                        const char *out, const llm_lora_folder_params *params,
                                        llm_lora_folder_result *result, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
