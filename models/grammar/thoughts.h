/* Reasoning before a text. */
#ifndef GRAMMAR_THOUGHTS_H
#define GRAMMAR_THOUGHTS_H

#include "expr.h"
#include "llm/internal/grammar.h"

/* The texts that fit `e` after reasoning of one of n ways; if none of them has begun, also without reasoning. */
int32_t llm_expr_after_thoughts(llm_exprs *g, const llm_thought *t, size_t n, int32_t e);

#endif
