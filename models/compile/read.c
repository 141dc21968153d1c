/* What tokens read of a stage, for a program that keeps it itself, as one that trains does: the stage and the tokens are then graphs of
 * their own. The stage's graph has an output, the keys and values of each of its rows. In the tokens' graph attention reads these from weights, so
 * that it is made of products, which have gradients: a sequence and a head of its keys are a matrix of a stack, which the queries of that head pick,
 * as tokens pick experts. */
#include <math.h>
#include <stdio.h>

#include "compile.h"
#include "ggl/compose.h"
#include "ggl/internal/graph.h"

/* Returns the cache among those that tokens read; a new one is added. NULL: out of memory, reported. */
static arch_kept *kept(arch_eval *ev, const ggl_tensor *cache) {
    for (size_t k = 0; k < ev->n_kept; k++)
        if (ev->kept[k].cache == cache)
            return &ev->kept[k];
    if (!llm_arch_push(ev, &ev->kept, &ev->cap_kept, ev->n_kept + 1, sizeof *ev->kept))
        return NULL;
    ev->kept[ev->n_kept] = (arch_kept){.cache = cache};
    return &ev->kept[ev->n_kept++];
}

bool llm_arch_is_read(arch_eval *ev, ggl_op op, ggl_tensor *const *src) {
    return op == GGL_OP_ATTEND && src[ATTEND_KV] &&
           llm_arch_rows(ev, src[ATTEND_KV]) == ROWS_STAGE &&
           llm_arch_rows(ev, src[ATTEND_Q]) == ROWS_EACH;
}

bool llm_arch_note_read(arch_eval *ev, ggl_tensor *const *src) {
    return kept(ev, src[ATTEND_KV]) != NULL;
}

/* Returns the weight "read.K.WHAT" of the cache, whose data the program sets. */
static ggl_tensor *given(arch_eval *ev, const arch_kept *of, const char *what, int64_t n0,
                         int64_t n1, int64_t n2) {
    char name[64];
    snprintf(name, sizeof name, "read.%d.%s", (int)(of - ev->kept), what);
    return ggl_graph_weight(ev->g, name, GGL_F32, 3, (int64_t[]){n0, n1, n2}, NULL);
}

/* Returns the input that says which matrix of the stack each of h heads reads, if g heads have keys. */
static ggl_tensor *heads(arch_eval *ev, arch_place p, int64_t h, int64_t g) {
    char name[96];
    snprintf(name, sizeof name, "read.heads.%lld.%lld", (long long)h, (long long)g);
    return llm_arch_input(ev, p, name, GGL_I32, 1, &h);
}

/* 1 for each of the n rows that the token's text has, [n]. */
static ggl_tensor *seen(arch_eval *ev, arch_place p, int64_t n) {
    const double count = (double)n;
    ggl_tensor *end = llm_arch_input(ev, p, "read.end", GGL_I32, 0, NULL);
    return end ? ggl_binary(ev->g, GGL_OP_LT, ggl_graph_op(ev->g, GGL_OP_IOTA, NULL, 0, &count, 1),
                            ggl_unary(ev->g, GGL_OP_CAST, end))
               : NULL;
}

/* Scores of all rows, [n, h]; those that the text does not have are so low that their share is 0. */
static ggl_tensor *scores(arch_eval *ev, arch_place p, ggl_tensor *q, ggl_tensor *keys,
                          ggl_tensor *head, const double *num) {
    ggl_graph *g = ev->g;
    const double cap = num[ATTEND_CAP],
                 scale = isnan(num[ATTEND_SCALE]) ? 1 / sqrt((double)q->ne[0]) : num[ATTEND_SCALE];
    ggl_tensor *pick[] = {keys, head}, *s, *is = seen(ev, p, keys->ne[1]);
    s = ggl_linear(g, q, ggl_graph_op(g, GGL_OP_PICK, pick, 2, NULL, 0), NULL);
    s = ggl_binary(g, GGL_OP_MUL, s, ggl_graph_number(g, scale));
    if (!isnan(cap)) {
        s = ggl_unary(g, GGL_OP_TANH, ggl_binary(g, GGL_OP_DIV, s, ggl_graph_number(g, cap)));
        s = ggl_binary(g, GGL_OP_MUL, s, ggl_graph_number(g, cap));
    }
    ggl_tensor *src[] = {is, s, ggl_graph_number(g, -1e30)};
    return is && s ? ggl_graph_op(g, GGL_OP_WHERE, src, 3, NULL, 0) : NULL;
}

ggl_tensor *llm_arch_attend_given(arch_eval *ev, arch_place p, ggl_tensor *const *src, int n_src,
                                  const double *num) {
    const ggl_tensor *cache = src[1], *k = cache->src[CACHE_K], *v = cache->src[CACHE_V];
    ggl_tensor *q = src[0];
    const int64_t n = ev->params->n_read, n_heads = k->ne[1] * ev->params->n_reads;
    for (int i = 2; i < n_src; i++)
        if (src[i]) {
            llm_arch_error_hint(ev, GGL_UNSUPPORTED, p, NULL,
                                "attention to the rows of a stage by more than keys and values, "
                                "such as a bias, has no gradient");
            return NULL;
        }
    arch_kept *of = kept(ev, cache);
    if (!of)
        return NULL;
    if (!of->keys) {
        of->keys = given(ev, of, "keys", k->ne[0], n, n_heads);
        of->values = given(ev, of, "values", n, v->ne[0], n_heads);
    }
    ggl_tensor *head = heads(ev, p, q->ne[1], k->ne[1]);
    ggl_tensor *s = head && of->keys ? scores(ev, p, q, of->keys, head, num) : NULL,
               *pick[] = {of->values, head};
    ggl_tensor *t = s ? ggl_linear(ev->g, ggl_softmax(ev->g, s),
                                   ggl_graph_op(ev->g, GGL_OP_PICK, pick, 2, NULL, 0), NULL)
                      : NULL;
    if (t && q->n_dims == 1)
        t = ggl_graph_op(ev->g, GGL_OP_RESHAPE, &t, 1, (double[]){(double)v->ne[0]}, 1);
    if (!llm_arch_graph_ok(ev, p) || !t)
        return NULL;
    llm_arch_note_made(ev, p, t);
    for (int i = 0; i < 2;
         i++) /* what counts as read: the stage, too, and the queries, which a composite gets */
        if (!llm_arch_add_edge(ev, t, src[i]))
            return NULL;
    return llm_arch_set_rows(ev, t, ROWS_EACH) ? t : NULL;
}

/* Returns x as one row, behind those before; NULL as `before`: x alone. */
static ggl_tensor *append(arch_eval *ev, ggl_tensor *before, ggl_tensor *x) {
    const double n = (double)ggl_count(x), dim = 0;
    ggl_tensor *src[] = {before, ggl_graph_op(ev->g, GGL_OP_RESHAPE, &x, 1, &n, 1)};
    return before ? ggl_graph_op(ev->g, GGL_OP_CONCAT, src, 2, &dim, 1) : src[1];
}

ggl_tensor *llm_arch_read_rows(arch_eval *ev) {
    ggl_tensor *row = NULL;
    for (size_t i = 0; i < ev->n_kept; i++)
        for (int k = 0; k < 2; k++)
            row = append(ev, row, ev->kept[i].cache->src[k == 0 ? CACHE_K : CACHE_V]);
    if (!row)
        ev->status = ggl_fail(ev->err, GGL_UNSUPPORTED,
                              "%s: the model has no stage that its tokens read", ev->family);
    return row;
}
