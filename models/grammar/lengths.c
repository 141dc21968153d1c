/* The shortest texts of nodes, from those of their parts. */
#include "members.h"

const int32_t *llm_bx_table_parts(const llm_bx_pool *p, const llm_bx *e, int32_t *n) {
    const llm_bx *table = e->kind == LLM_BX_KIND_MEMBERS ? &p->node[e->a] : e;
    *n = table->b - PARTS;
    return &p->arg[table->a + PARTS];
}

/* --- members ---------------------------------------------------------------------------------- */

typedef struct measuring {
    const llm_bx_pool *p;
    const llm_bx *table;
    const int32_t *set;
    int32_t rank;
} measuring;

static int32_t part_of(const measuring *m, int32_t i) {
    return m->p->arg[m->table->a + i];
}

/* The length of an argument; its rank counts. */
static int32_t take(measuring *m, int32_t i) {
    const llm_bx *x = &m->p->node[part_of(m, i)];
    m->rank = x->rank > m->rank ? x->rank : m->rank;
    return x->min_len;
}

static int32_t len_of(const measuring *m, int32_t i) {
    return m->p->node[part_of(m, i)].min_len;
}

/* The length of the n shortest members that are neither required nor used; the rest may be taken as
 * often as needed. */
static int64_t shortest(measuring *m, int32_t n) {
    const int32_t first = part_of(m, N_REQUIRED), end = m->table->b - FIRST;
    int64_t sum = 0;
    for (int32_t bound = -1; n > 0;) { /* members up to this length are taken */
        int32_t least = LLM_BX_DEAD, count = 0;
        for (int32_t i = first; i < end; i++) {
            const int32_t len = len_of(m, FIRST + i);
            if (!is_used(m->set, i) && len > bound && len < least)
                least = len;
        }
        const bool is_rest = len_of(m, REST) <= least;
        if (is_rest)
            least = len_of(m, REST);
        if (least == LLM_BX_DEAD)
            return LLM_BX_DEAD;
        if (is_rest)
            return sum + (int64_t)n * take(m, REST);
        for (int32_t i = first; i < end; i++)
            if (!is_used(m->set, i) && len_of(m, FIRST + i) == least && count < n) {
                sum += take(m, FIRST + i);
                count++;
            }
        n -= count;
        bound = least;
    }
    return sum;
}

int32_t llm_bx_table_len(const llm_bx_pool *p, const llm_bx *table, int32_t *rank) {
    measuring m = {p, table, NULL, 0};
    int64_t sum = 0;
    for (int32_t i = COMMA; i < table->b; i++)
        if (len_of(&m, i) == LLM_BX_UNKNOWN)
            return LLM_BX_UNKNOWN;
    for (int32_t i = 0; i < part_of(&m, N_REQUIRED); i++) {
        if (len_of(&m, FIRST + i) == LLM_BX_DEAD)
            return LLM_BX_DEAD;
        sum += take(&m, FIRST + i);
    }
    *rank = m.rank;
    return sum < LLM_BX_DEAD ? (int32_t)sum : LLM_BX_DEAD - 1;
}

/* The length of the required members that are missing: of all, without those that were there. */
static int64_t len_of_missing(const measuring *m, int32_t *missing) {
    const int32_t n = part_of(m, N_REQUIRED);
    int64_t sum = m->table->min_len;
    *missing = n;
    for (int32_t k = 0; k * 32 < n; k++)
        for (uint32_t bits = (uint32_t)m->set[k]; bits; bits &= bits - 1) {
            const int32_t i = 32 * k + __builtin_ctz(bits);
            if (i >= n)
                return sum;
            sum -= len_of(m, FIRST + i);
            --*missing;
        }
    return sum;
}

