/* What the readers of grammars hand over: expressions become a grammar that matchers run. */
#ifndef LLM_GRAMMAR_GRAMMAR_H
#define LLM_GRAMMAR_GRAMMAR_H

#include "expr.h"
#include "llm/internal/grammar.h"
#include "pool.h"

struct llm_grammar {
    llm_exprs exprs; /* for vocabularies that cannot write every character */
    int32_t root;
    llm_bx_pool pool; /* the same over bytes; never changes */
    int32_t start;
};

/* The budget of a compilation: 0 steps are no limit, 0 bytes the usual one. */
static inline llm_budget llm_grammar_budget(uint64_t max_steps, size_t max_bytes) {
    return (llm_budget){.max_steps = max_steps,
                        .max_bytes = max_bytes ? max_bytes : (size_t)LLM_GRAMMAR_USUAL_BYTES};
}

/* Makes a grammar whose texts are those of the expression `root` of g (llm_expr_rule for a rule). g is
 * copied, and its steps count those of the compilation. GGL_FORMAT: a rule that is used has no body, or AND or NOT has a rule in it that leads back
 * to itself; GGL_LIMIT: there is no text at all, or AND and NOT are too entangled; GGL_NOMEM; or g's
 * own status. *out is NULL on failure. */
GGL_NODISCARD ggl_status llm_grammar_compile(llm_grammar **out, llm_exprs *g, int32_t root,
                                             ggl_error *err);

#endif
