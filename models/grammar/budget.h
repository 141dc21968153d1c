/* What the work on one grammar may cost. Readers, the compiler and matchers count their steps and the
 * bytes of their arrays here, and nowhere else. */
#ifndef LLM_GRAMMAR_BUDGET_H
#define LLM_GRAMMAR_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"
#include "ggl/internal/steps.h"

/* Steps since `steps` was last set to 0; bytes that are held now. A maximum of 0 is no limit. */
typedef struct llm_budget {
    uint64_t steps, max_steps;
    size_t bytes, max_bytes;
    bool is_exceeded; /* a limit of these was reached */
} llm_budget;

/* Counts n steps. Returns false if there are too many now. */
static inline bool llm_budget_count(llm_budget *b, uint64_t n) {
    GGL_STEPS(n);
    b->steps += n;
    if (b->max_steps == 0 || b->steps <= b->max_steps)
        return true;
    b->is_exceeded = true;
    return false;
}

/* Counts bytes that are about to be allocated. GGL_LIMIT, and they are not counted: there are too many. */
GGL_NODISCARD ggl_status llm_budget_take(llm_budget *b, size_t n, size_t size);
/* Grows an array as ggl_grow does, and counts its bytes. GGL_LIMIT, GGL_NOMEM: it is unchanged. */
GGL_NODISCARD ggl_status llm_budget_grow(llm_budget *b, void *array, size_t *cap, size_t n,
                                         size_t size);
/* Fails with GGL_LIMIT, and says which of the limits `what` exceeds. */
ggl_status llm_budget_fail(const llm_budget *b, const char *what, ggl_error *err);
/* Gives the bytes of n elements back that are freed. */
static inline void llm_budget_give_back(llm_budget *b, size_t n, size_t size) {
    b->bytes -= n * size < b->bytes ? n * size : b->bytes;
}

#endif
