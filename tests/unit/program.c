/* A program's steps: in an order that works, side by side where nothing waits, none writing what
 * another of its wave needs. */
#include "ggl/compose.h"
#include "ggl/internal/graph.h"
#include "ggl/program.h"

#include "test.h"

enum { WIDTH = 8, MOST = 1024 };

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
static bool build_for(ggl_graph *g, ggl_program *p, ggl_program_params params) {
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
        loc[t->id] = (ggl_loc){.region = outside ? GGL_REGION_IO : -1,
                               .offset = outside ? (size_t)n_io++ * 4096 : 0};
        if (!ggl_is_leaf(t))
            node[n++] = t;
    }
    ggl_segment s = {.graph = g, .node = node, .n_node = n, .n_max = 4, .loc = loc, .n_slots = 1};
    params.refuses = no_call;
    params.value_type = GGL_F32;
    return CHECK_OK(ggl_program_build(p, &s, &params, &err), &err);
}

static bool build(ggl_graph *g, ggl_program *p, bool (*in_place)(const ggl_tensor *)) {
    return build_for(g, p, (ggl_program_params){.in_place = in_place});
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
        if (p->step[i].kind == GGL_STEP_NODE && p->step[i].node == node)
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

/* Products want columns of 12 bytes, in one of two forms: a name that begins with "u" chooses. */
static ggl_form narrow(const ggl_backend *b, const ggl_step *step) {
    (void)b;
    if (step->node->op != GGL_OP_LINEAR)
        return (ggl_form){0};
    CHECK(!step->src[0].form && step->src[0].type == GGL_F32 && step->src[0].ne[0] == WIDTH);
    return (ggl_form){
        .kind = 7, .with = -1, .row_size = 12, .num = step->node->src[1]->name[0] == 'u' ? 1 : 0};
}

/* Checks that the step reads the form that step `made` makes of x. */
static void check_form(const ggl_program *p, const ggl_tensor *product, const ggl_step *made,
                       const ggl_tensor *x) {
    const ggl_step *s = step_of(p, product);
    const ggl_operand *o = &s->src[0];
    CHECK(made->kind == GGL_STEP_FORM && made->form == 7 && made < s && made->wave < s->wave);
    CHECK(o->form && o->type == GGL_I32 && o->ne[0] == 3 && o->ne[3] == GGL_N);
    CHECK(o->nb[1] == 12 && o->nb[3] == 12);
    CHECK(o->region == GGL_REGION_ARENA && o->offset == made->dst.offset);
    CHECK(made->src[0].offset == step_of(p, x)->dst.offset && made->src[1].region < 0);
}

static const ggl_step *nth_form(const ggl_program *p, int n) {
    for (int i = 0; i < p->n_step; i++)
        if (p->step[i].kind == GGL_STEP_FORM && n-- == 0)
            return &p->step[i];
    return NULL;
}

/* A form is made once for all steps that read it, and apart for another parameter or other
 * elements; its memory is used again only after its last reader. */
TEST(forms) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *w[4];
    for (int i = 0; i < 4; i++)
        w[i] = ggl_graph_weight(g, (const char *[]){"a", "b", "u", "c"}[i], GGL_F32, 2,
                                (int64_t[]){WIDTH, WIDTH}, weights[0]);
    ggl_tensor *e = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0);
    ggl_tensor *a = ggl_linear(g, e, w[0], NULL), *b = ggl_linear(g, e, w[1], NULL);
    ggl_tensor *u = ggl_linear(g, e, w[2], NULL), *c = ggl_linear(g, a, w[3], NULL);
    ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_ADD, b, u), c);
    ggl_graph_output(g, "y", sum);
    REQUIRE(build_for(g, &p, (ggl_program_params){.form = narrow}));
    const ggl_step *of_e = nth_form(&p, 0), *of_u = nth_form(&p, 1), *of_a = nth_form(&p, 2);
    REQUIRE(of_e && of_u && of_a && !nth_form(&p, 3));
    CHECK(of_e->node == a && of_u->node == u && of_a->node == c); /* the first readers */
    check_form(&p, a, of_e, e);
    check_form(&p, b, of_e, e);
    check_form(&p, u, of_u, e);
    check_form(&p, c, of_a, a);
    CHECK(of_e->wave == of_u->wave && of_e->dst.offset != of_u->dst.offset);
    for (int i = 0; i < p.n_step; i++) /* no value lies in a form */
        CHECK(p.step[i].kind == GGL_STEP_FORM || p.step[i].dst.region != GGL_REGION_ARENA ||
              p.step[i].dst.offset < of_e->dst.offset);
    CHECK(p.arena_size >= of_u->dst.offset + 4 * 12);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* In a body that runs for one token after another, a form is made in each turn: one of a value from
 * outside is not shared with steps there. */
