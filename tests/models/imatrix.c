/* Importance matrices of all families: what is collected while made-up models run is what their products
 * read, node by node on the same backend, summed by plain loops here. */
#include <math.h>

#include "measure/node_run.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "measure/collect.h"

#include "sample.h"
#include "test.h"
#include "toy_run.h"
#include "llm/internal/text_inputs.h"

enum { N = 12, CHUNK = 5 };

/* --- what it must be -------------------------------------------------------------------------- */

typedef struct wanted {
    char weight[128];
    int64_t n_col, n_mat;
    bool experts;
    double *sum;               /* [n_mat][n_col] */
    double *count;             /* [n_mat] */
    const ggl_tensor *seen[8]; /* values and indices that were added */
    int n_seen;
} wanted;

typedef struct reckoning {
    wanted w[512];
    int n;
    int64_t n_products;
} reckoning;

static wanted *wanted_for(reckoning *r, const ggl_tensor *root, bool experts) {
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->w[i].weight, root->name) == 0)
            return &r->w[i];
    wanted *w = &r->w[r->n++];
    *w = (wanted){.n_col = root->ne[0], .n_mat = root->ne[2] * root->ne[3], .experts = experts};
    snprintf(w->weight, sizeof w->weight, "%s", root->name);
    w->sum = calloc((size_t)(w->n_col * w->n_mat), sizeof *w->sum);
    w->count = calloc((size_t)w->n_mat, sizeof *w->count);
    return w;
}

static bool is_new(wanted *w, const ggl_tensor *x, const ggl_tensor *index) {
    for (int i = 0; i < w->n_seen; i += 2)
        if (w->seen[i] == x && w->seen[i + 1] == index)
            return false;
    if (w->n_seen + 2 <= 8) {
        w->seen[w->n_seen++] = x;
        w->seen[w->n_seen++] = index;
    }
    return true;
}

/* One product: row (a, b) of its result, [.., A, B], is of row (a, b) of x, and of matrix (a, b) of the weight, where
 * the latter have only one row, or matrix, that is it. */
static void reckon(reckoning *r, const ggl_tensor *y, const float *x, const int32_t *index) {
    const ggl_tensor *from = y->src[0], *w = ggl_read(y, 1), *root = w->view_of;
    wanted *to = wanted_for(r, root, index != NULL);
    if (!is_new(to, from, index ? ggl_read(y, 3) : NULL))
        return;
    const int64_t k = index ? ggl_count(ggl_read(y, 3)) : 1;
    for (int64_t t = 0; t < N; t++)
        for (int64_t b = 0; b < y->ne[2]; b++)
            for (int64_t a = 0; a < y->ne[1]; a++) {
                const int64_t row = t * from->ne[1] * from->ne[2] +
                                    (from->ne[2] > 1 ? b : 0) * from->ne[1] +
                                    (from->ne[1] > 1 ? a : 0);
                const int64_t mat = index           ? index[t * k + (k > 1 ? a : 0)]
                                    : to->n_mat > 1 ? (w->ne[2] > 1 ? a : 0)
                                                    : 0;
                to->count[mat]++;
                for (int64_t i = 0; i < to->n_col; i++)
                    to->sum[mat * to->n_col + i] += pow((double)x[row * to->n_col + i], 2);
            }
}

/* The values of the node's operand; NULL: it is absent, or no value. */
static void *value_of(node_device *d, const ggl_tensor *t, ggl_error *err) {
    if (!t || !llm_node_is_placed(d->m, t))
        return NULL;
    void *v = calloc(llm_node_count(d->m, t), 4);
    if (llm_node_device_get(d, t, v, err) != GGL_OK) {
        free(v);
        return NULL;
    }
    return v;
}

static bool is_collected(const ggl_tensor *t) {
    const ggl_tensor *w = t->op == GGL_OP_LINEAR ? ggl_read(t, 1) : NULL;
    return w && w->view_of && ggl_is_batched(t->src[0]) &&
           strcmp(w->view_of->name, "output.weight") != 0 &&
           strcmp(w->view_of->name, "token_embd.weight") != 0;
}

static void put_input(node_device *d, const char *name, const int32_t *data, ggl_error *err) {
    const ggl_tensor *t = ggl_graph_find_input(d->m->graph, name);
    if (t)
        CHECK_OK(llm_node_device_put(d, t, data, err), err);
}

