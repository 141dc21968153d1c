/* Grammars: the expressions and their translation. */
#include "grammar.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "translate.h"

static bool copy_array(void *to, size_t *cap, const void *from, size_t n, size_t size) {
    if (!ggl_grow(to, cap, n, size))
        return false;
    if (n > 0)
        memcpy(*(void **)to, from, n * size);
    return true;
}

/* Copies what translation needs: everything but the table for finding nodes. */
static bool copy_exprs(llm_exprs *to, const llm_exprs *g) {
    if (!copy_array(&to->node, &to->cap_nodes, g->node, g->n_nodes, sizeof *g->node) ||
        !copy_array(&to->arg, &to->cap_args, g->arg, g->n_args, sizeof *g->arg) ||
        !copy_array(&to->range, &to->cap_ranges, g->range, g->n_ranges, sizeof *g->range) ||
        !ggl_grow(&to->rule, &to->cap_rules, g->n_rules, sizeof *g->rule))
        return false;
    to->n_nodes = g->n_nodes;
    to->n_args = g->n_args;
    to->n_ranges = g->n_ranges;
    for (; to->n_rules < g->n_rules; to->n_rules++) {
        const llm_rule *r = &g->rule[to->n_rules];
        const size_t n = strlen(r->name);
        char *name = ggl_calloc(n + 1, 1);
        if (!name)
            return false;
        memcpy(name, r->name, n);
        to->rule[to->n_rules] = (llm_rule){name, r->body};
    }
    return true;
}

static ggl_status compile(llm_grammar *m, llm_exprs *g, int32_t root, ggl_error *err) {
    if (g->status != GGL_OK)
        return g->use.is_exceeded ? llm_budget_fail(&g->use, "the grammar", err)
                                  : ggl_fail(err, g->status, "the grammar cannot be built: %s",
                                             ggl_status_text(g->status));
    if (!copy_exprs(&m->exprs, g))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    m->root = root;
    m->exprs.use = m->pool.use = g->use;
    ggl_status st = llm_translate(&m->pool, &m->exprs, root, NULL, &m->start, err);
    g->use.steps = m->pool.use.steps;
    if (st == GGL_OK && m->start == LLM_BX_NONE)
        st = ggl_fail(err, GGL_FORMAT, "there is no text that fits the grammar");
    return st;
}

ggl_status llm_grammar_compile(llm_grammar **out, llm_exprs *g, int32_t root, ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    if (!*out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    ggl_status st = compile(*out, g, root, err);
    if (st != GGL_OK) {
        llm_grammar_free(*out);
        *out = NULL;
    }
    return st;
}

size_t llm_grammar_size(const llm_grammar *g) {
    return sizeof *g + llm_exprs_size(&g->exprs) + llm_bx_pool_size(&g->pool);
}

void llm_grammar_free(llm_grammar *g) {
    if (!g)
        return;
    llm_exprs_fini(&g->exprs);
    llm_bx_pool_fini(&g->pool);
    ggl_free(g);
}
