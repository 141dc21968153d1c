/* What a random test is made of, in structures of its own: a program (the operators and how they
 * read each other) and a script (which tokens of which sequences pass through it, and what happens
 * to the sequences in between). The generator writes them, the judge evaluates them, the engine's
 * graph is built from them, the shrinker cuts them down. No header of the library is used here, so
 * that the judge shares nothing with what it judges. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    R_MOST_NODES = 640,
    R_MOST_SRC = 11,
    R_MOST_NUM = 4,
    R_MOST_OUTPUTS = 8,
    R_MOST_TOKENS = 192,
    R_MOST_ACTIONS = 24,
    R_MOST_SLOTS = 3,
    R_MOST_SAVES = 4,
    R_MOST_ELEMENTS = 4096 /* of a value */
};

/* The operators, with the names that docs/ops.md gives them; BEGIN opens the body of a call. A test
 * compares this list with the library's, so an operator that is added there has to be added here,
 * in gen.c and in judge.c. */
#define R_OPS(X)                                                                                   \
    X(INPUT, "<input>")                                                                            \
    X(WEIGHT, "<weight>")                                                                          \
    X(CONST, "<const>")                                                                            \
    X(PARAM, "<param>")                                                                            \
    X(ADD, "+")                                                                                    \
    X(SUB, "-")                                                                                    \
    X(MUL, "*")                                                                                    \
    X(DIV, "/")                                                                                    \
    X(POW, "**")                                                                                   \
    X(MOD, "%")                                                                                    \
    X(EQ, "==")                                                                                    \
    X(NE, "!=")                                                                                    \
    X(LT, "<")                                                                                     \
    X(LE, "<=")                                                                                    \
    X(GT, ">")                                                                                     \
    X(GE, ">=")                                                                                    \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")                                                                                  \
    X(WHERE, "where")                                                                              \
    X(EXP, "exp")                                                                                  \
    X(LOG, "log")                                                                                  \
    X(SQRT, "sqrt")                                                                                \
    X(FLOOR, "floor")                                                                              \
    X(ABS, "abs")                                                                                  \
    X(TANH, "tanh")                                                                                \
    X(ERF, "erf")                                                                                  \
    X(SIGMOID, "sigmoid")                                                                          \
    X(SIN, "sin")                                                                                  \
    X(COS, "cos")                                                                                  \
    X(CAST, "<cast>")                                                                              \
    X(SUM, "sum")                                                                                  \
    X(AMAX, "amax")                                                                                \
    X(RANK, "rank")                                                                                \
    X(TOPK, "topk")                                                                                \
    X(NGRAMS, "ngrams")                                                                            \
    X(PICK, "<pick>")                                                                              \
    X(RESHAPE, "reshape")                                                                          \
    X(SPLIT, "<split>")                                                                            \
    X(CONCAT, "<concat>")                                                                          \
    X(REPEAT, "repeat")                                                                            \
    X(TRANSPOSE, "transpose")                                                                      \
    X(LINEAR, "linear")                                                                            \
    X(LINEAR_BACK, "<linear_back>")                                                                \
    X(OUTER_SUM, "<outer_sum>")                                                                    \
    X(ROPE_HALF, "rope_half")                                                                      \
    X(ROPE_PAIR, "rope_pair")                                                                      \
    X(CACHE, "cache")                                                                              \
    X(ATTEND, "attend")                                                                            \
    X(ATTEND_BACK, "<attend_back>")                                                                \
    X(CHOOSE_ROWS, "choose_rows")                                                                  \
    X(STATE, "state")                                                                              \
    X(KEEP, "<keep>")                                                                              \
    X(IOTA, "iota")                                                                                \
    X(CALL, "<call>")

typedef enum r_op {
#define X(ID, name) R_##ID,
    R_OPS(X)
#undef X
        R_BEGIN, /* of a body: src[] are the call's; its PARAMs follow at once */
    R_OP_COUNT
} r_op;

extern const char *const r_op_name[R_OP_COUNT];

/* A node. Sources are indices of nodes before it; -1: absent. Shapes are innermost first and
 * without the batch; all four extents are set, those beyond n_dims are 1. */
typedef struct r_node {
    r_op op;
    bool batched, integer;
    bool position; /* INPUT: the library's own "pos", an index like others */
    int n_dims, ne[4];
    int src[R_MOST_SRC], n_src;
    double num[R_MOST_NUM]; /* as the operator's signature has them; NaN: absent */
    int n_num;
    int body;         /* the BEGIN of the innermost body that it stands in; -1: none */
    int begin;        /* CALL: its BEGIN, which has the sources. src[0] of the CALL is the result */
    int group;        /* which part of a model: where it runs is decided by it */
    const char *call; /* CALL: the name that backends may know; NULL: none */
    int limit;        /* integers are 0 .. limit-1, as a rule */
    int type;         /* WEIGHT: a number of weights.h */
    uint64_t salt;    /* leaves: what their numbers are made from */
    double magnitude; /* the generator's guess at the largest element */
    double spread; /* leaves: elements are within so much of 0; 0: CONST is `num[0]` throughout */
} r_node;

/* Actions between tokens. */
typedef enum r_action_kind {
    R_CLEAR,          /* slot begins again */
    R_COPY,           /* slot becomes a copy of other */
    R_CUT,            /* slot goes on from an earlier position: nothing is called */
    R_SAVE,           /* into snapshot `other` */
    R_RESTORE,        /* from snapshot `other`, whole */
    R_RESTORE_STATES, /* states alone: the rows are still there */
    R_CHANGE          /* inputs that are not batched get other values */
} r_action_kind;

typedef struct r_action {
    r_action_kind kind;
    int before; /* the token that it comes before */
    int slot, other;
    int n_pos; /* SAVE, RESTORE, RESTORE_STATES: positions 0 .. n_pos-1. CUT: the next position */
} r_action;

typedef struct r_token {
    int slot, pos;
    uint64_t salt; /* what its inputs are made from */
} r_token;

typedef struct r_program {
    uint64_t seed;
    r_node node[R_MOST_NODES];
    int n;
    int output[R_MOST_OUTPUTS], n_outputs;
    int type_k, type_v; /* of caches: numbers of weights.h */
    int n_pos, n_batch, n_slots;
    r_token token[R_MOST_TOKENS];
    int n_tokens;
    r_action action[R_MOST_ACTIONS]; /* in the order of `before` */
    int n_actions;
} r_program;

/* Elements of one of the batch; of a weight all. */
static inline int r_count(const r_node *t) {
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

static inline bool r_is_leaf(const r_node *t) {
    return t->op == R_INPUT || t->op == R_WEIGHT || t->op == R_CONST;
}

/* A number made from two: splitmix64's last steps. */
static inline uint64_t r_mix(uint64_t a, uint64_t b) {
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Element e of an input for a token (or, of one that is not batched, after so many changes): an
 * f32. */
double r_input_value(const r_node *t, uint64_t salt, int e);
/* Element e of a CONST. */
double r_const_value(const r_node *t, int e);

/* Whether the node's numbers are those of a weight where it lies: the weight, a view of it, or
 * matrices that an index chooses from a stack [in, out, n] of such. Products with these follow the
 * rule of the weight's type. *type is the type. */
bool r_of_weight(const r_program *p, int i, int *type);

/* Which nodes the outputs need; keeps with the calls that they stand in. */
void r_needed(const r_program *p, bool *needed);

/* Text for people: one line for each node, then the script. */
#include <stdio.h>
void r_print(const r_program *p, FILE *out);

#endif
