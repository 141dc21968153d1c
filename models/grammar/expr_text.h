/* Texts of expressions without rules: whether a text belongs to one, and the texts of those that
 * have few. */
#ifndef LLM_GRAMMAR_EXPR_TEXT_H
#define LLM_GRAMMAR_EXPR_TEXT_H

#include "expr.h"

int32_t llm_expr_any_char(llm_exprs *g);
/* Any text of characters. */
int32_t llm_expr_any_text(llm_exprs *g);

static inline bool llm_expr_nullable(const llm_exprs *g, int32_t e) {
    return e == LLM_EXPR_EMPTY || (g->n_nodes > 0 && g->node[e].nullable);
}

/* The texts that follow the character c in texts of e (its derivative). */
int32_t llm_expr_after(llm_exprs *g, int32_t e, uint32_t c);
/* True if a text of UTF-8 belongs to e. Adds expressions to the pool. */
bool llm_expr_matches(llm_exprs *g, int32_t e, ggl_str text);

/* Appends the texts of e, which has only characters of `chars`, to out[0..*n). Returns false if these become more
 * than `most`, or one of them is long. */
bool llm_expr_texts(llm_exprs *g, int32_t e, const char *chars, int32_t *out, int32_t *n,
                    int32_t most);

/* True if e is a list of single texts: a sequence of characters, or alternatives of these. */
bool llm_expr_is_list(const llm_exprs *g, int32_t e);
/* The texts of the list that belong to `of` too (keep), or that do not. */
int32_t llm_expr_list_filter(llm_exprs *g, int32_t list, int32_t of, bool keep);

#endif
