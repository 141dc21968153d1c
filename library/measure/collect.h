/* Collects sums of squares of what products with a model's weights read, while the model runs.
 *
 *     collector *c;
 *     if (llm_collector_new(&c, false, COLLECTOR_DIRECTIONS, &err) != GGL_OK) ...
 *     session_params.watch = llm_collector_watch(c);
 *     ..                                                 // make the session, run texts
 *     st = llm_collector_check(c, &err);
 *     st = llm_collector_put(c, matrix, &err);
 *
 * Sums are in double, and rows are added in the order of the batches. So they depend neither on threads, nor on
 * backends that compute the same bits, nor on how a text is cut into batches. Products that read the same value
 * share its sums.
 *
 * Threads: as the session; collector_put and the like only while nothing runs. */
#ifndef LIBRARY_COLLECT_H
#define LIBRARY_COLLECT_H

#include "imatrix.h"
#include "ggl/sched.h"

enum { COLLECTOR_DIRECTIONS = 32 }; /* numbers for each column where the user gives none */

typedef struct collector collector;

/* output: also collects what the products that make the logits read. n_sketch: numbers for each column of sketches
 * (imatrix_sketch.h); 0: none. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_collector_new(collector **out, bool output, int n_sketch,
                                           ggl_error *err);
void llm_collector_free(collector *c); /* after the session */
const ggl_watch *llm_collector_watch(collector *c);
/* The weights for which nothing can be collected, because they are multiplied with something that is made
 * within an operation, or only in parts: their number, and the name of one. */
size_t llm_collector_n_missed(const collector *c, const char **name);
/* Returns the error of making the session: out of memory. Fails if a sum is not finite: then the model's
 * values are not; the message names the weight. */
GGL_NODISCARD ggl_status llm_collector_check(const collector *c, ggl_error *err);
/* Adds what was collected to the matrix. */
GGL_NODISCARD ggl_status llm_collector_put(const collector *c, imatrix *m, ggl_error *err);

#endif
