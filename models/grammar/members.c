/* Lists of members in any order. A MEMBERS node knows its table, which members were there, and how
 * many in all. It becomes an ordinary expression one member at a time, so that only sets of members
 * are ever looked at that some text has. */
#include <string.h>

#include "ggl/alloc.h"
#include "members.h"

/* How many of the first n members are used. */
static int32_t n_used(const int32_t *set, int32_t n) {
    int32_t used = 0;
    for (int32_t i = 0; i < n / 32; i++)
        used += __builtin_popcount((uint32_t)set[i]);
    return n % 32 == 0 ? used
                       : used + __builtin_popcount((uint32_t)set[n / 32] & ((1u << n % 32) - 1));
}

/* How many required members are missing. */
static int32_t n_missing(const llm_bx_pool *p, int32_t table, const int32_t *set) {
    const int32_t n = p->arg[p->node[table].a + N_REQUIRED];
    return n - n_used(set, n);
}

/* The node for a set of members; counts are cut where more makes no difference. */
static int32_t members(llm_bx_pool *p, int32_t table, const int32_t *set, int32_t count) {
    const int32_t *t = &p->arg[p->node[table].a];
    const int32_t most = t[MAX] >= 0 ? t[MAX] : t[MIN] > 0 ? t[MIN] : 1;
    const int32_t n = p->node[table].b - FIRST;
    const int32_t missing = n_missing(p, table, set);
    const bool nullable = count >= t[MIN] && missing == 0;
    const bool has_rest = t[REST] != LLM_BX_NONE;
    const int32_t unused = n - n_used(set, n);
    llm_bx_count(p, (uint64_t)n / 256);
    if ((unused == 0 && !has_rest) || (t[MAX] >= 0 && count + (missing > 0 ? missing : 1) > t[MAX]))
        return nullable ? LLM_BX_EMPTY : LLM_BX_NONE;
    if (!has_rest && count + unused < t[MIN])
        return LLM_BX_NONE;
    const int32_t used = llm_bx_add_list(p, LLM_BX_KIND_SET, set, (n + 31) / 32);
    return llm_bx_add_members(p, table, used, count < most ? count : most, nullable);
}

int32_t llm_bx_members(llm_bx_pool *p, const llm_bx_list *list) {
    const int32_t n = list->n;
    int32_t *arg = ggl_calloc((size_t)n + FIRST, sizeof *arg);
    int32_t *none = ggl_calloc(((size_t)n + 31) / 32 + 1, sizeof *none);
    int32_t e = LLM_BX_NONE;
    if (arg && none) {
        const int32_t head[] = {list->n_required, list->min, list->max, list->comma, list->rest};
        memcpy(arg, head, sizeof head);
        if (n > 0)
            memcpy(arg + FIRST, list->member, (size_t)n * sizeof *arg);
        const int32_t table = llm_bx_add_list(p, LLM_BX_KIND_TABLE, arg, n + FIRST);
        if (p->status == GGL_OK)
            e = members(p, table, none, 0);
    } else {
        p->status = GGL_NOMEM;
    }
    ggl_free(arg);
    ggl_free(none);
    return e;
}

/* --- unfolding -------------------------------------------------------------------------------- */

typedef struct unfolding {
    llm_bx_pool *p;
    int32_t table, count, comma;
    int32_t *set;  /* a copy: the pool moves */
    int32_t *part; /* the alternatives */
    int32_t n_parts;
} unfolding;

static void add_part(unfolding *u, int32_t member) {
    const int32_t next = members(u->p, u->table, u->set, u->count + 1);
    u->part[u->n_parts++] = llm_bx_seq(u->p, u->comma, llm_bx_seq(u->p, member, next));
}

static void add_parts(unfolding *u) {
    llm_bx_pool *p = u->p;
    const int32_t first = p->node[u->table].a, n = p->node[u->table].b - FIRST;
    const int32_t max = p->arg[first + MAX], n_required = p->arg[first + N_REQUIRED];
    const bool full = max >= 0 && u->count >= max;
    const bool room = max < 0 || u->count + n_missing(p, u->table, u->set) < max;
    for (int32_t i = 0; i < n && !full && p->status == GGL_OK; i++) {
        if (is_used(u->set, i) || (i >= n_required && !room))
            continue;
        const int32_t bit = (int32_t)((uint32_t)1 << (i % 32));
        u->set[i / 32] ^= bit;
        add_part(u, p->arg[first + FIRST + i]);
        u->set[i / 32] ^= bit;
    }
    if (room && !full && p->arg[first + REST] != LLM_BX_NONE)
        add_part(u, p->arg[first + REST]);
}

int32_t llm_bx_unfold(llm_bx_pool *p, int32_t e) {
    const llm_bx x = p->node[e];
    const int32_t n = p->node[x.a].b - FIRST, n_words = p->node[x.b].b;
    int32_t all = LLM_BX_NONE;
    unfolding u = {.p = p,
                   .table = x.a,
                   .count = x.min,
                   .comma = x.min > 0 ? p->arg[p->node[x.a].a + COMMA] : LLM_BX_EMPTY,
                   .set = ggl_calloc((size_t)n_words + 1, sizeof *u.set),
                   .part = ggl_calloc((size_t)n + 2, sizeof *u.part)};
    if (u.set && u.part) {
        if (n_words > 0)
            memcpy(u.set, &p->arg[p->node[x.b].a], (size_t)n_words * sizeof *u.set);
        if (x.nullable)
            u.part[u.n_parts++] = LLM_BX_EMPTY;
        add_parts(&u);
        all = llm_bx_alt(p, u.part, u.n_parts);
    } else {
        p->status = GGL_NOMEM;
    }
    ggl_free(u.set);
    ggl_free(u.part);
    return all;
}
