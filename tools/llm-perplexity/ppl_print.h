/* Prints the comparison of two models' predictions. */
#ifndef TOOLS_PPL_PRINT_H
#define TOOLS_PPL_PRINT_H

#include <stdio.h>

#include "llm/llm.h"

void ppl_print_compared(const llm_perplexity_result *r, FILE *to);
void ppl_print_compared_json(const llm_perplexity_result *r, FILE *to);

#endif
