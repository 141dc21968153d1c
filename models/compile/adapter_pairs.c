/* The numbers of pairs; see llm/internal/adapter_pairs.h. */
#include "llm/internal/adapter_pairs.h"

#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"

bool llm_adapter_find_pair(const ggl_gguf *adapter, ggl_str name, llm_adapter_pair *out) {
    char text[256];
    snprintf(text, sizeof text, "%.*s.lora_a", (int)name.n, name.s);
    const ggl_gguf_tensor *a = ggl_gguf_find_tensor(adapter, text);
    text[name.n + 6] = 'b';
    const ggl_gguf_tensor *b = ggl_gguf_find_tensor(adapter, text);
    snprintf(text + name.n, sizeof text - name.n, ".lora_magnitude");
    const ggl_gguf_tensor *m = ggl_gguf_find_tensor(adapter, text);
    const bool flipped = ggl_str_is(name, "token_embd.weight");
    *out = (llm_adapter_pair){flipped ? a : b, flipped ? b : a, m, flipped, b ? b->ne[0] : 0};
    return a && b;
}

/* Decodes row `row` of matrix m of a tensor. */
static void decode_row(const ggl_gguf_tensor *t, int64_t m, int64_t row, float *out) {
    const size_t size = ggl_row_size(t->type, t->ne[0]);
    ggl_type_get((int)t->type)
        ->to_float((const char *)t->data + (size_t)(m * t->ne[1] + row) * size, out, t->ne[0]);
}

bool llm_adapter_columns(const llm_adapter_pair *p, int64_t m, int64_t n_in, float *out) {
    const ggl_gguf_tensor *t = p->columns;
    const int64_t i = t->ne[2] > 1 ? m : 0; /* one for a whole stack is shared */
    if (!p->flipped) {
        for (int64_t r = 0; r < p->rank; r++)
            decode_row(t, i, r, out + r * n_in);
        return true;
    }
    float *ranks = ggl_calloc((size_t)p->rank, sizeof *ranks);
    for (int64_t k = 0; ranks && k < n_in; k++) {
        decode_row(t, 0, k, ranks);
        for (int64_t r = 0; r < p->rank; r++)
            out[r * n_in + k] = ranks[r];
    }
    ggl_free(ranks);
    return ranks != NULL;
}

double llm_adapter_magnitude(const llm_adapter_pair *p, int64_t m, int64_t row) {
    return (double)((const float *)p->magnitude->data)[m * p->rows->ne[1] + row];
}

void llm_adapter_row(const llm_adapter_pair *p, int64_t m, int64_t row, float *out) {
    decode_row(p->rows, m, row, out);
}
