/* Which bytes of texts stem from messages: those that a rendering is given, and what it makes of them. Texts have no room for that, so it is noted
 * by address: a bit for each byte of the pages that have any. All texts of a rendering live as long as it does. */
#ifndef LLM_TEMPLATE_ORIGIN_H
#define LLM_TEMPLATE_ORIGIN_H

#include "llm/internal/tokenizer.h"
#include "value.h"

/* Notes origins from here on. */
void llm_tv_note_origin(tv_heap *h);
/* These do nothing unless origins are noted. The first notes that a text stems from messages; the second that a copy of n bytes does as far as
 * what it was made of; the third that bytes to[0..n) do if the byte at `from` does. */
void llm_tv_give(tv_heap *h, ggl_str s);
void llm_tv_copied(tv_heap *h, const char *to, const char *from, size_t n);
void llm_tv_derived(tv_heap *h, const char *to, size_t n, const char *from);
/* The strings of a value, and the names of its objects, stem from messages. */
void llm_tv_give_json(tv_heap *h, const json_value *v);
/* Returns the JSON text of a value, with numbers as they were written; it stems from messages. */
ggl_str llm_tv_written(tv_heap *h, const json_value *v);
/* Appends the stretches of a text that stem from messages. False: out of memory. */
bool llm_tv_origins(const tv_heap *h, ggl_str text, llm_spans *out);

#endif
