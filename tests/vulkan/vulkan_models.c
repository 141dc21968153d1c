/* vulkan.models: whole models on the device. Every built-in descriptor with made-up weights, and
 * the models of the repository: logits near those of the reference backend, however a prompt is
 * cut. Without integer dot products, for which activations would be rounded. */
#include <math.h>

#include "../models/toy_run.h"
#include "ggl/internal/sched.h"
#include "llm/internal/session.h"
#include "sample.h"
#include "vulkan_test.h"

enum { N = 70 /* beyond a page of 64 positions, and beyond every toy's window */ };

static double largest(const float *x, size_t n) {
    double y = 0;
    for (size_t i = 0; i < n; i++)
        y = isfinite(x[i]) ? fmax(y, fabs((double)x[i])) : y;
    return y;
}

/* Errors measured by the largest logit, or by 1. Tokens that the descriptor forbids have the logit -infinity. */
static void check_near(const char *what, const float *got, const float *want, size_t n,
                       double bound) {
    double worst = 0, size = fmax(largest(want, n), 1);
    for (size_t i = 0; i < n; i++) {
        double d = got[i] == want[i] ? 0 : fabs((double)got[i] - (double)want[i]);
        worst = d > worst || isnan(d) ? d : worst;
    }
    printf("%s: %.3g of %.3g\n", what, worst, size);
    CHECK_MSG(worst <= bound * size, "%s: %g away from the reference (logits up to %g)", what,
              worst, size);
}

/* --- toys ----------------------------------------------------------------------------------- */

typedef struct logits {
    float *at;
    size_t n;
} logits;

static bool prompt(const toy_model *t, ggl_backend *b, ggl_backend *fold, int chunk, ggl_type kv,
                   logits *out) {
    toy_run r;
    ggl_error err = {0};
    bool ok = toy_start(&r, t, &b, 1, fold, -1, kv, &err);
    if (ok) {
        /* where there are states the first tokens count: random weights make some grow with every
         * token, until the differences of large numbers are all that is left of the logits */
        out->n = (size_t)r.n_vocab * (ggl_sched_has_states(r.sched) ? 20 : N);
        out->at = realloc(out->at, (size_t)r.n_vocab * N * sizeof *out->at);
        ok = toy_prompt(&r, 1, N, chunk, out->at, &err);
        toy_stop(&r);
    }
    return CHECK_MSG(ok, "%s (%s): %s", llm_arch_name(t->arch), llm_arch_toy_text(t->toy), err.msg);
}

/* As few pieces as can be, and many: of 5 tokens or of 1. */
static void check_toy(const toy_model *t, ggl_backend *vulkan, ggl_backend *reference,
                      bool single) {
    const int chunk[] = {TOY_BATCH, single ? 1 : 5};
    logits want = {0}, got = {0};
    bool ok = prompt(t, reference, reference, TOY_BATCH, GGL_F32, &want);
    for (size_t i = 0; ok && i < sizeof chunk / sizeof *chunk; i++) {
        char what[96];
        snprintf(what, sizeof what, "%s (%s), in pieces of %d", llm_arch_name(t->arch),
                 llm_arch_toy_text(t->toy), chunk[i]);
        ok = prompt(t, vulkan, reference, chunk[i], GGL_F32, &got);
        if (ok)
            check_near(what, got.at, want.at, want.n, TOY_BOUND);
    }
    free(want.at);
    free(got.at);
}

/* Of nine descriptors: nothing optional, and everything; the one in pieces of 5 tokens, the other in single tokens, and the other
 * way round on the next day. */
TEST(descriptors) {
    const char *name, *text;
    size_t n;
    ggl_error err = {0};
    ggl_backend *vulkan = vulkan_open("idot,matrix"), *reference = NULL;
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    for (int k = 0; vulkan && llm_arch_builtin(k, &name, &text, &n); k++)
        for (int variant = 0; variant < 2 && sampled(k, 9); variant++) {
            toy_model t;
            if (!CHECK_MSG(toy_open(&t, name, text, n, variant, &err), "%s: %s", name, err.msg))
                continue;
            if (CHECK_MSG(toy_settle(&t, N, &err), "%s: %s", name, err.msg))
                check_toy(&t, vulkan, reference, (sample_turn(2) + (uint64_t)variant) % 2 == 0);
            toy_close(&t);
        }
    ggl_backend_close(vulkan);
    ggl_backend_close(reference);
}

/* Chains and groups of steps as one dispatch, and as one dispatch each, give the same bits: without
 * and with integer dot products and matrix units. Products are groups if their weights lie in one
 * region, as those of a file do: here, if they are copied. */
typedef struct ways {
    ggl_backend *fused, *apart;
    ggl_type kv;
} ways;

static const struct {
    const char *fused, *apart;
    ggl_type kv;
} mask[] = {{"import,idot", "import,idot,fuse", GGL_F32}, {"import", "import,fuse", GGL_F16}};
enum { N_WAYS = sizeof mask / sizeof *mask };

