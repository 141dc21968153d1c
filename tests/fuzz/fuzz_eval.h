/* Takes a finished graph through what follows it: folding, the schedule, memory, one run. */
#ifndef FUZZ_EVAL_H
#define FUZZ_EVAL_H

#include "ggl/graph.h"

/* Every failure must have a message. Graphs that would take much time or memory are skipped, judged
 * by the graph and the schedule's sizes before anything is allocated. */
void fuzz_eval(ggl_graph *g);

#endif