/* Runs the graph node by node. */
static void reckon_all(reckoning *r, const toy_run *run, ggl_backend *b) {
    node_map m;
    node_device d;
    ggl_error err = {0};
    int32_t token[N], value[N];
    *r = (reckoning){0};
    for (int i = 0; i < N; i++) { /* the text of toy_eval */
        token[i] = (int32_t)((uint32_t)i * 2654435761u >> 7) % (int32_t)run->n_tokens;
        if (token[i] < 0)
            token[i] += (int32_t)run->n_tokens;
    }
    if (!CHECK_OK(llm_node_map_init(&m, run->graph, N, &err), &err))
        return;
    if (CHECK_OK(llm_node_device_init(&d, &m, b, &err), &err)) {
        const llm_text_inputs x = {.token = token, .n = N};
        for (int i = 0; i < ggl_graph_n_inputs(run->graph); i++) {
            const ggl_tensor *t = ggl_graph_get_input(run->graph, i);
            if (!ggl_is_batched(t) || !t->needed)
                continue;
            llm_text_input(&x, t, value);
            put_input(&d, t->name, value, &err);
        }
        if (m.page)
            put_input(&d, "page", m.page, &err);
    }
    for (int i = 0; i < m.n_nodes; i++) {
        ggl_tensor *t = m.node[i];
        if (!CHECK_OK(llm_node_device_run(&d, t, &err), &err))
            break;
        if (!is_collected(t))
            continue;
        float *x = value_of(&d, t->src[0], &err);
        int32_t *index = value_of(&d, ggl_n_reads(t) > 3 ? ggl_read(t, 3) : NULL, &err);
        if (CHECK(x))
            reckon(r, t, x, index);
        r->n_products++;
        free(x);
        free(index);
    }
    llm_node_device_fini(&d);
    llm_node_map_fini(&m);
}

static void reckoning_fini(reckoning *r) {
    for (int i = 0; i < r->n; i++) {
        free(r->w[i].sum);
        free(r->w[i].count);
    }
}

/* --- comparing -------------------------------------------------------------------------------- */

static void compare(const char *what, const wanted *w, const imatrix_entry *e) {
    const int64_t n = w->n_col * w->n_mat;
    if (!CHECK_MSG(e, "%s: %s was not collected", what, w->weight) ||
        !CHECK_MSG(
            llm_imatrix_fits(e, w->n_col, w->n_mat) && (e->n_mat == (w->experts ? w->n_mat : 1)),
            "%s: %s has %d matrices of %d columns", what, w->weight, (int)e->n_mat, (int)e->n_col))
        return;
    for (int64_t i = 0; i < w->n_mat; i++)
        CHECK_MSG((double)e->count[w->experts ? i : 0] == w->count[i],
                  "%s: %s, matrix %d: %d rows, not %g", what, w->weight, (int)i,
                  (int)e->count[w->experts ? i : 0], w->count[i]);
    for (int64_t i = 0; i < n; i++)
        if (!CHECK_MSG(fabs((double)e->sum2[i] - w->sum[i]) <= 1e-6 * w->sum[i],
                       "%s: %s, column %d: %g, not %g", what, w->weight, (int)i, (double)e->sum2[i],
                       w->sum[i]))
            return;
}

/* True if no product reads the weight: a table of rows, a convolution, one number for each element. */
static bool is_no_matrix(const char *name) {
    static const char *const part[] = {
        "embd.weight", "output.weight", "norm.",          "conv1d", "conv.weight", "ssm_a",
        "ssm_d",       "time_mix_lerp", "time_mix_first", ".bias",  "gate_tid2eid"};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (strstr(name, part[i]))
            return true;
    return false;
}

/* All matrices of the model were collected. */
static void check_complete(const char *what, const ggl_graph *g, const imatrix *m) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *w = ggl_graph_node(g, i);
        if (w->op == GGL_OP_WEIGHT && w->n_dims >= 2 && w->needed)
            CHECK_MSG(is_no_matrix(w->name) || llm_imatrix_find(m, w->name), "%s: nothing for %s",
                      what, w->name);
    }
}

