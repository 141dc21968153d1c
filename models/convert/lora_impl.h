/* Shared by lora.c and lora_recipe.c. */
#ifndef LLM_CONVERT_LORA_IMPL_H
#define LLM_CONVERT_LORA_IMPL_H

#include "lora.h"

typedef struct lora_weight {    /* a weight of the model's folder that has a pair */
    ggl_str name;               /* "model.layers.0.self_attn.q_proj.weight", with a NUL */
    const st_tensor *a, *b;     /* ne: [in, rank], [rank, out] */
    const st_tensor *magnitude; /* [out]; NULL: no "use_dora" */
    int64_t rank;
    /* the weight is stored as [out, in]: an embedding, or with "fan_in_fan_out" */
    bool flipped, embedding;
    double factor;    /* of b, so that all pairs have one alpha */
    bool found, used; /* the model's folder has the weight, and a tensor is made from it */
} lora_weight;

typedef struct lora_copy { /* a whole weight beside the pairs (lora_copies.c) */
    const char *name;      /* in the model's folder */
    const st_tensor *tensor;
    bool has_pair;
} lora_copy;

struct llm_lora {
    ggl_arena arena;
    const char *folder, *config_path, *file_path;
    llm_json *config;
    ggl_file_map map;
    llm_safetensors *file;
    lora_weight *weight; /* [n] */
    ggl_index by_name;
    llm_safetensors *weights;     /* tensor i is that of weight[i] */
    const llm_safetensors *model; /* the tensors that recipes read: `weights`, or the folder's */
    /* for each tensor of `model` 1 + the index of its weight, or 0; NULL: `model` is `weights` */
    size_t *pair_of;
    size_t n;
    int64_t rank;
    double alpha;
    bool rslora, fan_in, dora;
    lora_copy *copy;
    size_t n_copy, cap_copy;
    bool
        tied; /* the model makes its output of the embedding, and could have a matrix of its own for it */
    const st_tensor *embedding; /* of such a model; NULL: it is not known */
    /* Of an adapter for a task, which the model's own folder has (lora_task.c): */
    const char *task, *prompt; /* task NULL: it is a folder of PEFT */
    int64_t i_task, n_tasks;
};

/* Adds the task's pairs, which are among the model's tensors. */
ggl_status llm_lora_find_tasks(llm_lora *l, const llm_safetensors *model, ggl_error *err);

/* What to do with an adapter that is more than pairs. */
#define LORA_MERGE_INSTEAD                                                                         \
    "merge it with PEFT (merge_and_unload), and convert the result as a model"

/* Returns the tensor of the model that a weight is, which may have another prefix there; NULL: it has none. */
const st_tensor *llm_lora_find_in(const llm_safetensors *model, const arch_convert *section,
                                  const char *name);
/* True for the name of the matrix of a model's output, as transformers names it in memory. */
bool llm_lora_is_head(const char *name);

/* The key adapter.lora.alpha: the scale of a pair is this divided by its rank. */
double llm_lora_alpha(const llm_lora *l);

#endif
