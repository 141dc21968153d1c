/* ggl/compose.h against the prelude: a descriptor's graph is built again, node by node, with each of
 * the prelude's ops made by its function of compose.h. Both graphs must be the same (operators,
 * numbers, shapes, order), and so must their results, bit for bit. */
#include <math.h>

#include "arch_test.h"
#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/program.h"
#include "ggl/sched.h"
#include "test.h"

/* --- what is compared ------------------------------------------------------------------------- */

/* Calls the function of a composite with the sources and numbers of a call. */
typedef ggl_tensor *compose_fn(ggl_graph *g, ggl_tensor *const *x, const double *num);

#define ONE(name)                                                                                  \
    static ggl_tensor *make_##name(ggl_graph *g, ggl_tensor *const *x, const double *num) {        \
        (void)num;                                                                                 \
        return ggl_##name(g, x[0]);                                                                \
    }
#define ARGS(name, ...)                                                                            \
    static ggl_tensor *make_##name(ggl_graph *g, ggl_tensor *const *x, const double *num) {        \
        (void)num;                                                                                 \
        return ggl_##name(g, __VA_ARGS__);                                                         \
    }
ONE(relu)
ONE(silu)
ONE(gelu)
ONE(gelu_erf)
ONE(gelu_quick)
ONE(softplus)
ONE(softmax)
ONE(center)
ONE(normalised)
ONE(sum_squares)
ONE(hadamard)
ARGS(rms, x[0], num[0])
ARGS(l2, x[0], num[0])
ARGS(weighted, x[0], x[1])
ARGS(recent, x[0], (int64_t)num[0])
ARGS(short_conv, x[0], x[1])
ARGS(gated_delta_rule, x[0], x[1], x[2], x[3], x[4])
ARGS(ssm_scan, x[0], x[1], x[2], x[3], x[4])
ARGS(gated_linear_attention, x[0], x[1], x[2], x[3])
ARGS(wkv6, x[0], x[1], x[2], x[3], x[4])
ARGS(wkv7, x[0], x[1], x[2], x[3], x[4], x[5])

/* The function of each composite, and calls of it in a descriptor. x is [8], and these make more of
 * it; k [3, 8] is a weight. */
#define X44                "reshape(concat(x, cos(2 * x)), 4, 4)"
#define Y44                "reshape(concat(sin(3 * x), 1 - x), 4, 4)"
#define X64                "reshape(concat(x, cos(2 * x), x + 1), 6, 4)"
#define X42                "reshape(x, 4, 2)"
#define Y42                "reshape(cos(3 * x), 4, 2)"
#define D4                 "softplus(flat(sum(reshape(x, 2, 4))))"
#define ROW(ID, name, ...) [GGL_COMPOSITE_##ID] = {make_##name, {__VA_ARGS__}}
#define SHAPES(name, more)                                                                         \
    name "(" X42 more ")", name "(x" more ")", name "(reshape(x, 2, 2, 2)" more ")",               \
        name "(k + reshape(x, 1, 8)" more ")"
