#include "cluster_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape_source.h"
#include "common/shape_types.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"
#include "ggl/internal/os_fs.h"

enum { BATCH = 512 }; /* costs do not depend on it */

/* --- a graph ----------------------------------------------------------------------------------- */

typedef struct counted {
    double n_params, size, bytes[GGL_TYPE_LIMIT];
} counted;

static void count_tensor(void *ctx, const llm_arch_tensor *t) {
    counted *c = ctx;
    const ggl_type_info *info = ggl_type_get((int)t->type);
    double n = 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        n *= (double)t->ne[d];
    c->n_params += n;
    c->size += n / (double)info->block * (double)info->size;
    c->bytes[t->type] += n / (double)info->block * (double)info->size;
}

static ggl_status build(cluster_model *m, const llm_arch *arch, llm_arch_source source,
                        const llm_arch_params *ap, const cluster_model_params *p, ggl_error *err) {
    llm_arch_result result = {0};
    const ggl_graph_params gp = {.size = sizeof gp,
                                 .n_pos = ap->n_ctx,
                                 .n_batch = BATCH,
                                 .n_slots = 1,
                                 .type_k = p->type_k,
                                 .type_v = p->type_v};
    m->graph = ggl_graph_new(&gp);
    ggl_status st = m->graph ? llm_arch_build(arch, &source, ap, m->graph, &result, err)
                             : ggl_fail(err, GGL_NOMEM, "out of memory");
    m->n_layers = (int)result.n_layer;
    llm_arch_result_fini(&result);
    if (st == GGL_OK)
        st = ggl_graph_finish(m->graph, err);
    if (st == GGL_OK && m->n_layers < 1)
        st = ggl_fail(err, GGL_UNSUPPORTED, "%s has no layers to divide", m->name);
    return st;
}

static ggl_status build_shape(cluster_model *m, const cluster_model_params *p, ggl_error *err) {
    static bench_shape shape;
    counted c = {0};
    bench_shape_source source = {.shape = &shape, .each = count_tensor, .ctx = &c};
    ggl_status st = bench_type_find(p->type, &source.wanted, err);
    if (st == GGL_OK)
        st = bench_shape_find(&shape, BENCH_SHAPES, p->shape, err);
    if (st == GGL_OK)
        st = llm_arch_open(&m->arch, shape.arch, err);
    if (st != GGL_OK)
        return st;
    snprintf(m->name, sizeof m->name, "%s %s", p->shape, p->type);
    m->type = source.wanted;
    const llm_arch_params ap = {.size = sizeof ap, .n_ctx = p->n_ctx, .n_vocab = shape.n_vocab};
    st = build(m, m->arch, bench_shape_source_of(&source), &ap, p, err);
    m->n_params = c.n_params, m->size = c.size;
    return st == GGL_OK ? st : ggl_within(err, st, "%s", p->shape);
}

static ggl_status build_file(cluster_model *m, const cluster_model_params *p, ggl_error *err) {
    ggl_status st = llm_model_open(&m->model, p->file, NULL, err);
    if (st != GGL_OK)
        return st;
    const ggl_gguf *f = llm_model_file(m->model);
    counted c = {0};
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        llm_arch_tensor counts = {.type = t->type};
        memcpy(counts.ne, t->ne, sizeof counts.ne);
        count_tensor(&c, &counts);
    }
    for (int k = 0; k < GGL_TYPE_LIMIT; k++)
        m->type = c.bytes[k] > c.bytes[m->type] ? (ggl_type)k : m->type;
    const char *slash = ggl_os_last_separator(p->file);
    snprintf(m->name, sizeof m->name, "%s", slash && slash[1] ? slash + 1 : p->file);
    m->n_params = c.n_params, m->size = c.size;
    const llm_arch_params ap = {
        .size = sizeof ap, .n_ctx = p->n_ctx, .ignore = llm_model_ignore(m->model)};
    return build(m, llm_model_arch(m->model), llm_arch_source_gguf(f), &ap, p, err);
}

/* --- what its parts cost ------------------------------------------------------------------------ */

/* Adds what layers count one by one; those that differ only in bytes become one. False: too many differ. */
static bool condense(cluster_cost *to, const bench_costs *c) {
    *to = (cluster_cost){.whole = c->whole, .states = c->states};
    for (int i = 0; i < c->n_picked; i++) {
        int k = 0;
        while (k < to->n_picked && (to->picked[k].n_total != c->picked[i].n_total ||
                                    to->picked[k].n_used != c->picked[i].n_used))
            k++;
        if (k == CLUSTER_KINDS)
            return false;
        to->n_picked += k == to->n_picked;
        to->picked[k].bytes += c->picked[i].bytes;
        to->picked[k].n_total = c->picked[i].n_total;
        to->picked[k].n_used = c->picked[i].n_used;
    }
    for (int i = 0; i < c->n_stores + c->n_attends; i++) {
        const bool keeps = i < c->n_stores;
        const int j = keeps ? i : i - c->n_stores;
        const double n_pos = keeps ? c->store[j].n_pos : c->attend[j].n_pos;
        int k = 0;
        while (k < to->n_stores && to->store[k].n_pos != n_pos)
            k++;
        if (k == CLUSTER_KINDS)
            return false;
        to->n_stores += k == to->n_stores;
        to->store[k].n_pos = n_pos;
        to->store[k].bytes += keeps ? c->store[j].bytes : 0;
        to->store[k].macs += keeps ? 0 : c->attend[j].macs;
    }
    return true;
}

