/* How programs of Windows write texts: with a byte order mark, as UTF-16, with lines that end with CR LF. No threads. */
#ifndef MODELS_COMMON_USER_TEXT_H
#define MODELS_COMMON_USER_TEXT_H

#include <stdbool.h>

#include "ggl/str.h"

/* Returns the text after its byte order mark, if it begins with one: that is no part of what the user wrote. */
ggl_str llm_text_after_mark(ggl_str text);
/* If the bytes are UTF-16 or UTF-32, by a byte order mark or by the zero bytes of the first two characters, returns the part of an error that
 * follows the name of the file; else NULL. */
const char *llm_text_wide(ggl_str text);
/* True for JSON: by the end of the path, such as .jsonl, or else because the text begins as an object with a key does, or a list of objects. */
bool llm_text_is_json(const char *path, ggl_str text);
/* Replaces each CR LF of s[n] by LF in out, which may be s. Returns the new length, at most n. */
size_t llm_text_end_lines(const char *s, size_t n, char *out);
/* The part of a note about CR LF that follows the name of the file. */
#define LLM_TEXT_LINES_ENDED                                                                       \
    "lines end with CR LF, as on Windows, and are read as if they ended with LF"

#endif
