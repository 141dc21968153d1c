/* What llm_perplexity, llm_imatrix_run and llm_verify share: checks, and windows on several copies of the model. */
#ifndef LIBRARY_MEASURING_H
#define LIBRARY_MEASURING_H

#include <inttypes.h>

#include <stdatomic.h>

#include "ggl/internal/params.h"
#include "ggl/internal/alloc.h"

enum { LEAST_WINDOW = 4, MOST_WINDOW = 1 << 30 }; /* tokens */

/* Checks the size of windows that the caller gave; 0: none was given. */
static inline ggl_status llm_check_window(int64_t n, ggl_error *err) {
    return n == 0 || (n >= LEAST_WINDOW && n <= MOST_WINDOW)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "n_window must be 0, or %d to %d, but is %" PRId64,
                          LEAST_WINDOW, MOST_WINDOW, n);
}

/* Checks the caller's struct for the result before anything is computed for it. */
#define CHECK_RESULT(type, result, err)                                                            \
    ((result) ? GGL_WRITE_PARAMS(type, result, &(const type){.size = sizeof(type)}, err)           \
              : ggl_fail(err, GGL_USAGE, "result is NULL"))

/* --- windows on copies of the model ----------------------------------------------------------- */

/* How many windows may run, or wait for those before them. Large results have no more places than there are copies that run; of others
 * a copy that is several times as fast as another one may compute more. */
static inline size_t llm_window_places(int n_copies, bool are_large) {
    return (size_t)n_copies * (n_copies == 1 || are_large ? 1 : 4);
}

/* Threads of this process that each copy may use beside its device. */
static inline int llm_share_threads(int n_threads, int n_copies) {
    return n_threads > n_copies ? n_threads / n_copies : 1;
}

/* What has run of windows that are not taken yet, by all copies together. */
typedef struct window_progress {
    atomic_int_least64_t done; /* parts of windows */
    int64_t *of; /* [copies]: of the window that each runs; used by its thread alone */
} window_progress;

#define WINDOW_PARTS (INT64_C(1) << 32)

static inline ggl_status llm_window_progress_init(window_progress *p, int n_copies,
                                                  ggl_error *err) {
    atomic_init(&p->done, 0);
    p->of = ggl_calloc((size_t)n_copies, sizeof *p->of);
    return p->of ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}

static inline void llm_window_progress_fini(window_progress *p) {
    ggl_free(p->of);
}

/* share: of the window that the copy runs; 0 begins one. */
static inline void llm_window_progress_set(window_progress *p, int copy, double share) {
    const int64_t now = (int64_t)(share * (double)WINDOW_PARTS + 0.5);
    if (now > p->of[copy])
        atomic_fetch_add(&p->done, now - p->of[copy]);
    p->of[copy] = now;
}

/* A window was taken. */
static inline void llm_window_progress_taken(window_progress *p) {
    atomic_fetch_sub(&p->done, WINDOW_PARTS);
}

/* Tokens that have run, of n_taken windows of n_window tokens and those after them. */
static inline size_t llm_window_tokens(const window_progress *p, int64_t n_taken,
                                       int64_t n_window) {
    const double beyond = (double)atomic_load(&p->done) / (double)WINDOW_PARTS;
    return (size_t)(((double)n_taken + beyond) * (double)n_window + 1e-3);
}

#endif
