/* Clusters: the characters that a reader takes for one, such as a letter with its accents (Unicode, annex 29, extended grapheme clusters). */
#ifndef LLM_TEXT_CLUSTER_H
#define LLM_TEXT_CLUSTER_H

#include <stddef.h>

/* Returns the bytes of the first cluster of s[0..n), n > 0. A byte that is not UTF-8 is a character without properties. */
size_t llm_cluster_length(const char *s, size_t n);

#endif
