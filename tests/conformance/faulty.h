/* The CPU backend with a fault, for tests of what finds faults. */
#ifndef FAULTY_H
#define FAULTY_H

#include "ggl/backends.h"

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_BATCH,    /* wrong in the second and later of the batch */
    FAULT_TAIL,     /* wrong in the last element of rows whose length 16 does not divide */
    FAULT_VIEW,     /* wrong where an operand is a slice */
    FAULT_BIAS,     /* leaves out a third operand: adds a number instead */
    FAULT_NAN,      /* NaN becomes zero */
    FAULT_FLUSH,    /* subnormal results become zeros; this is allowed */
    FAULT_FAILS,    /* run fails for more than three of the batch */
    FAULT_REFUSES,  /* does not have it for weights of a type, ... */
    FAULT_UNKNOWN,  /* does not have it at all */
    FAULT_CONFUSED, /* tanh is computed as sigmoid, wherever it stands */
    FAULT_ASYNC     /* runs are done when they are waited for; this is allowed */
} fault_kind;

/* b: the CPU's, closed by the caller after this one. op, and type of its weight (GGL_TYPE_LIMIT:
 * any). Free by faulty_close. NULL: out of memory. */
ggl_backend *faulty_open(ggl_backend *b, fault_kind kind, ggl_op op, ggl_type type);
void faulty_close(ggl_backend *b);

#endif
