#include "mask.h"

#include <string.h>

#include "ggl/internal/alloc.h"

enum {
    MAX_SIZE = 64 << 20, /* bytes of memos, after which all are forgotten */
    WORDS = 256          /* of a mask that are copied in a step */
};

static llm_bx_pool *pool_of(const llm_walk *w) {
    return &w->parser->states.pool;
}

/* --- memos ------------------------------------------------------------------------------------ */

static void memo_fini(llm_memo *x) {
    ggl_free(x->token);
    ggl_free(x->bits);
    ggl_free(x->exit);
}

static void forget(llm_masks *m, llm_bx_pool *p) {
    llm_budget_give_back(&p->use, m->size, 1);
    for (size_t i = 0; i < m->n_memos; i++)
        memo_fini(&m->memo[i]);
    m->n_memos = m->size = 0;
    if (m->bucket)
        memset(m->bucket, 0, m->n_buckets * sizeof *m->bucket);
}

void llm_masks_fini(llm_masks *m, llm_bx_pool *p) {
    forget(m, p);
    ggl_free(m->memo);
    ggl_free(m->bucket);
    llm_loops_fini(&m->loops);
    *m = (llm_masks){0};
}

static size_t place(const llm_masks *m, int32_t state, int32_t rule) {
    const uint64_t key = (uint64_t)(uint32_t)state << 32 | (uint32_t)rule;
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (m->n_buckets - 1);
    for (; m->bucket[at]; at = (at + 1) & (m->n_buckets - 1)) {
        const llm_memo *x = &m->memo[m->bucket[at] - 1];
        if (x->state == state && x->rule == rule)
            break;
    }
    return at;
}

static bool rehash(llm_masks *m, llm_bx_pool *p) {
    if (2 * (m->n_memos + 1) < m->n_buckets)
        return true;
    const size_t n = m->n_buckets ? 2 * m->n_buckets : 64;
    const ggl_status st = llm_budget_take(&p->use, n - m->n_buckets, sizeof *m->bucket);
    int32_t *bucket = st == GGL_OK ? ggl_calloc(n, sizeof *bucket) : NULL;
    if (!bucket) {
        p->status = st == GGL_OK ? GGL_NOMEM : st;
        return false;
    }
    ggl_free(m->bucket);
    m->bucket = bucket;
    m->n_buckets = n;
    for (size_t i = 0; i < m->n_memos; i++)
        bucket[place(m, m->memo[i].state, m->memo[i].rule)] = (int32_t)i + 1;
    return true;
}

/* Keeps what the walk has found, in the smaller form. */
static bool keep_tokens(const llm_masks *m, llm_memo *x, const llm_walk *w) {
    if (w->n_found < m->vocab->n_words) {
        x->token = ggl_calloc(w->n_found, sizeof *x->token);
        if (x->token && w->n_found > 0)
            memcpy(x->token, w->found, w->n_found * sizeof *w->found);
        x->n_tokens = (int32_t)w->n_found;
        return x->token != NULL;
    }
    x->bits = ggl_calloc(m->vocab->n_words, sizeof *x->bits);
    for (size_t i = 0; x->bits && i < w->n_found; i++)
        x->bits[w->found[i] / 32] |= (uint32_t)1 << (w->found[i] % 32);
    return x->bits != NULL;
}

/* Keeps the nodes that go on where the frame may be left, with a byte that may come after it. */
static bool keep_exits(const llm_masks *m, llm_memo *x, const llm_walk *w) {
    const llm_byte_set *follow = &w->parser->states.pool.rule[x->rule].follow;
    const llm_trie_node *node = m->vocab->trie.node;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < w->n_exits; i++) {
        const int32_t exit = w->exit[i];
        for (int32_t c = exit + 1; c < node[exit].end; c = node[c].end) {
            if (!llm_byte_in(follow, node[c].byte))
                continue;
            if (!ggl_grow(&x->exit, &cap, n + 1, sizeof *x->exit))
                return false;
            x->exit[n++] = c;
        }
    }
    x->n_exits = (int32_t)n;
    return true;
}

/* Walks a state in a frame whose returns are not known. Calls that may come first are not followed:
 * the called frames have items of their own. */
static bool learn(llm_masks *m, llm_walk *w, llm_memo *x) {
    llm_states *s = &w->parser->states;
    const int32_t limit = w->limit;
    const llm_loop loop = llm_loop_of(w->loops, s, x->state);
    x->slice = llm_loop_slice(loop);
    const llm_stack_mark mark = llm_stack_here(w->stack);
    w->limit = -1;
    w->skip = x->slice < 0 ? 0 : 1u << x->slice;
    w->lists_exits = x->rule >= 0; /* the whole text has nothing after it */
    w->n_found = w->n_exits = 0;
    w->max_bytes = loop.bytes;
    llm_walk_trie(w, &m->vocab->trie,
                  llm_set_of_item(w->parser, w->stack, (llm_item){x->state, LLM_FRAME_OPEN}));
    llm_stack_back(w->stack, mark);
    w->limit = limit;
    w->skip = 0;
    w->lists_exits = false;
    x->max_bytes = w->max_bytes;
    if (s->pool.status != GGL_OK)
        return false;
    if (keep_tokens(m, x, w) && (x->rule < 0 || keep_exits(m, x, w)))
        return true;
    pool_of(w)->status = GGL_NOMEM;
    return false;
}

