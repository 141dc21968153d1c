#include "mask.h"

#include <string.h>

#include "ggl/alloc.h"

enum {
    MAX_EXITS = 1 << 16, /* rests of tokens in a memo */
    MAX_SIZE = 64 << 20  /* bytes of memos, after which all are forgotten */
};

static void out_of_memory(llm_walk *w) {
    w->parser->states.pool.status = GGL_NOMEM;
}

/* --- slices ----------------------------------------------------------------------------------- */

/* Which sets of characters, of those that slices have, are part of x: every character of the set is a
 * text of x. */
static unsigned sets_in(llm_masks *m, llm_bx_pool *p, int32_t x) {
    enum { KNOWN = 0x80 };
    if (!ggl_grow(&m->covers, &m->cap_covers, (size_t)x + 1, sizeof *m->covers))
        return 0;
    if (m->covers[x])
        return m->covers[x] & ~(unsigned)KNOWN;
    unsigned bits = 0;
    for (int k = 0; k < LLM_N_SLICE_CHARS; k++) {
        if (!m->chars[k])
            m->chars[k] =
                llm_translate_class(p, llm_slice_chars[k].range, llm_slice_chars[k].n, NULL);
        const int32_t other[] = {m->chars[k], llm_bx_not(p, x)};
        if (llm_bx_min_len(p, llm_bx_and(p, other, 2)) == LLM_BX_DEAD)
            bits |= 1u << k;
    }
    if (p->status == GGL_OK)
        m->covers[x] = (uint8_t)(bits | KNOWN);
    return p->status == GGL_OK ? bits : 0;
}

/* The best slice of all texts that begin with a loop, and the bytes that the loop's text needs. */
typedef struct slice_choice {
    int32_t slice, bytes;
} slice_choice;

static void consider_loop(llm_masks *m, llm_bx_pool *p, const llm_bx *loop, int32_t bytes,
                          slice_choice *best) {
    const unsigned sets = sets_in(m, p, loop->a);
    for (int32_t k = 0; k < LLM_N_SLICES; k++)
        if ((sets >> llm_slices[k].chars & 1) && (best->slice < 0 || k < best->slice) &&
            (loop->max < 0 || llm_slices[k].most <= loop->max))
            *best = (slice_choice){k, bytes};
}

/* Looks for loops over characters at the beginning of x, whose whole text needs `bytes`. */
static void find_loops(llm_masks *m, llm_bx_pool *p, int32_t x, int32_t bytes, slice_choice *best) {
    for (;;) {
        const llm_bx e = p->node[x];
        if (e.kind == LLM_BX_KIND_REPEAT && !p->node[e.a].has_call) {
            consider_loop(m, p, &e, bytes, best);
        } else if (e.kind == LLM_BX_KIND_ALT) {
            for (int32_t i = 0; i < e.b; i++) {
                const int32_t part = p->arg[e.a + i];
                const int32_t own = p->node[part].min_len;
                find_loops(m, p, part, own > bytes ? own : bytes, best);
            }
        } else if (e.kind == LLM_BX_KIND_SEQ) {
            find_loops(m, p, e.a, bytes, best);
            if (p->node[e.a].nullable) {
                x = e.b;
                continue;
            }
        }
        return;
    }
}

/* --- memos ------------------------------------------------------------------------------------ */

static void memo_fini(llm_memo *x) {
    ggl_free(x->token);
    ggl_free(x->bits);
    llm_trie_fini(&x->exits);
}

static void forget(llm_masks *m) {
    for (size_t i = 0; i < m->n_memos; i++)
        memo_fini(&m->memo[i]);
    m->n_memos = m->size = 0;
    if (m->bucket)
        memset(m->bucket, 0, m->n_buckets * sizeof *m->bucket);
}

