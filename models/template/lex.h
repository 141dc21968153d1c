/* Splits a template into texts and tags, and tags into tokens. */
#ifndef LLM_TEMPLATE_LEX_H
#define LLM_TEMPLATE_LEX_H

#include "node.h"

typedef enum lex_kind {
    LEX_NAME,
    LEX_STRING,
    LEX_NUMBER,
    LEX_OPERATOR, /* text: "==", "(", .. */
    LEX_TAG_END   /* %} or }} */
} lex_kind;

typedef struct lex_token {
    lex_kind kind;
    ggl_str text; /* NAME, OPERATOR: in the source; STRING: without escapes */
    tv value;     /* NUMBER */
    int line;
} lex_token;

typedef enum lex_tag { LEX_END, LEX_BLOCK, LEX_PRINT } lex_tag;

typedef struct lexer {
    tv_heap *h;
    const char *s;
    size_t n, at;
    int line;          /* of `at` */
    bool starts_line;  /* the text at `at` begins a line, as a tag's end took the line break */
    char close;        /* the tag's end: '%' or '}' */
    int open_brackets; /* in the tag; while there are any, "}}" does not end it */
    lex_token token;   /* the current one, in a tag */
} lexer;

/* Reads up to the next tag that is no comment. Sets text[] to the text before it, without the white
 * space that tags remove; texts of raw blocks and between comments are other pieces: the function
 * returns true with *piece set as long as there is one, then false with *tag set, and the tag's
 * first token in l->token. */
bool llm_lex_text(lexer *l, ggl_str *piece, lex_tag *tag);
/* Moves on to the next token of the tag. At its end, the token is LEX_TAG_END. */
void llm_lex_next(lexer *l);
/* Leaves the tag, at whose end the lexer must be, with the white space that it removes. */
void llm_lex_leave(lexer *l);

bool llm_lex_is(const lexer *l, lex_kind kind, const char *text);
/* The current token, for messages. */
const char *llm_lex_show(lexer *l);

#endif
