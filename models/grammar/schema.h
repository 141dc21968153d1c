/* JSON schemas as expressions of grammars: the JSON texts that are valid under a schema.
 * docs/json-schema.md says which keywords are supported, and what is guaranteed. */
#ifndef LLM_GRAMMAR_SCHEMA_H
#define LLM_GRAMMAR_SCHEMA_H

#include "expr.h"
#include "llm/grammar.h"

/* Builds the expression of the texts that are valid under the schema text[0..n). `name` stands for it
 * in messages: "NAME: #/properties/a/pattern: ..".
 * GGL_FORMAT: not JSON, or not a schema; GGL_UNSUPPORTED: a keyword that cannot be guaranteed;
 * GGL_LIMIT: too large; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_schema_read(int32_t *out, llm_exprs *g, const char *text, size_t n,
                                         const char *name, const llm_schema_params *params,
                                         ggl_error *err);
/* After llm_grammar_compile failed: if no value is valid under the schema, replaces the message by
 * one that names the part that is the reason. */
void llm_schema_explain(const char *text, size_t n, const char *name, const llm_budget *use,
                        ggl_error *err);
/* Any JSON text. */
int32_t llm_schema_any(llm_exprs *g);

#endif