static void check_fused(const toy_model *t, ggl_backend *reference, const ways *w, bool single) {
    logits fused = {0}, apart = {0};
    for (int i = 0; i < N_WAYS; i++) {
        const int chunk = single == (i == 0) ? 1 : TOY_BATCH;
        if (prompt(t, w[i].fused, reference, chunk, w[i].kv, &fused) &&
            prompt(t, w[i].apart, reference, chunk, w[i].kv, &apart))
            CHECK_MSG(memcmp(fused.at, apart.at, fused.n * sizeof *fused.at) == 0,
                      "%s (%s), in pieces of %d, without %s: other bits than without %s",
                      llm_arch_name(t->arch), llm_arch_toy_text(t->toy), chunk, mask[i].fused,
                      mask[i].apart);
    }
    free(fused.at);
    free(apart.at);
}

/* Of two descriptors; also on matrix units, if the device has them. Both share the backends: most of
 * the time is the compilation of pipelines. */
TEST(fused_bits) {
    const char *name, *text;
    size_t n;
    ggl_error err = {0};
    ways w[N_WAYS] = {{0}};
    bool open = true;
    ggl_backend *reference = NULL;
    setenv("GGL_VULKAN_FORCE", "idot,matrix", 1);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    for (int i = 0; i < N_WAYS && open; i++) {
        w[i] = (ways){.fused = vulkan_open(mask[i].fused), .kv = mask[i].kv};
        open = w[i].fused && (w[i].apart = vulkan_open(mask[i].apart));
    }
    for (int k = 0; open && llm_arch_builtin(k, &name, &text, &n); k++)
        for (int variant = 0; variant < 2 && sampled(k, 2); variant++) {
            toy_model t;
            if (!CHECK_MSG(toy_open(&t, name, text, n, variant, &err), "%s: %s", name, err.msg))
                continue;
            check_fused(&t, reference, w, (sample_turn(2) + (uint64_t)variant) % 2 == 0);
            toy_close(&t);
        }
    unsetenv("GGL_VULKAN_FORCE");
    for (int i = 0; i < N_WAYS; i++) {
        ggl_backend_close(w[i].fused);
        ggl_backend_close(w[i].apart);
    }
    ggl_backend_close(reference);
}

/* --- files ---------------------------------------------------------------------------------- */

typedef struct rows {
    float *at;
    int64_t n_vocab;
} rows;

static void keep_row(void *ctx, int64_t i, const float *row) {
    rows *r = ctx;
    memcpy(r->at + i * r->n_vocab, row, (size_t)r->n_vocab * sizeof *row);
}

/* Logits of the first n tokens of some text, all in one piece; free() them. */
static float *logits_of(const llm_model *m, ggl_backend *b, ggl_backend *fold, ggl_type kv, int n,
                        size_t *count) {
    llm_session_params p = llm_session_default();
    llm_session *s = NULL;
    ggl_error err = {0};
    rows r = {0};
    p.n_ctx = 128;
    p.n_ubatch = 24;
    p.n_rows = 8;
    p.type_k = p.type_v = kv;
    p.backend = &b;
    p.n_backends = 1;
    p.fold = fold;
    if (CHECK_OK(llm_session_new(&s, m, &p, &err), &err) &&
        CHECK_OK(llm_session_alloc(s, &err), &err)) {
        int32_t token[N];
        bool want[N];
        r.n_vocab = llm_session_n_vocab(s);
        r.at = calloc((size_t)(n * r.n_vocab), sizeof *r.at);
        for (int i = 0; i < n; i++) {
            token[i] = (int32_t)(i == 0 ? 1 : (unsigned)i * 7919u % (unsigned)r.n_vocab);
            want[i] = true;
        }
        const llm_batch batch = {.n = n, .token = token, .want = want, .each = keep_row, .ctx = &r};
        CHECK_OK(llm_session_eval(s, &batch, &err), &err);
        *count = (size_t)(n * r.n_vocab);
    }
    llm_session_free(s);
    return r.at;
}

static void check_file(const char *path, ggl_type kv) {
    enum { TOKENS = 30 };
    ggl_error err = {0};
    llm_model *m = NULL;
    size_t n = 0;
    ggl_backend *vulkan = vulkan_open("idot,matrix"), *reference = NULL;
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    if (vulkan && CHECK_OK(llm_model_open(&m, path, NULL, &err), &err)) {
        float *got = logits_of(m, vulkan, reference, kv, TOKENS, &n),
              *want = logits_of(m, reference, reference, kv, TOKENS, &n);
        if (got && want)
            check_near(path, got, want, n, kv == GGL_F32 ? 2e-5 : 2e-3);
        free(got);
        free(want);
    }
    llm_model_free(m);
    ggl_backend_close(vulkan);
    ggl_backend_close(reference);
}

TEST(builtin) {
    check_file(MODELS "/models/builtin/stories.gguf", GGL_F32);
}
TEST(builtin_f16_cache) {
    check_file(MODELS "/models/builtin/stories.gguf", GGL_F16);
}
TEST(gpt2) {
    check_file(MODELS "/tests/data/stories-gpt2.gguf", GGL_F32);
}
TEST(qwen2) {
    check_file(MODELS "/tests/data/stories-qwen2.gguf", GGL_F32);
}
TEST(qwen3) {
    check_file(MODELS "/tests/data/stories-qwen3.gguf", GGL_F32);
}
