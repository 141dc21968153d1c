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
    int32_t *id; /* [n] */
    /* For s[0..i): the fewest tokens, and of them the last one's begin and id; [n + 1] */
    int32_t *best, *from, *token;
    size_t n, cap_id, cap_best, cap_from, cap_token;
} llm_spelled;

/* Finds the fewest tokens whose texts make up s[0..n). Returns false if no tokens do (n is then 0),
 * or after a failure (p->status). */
bool llm_spell(llm_bx_pool *p, const llm_vocab *v, const char *s, size_t n, llm_spelled *out);
void llm_spelled_fini(llm_spelled *s);
static inline size_t llm_spelled_size(const llm_spelled *s) {
    return (s->cap_id + s->cap_best + s->cap_from + s->cap_token) * sizeof *s->id;
}

/* The fewest tokens for each end of a text. A text mostly has a long end in common with the one before,
 * so that only its beginning is computed. */
typedef struct llm_suffixes {
    llm_bytes text;  /* reversed */
    int32_t *tokens; /* [text.n + 1] for the last i bytes; LLM_BX_DEAD: nothing spells them */
    size_t cap_tokens;
} llm_suffixes;

/* Returns the fewest tokens whose texts make up s[0..n), LLM_BX_DEAD if no tokens do, or -1 after a
 * failure (p->status). Adds to *n_new the bytes that were not at the common end. */
int32_t llm_count_tokens(llm_bx_pool *p, const llm_vocab *v, const char *s, size_t n,
                         llm_suffixes *x, size_t *n_new);
void llm_suffixes_fini(llm_suffixes *x);
static inline size_t llm_suffixes_size(const llm_suffixes *x) {
    return x->text.cap + x->cap_tokens * sizeof *x->tokens;
}

#endif
