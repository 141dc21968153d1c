/* Tensors of a file that hold several declared ones: which rows each gets, and what is refused. */
#include "arch_test.h"
#include "ggl/internal/graph.h"
#include "test.h"

#define Q   "attn_q [8, 8] bias?\n"
#define K   "attn_k [8, 4] bias?\n"
#define V   "attn_v [8, 4] bias?\n"
#define USE "x = linear(x, attn_q) + concat(linear(x, attn_k), linear(x, attn_v))\n"

static const ggl_tensor *weight_in(const ggl_graph *g, const char *name) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        for (int k = 0; k < ggl_graph_node(g, i)->n_src; k++) {
            const ggl_tensor *t = ggl_graph_node(g, i)->src[k];
            if (t && t->op == GGL_OP_WEIGHT && strcmp(t->name, name) == 0)
                return t;
        }
    return NULL;
}

typedef struct piece {
    const char *name, *whole;
    int at; /* its first element in the whole */
} piece;

static void check_parts(const char *top, const char *body, const char *lines, const piece *x) {
    ggl_error err = {0};
    ggl_graph *g;
    model m;
    char *text = arch_text(top, body);
    REQUIRE(model_new(&m, lines, "model.gguf"));
    if (CHECK_OK(arch_build(text, &m, &g, NULL, &err), &err)) {
        for (; x->name; x++) {
            const ggl_tensor *t = weight_in(g, x->name);
            const ggl_gguf_tensor *w = ggl_gguf_find_tensor(m.file, x->whole);
            REQUIRE(w);
            CHECK_MSG(t && t->data == (const float *)w->data + x->at, "%s is not at %d of %s",
                      x->name, x->at, x->whole);
        }
        ggl_graph_free(g);
    }
    model_free(&m);
    free(text);
}

#define WHOLE "attn_qkv.weight [8, 16]\n"
static const piece three[] = {{"attn_q.weight", "attn_qkv.weight", 0},
                              {"attn_k.weight", "attn_qkv.weight", 64},
                              {"attn_v.weight", "attn_qkv.weight", 96},
                              {NULL, NULL, 0}};

TEST(rows_in_turn) {
    check_parts(Q K V, USE, WHOLE, three);
    check_parts(V Q K, USE, WHOLE, three); /* in any order */
    check_parts("", K V Q USE, WHOLE, three);
    check_parts("attn_q [8, 2, 4]\nattn_k [8, 4]\nattn_v [8, 4]\n",
                "x = flat(linear(reshape(x, 8, 1), attn_q)) + concat(linear(x, attn_k), linear(x, "
                "attn_v))\n",
                WHOLE, three);
    check_parts("q [8, 8] from \"attn_q.weight\"\n" K V, "attn_q = q\n" USE, WHOLE,
                three); /* the tensor's name counts */
}

TEST(biases) {
    static const piece list[] = {{"attn_q.bias", "attn_qkv.bias", 0},
                                 {"attn_k.bias", "attn_qkv.bias", 8},
                                 {"attn_v.bias", "attn_qkv.bias", 12},
                                 {"attn_k.weight", "attn_qkv.weight", 64},
                                 {NULL, NULL, 0}};
    check_parts(Q K V, USE, WHOLE "attn_qkv.bias [16]\n", list);
    check_parts(
        Q K V, USE,
        "attn_q.weight [8, 8]\nattn_k.weight [8, 4]\nattn_v.weight [8, 4]\nattn_qkv.bias [16]\n",
        (piece[]){{"attn_v.bias", "attn_qkv.bias", 12}, {NULL, NULL, 0}});
}