TEST(forms_in_loops) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[0]);
    ggl_tensor *e = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0),
               *outside = ggl_linear(g, e, w, NULL);
    ggl_tensor **param = ggl_body_begin(g, &e, 1);
    REQUIRE(param);
    ggl_tensor *inside = ggl_linear(g, param[0], w, NULL),
               *again = ggl_linear(g, param[0], w, NULL),
               *state = ggl_graph_op(g, GGL_OP_STATE, NULL, 0, (double[]){WIDTH}, 1);
    ggl_tensor *next = ggl_binary(g, GGL_OP_ADD, state, inside);
    ggl_binary(g, GGL_OP_KEEP, state, next);
    ggl_tensor *y = ggl_body_end(g, NULL, ggl_binary(g, GGL_OP_ADD, next, again), NULL, 0);
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_ADD, y, outside));
    REQUIRE(build_for(g, &p, (ggl_program_params){.form = narrow}));
    const ggl_step *first = nth_form(&p, 0), *second = nth_form(&p, 1);
    REQUIRE(first && second && !nth_form(&p, 2));
    CHECK(first->node == outside && second->node == inside);
    CHECK(second->wave == 0 && second->dst.ne[3] == 1);
    CHECK(second->dst.loop == 0 && second->src[0].loop == WIDTH * sizeof(float));
    CHECK(step_of(&p, inside)->src[0].offset == second->dst.offset);
    CHECK(step_of(&p, again)->src[0].offset == second->dst.offset);
    CHECK(step_of(&p, outside)->src[0].offset == first->dst.offset);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* Accepts chains of at most `most` links, of elementwise operators and forms. */
static int most_links;

static int elementwise(const ggl_backend *b, const ggl_step *step, int n) {
    (void)b;
    int k = 0;
    while (k < n && k < most_links && step[k].node->op != GGL_OP_LINEAR)
        k++;
    return k < n && k < most_links && step[k].kind == GGL_STEP_FORM ? k + 1 : k > 0 ? k : 1;
}

/* A result that only the next link reads has no memory; one that others read, too, keeps it. */
TEST(links_of_a_chain) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[0]);
    ggl_tensor *a = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0);  /* read by b, and at the end */
    ggl_tensor *b = ggl_graph_op(g, GGL_OP_SQRT, &a, 1, NULL, 0); /* by c alone */
    ggl_tensor *c = ggl_binary(g, GGL_OP_MUL, x, b);              /* by two products, as a form */
    ggl_tensor *d = ggl_linear(g, c, w, NULL), *e = ggl_linear(g, c, w, NULL);
    ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_ADD, d, e), a);
    ggl_graph_output(g, "y", sum);
    most_links = 5;
    REQUIRE(build_for(g, &p, (ggl_program_params){.form = narrow, .chain = elementwise}));
    const ggl_step *head = step_of(&p, a);
    REQUIRE(head && head->n_links == 4);
    CHECK(head[1].node == b && head[2].node == c && head[3].kind == GGL_STEP_FORM);
    for (int i = 1; i < 4; i++)
        CHECK(head[i].n_links == 0 && head[i].wave == head->wave);
    CHECK(head->link == -1 && head[1].link == 0 && head[2].link == 1 && head[3].link == 0);
    CHECK(head[1].src[0].region < 0 && head[2].src[1].region < 0 && head[3].src[0].region < 0);
    CHECK(head[2].src[0].region == GGL_REGION_IO);
    CHECK(head->dst.region == GGL_REGION_ARENA && head[1].dst.region < 0 && head[2].dst.region < 0);
    CHECK(head[2].dst.ne[0] == WIDTH && head[3].dst.region == GGL_REGION_ARENA);
    CHECK(step_of(&p, sum)->n_links == 0 || step_of(&p, sum)->n_links == 2);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* A form may be made of the result in another shape, but the next operator may not read it so. */
