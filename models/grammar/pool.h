/* Expressions over bytes, which matchers run: a pool in which equal expressions exist once, their
 * derivatives, and the lengths of their shortest texts.
 *
 * The derivative of an expression by a byte describes what may follow the byte. Taken again and
 * again, derivatives are the states of a deterministic automaton that is built where it is walked
 * (Brzozowski 1964; Owens, Reppy, Turon 2009). A CALL stands for the text of a rule. Derivatives
 * skip calls; llm_bx_calls lists those that may come first, and stack.c follows them.
 *
 * No function fails by itself: after a failure `status` says which, and results are NONE. */
#ifndef LLM_GRAMMAR_POOL_H
#define LLM_GRAMMAR_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"
#include "multiple.h"

typedef enum llm_bx_kind {
    LLM_BX_UNUSED,
    LLM_BX_KIND_NONE,
    LLM_BX_KIND_EMPTY,
    LLM_BX_KIND_BYTES,  /* one byte of set a */
    LLM_BX_KIND_SEQ,    /* a, then b */
    LLM_BX_KIND_ALT,    /* any of b parts; arguments from a on */
    LLM_BX_KIND_REPEAT, /* a, min to max times; max < 0: no limit */
    LLM_BX_KIND_AND,    /* all of b parts; arguments from a on */
    LLM_BX_KIND_NOT,    /* all sequences of bytes but those of a */
    LLM_BX_KIND_CALL,   /* rule a */
    LLM_BX_KIND_MEMBERS, /* members of table a that are not in set b, after `min` others (members.c) */
    LLM_BX_KIND_MULTIPLE, /* an llm_multiple: modulus a, rest min, places max */
    LLM_BX_KIND_TABLE,    /* what MEMBERS have in common; b arguments from a on */
    LLM_BX_KIND_SET,      /* bits of members; b arguments from a on */
    LLM_BX_KIND_LIST      /* b parts from a on; as alternatives they are `min` (pool.c) */
} llm_bx_kind;

enum {
    LLM_BX_NONE = 1,
    LLM_BX_EMPTY = 2,
    LLM_BX_UNKNOWN = -1,        /* min_len: not computed yet */
    LLM_BX_DEAD = INT32_MAX,    /* min_len: there is no text */
    LLM_BX_ENDLESS = INT32_MAX, /* max_len: no bound is known */
    LLM_BX_MAX_HEIGHT = 2000,   /* of expressions, so that recursion ends in time */
    LLM_BX_MAX_NODES = 1 << 24
};

typedef struct llm_byte_set {
    uint64_t w[4];
} llm_byte_set;

typedef struct llm_bx {
    uint8_t kind;
    bool nullable;    /* the empty text is one of its texts */
    bool has_call;    /* somewhere */
    bool calls_first; /* a call may come first */
    uint16_t height;  /* how deep recursion gets */
    int32_t a, b, min, max;
    int32_t min_len; /* bytes of the shortest text; or LLM_BX_UNKNOWN, LLM_BX_DEAD */
    int32_t max_len; /* bytes of the longest text, or more; LLM_BX_ENDLESS */
    int32_t rank;    /* how deep the calls of the shortest text are nested */
    uint32_t mark;   /* the search that has seen it (llm_bx_min_len) */
    uint32_t cover;  /* the alternatives in which another part is known to cover it (pool.c) */
    uint32_t visit;  /* the derivation, or list of calls, that has visited it last, .. */
    int32_t result;  /* .. and its derivative, or what followed it there */
} llm_bx;

typedef struct llm_bx_rule {
    int32_t body;
    int32_t min_len, rank; /* of the body */
    bool nullable;
    llm_byte_set follow; /* bytes that may come after it (follow.c) */
} llm_bx_rule;

typedef struct llm_bx_call {
    int32_t rule, rest; /* rest: the expression that follows */
} llm_bx_call;

typedef struct llm_bx_pool {
    ggl_status status;
    llm_bx *node;
    int32_t *arg;
    llm_byte_set *set;
    llm_bx_rule *rule;
    int32_t *bucket;  /* [n_buckets] hash table of nodes, 0: free */
    int32_t *scratch; /* stack of parts under construction */
    size_t n_nodes, n_args, n_sets, n_rules, n_buckets, n_scratch;
    size_t cap_nodes, cap_args, cap_sets, cap_rules, cap_scratch;
    uint32_t n_searches, n_visits, n_covers;
    int32_t all_text; /* all texts of characters; 0: not set */
    llm_budget
        use; /* of the pool and of all that works with it; beyond it the status is GGL_LIMIT */
} llm_bx_pool;

/* Makes the first nodes of a pool that is zeroed except for `use`. Returns false after a
 * failure. */
