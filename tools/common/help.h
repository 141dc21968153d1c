/* --help: the options of a table, in groups. */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include "arg_table.h"

/* Prints the help to stdout, wrapped to the terminal's width: usage, commands, options by group,
 * examples. */
void help_print(const args_spec *spec);
/* Prints only the group whose heading begins with the word, in upper or lower case. Returns false,
 * and prints nothing, if there is no such group. */
bool help_print_group(const args_spec *spec, const char *word);
/* Writes the names of the groups, separated by commas. Returns false if the table has no groups. */
bool help_groups(const args_spec *spec, char *text, size_t size);

#endif
