#include "stack.h"

#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/steps.h"

/* --- memory ----------------------------------------------------------------------------------- */

bool llm_parser_init(llm_parser *p, const llm_bx_pool *pool, int32_t start) {
    const llm_budget use = p->states.pool.use;
    *p = (llm_parser){.states.pool.use = use};
    if (llm_budget_take(&p->states.pool.use, pool->n_rules, sizeof *p->frame + sizeof *p->born) !=
        GGL_OK)
        return false;
    p->frame = ggl_calloc(pool->n_rules, sizeof *p->frame);
    p->born = ggl_calloc(pool->n_rules, sizeof *p->born);
    if (!p->frame || !p->born || !llm_states_init(&p->states, pool))
        return false;
    p->start = llm_state_of(&p->states, start);
    return p->states.pool.status == GGL_OK;
}

void llm_parser_fini(llm_parser *p) {
    llm_states_fini(&p->states);
    ggl_free(p->frame);
    ggl_free(p->born);
    ggl_free(p->todo);
    ggl_free(p->fresh);
    *p = (llm_parser){0};
}

bool llm_stack_init(llm_parser *p, llm_stack *s) {
    *s = (llm_stack){0};
    if (!llm_bx_grow(&p->states.pool, &s->frame, &s->cap_frames, LLM_FRAME_FIRST, sizeof *s->frame))
        return false;
    s->frame[LLM_FRAME_ROOT] = s->frame[LLM_FRAME_OPEN] =
        (llm_frame){.rule = -1, .returns = -1, .best = -1};
    s->n_frames = LLM_FRAME_FIRST;
    return true;
}

void llm_stack_fini(llm_parser *p, llm_stack *s) {
    llm_budget *use = &p->states.pool.use;
    llm_budget_give_back(use, s->cap_items, sizeof *s->item);
    llm_budget_give_back(use, s->cap_frames, sizeof *s->frame);
    llm_budget_give_back(use, s->cap_returns, sizeof *s->ret);
    ggl_free(s->item);
    ggl_free(s->frame);
    ggl_free(s->ret);
    *s = (llm_stack){0};
}

static bool copy_array(llm_parser *p, void *to, size_t *cap, const void *from, size_t n,
                       size_t size) {
    if (!llm_bx_grow(&p->states.pool, to, cap, n, size))
        return false;
    if (n > 0)
        memcpy(*(void **)to, from, n * size);
    return true;
}

bool llm_stack_copy(llm_parser *p, llm_stack *to, const llm_stack *from) {
    if (!copy_array(p, &to->item, &to->cap_items, from->item, from->n_items, sizeof *to->item) ||
        !copy_array(p, &to->frame, &to->cap_frames, from->frame, from->n_frames,
                    sizeof *to->frame) ||
        !copy_array(p, &to->ret, &to->cap_returns, from->ret, from->n_returns, sizeof *to->ret))
        return false;
    to->n_items = from->n_items;
    to->n_frames = from->n_frames;
    to->n_returns = from->n_returns;
    return true;
}

void llm_stack_back(llm_stack *s, llm_stack_mark m) {
    s->n_items = m.n_items;
    s->n_frames = m.n_frames;
    s->n_returns = m.n_returns;
}

static void fail(llm_parser *p, ggl_status st) {
    if (p->states.pool.status == GGL_OK)
        p->states.pool.status = st;
}

/* --- new returns ------------------------------------------------------------------------------ */

/* Returns are added only to frames of the set under construction. So one table, cleared when a set
 * begins, finds duplicates. */

/* The return's slot, or the free one where it belongs. */
static llm_new_return *find_fresh(const llm_parser *p, const llm_stack *s, int32_t to,
                                  int32_t state, int32_t frame) {
    uint64_t h = (uint64_t)(uint32_t)to * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ (uint64_t)(uint32_t)state << 32 ^ (uint32_t)frame) * 0xd6e8feb86659fd93u;
    for (size_t i = (size_t)(h >> 32);; i++) {
        llm_new_return *x = &p->fresh[i & (p->n_fresh - 1)];
        GGL_STEPS(1);
        if (x->clock != p->clock ||
            (x->to == to && s->ret[x->index].state == state && s->ret[x->index].frame == frame))
            return x;
    }
}

