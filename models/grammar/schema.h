/* JSON schemas as expressions of grammars: the JSON texts that are valid under a schema.
 * docs/json-schema.md says which keywords are supported, and what is guaranteed. */
#ifndef LLM_GRAMMAR_SCHEMA_H
#define LLM_GRAMMAR_SCHEMA_H

#include "expr.h"
#include "llm/internal/grammar.h"

/* Builds the expression of the texts that are valid under the schema text[0..n). `name` stands for it
 * in messages: "NAME: #/properties/a/pattern: ..".
 * GGL_FORMAT: not JSON, or not a schema; GGL_UNSUPPORTED: a keyword that cannot be guaranteed;
 * GGL_LIMIT: too large; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_schema_read(int32_t *out, llm_exprs *g, const char *text, size_t n,
                                         const char *name, const llm_schema_params *params,
                                         ggl_error *err);
/* A property of an object, written in a form that is not JSON: strings without quotes, and other values as JSON texts in which
 * no string has '<' as itself (it is \u003c). */
typedef struct llm_schema_argument {
    ggl_str name;
    bool required;
    int32_t text;    /* the valid strings, as they are; LLM_EXPR_NONE if none */
    int32_t quoted;  /* the same as JSON */
    int32_t scalars; /* null, booleans and numbers */
    int32_t shapes;  /* arrays and objects */
} llm_schema_argument;

/* Builds the expressions of all properties of the objects that are valid under a schema with "properties" and
 * "required"; *argument is freed with ggl_free. As llm_schema_read; GGL_UNSUPPORTED also: other keywords say which objects are
 * valid. */
GGL_NODISCARD ggl_status llm_schema_read_arguments(llm_schema_argument **argument,
                                                   size_t *n_arguments, llm_exprs *g,
                                                   const char *text, size_t n, const char *name,
                                                   ggl_error *err);
/* After llm_grammar_compile failed: if no value is valid under the schema, replaces the message by
 * one that names the part that is the reason. */
void llm_schema_explain(const char *text, size_t n, const char *name, const llm_budget *use,
                        ggl_error *err);
/* Any JSON text. */
int32_t llm_schema_any(llm_exprs *g);

#endif
