#include "budget.h"

#include <inttypes.h>

#include "ggl/internal/alloc.h"

ggl_status llm_budget_take(llm_budget *b, size_t n, size_t size) {
    size_t bytes, all;
    if (!ggl_size_mul(n, size, &bytes) || !ggl_size_add(bytes, b->bytes, &all))
        return GGL_NOMEM;
    if (b->max_bytes > 0 && all > b->max_bytes) {
        b->is_exceeded = true;
        return GGL_LIMIT;
    }
    b->bytes = all;
    return GGL_OK;
}

ggl_status llm_budget_fail(const llm_budget *b, const char *what, ggl_error *err) {
    if (b->max_steps > 0 && b->steps > b->max_steps)
        return ggl_fail(err, GGL_LIMIT, "%s takes more than %" PRIu64 " steps; make it simpler",
                        what, b->max_steps);
    return ggl_fail(err, GGL_LIMIT, "%s takes more than %zu MiB of memory; make it simpler", what,
                    b->max_bytes >> 20);
}

ggl_status llm_budget_grow(llm_budget *b, void *array, size_t *cap, size_t n, size_t size) {
    if (n <= *cap)
        return GGL_OK;
    const size_t old = *cap, by_half = old + old / 2 + 8; /* as ggl_grow does */
    const size_t more = (n > by_half ? n : by_half) - old;
    const ggl_status st = llm_budget_take(b, more, size);
    if (st != GGL_OK)
        return st;
    if (ggl_grow(array, cap, old + more, size))
        return GGL_OK;
    llm_budget_give_back(b, more, size);
    return GGL_NOMEM;
}