/* Makes room for one more new return. */
static bool widen_fresh(llm_parser *p, const llm_stack *s) {
    if (2 * p->n_fresh_used < p->n_fresh)
        return true;
    const size_t n = p->n_fresh, more = n ? 2 * n : 64;
    const ggl_status st = llm_budget_take(&p->states.pool.use, more - n, sizeof *p->fresh);
    llm_new_return *old = p->fresh;
    llm_new_return *wide = st == GGL_OK ? ggl_calloc(more, sizeof *wide) : NULL;
    if (!wide) {
        fail(p, st == GGL_OK ? GGL_NOMEM : st);
        return false;
    }
    p->fresh = wide;
    p->n_fresh = more;
    for (size_t i = 0; i < n; i++)
        if (old[i].clock == p->clock) {
            const llm_return *r = &s->ret[old[i].index];
            *find_fresh(p, s, old[i].to, r->state, r->frame) = old[i];
        }
    ggl_free(old);
    return true;
}

/* --- sets under construction ------------------------------------------------------------------ */

static void count_work(llm_parser *p, size_t n) {
    llm_bx_count(&p->states.pool, n);
}

static void look_at(llm_parser *p, int32_t item) {
    if (!llm_bx_grow(&p->states.pool, &p->todo, &p->cap_todo, p->n_todo + 1, sizeof *p->todo))
        return;
    p->todo[p->n_todo++] = item;
}

/* Adds an item to the set on top. A frame has one item in a set: a second state joins the first. */
static void add_item(llm_parser *p, llm_stack *s, int32_t state, int32_t frame) {
    count_work(p, 1);
    if (state == LLM_STATE_DEAD)
        return;
    llm_frame *f = &s->frame[frame];
    if (f->seen == p->clock) {
        llm_states *t = &p->states;
        int32_t *old = &s->item[f->item].state;
        if (*old == state)
            return;
        const int32_t both = llm_bx_alt2(&t->pool, t->state[*old].expr, t->state[state].expr);
        const int32_t joined = llm_state_of(t, both);
        if (joined != *old && joined != LLM_STATE_DEAD) {
            *old = joined;
            look_at(p, f->item);
        }
        return;
    }
    if (!llm_bx_grow(&p->states.pool, &s->item, &s->cap_items, s->n_items + 1, sizeof *s->item))
        return;
    f->seen = p->clock;
    f->item = (int32_t)s->n_items;
    s->item[s->n_items++] = (llm_item){state, frame};
    look_at(p, f->item);
}

static void add_return(llm_parser *p, llm_stack *s, int32_t to, int32_t state, int32_t frame) {
    count_work(p, 1);
    if (!widen_fresh(p, s) ||
        !llm_bx_grow(&p->states.pool, &s->ret, &s->cap_returns, s->n_returns + 1, sizeof *s->ret))
        return;
    llm_new_return *x = find_fresh(p, s, to, state, frame);
    if (x->clock == p->clock)
        return;
    *x = (llm_new_return){p->clock, to, (int32_t)s->n_returns};
    p->n_fresh_used++;
    s->ret[s->n_returns] = (llm_return){state, frame, s->frame[to].returns};
    s->frame[to].returns = (int32_t)s->n_returns++;
}

/* The frame of a rule that is called in the set on top. A new one begins with the rule's body. */
static int32_t frame_of(llm_parser *p, llm_stack *s, int32_t rule) {
    if (p->born[rule] == p->clock)
        return p->frame[rule];
    if (!llm_bx_grow(&p->states.pool, &s->frame, &s->cap_frames, s->n_frames + 1, sizeof *s->frame))
        return -1;
    const int32_t id = (int32_t)s->n_frames++;
    s->frame[id] = (llm_frame){.rule = rule,
                               .returns = -1,
                               .born = p->clock,
                               .finish = LLM_BX_DEAD,
                               .best = -1,
                               .n_tokens = -1};
    p->born[rule] = p->clock;
    p->frame[rule] = id;
    add_item(p, s, llm_state_of(&p->states, p->states.pool.rule[rule].body), id);
    return id;
}

/* Follows a call in frame `from`. When nothing is left to do after it, its frame returns to where
 * `from` would: deep recursion at the end of a rule needs no more memory than a loop. Returns of
 * frames that are as new as the call's may not be known yet. */
