#include "loops.h"

#include "ggl/alloc.h"

enum { MAX_VISITS = 2000 }; /* of parts of a state; without its loops it is only slower */

void llm_loops_fini(llm_loops *l) {
    ggl_free(l->loop);
    ggl_free(l->covers);
    *l = (llm_loops){0};
}

/* Which sets are part of x: every character of the set is a text of x. */
static unsigned sets_in(llm_loops *l, llm_bx_pool *p, int32_t x) {
    enum { KNOWN = 0x80 };
    if (!llm_bx_grow(p, &l->covers, &l->cap_covers, (size_t)x + 1, sizeof *l->covers))
        return 0;
    if (l->covers[x])
        return l->covers[x] & ~(unsigned)KNOWN;
    unsigned bits = 0;
    for (int k = 0; k < LLM_N_SLICE_CHARS; k++) {
        const llm_slice_set *set = &llm_slice_chars[k];
        if (!l->chars[k])
            l->chars[k] = llm_translate_class(p, set->range, set->n, NULL);
        const int32_t other[] = {l->chars[k], llm_bx_not(p, x)};
        if (llm_bx_min_len(p, llm_bx_and(p, other, 2)) == LLM_BX_DEAD)
            bits |= 1u << k;
    }
    if (p->status != GGL_OK)
        return 0;
    l->covers[x] = (uint8_t)(bits | KNOWN);
    return bits;
}

/* A loop over x from the beginning on, at most `most` times, whose text needs `bytes` in all. */
static void add_loop(llm_loops *l, llm_bx_pool *p, int32_t x, int32_t most, int32_t bytes,
                     llm_loop *out) {
    const unsigned sets = sets_in(l, p, x);
    for (int k = 0; k < LLM_N_SLICE_CHARS; k++)
        if ((sets >> k & 1) && most > out->most[k])
            out->most[k] = most;
    if (sets && bytes > out->bytes)
        out->bytes = bytes;
}

static int32_t times(const llm_bx *repeat) {
    return repeat->max < 0 ? INT32_MAX : repeat->max;
}

/* A loop without some texts, such as names of members that are declared: if these are bounded, then
 * what was read can always be completed with something longer. */
static void find_in_and(llm_loops *l, llm_bx_pool *p, const llm_bx *e, int32_t after,
                        llm_loop *out) {
    int32_t loop = LLM_BX_NONE, bound = 0;
    for (int32_t i = 0; i < e->b; i++) {
        const int32_t part = p->arg[e->a + i];
        const llm_bx *x = &p->node[part];
        if (x->kind == LLM_BX_KIND_REPEAT && loop == LLM_BX_NONE)
            loop = part;
        else if (x->kind == LLM_BX_KIND_NOT && p->node[x->a].max_len != LLM_BX_ENDLESS)
            bound = p->node[x->a].max_len > bound ? p->node[x->a].max_len : bound;
        else
            return;
    }
    if (loop == LLM_BX_NONE || times(&p->node[loop]) <= bound)
        return;
    const int32_t len = llm_bx_add_len(p->node[loop].min_len, bound + 1);
    add_loop(l, p, p->node[loop].a, times(&p->node[loop]), llm_bx_add_len(len, after), out);
}

/* Looks for loops over characters at the beginning of x, which `after` bytes at least follow. */
static void find(llm_loops *l, llm_bx_pool *p, int32_t x, int32_t after, llm_loop *out) {
    while (++l->n_visits < MAX_VISITS) {
        const llm_bx e = p->node[x];
        if (e.kind == LLM_BX_KIND_REPEAT && !p->node[e.a].has_call) {
            add_loop(l, p, e.a, times(&e), llm_bx_add_len(llm_bx_min_len(p, x), after), out);
        } else if (e.kind == LLM_BX_KIND_AND) {
            find_in_and(l, p, &e, after, out);
        } else if (e.kind == LLM_BX_KIND_ALT) {
            for (int32_t i = 0; i < e.b; i++)
                find(l, p, p->arg[e.a + i], after, out);
        } else if (e.kind == LLM_BX_KIND_SEQ) {
            find(l, p, e.a, llm_bx_add_len(llm_bx_min_len(p, e.b), after), out);
            if (p->node[e.a].nullable) {
                x = e.b;
                continue;
            }
        }
        return;
    }
}

llm_loop llm_loops_find(llm_loops *l, llm_states *s, int32_t state) {
    llm_loop x = {.known = true};
    if (!llm_bx_grow(&s->pool, &l->loop, &l->cap, (size_t)state + 1, sizeof *l->loop))
        return x;
    l->n_visits = 0;
    find(l, &s->pool, s->state[state].expr, 0, &x);
    if (l->n_visits >= MAX_VISITS)
        x = (llm_loop){.known = true};
    if (s->pool.status == GGL_OK)
        l->loop[state] = x;
    return x;
}

int32_t llm_loop_slice(llm_loop x) {
    for (int32_t k = 0; k < LLM_N_SLICES; k++)
        if (x.most[llm_slices[k].chars] > 0 && llm_slices[k].most <= x.most[llm_slices[k].chars])
            return k;
    return -1;
}