int32_t llm_bx_members_len(const llm_bx_pool *p, const llm_bx *e, int32_t *rank) {
    measuring m = {p, &p->node[e->a], &p->arg[p->node[e->b].a], 0};
    if (m.table->min_len == LLM_BX_UNKNOWN || m.table->min_len >= LLM_BX_DEAD - 1)
        return m.table->min_len;
    int32_t missing;
    int64_t sum = len_of_missing(&m, &missing);
    m.rank = m.table->rank;
    const int32_t min = part_of(&m, MIN);
    const int32_t more = min - e->min > missing ? min - e->min - missing : 0;
    const int64_t others = shortest(&m, more);
    const int64_t n_commas = missing + more - (e->min == 0 && missing + more > 0);
    sum += others + (n_commas > 0 ? n_commas * take(&m, COMMA) : 0);
    *rank = m.rank;
    if (others == LLM_BX_DEAD || (n_commas > 0 && len_of(&m, COMMA) == LLM_BX_DEAD))
        return LLM_BX_DEAD;
    return sum < LLM_BX_DEAD ? (int32_t)sum : LLM_BX_DEAD - 1;
}

int32_t llm_bx_add_len(int32_t a, int32_t b) {
    if (a == LLM_BX_DEAD || b == LLM_BX_DEAD)
        return LLM_BX_DEAD;
    return a > LLM_BX_DEAD - 1 - b ? LLM_BX_DEAD - 1 : a + b;
}

static int32_t times_len(int32_t a, int32_t n) {
    if (n == 0 || a == LLM_BX_DEAD)
        return n == 0 ? 0 : a;
    const int64_t x = (int64_t)a * n;
    return x > LLM_BX_DEAD - 1 ? LLM_BX_DEAD - 1 : (int32_t)x;
}

typedef struct measure {
    int32_t len, rank;
} measure;

/* Among alternatives of the same length, takes the one whose calls are nested least, so that a
 * search for the shortest text ends. */
static measure measure_alt(const llm_bx_pool *p, const llm_bx *x) {
    measure least = {LLM_BX_DEAD, 0};
    for (int32_t i = 0; i < x->b; i++) {
        const llm_bx *part = &p->node[p->arg[x->a + i]];
        if (part->min_len == LLM_BX_UNKNOWN)
            return (measure){LLM_BX_UNKNOWN, 0};
        if (part->min_len < least.len || (part->min_len == least.len && part->rank < least.rank))
            least = (measure){part->min_len, part->rank};
    }
    return least;
}

static measure measure_seq(const llm_bx *a, const llm_bx *b) {
    if (a->min_len == LLM_BX_UNKNOWN || b->min_len == LLM_BX_UNKNOWN)
        return (measure){LLM_BX_UNKNOWN, 0};
    return (measure){llm_bx_add_len(a->min_len, b->min_len), a->rank > b->rank ? a->rank : b->rank};
}

static measure measure_parts(const llm_bx_pool *p, const llm_bx *x) {
    if (x->nullable)
        return (measure){0, 0};
    switch ((llm_bx_kind)x->kind) {
    case LLM_BX_KIND_NONE:
        return (measure){LLM_BX_DEAD, 0};
    case LLM_BX_KIND_BYTES:
        return (measure){1, 0};
    case LLM_BX_KIND_SEQ:
        return measure_seq(&p->node[x->a], &p->node[x->b]);
    case LLM_BX_KIND_ALT:
        return measure_alt(p, x);
    case LLM_BX_KIND_REPEAT: {
        const llm_bx *a = &p->node[x->a];
        const bool known = a->min_len != LLM_BX_UNKNOWN;
        return (measure){known ? times_len(a->min_len, x->min) : LLM_BX_UNKNOWN, a->rank};
    }
    case LLM_BX_KIND_CALL:
        return (measure){p->rule[x->a].min_len, p->rule[x->a].rank + 1};
    case LLM_BX_KIND_TABLE: {
        measure m = {0, 0};
        m.len = llm_bx_table_len(p, x, &m.rank);
        return m;
    }
    case LLM_BX_KIND_MEMBERS: {
        measure m = {0, 0};
        m.len = llm_bx_members_len(p, x, &m.rank);
        return m;
    }
    case LLM_BX_KIND_MULTIPLE: {
        const llm_multiple m = llm_bx_as_multiple(x);
        return (measure){llm_multiple_len(&m), 0};
    }
    default:
        return (measure){LLM_BX_UNKNOWN, 0};
    }
}

void llm_bx_measure(llm_bx_pool *p, int32_t e) {
    const measure m = measure_parts(p, &p->node[e]);
    p->node[e].min_len = m.len;
    p->node[e].rank = m.len == LLM_BX_DEAD ? 0 : m.rank;
}
