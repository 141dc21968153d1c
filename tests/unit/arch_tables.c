/* llm-arch show and init of files with very many tensors, and graph of very large graphs: steps are
 * linear in them. */
#include "ggl/internal/gguf.h"
#include "llm-arch/figure.h"
#include "llm-arch/plot.h"
#include "llm-arch/tool.h"
#include "steps.h"

/* Tensors of so many names, or of one name in as many layers, each of another shape. */
static bool write_model(const char *path, int n, bool layers) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_error err = {0};
    ggl_gguf_put_string(w, "general.architecture", "x", 1);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name,
                 layers  ? "blk.%d.a.weight"
                 : i % 2 ? "a%d.bias"
                         : "a%d.weight",
                 i);
        ggl_gguf_put_tensor(w, name, GGL_F32, 2, (int64_t[]){0, i}, "");
    }
    ggl_status s = ggl_gguf_writer_write(w, path, &err);
    ggl_gguf_writer_free(w);
    return CHECK_OK(s, &err);
}

static uint64_t steps_of(arch_command *command, char *name, int n, bool layers) {
    char path[1100];
    snprintf(path, sizeof path, "%s", test_path("model.gguf"));
    if (!write_model(path, n, layers))
        return 0;
    char tool[] = "llm-arch", *argv[] = {tool, path, NULL, NULL};
    if (name) {
        argv[1] = name;
        argv[2] = path;
    }
    ggl_n_steps = 0;
    CHECK_INT(command(name ? 3 : 2, argv), 0);
    return ggl_n_steps;
}

static void check(arch_command *command, char *name) {
    REQUIRE(freopen(TEST_NOWHERE, "w", stdout)); /* what they print */
    for (int layers = 0; layers < 2; layers++)
        test_linear(layers ? "a name in many layers" : "many names",
                    steps_of(command, name, 2000, layers), steps_of(command, name, 20000, layers),
                    10);
}

TEST(show) {
    check(arch_show, NULL);
}

TEST(init) {
    char name[] = "x";
    check(arch_init, name);
}

static uint64_t steps_of_layers(int n) {
    char text[512], path[1100], tool[] = "llm-arch", *argv[] = {tool, path, NULL};
    snprintf(path, sizeof path, "%s", test_path("x.arch"));
    int size = snprintf(
        text, sizeof text,
        "arch x\nlanguage 1\ntoken_embd [.embedding_length, n_vocab]\nx = token_embd[token]\n"
        "layer l < %d:\n  x = x * 2 + 1\n  x = silu(x)\nlogits = linear(x, token_embd)\n",
        n);
    if (!CHECK(test_write_file(path, text, (size_t)size)))
        return 0;
    ggl_n_steps = 0;
    CHECK_INT(arch_graph(2, argv), 0);
    return ggl_n_steps;
}

TEST(graph_of_many_layers) {
    REQUIRE(freopen(TEST_NOWHERE, "w", stdout));
    test_linear("layers", steps_of_layers(100), steps_of_layers(1000), 10);
}

typedef enum wiring {
    CHAIN,
    STAR,
    FAN
} wiring; /* each reads the last one; all read the first; both */

/* Steps to draw n nodes. */
static uint64_t steps_to_draw(wiring how, int n, ggl_status expected) {
    figure_block block[2] = {{.title = "before"}, {.title = "after"}};
    figure f = {.block = block, .n = 2};
    ggl_error err = {0};
    FILE *out = fopen(TEST_NOWHERE, "w");
    if (!CHECK(out))
        return 0;
    for (int k = 0; k < 2; k++) {
        block[k].node = calloc((size_t)n, sizeof *block[k].node);
        block[k].n = k == 0 ? n : 1;
    }
    for (int i = 0; i < n; i++) {
        figure_node *t = &block[0].node[i];
        t->kind = FIGURE_CURVE;
        snprintf(t->in_shape[0], sizeof t->in_shape[0], "%d", i);
        t->n_in = i == 0 ? 0 : how == FAN ? 2 : 1;
        t->in[0] = how == STAR || i == 0 ? 0 : i - 1;
    }
    ggl_n_steps = 0;
    CHECK_INT(figure_draw(out, &f, 1, "x", "y", "cpu", &err), expected);
    if (expected != GGL_OK)
        CHECK_HAS(err.msg, "--format dot");
    fclose(out);
    for (int k = 0; k < 2; k++)
        free(block[k].node);
    return ggl_n_steps;
}

LONG_TEST(large_pictures) {
    test_linear("a chain", steps_to_draw(CHAIN, 1000, GGL_OK), steps_to_draw(CHAIN, 10000, GGL_OK),
                10);
    test_linear("a star", steps_to_draw(STAR, 1000, GGL_OK), steps_to_draw(STAR, 10000, GGL_OK),
                10);
    CHECK(steps_to_draw(FAN, 1000, GGL_LIMIT) < 100000); /* half a million bends */
}