TEST(a_form_of_another_shape) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){2, WIDTH / 2}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[0]);
    ggl_tensor *a = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0);
    ggl_tensor *b = ggl_reshape(g, a, 2, (int64_t[]){WIDTH / 2, 2});
    ggl_tensor *c = ggl_graph_op(g, GGL_OP_SQRT, &b, 1, NULL, 0);
    ggl_tensor *d = ggl_reshape(g, c, 1, (int64_t[]){WIDTH});
    ggl_graph_output(g, "y", ggl_linear(g, d, w, NULL));
    most_links = 5;
    REQUIRE(build_for(g, &p, (ggl_program_params){.form = narrow, .chain = elementwise}));
    CHECK_INT(step_of(&p, a)->n_links, 1);
    const ggl_step *head = step_of(&p, c);
    REQUIRE(head->n_links == 2 && head[1].kind == GGL_STEP_FORM);
    CHECK(head->dst.region < 0 && head->dst.ne[0] == WIDTH / 2 && head->dst.ne[1] == 2);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* Attention may begin a chain, but does not move behind a step that writes a store. */
TEST(links_that_use_stores) {
    for (int between = 0; between < 2; between++) {
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_program p;
        ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
        ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){WIDTH, 1}, true);
        ggl_tensor *kv = ggl_binary(g, GGL_OP_CACHE, x, x),
                   *y = ggl_binary(g, GGL_OP_ATTEND, x, kv);
        kv = between ? ggl_binary(g, GGL_OP_CACHE, x, x) : NULL;
        ggl_tensor *root = ggl_graph_op(g, GGL_OP_SQRT, &y, 1, NULL, 0);
        kv = kv ? kv : ggl_binary(g, GGL_OP_CACHE, x, x);
        ggl_graph_output(g, "y",
                         ggl_binary(g, GGL_OP_ADD, root, ggl_binary(g, GGL_OP_ATTEND, x, kv)));
        most_links = 2;
        if (build_for(g, &p, (ggl_program_params){.chain = elementwise}))
            CHECK_INT(step_of(&p, y)->n_links, between ? 1 : 2);
        ggl_program_fini(&p);
        ggl_graph_free(g);
    }
}

static bool all_in_place(const ggl_tensor *t) {
    return t->op != GGL_OP_LINEAR;
}

/* The result of a chain may lie over a source of an earlier link, but two results not over one. */
TEST(chains_in_place) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[0]);
    ggl_tensor *a = ggl_linear(g, x, w, NULL), *b = ggl_linear(g, x, w, NULL);
    ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, a, b); /* read by root, and at the end */
    ggl_tensor *root = ggl_graph_op(g, GGL_OP_SQRT, &sum, 1, NULL, 0);
    ggl_tensor *far = ggl_linear(g, root, w, NULL);
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, far, sum));
    most_links = 2;
    REQUIRE(build_for(g, &p, (ggl_program_params){.in_place = all_in_place, .chain = elementwise}));
    const ggl_step *head = step_of(&p, sum);
    REQUIRE(head->n_links == 2 && head[1].node == root);
    const size_t at_a = step_of(&p, a)->dst.offset, at_b = step_of(&p, b)->dst.offset;
    CHECK(head->dst.offset != head[1].dst.offset);
    CHECK(head->dst.offset == at_a || head->dst.offset == at_b);
    CHECK(head[1].dst.offset == at_a || head[1].dst.offset == at_b);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* A link reads nothing of an earlier link but what it is linked to: other elements of it, such as its
 * last one here, may not be written yet. */
