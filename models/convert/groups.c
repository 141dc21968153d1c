#include "groups.h"

#include <string.h>

/* Returns element i of a tensor of numbers, which is not aligned. */
static float number_at(const st_tensor *t, int64_t i) {
    const ggl_type_info *type = ggl_type_get(t->type);
    uint64_t bytes;
    float x;
    memcpy(&bytes, (const char *)t->data + (size_t)i * type->size, type->size);
    type->to_float(&bytes, &x, 1);
    return x;
}

void llm_groups_read(const recipe *r, int64_t first, int64_t n, float *out) {
    const signed char *code = r->source->data;
    for (int64_t k; n > 0; n -= k, first += k, out += k) {
        const int64_t group = first / r->x, left = (group + 1) * r->x - first;
        const float scale = number_at(r->scale, group);
        k = left < n ? left : n;
        for (int64_t i = 0; i < k; i++)
            out[i] = scale * (float)code[first + i];
    }
}
