/* A program's steps: in an order that works, side by side where nothing waits, none writing what
 * another of its wave needs. */
#include "ggl/program.h"

#include "test.h"

enum { WIDTH = 8, MOST = 64 };

static float weights[3][WIDTH * WIDTH];

static const char *no_call(const ggl_backend *b, const ggl_tensor *t) {
    (void)b, (void)t;
    return "there are no composites";
}

static bool overlap(const ggl_operand *a, const ggl_operand *b) {
    const size_t size = WIDTH * sizeof(float) * 4; /* a value of 4 of the batch */
    return a->region == b->region && a->region >= 0 && a->offset < b->offset + size &&
           b->offset < a->offset + size;
}

/* Three chains of x, each a product, an exp and a product, one after the other as one would write
 * them; then their sum. */
static ggl_graph *three_chains(void) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *sum = NULL;
    for (int i = 0; i < 3; i++) {
        ggl_tensor *w = ggl_graph_weight(g, (const char *[]){"a", "b", "c"}[i], GGL_F32, 2,
                                         (int64_t[]){WIDTH, WIDTH}, weights[i]);
        ggl_tensor *y = ggl_linear(g, x, w, NULL);
        y = ggl_graph_op(g, GGL_OP_EXP, &y, 1, NULL, 0);
        y = ggl_linear(g, y, w, NULL);
        sum = sum ? ggl_binary(g, GGL_OP_ADD, sum, y) : y;
    }
    ggl_graph_output(g, "y", sum);
    return g;
}

/* A program of all nodes; leaves and the outputs lie outside. */
static bool build(ggl_graph *g, ggl_program *p, bool (*in_place)(const ggl_tensor *)) {
    ggl_error err = {0};
    ggl_loc loc[MOST];
    ggl_tensor *node[MOST];
    int n = 0, n_io = 0;
    if (!CHECK_OK(ggl_graph_finish(g, &err), &err) || !CHECK(ggl_graph_n_ids(g) <= MOST))
        return false;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        bool outside = ggl_is_leaf(t);
        for (int k = 0; k < ggl_graph_n_outputs(g); k++)
            outside = outside || t == ggl_graph_get_output(g, k);
        loc[t->id] = (ggl_loc){outside ? GGL_REGION_IO : -1, outside ? (size_t)n_io++ * 4096 : 0};
        if (!ggl_is_leaf(t))
            node[n++] = t;
    }
    ggl_segment s = {.graph = g, .node = node, .n_node = n, .n_max = 4, .loc = loc, .n_slots = 1};
    const ggl_program_params params = {
        .refuses = no_call, .in_place = in_place, .value_type = GGL_F32};
    return CHECK_OK(ggl_program_build(p, &s, &params, &err), &err);
}

TEST(waves) {
    ggl_graph *g = three_chains();
    ggl_program p;
    REQUIRE(build(g, &p, NULL));
    CHECK_INT(p.n_step, 11);
    /* three products, three exps, three products; the first sum, the second */
    static const int size[] = {3, 3, 3, 1, 1};
    int at = 0;
    for (int w = 0; w < 5; w++)
        for (int k = 0; k < size[w]; k++, at++) {
            CHECK(p.step[at].wave > 0 && p.step[at].wave == p.step[at - k].wave);
            CHECK(k > 0 || at == 0 || p.step[at].wave > p.step[at - 1].wave);
        }
    for (int a = 0; a < p.n_step; a++)
        for (int b = 0; b < p.n_step; b++)
            if (a != b && p.step[a].wave == p.step[b].wave) {
                CHECK(!overlap(&p.step[a].dst, &p.step[b].dst));
                for (int k = 0; k < p.step[b].n_src; k++)
                    CHECK(!overlap(&p.step[a].dst, &p.step[b].src[k]));
            }
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

static bool no_product(const ggl_tensor *t) {
    return t->op != GGL_OP_LINEAR;
}

static const ggl_step *step_of(const ggl_program *p, const ggl_tensor *node) {
    for (int i = 0; i < p->n_step; i++)
        if (p->step[i].node == node)
            return &p->step[i];
    return NULL;
}

/* A result overwrites a source only if the source is not read later. */
TEST(in_place) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p, apart;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){WIDTH, 2}, true);
    ggl_tensor *a = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0);  /* read by b and e */
    ggl_tensor *b = ggl_graph_op(g, GGL_OP_SQRT, &a, 1, NULL, 0); /* by c alone */
    ggl_tensor *c = ggl_graph_op(g, GGL_OP_ABS, &b, 1, NULL, 0);  /* by d and d2, side by side */
    ggl_tensor *d = ggl_graph_op(g, GGL_OP_SIN, &c, 1, NULL, 0);
    ggl_tensor *d2 = ggl_graph_op(g, GGL_OP_COS, &c, 1, NULL, 0);
    ggl_tensor *e = ggl_binary(g, GGL_OP_ADD, a, ggl_binary(g, GGL_OP_MUL, d, d2));
    ggl_tensor *row = ggl_graph_op(g, GGL_OP_SPLIT, &e, 1, (double[]){1, 0, 1}, 3);
    ggl_tensor *f = ggl_binary(g, GGL_OP_SUB, e, row); /* every row less the first */
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_TANH, &f, 1, NULL, 0));
    REQUIRE(build(g, &p, no_product) && build(g, &apart, NULL));
#define AT(t) (step_of(&p, t)->dst.offset)
    CHECK(AT(b) != AT(a));
    CHECK(AT(c) == AT(b));
    CHECK(AT(d) != AT(c) && AT(d2) != AT(c) && AT(d) != AT(d2));
    CHECK(AT(e) == AT(a));
    CHECK(AT(f) != AT(e));
    CHECK(step_of(&apart, c)->dst.offset != step_of(&apart, b)->dst.offset);
    CHECK(p.arena_size <= apart.arena_size);
    ggl_program_fini(&p);
    ggl_program_fini(&apart);
    ggl_graph_free(g);
}
