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

/* A terminal is not the user's: mpirun gives one to each rank, also if its output goes to a file. From now on "auto" means never. */
void tool_color_unknown(void);

#endif
