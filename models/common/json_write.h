/* Writes JSON (RFC 8259) into memory.
 *
 *     llm_json_out out = {0};
 *     llm_json_format(&out, "{'name': %.*s, 'n': %d}", LLM_JSON_STR(name), n);
 *     if (out.failed) ..          // out of memory
 *     ggl_free(out.s); */
#ifndef LLM_JSON_WRITE_H
#define LLM_JSON_WRITE_H

#include <limits.h>

#include "json.h"

typedef struct llm_json_out {
    char *s; /* [n], and a NUL; freed with ggl_free */
    size_t n, cap;
    bool failed; /* out of memory, or a string that llm_json_format refuses: text is missing */
} llm_json_out;

/* As printf writes it, but a ' of the format becomes a ", and `%.*s` a string between quotes, as llm_json_put_string
 * writes it. Conversions are d, u, x, f, g, s (a text as it is) and %, with a precision and l, ll or z. */
void llm_json_format(llm_json_out *out, const char *format, ...) GGL_PRINTF(2, 3);
/* The arguments of `%.*s` for a ggl_str. A string of 2 GiB or more is refused: printf's lengths are of the type int. */
#define LLM_JSON_STR(str) llm_json_precision((str).n), (str).s
/* The same for a text that ends with a NUL. */
#define LLM_JSON_TEXT(text) llm_json_precision(strlen(text)), text
static inline int llm_json_precision(size_t n) {
    return n <= INT_MAX ? (int)n : -1; /* a cast alone would make 3 of 4 GiB + 3 */
}

void llm_json_put(llm_json_out *out, const char *text, size_t n); /* as it is */
void llm_json_put_text(llm_json_out *out, const char *text);
/* A string between quotes. Bytes that are not UTF-8 become U+FFFD. */
void llm_json_put_string(llm_json_out *out, ggl_str s);
/* A value of a document, in one line; numbers as they were written. */
void llm_json_put_value(llm_json_out *out, const json_value *v);

#endif
