/* Prints the comparison of two models' predictions. */
#ifndef TOOLS_PPL_PRINT_H
#define TOOLS_PPL_PRINT_H

#include <stdio.h>

#include "measure/ppl_stats.h"

/* Both print all results, and sort kld and p_diff [s->n]. */
void ppl_print_compared(const ppl_stats *s, double *kld, double *p_diff, FILE *to);
void ppl_print_compared_json(const ppl_stats *s, double *kld, double *p_diff, FILE *to);

#endif
