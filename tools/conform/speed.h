/* How fast a backend is: an operator in a typical large form, and what the device allows. All of it
 * through the backend's functions, so that any backend can be measured. */
#ifndef TOOLS_CONFORM_SPEED_H
#define TOOLS_CONFORM_SPEED_H

#include "case.h"

/* Measured with what the backend itself has: the best of copies, a sum, and sums and absolute
 * values of large values; and the best product of large matrices. 0: not known. */
typedef struct conform_limits {
    double memory_gb;    /* 1e9 bytes read or written in a second */
    double product_gmac; /* 1e9 multiply-adds in a second */
} conform_limits;

conform_limits conform_measure_limits(ggl_backend *b, double seconds);

typedef struct conform_speed {
    char text[CONFORM_TEXT]; /* the form */
    double ns;               /* of the operator, once */
    double reference_ns;     /* the same on the reference */
    double bytes, macs;      /* operands and results; multiply-adds, 0: it is no product */
} conform_speed;

/* Times the case's large form with the types of `typed`; the best of several, within about that
 * time. GGL_NOT_FOUND: the case has none. */
GGL_NODISCARD ggl_status conform_time(const conform_case *info, const conform_form *typed,
                                      ggl_backend *b, double seconds, conform_speed *out,
                                      ggl_error *err);
/* In percent of what the device allows; 0: not known. */
double conform_percent(const conform_speed *s, const conform_limits *l);

#endif
