/* Takes a finished graph through what follows it: folding, the schedule, memory, one run. */
#ifndef FUZZ_EVAL_H
#define FUZZ_EVAL_H

#include "ggl/graph.h"

/* Whatever fails must say so. What would take long or much memory is left out, found from the graph
 * and from the schedule's sizes before anything is allocated. */
void fuzz_eval(ggl_graph *g);

#endif
