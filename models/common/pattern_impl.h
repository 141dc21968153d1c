/* Patterns as lists of instructions, between the parser (pattern_read.c) and the matcher (pattern.c). */
#ifndef LLM_PATTERN_IMPL_H
#define LLM_PATTERN_IMPL_H

#include "pattern.h"

typedef enum pattern_kind {
    PATTERN_CHAR,  /* takes the character `value` */
    PATTERN_ANY,   /* takes any character */
    PATTERN_CLASS, /* takes a character that the class `value` has */
    PATTERN_SPLIT, /* goes on behind it, and `value` instructions further on, which may be negative */
    PATTERN_JUMP,  /* goes on `value` instructions further on */
    PATTERN_IS_AT, /* goes on at a place that `value` names: one of ^ $ b B < > */
    PATTERN_FOUND  /* the expression matches */
} pattern_kind;

typedef struct pattern_code {
    pattern_kind kind;
    int32_t value;
} pattern_code;

/* A bracket expression: what llm_bracket_read reads. Copies of an instruction share it, and its answer for the last
 * character, so that a character costs no more than the length of the expression as it was written. */
typedef struct pattern_class {
    ggl_str text;
    size_t at;
    uint32_t last; /* LLM_NO_CHAR: it was not asked yet */
    bool has_last;
} pattern_class;

#define LLM_NO_CHAR UINT32_MAX /* what is before the begin, and behind the end, of a text */

enum { PATTERN_STATES = 64, PATTERN_SYMBOLS = 129 };

/* The matcher follows all ways through the code at once. A state is the set of instructions to which the characters so far lead,
 * before those that take no character are followed, because some of them depend on the next one; and what is known
 * about the last character. States get numbers when they are met first, and the next state for each character of ASCII, and for the end of the text, is
 * kept. If there is no room for another state, all but the first are forgotten. */
struct llm_pattern {
    char *text; /* of the expression, for its classes */
    pattern_code *code;
    size_t n, cap_code;
    pattern_class *class;
    size_t n_class, cap_class;

    size_t
        words; /* 64 bits each, of a set: a bit for each instruction, and two for the last character */
    uint64_t *state; /* [PATTERN_STATES][words]; the first is that at the begin of a text */
    int n_states;
    uint64_t *seen, *to; /* [words] each: scratch */
    uint32_t *stack;     /* [n]: scratch */
    uint8_t
        next[PATTERN_STATES]
            [PATTERN_SYMBOLS]; /* number of the next state plus 1; 0: not known; PATTERN_MATCHES */
};

enum { PATTERN_MATCHES = 255 };

/* Fills text, code and class of a zeroed pattern. */
GGL_NODISCARD ggl_status llm_pattern_parse(llm_pattern *p, ggl_str text, ggl_error *err);

#endif