/* Bytes for each token; picks of a weight are read in place. */
static double bytes_of(const ggl_tensor *t) {
    const ggl_tensor *part;
    return ggl_is_batched(t) && (t->n_dims < 2 || !bench_weight_of(t, &part))
               ? (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] * sizeof(float)
               : 0;
}

static ggl_status count(cluster_model *m, ggl_error *err) {
    ggl_status st = GGL_OK;
    bench_costs *c = malloc(sizeof *c);
    m->layer = calloc((size_t)m->n_layers + 2, sizeof *m->layer);
    if (!c || !m->layer)
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0; i < 2 * (m->n_layers + 2) && st == GGL_OK; i++) {
        cluster_layer *l = &m->layer[i / 2];
        st = bench_costs_count_group(c, m->graph, i / 2 - 1, i % 2, err);
        if (st == GGL_OK && !condense(i % 2 ? &l->tail : &l->trunk, c))
            st = ggl_fail(err, GGL_LIMIT, "%s: the parts of layer %d differ too much", m->name,
                          i / 2 - 1);
    }
    free(c);
    for (int i = 0; i < ggl_graph_n_nodes(m->graph) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_node(m->graph, i);
        double all = bytes_of(t);
        for (int k = 0; k < t->n_src; k++)
            all += t->src[k] ? bytes_of(t->src[k]) : 0;
        if (t->group >= -1 && t->group <= m->n_layers && all > m->layer[t->group + 1].widest)
            m->layer[t->group + 1].widest = all;
    }
    return st;
}

ggl_status cluster_model_init(cluster_model *m, const cluster_model_params *p, ggl_error *err) {
    *m = (cluster_model){.n_layers = 0};
    const ggl_status st = p->file ? build_file(m, p, err) : build_shape(m, p, err);
    return st == GGL_OK ? count(m, err) : st;
}

void cluster_model_fini(cluster_model *m) {
    free(m->layer);
    ggl_graph_free(m->graph);
    llm_arch_free(m->arch);
    llm_model_free(m->model);
}

/* --- what passes between ranks ------------------------------------------------------------------- */

/* Returns the rank that computes the node; -1: none, as it is an input, a weight or folded, or a part that no rank has. */
static int rank_of_node(const cluster_model *m, const int *rank_of, const ggl_tensor *t) {
    return !ggl_is_leaf(t) && ggl_is_batched(t) && t->group >= -1 && t->group <= m->n_layers
               ? rank_of[t->group + 1]
               : -1;
}

/* Adds a value that the rank reads, unless it has it. */
static void add_read(const cluster_model *m, const int *rank_of, int rank, const ggl_tensor *t,
                     bool tail, bool *has, bool *left, cluster_traffic *out) {
    const int from = rank_of_node(m, rank_of, t);
    const bool is_input = t->op == GGL_OP_INPUT && ggl_is_batched(t);
    if (from == rank || (from < 0 && !is_input) || has[t->id])
        return;
    has[t->id] = true;
    if (rank > 0)
        *(tail ? &out[rank].tail_in : &out[rank].in) += bytes_of(t);
    if (from > 0 && !left[t->id])
        *(tail ? &out[from].tail_out : &out[from].out) += bytes_of(t);
    left[t->id] = true;
}

ggl_status cluster_model_traffic(const cluster_model *m, const int *rank_of, int n_ranks,
                                 cluster_traffic *out, ggl_error *err) {
    const ggl_graph *g = m->graph;
    const size_t n = (size_t)ggl_graph_n_ids(g) + 1;
    bool *trunk = calloc(n, 1), *has = calloc(n, 1), *left = calloc(n, 1);
    const bool ok = trunk && has && left;
    if (ok)
        bench_costs_mark_trunk(g, trunk);
    memset(out, 0, (size_t)n_ranks * sizeof *out);
    for (int r = 0; r < n_ranks && ok; r++) {
        memset(has, 0, n);
        for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
            const ggl_tensor *t = ggl_graph_node(g, i);
            if (!t->needed || rank_of_node(m, rank_of, t) != r)
                continue;
            for (int k = 0; k < t->n_src; k++)
                if (t->src[k])
                    add_read(m, rank_of, r, t->src[k], !trunk[t->id], has, left, out);
        }
    }
    for (int i = 0; i < ggl_graph_n_outputs(g) && ok; i++) {
        const ggl_tensor *t = ggl_graph_get_output(g, i);
        const int from = rank_of_node(m, rank_of, t);
        if (from > 0)
            out[from].tail_out += bytes_of(t);
    }
    free(trunk);
    free(has);
    free(left);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}
