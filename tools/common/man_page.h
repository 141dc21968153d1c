/* --man: the manual page of a tool, as troff source with the macros of man(7). */
#ifndef TOOLS_MAN_PAGE_H
#define TOOLS_MAN_PAGE_H

#include "arg_table.h"

/* Prints the page to stdout. The page of a tool with commands has a section for each command. For a
 * command, only its section is printed. */
void man_page_print(const args_spec *spec, const char *version);

#endif
