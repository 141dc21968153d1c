/* The backends on which logits of a made-up model are compared, the ways in which a prompt runs on the CPU with the same bits, and how logits differ. */
#ifndef TOY_WAYS_H
#define TOY_WAYS_H

#include "toy_run.h"

typedef struct toy_backends {
    ggl_backend *cpu[2], *cpu3, *reference; /* with 1, 2 and 3 threads */
} toy_backends;
/* GGL_OK, or the status of the first one that does not open; toy_backends_close closes the others. */
ggl_status toy_backends_open(toy_backends *b, ggl_error *err);
void toy_backends_close(toy_backends *b);

enum { TOY_WAYS = 3 };
typedef struct toy_way {
    const char *what;
    ggl_backend *const *backend;
    int n_backends, split, chunk; /* of toy_start and toy_prompt */
} toy_way;
/* The ways other than on one backend with one thread. They borrow from b. */
void toy_ways(const toy_backends *b, toy_way out[TOY_WAYS]);

typedef struct toy_logits {
    float *at; /* freed with free */
    size_t n;
} toy_logits;
/* Returns the largest difference, as a share of b's largest logit (of 1, if that is less). Tokens that a descriptor forbids have the smallest number that
 * there is, and do not count. */
double toy_distance(const toy_logits *a, const toy_logits *b);
/* Returns how many logits have other bits. All NaN are equal. */
size_t toy_other_bits(const toy_logits *a, const toy_logits *b);

#endif
