/* Patterns as trees, between the parser (regex_parse.c) and the builder (regex.c). */
#ifndef LLM_GRAMMAR_REGEX_IMPL_H
#define LLM_GRAMMAR_REGEX_IMPL_H

#include "ggl/internal/alloc.h"
#include "regex.h"

typedef enum regex_kind {
    REGEX_EXPR,  /* characters: `expr` */
    REGEX_SEQ,   /* the children, one after the other */
    REGEX_ALT,   /* any of the children */
    REGEX_COUNT, /* the child, min to max times */
    REGEX_BEGIN, /* ^ */
    REGEX_END,   /* $ */
    REGEX_AHEAD  /* lookahead for the child; `negated` */
} regex_kind;

typedef struct regex_node {
    regex_kind kind;
    bool negated;
    bool asserts;   /* it or a descendant is an anchor or lookahead */
    bool has_begin; /* it or a descendant is ^ */
    int32_t expr;   /* EXPR */
    int32_t min, max;
    int32_t weight; /* the largest product of nested counts in it */
    size_t column;
    struct regex_node *child, *last; /* list */
    struct regex_node *next;         /* sibling */
} regex_node;

typedef struct regex_parser {
    llm_exprs *g;
    ggl_arena arena;
    const char *s;
    size_t n, at;
    int depth;
    ggl_status status;
    ggl_error *err;
} regex_parser;

/* Parses the pattern; NULL: p->status says why. */
regex_node *llm_regex_parse(regex_parser *p);
/* Sets the parser's status and message: "column 5: ..". Returns NULL. */
regex_node *llm_regex_fail(regex_parser *p, ggl_status st, size_t at, const char *fmt, ...)
    GGL_PRINTF(4, 5);

/* Reads a class in brackets, the escape of a class or of a character, or a character, from p->at on.
 * Returns the expression. */
int32_t llm_regex_bracket(regex_parser *p);
int32_t llm_regex_escape(regex_parser *p);
/* Takes the next character, which may be of several bytes. */
uint32_t llm_regex_char(regex_parser *p);

#endif
