#include "walk.h"

#include <string.h>

#include "ggl/alloc.h"

static llm_item_set push_item(llm_walk *w, llm_item item) {
    llm_stack *s = w->stack;
    llm_item_set set = {.first = s->n_items};
    if (!llm_bx_grow(&w->parser->states.pool, &s->item, &s->cap_items, s->n_items + 1,
                     sizeof *s->item))
        return set;
    s->item[s->n_items++] = item;
    set.n = 1;
    return set;
}

/* The set after a byte. Mostly there is one item whose state needs no look at frames. */
static llm_item_set next_set(llm_walk *w, llm_item_set from, unsigned byte) {
    if (from.n != 1)
        return llm_set_step(w->parser, w->stack, from, byte);
    llm_item item = w->stack->item[from.first];
    item.state = llm_state_next(&w->parser->states, item.state, byte);
    if (item.state == LLM_STATE_DEAD)
        return (llm_item_set){.first = w->stack->n_items};
    return w->parser->states.state[item.state].simple ? push_item(w, item)
                                                      : llm_set_of(w->parser, w->stack, item);
}

/* Bytes are no fewer than tokens, and quicker to compare. */
static bool within(const llm_walk *w, int32_t bytes) {
    return w->limit < 0 || bytes <= w->limit;
}

static bool fits(llm_walk *w, llm_item_set set) {
    const int32_t bytes = llm_ending_bytes(w->ending, set);
    return within(w, bytes) ||
           (bytes <= w->most_bytes && llm_ending_tokens(w->ending, set) <= w->limit);
}

/* Texts first .. end of the trie may follow; after none are more than `bytes` needed. */
static void add_found(llm_walk *w, const llm_trie *t, int32_t first, int32_t end, int32_t bytes) {
    const size_t n = (size_t)(end - first);
    if (w->n_found + n > w->cap_found &&
        !llm_bx_grow(&w->parser->states.pool, &w->found, &w->cap_found, w->n_found + n,
                     sizeof *w->found))
        return;
    if (n == 1)
        w->found[w->n_found] = t->id[first];
    else
        memcpy(w->found + w->n_found, t->id + first, n * sizeof *w->found);
    w->n_found += n;
    w->max_bytes = bytes > w->max_bytes ? bytes : w->max_bytes;
}

/* Skips the nodes from `node` on whose texts all may follow, because a state of the set loops over
 * their characters. Returns the node where the walk continues; 0: it cannot skip any. *bytes: the
 * most bytes that may be needed after these texts. */
static int32_t skip_loop(llm_walk *w, llm_item_set set, const llm_trie_node *node, int32_t *bytes) {
    for (size_t i = set.first; i < set.first + set.n; i++) {
        const llm_item item = w->stack->item[i];
        const llm_loop loop = llm_loop_of(w->loops, &w->parser->states, item.state);
        for (int k = 0; k < LLM_N_SLICE_CHARS; k++) {
            if (!node->tail[k] || node->tail[k] > loop.most[k])
                continue;
            *bytes = llm_bx_add_len(loop.bytes, w->stack->frame[item.frame].finish);
            return node->run[k] <= loop.most[k] ? node->run_end[k] : node->end;
        }
    }
    return 0;
}

/* The bytes that complete the text after one more byte; LLM_BX_DEAD if it cannot follow. */
static int32_t bytes_after(llm_walk *w, llm_item_set set, unsigned byte) {
    int32_t least = LLM_BX_DEAD;
    for (size_t i = set.first; i < set.first + set.n; i++) {
        const llm_item item = w->stack->item[i];
        const int32_t next = llm_state_next(&w->parser->states, item.state, byte);
        if (next == LLM_STATE_DEAD)
            continue;
        const int32_t bytes = llm_ending_bytes_from(w->ending, next, item.frame);
        least = bytes < least ? bytes : least;
    }
    return least;
}