TEST(links_that_read_more) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, x, x);
    ggl_tensor *root = ggl_graph_op(g, GGL_OP_SQRT, &sum, 1, NULL, 0);
    ggl_tensor *last = ggl_graph_op(g, GGL_OP_SPLIT, &sum, 1, (double[]){0, WIDTH - 1, 1}, 3);
    ggl_tensor *product = ggl_binary(g, GGL_OP_MUL, root, last);
    ggl_graph_output(g, "y", ggl_graph_op(g, GGL_OP_ABS, &product, 1, NULL, 0));
    most_links = 4;
    REQUIRE(build_for(g, &p, (ggl_program_params){.chain = elementwise}));
    CHECK_INT(step_of(&p, sum)->n_links, 2);
    CHECK_INT(step_of(&p, product)->n_links, 2);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

static int n_asked; /* calls of choice() */

/* Accepts all steps before the next product as a loose chain, if one of them is a topk. */
static int choice(const ggl_backend *b, const ggl_step *step, int n) {
    (void)b;
    bool chosen = false;
    int k = 0;
    n_asked++;
    for (; k < n && k < most_links && step[k].node->op != GGL_OP_LINEAR; k++) {
        CHECK(step[k].link == -1 && step[k].n_links == 1);
        chosen = chosen || step[k].node->op == GGL_OP_TOPK;
    }
    return chosen ? k : 1;
}

/* A link of a loose chain reads any links before it; their operands are absent. Results that other steps read have memory. */
TEST(a_loose_chain) {
    for (int links = 4; links <= 5; links++) {
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_program p;
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
        ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){2, WIDTH}, weights[0]);
        ggl_tensor *score = ggl_unary(g, GGL_OP_SIGMOID, x); /* read by sum and share */
        ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, score, x);
        ggl_tensor *index = ggl_graph_op(g, GGL_OP_TOPK, &sum, 1, (double[]){2}, 1);
        ggl_tensor *share = ggl_binary(g, GGL_OP_PICK, score, index);
        ggl_tensor *ratio = ggl_binary(g, GGL_OP_DIV, share, share); /* reads its source twice */
        ggl_tensor *again = ggl_binary(g, GGL_OP_PICK, x, index);
        ggl_graph_output(g, "y", ggl_linear(g, ggl_binary(g, GGL_OP_ADD, ratio, again), w, NULL));
        most_links = links;
        n_asked = 0;
        REQUIRE(build_for(g, &p, (ggl_program_params){.loose_chain = choice}));
        const ggl_step *head = step_of(&p, score);
        REQUIRE(head && head->n_links == links && n_asked > 1);
        CHECK(head[1].node == sum && head[2].node == index && head[3].node == share);
        for (int i = 1; i < links; i++)
            CHECK(head[i].n_links == 0 && head[i].link == -1 && head[i].wave == head->wave);
        CHECK(head[1].src[0].region < 0 && head[1].src[1].region == GGL_REGION_IO);
        CHECK(head[3].src[0].region < 0 && head[3].src[1].region < 0);
        CHECK(head->dst.region < 0 && head[1].dst.region < 0);
        CHECK(head[2].dst.region == GGL_REGION_ARENA && head[2].dst.ne[0] == 2);
        CHECK((head[3].dst.region < 0) == (links == 5));
        CHECK(step_of(&p, ratio)->src[0].region == (links == 5 ? -1 : GGL_REGION_ARENA));
        CHECK(step_of(&p, again)->src[1].offset == head[2].dst.offset);
        ggl_program_fini(&p);
        ggl_graph_free(g);
    }
}

/* Products join if their weights' names begin with the same letter; chains of elementwise operators
 * join each other. */
static bool same_letter(const ggl_backend *b, const ggl_step *const *member, int n,
                        const ggl_step *next) {
    (void)b;
    CHECK(n > 0 && n < GGL_MAX_GROUP && next->wave > 0 && next->n_links > 0);
    for (int i = 0; i < n; i++)
        CHECK(member[i]->wave == next->wave && member[i] < next);
    const ggl_tensor *a = member[0]->node, *c = next->node;
    if (a->op != GGL_OP_LINEAR || c->op != GGL_OP_LINEAR)
        return member[0]->n_links > 1 && next->n_links > 1;
    return a->src[1]->name[0] == c->src[1]->name[0];
}

