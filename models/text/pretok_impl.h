/* A pattern's program: what pretok_compile.c makes and pretok.c runs. */
#ifndef LLM_PRETOK_IMPL_H
#define LLM_PRETOK_IMPL_H

#include "pretok.h"

enum { STRAY = 0x110000, MAX_COPIES = 64, MAX_NESTING = 32, MAX_LOOKAHEAD = 63 };
#define NO_LIMIT UINT32_MAX

typedef enum op {
    OP_MATCH,     /* the end of the program, or of a lookahead */
    OP_CHAR,      /* the code point a */
    OP_SET,       /* a code point of set a */
    OP_RUN,       /* min to max of set a, as many as possible; b: its place in `runs` */
    OP_SPLIT,     /* go on at pc + a, or else at pc + b */
    OP_JUMP,      /* go on at pc + a */
    OP_LOOKAHEAD, /* the a instructions that follow, up to OP_MATCH, hold here (or not, if `no`) */
    OP_BEGIN,
    OP_END,
    OP_BORDER /* between \w and none */
} op;

typedef struct instruction {
    uint8_t op;
    bool no;         /* OP_LOOKAHEAD: negative. OP_RUN: possessive */
    uint8_t i_reach; /* OP_LOOKAHEAD: 1 + its place in `reach`, if it has a loop */
    int32_t a, b;
    uint32_t min, max;
} instruction;

typedef struct range {
    uint32_t first, last;
} range;

typedef struct set {
    uint64_t ascii[2];   /* the answer for U+0000 to U+007F */
    unsigned with;       /* any of these properties */
    unsigned without[4]; /* or none of those of one of these; 0: unused */
    unsigned except;     /* but none of these */
    bool negated;
    int n_range;
    range *ranges; /* or in one of these */
} set;

struct pretok_program {
    instruction *code;
    set *sets;
    int n_code, n_set, n_reach, n_run;
};

/* Whether the set has the code point c of these properties, by its rules alone. */
bool llm_pretok_set_holds(const set *s, uint32_t c, unsigned properties);

/* The code point of the n bytes of one character; of a stray byte, STRAY and the byte. */
uint32_t llm_pretok_decode(const char *s, size_t n);

#endif
