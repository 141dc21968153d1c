/* An opened adapter or control vector, shared by adapter.c, control.c, adapt.c and steer.c. */
#ifndef LLM_ARCH_ADAPTER_H
#define LLM_ARCH_ADAPTER_H

#include "ggl/internal/alloc.h"
#include "ggl/internal/index.h"
#include "llm/internal/adapter.h"

/* The change of one weight: B * A, in ggml's order of extents (innermost first).
 *
 *     columns [in, rank]    named .lora_a;  rows [rank, out]  named .lora_b
 *
 * For an embedding the file has both the other way round: columns_t [rank, in] is named .lora_b,
 * rows [rank, out] .lora_a. */
typedef struct arch_pair {
    ggl_str name; /* of the weight, with a NUL; the key of the index */
    const ggl_gguf_tensor *a, *b;
    const ggl_gguf_tensor *
        magnitude; /* f32 [out] or [out, n]: the lengths of the changed rows; NULL: they are not given */
    bool embedding;
    int64_t rank;
} arch_pair;

#define LLM_CONTROL_KIND "controlvector" /* the architecture of control vectors */

/* What a control vector adds to the rows that a layer hands on. */
typedef struct arch_direction {
    const ggl_gguf_tensor *t; /* f32 [n_embd] */
    int64_t layer;            /* from 1 on */
} arch_direction;

/* Either low-rank changes of weights, or a control vector. */
struct llm_adapter {
    ggl_gguf *file;
    ggl_arena arena;
    arch_pair *pair;
    size_t n_pairs, cap_pairs;
    ggl_index index;
    arch_direction
        *direction; /* [n_directions], by layers; those of one layer in the order of the file */
    size_t n_directions; /* 0: it has pairs */
    double alpha;
    ggl_str architecture,
        title; /* of a control vector, the former is controlvector.model_hint, which may be empty */
};

/* Makes an adapter of the file, which it takes over, also on failure: read fills it. st: of opening the file, which may be NULL on an error. */
ggl_status llm_adapter_of_file(llm_adapter **out, ggl_gguf *file, ggl_status st,
                               ggl_status (*read)(llm_adapter *a, ggl_error *err), ggl_error *err);

/* The file's tensor with the rows [rank, out], and that with the columns. */
static inline const ggl_gguf_tensor *arch_pair_rows(const arch_pair *p) {
    return p->embedding ? p->a : p->b;
}
static inline const ggl_gguf_tensor *arch_pair_columns(const arch_pair *p) {
    return p->embedding ? p->b : p->a;
}
/* The file's name without its folder, for messages. */
const char *llm_adapter_name(const llm_adapter *a);

#endif
