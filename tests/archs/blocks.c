/* block_of of the prelude: the block of each position that an f32 holds, and no context beyond these. */
#include "arch_test.h"
#include "ggl/backends.h"
#include "ggl/internal/graph.h"
#include "ggl/sched.h"
#include "test.h"

enum { N_SIZES = 5 }; /* the little model has 10 logits */

static const char blocks[] =
    "y = concat(block_of(1), block_of(3), block_of(7), block_of(100), block_of(8192))\n"
    "x = x + sum(y)\n";
static const int32_t size[N_SIZES] = {1, 3, 7, 100, 8192};

/* Builds the graph with y as its output, of the model *m, which outlives it. NULL: err says why. */
static ggl_graph *build(int64_t n_pos, model *m, ggl_error *err) {
    llm_arch *arch = NULL;
    char *text = arch_text("", blocks);
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = n_pos;
    p.n_batch = 64;
    ggl_graph *g = ggl_graph_new(&p);
    bool ok = CHECK(g && model_new(m, "", "model.gguf"));
    const llm_arch_source src = ok ? llm_arch_source_gguf(m->file) : (llm_arch_source){0};
    ok = ok && llm_arch_parse(&arch, text, strlen(text), "t.arch", err) == GGL_OK &&
         llm_arch_build(arch, &src, NULL, g, NULL, err) == GGL_OK;
    for (int i = 0; ok && i < ggl_graph_n_nodes(g); i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        if (t->name && strcmp(t->name, "y") == 0)
            ggl_graph_output(g, "y", t);
    }
    ok = ok && ggl_graph_finish(g, err) == GGL_OK;
    llm_arch_free(arch);
    free(text);
    if (ok)
        return g;
    ggl_graph_free(g);
    return NULL;
}

static void check_block(const char *backend, int32_t pos, int32_t n, const float *y) {
    const int32_t first = pos - pos % n;
    /* what is behind the last position holds no row, so it may be rounded there */
    const bool ends = y[1] == (float)(first + n) && y[1] > (float)pos;
    CHECK_MSG(y[0] == (float)first && ends, "%s: position %d is in the block %.0f to %.0f of %d",
              backend, pos, (double)y[0], (double)y[1], n);
}

/* Positions around the ends of blocks, small ones and those where f32 holds no halves. */
static void check_blocks(ggl_graph *g, const char *backend) {
    static const int32_t near[] = {0,       8191,    1 << 20,  5000000,
                                   1 << 23, 8400000, 12345678, (1 << 24) - 7};
    ggl_error err = {0};
    ggl_backend *b = NULL;
    ggl_sched *s = NULL;
    int32_t token[64] = {0}, pos[64];
    bool ok = CHECK_OK(ggl_backend_open(&b, backend, NULL, &err), &err) &&
              CHECK_OK(ggl_sched_new(&s, g,
                                     &(ggl_sched_params){.size = sizeof(ggl_sched_params),
                                                         .backend = &b,
                                                         .n_backends = 1},
                                     &err),
                       &err) &&
              CHECK_OK(ggl_sched_alloc(s, &err), &err);
    for (size_t k = 0; ok && k < sizeof near / sizeof *near; k++)
        for (int i = 0; ok && i < N_SIZES; i++) {
            for (int j = 0; j < 64; j++) {
                const int32_t end =
                    (near[k] + size[i]) / size[i] * size[i] + (j / 8 - 4) * size[i] + j % 8 - 4;
                pos[j] = end < 0 ? 0 : end < 1 << 24 ? end : (1 << 24) - 1;
            }
            ok = CHECK_OK(ggl_sched_set(s, "pos", pos, sizeof pos, 64, &err), &err) &&
                 (!ggl_graph_find_input(g, "token") ||
                  CHECK_OK(ggl_sched_set(s, "token", token, sizeof token, 64, &err), &err)) &&
                 CHECK_OK(ggl_sched_run(s, 64, NULL, 0, &err), &err);
            const float *y = ok ? ggl_sched_output(s, ggl_graph_n_outputs(g) - 1) : NULL;
            for (int j = 0; ok && j < 64; j++)
                for (int n = 0; n < N_SIZES; n++)
                    check_block(backend, pos[j], size[n], y + j * 2 * N_SIZES + 2 * n);
        }
    ggl_sched_free(s);
    if (b)
        ggl_backend_close(b);
}

TEST(each_position) {
    ggl_error err = {0};
    model m;
    ggl_graph *g = build(1 << 24, &m, &err);
    REQUIRE_OK(err.status, &err);
    check_blocks(g, "cpu");
    check_blocks(g, "reference");
    ggl_graph_free(g);
    model_free(&m);
}

TEST(contexts_beyond) {
    ggl_error err = {0};
    model m;
    CHECK(!build((1 << 24) + 1, &m, &err));
    model_free(&m);
    CHECK_HAS(err.msg, "a context of more than 16777216 tokens");
}
