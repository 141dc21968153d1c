/* Builds the graph of a model for one token at a time, and its program: the order of the steps, and the memory of all values. */
#include "program.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
}

static ggl_status build_graph(small_program *p, const llm_small_source *s, ggl_error *err) {
    ggl_graph_params gp = ggl_graph_default();
    if (s->n_ctx <= 0 || s->n_ctx > 1 << 20)
        return ggl_fail(err, GGL_USAGE,
                        "%s: a context of %" PRId64
                        " tokens is not one of 1 to 2^20: set another one (-c N)",
                        s->name, s->n_ctx);
    gp.n_pos = s->n_ctx;
    gp.n_batch = 1;
    gp.type_k = s->type_k;
    gp.type_v = s->type_v;
    p->n_ctx = s->n_ctx;
    p->graph = ggl_graph_new(&gp);
    if (!p->graph)
        return no_memory(err);
    const llm_arch_params ap = {
        .size = sizeof ap, .n_ctx = s->n_ctx, .ignore = s->ignore, .only = "logits"};
    ggl_status st = llm_arch_build(s->arch, s->weights, &ap, p->graph, &p->built, err);
    if (st == GGL_OK)
        st = ggl_graph_finish(p->graph, err);
    if (st == GGL_OK)
        st = ggl_graph_fold_by(p->graph, s->fold, s->fold_products, err);
    return st == GGL_OK ? ggl_graph_settle(p->graph, err) : st;
}

/* Finds the logits, and refuses models that need more than a token and its position. */
static ggl_status check_graph(small_program *p, const char *name, ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_outputs(p->graph); i++)
        if (strcmp(ggl_graph_get_output(p->graph, i)->name, "logits") == 0)
            p->logits = ggl_graph_get_output(p->graph, i);
    if (!p->logits || p->built.sees_all)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "%s: the model writes no text token by token, which is what the runtime for "
            "small boards does",
            name);
    for (int i = 0; i < ggl_graph_n_inputs(p->graph); i++) {
        const ggl_tensor *t = ggl_graph_get_input(p->graph, i);
        if (t->needed && strcmp(t->name, "token") != 0 && strcmp(t->name, "pos") != 0 &&
            strcmp(t->name, "slot") != 0 && strcmp(t->name, "page") != 0)
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: the model reads '%s' besides tokens, which the runtime for small "
                            "boards does not give",
                            name, t->name);
    }
    return GGL_OK;
}

/* --- places ----------------------------------------------------------------------------------- */

static ggl_status place_leaf(small_program *p, const ggl_tensor *t, ggl_error *err) {
    static const char *const inputs[] = {"token", "pos", "slot"};
    if (t->op == GGL_OP_INPUT) {
        p->loc[t->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = 0}; /* "page" is not read */
        for (size_t k = 0; k < 3; k++)
            if (strcmp(t->name, inputs[k]) == 0)
                p->loc[t->id].offset = k * sizeof(int32_t);
        return GGL_OK;
    }
    if (!ggl_grow(&p->leaf, &p->cap_leaves, p->n_leaves + 1, sizeof *p->leaf))
        return no_memory(err);
    p->loc[t->id] = (ggl_loc){.region = SMALL_FIRST_LEAF + (int)p->n_leaves, .offset = 0};
    p->leaf[p->n_leaves++] = t;
    return GGL_OK;
}

/* Gives each leaf that the nodes read a region of its own. */
static ggl_status place_leaves(small_program *p, ggl_tensor *const *node, int n, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < n && st == GGL_OK; i++) {
        for (int k = 0; k < ggl_n_reads(node[i]) && st == GGL_OK; k++) {
            const ggl_tensor *t = ggl_read(node[i], k);
            t = t && !ggl_is_leaf(t) && t->view_of ? t->view_of : t;
            if (t && ggl_is_leaf(t) && p->loc[t->id].region < 0)
                st = place_leaf(p, t, err);
        }
        const ggl_body *body = node[i]->body;
        if (st == GGL_OK && body) {
            st = place_leaves(p, body->node, body->n_node, err);
            if (st == GGL_OK && ggl_is_leaf(body->result) && p->loc[body->result->id].region < 0)
                st = place_leaf(p, body->result, err);
        }
    }
    return st;
}

