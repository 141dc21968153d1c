/* Functions of strings that methods and filters share. */
#ifndef LLM_TEMPLATE_STRINGS_H
#define LLM_TEMPLATE_STRINGS_H

#include "value.h"

/* White space as Python's str.isspace. */
bool llm_tv_is_space(uint32_t c);

enum { TV_LEFT = 1, TV_RIGHT = 2 };
/* Returns s without the characters of `chars` (NULL: white space) at these sides. */
ggl_str llm_tv_strip(tv_heap *h, ggl_str s, const ggl_str *chars, int sides);
/* True if s has letters of that case, and none of the other. */
bool llm_tv_is_case(tv_heap *h, ggl_str s, bool upper);
ggl_str llm_tv_lower(tv_heap *h, ggl_str s);
ggl_str llm_tv_upper(tv_heap *h, ggl_str s);
/* The first character in upper case, the others in lower case; or so for each word, which begins
 * after a character for which `begins` is true (NULL: only the first of the text). title: with the
 * character's title case, as str.title() of Python, where the filter has all of its upper case. */
ggl_str llm_tv_capitalize(tv_heap *h, ggl_str s, bool (*begins)(uint32_t before), bool title);
/* Returns a list of the parts between separators (NULL: runs of white space), at most `most` + 1
 * (negative: all). */
tv llm_tv_split(tv_heap *h, ggl_str s, const ggl_str *separator, int64_t most);
tv llm_tv_split_lines(tv_heap *h, ggl_str s, bool keep_ends);
/* Replaces at most `most` occurrences (negative: all). */
ggl_str llm_tv_replace(tv_heap *h, ggl_str s, ggl_str from, ggl_str to, int64_t most);
/* Returns s with entities in place of & < > " and '. */
ggl_str llm_tv_escape(tv_heap *h, ggl_str s);
/* Joins the texts of the values. */
ggl_str llm_tv_join(tv_heap *h, const tv_list *list, ggl_str separator);

#endif
