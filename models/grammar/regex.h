/* Patterns of JSON schemas: ECMA-262 regular expressions, read as expressions of grammars.
 *
 * A pattern need not match a whole text, only a part of it, unless it has anchors. What is read is the
 * set of whole texts in which the pattern matches somewhere. Alternatives, groups, quantifiers (lazy
 * ones are as good as greedy ones), classes, escapes, anchors, and lookahead are exact. Lookbehind,
 * back references, word boundaries, and anchors or lookahead in a repeated group are refused by name.
 * Characters are code points, as with ECMA-262's flag u; \d and \w are ASCII, \s is Unicode's. */
#ifndef LLM_GRAMMAR_REGEX_H
#define LLM_GRAMMAR_REGEX_H

#include "expr.h"

enum { LLM_REGEX_MAX_DEPTH = 100, LLM_REGEX_MAX_COUNT = 1 << 20, LLM_REGEX_MAX_SIZE = 1 << 16 };

/* Sets *out to the texts in which the pattern matches. GGL_FORMAT: not a regular expression;
 * GGL_UNSUPPORTED: a construct that is refused; GGL_LIMIT, GGL_NOMEM. Messages begin with the column,
 * counted in bytes from 1. */
GGL_NODISCARD ggl_status llm_regex_read(int32_t *out, llm_exprs *g, ggl_str pattern,
                                        ggl_error *err);

#endif
