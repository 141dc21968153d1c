#include "walk.h"

#include "ggl/alloc.h"

static llm_item_set push_item(llm_walk *w, llm_item item) {
    llm_stack *s = w->stack;
    llm_item_set set = {.first = s->n_items};
    if (!ggl_grow(&s->item, &s->cap_items, s->n_items + 1, sizeof *s->item)) {
        w->parser->states.pool.status = GGL_NOMEM;
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

static void allow(llm_walk *w, const llm_trie *t, const llm_trie_node *node) {
    for (int32_t k = node->first; k < node->first + node->n; k++) {
        const uint32_t id = (uint32_t)t->id[k];
        w->allowed[id / 32] |= (uint32_t)1 << (id % 32);
    }
}

void llm_walk_trie(llm_walk *w, const llm_trie *t, llm_item_set start) {
    llm_bx_pool *pool = &w->parser->states.pool;
    if (!ggl_grow(&w->level, &w->cap_levels, (size_t)t->max_depth + 1, sizeof *w->level)) {
        pool->status = GGL_NOMEM;
        return;
    }
    const llm_stack_mark mark = llm_stack_here(w->stack);
    w->level[0] = (llm_level){start, mark};
    for (int32_t i = 1; i < t->n_nodes && pool->status == GGL_OK;) {
        const llm_trie_node *node = &t->node[i];
        const llm_level *above = &w->level[node->depth - 1];
        llm_stack_back(w->stack, above->mark);
        const llm_item_set set = next_set(w, above->set, node->byte);
        if (set.n == 0) {
            i = node->end;
            continue;
        }
        if (node->n > 0 && fits(w, set))
            allow(w, t, node);
        w->level[node->depth] = (llm_level){set, llm_stack_here(w->stack)};
        i++;
    }
    llm_stack_back(w->stack, mark);
}

void llm_walk_fini(llm_walk *w) {
    ggl_free(w->level);
    *w = (llm_walk){0};
}
