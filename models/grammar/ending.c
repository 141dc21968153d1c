#include "ending.h"

#include "ggl/alloc.h"

void llm_ending_fini(llm_ending *e) {
    if (e->parser) {
        llm_budget *use = &e->parser->states.pool.use;
        llm_budget_give_back(use, e->text.cap, 1);
        llm_budget_give_back(use, llm_spelled_size(&e->spelled), 1);
        llm_budget_give_back(use, llm_suffixes_size(&e->suffixes), 1);
    }
    ggl_free(e->text.s);
    llm_spelled_fini(&e->spelled);
    llm_suffixes_fini(&e->suffixes);
    *e = (llm_ending){0};
}

int32_t llm_ending_bytes(const llm_ending *e, llm_item_set set) {
    int32_t least = LLM_BX_DEAD;
    for (size_t i = set.first; i < set.first + set.n; i++) {
        const llm_item item = e->stack->item[i];
        const int32_t len = llm_ending_bytes_from(e, item.state, item.frame);
        least = len < least ? len : least;
    }
    return least;
}

int32_t llm_ending_most_bytes(const llm_ending *e, llm_item_set set) {
    int32_t most = 0;
    for (size_t i = set.first; i < set.first + set.n; i++) {
        const int32_t len =
            llm_ending_bytes_from(e, e->stack->item[i].state, e->stack->item[i].frame);
        most = len > most ? len : most;
    }
    return most;
}

static void fail(llm_ending *e, ggl_status st) {
    if (e->parser->states.pool.status == GGL_OK)
        e->parser->states.pool.status = st;
}

/* Counts work on n bytes, `per_step` of which take the time of a step. */
static void count_bytes(llm_ending *e, size_t n, size_t per_step) {
    llm_bx_count(&e->parser->states.pool, n / per_step);
}

enum { COPIED = 64, SPELLED = 4 }; /* bytes per step */

/* Finds the fewest tokens for e->text. With the restrictions that a vocabulary puts on a grammar
 * (vocab.c) there always are some. */
static void spell(llm_ending *e) {
    count_bytes(e, e->text.n, SPELLED);
    if (!llm_spell(&e->parser->states.pool, e->vocab, e->text.s, e->text.n, &e->spelled))
        fail(e, GGL_UNSUPPORTED);
}

/* The number of these tokens. */
static int32_t count_tokens(llm_ending *e) {
    size_t n_new = 0;
    const int32_t n = llm_count_tokens(&e->parser->states.pool, e->vocab, e->text.s, e->text.n,
                                       &e->suffixes, &n_new);
    count_bytes(e, e->text.n, COPIED);
    count_bytes(e, n_new, SPELLED);
    if (n == LLM_BX_DEAD)
        fail(e, GGL_UNSUPPORTED);
    return n;
}

/* Tokens for a shortest text of a state. */
static int32_t tokens_of_state(llm_ending *e, int32_t state) {
    llm_states *s = &e->parser->states;
    if (s->state[state].n_tokens < 0) {
        e->text.n = 0;
        llm_shortest_text(&s->pool, s->state[state].expr, &e->text);
        const int32_t n = s->pool.status == GGL_OK ? count_tokens(e) : LLM_BX_DEAD;
        if (s->pool.status != GGL_OK)
            return LLM_BX_DEAD;
        s->state[state].n_tokens = n;
    }
    return s->state[state].n_tokens;
}

/* Tokens for what comes after a frame. Frames that are not known yet are counted on the way to one
 * that is, and then get their numbers. */
static int32_t tokens_after(llm_ending *e, int32_t frame) {
    int32_t sum = 0;
    llm_stack *s = e->stack;
    for (int32_t f = frame; s->frame[f].best >= 0; f = s->ret[s->frame[f].best].frame) {
        if (s->frame[f].n_tokens >= 0) {
            sum = llm_bx_add_len(sum, s->frame[f].n_tokens);
            break;
        }
        sum = llm_bx_add_len(sum, tokens_of_state(e, s->ret[s->frame[f].best].state));
    }
    const int32_t total = sum;
    for (int32_t f = frame; s->frame[f].best >= 0 && s->frame[f].n_tokens < 0;
         f = s->ret[s->frame[f].best].frame) {
        if (e->parser->states.pool.status != GGL_OK)
            return LLM_BX_DEAD;
        s->frame[f].n_tokens = sum;
        sum -= tokens_of_state(e, s->ret[s->frame[f].best].state);
    }
    return total;
}

static int32_t tokens_from(llm_ending *e, llm_item item) {
    return llm_bx_add_len(tokens_of_state(e, item.state), tokens_after(e, item.frame));
}

int32_t llm_ending_tokens(llm_ending *e, llm_item_set set) {
    int32_t least = LLM_BX_DEAD;
    for (size_t i = set.first; i < set.first + set.n; i++) {
        const int32_t n = tokens_from(e, e->stack->item[i]);
        least = n < least ? n : least;
    }
    return e->parser->states.pool.status == GGL_OK ? least : LLM_BX_DEAD;
}

/* The item from which the fewest tokens complete the text. */
static llm_item nearest(llm_ending *e, llm_item_set set) {
    llm_item best = e->stack->item[set.first];
    int32_t least = set.n > 1 ? tokens_from(e, best) : 0;
    for (size_t i = set.first + 1; i < set.first + set.n; i++) {
        const int32_t n = tokens_from(e, e->stack->item[i]);
        if (n < least) {
            least = n;
            best = e->stack->item[i];
        }
    }
    return best;
}

void llm_ending_plan(llm_ending *e, llm_item_set set) {
    llm_states *s = &e->parser->states;
    if (llm_ending_bytes(e, set) > LLM_SHORTEST_MAX)
        fail(e, GGL_LIMIT);
    llm_item from = nearest(e, set);
    e->text.n = e->spelled.n = 0;
    while (s->pool.status == GGL_OK) {
        llm_shortest_text(&s->pool, s->state[from.state].expr, &e->text);
        const int32_t best = e->stack->frame[from.frame].best;
        if (best < 0)
            break;
        from = (llm_item){e->stack->ret[best].state, e->stack->ret[best].frame};
    }
    if (s->pool.status == GGL_OK)
        spell(e);
}
