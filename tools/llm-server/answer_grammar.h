/* Compiled grammars of requests. The same schema comes with request after request: it is compiled once, and
 * the grammars used last are kept. */
#ifndef LLM_SERVER_ANSWER_GRAMMAR_H
#define LLM_SERVER_ANSWER_GRAMMAR_H

#include "ask.h"
#include "llm/grammar.h"

enum {
    GRAMMAR_MAX_TEXT = 1 << 20, /* bytes of a grammar or schema */
    GRAMMARS_KEPT = 16
};

typedef struct answer_grammars answer_grammars;

answer_grammars *answer_grammars_new(void); /* NULL: out of memory */
void answer_grammars_free(answer_grammars *g);

/* Makes a matcher of ASK_JSON, ASK_SCHEMA or ASK_GBNF; may be called from several threads at once. GGL_LIMIT: the text
 * is longer than GRAMMAR_MAX_TEXT; statuses of llm_grammar_from_gbnf, llm_grammar_from_schema_with and
 * llm_matcher_new. */
GGL_NODISCARD ggl_status answer_grammars_matcher(answer_grammars *g, llm_matcher **out,
                                                 ask_form form, ggl_str text,
                                                 const llm_vocab *vocab, ggl_error *err);
/* How many grammars were compiled so far. */
uint64_t answer_grammars_n_compiled(const answer_grammars *g);

#endif
