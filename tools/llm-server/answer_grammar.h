/* Compiled grammars of requests. The same schema comes with request after request: it is compiled once, and
 * the grammars used last are kept. */
#ifndef LLM_SERVER_ANSWER_GRAMMAR_H
#define LLM_SERVER_ANSWER_GRAMMAR_H

#include "ask.h"
#include "llm/internal/grammar.h"

enum {
    GRAMMAR_MAX_TEXT = 1 << 20, /* bytes of a grammar or schema */
    GRAMMARS_KEPT = 16,
    /* Limits of work in steps (llm_matcher_limit). GRAMMAR_COMPILE_STEPS take about 0.1 s; of 500 published schemas none needs
     * half of them. GRAMMAR_MATCH_STEPS take about 40 ms, which is more than any mask of a real schema needs. */
    GRAMMAR_COMPILE_STEPS = 1 << 21,
    GRAMMAR_MATCH_STEPS = 1 << 20,
    GRAMMAR_MATCH_STEPS_BACK = 1 << 17,
    /* Bytes while a grammar is compiled, and of the matchers of an answer */
    GRAMMAR_COMPILE_BYTES = 64 << 20,
    GRAMMAR_MATCH_BYTES = 128 << 20
};

/* The schema of ASK_JSON or ASK_SCHEMA: any object, or this one. */
ggl_str answer_schema_of(ask_form form, ggl_str text);

/* A grammar in use, which must be given back. */
typedef struct answer_grammar answer_grammar;
typedef struct answer_grammars answer_grammars;

answer_grammars *answer_grammars_new(void); /* NULL: out of memory */
void answer_grammars_free(answer_grammars *g);
/* Before the first use: all of them together take their memory from m; NULL: any. */
void answer_grammars_limit(answer_grammars *g, memory *m);

/* What an answer must fit: a form, after reasoning of one of n ways. */
typedef struct answer_form {
    ask_form form; /* ASK_JSON, ASK_SCHEMA or ASK_GBNF */
    ggl_str text;
    llm_thought thought[LLM_THOUGHTS]; /* zeroed behind n_thoughts */
    size_t n_thoughts;
} answer_form;

/* Takes the grammar of a form, compiled now or before; from any thread. GGL_LIMIT: the text
 * is longer than GRAMMAR_MAX_TEXT; statuses of llm_grammar_from_gbnf_with and llm_grammar_from_schema_with. */
GGL_NODISCARD ggl_status answer_grammars_take(answer_grammars *g, answer_grammar **out,
                                              const answer_form *form, ggl_error *err);
const llm_grammar *answer_grammar_get(const answer_grammar *k);
void answer_grammars_give_back(answer_grammars *g, answer_grammar *k); /* k NULL is fine */
/* How many grammars were compiled so far, for tests. */
uint64_t answer_grammars_n_compiled(const answer_grammars *g);

#endif
