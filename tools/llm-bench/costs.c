#include "costs.h"

#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A body's parameters stand for these operands. */
typedef struct scope {
    const ggl_body *body;
    ggl_tensor *const *src;
    const struct scope *outer;
} scope;

typedef struct counter {
    bench_costs *c;
    bool in_stage; /* what is read is not read again for each token */
    bool *seen;    /* [id]: the weight, or the node that picks from it, was counted */
} counter;

static double elements(const ggl_tensor *t) {
    return (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] *
           (ggl_is_batched(t) ? 1 : (double)t->ne[3]);
}

/* Returns what a parameter stands for, through any number of bodies. */
static const ggl_tensor *resolve(const ggl_tensor *t, const scope *s) {
    while (t && t->op == GGL_OP_PARAM && s) {
        int i = 0;
        while (i < s->body->n_param && s->body->param[i] != t)
            i++;
        if (i < s->body->n_param)
            t = s->src[i];
        s = s->outer;
    }
    return t;
}

/* Returns the weight that a value is taken from, or NULL; *part: the node that picks from it, or
 * NULL. */
static const ggl_tensor *weight_of(const ggl_tensor *t, const scope *s, const ggl_tensor **part) {
    *part = NULL;
    while ((t = resolve(t, s)) != NULL && t->op != GGL_OP_WEIGHT) {
        if (t->op == GGL_OP_PICK)
            *part = t;
        else if (t->op != GGL_OP_RESHAPE && t->op != GGL_OP_CAST)
            return NULL;
        t = t->src[0];
    }
    return t;
}

const ggl_tensor *bench_weight_of(const ggl_tensor *t, const ggl_tensor **part) {
    return weight_of(t, NULL, part);
}

/* Counts the bytes read of a weight. Products read a matrix again: layers that a token passes several times. */
static void count_read(counter *k, const ggl_tensor *w, const ggl_tensor *part, bool is_again) {
    if (k->in_stage)
        return;
    if (!part) {
        if (is_again || !k->seen[w->id])
            k->c->whole += (double)w->size;
        k->seen[w->id] = true;
        return;
    }
    double n_total = (double)w->ne[w->n_dims > 0 ? w->n_dims - 1 : 0];
    double each = (double)w->size / n_total;
    double used = elements(part) / (elements(w) / n_total);
    if (!k->seen[part->id] && k->c->n_picked < BENCH_MAX_PICKED) {
        k->c->picked[k->c->n_picked].bytes = each;
        k->c->picked[k->c->n_picked].n_total = n_total;
        k->c->picked[k->c->n_picked++].n_used = used;
    }
    k->seen[part->id] = true;
}

/* Counts a node; returns its multiply-adds with weights, including its body's. */
static double count_node(counter *k, const ggl_tensor *t, const scope *s) {
    double macs = 0;
    if (t->op == GGL_OP_CALL && t->body) {
        const scope inner = {t->body, t->src, s};
        for (int i = 0; i < t->body->n_node; i++)
            macs += count_node(k, t->body->node[i], &inner);
        return macs;
    }
    if (t->op == GGL_OP_RESHAPE) /* what uses it reads */
        return 0;
    for (int i = 0; i < t->n_src && !ggl_is_leaf(t); i++) {
        const ggl_tensor *part, *w = t->src[i] ? weight_of(t->src[i], s, &part) : NULL;
        if (t->op == GGL_OP_PICK && i == 0 && w)
            part = t;
        if (w)
            count_read(k, w, part, t->op == GGL_OP_LINEAR && i == 1);
        if (w && t->op == GGL_OP_LINEAR && i == 1)
            macs += elements(resolve(t->src[i], s));
    }
    return macs;
}

/* Sets trunk[id] of the nodes that caches and states depend on. */
static void mark_trunk(const ggl_graph *g, bool *trunk) {
    for (int i = ggl_graph_n_nodes(g) - 1; i >= 0; i--) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        bool keeps =
            t->op == GGL_OP_CACHE || (t->op == GGL_OP_CALL && t->body && t->body->recurrent);
        trunk[t->id] = trunk[t->id] || keeps;
        for (int k = 0; k < t->n_src && trunk[t->id]; k++)
            if (t->src[k])
                trunk[t->src[k]->id] = true;
    }
}

