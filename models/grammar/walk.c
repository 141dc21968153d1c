#include "walk.h"

#include "ggl/alloc.h"

static void out_of_memory(llm_walk *w) {
    w->parser->states.pool.status = GGL_NOMEM;
}

static llm_item_set push_item(llm_walk *w, llm_item item) {
    llm_stack *s = w->stack;
    llm_item_set set = {.first = s->n_items};
    if (!ggl_grow(&s->item, &s->cap_items, s->n_items + 1, sizeof *s->item)) {
        out_of_memory(w);
        return set;
    }
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
static bool fits(llm_walk *w, llm_item_set set) {
    return w->limit < 0 || llm_ending_bytes(w->ending, set) <= w->limit ||
           llm_ending_tokens(w->ending, set) <= w->limit;
}

static void add_found(llm_walk *w, const llm_trie *t, const llm_trie_node *node, llm_item_set set) {
    if (!ggl_grow(&w->found, &w->cap_found, w->n_found + (size_t)node->n, sizeof *w->found)) {
        out_of_memory(w);
        return;
    }
    for (int32_t k = node->first; k < node->first + node->n; k++)
        w->found[w->n_found++] = t->id[k];
    const int32_t bytes = llm_ending_bytes(w->ending, set);
    w->max_bytes = bytes > w->max_bytes ? bytes : w->max_bytes;
}

static void add_exit(llm_walk *w, int32_t node) {
    if (!ggl_grow(&w->exit, &w->cap_exits, w->n_exits + 1, sizeof *w->exit))
        out_of_memory(w);
    else
        w->exit[w->n_exits++] = node;
}

void llm_walk_trie(llm_walk *w, const llm_trie *t, llm_item_set start) {
    const llm_bx_pool *pool = &w->parser->states.pool;
    if (!ggl_grow(&w->level, &w->cap_levels, (size_t)t->max_depth + 1, sizeof *w->level)) {
        out_of_memory(w);
        return;
    }
    const llm_stack_mark mark = llm_stack_here(w->stack);
    w->level[0] = (llm_level){start, mark};
    for (int32_t i = 1; i < t->n_nodes && pool->status == GGL_OK;) {
        const llm_trie_node *node = &t->node[i];
        const llm_level *above = &w->level[node->depth - 1];
        i = node->end;
        if (node->slices & w->skip)
            continue;
        llm_stack_back(w->stack, above->mark);
        const llm_item_set set = next_set(w, above->set, node->byte);
        if (set.n == 0)
            continue;
        if (node->n > 0 && fits(w, set))
            add_found(w, t, node, set);
        const int32_t first = (int32_t)(node - t->node) + 1;
        if (first == node->end)
            continue;
        if (set.exits && w->lists_exits)
            add_exit(w, first - 1);
        w->level[node->depth] = (llm_level){set, llm_stack_here(w->stack)};
        i = first;
    }
    llm_stack_back(w->stack, mark);
}

void llm_walk_fini(llm_walk *w) {
    ggl_free(w->found);
    ggl_free(w->exit);
    ggl_free(w->level);
    *w = (llm_walk){0};
}