/* Checks that the steps of these nodes are a group in this order, with results one after another. */
static void check_group(const ggl_program *p, ggl_tensor *const *node, int n) {
    const ggl_step *s = step_of(p, node[0]);
    REQUIRE(s && s->n_members == n && s + n <= p->step + p->n_step);
    for (int i = 0; i < n; i++) {
        CHECK(s[i].node == node[i] && s[i].wave == s->wave && s[i].n_members == (i == 0 ? n : 0));
        CHECK(s[i].dst.offset % 64 == 0 &&
              (i == 0 || s[i].dst.offset == s[i - 1].dst.offset + WIDTH * sizeof(float) * 4));
    }
}

/* Members of a group are one after another, at most GGL_MAX_GROUP, and their results, too. */
TEST(groups) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p, apart;
    static const char *const name[] = {"q", "v", "q2", "q3", "v2", "q4", "q5", "o"};
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *sum = NULL;
    ggl_tensor *e = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0), *y[8];
    for (int i = 0; i < 8; i++) {
        ggl_tensor *w =
            ggl_graph_weight(g, name[i], GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[i % 3]);
        y[i] = ggl_linear(g, e, w, NULL);
        sum = sum ? ggl_binary(g, GGL_OP_ADD, sum, y[i]) : y[i];
    }
    ggl_graph_output(g, "y", sum);
    REQUIRE(build_for(g, &p, (ggl_program_params){.joins = same_letter}) && build(g, &apart, NULL));
    check_group(&p, (ggl_tensor *[]){y[0], y[2], y[3], y[5]}, 4);
    check_group(&p, (ggl_tensor *[]){y[1], y[4]}, 2);
    CHECK(step_of(&p, y[6])->n_members == 1 && step_of(&p, y[7])->n_members == 1);
    for (int i = 0; i < apart.n_step; i++)
        CHECK(apart.step[i].n_members == 1);
    CHECK_INT(p.n_step, apart.n_step);
    ggl_program_fini(&p);
    ggl_program_fini(&apart);
    ggl_graph_free(g);
}

/* Values that wait for stores: of six layers, each with a product of keys and one of values of the same rows, what
 * is stored later is computed later, and the program needs no more memory for twelve layers. */
TEST(values_that_wait_for_stores) {
    size_t size[2];
    for (int twice = 0; twice < 2; twice++) {
        const int n = twice ? 12 : 6;
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_program p;
        ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
        ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *sum = NULL;
        ggl_tensor *e = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0), *y[24], *kv[12];
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < 2; k++) {
                ggl_tensor *w =
                    ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[i % 3]);
                y[2 * i + k] = ggl_linear(g, e, w, NULL);
            }
            kv[i] = ggl_binary(g, GGL_OP_CACHE, ggl_reshape(g, y[2 * i], 2, (int64_t[]){WIDTH, 1}),
                               ggl_reshape(g, y[2 * i + 1], 2, (int64_t[]){WIDTH, 1}));
        }
        ggl_tensor *q = ggl_reshape(g, e, 2, (int64_t[]){WIDTH, 1});
        for (int i = 0; i < n; i++) {
            ggl_tensor *a = ggl_binary(g, GGL_OP_ATTEND, q, kv[i]);
            sum = sum ? ggl_binary(g, GGL_OP_ADD, sum, a) : a;
        }
        ggl_graph_output(g, "y", sum);
        REQUIRE(build(g, &p, NULL));
        for (int i = 0; i < 2 * n; i++) {
            const ggl_step *product = step_of(&p, y[i]), *store = step_of(&p, kv[i / 2]);
            REQUIRE(product && store && product->wave < store->wave);
            CHECK(store->wave - product->wave <= 4);
        }
        size[twice] = p.arena_size;
        ggl_program_fini(&p);
        ggl_graph_free(g);
    }
    CHECK_INT((long long)size[1], (long long)size[0]);
}

