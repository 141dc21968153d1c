#include "thoughts.h"

#include <string.h>

#include "expr_text.h"

static int32_t text(llm_exprs *g, const char *s) {
    return llm_expr_text(g, (ggl_str){s, strlen(s)});
}

/* The rest of reasoning: any text without the closing mark, then this mark and blanks. */
static int32_t rest_of(llm_exprs *g, const llm_thought *t) {
    const llm_char_range white[] = {{' ', ' '}, {'\n', '\n'}};
    const int32_t blanks = llm_expr_repeat(g, llm_expr_class(g, white, 2, false), 0, 2);
    const int32_t any = llm_expr_repeat(g, llm_expr_class(g, NULL, 0, true), 0, LLM_EXPR_MANY);
    const int32_t close = text(g, t->close);
    return llm_expr_seq3(g, llm_expr_not(g, llm_expr_seq3(g, any, close, any)), close, blanks);
}

int32_t llm_expr_after_thoughts(llm_exprs *g, const llm_thought *t, size_t n, int32_t e) {
    int32_t before = LLM_EXPR_EMPTY;
    for (size_t i = 0; i < n; i++) {
        const int32_t rest = rest_of(g, &t[i]);
        if (t[i].is_begun)
            return llm_expr_seq2(g, rest, e);
        before = llm_expr_alt2(g, before, llm_expr_seq2(g, text(g, t[i].open), rest));
    }
    return n > 0 ? llm_expr_seq2(g, before, e) : e;
}
