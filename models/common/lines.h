/* The lines of a text that is in memory. */
#ifndef LLM_LINES_H
#define LLM_LINES_H

#include "ggl/str.h"

/* Takes the next line of *rest, without its newline. False if none. */
bool llm_take_line(ggl_str *rest, ggl_str *line);
/* The same, but passes over empty lines and comments, which begin with '#'. */
bool llm_take_entry(ggl_str *rest, ggl_str *line);

#endif
