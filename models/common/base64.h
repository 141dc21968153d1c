/* Bytes as text of 64 digits (RFC 4648). */
#ifndef LLM_BASE64_H
#define LLM_BASE64_H

#include "ggl/str.h"

/* The bytes that n digits stand for at most. */
static inline size_t llm_base64_room(size_t n) {
    return n / 4 * 3;
}

/* Decodes a text into `to`, which has room for llm_base64_room of its bytes, and sets *n_out to their number. The digits come in fours, the last of which may
 * end with one or two '='; bits that are left over are 0; and there is nothing else, not even white space. False: it is something else, and
 * *wrong is the place of the first character that does not belong there, or the text's length if characters are missing. */
bool llm_base64_decode(unsigned char *to, size_t *n_out, ggl_str text, size_t *wrong);

#endif