static const struct {
    compose_fn *make;
    const char *call[5];
} row[GGL_COMPOSITE_COUNT] = {
    ROW(RELU, relu, SHAPES("relu", "")),
    ROW(SILU, silu, SHAPES("silu", "")),
    ROW(GELU, gelu, SHAPES("gelu", "")),
    ROW(GELU_ERF, gelu_erf, SHAPES("gelu_erf", "")),
    ROW(GELU_QUICK, gelu_quick, SHAPES("gelu_quick", "")),
    ROW(SOFTPLUS, softplus, SHAPES("softplus", "")),
    ROW(SOFTMAX, softmax, SHAPES("softmax", "")),
    ROW(RMS, rms, SHAPES("rms", ", 0.00001")),
    ROW(CENTER, center, SHAPES("center", "")),
    ROW(L2, l2, SHAPES("l2", ", 0.001")),
    ROW(NORMALISED, normalised, SHAPES("normalised", "")),
    ROW(SUM_SQUARES, sum_squares, SHAPES("sum_squares", "")),
    ROW(HADAMARD, hadamard, "hadamard(" X44 ")", "hadamard(reshape(x, 8, 1))", "hadamard(" X42 ")",
        "hadamard(reshape(x, 1, 8))"),
    ROW(WEIGHTED, weighted, "weighted(" X64 ", reshape(" D4 ", 4))", "weighted(" X42 ", iota(2))",
        "weighted(k, x)"),
    ROW(RECENT, recent, "recent(x, 3)", "recent(x, 2)"),
    ROW(SHORT_CONV, short_conv, "short_conv(x, k)", "short_conv(x, reshape(x, 1, 8) + k)"),
    ROW(GATED_DELTA_RULE, gated_delta_rule,
        "gated_delta_rule(" X44 ", " Y44 ", " X64 ", -" D4 ", sigmoid(" D4 "))",
        "gated_delta_rule(" X42 ", " Y42 ", " X64 ", -softplus(" X44 "), sigmoid(" D4 "))",
        "gated_delta_rule(x, 1 - x, " X64 ", -" D4 ", sigmoid(" D4 "))"),
    ROW(SSM_SCAN, ssm_scan, "ssm_scan(" X64 ", " D4 ", -1 - iota(4), " X44 ", " Y44 ")",
        "ssm_scan(" X64 ", " D4 ", -1 - reshape(iota(4), 1, 4), " X42 ", " Y42 ")",
        "ssm_scan(" X64 ", " D4 ", -1 - reshape(iota(32), 8, 4), x, 1 - x)"),
    ROW(GATED_LINEAR_ATTENTION, gated_linear_attention,
        "gated_linear_attention(" X44 ", " Y44 ", " X64 ", sigmoid(" Y44 "))"),
    ROW(WKV6, wkv6, "wkv6(" X42 ", " Y42 ", " Y42 " * 2, sigmoid(" X42 "), " Y42 " + 1)"),
    ROW(WKV7, wkv7,
        "wkv7(" X42 ", sigmoid(" Y42 "), " X42 " * 2, " Y42 " + 1, -" X42 ", " Y42 " / 2)"),
};

static const char *const composite_name[GGL_COMPOSITE_COUNT] = {
#define COMPOSITE(ID, name, n_src, n_num, recurrent, fits) [GGL_COMPOSITE_##ID] = name,
#include "ggl/composites.def"
#undef COMPOSITE
};

/* --- building the graph again ----------------------------------------------------------------- */

/* Makes y of h. */
typedef ggl_tensor *part_fn(ggl_graph *g, ggl_tensor *h);

typedef struct copy {
    ggl_graph *g;
    ggl_tensor **of; /* by the id of the original */
} copy;

static ggl_tensor *copied(copy *c, const ggl_tensor *t);

static ggl_tensor *copy_leaf(copy *c, const ggl_tensor *t) {
    if (t->op == GGL_OP_INPUT)
        return ggl_graph_input(c->g, t->name, t->type, t->n_dims, t->ne, ggl_is_batched(t));
    if (t->op == GGL_OP_WEIGHT)
        return ggl_graph_weight(c->g, t->name, t->type, t->n_dims, t->ne, t->data);
    return ggl_graph_const(c->g, t->n_dims, t->ne, t->data);
}

static ggl_tensor *copy_node(copy *c, const ggl_tensor *t) {
    ggl_tensor *src[8] = {NULL};
    int n = 0;
    ggl_composite k = t->op == GGL_OP_CALL ? ggl_composite_of(t) : GGL_COMPOSITE_NONE;
    for (int i = 0, at = 0; t->op != GGL_OP_CALL && i < ggl_op_get(t->op).n_params; i++) {
        ggl_param p = ggl_op_param(t->op, i);
        if (p.kind == GGL_PARAM_TENSOR)
            src[n++] = t->src[at] ? copied(c, t->src[at]) : NULL;
        at += p.kind != GGL_PARAM_NUMBER;
    }
    if (t->op != GGL_OP_CALL)
        return ggl_graph_op(c->g, t->op, src, n, t->num, t->n_num);
    for (; n < t->n_src; n++)
        src[n] = copied(c, t->src[n]);
    return CHECK_MSG(row[k].make, "%s is no composite", t->call) ? row[k].make(c->g, src, t->num)
                                                                 : NULL;
}

static ggl_tensor *copied(copy *c, const ggl_tensor *t) {
    if (!c->of[t->id])
        c->of[t->id] = ggl_is_leaf(t) ? copy_leaf(c, t) : copy_node(c, t);
    return c->of[t->id];
}

