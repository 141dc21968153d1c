#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen_impl.h"

unsigned r_avoid;

static const char *const avoidable[] = {"unbatched-pick", "nested-state", "unbatched-rows",
                                        "picked-values",  "shared-pick",  "pick-of-view",
                                        "const-view",     "pick-of-four", "unfinished"};

const char *r_avoidable(int k) {
    return k < (int)(sizeof avoidable / sizeof *avoidable) ? avoidable[k] : NULL;
}

bool avoids(int what) {
    return r_avoid >> what & 1;
}

/* --- choices ---------------------------------------------------------------------------------- */

int r_choose(r_source *s, int n) {
    if (n <= 1)
        return 0;
    if (s->bytes) {
        if (s->n_bytes == 0)
            return 0;
        unsigned x = *s->bytes++;
        if (--s->n_bytes > 0 && n > 256) {
            x = x << 8 | *s->bytes++;
            s->n_bytes--;
        }
        return (int)(x % (unsigned)n);
    }
    s->state = r_mix(s->state, 1);
    return (int)((s->state >> 16) % (uint64_t)n);
}

int choose(gen *g, int n) {
    return r_choose(g->s, n);
}

bool chance(gen *g, int one_in) {
    return choose(g, one_in) == one_in - 1;
}

/* --- nodes ------------------------------------------------------------------------------------ */

bool has_room(const gen *g, int n) {
    return g->p->n + n <= R_MOST_NODES;
}

const r_node *node(const gen *g, int i) {
    return &g->p->node[i];
}

void set_shape(gen *g, int i, int n_dims, const int *ne) {
    r_node *t = &g->p->node[i];
    t->n_dims = n_dims;
    for (int d = 0; d < 4; d++)
        t->ne[d] = d < n_dims ? ne[d] : 1;
}

void set_magnitude(gen *g, int i, double m) {
    g->p->node[i].magnitude = m;
}

int add(gen *g, r_op op, int n_src, const int *src, int n_num, const double *num) {
    r_program *p = g->p;
    if (p->n == R_MOST_NODES) { /* has_room was not asked, or for too little */
        fprintf(stderr, "seed %llu: more than %d nodes\n", (unsigned long long)p->seed,
                R_MOST_NODES);
        abort();
    }
    int i = p->n++;
    r_node *t = &p->node[i];
    *t = (r_node){.op = op,
                  .n_src = n_src,
                  .n_num = n_num,
                  .body = g->body,
                  .group = g->group,
                  .ne = {1, 1, 1, 1}};
    t->salt = r_mix(p->seed, (uint64_t)i);
    for (int k = 0; k < n_num; k++)
        t->num[k] = num[k];
    for (int k = 0; k < n_src; k++) {
        t->src[k] = src[k];
        if (src[k] < 0)
            continue;
        const r_node *x = &p->node[src[k]];
        t->batched = t->batched || x->batched;
        t->magnitude = fmax(t->magnitude, x->magnitude);
    }
    if (n_src > 0)
        set_shape(g, i, p->node[src[0]].n_dims, p->node[src[0]].ne);
    return i;
}

static int leaf(gen *g, r_op op, int n_dims, const int *ne, double spread) {
    int i = add(g, op, 0, NULL, 0, NULL);
    set_shape(g, i, n_dims, ne);
    g->p->node[i].body = -1; /* leaves belong to no body */
    g->p->node[i].spread = g->p->node[i].magnitude = spread;
    return i;
}

int input(gen *g, int n_dims, const int *ne, bool batched) {
    int i = leaf(g, R_INPUT, n_dims, ne, 1);
    g->p->node[i].batched = batched;
    return i;
}

int index_input(gen *g, int k, int limit, bool batched) {
    int i = input(g, k > 0, &k, batched);
    g->p->node[i].integer = true;
    g->p->node[i].limit = limit;
    g->p->node[i].magnitude = limit;
    return i;
}

int weight(gen *g, int n_dims, const int *ne, int type, double spread) {
    int i = leaf(g, R_WEIGHT, n_dims, ne, spread);
    g->p->node[i].type = type;
    return i;
}

int constant(gen *g, int n_dims, const int *ne, double spread) {
    return leaf(g, R_CONST, n_dims, ne, spread);
}

int number_of(gen *g, double v) {
    int i = leaf(g, R_CONST, 0, NULL, 0);
    r_node *t = &g->p->node[i];
    t->num[0] = v;
    t->n_num = 1;
    t->magnitude = fabs(v);
    return i;
}

/* --- what is there ---------------------------------------------------------------------------- */

bool visible(const gen *g, int i) {
    const r_node *t = node(g, i);
    if (t->op == R_BEGIN || t->op == R_CACHE || t->op == R_KEEP)
        return false;
    for (int b = g->body;; b = node(g, b)->body) {
        if (t->body == b)
            return true;
        if (b < 0)
            return false;
    }
}

