#include "shrink.h"

#include <stdlib.h>
#include <string.h>

#include "gen.h"

typedef struct shrinker {
    r_program *p, *next; /* the least so far; what is tried */
    r_result *result;
    int tries;
} shrinker;

enum { MOST_TRIES = 4000 };

/* Removes the nodes that are not kept, and adjusts indices. */
static void compact(r_program *p, const bool *keep) {
    int to[R_MOST_NODES] = {0}, n = 0;
    for (int i = 0; i < p->n; i++)
        to[i] = keep[i] ? n++ : -1;
    for (int i = 0; i < p->n; i++) {
        if (!keep[i])
            continue;
        r_node t = p->node[i];
        for (int k = 0; k < t.n_src; k++)
            t.src[k] = t.src[k] >= 0 ? to[t.src[k]] : -1;
        t.body = t.body >= 0 ? to[t.body] : -1;
        t.begin = t.op == R_CALL ? to[t.begin] : 0;
        p->node[to[i]] = t;
    }
    for (int k = 0; k < p->n_outputs; k++)
        p->output[k] = to[p->output[k]];
    p->n = n;
}

/* Removes the nodes that no output needs. */
static bool sweep(r_program *p) {
    bool needed[R_MOST_NODES];
    int n = p->n;
    r_needed(p, needed);
    compact(p, needed);
    return p->n < n;
}

/* Node i goes, if nobody reads it; a call with its body. */
static bool drop(r_program *p, int i) {
    bool keep[R_MOST_NODES];
    int first = p->node[i].op == R_CALL ? p->node[i].begin : i;
    if (p->node[i].op == R_PARAM || p->node[i].op == R_BEGIN)
        return false;
    for (int k = 0; k < p->n; k++)
        keep[k] = k < first || k > i || (r_is_leaf(&p->node[k]) && k < i);
    for (int k = 0; k < p->n; k++)
        for (int e = 0; e < p->node[k].n_src && keep[k]; e++)
            if (p->node[k].src[e] >= 0 && !keep[p->node[k].src[e]])
                return false;
    for (int k = 0; k < p->n_outputs; k++)
        if (!keep[p->output[k]])
            return false;
    compact(p, keep);
    return true;
}

/* Whether what stands in `next` is still wrong; then it is the least so far. */
static bool still(shrinker *s) {
    r_result r;
    if (++s->tries > MOST_TRIES)
        return false;
    for (int k = 0; k < s->next->n_outputs; k++)
        if (s->next->node[s->next->output[k]].op < R_ADD)
            return false; /* leaves are not outputs */
    if (s->next->n_tokens == 0 || s->next->n_outputs == 0 || !r_is_legal(s->next))
        return false;
    if (r_check_apart(s->next, r_variants[s->result->variant].name, &r) ||
        r.variant != s->result->variant || r.fault != s->result->fault ||
        strstr(r.text, "library makes"))
        return false;
    *s->p = *s->next;
    *s->result = r;
    return true;
}

static r_program *fresh(shrinker *s) {
    *s->next = *s->p;
    return s->next;
}

static bool fewer_outputs(shrinker *s) {
    bool less = false;
    for (int k = s->p->n_outputs; k-- > 0 && s->p->n_outputs > 1;) {
        r_program *p = fresh(s);
        memmove(p->output + k, p->output + k + 1, (size_t)(--p->n_outputs - k) * sizeof *p->output);
        less |= still(s);
    }
    return less;
}

/* Within a composite that backends know by name nothing may change: its text is what the name
 * means. */
static bool is_fixed(const r_program *p, int i) {
    bool fixed = false;
    for (int b = p->node[i].body; b >= 0; b = p->node[b].body)
        for (int c = b + 1; c < p->n; c++)
            fixed = fixed || (p->node[c].op == R_CALL && p->node[c].begin == b && p->node[c].call);
    return fixed;
}

/* A node becomes an input of its shape. */
static bool as_input(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (is_fixed(p, i) || t->op < R_ADD || t->op == R_CACHE || t->op == R_KEEP ||
        t->op == R_BEGIN || t->op == R_STATE)
        return false;
    t->op = R_INPUT;
    t->n_src = t->n_num = 0;
    t->spread = t->integer ? 0 : 1;
    t->call = NULL;
    t->body = -1;
    return true;
}

static bool fewer_nodes(shrinker *s) {
    bool less = sweep(fresh(s)) && still(s);
    for (int i = s->p->n; i-- > 0;) {
        if (i < s->p->n)
            less |= drop(fresh(s), i) && still(s);
        if (i < s->p->n && as_input(fresh(s), i))
            less |= still(s);
    }
    return less;
}

