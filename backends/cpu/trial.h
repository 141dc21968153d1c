/* Tries kernels for panels beside those that they replace. For instruction sets whose speed or whose
 * results on this machine nobody could verify when they were written. */
#ifndef CPU_TRIAL_H
#define CPU_TRIAL_H

#include "kernels.h"

/* For each product whose tile() differs between the tables: takes what is for many columns from
 * `other` into k, unless k's results on made-up weights have the same bits and, if `timed`, need less
 * time. Without memory for a trial, too. Takes some milliseconds. Returns how many products k keeps. */
int ggl_cpu_trial(cpu_kernels *k, const cpu_kernels *other, bool timed);
/* Sets k to the kernels of `features`. Each feature of CPU_TRIED, the lowest first, is tried beside
 * the best without it. Returns the features without those that are never used. */
uint32_t ggl_cpu_kernels_choose(cpu_kernels *k, uint32_t features, bool timed);

#endif