static void count_stores(bench_costs *c, const ggl_graph *g) {
    for (int i = 0; i < ggl_graph_n_stores(g); i++) {
        const ggl_store *s = ggl_graph_store(g, i);
        if (s->kind == GGL_STORE_STATE) {
            c->states += (double)s->slot_size;
        } else if (c->n_stores < BENCH_MAX_STORES) {
            c->store[c->n_stores].bytes =
                (double)s->ne[0] * (double)s->ne[1] * (s->type == GGL_F32 ? 4 : 2);
            c->store[c->n_stores++].n_pos = (double)s->n_pos;
        }
    }
}

static void describe(bench_costs *c, const ggl_gguf *f) {
    double bytes[GGL_TYPE_LIMIT] = {0};
    ggl_str family = {"", 0};
    int most = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        c->n_params += (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] * (double)t->ne[3];
        c->size += (double)t->size;
        bytes[t->type] += (double)t->size;
    }
    for (int i = 0; i < GGL_TYPE_LIMIT; i++)
        most = bytes[i] > bytes[most] ? i : most;
    (void)ggl_gguf_get_string(f, "general.architecture", &family, NULL);
    const ggl_type_info *info = ggl_type_get(most);
    c->weight_type = (ggl_type)most;
    bool large = c->n_params >= 1e9;
    char name[4 * 40 + 1];
    ggl_show(name, sizeof name, family.s, family.n < 40 ? family.n : 40);
    snprintf(c->type, sizeof c->type, "%.40s %.*f%s %s", name, large ? 1 : 0,
             c->n_params * (large ? 1e-9 : 1e-6), large ? "B" : "M", info ? info->name : "?");
}

static ggl_status count_graph(bench_costs *c, const ggl_graph *g, ggl_error *err) {
    counter k = {c, .seen = calloc((size_t)ggl_graph_n_ids(g) + 1, sizeof(bool))};
    bool *trunk = calloc((size_t)ggl_graph_n_ids(g) + 1, sizeof *trunk);
    bool has_main = false;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        has_main |= ggl_graph_node(g, i)->needed && ggl_graph_node(g, i)->rows == GGL_ROWS_MAIN &&
                    ggl_is_batched(ggl_graph_node(g, i));
    if (k.seen && trunk) {
        mark_trunk(g, trunk);
        for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
            const ggl_tensor *t = ggl_graph_node(g, i);
            k.in_stage = has_main && t->rows == GGL_ROWS_STAGE;
            const double macs = t->needed ? count_node(&k, t, NULL) : 0;
            *(k.in_stage ? &c->stage_macs : trunk[t->id] ? &c->trunk_macs : &c->tail_macs) += macs;
        }
        count_stores(c, g);
    }
    bool ok = k.seen && trunk;
    free(k.seen);
    free(trunk);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}

ggl_status bench_costs_count(bench_costs *c, const llm_model *m, const llm_arch_params *params,
                             int64_t n_batch, ggl_type type_k, ggl_type type_v, ggl_error *err) {
    ggl_graph_params gp = {.size = sizeof gp,
                           .n_pos = params->n_ctx,
                           .n_batch = n_batch,
                           .n_slots = 1,
                           .type_k = type_k,
                           .type_v = type_v};
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    llm_arch_params ap = *params;
    ap.ignore = llm_model_ignore(m);
    ggl_graph *g = ggl_graph_new(&gp);
    *c = (bench_costs){.n_stores = 0};
    ggl_status st = g ? llm_arch_build(llm_model_arch(m), &source, &ap, g, NULL, err)
                      : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = ggl_graph_finish(g, err);
    if (st == GGL_OK)
        st = count_graph(c, g, err);
    if (st == GGL_OK)
        describe(c, llm_model_file(m));
    ggl_graph_free(g);
    return st;
}

double bench_costs_bytes(const bench_costs *c, int64_t n_seq, double n_past) {
    double n = (double)n_seq, sum = c->whole + n * c->states;
    for (int i = 0; i < c->n_picked; i++) {
        double missed = pow(1 - c->picked[i].n_used / c->picked[i].n_total, n);
        sum += c->picked[i].bytes * c->picked[i].n_total * (1 - missed);
    }
    for (int i = 0; i < c->n_stores; i++)
        sum += n * c->store[i].bytes * fmin(n_past, c->store[i].n_pos);
    return sum;
}