/* Readers of node i read one of its sources instead. */
static bool bypass(r_program *p, int i, int k) {
    const r_node *t = &p->node[i];
    if (is_fixed(p, i) || t->op < R_ADD || t->op == R_BEGIN || t->op == R_CALL || k >= t->n_src ||
        t->src[k] < 0)
        return false;
    const r_node *x = &p->node[t->src[k]];
    if (x->n_dims != t->n_dims || memcmp(x->ne, t->ne, sizeof x->ne) != 0 ||
        x->batched != t->batched || x->integer != t->integer)
        return false;
    for (int j = i + 1; j < p->n; j++)
        for (int e = 0; e < p->node[j].n_src; e++)
            if (p->node[j].src[e] == i)
                p->node[j].src[e] = t->src[k];
    for (int j = 0; j < p->n_outputs; j++)
        p->output[j] = p->output[j] == i ? t->src[k] : p->output[j];
    return true;
}

/* The nodes of a body stand where its call did. */
static bool unfold(r_program *p, int call) {
    if (p->node[call].op != R_CALL)
        return false;
    int begin = p->node[call].begin, outer = p->node[begin].body, to[R_MOST_NODES] = {0};
    for (int i = 0; i < p->n; i++)
        if (p->node[i].body == begin && p->node[i].op == R_STATE)
            return false;
    for (int i = 0; i < p->n; i++)
        to[i] = i;
    for (int i = begin; i < p->n; i++) {
        r_node *t = &p->node[i];
        for (int k = 0; k < t->n_src; k++)
            t->src[k] = t->src[k] >= 0 ? to[t->src[k]] : -1;
        if ((t->op == R_PARAM && t->body == begin) || i == call)
            to[i] = t->src[0];
        t->body = t->body == begin ? outer : t->body;
    }
    for (int k = 0; k < p->n_outputs; k++)
        p->output[k] = to[p->output[k]];
    p->node[begin].n_src = 0;
    return true;
}

static bool simpler_nodes(shrinker *s) {
    bool less = false;
    for (int i = s->p->n; i-- > 0;) {
        if (i < s->p->n && s->p->node[i].call) {
            fresh(s)->node[i].call = NULL;
            less |= still(s);
        }
        if (i < s->p->n && unfold(fresh(s), i))
            less |= still(s);
        for (int k = 0; k < R_MOST_SRC && i < s->p->n; k++)
            if (bypass(fresh(s), i, k))
                less |= still(s);
        if (i < s->p->n && s->p->node[i].op == R_ATTEND)
            for (int k = 2; k < 4; k++) {
                r_program *p = fresh(s);
                if (p->node[i].src[k] >= 0) {
                    p->node[i].src[k] = -1;
                    less |= still(s);
                }
            }
        if (i < s->p->n && s->p->node[i].group >= 0) {
            fresh(s)->node[i].group = -1;
            less |= still(s);
        }
    }
    return less;
}

static void drop_token(r_program *p, int k) {
    memmove(p->token + k, p->token + k + 1, (size_t)(--p->n_tokens - k) * sizeof *p->token);
    for (int i = 0; i < p->n_actions; i++)
        p->action[i].before -= p->action[i].before > k;
}

static bool shorter_script(shrinker *s) {
    bool less = false;
    for (int n = s->p->n_tokens / 2; n > 0; n /= 2) { /* from the end */
        r_program *p = fresh(s);
        p->n_tokens -= n < p->n_tokens ? n : 0;
        while (p->n_actions > 0 && p->action[p->n_actions - 1].before >= p->n_tokens)
            p->n_actions--;
        less |= p->n_tokens < s->p->n_tokens && still(s);
    }
    for (int k = s->p->n_actions; k-- > 0;) {
        r_program *p = fresh(s);
        if (k >= p->n_actions)
            continue;
        memmove(p->action + k, p->action + k + 1, (size_t)(--p->n_actions - k) * sizeof *p->action);
        less |= still(s);
    }
    for (int k = s->p->n_tokens; k-- > 0;)
        if (k < s->p->n_tokens) {
            drop_token(fresh(s), k);
            less |= still(s);
        }
    for (int n = 1; n < s->p->n_batch; n++) {
        fresh(s)->n_batch = n;
        less |= still(s);
    }
    return less;
}

void r_shrink(r_program *p, r_result *result) {
    shrinker s = {p, malloc(sizeof *p), result, 0};
    bool less = s.next != NULL;
    while (less && s.tries < MOST_TRIES) {
        less = fewer_outputs(&s);
        less |= shorter_script(&s);
        less |= fewer_nodes(&s);
        less |= simpler_nodes(&s);
    }
    free(s.next);
}
