/* The meaning of each construct: `require` checks compile-time values, nodes check tensors. */
#include <math.h>

#include "arch_test.h"
#include "ggl/internal/graph.h"
#include "ggl/program.h"
#include "test.h"

/* Each line has to hold. */
static const char *const facts[] = {
    "1 + 2 * 3 == 7",
    "2 ** 3 ** 2 == 512",
    "-2 ** 2 == -4",
    "2 ** -1 == 0.5",
    "7 % 3 == 1",
    "-1 % 3 == 2",
    "7 / 2 == 3.5",
    "1e3 == 1000",
    "1.5e-2 == 0.015",
    "0.1 + 0.2 != 0.3",
    "(1 + 2) * 3 == 9",
    "- - 2 == 2",
    "10 - 2 - 3 == 5",
    "12 / 2 / 3 == 2",
    "not 1 == 2",
    "not (1 == 1) == false",
    "true or false and false",
    "1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3",
    "\"a\" == \"a\" and \"a\" != \"b\"",
    "true != false",
    "2 in [1, 2]",
    "not (3 in [1, 2])",
    "\"a\" in [\"a\"]",
    "size([1, 2, 3]) == 3",
    "[4, 5, 6][1] == 5",
    "(1 if true else 2) == 1",
    "(1 if false else 2 if false else 3) == 3",
    "(none \?\? 4) == 4",
    "(5 \?\? 4) == 5",
    "(none \?\? none \?\? 6) == 6",
    "not has(none)",
    "has(3)",
    "arch == \"t\"",
    "n_ctx == 32",
    "n_vocab == 10",
    "abs(pi - 3.14159265358979) < 1e-13",
    "inf > 1e300",
    "exp(0) == 1",
    "log(1) == 0",
    "sqrt(9) == 3",
    "floor(-1.5) == -2",
    "ceil(1.2) == 2",
    "log2(8) == 3",
    "abs(-2) == 2",
    "min(1, 2) == 1",
    "max(1, 2) == 2",
    "where(true, 1, 2) == 1",
    "min(b = 1, a = 2) == 1",
    "tanh(0) == 0",
    "sigmoid(0) == 0.5",
    "sin(0) == 0 and cos(0) == 1",
    "erf(0) == 0",
    "clamp(5, 0, 3) == 3",
    ".num == 4",
    ".text == \"abc\"",
    ".yes",
    "not .no",
    ".list[1] == 8",
    ".num[7] == 4",
    "size(.list) == 3",
    "8 in .list",
    "not has(.absent)",
    "(.absent \?\? 3) == 3",
    "has(.num)",
    "key(\"other.key\") == 6",
    "not has(key(\"none.such\"))",
    "(.absent[3] \?\? 2) == 2",
    "size(w) == 8 and size(w, 1) == 3 and size(w, 2) == 1",
    "count(w) == 24",
    "size(3) == 1",
    "not has(o)",
    "has(w)",
    "has(w.bias)",
    "not has(v.bias)",
    "not has(o.bias)",
    "size(w.bias) == 3",
    "f(2) == 5",
    "f(2, 10) == 12",
    "f(y = 1, x = 1) == 2",
    "g(2) == 7",
    "k == 4",
};

LONG_TEST(facts) {
    static const char lines[] = "t.num = 4\nt.text = \"abc\"\nt.yes = true\nt.no = false\nt.list = "
                                "[7, 8, 9]\nother.key = 6\n"
                                "w.weight [8, 3]\nw.bias [3]\nv.weight [8]\n";
    static const char top[] =
        "w [8, 3] bias?\nv [8]\no [4] ?\ndef f(x, y = 3) = x + y\ndef "
        "g(x):\n  if x > 1:\n    return f(x) + x\n  return 0\nk = 4\nrequire k == 4\n"
        "ignore .num, .text, .yes, .no, .list, key(\"other.key\")\n";
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++) {
        char all[1024];
        ggl_error err;
        snprintf(all, sizeof all, "%srequire %s\n", top, facts[k]);
        ggl_status s = arch_try(all, "x = x * v + sum(linear(x, w))\n", lines, NULL, &err);
        CHECK_MSG(s == GGL_OK, "%s: %s", facts[k], err.msg);
        snprintf(all, sizeof all, "%srequire not (%s)\n", top, facts[k]);
        s = arch_try(all, "x = x * v + sum(linear(x, w))\n", lines, NULL, &err);
        CHECK_MSG(s == GGL_FORMAT && strstr(err.msg, "this requirement does not hold"),
                  "not (%s): %s", facts[k], err.msg);
    }
}

