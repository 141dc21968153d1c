#include "known_source.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "toy_run.h"

static bool w_find_key(void *ctx, const char *name, llm_arch_key *out) {
    wrapped *w = ctx;
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->key[i].name, name) == 0) {
            const value *v = &w->key[i].v;
            if (v->absent)
                return false;
            *out = (llm_arch_key){v->type, v->is_list, v->is_list ? 3 + (uint64_t)v->has_fourth : 1,
                                  v};
            return true;
        }
    return w->base->find_key(w->base->ctx, name, out);
}

static bool w_get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    wrapped *w = ctx;
    for (int k = 0; k < w->n; k++)
        if (key->handle == &w->key[k].v) {
            const value *v = &w->key[k].v;
            *out = (llm_arch_item){i < 3 ? v->number : v->number / 2,
                                   v->flag,
                                   {v->string, v->string ? strlen(v->string) : 0}};
            return true;
        }
    return w->base->get_item(w->base->ctx, key, i, out);
}

static bool w_find_tensor(void *ctx, llm_arch_tensor *t) {
    wrapped *w = ctx;
    return w->base->find_tensor(w->base->ctx, t);
}

static bool w_key_at(void *ctx, size_t i, ggl_str *name) {
    wrapped *w = ctx;
    if (i < (size_t)w->n) {
        *name = (ggl_str){w->key[i].name, strlen(w->key[i].name)};
        return true;
    }
    return w->base->key_at(w->base->ctx, i - (size_t)w->n, name);
}

static bool w_tensor_at(void *ctx, size_t i, ggl_str *name) {
    wrapped *w = ctx;
    return w->base->tensor_at(w->base->ctx, i, name);
}

/* Adds {family}.name, unless it is there. */
bool w_add(wrapped *w, const char *name, value v) {
    llm_arch_key k;
    added *a = &w->key[w->n];
    snprintf(a->name, sizeof a->name, "%.40s.%.80s", w->family, name);
    a->v = v;
    bool there = w_find_key(w, a->name, &k);
    w->n += !there;
    return !there;
}

value number(double x) {
    return (value){.type = LLM_ARCH_NUMBER, .number = x};
}

void w_init(wrapped *w, const llm_arch_source *base, const char *family) {
    w->base = base;
    w->family = family;
    w->n = 0;
    w->source = (llm_arch_source){.ctx = w,
                                  .name = "wrapped",
                                  .find_key = w_find_key,
                                  .get_item = w_get_item,
                                  .find_tensor = w_find_tensor,
                                  .key_at = w_key_at,
                                  .tensor_at = w_tensor_at};
    w_add(w, "context_length", number(112));
}

ggl_status build(const llm_arch *arch, const llm_arch_source *source, ggl_graph **out,
                 ggl_error *err) {
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = TOY_CTX;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_status s = llm_arch_build(arch, source, NULL, g, NULL, err);
    if (s == GGL_OK)
        s = ggl_graph_finish(g, err);
    if (s != GGL_OK) {
        ggl_graph_free(g);
        g = NULL;
    }
    *out = g;
    return s;
}

bool same_graph(const ggl_graph *a, const ggl_graph *b) {
    if (ggl_graph_n_nodes(a) != ggl_graph_n_nodes(b))
        return false;
    for (int i = 0; i < ggl_graph_n_nodes(a); i++) {
        const ggl_tensor *x = ggl_graph_node(a, i), *y = ggl_graph_node(b, i);
        if (x->op != y->op || x->id != y->id || x->n_src != y->n_src || x->n_num != y->n_num ||
            memcmp(x->ne, y->ne, sizeof x->ne) != 0 ||
            (x->n_num && memcmp(x->num, y->num, (size_t)x->n_num * sizeof *x->num) != 0))
            return false;
        for (int k = 0; k < x->n_src; k++)
            if ((x->src[k] ? x->src[k]->id : -1) != (y->src[k] ? y->src[k]->id : -1))
                return false;
    }
    return true;
}