/* Runs N tokens in pieces, and returns what was collected. */
static imatrix *collect(const char *what, toy_model *t, ggl_backend *const *b, int n_backends,
                        ggl_backend *reference, int chunk, reckoning *r) {
    collector *c = NULL;
    collected *sums = NULL;
    imatrix *m = NULL;
    toy_run run;
    ggl_error err = {0};
    const char *missed;
    if (!CHECK_OK(llm_collector_new(&c, false, 0, &err), &err))
        return NULL;
    t->watch = llm_collector_watch(c);
    const bool ok =
        toy_start(&run, t, b, n_backends, reference, n_backends > 1 ? 1 : -1, GGL_F32, &err);
    if (CHECK_MSG(ok, "%s: %s", what, err.msg) &&
        CHECK_OK(llm_collected_new(&sums, c, &err), &err)) {
        llm_collector_into(c, sums);
        CHECK(toy_prompt(&run, 0, N, chunk, NULL, &err));
        CHECK_OK(ggl_sched_finish(run.sched, &err), &err);
        CHECK_OK(llm_collector_check(c, sums, &err), &err);
        CHECK_MSG(llm_collector_n_missed(c, &missed) == 0, "%s: %s is missed", what, missed);
        CHECK_OK(llm_imatrix_new(&m, N, &err), &err);
        CHECK_OK(llm_collector_put(c, sums, m, &err), &err);
        check_complete(what, run.graph, m);
        if (r && !ggl_graph_find_input(run.graph, "stage.token")) /* whose text is another one */
            reckon_all(r, &run, b[0]);
        toy_stop(&run);
    }
    llm_collected_free(sums);
    llm_collector_free(c);
    t->watch = NULL;
    return m;
}

static void check_same(const char *what, const imatrix *a, const imatrix *b) {
    if (!a || !b || !CHECK_INT(llm_imatrix_n(a), llm_imatrix_n(b)))
        return;
    for (size_t i = 0; i < llm_imatrix_n(a); i++) {
        const imatrix_entry *x = llm_imatrix_at(a, i), *y = llm_imatrix_find(b, x->name.s);
        CHECK_MSG(
            y && memcmp(x->sum2, y->sum2, (size_t)(x->n_col * x->n_mat) * sizeof *x->sum2) == 0 &&
                memcmp(x->count, y->count, (size_t)x->n_mat * sizeof *x->count) == 0,
            "%s: %s has other bits in pieces, on two backends", what, x->name.s);
    }
}

static void check_toy(toy_model *t, ggl_backend *const *cpu, ggl_backend *reference) {
    char what[512];
    reckoning *r = calloc(1, sizeof *r);
    snprintf(what, sizeof what, "%s (%s)", llm_arch_name(t->arch), llm_arch_toy_text(t->toy));
    imatrix *m = collect(what, t, cpu, 1, reference, N, r),
            *split = collect(what, t, cpu, 2, reference, CHUNK, NULL);
    for (int i = 0; m && i < r->n; i++)
        compare(what, &r->w[i], llm_imatrix_find(m, r->w[i].weight));
    CHECK_MSG(m && (size_t)r->n <= llm_imatrix_n(m) && (r->n > 0 || llm_arch_reads_text(t->arch)),
              "%s: %d weights", what, r->n);
    check_same(what, m, split);
    llm_imatrix_free(m);
    llm_imatrix_free(split);
    reckoning_fini(r);
    free(r);
}

static void check_descriptors(void) {
    ggl_backend *cpu[2] = {NULL}, *reference = NULL;
    ggl_error err = {0};
    const char *name, *text;
    size_t n;
    for (int i = 0; i < 2; i++)
        REQUIRE_OK(ggl_backend_open(&cpu[i], "cpu",
                                    &(ggl_backend_params){.size = sizeof(ggl_backend_params),
                                                          .n_threads = 1 + i},
                                    &err),
                   &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (int variant = 0; variant < 2; variant++) {
            toy_model t;
            if (!sampled(k, TEST_SANITIZED ? 12 : 40) || !strstr(text, "\nlogits ="))
                continue; /* the prelude has no logits */
            if (!CHECK_OK(toy_open(&t, name, text, n, variant, &err) ? GGL_OK : GGL_IO, &err))
                continue;
            if (!llm_arch_reads_rows(t.arch)) /* of sound: no text makes these */
                check_toy(&t, cpu, reference);
            toy_close(&t);
        }
    for (int i = 0; i < 2; i++)
        ggl_backend_close(cpu[i]);
    ggl_backend_close(reference);
}

/* Other families each day. */
TEST(all_families) {
    check_descriptors();
}