/* Bodies that build, with what the result of `x = ..` is called and has as dimensions. */
static const struct {
    const char *top, *body, *lines, *node;
    ggl_op op;
    int64_t ne[3];
} built[] = {
    {"", "y = x * 2 + 1\nx = y\n", "", "y", GGL_OP_ADD, {8, 1, 1}},
    {"", "y = -x\nx = y\n", "", "y", GGL_OP_MUL, {8, 1, 1}},
    {"", "y = x < 0\nx = y\n", "", "y", GGL_OP_LT, {8, 1, 1}},
    {"", "y = heads(x, 2)\nx = flat(y)\n", "", "y", GGL_OP_RESHAPE, {4, 2, 1}},
    {"", "a, b = split(x, 3, 5)\nx = concat(b, a)\n", "", "b", GGL_OP_SPLIT, {5, 1, 1}},
    {"",
     "a, b = split(x, 3, 5)\nx = x * sum(a)\n",
     "",
     "a",
     GGL_OP_SPLIT,
     {3, 1, 1}}, /* one of two suffices */
    {"", "y = sum(heads(x, 2), 1)\nx = x + concat(y, y)\n", "", "y", GGL_OP_SUM, {4, 1, 1}},
    {"", "y = sum(heads(x, 2))\nx = flat(heads(x, 2) / y)\n", "", "y", GGL_OP_SUM, {1, 2, 1}},
    {"", "y = transpose(heads(x, 2))\nx = flat(y)\n", "", "y", GGL_OP_TRANSPOSE, {2, 4, 1}},
    {"", "y = repeat(heads(x, 1), 8, 3)\nx = sum(y, 1)\n", "", "y", GGL_OP_REPEAT, {8, 3, 1}},
    {"", "y = topk(softmax(x), 3)\nx = x + sum(x[y])\n", "", "y", GGL_OP_TOPK, {3, 1, 1}},
    {"", "y = x[2]\nx = x + y\n", "", "y", GGL_OP_RESHAPE, {1, 1, 1}}, /* one number: no dimensions
                                                                        */
    {"w [8, 8, 4] bias\n",
     "y = linear(x, w[topk(linear(x, r), 2)])\nx = sum(y, 1)\n",
     "w.weight [8, 8, 4]\nw.bias [8, 4]\nr.weight [8, 4]\n",
     "y",
     GGL_OP_LINEAR,
     {8, 2, 1}},
    {"w [8, 8, 4] bias\n",
     "y = linear(x, w[1])\nx = y\n",
     "w.weight [8, 8, 4]\nw.bias [8, 4]\n",
     "y",
     GGL_OP_LINEAR,
     {8, 1, 1}},
    {"w [8, 6] bias\n",
     "y = linear(x, w)\nx = x + sum(y)\n",
     "w.weight [8, 6]\nw.bias [6]\n",
     "y",
     GGL_OP_LINEAR,
     {6, 1, 1}},
    {"w [8, 6] bias?\n",
     "y = linear(x, w)\nx = x + sum(y)\n",
     "w.weight [8, 6]\n",
     "y",
     GGL_OP_LINEAR,
     {6, 1, 1}},
    {"p [8, 40]\n", "y = p[pos]\nx = x + y\n", "p.weight [8, 40]\n", "y", GGL_OP_PICK, {8, 1, 1}},
    {"", "y = x * pos\nx = y\n", "", "y", GGL_OP_MUL, {8, 1, 1}},
    {"w [8] ?\n", "y = x * w if has(w) else x * 3\nx = y\n", "", "y", GGL_OP_MUL, {8, 1, 1}},
    {"a [8] ?\nb [8] ?\n",
     "y = x * (a \?\? b)\nx = y\n",
     "a.weight [8]\nb.weight [8]\n",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}}, /* both arms are read */
    {"a [8] ?\nb [8] ?\n",
     "y = x * (a if n_ctx > 3 else b)\nx = y\n",
     "a.weight [8]\nb.weight [8]\n",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}},
    {"w [8] from \"odd.name\"\n",
     "y = x * w\nx = y\n",
     "odd.name [8]\n",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}},
    {"n = 3\nw [8] from \"odd.{n}\"\n",
     "y = x * w\nx = y\n",
     "odd.3 [8]\n",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}},
    {"w [8, 8] bias from \"odd.weight\"\n",
     "y = linear(x, w)\nx = y\n",
     "odd.weight [8, 8]\nodd.bias [8]\n",
     "y",
     GGL_OP_LINEAR,
     {8, 1, 1}},
    {"w [8, 1]\n",
     "y = x * reshape(w, 8)\nx = y\n",
     "w.weight [8]\n",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}}, /* 1s at the end aside */
    {"ignore .odd\nignore \"w.*\", \"v\"\n",
     "y = x * 1\nx = y\n",
     "t.odd = 3\nw.weight [8]\nw.bias [8]\nv [3]\n",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}},
    {"n = 2\nlayer i < 2: ignore \"blk.{n + i}.*\"\nw [8] from \"blk.{n - 1}.w\"\n",
     "y = x * w\nx = y\n",
     "blk.2.w [8]\nblk.3.v [3]\nblk.1.w [8]\n",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}},
    {"", "y = silu(x)\nx = y\n", "", "y", GGL_OP_CALL, {8, 1, 1}},
    {"def gelu(x) = x * 2\n",
     "y = gelu(x)\nx = y\n",
     "",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}}, /* the descriptor's holds */
    {"op twice(x) = x + x\n", "y = twice(x)\nx = y\n", "", "y", GGL_OP_ADD, {8, 1, 1}},
    {"", "y = flat(recent(x, 2))\nx = x + sum(y)\n", "", "y", GGL_OP_RESHAPE, {16, 1, 1}},
    {"t [3, 8]\n", "y = conv(x, t)\nx = y\n", "t.weight [3, 8]\n", "y", GGL_OP_CALL, {8, 1, 1}},
    {"f, m = rope_scaled(4, 1000)\n",
     "y = rope_half(heads(x, 2), f, m)\nx = flat(y)\n",
     "t.context_length = 9\n",
     "y",
     GGL_OP_ROPE_HALF,
     {4, 2, 1}},
    {"",
     "q = heads(x, 4)\nk = heads(x, 2)\ny = attend(q, cache(reshape(k, 2, 4), q), alibi = "
     "alibi_slopes(4), window = 5)\nx = flat(y)\n",
     "",
     "y",
     GGL_OP_ATTEND,
     {2, 4, 1}},
    {"x0 = 1\nrequire x0 == 1\n",
     "layer l < 2:\n  x = x + l\ny = x\nx = y\n",
     "",
     "blk.1 x",
     GGL_OP_ADD,
     {8, 1, 1}},
    {"keep = 3\nlayer = 4\n",
     "y = x * keep * layer\nx = y\n",
     "",
     "y",
     GGL_OP_MUL,
     {8, 1, 1}}, /* names elsewhere */
    {"", "y = x * iota(8)\nx = y\n", "", "y", GGL_OP_MUL, {8, 1, 1}},
    {"", "y = where(x < 0, x, 0)\nx = y\n", "", "y", GGL_OP_WHERE, {8, 1, 1}},
    {"",
     "e = topk(x, 3)\ny = x[e[0]] + x[reshape(e, 3)][0]\nx = x * y\n",
     "",
     "y",
     GGL_OP_ADD,
     {1, 1, 1}},
};