bool llm_bx_pool_init(llm_bx_pool *p);
void llm_bx_pool_fini(llm_bx_pool *p);
/* The bytes of its arrays. */
size_t llm_bx_pool_size(const llm_bx_pool *p);
/* Makes *to, which is zeroed except for `use`, a copy. Returns false after a failure. */
bool llm_bx_pool_copy(llm_bx_pool *to, const llm_bx_pool *from);

int32_t llm_bx_bytes(llm_bx_pool *p, const llm_byte_set *set);
int32_t llm_bx_range(llm_bx_pool *p, unsigned first, unsigned last);
int32_t llm_bx_seq(llm_bx_pool *p, int32_t a, int32_t b);
int32_t llm_bx_alt(llm_bx_pool *p, const int32_t *part, int32_t n);
int32_t llm_bx_alt2(llm_bx_pool *p, int32_t a, int32_t b);
/* Puts a part on top of the scratch. */
void llm_bx_push(llm_bx_pool *p, int32_t part);
/* Takes the scratch from `base` on and makes alternatives of it. */
int32_t llm_bx_alt_from(llm_bx_pool *p, size_t base);
int32_t llm_bx_repeat(llm_bx_pool *p, int32_t a, int32_t min, int32_t max);
int32_t llm_bx_and(llm_bx_pool *p, const int32_t *part, int32_t n);
int32_t llm_bx_not(llm_bx_pool *p, int32_t a);
int32_t llm_bx_call_rule(llm_bx_pool *p, int32_t rule);
int32_t llm_bx_multiple(llm_bx_pool *p, const llm_multiple *m);
static inline llm_multiple llm_bx_as_multiple(const llm_bx *e) {
    return (llm_multiple){e->a, e->min, e->max};
}

/* A list of members in any order; see llm_expr_members. The required members come first, and none is
 * LLM_BX_NONE. */
typedef struct llm_bx_list {
    const int32_t *member;
    int32_t n, n_required, rest, comma, min, max;
} llm_bx_list;
int32_t llm_bx_members(llm_bx_pool *p, const llm_bx_list *list);
/* The same texts as those of a MEMBERS node, one member and its comma taken apart. */
int32_t llm_bx_unfold(llm_bx_pool *p, int32_t e);
/* The length of all required members of a TABLE together, and their rank. */
int32_t llm_bx_table_len(const llm_bx_pool *p, const llm_bx *table, int32_t *rank);
/* The length of the shortest text of MEMBERS, and its rank, from those of the table and the members. */
int32_t llm_bx_members_len(const llm_bx_pool *p, const llm_bx *e, int32_t *rank);
/* The expressions that a TABLE, or the table of MEMBERS, refers to. */
const int32_t *llm_bx_table_parts(const llm_bx_pool *p, const llm_bx *e, int32_t *n);
/* Finds or adds TABLE or SET with n arguments; MEMBERS. */
int32_t llm_bx_add_list(llm_bx_pool *p, uint8_t kind, const int32_t *arg, int32_t n);
int32_t llm_bx_add_members(llm_bx_pool *p, int32_t table, int32_t used, int32_t count,
                           bool nullable);

/* Bytes from `first` to `last`, all of which have the same derivative. */
typedef struct llm_byte_span {
    unsigned first, last;
} llm_byte_span;

/* The derivative of e by byte b, calls not followed. Narrows *span, which holds b, to bytes with the
 * same derivative. The result may be an AND or NOT without texts: ask llm_bx_min_len. */
int32_t llm_bx_derive(llm_bx_pool *p, int32_t e, unsigned b, llm_byte_span *span);

/* Appends to `out` the calls with which a text of e may begin, and what follows each. Returns false
 * if out of memory. */
bool llm_bx_calls(llm_bx_pool *p, int32_t e, llm_bx_call **out, size_t *n, size_t *cap);

/* The bytes of the shortest text, or LLM_BX_DEAD if no text fits. Sets GGL_LIMIT if that takes too
 * long to find out (AND and NOT). Rules must have theirs. */
int32_t llm_bx_min_len(llm_bx_pool *p, int32_t e);
/* Sets min_len, and rank, of a node from those of its parts; LLM_BX_UNKNOWN if that is not enough. */
void llm_bx_measure(llm_bx_pool *p, int32_t e);
/* Adds lengths; what is too long becomes LLM_BX_DEAD - 1. */
int32_t llm_bx_add_len(int32_t a, int32_t b);

/* Counts n steps: nodes looked up, parts derived, items and returns added, and the like. */
static inline void llm_bx_count(llm_bx_pool *p, uint64_t n) {
    if (!llm_budget_count(&p->use, n) && p->status == GGL_OK)
        p->status = GGL_LIMIT;
}
/* Grows an array of the pool, or one that works with it. Returns false, and sets the status, if that
 * is not possible. */
bool llm_bx_grow(llm_bx_pool *p, void *array, size_t *cap, size_t n, size_t size);

static inline bool llm_byte_in(const llm_byte_set *s, unsigned b) {
    return s->w[b >> 6] >> (b & 63) & 1;
}

#endif
