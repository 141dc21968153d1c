/* The learning rate of each step: it grows from 0 to its largest, stays there for a while, and then falls. */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include "ggl/status.h"

typedef enum train_fall { TRAIN_COSINE, TRAIN_LINEAR, TRAIN_CONSTANT } train_fall;

typedef struct train_schedule {
    double rate, end; /* the largest one; which share of it is left at the end */
    double hold;      /* for which share of the steps after the warm-up it stays at its largest */
    train_fall fall;
    int64_t n_warmup, n_steps; /* n_steps 0: not known yet, and it does not fall */
} train_schedule;

/* Finds the way of falling by its name; NULL: cosine. GGL_USAGE: there is none of that name. */
GGL_NODISCARD ggl_status llm_train_fall_find(train_fall *out, const char *name, ggl_error *err);
const char *llm_train_fall_name(train_fall fall);
/* Returns the rate of a step, 0 .. n_steps-1. */
double llm_train_rate(const train_schedule *s, int64_t step);

#endif
