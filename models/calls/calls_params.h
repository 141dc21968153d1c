/* The grammar of arguments between marks, such as <parameter=a>1</parameter>: the field {params}. */
#ifndef LLM_CALLS_PARAMS_H
#define LLM_CALLS_PARAMS_H

#include "common/json.h"
#include "formats.h"
#include "grammar/expr.h"

/* True if values between the format's marks can be told from what follows them. */
bool llm_calls_params_are_known(const call_format *f);

/* Builds the expression of all arguments of a function, in any order, a line for each. Strings are written as they are, where the
 * reader of answers takes the text for a string; other values as JSON. parameters: the function's schema, NULL: it has
 * no arguments; text[0..n): the same, as the grammar is to hold it. where: begins messages. As
 * llm_schema_read_arguments; GGL_UNSUPPORTED also: a name cannot stand between the marks. */
GGL_NODISCARD ggl_status llm_calls_params_expr(int32_t *out, llm_exprs *g, const call_format *f,
                                               const json_value *parameters, const char *text,
                                               size_t n, const char *where, ggl_error *err);

#endif
