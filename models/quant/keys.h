/* The keys of a quantized file. */
#ifndef LLM_QUANT_KEYS_H
#define LLM_QUANT_KEYS_H

#include "ggl/internal/gguf.h"
#include "type_plan.h"

/* A key that the quantized file gets, whatever the source has. */
typedef struct quant_key {
    char key[256];
    ggl_gguf_type type; /* GGL_GGUF_U32, I64, F32, BOOL or STRING */
    union {
        uint32_t u32;
        int64_t i64;
        float f32;
        uint8_t truth;
        const char *text;
    } is;
} quant_key;

/* Reads KEY=TYPE:VALUE, TYPE being int, float, bool or str. A value of str is borrowed from the text. GGL_USAGE, with a
 * message that shows the text. */
GGL_NODISCARD ggl_status llm_quant_read_key(quant_key *k, const char *text, ggl_error *err);
void llm_quant_put_key(ggl_gguf_writer *w, const quant_key *k);

/* Puts the keys of f in order, without the keys of a split model, and changed as c->prune demands.
 * n_layer: the model's block_count. The two keys about types are set as the choice says, unless it
 * copies all tensors. Keys of own[n] replace others; of equal names the last one applies. A changed
 * key keeps its place; a new one is added at the end. GGL_NOMEM; the writer keeps its own errors. */
GGL_NODISCARD ggl_status llm_quant_put_keys(ggl_gguf_writer *w, const ggl_gguf *f,
                                            const quant_choice *c, int64_t n_layer,
                                            const quant_key *own, size_t n, ggl_error *err);

#endif