static const ggl_tensor *node_named(const ggl_graph *g, const char *name) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        if (ggl_graph_node(g, i)->name && strcmp(ggl_graph_node(g, i)->name, name) == 0)
            return ggl_graph_node(g, i);
    return NULL;
}

/* Copies the nodes in their order. make not NULL: it makes y of h, instead of the nodes between. */
static void copy_nodes(copy *c, const ggl_graph *g, part_fn *make) {
    const ggl_tensor *h = make ? node_named(g, "h") : NULL, *y = make ? node_named(g, "y") : NULL;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (h && y && t->id > h->id && t->id <= y->id) {
            if (t == y)
                c->of[y->id] = make(c->g, c->of[h->id]);
        } else if (!ggl_is_leaf(t)) {
            copied(c, t);
        }
    }
}

/* The graph g with the prelude's ops made by compose.h, and y by `make`; NULL: reported. */
static ggl_graph *again(const ggl_graph *g, part_fn *make) {
    copy c = {ggl_graph_new(ggl_graph_get_params(g)),
              calloc((size_t)ggl_graph_n_ids(g), sizeof *c.of)};
    ggl_error err = {0};
    for (int i = 0; i < ggl_graph_n_inputs(g); i++)
        if (strcmp(ggl_graph_get_input(g, i)->name, "page") != 0) /* ggl_graph_finish adds it */
            copied(&c, ggl_graph_get_input(g, i));
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        if (ggl_graph_node(g, i)->op == GGL_OP_WEIGHT)
            copied(&c, ggl_graph_node(g, i));
    copy_nodes(&c, g, make);
    for (int i = 0; i < ggl_graph_n_outputs(g); i++)
        ggl_graph_output(c.g, ggl_graph_get_output(g, i)->name,
                         copied(&c, ggl_graph_get_output(g, i)));
    free(c.of);
    if (CHECK_OK(ggl_graph_finish(c.g, &err), &err))
        return c.g;
    ggl_graph_free(c.g);
    return NULL;
}

/* --- a graph as text -------------------------------------------------------------------------- */

/* Nodes that are needed, in order, numbered from 0 on. */
typedef struct listing {
    char *at;
    size_t size;
    FILE *out;
    int *number; /* by id */
    int n;
} listing;

static void put_shape(listing *l, const ggl_tensor *t) {
    fprintf(l->out, " type %d, %d dims", (int)t->type, t->n_dims);
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        fprintf(l->out, " %" PRId64, t->ne[d]);
}

static void put_source(listing *l, const ggl_tensor *t) {
    fprintf(l->out, ", ");
    if (!t)
        fprintf(l->out, "none");
    else if (t->op == GGL_OP_CONST)
        for (int64_t i = 0; i < ggl_count(t); i++)
            fprintf(l->out, "%a ",
                    t->type == GGL_F64 ? ((const double *)t->data)[i]
                                       : (double)((const float *)t->data)[i]);
    else if (ggl_is_leaf(t))
        fprintf(l->out, "%s", t->name);
    else
        fprintf(l->out, "#%d", l->number[t->id]);
}

static void put_body(listing *l, const ggl_body *body);

static void put_node(listing *l, const ggl_tensor *t) {
    l->number[t->id] = l->n++;
    fprintf(l->out, "#%d %s %s", l->number[t->id], ggl_op_get(t->op).name, t->call ? t->call : "");
    put_shape(l, t);
    for (int i = 0; i < t->n_src; i++)
        put_source(l, t->src[i]);
    for (int i = 0; i < t->n_num; i++)
        fprintf(l->out, " %a", t->num[i]);
    fprintf(l->out, "\n");
    if (t->body)
        put_body(l, t->body);
}

static void put_body(listing *l, const ggl_body *body) {
    fprintf(l->out, "{%s\n", body->recurrent ? " recurrent" : "");
    for (int i = 0; i < body->n_param; i++)
        put_node(l, body->param[i]);
    for (int i = 0; i < body->n_node; i++)
        if (body->node[i]->needed)
            put_node(l, body->node[i]);
    fprintf(l->out, "} is");
    put_source(l, body->result);
    fprintf(l->out, "\n");
}