static void follow_call(llm_parser *p, llm_stack *s, llm_bx_call call, int32_t from) {
    const int32_t rest = llm_state_of(&p->states, call.rest);
    const int32_t to = frame_of(p, s, call.rule);
    if (to < 0 || rest == LLM_STATE_DEAD)
        return;
    const bool last =
        call.rest == LLM_BX_EMPTY && from >= LLM_FRAME_FIRST && s->frame[from].born != p->clock;
    if (!last)
        add_return(p, s, to, rest, from);
    for (int32_t i = last ? s->frame[from].returns : -1; i >= 0; i = s->ret[i].next)
        add_return(p, s, to, s->ret[i].state, s->ret[i].frame);
}

/* A frame that was born in this set and may end here has the empty text; the caller's state accounts
 * for that. */
static void follow_end(llm_parser *p, llm_stack *s, int32_t frame, llm_item_set *set) {
    set->complete = set->complete || frame == LLM_FRAME_ROOT;
    set->exits = set->exits || frame == LLM_FRAME_OPEN;
    if (s->frame[frame].born == p->clock)
        return;
    for (int32_t i = s->frame[frame].returns; i >= 0; i = s->ret[i].next)
        add_item(p, s, s->ret[i].state, s->ret[i].frame);
}

/* Finds the shortest way to finish each new frame. It continues at one of its returns, which may be
 * to another new frame. */
static void find_finishes(llm_parser *p, llm_stack *s, size_t first) {
    for (bool changed = s->n_frames > first; changed && p->states.pool.status == GGL_OK;) {
        changed = false;
        for (size_t k = first; k < s->n_frames; k++) {
            llm_frame *f = &s->frame[k];
            for (int32_t i = f->returns; i >= 0; i = s->ret[i].next) {
                count_work(p, 1);
                const int32_t len = llm_bx_add_len(p->states.state[s->ret[i].state].min_len,
                                                   s->frame[s->ret[i].frame].finish);
                if (len < f->finish) {
                    f->finish = len;
                    f->best = i;
                    changed = true;
                }
            }
        }
    }
}

/* Looks at all items until there is nothing new. */
static void close_set(llm_parser *p, llm_stack *s, llm_item_set *set) {
    enum { NODE_WORK = 8 }; /* to make a node of an expression takes as long as some items */
    const size_t first_frame = s->n_frames;
    size_t n_nodes = p->states.pool.n_nodes;
    while (p->n_todo > 0 && p->states.pool.status == GGL_OK) {
        const llm_item item = s->item[p->todo[--p->n_todo]];
        const llm_state *x = &p->states.state[item.state];
        if (x->simple)
            continue;
        if (x->nullable)
            follow_end(p, s, item.frame, set);
        const int32_t n = llm_state_calls(&p->states, item.state);
        for (int32_t i = 0; i < n; i++)
            follow_call(p, s, p->states.call[p->states.state[item.state].call + i], item.frame);
        count_work(p, NODE_WORK * (p->states.pool.n_nodes - n_nodes));
        n_nodes = p->states.pool.n_nodes;
    }
    p->n_todo = 0;
    find_finishes(p, s, first_frame);
    set->n = p->states.pool.status == GGL_OK ? s->n_items - set->first : 0;
}

static llm_item_set begin_set(llm_parser *p, const llm_stack *s) {
    p->clock++;
    p->n_fresh_used = 0;
    return (llm_item_set){.first = s->n_items};
}

llm_item_set llm_set_of(llm_parser *p, llm_stack *s, llm_item item) {
    llm_item_set set = begin_set(p, s);
    add_item(p, s, item.state, item.frame);
    close_set(p, s, &set);
    return set;
}

llm_item_set llm_set_of_item(llm_parser *p, llm_stack *s, llm_item item) {
    llm_item_set set = begin_set(p, s);
    add_item(p, s, item.state, item.frame);
    p->n_todo = 0;
    set.n = s->n_items - set.first;
    return set;
}

llm_item_set llm_set_of_returns(llm_parser *p, llm_stack *s, int32_t frame) {
    llm_item_set set = begin_set(p, s);
    for (int32_t i = s->frame[frame].returns; i >= 0; i = s->ret[i].next)
        add_item(p, s, s->ret[i].state, s->ret[i].frame);
    close_set(p, s, &set);
    return set;
}

llm_item_set llm_set_step(llm_parser *p, llm_stack *s, llm_item_set from, unsigned byte) {
    llm_item_set set = begin_set(p, s);
    for (size_t i = from.first; i < from.first + from.n; i++)
        add_item(p, s, llm_state_next(&p->states, s->item[i].state, byte), s->item[i].frame);
    close_set(p, s, &set);
    return set;
}
