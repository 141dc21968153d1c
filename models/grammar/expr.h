/* Expressions of grammars: regular expressions over Unicode characters, and rules that refer to each
 * other. The readers of GBNF and of JSON schemas build them; grammar.c compiles them.
 *
 *     llm_exprs g = {0};
 *     int32_t digit = llm_expr_range(&g, '0', '9');
 *     int32_t number = llm_expr_repeat(&g, digit, 1, LLM_EXPR_MANY);
 *     ...
 *     if (g.status != GGL_OK) ...  // once, at the end
 *     llm_exprs_fini(&g);
 *
 * An expression is an index into the pool, and equal expressions have equal indices: what is built
 * twice exists once. Functions of the pool never fail by themselves. After a failure (memory, or the
 * pool's limit) `status` says which, and every function returns LLM_EXPR_NONE.
 *
 * Expressions without rules are regular, and so are those whose rules don't lead back to themselves.
 * Only regular ones may be under AND and NOT. */
#ifndef LLM_GRAMMAR_EXPR_H
#define LLM_GRAMMAR_EXPR_H

#include <stdint.h>

#include "budget.h"
#include "ggl/str.h"
#include "multiple.h"

typedef enum llm_expr_kind {
    LLM_EXPR_KIND_NONE,   /* no text at all */
    LLM_EXPR_KIND_EMPTY,  /* the empty text */
    LLM_EXPR_KIND_CLASS,  /* one character of a set: n ranges from `first` on */
    LLM_EXPR_KIND_SEQ,    /* n parts, one after the other; arguments from `first` on */
    LLM_EXPR_KIND_ALT,    /* any of n parts; arguments from `first` on */
    LLM_EXPR_KIND_REPEAT, /* the argument, min to max times */
    LLM_EXPR_KIND_AND,    /* texts that all n parts have; regular */
    LLM_EXPR_KIND_NOT,    /* all texts of characters but the argument's; regular */
    LLM_EXPR_KIND_MEMBERS, /* a list of members, see llm_expr_members; arguments: comma, rest, members */
    LLM_EXPR_KIND_RULE,    /* the body of rule `first` */
    LLM_EXPR_KIND_MULTIPLE /* an llm_multiple: modulus min, rest max, places `required` */
} llm_expr_kind;

enum {
    LLM_EXPR_NONE = 0,  /* index of the expression without texts */
    LLM_EXPR_EMPTY = 1, /* index of the empty text */
    LLM_EXPR_MANY = -1, /* llm_expr_repeat: no limit */
    LLM_EXPR_MAX_NODES = 1 << 20,
    LLM_EXPR_MAX_RULES = 1 << 18
};

typedef struct llm_expr {
    llm_expr_kind kind;
    int32_t first, n; /* see llm_expr_kind; REPEAT and NOT have one argument */
    int32_t min, max; /* REPEAT, MEMBERS; max LLM_EXPR_MANY: no limit */
    int32_t required; /* MEMBERS: how many of the first must be there */
    bool nullable;    /* it has the empty text; false for a RULE, whose body may come later */
} llm_expr;

/* Characters first to last, inclusive. The ranges of a class ascend and don't touch, and hold no
 * surrogates (U+D800 to U+DFFF). */
typedef struct llm_char_range {
    uint32_t first, last;
} llm_char_range;

typedef struct llm_rule {
    char *name;   /* for messages; owned */
    int32_t body; /* -1: not defined yet */
} llm_rule;

typedef struct llm_exprs {
    ggl_status status;
    llm_expr *node;
    int32_t *arg;
    llm_char_range *range;
    llm_rule *rule;
    size_t n_nodes, n_args, n_ranges, n_rules;
    size_t cap_nodes, cap_args, cap_ranges, cap_rules;
    int32_t *bucket; /* [n_buckets] hash table: indices of nodes, 0: free */
    size_t n_buckets;
    llm_budget use; /* of the pool, its readers, and its translation to bytes */
} llm_exprs;

void llm_exprs_fini(llm_exprs *g);
/* Counts n steps; the status is GGL_LIMIT if there are too many. */
static inline void llm_exprs_count(llm_exprs *g, uint64_t n) {
    if (!llm_budget_count(&g->use, n) && g->status == GGL_OK)
        g->status = GGL_LIMIT;
}
/* Grows an array of the pool, or of a reader. Returns false, and sets the status, if that is not possible. */
bool llm_exprs_grow(llm_exprs *g, void *array, size_t *cap, size_t n, size_t size);
/* The bytes of its arrays. */
size_t llm_exprs_size(const llm_exprs *g);

/* A set of characters. The ranges may overlap and have any order; `negated`: all characters but
 * those. An empty set is LLM_EXPR_NONE. */
int32_t llm_expr_class(llm_exprs *g, const llm_char_range *range, int32_t n, bool negated);
int32_t llm_expr_range(llm_exprs *g, uint32_t first, uint32_t last);
/* A text of UTF-8. Sets GGL_FORMAT if it is not valid UTF-8. */
int32_t llm_expr_text(llm_exprs *g, ggl_str text);

/* Parts that are sequences (alternatives) themselves are taken apart; NONE and EMPTY are reduced. */
int32_t llm_expr_seq(llm_exprs *g, const int32_t *part, int32_t n);
int32_t llm_expr_seq2(llm_exprs *g, int32_t a, int32_t b);
int32_t llm_expr_seq3(llm_exprs *g, int32_t a, int32_t b, int32_t c);
int32_t llm_expr_alt(llm_exprs *g, const int32_t *part, int32_t n);
int32_t llm_expr_alt2(llm_exprs *g, int32_t a, int32_t b);
int32_t llm_expr_optional(llm_exprs *g, int32_t a);
/* min <= max, or max is LLM_EXPR_MANY. */
int32_t llm_expr_repeat(llm_exprs *g, int32_t a, int32_t min, int32_t max);
int32_t llm_expr_and(llm_exprs *g, const int32_t *part, int32_t n);
int32_t llm_expr_not(llm_exprs *g, int32_t a);

/* Lists of members in any order with a comma between them, as objects of JSON have them: each of n
 * members at most once, those with required[i] once, and any number of texts of `rest`; from min to max
 * (LLM_EXPR_MANY: no limit) in all. The order is free without a case for each of the 2^n
 * subsets: whoever runs the expression remembers which members were there. It can't be under AND and NOT. Neither the
 * members, nor rest, nor the comma may have the empty text. */
typedef struct llm_members {
    const int32_t *member;
    const bool *required;
    int32_t n, rest, comma, min, max;
} llm_members;
int32_t llm_expr_members(llm_exprs *g, const llm_members *m);

/* Digits with at most one point, see llm_multiple; regular. */
int32_t llm_expr_multiple(llm_exprs *g, const llm_multiple *m);
static inline llm_multiple llm_expr_as_multiple(const llm_expr *e) {
    return (llm_multiple){e->min, e->max, e->required};
}

/* Makes a rule without a body and returns its number, -1 after a failure. The name is copied. */
int32_t llm_rule_new(llm_exprs *g, ggl_str name);
/* Gives the rule its body, once. */
void llm_rule_define(llm_exprs *g, int32_t rule, int32_t body);
/* The expression that stands for the rule's body. */
int32_t llm_expr_rule(llm_exprs *g, int32_t rule);

#endif