/* Stores are behind each other, in a region whose beginning is found later. */
static ggl_status place_stores(small_program *p, ggl_error *err) {
    size_t at = 0;
    for (int i = 0; i < ggl_graph_n_stores(p->graph); i++) {
        const ggl_store *s = ggl_graph_store(p->graph, i);
        p->store_loc[s->id] = (ggl_loc){GGL_REGION_STORES, at, s->page_size};
        if (!ggl_size_add(at, s->size, &at) || !ggl_size_align(at, 16, &at))
            return no_memory(err);
    }
    p->stores = at;
    return GGL_OK;
}

static ggl_status make_program(small_program *p, ggl_error *err) {
    const size_t n_ids = (size_t)ggl_graph_n_ids(p->graph);
    const int n = ggl_graph_n_nodes(p->graph);
    ggl_tensor **node = ggl_calloc((size_t)n + 1, sizeof *node);
    p->loc = ggl_calloc(n_ids + 1, sizeof *p->loc);
    p->store_loc = ggl_calloc((size_t)ggl_graph_n_stores(p->graph) + 1, sizeof *p->store_loc);
    int n_node = 0;
    if (!node || !p->loc || !p->store_loc) {
        ggl_free(node);
        return no_memory(err);
    }
    for (size_t i = 0; i < n_ids; i++)
        p->loc[i].region = -1;
    for (int i = 0; i < n; i++) {
        ggl_tensor *t = ggl_graph_node(p->graph, i);
        if (t->computed || (t->needed && t->view_of && !ggl_is_leaf(t))) /* views cost no step */
            node[n_node++] = t;
    }
    ggl_status st = place_leaves(p, node, n_node, err);
    if (st == GGL_OK)
        st = place_stores(p, err);
    p->loc[p->logits->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = SMALL_LOGITS};
    const ggl_segment segment = {.graph = p->graph,
                                 .node = node,
                                 .n_node = n_node,
                                 .n_max = 1,
                                 .loc = p->loc,
                                 .store_loc = p->store_loc,
                                 .n_slots = 1};
    const ggl_program_params params = {.refuses = llm_small_refuses,
                                       .in_place = llm_small_in_place,
                                       .form = llm_small_form,
                                       .value_type = GGL_F32};
    if (st == GGL_OK)
        st = ggl_program_build(&p->program, &segment, &params, err);
    ggl_free(node);
    return st;
}

/* RAM: inputs, logits, values, scratch, stores. */
static ggl_status lay_out(small_program *p, ggl_error *err) {
    size_t scratch = 0;
    for (int i = 0; i < p->program.n_step; i++) {
        const ggl_step *s = &p->program.step[i];
        small_call call;
        if (s->kind != GGL_STEP_NODE && s->kind != GGL_STEP_FORM)
            continue;
        const ggl_status st = llm_small_call(s, &call, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "%s", s->node->name ? s->node->name : "a value");
        scratch = call.scratch > scratch ? call.scratch : scratch;
    }
    const size_t stores = p->stores, logits = (size_t)ggl_count(p->logits) * sizeof(float);
    size_t at = SMALL_LOGITS;
    bool fits = ggl_size_add(at, logits, &at) && ggl_size_align(at, 16, &at);
    p->arena = at;
    fits = fits && ggl_size_add(at, p->program.arena_size, &at);
    p->scratch = at;
    fits = fits && ggl_size_add(at, scratch, &at) && ggl_size_align(at, 16, &at);
    p->stores = at;
    fits = fits && ggl_size_add(at, stores, &p->ram);
    if (!fits || p->ram > INT32_MAX)
        return ggl_fail(
            err, GGL_LIMIT,
            "the values and the cache of %" PRId64
            " positions do not fit into 2^31 bytes of RAM: set a smaller context (-c N)",
            p->n_ctx);
    return GGL_OK;
}

ggl_status llm_small_program(small_program *p, const llm_small_source *source, ggl_error *err) {
    *p = (small_program){0};
    ggl_status st = build_graph(p, source, err);
    if (st == GGL_OK)
        st = check_graph(p, source->name, err);
    if (st != GGL_OK)
        return st;
    st = make_program(p, err);
    if (st == GGL_OK)
        st = lay_out(p, err);
    return st == GGL_OK ? st : ggl_within(err, st, "%s", source->name);
}

void llm_small_program_fini(small_program *p) {
    ggl_program_fini(&p->program);
    ggl_graph_free(p->graph);
    llm_arch_result_fini(&p->built);
    ggl_free(p->loc);
    ggl_free(p->store_loc);
    ggl_free(p->leaf);
    *p = (small_program){0};
}