/* The caller frees it. */
static char *text_of(const ggl_graph *g) {
    listing l = {.number = calloc((size_t)ggl_graph_n_ids(g), sizeof *l.number)};
    l.out = open_memstream(&l.at, &l.size);
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        if (!ggl_is_leaf(ggl_graph_node(g, i)) && ggl_graph_node(g, i)->needed)
            put_node(&l, ggl_graph_node(g, i));
    fclose(l.out);
    free(l.number);
    return l.at;
}

static bool same_text(const char *call, const ggl_graph *a, const ggl_graph *b) {
    char *x = text_of(a), *y = text_of(b);
    size_t at = 0, line = 0;
    while (x[at] && x[at] == y[at])
        if (x[at++] == '\n')
            line = at;
    bool same = CHECK_MSG(
        x[at] == y[at], "%s: the descriptor's node, then compose.h's:\n  %.*s\n  %.*s", call,
        (int)strcspn(x + line, "\n"), x + line, (int)strcspn(y + line, "\n"), y + line);
    free(x);
    free(y);
    return same;
}

/* --- results ---------------------------------------------------------------------------------- */

enum { N = 6, RUNS = 2, MOST = 64 }; /* elements of a batch, batches, numbers of an element */

/* Runs batches of two sequences that take turns; y[run][n][count]. */
static bool run(ggl_graph *g, const char *backend, float *y, ggl_error *err) {
    ggl_backend *b = NULL;
    ggl_sched *s = NULL;
    int32_t token[N], pos[N], slot[N];
    bool ok = ggl_backend_open(&b, backend, NULL, err) == GGL_OK &&
              ggl_sched_new(&s, g,
                            &(ggl_sched_params){
                                .size = sizeof(ggl_sched_params), .backend = &b, .n_backends = 1},
                            err) == GGL_OK &&
              ggl_sched_alloc(s, err) == GGL_OK && ggl_sched_clear_slot(s, 0, err) == GGL_OK &&
              ggl_sched_clear_slot(s, 1, err) == GGL_OK;
    for (int r = 0; ok && r < RUNS; r++) {
        for (int i = 0; i < N; i++)
            token[i] = (7 * r + 3 * i) % 10, pos[i] = r * N / 2 + i / 2, slot[i] = i % 2;
        const struct {
            const char *name;
            const int32_t *data;
        } in[] = {{"token", token}, {"pos", pos}, {"slot", slot}};
        for (int i = 0; ok && i < 3; i++)
            ok = !ggl_graph_find_input(g, in[i].name) ||
                 ggl_sched_set(s, in[i].name, in[i].data, N * sizeof(int32_t), N, err) == GGL_OK;
        ok = ok && ggl_sched_run(s, N, NULL, 0, err) == GGL_OK;
        for (int k = 0; ok && k < ggl_graph_n_outputs(g); k++) {
            const size_t count = N * (size_t)ggl_count(ggl_graph_get_output(g, k));
            memcpy(y, ggl_sched_output(s, k), count * sizeof *y);
            y += count;
        }
    }
    ggl_sched_free(s);
    if (b)
        ggl_backend_close(b);
    return CHECK_MSG(ok, "%s", err->msg);
}

