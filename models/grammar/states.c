#include "states.h"

#include <string.h>

#include "ggl/alloc.h"

bool llm_states_init(llm_states *s, const llm_bx_pool *pool) {
    if (!llm_bx_pool_copy(&s->pool, pool) ||
        !llm_bx_grow(&s->pool, &s->state, &s->cap_states, 64, sizeof *s->state))
        return false;
    s->state[LLM_STATE_DEAD] = (llm_state){.expr = LLM_BX_NONE, .row = -1, .simple = true};
    s->n_states = 2;
    return true;
}

void llm_states_fini(llm_states *s) {
    llm_bx_pool_fini(&s->pool);
    ggl_free(s->state);
    ggl_free(s->of_expr);
    ggl_free(s->row);
    ggl_free(s->call);
    *s = (llm_states){0};
}

void llm_states_trim(llm_states *s) {
    enum { MOST_ROWS = 1 << 16 }; /* of 1 KiB */
    if (s->n_rows <= MOST_ROWS)
        return;
    for (size_t i = 0; i < s->n_states; i++)
        s->state[i].row = -1;
    s->n_rows = 0;
}

static int32_t failed(llm_states *s, ggl_status st) {
    if (s->pool.status == GGL_OK)
        s->pool.status = st;
    return LLM_STATE_DEAD;
}

int32_t llm_state_of(llm_states *s, int32_t expr) {
    if ((size_t)expr < s->cap_of_expr && s->of_expr[expr])
        return s->of_expr[expr];
    if (s->pool.status != GGL_OK || llm_bx_min_len(&s->pool, expr) == LLM_BX_DEAD)
        return LLM_STATE_DEAD;
    if (!llm_bx_grow(&s->pool, &s->of_expr, &s->cap_of_expr, s->pool.n_nodes, sizeof *s->of_expr) ||
        !llm_bx_grow(&s->pool, &s->state, &s->cap_states, s->n_states + 1, sizeof *s->state))
        return failed(s, GGL_NOMEM);
    const bool nullable = s->pool.node[expr].nullable;
    const llm_state x = {.expr = expr,
                         .min_len = s->pool.node[expr].min_len,
                         .row = -1,
                         .call = -1,
                         .n_tokens = -1,
                         .nullable = nullable,
                         .simple = !nullable && !s->pool.node[expr].calls_first};
    s->state[s->n_states] = x;
    return s->of_expr[expr] = (int32_t)s->n_states++;
}

int32_t llm_state_find_next(llm_states *s, int32_t state, unsigned b) {
    if (state == LLM_STATE_DEAD)
        return LLM_STATE_DEAD;
    if (s->state[state].row < 0) {
        if (!llm_bx_grow(&s->pool, &s->row, &s->cap_rows, (s->n_rows + 1) * 256, sizeof *s->row))
            return failed(s, GGL_NOMEM);
        memset(s->row + s->n_rows * 256, 0, 256 * sizeof *s->row);
        s->state[state].row = (int32_t)s->n_rows++;
    }
    llm_byte_span span = {0, 255};
    const int32_t expr = llm_bx_derive(&s->pool, s->state[state].expr, b, &span);
    const int32_t next = llm_state_of(s, expr);
    int32_t *row = s->row + (size_t)s->state[state].row * 256;
    for (unsigned k = span.first; k <= span.last && s->pool.status == GGL_OK; k++)
        row[k] = next;
    return next;
}

int32_t llm_state_calls(llm_states *s, int32_t state) {
    const size_t first = s->n_calls;
    if (s->state[state].call < 0) {
        if (!llm_bx_calls(&s->pool, s->state[state].expr, &s->call, &s->n_calls, &s->cap_calls)) {
            failed(s, GGL_NOMEM);
            return 0;
        }
        s->state[state].call = (int32_t)first;
        s->state[state].n_calls = (int32_t)(s->n_calls - first);
    }
    return s->state[state].n_calls;
}
