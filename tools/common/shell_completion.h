/* --completion: a script that completes a tool's command lines. */
#ifndef TOOLS_SHELL_COMPLETION_H
#define TOOLS_SHELL_COMPLETION_H

#include "arg_table.h"

/* Prints the script for a shell ("bash", "zsh" or "fish") to stdout. It completes flags, commands,
 * arguments without flags, and the values of flags that are choices, files, models or folders. For a
 * command of a tool, only its part of the script is printed. */
void shell_completion_print(const args_spec *spec, const char *shell);

#endif