static void same_results(const char *call, ggl_graph *a, ggl_graph *b) {
    static const char *const backend[] = {"cpu", "reference"};
    static float x[RUNS * N * MOST * 4], y[RUNS * N * MOST * 4];
    ggl_error err = {0};
    for (int k = 0; k < 2; k++) {
        memset(x, 0, sizeof x);
        memset(y, 1, sizeof y);
        if (!run(a, backend[k], x, &err) || !run(b, backend[k], y, &err))
            return;
        size_t n = 0;
        for (int i = 0; i < ggl_graph_n_outputs(a); i++)
            n += RUNS * N * (size_t)ggl_count(ggl_graph_get_output(a, i));
        CHECK_MSG(n <= sizeof x / sizeof *x && memcmp(x, y, n * sizeof *x) == 0,
                  "%s: other results on %s: %g, %g", call, backend[k], (double)x[0], (double)y[0]);
    }
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Builds a descriptor whose outputs are the logits and y. The weights, which are numbers of m, get
 * values. NULL: reported. */
static ggl_graph *build(const model *m, const char *text) {
    ggl_error err = {0};
    llm_arch *arch = NULL;
    llm_arch_source src = llm_arch_source_gguf(m->file);
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = 64;
    p.n_slots = 2;
    p.n_batch = N;
    ggl_graph *g = ggl_graph_new(&p);
    bool ok = llm_arch_parse(&arch, text, strlen(text), "t.arch", &err) == GGL_OK &&
              llm_arch_build(arch, &src, NULL, g, NULL, &err) == GGL_OK;
    for (int i = 0; ok && i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        if (t->name && strcmp(t->name, "y") == 0)
            ggl_graph_output(g, "y", t);
        for (size_t k = 0; t->op == GGL_OP_WEIGHT && k < t->size / sizeof(float); k++)
            ((float *)t->data)[k] = (float)sin((double)(k * k + 3 * k + 1)) / 2;
    }
    ok = ok && ggl_graph_finish(g, &err) == GGL_OK;
    llm_arch_free(arch);
    if (CHECK_MSG(ok, "%s\n%s", text, err.msg))
        return g;
    ggl_graph_free(g);
    return NULL;
}

/* Compares the two graphs of a descriptor with these lines. */
static void compare(const char *top, const char *lines, const char *weights, part_fn *make) {
    char *text = arch_text(top, lines);
    ggl_error err = {0};
    ggl_backend *b = NULL;
    model m;
    REQUIRE(model_new(&m, weights, "model.gguf"));
    ggl_graph *g = build(&m, text), *g2 = g ? again(g, make) : NULL;
    if (g && g2 && CHECK_OK(ggl_backend_open(&b, "reference", NULL, &err), &err) &&
        (!make || (CHECK_OK(ggl_graph_fold(g, b, &err), &err) &&
                   CHECK_OK(ggl_graph_fold(g2, b, &err), &err))) &&
        same_text(lines, g, g2))
        same_results(lines, g, g2);
    if (b)
        ggl_backend_close(b);
    ggl_graph_free(g);
    ggl_graph_free(g2);
    model_free(&m);
    free(text);
}

LONG_TEST(each_composite_is_the_prelude_s) {
    for (int k = GGL_COMPOSITE_NONE + 1; k < GGL_COMPOSITE_COUNT; k++) {
        if (!CHECK_MSG(row[k].make,
                       "the composite '%s' has no function: declare ggl_%s in "
                       "ggml-lite/include/ggl/compose.h, define it in ggml-lite/graph/compose.c, "
                       "and add to row[] in tests/archs/compose.c: ROW(.., %s, \"%s(x)\")",
                       composite_name[k], composite_name[k], composite_name[k], composite_name[k]))
            continue;
        for (int i = 0; row[k].call[i]; i++) {
            const char *call = row[k].call[i];
            char lines[1024];
            snprintf(lines, sizeof lines, "y = 1 * %s\nx = x + sum(flat(y))\n", call);
            bool w = strstr(call, "(k") || strstr(call, " k)");
            compare(w ? "k [3, 8]\n" : "", lines, w ? "k.weight [3, 8]\n" : "", NULL);
        }
    }
}

/* An op of the prelude that is not in composites.def would be passed over above. */
TEST(each_op_of_the_prelude_is_a_composite) {
    FILE *in = fopen(GGL_SOURCE_DIR "/models/archs/prelude.arch", "r");
    REQUIRE(in);
    char line[1024], name[64];
    int n = 0;
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "op %63[a-z0-9_]", name) != 1)
            continue;
        bool found = false;
        for (int k = GGL_COMPOSITE_NONE + 1; k < GGL_COMPOSITE_COUNT; k++)
            found = found || strcmp(composite_name[k], name) == 0;
        CHECK_MSG(found,
                  "the op '%s' of prelude.arch has no row in ggml-lite/include/ggl/composites.def",
                  name);
        n++;
    }
    fclose(in);
    CHECK_INT(n, GGL_COMPOSITE_COUNT - GGL_COMPOSITE_NONE - 1);
}

/* --- parts that are no composite -------------------------------------------------------------- */

static ggl_tensor *weight(ggl_graph *g, const char *name) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        if (t->op == GGL_OP_WEIGHT && strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

#define PART(name, expression)                                                                     \
    static ggl_tensor *part_##name(ggl_graph *g, ggl_tensor *h) {                                  \
        return expression;                                                                         \
    }
