/* A program's steps: in an order that works, side by side where nothing waits, none writing what
 * another of its wave needs. */
#include "ggl/program.h"

#include "test.h"

enum { WIDTH = 8, MOST = 64 };

static float weights[3][WIDTH * WIDTH];

static bool no_call(const ggl_backend *b, const ggl_tensor *t) {
    (void)b, (void)t;
    return false;
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

TEST(waves) {
    ggl_error err = {0};
    ggl_graph *g = three_chains();
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    ggl_loc loc[MOST];
    ggl_tensor *node[MOST];
    int n = 0, n_io = 0;
    REQUIRE(ggl_graph_n_ids(g) <= MOST);
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        bool outside = ggl_is_leaf(t) || t == ggl_graph_get_output(g, 0);
        loc[t->id] = (ggl_loc){outside ? GGL_REGION_IO : -1, outside ? (size_t)n_io++ * 4096 : 0};
        if (!ggl_is_leaf(t))
            node[n++] = t;
    }
    ggl_segment s = {.graph = g, .node = node, .n_node = n, .n_max = 4, .loc = loc, .n_slots = 1};
    ggl_program p;
    const ggl_program_params params = {.supports = no_call, .value_type = GGL_F32};
    REQUIRE_OK(ggl_program_build(&p, &s, &params, &err), &err);
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