TEST(nodes) {
    for (size_t k = 0; k < sizeof built / sizeof *built; k++) {
        ggl_graph *g;
        ggl_error err;
        char top[512];
        bool router = strstr(built[k].body, "linear(x, r)");
        snprintf(top, sizeof top, "%s%s", built[k].top, router ? "r [8, 4]\n" : "");
        ggl_status s = arch_try(top, built[k].body, built[k].lines, &g, &err);
        if (!CHECK_MSG(s == GGL_OK, "%s%s: %s", top, built[k].body, err.msg))
            continue;
        const ggl_tensor *t = arch_find(g, built[k].node);
        if (CHECK_MSG(t != NULL, "%s%s: no node %s", top, built[k].body, built[k].node)) {
            CHECK_MSG(t->op == built[k].op, "%s: op %s", built[k].body, ggl_op_get(t->op).name);
            for (int d = 0; d < 3; d++)
                CHECK_MSG(t->ne[d] == built[k].ne[d], "%s: dimension %d is %d", built[k].body, d,
                          (int)t->ne[d]);
        }
        ggl_graph_free(g);
    }
}

TEST(bias_is_passed_to_linear) {
    ggl_graph *g;
    ggl_error err;
    REQUIRE_OK(arch_try("w [8, 8] bias?\n", "y = linear(x, w)\nx = y\n",
                        "w.weight [8, 8]\nw.bias [8]\n", &g, &err),
               &err);
    const ggl_tensor *t = arch_find(g, "y");
    REQUIRE(t && t->n_src == 3 && t->src[2]);
    CHECK_STR(t->src[2]->name, "w.bias");
    ggl_graph_free(g);
}

