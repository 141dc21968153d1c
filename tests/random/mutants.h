/* A test of the test: the judge has to find each of a list of faults. */
#ifndef RANDOM_MUTANTS_H
#define RANDOM_MUTANTS_H

#include <stdio.h>

#include "run.h"

/* The engine runs programs in which one thing is wrong, or a backend that computes one operator
 * wrongly; prints after how many graphs each fault was found. only: that one. False: one was not
 * found. */
bool r_mutants(r_bench *b, const char *only, FILE *out);

#endif