int find(gen *g, fits_fn *fits, int a, int b) {
    int at[R_MOST_NODES], n = 0;
    for (int i = 0; i < g->p->n; i++)
        if (visible(g, i) && fits(g, i, a, b))
            at[n++] = i;
    if (n == 0)
        return -1;
    int x = choose(g, n), y = choose(g, n);
    return at[chance(g, 3) ? x : x > y ? x : y];
}

bool is_float(const gen *g, int i, int a, int b) {
    const r_node *t = node(g, i);
    int type;
    if (avoids(AVOID_PICKED_VALUES) && t->op == R_PICK && t->n_dims > 1 &&
        r_of_weight(g->p, i, &type) && type != W_F32)
        return false;
    if (avoids(AVOID_SHARED_PICK) && t->op == R_PICK && node(g, t->src[0])->n_dims > 2 &&
        !node(g, t->src[0])->batched)
        return false;
    return !t->integer && t->op != R_WEIGHT && t->n_dims >= a && t->n_dims <= b &&
           r_count(t) <= MOST_VALUE;
}

static bool is_vector(const gen *g, int i, int n, int unused) {
    (void)unused;
    return is_float(g, i, 1, 1) && (n == 0 || node(g, i)->ne[0] == n);
}

int any_row(gen *g) {
    int x = find(g, is_float, 1, 3);
    return x >= 0 ? x : input(g, 1, (const int[]){ONE_OF(g, 4, 6, 8, 32, 64)}, true);
}

int any_float(gen *g) {
    int x = find(g, is_float, 0, 3);
    return x >= 0 ? x : any_row(g);
}

int any_vector(gen *g, int n) {
    int x = find(g, is_vector, n, 0);
    if (x >= 0 && (n == 0 || !chance(g, 8)))
        return x;
    x = n == 0 ? find(g, is_float, 2, 3) : -1;
    if (x >= 0 && r_count(node(g, x)) <= 256)
        return reshape(g, x, 1, (const int[]){r_count(node(g, x))});
    return input(g, 1, (const int[]){n ? n : ONE_OF(g, 4, 6, 8, 32, 64)}, !chance(g, 6));
}

/* --- a program -------------------------------------------------------------------------------- */

static bool can_be_output(const gen *g, int i) {
    const r_node *t = node(g, i);
    int type;
    if (r_of_weight(g->p, i, &type) &&
        type != W_F32) /* they have the weight's type, outputs are f32 */
        return false;
    return !r_is_leaf(t) && t->body < 0 && !t->integer && t->batched && t->op != R_CACHE &&
           t->op != R_BEGIN;
}

/* Outputs the values that nothing reads, as far as there is room, so that little is computed in
 * vain. */
static void choose_outputs(gen *g) {
    r_program *p = g->p;
    bool read[R_MOST_NODES] = {false};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->node[i].n_src; k++)
            if (p->node[i].src[k] >= 0)
                read[p->node[i].src[k]] = true;
    for (int i = p->n; i-- > 0 && p->n_outputs < R_MOST_OUTPUTS - 1;)
        if (can_be_output(g, i) && !read[i])
            p->output[p->n_outputs++] = i;
    if (p->n_outputs == 0) {
        int x = unary(g, R_TANH, input(g, 1, (const int[]){4}, true));
        p->output[p->n_outputs++] = x;
    }
    int more = choose(g, p->n); /* one that others read, or the same again */
    if (can_be_output(g, more))
        p->output[p->n_outputs++] = more;
}

static void choose_sizes(gen *g) {
    static const int kinds[] = {W_F32, W_F32, W_F32, W_F16, W_BF16, W_Q8_0, W_Q4_0};
    r_program *p = g->p;
    p->type_k = kinds[choose(g, 7)];
    p->type_v = chance(g, 2) ? p->type_k : kinds[choose(g, 7)];
    p->n_pos = 200;
    p->n_batch = 1 + choose(g, 12);
    p->n_slots = 1 + choose(g, R_MOST_SLOTS);
}

void r_generate(r_program *p, uint64_t seed, r_source *s) {
    *p = (r_program){.seed = seed};
    gen g = {.p = p, .s = s, .body = -1, .group = -1};
    choose_sizes(&g);
    int n = 5 + choose(&g, 26);
    for (int k = 1 + choose(&g, 2); k > 0; k--)
        any_vector(&g, ONE_OF(&g, 4, 6, 8, 32, 32, 64));
    for (int made = 0, tries = 0; made < n && tries < 100 && has_room(&g, 400); tries++) {
        if (chance(&g, 5))
            g.group = choose(&g, 4) - 1;
        made += make_any(&g, true) >= 0;
    }
    choose_outputs(&g);
    make_script(&g);
}