PART(mean, ggl_mean(g, h))
PART(softcap, ggl_softcap(g, h, 30))
PART(clamp, ggl_clamp(g, h, -0.5, 0.25))
PART(flat, ggl_unary(g, GGL_OP_TANH, ggl_flat(g, ggl_reshape(g, h, 3, (int64_t[]){2, 2, 2}))))
PART(heads, ggl_unary(g, GGL_OP_TANH, ggl_heads(g, h, 2)))
PART(rope, ggl_binary(g, GGL_OP_ROPE_HALF, ggl_heads(g, h, 2), ggl_rope_freqs(g, 4, 10000)))
PART(rms, ggl_rms_norm(g, h, NULL, NULL, 1e-5))
PART(rms_w, ggl_rms_norm(g, h, weight(g, "w.weight"), NULL, 1e-5))
PART(layer_norm,
     ggl_layer_norm(g, ggl_heads(g, h, 1), weight(g, "w.weight"), weight(g, "w.bias"), 1e-5))
PART(swiglu, ggl_swiglu(g, h, weight(g, "a.weight"), weight(g, "b.weight"), weight(g, "c.weight")))
PART(geglu, ggl_geglu(g, h, weight(g, "a.weight"), weight(g, "b.weight"), weight(g, "c.weight")))

static ggl_tensor *attention(ggl_graph *g, ggl_tensor *h, const ggl_attention_params *p) {
    ggl_tensor *q = ggl_graph_op(g, GGL_OP_CONCAT, (ggl_tensor *[]){h, h}, 2, (double[]){0}, 1);
    q = ggl_heads(g, q, 4);
    ggl_tensor *k = ggl_heads(g, ggl_binary(g, GGL_OP_ADD, h, ggl_graph_number(g, 1)), 2);
    ggl_tensor *v = ggl_heads(g, ggl_binary(g, GGL_OP_MUL, h, h), 2);
    return ggl_attention(g, q, k, v, p);
}
PART(attention, attention(g, h, NULL))
PART(attention_all_options, attention(g, h,
                                      &(ggl_attention_params){.scale = 0.25,
                                                              .window = 3,
                                                              .cap = 5,
                                                              .sinks = weight(g, "s.weight"),
                                                              .alibi = weight(g, "t.weight")}))

#define THREE                                                                                      \
    "a [8, 12]\nb [8, 12]\nc [12, 8]\n", "a.weight [8, 12]\nb.weight [8, 12]\nc.weight [12, 8]\n"
#define ATTENDS "y = attention(heads(concat(h, h), 4), heads(h + 1, 2), heads(h * h, 2)"
static const struct {
    part_fn *make;
    const char *line, *top, *weights;
} part[] = {
    {part_mean, "y = mean(h)", "", ""},
    {part_softcap, "y = softcap(h, 30)", "", ""},
    {part_clamp, "y = clamp(h, -0.5, 0.25)", "", ""},
    {part_flat, "y = tanh(flat(reshape(h, 2, 2, 2)))", "", ""},
    {part_heads, "y = tanh(heads(h, 2))", "", ""},
    {part_rope, "y = rope_half(heads(h, 2), freqs(4, 10000))", "", ""},
    {part_rms, "y = rms_norm(h, none, 0.00001)", "", ""},
    {part_rms_w, "y = rms_norm(h, w, 0.00001)", "w [8]\n", "w.weight [8]\n"},
    {part_layer_norm, "y = layer_norm(heads(h, 1), w, 0.00001)", "w [8] bias\n",
     "w.weight [8]\nw.bias [8]\n"},
    {part_swiglu, "y = swiglu(h, a, b, c)", THREE},
    {part_geglu, "y = linear(gelu(linear(h, a)) * linear(h, b), c)", THREE},
    {part_attention, ATTENDS ")", "", ""},
    {part_attention_all_options,
     ATTENDS ", scale = 0.25, window = 3, cap = 5, sinks = s, alibi = t)", "s [4]\nt [4]\n",
     "s.weight [4]\nt.weight [4]\n"},
};

TEST(other_parts_are_the_prelude_s) {
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        char lines[1024];
        snprintf(lines, sizeof lines, "h = 3 * x\n%s\nx = x + sum(flat(y))\n", part[k].line);
        compare(part[k].top, lines, part[k].weights, part[k].make);
    }
}