TEST(an_op_is_one_node_with_its_numbers) {
    ggl_graph *g;
    ggl_error err;
    REQUIRE_OK(arch_try("w [8]\n", "y = rms(x, 0.25)\nz = rms_norm(x, w, 0.5)\nx = y + z\n",
                        "w.weight [8]\n", &g, &err),
               &err);
    const ggl_tensor *t = arch_find(g, "y");
    REQUIRE(t && t->op == GGL_OP_CALL && t->call && t->n_num == 1 && t->n_src == 1);
    CHECK_STR(t->call, "rms");
    CHECK(t->num[0] == 0.25);
    CHECK(!t->body->recurrent);
    const ggl_tensor *z = arch_find(g, "z"); /* inlined: rms, then * w */
    REQUIRE(z && z->op == GGL_OP_MUL && z->src[0]->op == GGL_OP_CALL);
    CHECK_STR(z->src[0]->call, "rms");
    ggl_graph_free(g);
}

TEST(recurrent_functions) {
    ggl_graph *g;
    ggl_error err;
    const char *top = "def mix(x, f):\n  s = state(size(x))\n  keep s = s * f + x\n  return s\n"
                      "def two(x):\n  s = state(size(x))\n  old = s\n  keep s = x\n  return old, "
                      "reshape(s, 4, 2)\n";
    REQUIRE_OK(arch_try(top, "y = mix(x, 0.5)\na, b = two(y)\nx = a + flat(b)\n", "", &g, &err),
               &err);
    const ggl_tensor *y = arch_find(g, "y"), *a = arch_find(g, "a"), *b = arch_find(g, "b");
    REQUIRE(y && a && b);
    CHECK(y->op == GGL_OP_CALL && y->body->recurrent && !y->call && y->n_num == 1 &&
          y->num[0] == 0.5);
    CHECK(a->n_dims == 1 && a->ne[0] == 8 && b->n_dims == 2 && b->ne[0] == 4 && b->ne[1] == 2);
    CHECK_INT(ggl_graph_n_stores(g), 2);
    ggl_graph_free(g);
    /* an op has a name, if all arguments are tensors and numbers; it may hide one of the prelude */
    REQUIRE_OK(
        arch_try("op recent(x, f):\n  s = state(size(x))\n  keep s = s * (f ?? 1) + x\n  return "
                 "s\n",
                 "y = recent(x, 0.5)\nz = recent(x, none)\nx = y + z\n", "", &g, &err),
        &err);
    y = arch_find(g, "y");
    REQUIRE(y && arch_find(g, "z"));
    CHECK_STR(y->call, "own:recent");
    CHECK(!arch_find(g, "z")->call);
    CHECK_INT(ggl_composite_of(y), GGL_COMPOSITE_NONE);
    ggl_graph_free(g);
    REQUIRE_OK(arch_try("", "x = x + recent(x, 2)[0]\n", "", &g, &err), &err);
    CHECK_INT(ggl_graph_n_stores(g), 1);
    ggl_graph_free(g);
}