/* What takes more memory than what it is made of is computed just before it is read, however early it could be. */
TEST(large_values_come_late) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *y = x,
               *one = ggl_graph_input(g, "one", GGL_F32, 1, (int64_t[]){1}, true);
    const double n = WIDTH;
    ggl_tensor *large = ggl_binary(g, GGL_OP_EQ, ggl_graph_op(g, GGL_OP_IOTA, NULL, 0, &n, 1),
                                   ggl_graph_op(g, GGL_OP_EXP, &one, 1, NULL, 0));
    y = ggl_graph_op(g, GGL_OP_EXP, &y, 1, NULL, 0);
    ggl_tensor *small = ggl_graph_op(g, GGL_OP_AMAX, &y, 1, NULL, 0);
    for (int i = 0; i < 8; i++)
        y = ggl_graph_op(g, GGL_OP_EXP, &y, 1, NULL, 0);
    ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, y, large);
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_ADD, sum, small));
    REQUIRE(build(g, &p, no_product));
    CHECK_INT(step_of(&p, large)->wave, step_of(&p, sum)->wave - 1);
    CHECK_INT(step_of(&p, small)->wave, 2);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* But nothing waits so that it would read what a variable has become. */
TEST(what_reads_a_variable_does_not_come_late) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    const int64_t n = WIDTH;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true), *y = x,
               *v = ggl_graph_variable(g, "v", GGL_F32, 1, &n, weights[0]),
               *w = ggl_graph_variable(g, "w", GGL_F32, 1, &n, weights[1]);
    ggl_tensor *of_v = ggl_graph_op(g, GGL_OP_EXP, &v, 1, NULL, 0),
               *of_w = ggl_graph_op(g, GGL_OP_EXP, &w, 1, NULL, 0);
    for (int i = 0; i < 8; i++)
        y = ggl_graph_op(g, GGL_OP_EXP, &y, 1, NULL, 0);
    ggl_tensor *sum = ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_ADD, y, of_v), of_w),
               *next = ggl_graph_op(g, GGL_OP_ABS, &v, 1, NULL, 0);
    ggl_graph_output(g, "y", sum);
    CHECK(ggl_graph_assign(g, v, next));
    REQUIRE(build(g, &p, no_product));
    CHECK(step_of(&p, of_v)->wave < step_of(&p, next)->wave);
    CHECK(step_of(&p, of_w)->wave > 4); /* is not written */
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* A chain whose first result an earlier store reads than its last: it is not moved behind that. */
TEST(chains_that_wait_for_stores) {
    enum { N = 12 };
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *sum = NULL;
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[0]);
    ggl_tensor *e = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0), *y = ggl_linear(g, e, w, NULL);
    ggl_tensor *k = ggl_graph_op(g, GGL_OP_EXP, &y, 1, NULL, 0),
               *a = ggl_graph_op(g, GGL_OP_EXP, &k, 1, NULL, 0), *kv[N];
    ggl_tensor *q = ggl_reshape(g, e, 2, (int64_t[]){WIDTH, 1});
    for (int i = 0; i < N; i++) {
        ggl_tensor *h = ggl_reshape(g, i == 0 ? k : i == N - 1 ? a : e, 2, (int64_t[]){WIDTH, 1});
        kv[i] = ggl_binary(g, GGL_OP_CACHE, h, h);
    }
    for (int i = 0; i < N; i++) {
        ggl_tensor *t = ggl_binary(g, GGL_OP_ATTEND, q, kv[i]);
        sum = sum ? ggl_binary(g, GGL_OP_ADD, sum, t) : t;
    }
    ggl_graph_output(g, "y", sum);
    most_links = 7;
    REQUIRE(build_for(g, &p, (ggl_program_params){.chain = elementwise}));
    const ggl_step *first = step_of(&p, k), *store = step_of(&p, kv[0]);
    CHECK(first->n_links == 2 && first->wave < store->wave && first < store);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

static int n_asked;

static bool nothing_joins(const ggl_backend *b, const ggl_step *const *member, int n,
                          const ggl_step *next) {
    (void)b;
    (void)member;
    (void)n;
    (void)next;
    n_asked++;
    return false;
}

/* In a wave of many steps, each is compared with a few others, not with all. */
TEST(groups_of_a_wide_wave) {
    enum { N_STEPS = 400, MOST_ASKED = 64 };
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *y[N_STEPS];
    for (int i = 0; i < N_STEPS; i++)
        y[i] = ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0);
    for (int i = 1; i < N_STEPS; i++)
        y[i] = ggl_binary(g, GGL_OP_ADD, y[i - 1], y[i]);
    ggl_graph_output(g, "y", y[N_STEPS - 1]);
    n_asked = 0;
    REQUIRE(build_for(g, &p, (ggl_program_params){.joins = nothing_joins}));
    CHECK(n_asked > N_STEPS && n_asked < N_STEPS * MOST_ASKED);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* A chain is a member with all of its links. */
