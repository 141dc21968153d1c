/* Regular expressions for names, as people write them on command lines: POSIX's extended ones, and what is common to other
 * dialects.
 *
 *     a|b   (..)   (?:..)   *   +   ?   {2}  {2,}  {2,5}  {,5}   .   ^   $   [a-z_]   [^[:digit:]]
 *     \d \w \s \D \W \S     classes of ASCII, also in brackets
 *     \b \B \< \>           the edge of a word, no edge, the begin and the end of a word
 *     \.                    '\' takes the meaning from any character but letters and digits, also in brackets
 *
 * A '?' after another of these marks (lazy in other dialects) changes nothing, since it is only asked whether an expression matches.
 * There are no back references, and no lookaround. Characters are those of UTF-8; a byte that is part of none is one, too.
 *
 * The time to match is at most the product of both lengths, with that of the expression after counts are written out (a{3} is
 * aaa). The memory is bounded, too: an expression that becomes longer than LLM_PATTERN_MOST is refused.
 *
 * Threads: one at a time matches with a pattern, since what it learns about texts is kept in it. */
#ifndef LLM_PATTERN_H
#define LLM_PATTERN_H

#include "ggl/status.h"
#include "ggl/str.h"

enum { LLM_PATTERN_MOST = 1 << 15, LLM_PATTERN_MOST_DEPTH = 100 };

typedef struct llm_pattern llm_pattern;

/* Reads the expression, which is not needed afterwards. GGL_USAGE: it is none, or too long, with the column in bytes from 1;
 * GGL_NOMEM. After an error *out is NULL. */
GGL_NODISCARD ggl_status llm_pattern_read(llm_pattern **out, ggl_str text, ggl_error *err);
void llm_pattern_free(llm_pattern *p);

/* True if the expression matches somewhere in the text. Allocates nothing. */
bool llm_pattern_matches(llm_pattern *p, ggl_str text);

#endif
