/* What `llm-gguf show` prints: shared by its text and its JSON. */
#ifndef TOOLS_GGUF_SHOW_H
#define TOOLS_GGUF_SHOW_H

#include "tool.h"

/* A sum over tensors: all of a type, all of a layer, or all. */
typedef struct gguf_sum {
    int64_t type;  /* first, as a table's key; of a layer: its number, -1: of no layer */
    size_t n;      /* tensors */
    double params; /* elements */
    double bytes;  /* of tensors whose type is known */
    double known;  /* elements of tensors whose type is known */
} gguf_sum;

typedef struct gguf_view {
    const char *path;     /* as the user typed it */
    const ggl_gguf *file; /* NULL: it cannot be read, as a defect says */
    bool folder;          /* of Hugging Face: the tensors have no data here */
    bool full;            /* all elements of arrays, and whole strings */
    gguf_patterns keys, tensors;
    bool only_keys, only_tensors; /* a pattern was given for these, and none for the others */
    char **defect;                /* sentences; allocated with malloc */
    size_t n_defects, cap_defects;
    double file_bytes;
    gguf_sum *types, *layers; /* in the order of first occurrence */
    size_t n_types, n_layers;
    gguf_sum all;
    bool color;
} gguf_view;

/* The bits of an element; 0: unknown. */
static inline double gguf_sum_bits(const gguf_sum *s) {
    return s->known > 0 ? 8 * s->bytes / s->known : 0;
}
/* True if the tensor's type is known and its data is in the file. */
static inline bool gguf_is_there(const gguf_view *v, const ggl_gguf_tensor *t) {
    return ggl_type_get((int)t->type) && (t->data || t->size == 0 || v->folder);
}
void gguf_show_json(const gguf_view *v);

#endif
