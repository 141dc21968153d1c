/* A pattern's program: made by pretok_compile.c, run by pretok.c. */
#ifndef LLM_PRETOK_IMPL_H
#define LLM_PRETOK_IMPL_H

#include "pretok.h"

enum {
    STRAY = 0x110000,
    MAX_COPIES = 64,
    MAX_NESTING = 32,
    MAX_LOOKAHEAD = 63,
    MAX_CODE = 1 << 12
};
#define NO_LIMIT UINT32_MAX

typedef enum op {
    OP_MATCH, /* end of the program or of a lookahead */
    OP_CHAR,  /* matches the code point a */
    OP_SET,   /* matches a code point of set a */
    OP_RUN,   /* matches min to max of set a, as many as possible; b: index in `runs` */
    OP_SPLIT, /* continues at pc + a; if that fails, at pc + b; min: its number among the splits */
    OP_JUMP,  /* continues at pc + a */
    /* true if the next a instructions, which end with OP_MATCH, match here (or do not, if `no`) */
    OP_LOOKAHEAD,
    OP_BEGIN,
    OP_END,
    OP_LINE_BEGIN,
    OP_LINE_END,
    OP_BORDER /* \b */
} op;

typedef struct instruction {
    uint8_t op;
    bool no;         /* OP_LOOKAHEAD: negative. OP_RUN: possessive */
    uint8_t i_reach; /* OP_LOOKAHEAD with a loop: 1 + its index in `reach` */
    int32_t a, b;
    uint32_t min, max;
} instruction;

typedef struct range {
    uint32_t first, last;
} range;

/* A code point is in the set if one of with, without and ranges applies, and except does not. */
typedef struct set {
    uint64_t ascii[2];   /* the result for U+0000 to U+007F */
    unsigned with;       /* has any of these properties */
    unsigned without[4]; /* or has none of the properties of one element; 0: unused */
    unsigned except;     /* and has none of these */
    bool negated;
    int n_range;
    range *ranges; /* or is in one of these */
} set;

struct pretok_program {
    instruction *code;
    set *sets;
    int n_code, n_set, n_reach, n_run, n_split;
};

/* Superscript digits and fractions of Latin-1 are \w in Oniguruma, but not [\w]. */
static const uint8_t llm_pretok_word_numbers[] = {0xb2, 0xb3, 0xb9, 0xbc, 0xbd, 0xbe};

/* Evaluates the set's rules for code point c with these properties, not using `ascii`. */
bool llm_pretok_set_holds(const set *s, uint32_t c, unsigned properties);

/* Returns the code point of one character of n bytes, or STRAY + byte for a stray byte. */
uint32_t llm_pretok_decode(const char *s, size_t n);

#endif
