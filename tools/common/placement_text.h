/* What the tools print about where a model runs. */
#ifndef TOOLS_PLACEMENT_TEXT_H
#define TOOLS_PLACEMENT_TEXT_H

#include <stdio.h>

#include "place/placement.h"

/* llm_opening.placed: prints where the layers run, and what does not run where it was placed. */
void placement_say(void *unused, const llm_placement *p, const llm_session *s);
/* Prints all backends and devices of this build, one per line, with the reason if one cannot be
 * used. */
void placement_list(FILE *out);

#endif