void llm_masks_fini(llm_masks *m) {
    forget(m);
    ggl_free(m->memo);
    ggl_free(m->bucket);
    ggl_free(m->covers);
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

static bool rehash(llm_masks *m) {
    if (2 * (m->n_memos + 1) < m->n_buckets)
        return true;
    const size_t n = m->n_buckets ? 2 * m->n_buckets : 64;
    int32_t *bucket = ggl_calloc(n, sizeof *bucket);
    if (!bucket)
        return false;
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

/* The number of a text after those at or below a node of the vocabulary's trie. */
static int32_t texts_end(const llm_trie *t, const llm_trie_node *node) {
    return node->end < t->n_nodes ? t->node[node->end].first : t->n_texts;
}

/* Adds what follows, in the tokens below an exit, if its first byte may come after the frame. Counts
 * only, if there is no `text`. */
static size_t add_rests(const llm_masks *m, int32_t exit, const llm_byte_set *follow,
                        llm_trie_text *text) {
    const llm_trie *t = &m->vocab->trie;
    const llm_trie_node *node = &t->node[exit];
    size_t n = 0;
    for (int32_t c = exit + 1; c < node->end; c = t->node[c].end) {
        const int32_t first = t->node[c].first, end = texts_end(t, &t->node[c]);
        if (!llm_byte_in(follow, t->node[c].byte))
            continue;
        for (int32_t i = first; text && i < end; i++) {
            const ggl_str s = m->vocab->text[t->id[i]];
            *text++ = (llm_trie_text){{s.s + node->depth, s.n - node->depth}, t->id[i]};
        }
        n += (size_t)(end - first);
    }
    return n;
}

/* Makes a trie of what follows in tokens after nodes at which the frame may be left. */
static bool keep_exits(const llm_masks *m, llm_memo *x, const llm_walk *w) {
    const llm_byte_set *follow = &w->parser->states.pool.rule[x->rule].follow;
    size_t n = 0;
    for (size_t i = 0; i < w->n_exits; i++)
        n += add_rests(m, w->exit[i], follow, NULL);
    x->is_long = n > MAX_EXITS;
    if (x->is_long || n == 0)
        return true;
    llm_trie_text *text = ggl_calloc(n, sizeof *text);
    n = 0;
    for (size_t i = 0; text && i < w->n_exits; i++)
        n += add_rests(m, w->exit[i], follow, text + n);
    const bool ok = text && llm_trie_make(&x->exits, text, (int32_t)n);
    ggl_free(text);
    return ok;
}

/* Walks a state in a frame whose returns are not known. Calls that may come first are not followed:
 * the called frames have items of their own. */
static bool learn(llm_masks *m, llm_walk *w, llm_memo *x) {
    llm_states *s = &w->parser->states;
    const int32_t limit = w->limit;
    slice_choice choice = {-1, 0};
    const int32_t expr = s->state[x->state].expr;
    find_loops(m, &s->pool, expr, s->pool.node[expr].min_len, &choice);
    x->slice = choice.slice;
    const llm_stack_mark mark = llm_stack_here(w->stack);
    w->limit = -1;
    w->skip = choice.slice < 0 ? 0 : 1u << choice.slice;
    w->lists_exits = x->rule >= 0; /* the whole text has nothing after it */
    w->n_found = w->n_exits = 0;
    w->max_bytes = choice.bytes;
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
    out_of_memory(w);
    return false;
}

/* What is known of a state, found out if need be; NULL after a failure. */
static const llm_memo *recall(llm_masks *m, llm_walk *w, int32_t state, int32_t rule) {
    if (!rehash(m) || !ggl_grow(&m->memo, &m->cap_memos, m->n_memos + 1, sizeof *m->memo)) {
        out_of_memory(w);
        return NULL;
    }
    size_t at = place(m, state, rule);
    if (m->bucket[at])
        return &m->memo[m->bucket[at] - 1];
    llm_memo x = {.state = state, .rule = rule};
    if (!learn(m, w, &x)) {
        memo_fini(&x);
        return NULL;
    }
    if (m->size > MAX_SIZE) {
        forget(m);
        at = place(m, state, rule);
    }
    m->size += sizeof x + (size_t)x.n_tokens * sizeof *x.token +
               (x.bits ? m->vocab->n_words * sizeof *x.bits : 0) +
               (size_t)x.exits.n_nodes * sizeof *x.exits.node;
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

/* Walks a trie from a set on top of the stack, and removes the set. */
static void walk_from(llm_walk *w, const llm_trie *t, llm_item_set set, uint32_t *allowed) {
    w->n_found = 0;
    llm_walk_trie(w, t, set);
    add_tokens(allowed, w->found, w->n_found);
}

static void mask_of_item(llm_masks *m, llm_walk *w, llm_item item, uint32_t *allowed) {
    const llm_stack_mark mark = llm_stack_here(w->stack);
    const llm_memo *x = recall(m, w, item.state, w->stack->frame[item.frame].rule);
    if (!x)
        return;
    const int32_t most = llm_bx_add_len(x->max_bytes, w->stack->frame[item.frame].finish);
    if (x->is_long || (w->limit >= 0 && most > w->limit)) {
        walk_from(w, &m->vocab->trie, llm_set_of_item(w->parser, w->stack, item), allowed);
    } else {
        add_memo(m, x, allowed);
        if (x->exits.n_nodes > 0 && w->stack->frame[item.frame].returns >= 0)
            walk_from(w, &x->exits, llm_set_of_returns(w->parser, w->stack, item.frame), allowed);
    }
    llm_stack_back(w->stack, mark);
}

void llm_mask(llm_masks *m, llm_walk *w, llm_item_set set, uint32_t *allowed) {
    for (size_t i = 0; i < set.n && w->parser->states.pool.status == GGL_OK; i++)
        mask_of_item(m, w, w->stack->item[set.first + i], allowed);
}
