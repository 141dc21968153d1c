#include "arrays.h"

ggl_status llm_need_array(const char *name, const void *array, size_t n, ggl_error *err) {
    return array || n == 0 ? GGL_OK
                           : ggl_fail(err, GGL_USAGE, "%s is NULL, but has %zu elements", name, n);
}

ggl_status llm_need_texts(const char *name, const char *const *text, size_t n, ggl_error *err) {
    for (size_t i = 0; i < n; i++)
        if (!text || !text[i])
            return ggl_fail(err, GGL_USAGE, "%s[%zu] is NULL; n_%s is %zu", name, i, name, n);
    return GGL_OK;
}

size_t llm_common_beginning(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    size_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}
