/* The two halves of the parser: statements (parse.c) and expressions (llm_parse_expr.c). */
#ifndef LLM_TEMPLATE_PARSE_H
#define LLM_TEMPLATE_PARSE_H

#include "builtins.h"
#include "lex.h"

typedef struct parser {
    llm_template *t;
    lexer l;
    int n_loops; /* loops around the current place */
    /* The first filter or test of this body that does not exist. In a branch, or in `a if b else c`,
     * it is an error only once it is reached. */
    tn *unknown;
} parser;

tn *llm_parse_new(parser *p, tn_kind kind);
/* If the current token is this operator (or name), moves past it and returns true. */
bool llm_parse_skip(parser *p, const char *op);
bool llm_parse_skip_name(parser *p, const char *name);
/* Moves past this operator or name, or fails. */
void llm_parse_expect(parser *p, const char *op);
void llm_parse_expect_name(parser *p, const char *name);
_Noreturn void llm_parse_unexpected(parser *p, const char *wanted);
/* Reads a variable's name, which is not a keyword, and returns its index. */
int llm_parse_variable(parser *p);

tn *llm_parse_expr(parser *p); /* with `.. if .. else ..` */
tn *llm_parse_or(parser *p);   /* without */
/* One expression, or several separated by commas, which are a tuple. If `conditions` is false, an
 * `if` after it is left to the caller. */
tn *llm_parse_tuple(parser *p, bool conditions);
/* A variable, or several in a tuple, to which a value is assigned; with `attributes`, also ns.name. */
tn *llm_parse_target(parser *p, bool attributes);
/* The filters `| name | name(..)` applied to `to`, which may be NULL. */
tn *llm_parse_filters(parser *p, tn *to);
/* What follows "(" of a call: a list of ARGs. */
tn *llm_parse_args(parser *p);

#endif
