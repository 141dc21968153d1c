/* Expressions over characters become expressions over bytes. */
#ifndef LLM_GRAMMAR_TRANSLATE_H
#define LLM_GRAMMAR_TRANSLATE_H

#include "expr.h"
#include "pool.h"

/* Characters that can be written, as ascending ranges. */
typedef struct llm_spelling {
    const llm_char_range *range;
    int32_t n;
} llm_spelling;

/* Translates `root` of g to *start in p, which is zeroed. Rules that lead back to themselves become
 * rules of p, all others are put where they are used. What has no text is left out, as are
 * characters that `spelling` (NULL: all) does not have. Fails as llm_grammar_compile does; p is then
 * the caller's to free. *start is LLM_BX_NONE if there is no text. */
GGL_NODISCARD ggl_status llm_translate(llm_bx_pool *p, const llm_exprs *g, int32_t root,
                                       const llm_spelling *spelling, int32_t *start,
                                       ggl_error *err);

/* The bytes of one character of a set: n ascending ranges. */
int32_t llm_translate_class(llm_bx_pool *p, const llm_char_range *range, int32_t n,
                            const llm_spelling *spelling);

#endif
