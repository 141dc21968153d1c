/* Colours on a terminal. */
#ifndef TOOLS_COLOR_H
#define TOOLS_COLOR_H

#include <stdbool.h>
#include <stdio.h>

/* Values of --color: auto, always, never, and llama.cpp's on and off. */
extern const char *const tool_color_choices[];

#define COLOR_PROMPT "\033[33m" /* yellow, as in llama.cpp */
#define COLOR_RESET  "\033[0m"

/* Decides whether to print colours to f. when: the value of --color; NULL or "": auto. auto: if f is
 * a terminal that is not "dumb", and the variable NO_COLOR is empty or not set. */
bool tool_color(const char *when, FILE *f);

/* A terminal is not the user's: Open MPI's mpirun gives one to each process that it starts, also if its own output goes to a file or a
 * pipe. From now on "auto" means never. */
void tool_color_unknown(void);

/* True if f is a terminal of the user's. */
bool tool_is_terminal(FILE *f);

#endif
