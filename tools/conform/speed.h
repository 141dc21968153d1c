/* Measures how fast a backend is: an operator in a large typical form, and the limits of the
 * device. Uses only the backend's functions, so that any backend can be measured. */
#ifndef TOOLS_CONFORM_SPEED_H
#define TOOLS_CONFORM_SPEED_H

#include "case.h"

/* Limits measured with the backend itself: the best of copies, sums and absolute values of large
 * values, and the best product of large matrices. 0: not known. */
typedef struct conform_limits {
    double memory_gb;    /* 1e9 bytes read or written per second */
    double product_gmac; /* 1e9 multiply-adds per second */
} conform_limits;

conform_limits conform_measure_limits(ggl_backend *b, double seconds);

typedef struct conform_speed {
    char text[CONFORM_TEXT]; /* the form */
    double ns;               /* of one run of the operator */
    double reference_ns;     /* of one run on the reference */
    /* bytes of operands and results; multiply-adds, 0 if it is not a product */
    double bytes, macs;
} conform_speed;

/* Times the case's large form with the types of `typed`: the best of several runs that take
 * about `seconds`. GGL_NOT_FOUND: the case has no large form. */
GGL_NODISCARD ggl_status conform_time(const conform_case *info, const conform_form *typed,
                                      ggl_backend *b, double seconds, conform_speed *out,
                                      ggl_error *err);
/* Returns the speed in percent of the device's limit; 0: not known. */
double conform_percent(const conform_speed *s, const conform_limits *l);

#endif