TEST(chains_in_groups) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_program p;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *end[2];
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[0]);
    ggl_tensor *a = ggl_linear(g, x, w, NULL), *head[2];
    for (int i = 0; i < 2; i++) {
        head[i] = ggl_graph_op(g, i ? GGL_OP_SIN : GGL_OP_COS, &a, 1, NULL, 0);
        end[i] = ggl_graph_op(g, GGL_OP_ABS, &head[i], 1, NULL, 0);
    }
    ggl_graph_output(g, "y", ggl_linear(g, ggl_binary(g, GGL_OP_ADD, end[0], end[1]), w, NULL));
    most_links = 2;
    REQUIRE(build_for(g, &p, (ggl_program_params){.chain = elementwise, .joins = same_letter}));
    const ggl_step *s = step_of(&p, head[0]);
    REQUIRE(s && s->n_members == 2 && s->n_links == 2 && s[2].n_links == 2);
    CHECK(s[1].node == end[0] && s[2].node == head[1] && s[3].node == end[1]);
    for (int i = 1; i < 4; i++)
        CHECK(s[i].n_members == 0 && s[i].wave == s->wave);
    CHECK(s[3].dst.offset == s[1].dst.offset + WIDTH * sizeof(float) * 4);
    ggl_program_fini(&p);
    ggl_graph_free(g);
}

/* Accepts any chain of two links behind a group of two. */
static bool two_and_two(const ggl_backend *b, const ggl_step *const *member, int n,
                        const ggl_step *chain) {
    (void)b;
    CHECK(member[0]->dst.region < 0 && member[1]->dst.region < 0 && chain[0].n_links > 1);
    return n == 2 && chain[0].n_links == 2;
}

/* Builds exp(gate) * up after two products, with `more` added to gate's readers. */
static ggl_graph *gated(ggl_tensor **node, bool more) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    ggl_tensor *u = ggl_graph_weight(g, "q", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[0]),
               *w = ggl_graph_weight(g, "q2", GGL_F32, 2, (int64_t[]){WIDTH, WIDTH}, weights[1]);
    node[0] = ggl_linear(g, x, u, NULL);
    node[1] = ggl_linear(g, x, w, NULL);
    node[2] = ggl_graph_op(g, GGL_OP_EXP, &node[0], 1, NULL, 0);
    node[3] = ggl_binary(g, GGL_OP_MUL, node[1], node[2]);
    node[4] = ggl_linear(g, node[3], u, NULL);
    ggl_graph_output(g, "y", more ? ggl_binary(g, GGL_OP_ADD, node[4], node[0]) : node[4]);
    return g;
}

/* A chain that alone reads the results of a group follows it, and the results have no memory. */
TEST(tail_of_a_group) {
    const ggl_program_params params = {
        .chain = elementwise, .joins = same_letter, .tail = two_and_two};
    ggl_tensor *node[5];
    ggl_program p;
    most_links = 2;
    for (int more = 0; more < 2; more++) {
        ggl_graph *g = gated(node, more);
        REQUIRE(build_for(g, &p, params));
        const ggl_step *s = step_of(&p, node[0]);
        REQUIRE(s && s->n_members == 2 && s->has_tail == !more);
        if (!more) {
            CHECK(s[1].node == node[1] && s[2].node == node[2] && s[3].node == node[3]);
            for (int i = 0; i < 4; i++)
                CHECK(s[i].wave == s->wave && s[i].n_members == (i == 0 ? 2 : 0) &&
                      (s[i].dst.region < 0) == (i < 3) && !(i > 0 && s[i].has_tail));
            CHECK(s[2].n_links == 2 && s[2].src[0].region < 0 && s[2].dst.ne[0] == WIDTH);
            CHECK(s[3].link == 1 && s[3].src[0].region < 0 && s[3].src[1].region < 0);
            CHECK(step_of(&p, node[4])->src[0].offset == s[3].dst.offset);
        }
        ggl_program_fini(&p);
        ggl_graph_free(g);
    }
}