TEST(layers) {
    static const piece list[] = {{"blk.0.attn_v.weight", "blk.0.attn_qkv.weight", 96},
                                 {"blk.1.attn_k.weight", "blk.1.attn_qkv.weight", 64},
                                 {"blk.2.attn_k.weight", "blk.2.attn_k.weight", 0},
                                 {NULL, NULL, 0}};
    const char *loop = "layer l < 3:\n  attn_q [8, 8]\n  attn_k [8, 4]\n  attn_v [8, 4]\n  " USE;
    check_parts(
        "", loop,
        "blk.0.attn_qkv.weight [8, 16]\nblk.1.attn_qkv.weight [8, 16]\nblk.2.attn_q.weight [8, 8]\n"
        "blk.2.attn_k.weight [8, 4]\nblk.2.attn_v.weight [8, 4]\n",
        list);
    char *twice = strdup(loop); /* the same tensors, in a second loop */
    twice = realloc(twice, 2 * strlen(loop) + 1);
    strcat(twice, loop);
    check_parts("", twice,
                "blk.0.attn_qkv.weight [8, 16]\nblk.1.attn_qkv.weight [8, "
                "16]\nblk.2.attn_qkv.weight [8, 16]\n",
                list + 3);
    free(twice);
    check_parts("", /* of other shapes */
                "layer l < 1:\n  attn_q [8, 8]\n  x = linear(x, attn_q)\n"
                "layer m < 1:\n  attn_q [8, 4, 2]\n  attn_k [8, 4]\n  attn_v [8, 4]\n"
                "  x = flat(linear(reshape(x, 8, 1), attn_q)) + concat(linear(x, attn_k), "
                "linear(x, attn_v))\n",
                "blk.0.attn_qkv.weight [8, 16]\n",
                (piece[]){{"blk.0.attn_q.weight", "blk.0.attn_qkv.weight", 0},
                          {"blk.0.attn_v.weight", "blk.0.attn_qkv.weight", 96},
                          {NULL, NULL, 0}});
}

TEST(absent_parts) {
    const char *use =
        "x = linear(x, attn_q) + concat(linear(x, attn_k), linear(x, attn_v ?? attn_k))\n";
    check_parts(Q K "attn_v [8, 4] ?\n", use, WHOLE, three);
    check_parts(Q K "attn_v [8, 4] ?\n", use, "attn_qkv.weight [8, 12]\n",
                (piece[]){{"attn_k.weight", "attn_qkv.weight", 64}, {NULL, NULL, 0}});
    check_parts(Q K "attn_v [8, 4] \?\? attn_k\n", USE, "attn_qkv.weight [8, 12]\n", three + 3);
    /* rows of tensors that are ignored */
    check_parts(Q, "x = linear(x, attn_q)\nignore \"attn_k.*\", \"attn_v.weight\"\n", WHOLE,
                (piece[]){{"attn_q.weight", "attn_qkv.weight", 0}, {NULL, NULL, 0}});
}

TEST(lines_of_its_own) {
    const char *top = "a, b from \"ab\"\na [8, 8]\nb [8, 8] bias\n",
               *body = "x = linear(linear(x, a), b)\n";
    check_parts(top, body, "ab.weight [8, 16]\nb.bias [8]\n",
                (piece[]){{"a.weight", "ab.weight", 0},
                          {"b.weight", "ab.weight", 64},
                          {"b.bias", "b.bias", 0},
                          {NULL, NULL, 0}});
    check_parts(top, body, "a.weight [8, 8]\nb.weight [8, 8]\nb.bias [8]\n",
                (piece[]){{NULL, NULL, 0}});
    /* another order than the prelude's */
    check_parts("attn_v, attn_k, attn_q from \"attn_qkv\"\n" Q K V, USE, WHOLE,
                (piece[]){{"attn_v.weight", "attn_qkv.weight", 0},
                          {"attn_k.weight", "attn_qkv.weight", 32},
                          {"attn_q.weight", "attn_qkv.weight", 64},
                          {NULL, NULL, 0}});
    /* of a tensor that is declared as such in other layers */
    check_parts("attn_q, attn_k, attn_v from \"attn_qkv\"\n",
                "layer l < 2:\n  if l == 0:\n    attn_qkv [8, 8]\n    x = linear(x, attn_qkv)\n"
                "  else:\n    attn_q [8, 8]\n    attn_k [8, 4]\n    attn_v [8, 4]\n    " USE,
                "blk.0.attn_qkv.weight [8, 8]\nblk.1.attn_qkv.weight [8, 16]\n",
                (piece[]){{"blk.0.attn_qkv.weight", "blk.0.attn_qkv.weight", 0},
                          {"blk.1.attn_v.weight", "blk.1.attn_qkv.weight", 96},
                          {NULL, NULL, 0}});
    /* the first of two */
    check_parts("a, b from \"ab\"\na, b from \"b_a\"\na [8, 8]\nb [8, 8]\n", body,
                "ab.weight [8, 16]\n", (piece[]){{"b.weight", "ab.weight", 64}, {NULL, NULL, 0}});
    /* rows of one element */
    check_parts("a, b from \"ab\"\na [8]\nb [8]\n", "x = x * a + b\n", "ab.weight [16]\n",
                (piece[]){{"b.weight", "ab.weight", 8}, {NULL, NULL, 0}});
}

