/* Frees frames that are no longer needed. */
#include "ggl/alloc.h"
#include "stack.h"

typedef struct collection {
    llm_stack *s;
    int32_t *to;   /* [n_frames] 1: it is needed; later its new number */
    int32_t *todo; /* needed frames whose returns are to be looked at */
    size_t n_todo;
} collection;

static void need(collection *c, int32_t frame) {
    if (c->to[frame])
        return;
    c->to[frame] = 1;
    c->todo[c->n_todo++] = frame;
}

/* Moves needed frames and their returns down. Frames keep their order, so that none is overwritten
 * before it has moved; returns go to a new array, because their lists have no order. */
static void move(collection *c, llm_return *ret) {
    llm_stack *s = c->s;
    size_t n = 0, n_returns = 0;
    for (size_t f = 0; f < s->n_frames; f++)
        if (c->to[f])
            c->to[f] = (int32_t)n++;
    for (size_t f = 0; f < s->n_frames; f++) {
        if (f >= LLM_FRAME_FIRST && !c->to[f])
            continue;
        llm_frame frame = s->frame[f];
        int32_t last = -1, best = -1;
        for (int32_t i = frame.returns; i >= 0; i = s->ret[i].next) {
            if (i == frame.best)
                best = (int32_t)n_returns;
            ret[n_returns] = (llm_return){s->ret[i].state, c->to[s->ret[i].frame], last};
            last = (int32_t)n_returns++;
        }
        frame.returns = last;
        frame.best = best;
        s->frame[c->to[f]] = frame;
    }
    for (size_t i = 0; i < s->n_items; i++)
        s->item[i].frame = c->to[s->item[i].frame];
    s->n_frames = n;
    s->n_returns = n_returns;
    ggl_free(s->ret);
    s->ret = ret;
}

bool llm_stack_collect(llm_stack *s) {
    collection c = {.s = s,
                    .to = ggl_calloc(s->n_frames, sizeof *c.to),
                    .todo = ggl_calloc(s->n_frames, sizeof *c.todo)};
    llm_return *ret = ggl_calloc(s->cap_returns + 1, sizeof *ret);
    const bool ok = c.to && c.todo && ret;
    if (ok) {
        need(&c, LLM_FRAME_ROOT);
        need(&c, LLM_FRAME_OPEN);
        for (size_t i = 0; i < s->n_items; i++)
            need(&c, s->item[i].frame);
        while (c.n_todo > 0)
            for (int32_t i = s->frame[c.todo[--c.n_todo]].returns; i >= 0; i = s->ret[i].next)
                need(&c, s->ret[i].frame);
        move(&c, ret);
    } else {
        ggl_free(ret);
    }
    ggl_free(c.to);
    ggl_free(c.todo);
    return ok;
}
