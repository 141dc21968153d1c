/* Reverse mode: goes from the last node to the first, and adds to the gradients of each one's sources what its rule says. When
 * a node's turn comes, all of its readers have been visited, so its gradient is whole. */
#include "gradient_impl.h"

#include <string.h>

#include "ggl/internal/params.h"

/* --- what depends on those by which we differentiate ------------------------------------------ */

/* True if a node of the body reads a leaf that is active. */
static bool body_is_active(grad_work *w, const ggl_body *b) {
    bool is = b && ggl_grad_is_active(w, b->result);
    for (int i = 0; b && i < b->n_node && !is; i++) {
        for (int k = 0; k < b->node[i]->n_src && !is; k++)
            is = b->node[i]->src[k] && ggl_is_leaf(b->node[i]->src[k]) &&
                 ggl_grad_is_active(w, b->node[i]->src[k]);
        is = is || body_is_active(w, b->node[i]->body);
    }
    return is;
}

/* Sets `active` of a node whose sources have it. Whole numbers do not change a little. */
static void set_active(grad_work *w, const ggl_tensor *t) {
    bool is = false;
    for (int k = 0; k < t->n_src && !is; k++)
        is = ggl_grad_is_active(w, t->src[k]);
    is = is || body_is_active(w, t->body);
    grad_note *n = ggl_grad_note(w, t);
    if (n)
        n->active |= is && t->type != GGL_I32;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Returns the next part along dim from `at` on that has not been used; NULL: none. */
static grad_part **next_part(grad_part **list, int dim, int64_t at) {
    grad_part **best = NULL;
    for (grad_part **p = list; *p; p = &(*p)->next)
        if ((*p)->dim == dim && (*p)->first >= at && (!best || (*p)->first < (*best)->first))
            best = p;
    return best;
}

/* Returns x, then y, along dim; x NULL: y. */
static ggl_tensor *append(grad_work *w, ggl_tensor *x, ggl_tensor *y, int dim) {
    const double num = dim;
    ggl_tensor *src[2] = {x, y};
    return x ? ggl_graph_op(w->g, GGL_OP_CONCAT, src, 2, &num, 1) : y;
}

/* Returns zeros in the shape of t, but n along dim. */
static ggl_tensor *zeros(grad_work *w, const ggl_tensor *t, int dim, int64_t n) {
    const double zero = 0;
    double num[GGL_MAX_DIMS];
    for (int d = 0; d < t->n_dims; d++)
        num[d] = (double)(d == dim ? n : t->ne[d]);
    return grad_op1(w, GGL_OP_REPEAT, ggl_graph_const(w->g, 0, NULL, &zero), num, t->n_dims);
}

/* Puts parts of t's gradient side by side, with zeros between them, as long as they do not overlap, and adds them to the rest. */
static void join_parts(grad_work *w, ggl_tensor *t) {
    for (;;) {
        grad_note *note = ggl_grad_note(w, t);
        if (!note || !note->parts || w->g->error.status != GGL_OK)
            return;
        const int dim = note->parts->dim;
        ggl_tensor *all = NULL;
        int64_t at = 0;
        for (grad_part **next; (next = next_part(&ggl_grad_note(w, t)->parts, dim, at));) {
            grad_part *p = *next;
            *next = p->next;
            if (p->first > at)
                all = append(w, all, zeros(w, t, dim, p->first - at), dim);
            all = append(w, all, p->d, dim);
            at = p->first + p->size;
        }
        if (at < t->ne[dim])
            all = append(w, all, zeros(w, t, dim, t->ne[dim] - at), dim);
        ggl_grad_add(w, t, t, all);
    }
}

/* --- the walk --------------------------------------------------------------------------------- */

static void visit_all(grad_work *w, ggl_tensor *const *node, int n);

/* Gradients of a call without a rule of its own: those of its body, whose nodes are computed once more at the top level. */
static void through_body(grad_work *w, ggl_tensor *t, ggl_tensor *dy) {
    ggl_graph *g = w->g;
    if (t->body->recurrent) {
        ggl_grad_recurrence(w, t, dy, visit_all, set_active);
        return;
    }
    const node_list *list = g->body ? &g->body->nodes : &g->nodes;
    const size_t first = list->n;
    ggl_tensor *result = ggl_grad_inline(w, t);
    const size_t n = list->n - first;
    ggl_tensor **copy = ggl_calloc(n + 1, sizeof(ggl_tensor *));
    if (!result || !copy) {
        ggl_free(copy);
        if (!copy)
            ggl_graph_fail(g, GGL_NOMEM, "out of memory for gradients");
        return;
    }
    memcpy(copy, list->at + first, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        if (!ggl_is_leaf(copy[i])) {
            set_active(w, copy[i]);
            grad_note *note = ggl_grad_note(w, copy[i]);
            if (note)
                note->is_kept = true;
        }
    ggl_grad_add(w, t, result, dy);
    visit_all(w, copy, (int)n);
    ggl_free(copy);
}

/* Adds to the gradients of t's sources. */
static void visit(grad_work *w, ggl_tensor *t) {
    ggl_graph *g = w->g;
    grad_note *note = ggl_grad_note(w, t);
    if (!note || !note->active || ggl_is_leaf(t) || (!note->d && !note->parts))
        return;
    g->group = t->group;
    g->origin = t->origin;
    join_parts(w, t);
    note = ggl_grad_note(w, t);
    ggl_tensor *dy = note && note->d ? ggl_grad_as_large(w, note->d, t) : NULL;
    if (!dy)
        return;
    ggl_grad_note(w, t)->d = dy;
    const grad_rule *rule = ggl_grad_rule_of(t);
    bool any = false; /* by its sources: t itself may be what is asked for */
    for (int k = 0; k < t->n_src; k++)
        any |= ggl_grad_is_active(w, t->src[k]);
    any |= body_is_active(w, t->body);
    if (!any)
        return;
    if (!rule)
        through_body(w, t, dy);
    else if (rule->kind == GRAD_NONE || rule->kind == GRAD_MISSING)
        ggl_graph_fail(g, GGL_UNSUPPORTED, "the gradient of %s: %s",
                       ggl_node_text(t, (char[128]){0}, 128), rule->text ? rule->text : "no rule");
    else if (rule->kind == GRAD_TEXT)
        ggl_grad_apply(w, rule, t, dy);
    else if (rule->kind == GRAD_BY)
        rule->by(w, t, dy);
}

static void visit_all(grad_work *w, ggl_tensor *const *node, int n) {
    for (int i = n; i-- > 0 && w->g->error.status == GGL_OK;)
        visit(w, node[i]);
}

/* --- what is computed again ------------------------------------------------------------------- */

/* Operators that take about the time of reading their sources. */
static const bool is_light_op[GGL_OP_COUNT] = {
    [GGL_OP_ADD] = true,   [GGL_OP_SUB] = true,     [GGL_OP_MUL] = true,   [GGL_OP_DIV] = true,
    [GGL_OP_MIN] = true,   [GGL_OP_MAX] = true,     [GGL_OP_WHERE] = true, [GGL_OP_EXP] = true,
    [GGL_OP_LOG] = true,   [GGL_OP_SQRT] = true,    [GGL_OP_ABS] = true,   [GGL_OP_TANH] = true,
    [GGL_OP_ERF] = true,   [GGL_OP_SIGMOID] = true, [GGL_OP_SUM] = true,   [GGL_OP_AMAX] = true,
    [GGL_OP_SPLIT] = true, [GGL_OP_RESHAPE] = true,
};

static bool is_light(const ggl_tensor *t) {
    if (t->op != GGL_OP_CALL)
        return is_light_op[t->op];
    bool is = !t->body->recurrent;
    for (int i = 0; i < t->body->n_node && is; i++)
        is = is_light(t->body->node[i]);
    return is;
}

/* True if the gradients of the light node t need the elements of its source k, which is therefore there. */
static bool reads_source(grad_work *w, const ggl_tensor *t, int k) {
    const grad_rule *rule = ggl_grad_rule_of(t);
    if (rule)
        return rule->kind == GRAD_TEXT && ggl_grad_reads(w, rule, t, t->src[k], false);
    bool is = false;
    for (int i = 0; i < t->body->n_node && !is; i++) {
        const ggl_tensor *node = t->body->node[i];
        const grad_rule *of = ggl_grad_rule_of(node);
        is = of && of->kind == GRAD_TEXT && ggl_grad_reads(w, of, node, t->body->param[k], true);
    }
    return is;
}

/* Finds the nodes that are computed again whatever is kept: light ones, no smaller than their sources, which are there when gradients
 * are computed, because these need them, too, or are light themselves. Of a layer such as Llama's they are two fifths of all values. */
static void choose_light(grad_work *w, ggl_tensor *const *node, int n) {
    for (int i = 0; i < n && w->g->error.status == GGL_OK; i++) {
        const ggl_tensor *t = node[i];
        const bool is_view = t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT;
        bool is = ggl_is_batched(t) && !ggl_is_leaf(t) && !t->keeps_state && is_light(t) &&
                  ggl_grad_is_active(w, t);
        for (int k = 0; k < t->n_src && is; k++) {
            const ggl_tensor *x = t->src[k];
            if (!x || ggl_is_leaf(x) || !ggl_is_batched(x))
                continue;
            is = (is_view || ggl_count(t) >= ggl_count(x)) &&
                 (ggl_grad_note(w, x)->is_light || reads_source(w, t, k));
        }
        grad_note *note = is ? ggl_grad_note(w, t) : NULL;
        if (note)
            note->is_light = true;
    }
}

/* True if the node's value is memory that gradients may need, and computing it again would be cheap: it has a step of its own, for each
 * element of the batch, and does not attend. */
static bool may_be_again(const ggl_tensor *t) {
    return ggl_is_batched(t) && !ggl_is_leaf(t) && t->op != GGL_OP_CACHE && !ggl_cache_of(t) &&
           !t->keeps_state && t->group + 1 >= 0;
}

/* Sets is_kept of the n nodes: values that other groups read, outputs, and `of`. */
static void keep_borders(grad_work *w, ggl_tensor *const *node, int n, const ggl_tensor *of) {
    for (int i = 0; i < n; i++) {
        grad_note *note = ggl_grad_note(w, node[i]);
        if (note)
            note->is_kept |= node[i] == of || !may_be_again(node[i]);
        for (int k = 0; k < node[i]->n_src; k++) {
            const ggl_tensor *x = node[i]->src[k];
            grad_note *source = x && x->group != node[i]->group ? ggl_grad_note(w, x) : NULL;
            if (source)
                source->is_kept = true;
        }
    }
    for (size_t i = 0; i < w->g->outputs.n; i++) {
        grad_note *note = ggl_grad_note(w, w->g->outputs.at[i]);
        if (note)
            note->is_kept = true;
    }
}

/* Chooses the groups whose values are computed again, the first ones, until the rest takes at most `most` bytes. */
static void choose_again(grad_work *w, ggl_tensor *const *node, int n, const ggl_tensor *of,
                         size_t most) {
    double *bytes, all = 0;
    for (int i = 0; i < n; i++)
        w->n_groups = node[i]->group + 2 > w->n_groups ? node[i]->group + 2 : w->n_groups;
    w->again = ggl_calloc((size_t)w->n_groups + 1, sizeof *w->again);
    bytes = ggl_calloc((size_t)w->n_groups + 1, sizeof *bytes);
    if (!w->again || !bytes) {
        ggl_graph_fail(w->g, GGL_NOMEM, "out of memory for gradients");
        ggl_free(bytes);
        return;
    }
    keep_borders(w, node, n, of);
    for (int i = 0; i < n; i++) {
        const grad_note *note = ggl_grad_note(w, node[i]);
        const bool is_view = node[i]->op == GGL_OP_RESHAPE || node[i]->op == GGL_OP_SPLIT;
        if (!note || note->is_light || is_view || !ggl_is_batched(node[i]) ||
            ggl_is_leaf(node[i]) || node[i]->op == GGL_OP_CACHE)
            continue;
        const double size =
            (double)ggl_count(node[i]) * 4 * (double)ggl_graph_get_params(w->g)->n_batch;
        all += size;
        if (!note->is_kept)
            bytes[node[i]->group + 1] += size;
    }
    for (int k = 0; k < w->n_groups && all > (double)most; k++)
        if (bytes[k] > 0) {
            w->again[k] = true;
            all -= bytes[k];
        }
    ggl_free(bytes);
}

/* 1 for each element of t. If t is batched, so is this, as all gradients of batched values are; and if an element is no finite
 * number, neither is its 1. */
static ggl_tensor *ones(grad_work *w, ggl_tensor *t) {
    ggl_tensor *zero = ggl_graph_number(w->g, 0), *one = ggl_graph_number(w->g, 1);
    return ggl_binary(w->g, GGL_OP_ADD, ggl_binary(w->g, GGL_OP_MUL, t, zero), one);
}

/* Returns the nodes of the graph from `of` back; the graph's list may grow meanwhile. */
static ggl_tensor **nodes_up_to(ggl_graph *g, const ggl_tensor *of, int *n) {
    ggl_tensor **at = ggl_calloc(g->nodes.n + 1, sizeof(ggl_tensor *));
    *n = 0;
    for (size_t i = 0; at && i < g->nodes.n; i++) {
        at[(*n)++] = g->nodes.at[i];
        if (g->nodes.at[i] == of)
            break;
    }
    return at;
}

static bool check_arguments(ggl_graph *g, const ggl_tensor *of, ggl_tensor *const *by, int n,
                            const ggl_grad_params *p) {
    if (g->body)
        ggl_graph_fail(g, GGL_USAGE, "gradients are asked for in the body of a call");
    else if (!of || of->scope != 0 || of->type == GGL_I32 || of->op == GGL_OP_CACHE ||
             ggl_is_leaf(of))
        ggl_graph_fail(g, GGL_USAGE,
                       "gradients are asked for of %s: a computed value of the top level "
                       "is needed",
                       of ? ggl_op_get(of->op).name : "nothing");
    for (int k = 0; k < n && g->error.status == GGL_OK; k++) {
        const ggl_tensor *t = by[k], *into = p->into ? p->into[k] : NULL,
                         *copy = p->copy ? p->copy[k] : NULL;
        if (!t || t->scope != 0 || t->type == GGL_I32 || t->op == GGL_OP_CACHE ||
            t->op == GGL_OP_CONST)
            ggl_graph_fail(g, GGL_USAGE,
                           "a gradient is asked for by %s%s: a weight, an f32 input, or a "
                           "value of the top level is needed",
                           t ? ggl_op_get(t->op).name : "nothing", t && t->name ? t->name : "");
        else if (t->n_dims > GGL_BATCH_DIM)
            ggl_graph_fail(
                g, GGL_UNSUPPORTED,
                "a gradient is asked for by '%s', a weight of four dimensions: gradients "
                "are values, which have at most three",
                t->name);
        else if (into && (ggl_is_batched(into) || ggl_is_batched(t) || into->n_dims != t->n_dims ||
                          memcmp(into->ne, t->ne, sizeof t->ne) != 0))
            ggl_graph_fail(g, GGL_SHAPE, "the gradient by %s cannot be added to a value of %s",
                           t->name ? t->name : ggl_op_get(t->op).name,
                           ggl_shape_text(into, (char[256]){0}, 256));
        else if (copy && (!ggl_is_leaf(copy) || copy->n_dims != t->n_dims ||
                          memcmp(copy->ne, t->ne, sizeof t->ne) != 0))
            ggl_graph_fail(g, GGL_SHAPE, "a copy of %s is %s of %s",
                           t->name ? t->name : ggl_op_get(t->op).name, ggl_op_get(copy->op).name,
                           ggl_shape_text(copy, (char[256]){0}, 256));
        else if (into && t->op != GGL_OP_WEIGHT)
            ggl_graph_fail(g, GGL_USAGE,
                           "only gradients by weights can be added to a value, not by %s",
                           ggl_op_get(t->op).name);
        for (int i = 0; i < k; i++)
            if (t && by[i] == t)
                ggl_graph_fail(g, GGL_USAGE, "a gradient is asked for by '%s' twice",
                               t->name ? t->name : ggl_op_get(t->op).name);
    }
    return g->error.status == GGL_OK;
}

/* Sets grad[k] to the gradient of by[k]; NULL: there is none. */
static void take_results(grad_work *w, ggl_tensor *const *by, int n, const ggl_grad_params *p,
                         ggl_tensor **grad) {
    for (int k = 0; k < n && w->g->error.status == GGL_OK; k++) {
        join_parts(w, by[k]);
        const grad_note *note = ggl_grad_note(w, by[k]);
        ggl_tensor *d = note ? note->d : NULL;
        grad[k] = d && !(p->into && d == p->into[k]) ? ggl_grad_as_large(w, d, by[k]) : NULL;
    }
}

bool ggl_graph_grad(ggl_graph *g, ggl_tensor *of, ggl_tensor *const *by, int n,
                    const ggl_grad_params *params, ggl_tensor **grad) {
    ggl_grad_params p = {.size = sizeof p};
    ggl_error err;
    grad_work w = {.g = g};
    const int group = g->group;
    const char *origin = g->origin;
    memset(grad, 0, (size_t)n * sizeof *grad);
    if (g->error.status != GGL_OK)
        return false;
    if (GGL_READ_PARAMS(ggl_grad_params, &p, params, &err) != GGL_OK) {
        ggl_graph_fail(g, err.status, "%s", err.msg);
        return false;
    }
    if (!check_arguments(g, of, by, n, &p))
        return false;
    w.bf16 = p.bf16;
    w.chunk = p.chunk > 0 ? p.chunk : GGL_GRAD_CHUNK;
    int n_nodes;
    ggl_tensor **node = nodes_up_to(g, of, &n_nodes);
    if (!node)
        ggl_graph_fail(g, GGL_NOMEM, "out of memory for gradients");
    for (int k = 0; k < n && node; k++) {
        grad_note *note = ggl_grad_note(&w, by[k]);
        if (note) {
            note->active = true;
            note->d = p.into ? p.into[k] : NULL;
        }
        ggl_tensor *copy = p.copy ? p.copy[k] : NULL;
        note = copy ? ggl_grad_note(&w, copy) : NULL;
        if (note) {
            note->active = true;
            note->original = by[k];
        }
    }
    for (int i = 0; i < n_nodes && g->error.status == GGL_OK; i++)
        if (!ggl_is_leaf(node[i]))
            set_active(&w, node[i]);
    if (node && p.keep != SIZE_MAX)
        choose_light(&w, node, n_nodes);
    if (node && p.keep > 0 && p.keep != SIZE_MAX)
        choose_again(&w, node, n_nodes, of, p.keep);
    if (node && ggl_grad_is_active(&w, of) && g->error.status == GGL_OK) {
        ggl_grad_add(&w, of, of, ones(&w, of));
        visit_all(&w, node, n_nodes);
        take_results(&w, by, n, &p, grad);
    }
    g->group = group;
    g->origin = origin;
    ggl_free(node);
    ggl_free(w.note);
    ggl_free(w.again);
    return g->error.status == GGL_OK;
}