static void add_exit(llm_walk *w, int32_t node) {
    if (llm_bx_grow(&w->parser->states.pool, &w->exit, &w->cap_exits, w->n_exits + 1,
                    sizeof *w->exit))
        w->exit[w->n_exits++] = node;
}

/* Notes what a node's set allows. Returns true if there is more below. */
static bool visit(llm_walk *w, const llm_trie *t, int32_t i, llm_item_set set) {
    const llm_trie_node *node = &t->node[i];
    if (node[1].first > node->first && fits(w, set))
        add_found(w, t, node->first, node[1].first, llm_ending_bytes(w->ending, set));
    if (i + 1 == node->end)
        return false;
    if (set.exits && w->lists_exits)
        add_exit(w, i);
    w->level[node->depth] = (llm_level){set, llm_stack_here(w->stack)};
    return true;
}

/* Walks node i, which is below its level's set. Returns the next one. */
static int32_t walk_node(llm_walk *w, const llm_trie *t, int32_t i) {
    const llm_trie_node *node = &t->node[i];
    const llm_level *above = &w->level[node->depth - 1];
    if (node->slices & w->skip)
        return node->end;
    int32_t bytes, next = 0;
    if (w->loops && node->tail[0])
        next = skip_loop(w, above->set, node, &bytes);
    if (next > 0 && within(w, bytes)) {
        add_found(w, t, node->first, t->node[next].first, bytes);
        return next;
    }
    if (i + 1 == node->end) {
        bytes = bytes_after(w, above->set, node->byte);
        if (bytes != LLM_BX_DEAD && within(w, bytes))
            add_found(w, t, node->first, node[1].first, bytes);
        if (bytes == LLM_BX_DEAD || within(w, bytes))
            return node->end;
    }
    llm_stack_back(w->stack, above->mark);
    const llm_item_set set = next_set(w, above->set, node->byte);
    return set.n > 0 && visit(w, t, i, set) ? i + 1 : node->end;
}

/* Walks what is below a node, whose set is its level's. */
static void walk_below(llm_walk *w, const llm_trie *t, int32_t top) {
    enum { NODES = 4 }; /* per step: most take less time than an item of a set */
    llm_bx_pool *pool = &w->parser->states.pool;
    const int32_t end = t->node[top].end;
    uint64_t n = 0;
    for (int32_t i = top + 1; i < end && pool->status == GGL_OK; n++)
        i = walk_node(w, t, i);
    llm_bx_count(pool, n / NODES);
}

static bool has_levels(llm_walk *w, const llm_trie *t) {
    return llm_bx_grow(&w->parser->states.pool, &w->level, &w->cap_levels, (size_t)t->max_depth + 1,
                       sizeof *w->level);
}

void llm_walk_trie(llm_walk *w, const llm_trie *t, llm_item_set start) {
    if (!has_levels(w, t))
        return;
    const llm_stack_mark mark = llm_stack_here(w->stack);
    w->level[0] = (llm_level){start, mark};
    walk_below(w, t, 0);
    llm_stack_back(w->stack, mark);
}

void llm_walk_from(llm_walk *w, const llm_trie *t, int32_t node, llm_item_set set) {
    if (!has_levels(w, t))
        return;
    const llm_stack_mark mark = llm_stack_here(w->stack);
    if (visit(w, t, node, set))
        walk_below(w, t, node);
    llm_stack_back(w->stack, mark);
}

void llm_walk_fini(llm_walk *w) {
    if (w->parser) {
        llm_budget *use = &w->parser->states.pool.use;
        llm_budget_give_back(use, w->cap_found, sizeof *w->found);
        llm_budget_give_back(use, w->cap_exits, sizeof *w->exit);
        llm_budget_give_back(use, w->cap_levels, sizeof *w->level);
    }
    ggl_free(w->found);
    ggl_free(w->exit);
    ggl_free(w->level);
    *w = (llm_walk){0};
}