static size_t size_of(const llm_masks *m, const llm_memo *x) {
    return sizeof *x + (size_t)x->n_tokens * sizeof *x->token +
           (x->bits ? m->vocab->n_words * sizeof *x->bits : 0) +
           (size_t)x->n_exits * sizeof *x->exit;
}

/* What is known of a state, found out if need be; NULL after a failure. */
static const llm_memo *recall(llm_masks *m, llm_walk *w, int32_t state, int32_t rule) {
    if (!rehash(m, pool_of(w)) ||
        !llm_bx_grow(pool_of(w), &m->memo, &m->cap_memos, m->n_memos + 1, sizeof *m->memo))
        return NULL;
    size_t at = place(m, state, rule);
    if (m->bucket[at])
        return &m->memo[m->bucket[at] - 1];
    llm_memo x = {.state = state, .rule = rule};
    w->loops = &m->loops;
    if (!learn(m, w, &x)) {
        memo_fini(&x);
        return NULL;
    }
    if (m->size > MAX_SIZE) {
        forget(m, pool_of(w));
        at = place(m, state, rule);
    }
    const size_t size = size_of(m, &x);
    ggl_status st = llm_budget_take(&pool_of(w)->use, size, 1);
    if (st == GGL_LIMIT && m->size > 0) { /* there may be room without the others */
        pool_of(w)->use.is_exceeded = false;
        forget(m, pool_of(w));
        at = place(m, state, rule);
        st = llm_budget_take(&pool_of(w)->use, size, 1);
    }
    if (st != GGL_OK) {
        pool_of(w)->status = st;
        memo_fini(&x);
        return NULL;
    }
    m->size += size;
    m->memo[m->n_memos] = x;
    m->bucket[at] = (int32_t)++m->n_memos;
    return &m->memo[m->n_memos - 1];
}

/* --- masks ------------------------------------------------------------------------------------ */

static void add_bits(uint32_t *allowed, const uint32_t *bits, size_t n_words) {
    for (size_t i = 0; i < n_words; i++)
        allowed[i] |= bits[i];
}

static void add_tokens(uint32_t *allowed, const int32_t *token, size_t n) {
    for (size_t i = 0; i < n; i++)
        allowed[token[i] / 32] |= (uint32_t)1 << (token[i] % 32);
}

static void add_memo(const llm_masks *m, const llm_memo *x, uint32_t *allowed) {
    const size_t n_words = m->vocab->n_words;
    if (x->slice >= 0)
        add_bits(allowed, m->vocab->slice + (size_t)x->slice * n_words, n_words);
    if (x->bits)
        add_bits(allowed, x->bits, n_words);
    else
        add_tokens(allowed, x->token, (size_t)x->n_tokens);
}

/* Goes on from where a frame was left, to what it returns to. Tokens that leave it go on with few
 * different bytes: the set after each is made once. */
static void walk_exits(llm_masks *m, llm_walk *w, const llm_memo *x, int32_t frame) {
    const llm_trie *t = &m->vocab->trie;
    const llm_byte_set *follow = &w->parser->states.pool.rule[x->rule].follow;
    const llm_item_set left = llm_set_of_returns(w->parser, w->stack, frame);
    llm_item_set after[256];
    for (unsigned b = 0; b < 256; b++)
        after[b].n = 0;
    for (unsigned b = 0; b < 256; b++)
        if (llm_byte_in(follow, b))
            after[b] = llm_set_step(w->parser, w->stack, left, b);
    for (int32_t i = 0; i < x->n_exits; i++) {
        const llm_item_set set = after[t->node[x->exit[i]].byte];
        if (set.n > 0)
            llm_walk_from(w, t, x->exit[i], set);
    }
}

static void mask_of_item(llm_masks *m, llm_walk *w, llm_item item, uint32_t *allowed) {
    const llm_stack_mark mark = llm_stack_here(w->stack);
    const llm_memo *x = recall(m, w, item.state, w->stack->frame[item.frame].rule);
    if (!x)
        return;
    const int32_t most = llm_bx_add_len(x->max_bytes, w->stack->frame[item.frame].finish);
    w->n_found = 0;
    llm_bx_count(&w->parser->states.pool, 1 + m->vocab->n_words / WORDS);
    if (w->limit >= 0 && most > w->limit) {
        llm_walk_trie(w, &m->vocab->trie, llm_set_of_item(w->parser, w->stack, item));
    } else {
        add_memo(m, x, allowed);
        if (x->n_exits > 0 && w->stack->frame[item.frame].returns >= 0)
            walk_exits(m, w, x, item.frame);
    }
    add_tokens(allowed, w->found, w->n_found);
    llm_stack_back(w->stack, mark);
}

void llm_mask(llm_masks *m, llm_walk *w, llm_item_set set, uint32_t *allowed) {
    for (size_t i = 0; i < set.n && w->parser->states.pool.status == GGL_OK; i++)
        mask_of_item(m, w, w->stack->item[set.first + i], allowed);
}
