/* Collects sums of squares of what products with a model's weights read, while the model runs.
 *
 *     collector *c;
 *     if (llm_collector_new(&c, false, COLLECTOR_DIRECTIONS, &err) != GGL_OK) ...
 *     session_params.watch = llm_collector_watch(c);
 *     ..                                                 // make the session
 *     collected *sums;
 *     st = llm_collected_new(&sums, c, &err);
 *     llm_collector_into(c, sums);
 *     ..                                                 // run texts
 *     st = llm_collector_check(c, sums, &err);
 *     st = llm_collector_put(c, sums, matrix, &err);
 *     llm_collected_free(sums);
 *
 * Sums are in double, and rows are added in the order of the batches. So they depend neither on threads, nor on
 * backends that compute the same bits, nor on how a text is cut into batches. Products that read the same value
 * share its sums. Sums of a text's chunks, each collected by itself, are added by llm_collected_add: then they do not depend
 * either on which of several sessions of a model has run which chunk.
 *
 * Threads: llm_collector_into and the sums that it has got as the session; the others only while nothing else uses
 * their arguments. */
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
/* True if the sessions of both compute the same sums, in the same order. */
bool llm_collector_same(const collector *a, const collector *b);

/* What is collected. */
typedef struct collected collected;

/* Makes sums, all of them 0, for a collector whose session is made, or one that is the same. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_collected_new(collected **out, const collector *c, ggl_error *err);
void llm_collected_free(collected *d); /* NULL is fine */
void llm_collected_clear(collected *d);
void llm_collected_add(collected *d, const collected *more);
/* From now on, what is seen is added to these sums; NULL: it is forgotten, as before the first call. */
void llm_collector_into(collector *c, collected *to);
/* Fails if a sum is not finite: then the model's values are not; the message names the weight. */
GGL_NODISCARD ggl_status llm_collector_check(const collector *c, const collected *d,
                                             ggl_error *err);
/* Adds what was collected to the matrix. */
GGL_NODISCARD ggl_status llm_collector_put(const collector *c, const collected *d, imatrix *m,
                                           ggl_error *err);

#endif
