/* Shortest texts of expressions, and the fewest tokens that spell a text. */
#ifndef LLM_GRAMMAR_SHORTEST_H
#define LLM_GRAMMAR_SHORTEST_H

#include "pool.h"
#include "vocab.h"

typedef struct llm_bytes {
    char *s;
    size_t n, cap;
} llm_bytes;

enum { LLM_SHORTEST_MAX = 1 << 24 };

/* Appends a shortest text of e, which has one. Sets GGL_LIMIT if it has more than LLM_SHORTEST_MAX
 * bytes. */
void llm_shortest_text(llm_bx_pool *p, int32_t e, llm_bytes *out);

/* Work space and result of llm_spell. */
typedef struct llm_spelled {
    int32_t *id;                  /* [n] */
    int32_t *best, *from, *token; /* by bytes of the text: fewest tokens up to there, .. */
    size_t n, cap_id, cap_best, cap_from, cap_token;
} llm_spelled;

/* Finds the fewest tokens whose texts make up s[0..n). Returns false if there are none (n is then 0),
 * or if out of memory (*failed). */
bool llm_spell(const llm_vocab *v, const char *s, size_t n, llm_spelled *out, bool *failed);
void llm_spelled_fini(llm_spelled *s);

#endif
