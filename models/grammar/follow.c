#include "follow.h"

#include "ggl/alloc.h"

typedef struct sets {
    llm_bx_pool *p;
    llm_byte_set *first;  /* [n_nodes] bytes with which a text begins */
    llm_byte_set *follow; /* [n_nodes] bytes that may come after a text */
    bool changed;
} sets;

/* a = a or b; notes whether that changed a. */
static void unite(sets *s, llm_byte_set *a, const llm_byte_set *b) {
    for (int i = 0; i < 4; i++) {
        s->changed = s->changed || (b->w[i] & ~a->w[i]);
        a->w[i] |= b->w[i];
    }
}

/* Members, the comma and the rest begin a list or follow each other: more exactly is not needed. */
static void first_of_members(sets *s, int32_t id) {
    int32_t n;
    const int32_t *part = llm_bx_table_parts(s->p, &s->p->node[id], &n);
    for (int32_t i = 0; i < n; i++)
        unite(s, &s->first[id], &s->first[part[i]]);
}

static void follow_in_members(sets *s, int32_t id) {
    int32_t n;
    const int32_t *part = llm_bx_table_parts(s->p, &s->p->node[id], &n);
    for (int32_t i = 0; i < n; i++) {
        unite(s, &s->follow[part[i]], &s->first[id]);
        unite(s, &s->follow[part[i]], &s->follow[id]);
    }
}

static void find_first(sets *s, int32_t id) {
    const llm_bx_pool *p = s->p;
    const llm_bx *x = &p->node[id];
    llm_byte_set *first = &s->first[id];
    static const llm_byte_set all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    switch ((llm_bx_kind)x->kind) {
    case LLM_BX_KIND_BYTES:
        unite(s, first, &p->set[x->a]);
        break;
    case LLM_BX_KIND_SEQ:
        unite(s, first, &s->first[x->a]);
        if (p->node[x->a].nullable)
            unite(s, first, &s->first[x->b]);
        break;
    case LLM_BX_KIND_ALT:
    case LLM_BX_KIND_AND:
        for (int32_t i = 0; i < x->b; i++)
            unite(s, first, &s->first[p->arg[x->a + i]]);
        break;
    case LLM_BX_KIND_REPEAT:
        unite(s, first, &s->first[x->a]);
        break;
    case LLM_BX_KIND_NOT:
        unite(s, first, &all);
        break;
    case LLM_BX_KIND_CALL:
        unite(s, first, &s->first[p->rule[x->a].body]);
        break;
    case LLM_BX_KIND_MEMBERS:
        first_of_members(s, id);
        break;
    case LLM_BX_KIND_MULTIPLE:
        unite(s, first, &all);
        break;
    default:
        break;
    }
}

/* Hands what follows a node down to its parts. */
static void pass_follow(sets *s, int32_t id) {
    const llm_bx_pool *p = s->p;
    const llm_bx *x = &p->node[id];
    const llm_byte_set *follow = &s->follow[id];
    if (!x->has_call)
        return;
    switch ((llm_bx_kind)x->kind) {
    case LLM_BX_KIND_SEQ:
        unite(s, &s->follow[x->b], follow);
        unite(s, &s->follow[x->a], &s->first[x->b]);
        if (p->node[x->b].nullable)
            unite(s, &s->follow[x->a], follow);
        break;
    case LLM_BX_KIND_ALT:
        for (int32_t i = 0; i < x->b; i++)
            unite(s, &s->follow[p->arg[x->a + i]], follow);
        break;
    case LLM_BX_KIND_REPEAT:
        if (x->max != 1)
            unite(s, &s->follow[x->a], &s->first[x->a]);
        unite(s, &s->follow[x->a], follow);
        break;
    case LLM_BX_KIND_CALL:
        unite(s, &s->follow[p->rule[x->a].body], follow);
        break;
    case LLM_BX_KIND_MEMBERS:
        follow_in_members(s, id);
        break;
    default:
        break;
    }
}

/* Parts come before what they are part of: first bytes are found upwards, what follows downwards. */
static void find(sets *s) {
    llm_bx_pool *p = s->p;
    const int32_t n = (int32_t)p->n_nodes;
    for (s->changed = true; s->changed && p->status == GGL_OK;) {
        s->changed = false;
        llm_bx_count(p, (p->n_nodes + p->n_args) / 4);
        for (int32_t i = LLM_BX_EMPTY + 1; i < n; i++)
            find_first(s, i);
    }
    for (s->changed = true; s->changed && p->status == GGL_OK;) {
        s->changed = false;
        llm_bx_count(p, (p->n_nodes + p->n_args) / 4);
        for (int32_t i = n - 1; i > LLM_BX_EMPTY; i--)
            pass_follow(s, i);
    }
    for (size_t k = 0; k < p->n_rules; k++)
        p->rule[k].follow = s->follow[p->rule[k].body];
}

void llm_find_follow(llm_bx_pool *p) {
    if (p->n_rules == 0 || p->status != GGL_OK)
        return;
    sets s = {.p = p,
              .first = ggl_calloc(p->n_nodes, sizeof *s.first),
              .follow = ggl_calloc(p->n_nodes, sizeof *s.follow)};
    if (s.first && s.follow)
        find(&s);
    else
        p->status = GGL_NOMEM;
    ggl_free(s.first);
    ggl_free(s.follow);
}
