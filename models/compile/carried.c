/* The rows that layers hand on: a name that has a row of each token before a loop over layers, and another one after a turn. Models that guess read
 * what enters some layers (params.tap), and control vectors are added to what leaves them (steer.c). */
#include "compile.h"

/* --- the rows of names -------------------------------------------------------------------------- */

/* Returns the row or rows that the slot has of each token, or of each row of the stage that runs; NULL: none. */
static ggl_tensor *state_of(const arch_eval *ev, const arch_slot *s) {
    ggl_tensor *t = s->bound && !s->in_layer && s->v.kind == VAL_TENSOR ? s->v.t : NULL;
    if (!t || t->n_dims < 1 || t->n_dims > 2)
        return NULL;
    const int rows = llm_arch_rows(ev, t);
    return rows == ROWS_EACH || (ev->stage && rows == ROWS_STAGE) ? t : NULL;
}

/* Copies what names have now, by slot. */
static void copy_states(const arch_eval *ev, ggl_tensor **out) {
    for (int k = SLOT_FIRST_FREE; k < ev->arch->n_global; k++)
        out[k] = state_of(ev, &ev->global[k]);
}

/* Returns the slot of the only name that has another state of n_dims dimensions than before the first turn; -1: there is none, or, with *n > 1, more. */
static int find_changed(const arch_eval *ev, const arch_carried *x, int n_dims, int *n) {
    int found = -1;
    *n = 0;
    for (int k = SLOT_FIRST_FREE; k < x->n_global; k++) {
        const ggl_tensor *now = state_of(ev, &ev->global[k]), *before = x->state[k];
        if (!now || !before || now == before || now->n_dims != n_dims || before->n_dims != n_dims)
            continue;
        found = k;
        ++*n;
    }
    return *n == 1 ? found : -1;
}

/* Returns the slot of what layers hand on: one row, or, if no name has another one, several rows, as residual streams of hyper-connections have. */
static int find_carried(const arch_eval *ev, const arch_carried *x) {
    int n, found = find_changed(ev, x, 1, &n);
    return n == 0 ? find_changed(ev, x, 2, &n) : found;
}

/* --- a loop ------------------------------------------------------------------------------------- */

bool llm_arch_carried_begin(arch_eval *ev, arch_carried *x) {
    *x = (arch_carried){.n_taps = ev->params && !ev->stage ? ev->params->n_taps : 0,
                        .n_global = ev->arch->n_global,
                        .is_steered = llm_arch_steers(ev)};
    if (x->n_taps == 0 && !x->is_steered)
        return true;
    x->state = ggl_calloc((size_t)(1 + x->n_taps) * (size_t)x->n_global, sizeof(ggl_tensor *));
    return x->state || (llm_arch_nomem(ev), false);
}

void llm_arch_carried_enter(const arch_eval *ev, const arch_carried *x) {
    if (x->state && ev->layer == 0)
        copy_states(ev, x->state);
    for (int k = 0; k < x->n_taps; k++)
        if (ev->params->tap[k] == ev->layer)
            copy_states(ev, x->state + (1 + k) * x->n_global);
}

bool llm_arch_carried_leave(arch_eval *ev, arch_carried *x) {
    if (!x->is_steered)
        return true;
    const int found = find_carried(ev, x);
    x->n_turns = found >= 0 ? ev->layer + 1 : x->n_turns;
    return llm_arch_steer(ev, found >= 0 ? &ev->global[found] : NULL);
}

void llm_arch_carried_end(arch_eval *ev, arch_carried *x) {
    const int found = x->n_taps > 0 ? find_carried(ev, x) : -1;
    for (int k = 0; found >= 0 && k < x->n_taps; k++) {
        ggl_tensor *t = x->state[(1 + k) * x->n_global + found];
        t = t && t->n_dims == ev->global[found].v.t->n_dims ? t : NULL;
        ev->tapped_twice |= t && ev->tapped[k];
        ev->tapped[k] = t ? t : ev->tapped[k];
    }
    if (x->n_taps > 0 && ev->layer >= ev->n_layer)
        ev->left = found >= 0 ? ev->global[found].v.t : NULL;
    if (x->is_steered)
        llm_arch_steer_loop(ev, x->n_turns);
    llm_arch_carried_free(x);
}

void llm_arch_carried_free(arch_carried *x) {
    ggl_free(x->state);
    x->state = NULL;
}
