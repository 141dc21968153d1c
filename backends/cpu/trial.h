/* Tries kernels for panels beside those that they replace. For instruction sets whose speed or whose
 * results on this machine nobody could verify when they were written. */
#ifndef CPU_TRIAL_H
#define CPU_TRIAL_H

#include "kernels.h"

/* For each product whose tile() differs between the tables: takes what is for many columns from
 * `other` into k, unless k's results on made-up weights have the same bits and need less time.
 * Without memory for a trial, too. Takes some milliseconds. Returns how many products k keeps. */
int ggl_cpu_trial(cpu_kernels *k, const cpu_kernels *other);

#endif