TEST(what_is_refused) {
    static const struct {
        const char *top, *body, *lines, *want;
    } list[] = {
        {Q K V, USE, "attn_qkv.weight [8, 17]\n",
         "t.arch:3:1: error: attn_qkv.weight has 17 rows; attn_q, attn_k and attn_v take 8 + 4 + "
         "4\n"},
        {Q K V, USE, "attn_qkv.weight [8, 17]\n",
         "  attn_q, attn_k, attn_v from \"attn_qkv\" (prelude.arch:"},
        {Q K V, USE, "attn_qkv.weight [8, 15]\n",
         "attn_qkv.weight has 15 rows; attn_q, attn_k and attn_v take 8 + 4 + 4"},
        {Q K V, USE, "attn_qkv.weight [8, 16]\nattn_qkv.bias [13]\n",
         "attn_qkv.bias has 13 elements; attn_q, attn_k and attn_v take 8 + 4 + 4"},
        {Q "attn_k [8, 4]\nattn_v [8, 4]\n", USE, "attn_qkv.weight [8, 16]\nattn_qkv.bias [16]\n",
         "attn_qkv.bias has 16 elements; attn_q takes 8"},
        /* a bias that ends where a part does */
        {Q K V, USE, "attn_qkv.weight [8, 16]\nattn_qkv.bias [12]\n",
         "attn_qkv.bias has 12 elements, and attn_qkv.weight has 16 rows"},
        {Q K V, USE, "attn_qkv.weight [8, 16]\nattn_qkv.bias [8]\n",
         "attn_qkv.bias has 8 elements, and attn_qkv.weight has 16 rows"},
        {Q K V, USE, "attn_qkv.weight [8, 8, 2]\n",
         "t.arch:3:1: error: tensor attn_qkv.weight is [8, 8, 2], declared [8, 8]"},
        {Q K V, USE, "attn_qkv.weight [16, 16]\n",
         "t.arch:3:9: error: tensor attn_qkv.weight is [16, 16], declared [8, 8]"},
        {Q K V, USE, "attn_qkv.weight [128]\n",
         "t.arch:3:9: error: tensor attn_qkv.weight is [128], declared [8, 8]"},
        {Q K V, USE,
         "attn_q.weight [8, 8]\nattn_k.weight [8, 4]\nattn_v.weight [8, 4]\nattn_qkv.weight [8, "
         "16]\n",
         "1 tensor of this file is not read by t.arch:\n  attn_qkv.weight"},
        {Q K V, USE, "attn_k.weight [8, 4]\nattn_v.weight [8, 4]\nattn_qkv.weight [8, 16]\n",
         "attn_qkv.weight has 16 rows; attn_q takes 8"},
        {Q K V, USE, "attn_qk.weight [8, 12]\n",
         "tensor attn_q.weight is missing in model.gguf; there is attn_qk.weight"},
        {"attn_q [8, 8]\nattn_k [8, 4]\nattn_v [8, 4]\n", USE,
         "attn_qkv.weight [8, 16]\nattn_qkv.bias [16]\n",
         "  attn_qkv.bias: its weight is declared in t.arch:3 without 'bias'"},
        {Q K "attn_v [8, 4] ?\n",
         "x = linear(x, attn_q) + concat(linear(x, attn_k), linear(x, attn_v ?? attn_k))\n",
         "attn_qkv.weight [8, 14]\n",
         "attn_qkv.weight has 14 rows; attn_q, attn_k and attn_v take 8 + 4 + 4"},
        {"layer l < 1:\n  attn_q [8, 8]\n  attn_q_norm [8]\n",
         "layer m < 1:\n  attn_q [8, 4]\n  x = concat(linear(x, attn_q), linear(x, attn_q))\n",
         "blk.0.attn_qkv.weight [8, 8]\nblk.0.attn_q_norm.weight [8]\n",
         "blk.0.attn_q.weight was declared with 8 rows of blk.0.attn_qkv.weight, but has 4 here"},
        /* what a descriptor names is its own */
        {"attn_qkv [8, 16] ?\n" Q K V, USE "x = x * (0 if has(attn_qkv) else 1)\n", WHOLE,
         "tensor attn_q.weight is missing"},
        {"fused [8, 16] ? from \"attn_qkv.weight\"\n" Q K V,
         USE "x = x * (0 if has(fused) else 1)\n", WHOLE, "tensor attn_q.weight is missing"},
        {"a, b from \"ab\"\n" Q, "x = linear(x, attn_q)\n", "",
         "t.arch:3:1: error: the descriptor declares no weight 'a'"},
        {"a, b from \"ab\"\na [8, 8]\nb [8, 8]\nab [8, 16] ?\n",
         "x = linear(linear(x, a), b) * (0 if has(ab) else 1)\n", "ab.weight [8, 16]\n",
         "t.arch:6:1: error: ab.weight cannot be declared as a whole: its parts are declared"},
        {"a, b from \"ab\"\nab [8, 16] ?\na [8, 8]\nb [8, 8]\n",
         "x = linear(linear(x, a), b) * (0 if has(ab) else 1)\n", "ab.weight [8, 16]\n",
         "t.arch:5:1: error: tensor a.weight is missing"},
    };
    ggl_error err;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        ggl_status s = arch_try(list[k].top, list[k].body, list[k].lines, NULL, &err);
        CHECK_MSG(s == GGL_FORMAT || s == GGL_SHAPE, "%zu: %s", k, ggl_status_text(s));
        CHECK_HAS(err.msg, list[k].want);
    }
}

