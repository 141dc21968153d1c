#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge_impl.h"

/* --- the bounds ------------------------------------------------------------------------------- */

number rounded(double v, double e, double ulps) {
    if (isnan(e) || fabs(v) > 1e30)
        return (number){v, INFINITY, 0};
    if (e == 0 && v == (double)(float)v && ulps <= 1)
        return (number){v, 0, 0}; /* a single operation whose result needs no rounding */
    return (number){v, e + ulps * UNIT * (fabs(v) + e) + TINY, 0};
}

bool known(number x) {
    return isfinite(x.e);
}

number unknown(void) {
    return (number){0, INFINITY, 0};
}

const number *element(const judge *j, int i, int a, int b, int c) {
    const r_node *t = &j->p->node[i];
    int at = (a % t->ne[0]) + t->ne[0] * ((b % t->ne[1]) + t->ne[1] * (c % t->ne[2]));
    return &j->value[i][at];
}

/* --- what the leaves are ---------------------------------------------------------------------- */

static void input(judge *j, int i, const r_token *token) {
    const r_node *t = &j->p->node[i];
    for (int e = 0; e < r_count(t); e++)
        j->value[i][e] = (number){
            t->position ? token->pos : r_input_value(t, t->batched ? token->salt : j->n_changes, e),
            0, 0};
}

/* Weights and constants, once. Constants are doubles that a backend may round to f32 at their first
 * use. */
static void constants(judge *j) {
    for (int i = 0; i < j->p->n; i++) {
        const r_node *t = &j->p->node[i];
        int n = r_count(t);
        if (t->op == R_CONST)
            for (int e = 0; e < n; e++)
                j->value[i][e] = rounded(r_const_value(t, e), 0, 1);
        if (t->op != R_WEIGHT)
            continue;
        double *v = calloc((size_t)n, sizeof *v);
        char *bytes = calloc((size_t)n, 4);
        if (v && bytes)
            w_make(t->type, t->salt, t->spread, n, bytes, v);
        for (int e = 0; e < n; e++) {
            double off = w_types[t->type].has_min ? 4 * UNIT * t->spread : 0;
            j->value[i][e] = v ? (number){v[e], off, 0} : unknown();
        }
        free(v);
        free(bytes);
    }
}

/* --- a token ---------------------------------------------------------------------------------- */

static void compute(judge *j, int i, const r_token *token) {
    const r_node *t = &j->p->node[i];
    int n = r_count(t);
    switch (t->op) {
    case R_INPUT:
        input(j, i, token);
        return;
    case R_PARAM:
    case R_CALL: /* of another's value, under another name */
        memcpy(j->value[i], j->value[t->src[0]], (size_t)n * sizeof(number));
        return;
    case R_BEGIN:
    case R_WEIGHT:
    case R_CONST:
        return;
    case R_CACHE:
        judge_cache(j, i, token);
        return;
    case R_CHOOSE_ROWS:
        judge_choose_rows(j, i, token);
        return;
    case R_ATTEND:
        judge_attend(j, i, token);
        return;
    case R_STATE:
        memcpy(j->value[i], judge_state(j, i, token->slot), (size_t)n * sizeof(number));
        return;
    case R_KEEP:
        for (int e = 0, m = r_count(&j->p->node[t->src[0]]); e < m; e++) {
            number x = j->value[t->src[1]][e];
            judge_state(j, t->src[0], token->slot)[e] = rounded(x.v, x.e, 1);
        }
        return;
    default:
        judge_operator(j, i, token);
    }
}

static void act(judge *j, const r_action *a) {
    for (int i = 0; i < j->p->n; i++) {
        kept *k = &j->keeps[i];
        size_t size = (size_t)k->size;
        bool states = j->p->node[i].op == R_STATE;
        if (a->kind == R_CHANGE || a->kind == R_CUT || size == 0)
            continue;
        number *slot = k->slot + (size_t)a->slot * size;
        if (a->kind == R_CLEAR && states)
            memset(slot, 0, size * sizeof *slot);
        else if (a->kind == R_COPY)
            memcpy(slot, k->slot + (size_t)a->other * size, size * sizeof *slot);
        else if (a->kind == R_SAVE)
            memcpy(k->saved + (size_t)a->other * size, slot, size * sizeof *slot);
        else if (a->kind == R_RESTORE || (a->kind == R_RESTORE_STATES && states))
            memcpy(slot, k->saved + (size_t)a->other * size, size * sizeof *slot);
    }
    j->n_changes += a->kind == R_CHANGE;
}

/* True if the node's elements are copies. The reference rounds values that other segments read to f32, and others not: so a copy and what
 * it is of may differ by that. */
