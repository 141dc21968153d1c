/* Products that are made for some rows of the batch alone: rows of pictures, say, take another matrix than tokens, by `where(is_row, linear(x, a), linear(x, b))`. If such a
 * condition is an input, it is known before the product runs, which is left out if no row is taken of it (op_linear.c). */
#include "compiler.h"
#include "ggl/alloc.h"
#include "ggl/internal/alloc.h"

/* By tensor id of the segment's graph. */
typedef struct uses {
    int *n_readers;
    cpu_step **by; /* the step that computes it; NULL: none, or one within another node */
    int n;
} uses;

/* True if the step computes a node of the segment, and not one within another node, whose inputs may be values that are not there yet. */
static bool is_own(const uses *u, const cpu_step *s) {
    return s->node->id < u->n && u->by[s->node->id] == s;
}

/* Counts the readers of all values of the segment, and finds their steps. False: out of memory. */
static bool count_uses(uses *u, cpu_compiler *c) {
    const ggl_segment *s = c->s;
    for (int i = 0; i < s->n_node; i++)
        u->n = s->node[i]->id >= u->n ? s->node[i]->id + 1 : u->n;
    u->n_readers = ggl_calloc((size_t)u->n + 1, sizeof *u->n_readers);
    u->by = ggl_calloc((size_t)u->n + 1, sizeof *u->by);
    if (!u->n_readers || !u->by)
        return false;
    for (int i = 0; i < s->n_node; i++)
        for (int k = 0; k < s->node[i]->n_src; k++)
            if (s->node[i]->src[k] && s->node[i]->src[k]->id < u->n)
                u->n_readers[s->node[i]->src[k]->id]++;
    const ggl_tensor **own = ggl_calloc((size_t)u->n + 1, sizeof *own);
    for (int i = 0; own && i < s->n_node; i++)
        own[s->node[i]->id] = s->node[i];
    for (size_t i = 0; own && i < c->n_step; i++) {
        cpu_step *x = &c->step[i];
        if (x->kind == GGL_STEP_NODE && x->form == 0 && x->node->id < u->n &&
            own[x->node->id] == x->node)
            u->by[x->node->id] = x;
    }
    const bool ok = own != NULL;
    ggl_free(own);
    return ok;
}

/* Returns the product of which only this `where` takes rows, as its source k; NULL: it is another value. */
static cpu_step *product_of(const uses *u, const cpu_step *where, int k) {
    const ggl_tensor *t = where->node->src[k];
    cpu_step *s = t->id < u->n ? u->by[t->id] : NULL;
    const bool is_it = s && s->op == &ggl_cpu_op_linear && !s->in_loop &&
                       s->dst.region == GGL_REGION_ARENA && u->n_readers[t->id] == 1;
    return is_it ? s : NULL;
}

bool ggl_cpu_find_takers(cpu_compiler *c) {
    uses u = {0};
    const bool ok = count_uses(&u, c);
    for (size_t i = 0; ok && i < c->n_step; i++) {
        const cpu_step *w = &c->step[i];
        const bool asks = w->kind == GGL_STEP_NODE && is_own(&u, w) &&
                          w->node->op == GGL_OP_WHERE && !w->in_loop &&
                          w->node->src[0]->op == GGL_OP_INPUT &&
                          w->src[0].region == GGL_REGION_IO && w->src[0].type == GGL_F32 &&
                          w->src[0].ne[0] * w->src[0].ne[1] * w->src[0].ne[2] == 1;
        for (int k = 1; asks && k < 3; k++) {
            cpu_step *product = product_of(&u, w, k);
            if (!product)
                continue;
            product->linear.may_skip = true;
            product->linear.taken = w->src[0];
            product->linear.if_not = k == 2;
        }
    }
    ggl_free(u.n_readers);
    ggl_free(u.by);
    return ok;
}