/* A `for` repeats what stands in it, wherever a statement may stand; the number of times may be 0. */
TEST(repetitions) {
    static const char top[] = "def power(x, n):\n  y = 1\n  for i < n: y = y * x\n  return y\n"
                              "def pairs(n):\n  s = 0\n  for i < n:\n    for j < i: s = s + j\n  "
                              "for i < 2: s = s + i\n  return s\n"
                              "def slow(x):\n  s = state(size(x))\n  y = x\n  for i < 2: y = s / 2 "
                              "+ y\n  keep s = y\n  return s\n"
                              "require power(3, 0) == 1 and power(3, 4) == 81 and pairs(4) == 5\n"
                              "for = 2\nrequire for == 2\n";
    ggl_graph *g;
    ggl_error err;
    REQUIRE_OK(arch_try(top,
                        "for i < 3:\n  y = x * i\n  x = y + 1\nlayer l < 2:\n  for i < l: x = x + "
                        "i\nx = slow(x)\n",
                        "", &g, &err),
               &err);
    int n_mul = 0;
    for (int k = 0; k < ggl_graph_n_nodes(g); k++)
        n_mul += ggl_graph_node(g, k)->op == GGL_OP_MUL;
    CHECK_INT(n_mul, 3);
    ggl_graph_free(g);
}

/* Queries and keys of fewer heads than the values have: neighbouring heads share them, and backends still know the call. */
TEST(heads_share_keys_of_the_delta_rule) {
    static const struct {
        const char *groups;
        bool fits;
    } way[] = {{"8", true}, {"4", true}, {"1", true}, {"3", false}};
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        char body[256];
        ggl_graph *g;
        ggl_error err;
        snprintf(body, sizeof body,
                 "k = x[0] * reshape(iota(2 * %s), 2, %s)\n"
                 "y = gated_delta_rule(k, k, heads(x, 8), x, x)\nx = flat(y)\n",
                 way[i].groups, way[i].groups);
        const ggl_status s = arch_try("", body, "", &g, &err);
        if (!way[i].fits) {
            CHECK(s == GGL_FORMAT);
            CHECK_HAS(err.msg, "t.arch:7");
            CHECK_HAS(err.msg, "heads that do not divide into groups");
            continue;
        }
        REQUIRE_OK(s, &err);
        const ggl_tensor *y = arch_find(g, "y");
        REQUIRE(y && y->n_dims == 2 && y->ne[0] == 1 && y->ne[1] == 8);
        CHECK_INT(ggl_composite_of(y), GGL_COMPOSITE_GATED_DELTA_RULE);
        ggl_graph_free(g);
    }
}