static bool is_copy(const r_node *t) {
    return t->op == R_CONCAT || t->op == R_REPEAT || t->op == R_TRANSPOSE || t->op == R_PICK ||
           t->op == R_ROPE_HALF || t->op == R_ROPE_PAIR || t->op == R_AMAX || t->op == R_CALL;
}

/* What no other number is known to be equal to has an identity of its own. */
static void identify(judge *j, int i, uint64_t salt) {
    for (int e = 0; e < r_count(&j->p->node[i]); e++) {
        number *x = &j->value[i][e];
        if (x->id == 0 && x->e > 0)
            x->id = r_mix(salt, (uint64_t)i << 32 | (uint64_t)e);
        else if (x->e > 0 && j->given != JUDGE_CPU && is_copy(&j->p->node[i]))
            x->id = r_mix(x->id, (uint64_t)i);
    }
}

void judge_token(judge *j, int token) {
    const r_program *p = j->p;
    for (int i = 0; i < p->n_actions; i++)
        if (p->action[i].before == token)
            act(j, &p->action[i]);
    for (int i = 0; i < p->n; i++) {
        j->kind = j->folded[i] ? JUDGE_EXACT : j->given;
        compute(j, i, &p->token[token]);
        identify(j, i, p->token[token].salt);
    }
}

const number *judge_value(const judge *j, int i) {
    return j->value[i];
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Numbers that a slot keeps of node i: a state, or the rows of a cache, by position. */
static int kept_size(const r_program *p, int i) {
    const r_node *t = &p->node[i];
    if (t->op == R_STATE)
        return r_count(t);
    return t->op == R_CACHE
               ? p->n_pos * (r_count(&p->node[t->src[0]]) + r_count(&p->node[t->src[1]]))
               : 0;
}

/* Whether all that node k reads from before node `begin` is free; leaves do not count. */
static bool reads_free(const r_program *p, int k, int begin, const bool *free) {
    const r_node *t = &p->node[k];
    for (int i = 0; i < t->n_src; i++) {
        const int x = t->src[i];
        if (x >= 0 && x < begin && !r_is_leaf(&p->node[x]) && !free[x])
            return false;
    }
    return true;
}

/* Whether node i, and all that it needs, depends on no input and no state; so far as free[] knows
 * what is before it. A body is free as a whole. Nodes of it that are not needed never run, but what
 * they read from outside is a source of the call. A leaf counts only where it is read. */
static bool is_free(const r_program *p, int i, const bool *needed, const bool *free) {
    const r_node *t = &p->node[i];
    if (t->op == R_INPUT || t->op == R_STATE || t->op == R_CACHE || t->op == R_ATTEND ||
        t->op == R_CHOOSE_ROWS || t->batched)
        return false;
    for (int k = 0; k < t->n_src; k++)
        if (t->src[k] >= 0 && !free[t->src[k]])
            return false;
    for (int k = t->op == R_CALL ? t->begin : i; k < i; k++) {
        const bool runs = needed[k] && !r_is_leaf(&p->node[k]);
        if ((runs && !free[k]) || !reads_free(p, k, t->begin, free))
            return false;
    }
    return true;
}

/* Nodes that stand in no body, and the bodies of such calls. */
static void find_folded(judge *j) {
    const r_program *p = j->p;
    bool free[R_MOST_NODES] = {false}, needed[R_MOST_NODES];
    r_needed(p, needed);
    for (int i = 0; i < p->n; i++) {
        free[i] = is_free(p, i, needed, free);
        j->folded[i] = free[i] && p->node[i].body < 0;
        for (int k = p->node[i].op == R_CALL && j->folded[i] ? p->node[i].begin : i; k < i; k++)
            j->folded[k] = true;
    }
}

judge *judge_new(const r_program *p, judge_kind kind, bool folded) {
    judge *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->p = p;
    j->kind = j->given = kind;
    if (folded)
        find_folded(j);
    for (int i = 0; i < p->n; i++) {
        int size = j->keeps[i].size = kept_size(p, i);
        j->value[i] = calloc((size_t)r_count(&p->node[i]), sizeof(number));
        j->keeps[i].slot = calloc((size_t)size * (size_t)p->n_slots + 1, sizeof(number));
        j->keeps[i].saved = calloc((size_t)size * R_MOST_SAVES + 1, sizeof(number));
        if (!j->value[i] || !j->keeps[i].slot || !j->keeps[i].saved) {
            judge_free(j);
            return NULL;
        }
    }
    constants(j);
    return j;
}

void judge_free(judge *j) {
    for (int i = 0; j && i < j->p->n; i++) {
        free(j->value[i]);
        free(j->keeps[i].slot);
        free(j->keeps[i].saved);
    }
    free(j);
}
