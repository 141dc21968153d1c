/* The members that the facets of an object name, and lists of conditions. */
#ifndef LLM_GRAMMAR_SCHEMA_MEMBERS_H
#define LLM_GRAMMAR_SCHEMA_MEMBERS_H

#include "schema_impl.h"

/* Conditions on one value. */
typedef struct lits {
    literal *lit;
    size_t n, cap;
} lits;

/* Adds a condition; after a failure the list is as before, and the status is set. */
void llm_lits_add(schema *s, lits *l, literal lit);

typedef struct member {
    ggl_str name;
    lits lits; /* its value fits these */
    bool required;
    uint32_t source; /* the last source that names it, plus 1 */
} member;

typedef struct member_table {
    member *m;
    size_t n, cap, n_buckets;
    uint32_t *bucket; /* index plus 1, 0: free */
} member_table;

/* Makes room for more members. Returns false, and sets the status, if that is not possible. */
bool llm_members_widen(schema *s, member_table *t);
/* Finds or adds the member; NULL: the status is set. */
member *llm_member_of(schema *s, member_table *t, ggl_str name);

#endif
