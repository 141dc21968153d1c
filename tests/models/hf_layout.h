/* Models in the layout that Hugging Face publishes them in, made from GGUF tensors by the inverse of what some convert sections
 * say, written by hand: for tests of llm-convert's files and messages. What all sections make: tests/numpy/folders.py. */
#ifndef HF_LAYOUT_H
#define HF_LAYOUT_H

#include "ggl/gguf.h"
#include "llm/internal/arch.h"

#define MAX_TENSORS 6000

typedef struct layout_tensor {
    char name[128];
    int n_dims;
    int64_t ne[GGL_MAX_DIMS + 1]; /* innermost first */
    float *data;                  /* NULL: only the shape is of interest */
} layout_tensor;

typedef struct layout {
    const char *keys; /* "block_count=2 head_count=4 ..": the family's, without its name */
    layout_tensor *tensor;
    int n;
} layout;

/* A family's nano model: what the descriptor asks for with these keys, filled with numbers that f16 can hold; with_data false:
 * shapes only. `optional`: names of optional tensors to have ("output.weight attn_q.bias"). */
bool layout_make(layout *l, const char *family, const char *keys, const char *optional,
                 bool with_data);
void layout_free(layout *l);
layout_tensor *layout_find(const layout *l, const char *name);
double layout_key(const layout *l, const char *name); /* NaN: absent */

/* The inverse for a class: Hugging Face's tensors and config.json's text (malloc). The classes: LlamaForCausalLM, Qwen3ForCausalLM,
 * Qwen3MoeForCausalLM, GPT2LMHeadModel. `more`: further members of config.json (", \"clip\": 8"). */
bool layout_to_hf(const layout *gguf, const char *class_name, const char *more, layout *hf,
                  char **config);
/* model.safetensors of dtype F32, F16 or BF16; without data a file with a hole. */
bool layout_write(const layout *hf, const char *path, const char *dtype);

#endif