TEST(layers_carry_and_group) {
    ggl_graph *g;
    ggl_error err;
    const char *body = "s = 0\nlayer l < 3:\n  w [8]\n  h = x * w\n  x = x + h\n  s = s + l\n  if "
                       "l == 2:\n    y = x * s\n    x = y\nout = x * s\nx = out\n";
    REQUIRE_OK(arch_try("", body, "blk.0.w.weight [8]\nblk.1.w.weight [8]\nblk.2.w.weight [8]\n",
                        &g, &err),
               &err);
    const ggl_tensor *h = arch_find(g, "blk.1 h"), *y = arch_find(g, "blk.2 y"),
                     *out = arch_find(g, "out");
    REQUIRE(h && y && out);
    CHECK_INT(h->group, 1);
    CHECK_STR(h->src[1]->name, "blk.1.w.weight");
    CHECK_STR(h->origin, "t.arch:9");
    CHECK(y->src[1]->op == GGL_OP_CONST &&
          *(const double *)y->src[1]->data == 3); /* 0 + 0 + 1 + 2 */
    CHECK_INT(out->group, 3);
    CHECK_INT(arch_find(g, "token_embd.weight")->group, -1);
    ggl_graph_free(g);
}

/* A dimension keeps the expression it came from through the usual ways. */
TEST(dimension_names) {
    static const struct {
        const char *body, *want;
    } list[] = {
        {"q = heads(linear(x, w), h)\nx = q * x\n", "'*' of [d, h = 3] and [n_embd = 8]"},
        {"a, b = split(linear(x, w), h*2, h*2)\nx = a * x\n", "'*' of [h*2 = 6] and [n_embd = 8]"},
        {"q = flat(heads(linear(x, w), h))\nx = q * x\n", "'*' of [d*h = 12] and [n_embd = 8]"},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char want[128];
        ggl_error err;
        CHECK(arch_try("h = .h\nd = .d\nw [8, h*d]\n", list[k].body,
                       "t.h = 3\nt.d = 4\nw.weight [8, 12]\n", NULL, &err) == GGL_SHAPE);
        snprintf(want, sizeof want, "%s", list[k].want);
        if (k == 0)
            snprintf(want, sizeof want, "'*' of [d = 4, h = 3] and [n_embd = 8]");
        CHECK_HAS(err.msg, want);
    }
}

TEST(result_and_notes) {
    model m;
    ggl_error err;
    llm_arch_result r;
    REQUIRE(model_new(&m,
                      "t.block_count = 2\nadapter.kind = \"lora\"\ntokenizer.ggml.model = "
                      "\"llama\"\nt.context_length = 3\n",
                      "model.gguf"));
    char *text = arch_text(
        "layer l < .block_count:\n  require l < 2\nif .block_count > 5:\n  require false\n", "");
    REQUIRE_OK(arch_build(text, &m, NULL, &r, &err), &err);
    CHECK_STR(r.family ? "t" : "", "t");
    CHECK_INT(r.n_layer, 2);
    CHECK_INT(r.n_vocab, 10);
    CHECK(!r.notes);
    CHECK(r.line_ran[2] && r.line_ran[3] && r.line_ran[4] && !r.line_ran[5]);
    llm_arch_result_fini(&r);
    free(text);
    model_free(&m);
}

TEST(convert_sections_parse) {
    const char *body =
        "convert A, \"B-c\":\n  .n <- config.a.b * 2 \?\? none\n  token_embd <- \"emb\" + 1\n"
        "convert C:\n  token_embd <- concat(rows(\"a.{l}\", 0, 2*n_embd), regroup(\"b\", n_embd, "
        "n_embd / 2))\n"
        "convert D:\n  arch <- \"t\"\n  require has(config.x), \"x\"\n"
        "  token_embd <- exp(transpose(pairs(stack(\"e.{e}\", 4), 2))) * -1 if not config.tied "
        "else none\n"
        "convert E:\n  token_embd <- llama3_factors(8, 10000, 8, 1, 4, 64)\n  ignore \"x.{e}\", "
        "\"y\"\n";
    ggl_error err;
    CHECK_OK(arch_try("", "", "", NULL, &err), &err);
    char *text = arch_text("", "");
    char all[2048];
    llm_arch *a;
    snprintf(all, sizeof all, "%s%s", text, body);
    CHECK_OK(llm_arch_parse(&a, all, strlen(all), "t.arch", &err), &err);
    llm_arch_free(a);
    free(text);
}
