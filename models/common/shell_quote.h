/* Writes a path so that it can be copied from a message into a shell.
 *
 *     char word[LLM_SHELL_WORD];
 *     tool_error(TOOL, 1, "this makes one: llm-convert %s", llm_shell_quote(word, path)); */
#ifndef LLM_SHELL_QUOTE_H
#define LLM_SHELL_QUOTE_H

enum { LLM_SHELL_WORD = 2048 };

/* Writes s in single quotes; a quote in it becomes '\''. A name with control characters or bytes that
 * are not UTF-8 becomes $'..', whose escapes a message shows as they are. A path that begins with a
 * dash gets "./" before it, or it would be a flag. What does not fit becomes FILE. Returns word. */
const char *llm_shell_quote(char word[LLM_SHELL_WORD], const char *s);

#endif