TEST(grammar) {
    static const struct {
        const char *top, *want;
    } list[] = {
        {"a from \"ab\"\n", "3:1: error: several names are expected before 'from'"},
        {"a, b from \"ab\" bias\n", "3:16: error: the line should end here, but there is 'bias'"},
        {"a, b, a from \"ab\"\n", "3:7: error: 'a' occurs twice in one tensor"},
        {"a, ab from \"ab\"\n", "3:4: error: 'ab' cannot be a part of itself"},
        {"a, if from \"ab\"\n", "3:4: error: a weight's name is expected, not 'if'"},
        {"a, b from \"\"\n", "3:11: error: write the tensor's name like a weight's"},
        {"a, b from \"blk.{l}.ab\"\n", "3:11: error: write the tensor's name like a weight's"},
        {"a, b from \"ab.weight\"\n", "3:11: error: write the tensor's name like a weight's"},
        {"a, b from ab\n", "3:6: error: the name of the tensor that contains them must be in "
                           "quotes: a, b from \"NAME\""},
        {"a, b from\n", "3:6: error: the name of the tensor that contains them must be in quotes"},
        {"if true:\n  a, b from \"ab\"\n",
         "4:3: error: names 'from' one tensor are allowed only at top level"},
        {"def f(x):\n  a, b from \"ab\"\n  return x\n",
         "4:3: error: names 'from' one tensor are allowed"},
    };
    ggl_error err;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        CHECK(arch_try(list[k].top, "", "", NULL, &err) != GGL_OK);
        CHECK_HAS(err.msg, list[k].want);
    }
}

/* Time is bounded: many lines, many weights that are not there. */
TEST(many_lines) {
    ggl_error err;
    char *top = calloc(100, 200), *s = top;
    for (int i = 0; i < 65; i++)
        s += sprintf(s, "a%d, b%d from \"ab%d\"\n", i, i, i);
    CHECK_INT(arch_try(top, "", "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "67:1: error: more than 64 lines of this kind");
    s = top;
    for (int i = 0; i < 80; i++)
        s += sprintf(s, "%sa%d", i ? ", " : "", i);
    sprintf(s, " from \"ab\"\n");
    CHECK_INT(arch_try(top, "", "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "more than 64 names");
    free(top);
}

/* Names in which a search could begin again at every letter: the text is refused before that takes long. */
TEST(names_that_almost_fit) {
    enum { LINES = 60, PARTS = 40, WEIGHTS = 500, LONG = 250 };
    ggl_error err;
    char *top = calloc(1, LINES * PARTS * 48 + WEIGHTS * (LONG + 64) + PARTS * 64), *s = top;
    for (int i = 0; i < LINES; i++) {
        for (int k = 1; k <= PARTS; k++)
            s += sprintf(s, "%s%.*s", k > 1 ? ", " : "", k,
                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        s += sprintf(s, " from \"w%d\"\n", i);
    }
    for (int i = 0; i < WEIGHTS; i++) {
        s += sprintf(s, "z%d [1] ? from \"", i);
        memset(s, 'a', LONG);
        s += LONG;
        s += sprintf(s, "\"\n");
    }
    for (int k = 1; k <= PARTS; k++) /* found last */
        s += sprintf(s, "%.*s [8] ?\n", k,
                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    CHECK_INT(arch_try(top, "", "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "the text takes too long to read");
    free(top);
}
