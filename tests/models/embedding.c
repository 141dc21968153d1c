/* Embeddings: the output matrix times a token's embedding gives its logits, for all built-in descriptors;
 * runs that end early have the same bits; what sessions and engines hand out is the same however
 * tokens are cut into batches, with any threads, and alone or among others. */
#include "ggl/internal/sched.h"
#include "llm/internal/engine.h"

#include <math.h>

#include "ggl/internal/graph.h"
#include "sample.h"
#include "test.h"
#include "toy_run.h"

/* --- descriptors ------------------------------------------------------------------------------ */

enum { N = 6 };

static const ggl_tensor *weight_named(const ggl_graph *g, const char *name) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        if (t->op == GGL_OP_WEIGHT && strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

/* The product of the matrix of the output with an embedding, in double; of `size` at most. If it has fewer rows than there
 * are tokens, these are the last ones, and the others are never generated. */
static void product(const ggl_graph *g, const float *e, int64_t n_vocab, double *y, double *size) {
    const ggl_tensor *w = weight_named(g, "output.weight"), *b = weight_named(g, "output.bias");
    if (!w)
        w = weight_named(g, "token_embd.weight");
    *size = 0;
    const int64_t first = n_vocab - w->ne[1];
    for (int64_t i = 0; i < first; i++)
        y[i] = -INFINITY;
    for (int64_t i = first; i < n_vocab; i++) {
        const float *row = (const float *)w->data + (i - first) * w->ne[0];
        y[i] = b ? (double)((const float *)b->data)[i - first] : 0;
        for (int64_t k = 0; k < w->ne[0]; k++)
            y[i] += (double)row[k] * (double)e[k];
        *size = fmax(*size, fabs(y[i]));
    }
}

/* True if the logits are the product itself. Otherwise the descriptor scales, caps or masks it. */
static bool is_plain(const char *text) {
    const char *line = strstr(text, "\nlogits = linear(");
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    return end && end[-1] == ')' && !memchr(line, '/', (size_t)(end - line)) &&
           !memchr(line, '?', (size_t)(end - line));
}

/* Whether logits ascend, or all descend, with the product; masked ones are left out. */
static bool is_monotone(const double *y, const float *logits, int64_t n, double size) {
    int n_up = 0, n_down = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (fabs(y[i] - y[j]) > 1e-3 * size && logits[i] > -1e38f && logits[j] > -1e38f &&
                (double)logits[i] != (double)logits[j])
                ++*((y[i] > y[j]) == (logits[i] > logits[j]) ? &n_up : &n_down);
    return n_up + n_down > 0 && (n_up == 0 || n_down == 0);
}

static void check_product(const toy_model *t, const ggl_graph *g, const float *e,
                          const float *logits, int64_t n_vocab, bool is_exact) {
    double *y = malloc((size_t)n_vocab * sizeof *y), size, worst = 0;
    product(g, e, n_vocab, y, &size);
    for (int64_t i = 0; i < n_vocab; i++) {
        const double d = fabs(y[i] - (double)logits[i]);
        if (y[i] > -INFINITY || logits[i] > -INFINITY)
            worst = d > worst || isnan(d) ? d : worst;
    }
    CHECK_MSG(is_exact ? worst <= 1e-5 * size : is_monotone(y, logits, n_vocab, size),
              "%s (%s): the product with the embedding is %g away from logits of up to %g",
              llm_arch_name(t->arch), llm_arch_toy_text(t->toy), worst, size);
    free(y);
}

/* The first layer on one backend and the rest on another: the same embeddings. */
static void check_split(const toy_model *t, ggl_backend *const *cpu, ggl_backend *reference,
                        const float *e, size_t n) {
    toy_run r;
    ggl_error err = {0};
    const bool ok = toy_start(&r, t, cpu, 2, reference, 1, GGL_F16, &err);
    CHECK_MSG(ok, "%s: %s", llm_arch_name(t->arch), err.msg);
    if (!ok)
        return;
    CHECK(toy_prompt(&r, 0, N, N, NULL, &err));
    CHECK_OK(ggl_sched_clear_slot(r.sched, 0, &err), &err);
    CHECK_OK(ggl_sched_run_early(r.sched, N, NULL, 0, &err), &err);
    CHECK_MSG(memcmp(e, ggl_sched_output(r.sched, 1), n * sizeof *e) == 0,
              "%s: other embeddings on two backends", llm_arch_name(t->arch));
    toy_stop(&r);
}

static void check_toy(toy_model *t, ggl_backend *const *cpu, ggl_backend *reference,
                      bool is_exact) {
    toy_run with, without;
    ggl_error err = {0};
    t->embedding = false;
    if (!CHECK_OK(toy_start(&without, t, cpu, 1, reference, -1, GGL_F16, &err) ? GGL_OK : GGL_IO,
                  &err))
        return;
    t->embedding = true;
    const bool ok = toy_start(&with, t, cpu, 1, reference, -1, GGL_F16, &err);
    CHECK_MSG(ok, "%s (%s): %s", llm_arch_name(t->arch), llm_arch_toy_text(t->toy), err.msg);
    const size_t size = N * (size_t)without.n_vocab * sizeof(float);
    float *a = malloc(size), *b = malloc(size);
    if (ok &&
        CHECK(toy_prompt(&without, 0, N, N, a, &err) && toy_prompt(&with, 0, N, N, b, &err))) {
        CHECK_MSG(memcmp(a, b, size) == 0, "%s: other logits with embeddings",
                  llm_arch_name(t->arch));
        const ggl_tensor *out = ggl_graph_get_output(with.graph, 1);
        const size_t n = N * (size_t)out->ne[0];
        float *e = malloc(n * sizeof *e);
        memcpy(e, ggl_sched_output(with.sched, 1), n * sizeof *e);
        for (int i = 0; i < N; i++)
            check_product(t, with.graph, e + i * out->ne[0], b + i * with.n_vocab, with.n_vocab,
                          is_exact);
        /* the inputs are still set */
        CHECK_OK(ggl_sched_clear_slot(with.sched, 0, &err), &err);
        CHECK_OK(ggl_sched_run_early(with.sched, N, NULL, 0, &err), &err);
        CHECK_MSG(memcmp(e, ggl_sched_output(with.sched, 1), n * sizeof *e) == 0,
                  "%s: other embeddings without logits", llm_arch_name(t->arch));
        check_split(t, cpu, reference, e, n);
        free(e);
    }
    free(a);
    free(b);
    toy_stop(&without);
    if (ok)
        toy_stop(&with);
}

/* Logits that are joined with constants, cut, scaled and masked: the state before their product is found; of two
 * states there is no embedding. */
TEST(logits_that_are_more_than_a_product) {
    static const char head[] = "arch t\nlanguage 1\nn = .embedding_length\n"
                               "token_embd [n, n_vocab]\nx = token_embd[token]\n"
                               "y = x * sigmoid(x)\n";
    static const struct {
        const char *text, *state; /* NULL: none */
    } cases[] = {
        {"output [n, n_vocab]\nlogits = linear(y, output)\n", "y"},
        {"output [n, n_vocab - 5]\nlogits = concat(repeat(-inf, 5), linear(y, output))\n", "y"},
        {"output [n, n_vocab - 5]\nlogits = 3 * concat(tanh(linear(y, output)), repeat(-inf, 5))\n",
         "y"},
        {"output [n, n_vocab + 7]\nlogits, rest = split(linear(y, output), n_vocab, 7)\n", "y"},
        {"a [n, 8]\noutput [n, n_vocab - 8]\nlogits = concat(linear(y, a), linear(y, output))\n",
         "y"},
        {"a [n, 8]\noutput [n, n_vocab - 8]\nlogits = concat(linear(x, a), linear(y, output))\n",
         NULL},
    };
    ggl_backend *cpu = NULL, *reference = NULL;
    ggl_error err = {0};
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[800];
        toy_model t;
        toy_run r;
        const int n = snprintf(text, sizeof text, "%s%s", head, cases[i].text);
        if (!CHECK_MSG(toy_open(&t, "t.arch", text, (size_t)n, 0, &err), "%s: %s", text, err.msg))
            continue;
        t.embedding = true;
        const bool ok = toy_start(&r, &t, &cpu, 1, reference, -1, GGL_F16, &err);
        CHECK_MSG(ok == (cases[i].state != NULL), "%s: %s", text, ok ? "embeddings" : err.msg);
        if (ok) {
            const ggl_tensor *out = ggl_graph_get_output(r.graph, 1);
            CHECK_MSG(out && out->op == GGL_OP_MUL && out->n_dims == 1, "%s: another state", text);
            toy_stop(&r);
        } else {
            CHECK_HAS(err.msg, "gives no embeddings");
        }
        toy_close(&t);
    }
    ggl_backend_close(cpu);
    ggl_backend_close(reference);
}

static void check_descriptors(void) {
    ggl_backend *cpu[2] = {NULL}, *reference = NULL;
    ggl_error err = {0};
    const char *name, *text;
    size_t n;
    for (int i = 0; i < 2; i++)
        CHECK_OK(ggl_backend_open(
                     &cpu[i], "cpu",
                     &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1 + i},
                     &err),
                 &err);
    CHECK_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (int variant = 0; variant < 2; variant++) {
            toy_model t;
            if (!sampled(k, TEST_SANITIZED ? 16 : 50) || !strstr(text, "\nlogits =") ||
                strstr(text, "\nembedding ="))
                continue; /* the prelude has no logits; others say what their embedding is */
            if (!CHECK_OK(toy_open(&t, name, text, n, variant, &err) ? GGL_OK : GGL_IO, &err))
                continue;
            check_toy(&t, cpu, reference, is_plain(text));
            toy_close(&t);
        }
    for (int i = 0; i < 2; i++)
        ggl_backend_close(cpu[i]);
    ggl_backend_close(reference);
}

/* Other families each day. */
LONG_TEST(product_is_the_logits) {
    check_descriptors();
}

/* --- sessions and engines --------------------------------------------------------------------- */

enum { CTX = 128, JOBS = 60, PARALLEL = 4 };

typedef struct fixture {
    ggl_backend *cpu, *one_thread, *reference;
    llm_model *model;
    llm_session *s, *alone; /* alone: all rows at once, on one thread */
    int64_t n_vocab, n_embd;
    uint64_t seed;
    ggl_error err;
} fixture;

static bool session_open(fixture *f, llm_session **s, ggl_backend **b, llm_session_params p) {
    p.type_k = p.type_v = GGL_F16;
    p.n_ctx = CTX;
    p.backend = b;
    p.n_backends = 1;
    p.fold = f->reference;
    return CHECK_OK(llm_session_new(s, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

static bool setup(fixture *f) {
    *f = (fixture){.seed = sample_seed()};
    const llm_session_params alone = {
        .size = sizeof alone, .n_ubatch = CTX, .n_slots = 1, .n_rows = CTX, .embeddings = true};
    const llm_session_params many = {.size = sizeof many,
                                     .n_ubatch = 24,
                                     .n_slots = PARALLEL + 2,
                                     .n_rows = 5,
                                     .n_pool = 320,
                                     .embeddings = true};
    return CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(
                        &f->cpu, "cpu",
                        &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 2},
                        &f->err),
                    &f->err) &&
           CHECK_OK(ggl_backend_open(
                        &f->one_thread, "cpu",
                        &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1},
                        &f->err),
                    &f->err) &&
           CHECK_OK(llm_model_open(&f->model, BUILTIN_MODEL, NULL, &f->err), &f->err) &&
           session_open(f, &f->alone, &f->one_thread, alone) &&
           session_open(f, &f->s, &f->cpu, many) &&
           CHECK((f->n_vocab = llm_session_n_vocab(f->s)) > 0) &&
           CHECK((f->n_embd = llm_session_n_embd(f->s)) > 0);
}

static void teardown(fixture *f) {
    llm_session_free(f->s);
    llm_session_free(f->alone);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->one_thread);
    ggl_backend_close(f->reference);
}

static int below(fixture *f, int64_t n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

typedef struct job {
    fixture *f;
    int32_t prompt[CTX];
    int64_t n_prompt, from, end, n; /* n: embeddings so far */
    llm_pooling pooling;
    float *exact;         /* [n_prompt][n_embd] */
    llm_sampler *sampler; /* of a sequence that generates; NULL: of one that is embedded */
    bool has_ended;
} job;

static void keep(void *ctx, int64_t i, const float *embedding) {
    job *j = ctx;
    memcpy(j->exact + i * j->f->n_embd, embedding, (size_t)j->f->n_embd * sizeof *embedding);
}

static void compare(void *ctx, int64_t i, const float *embedding) {
    job *j = ctx;
    const size_t n = (size_t)j->f->n_embd;
    CHECK_INT(i, j->from + j->n++);
    CHECK_MSG(memcmp(embedding, j->exact + (size_t)i * n, n * sizeof *embedding) == 0,
              "token %d of %d has other bits", (int)i, (int)j->n_prompt);
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    job *j = ctx;
    CHECK_OK(err ? err->status : GGL_OK, err);
    CHECK(!j->has_ended && stats->n_prompt == (j->sampler ? j->n_prompt : j->end));
    CHECK(j->sampler || (why == LLM_END_MAX && stats->n_drawn == 0 && stats->t_prompt > 0));
    j->has_ended = true;
}

/* A prompt, and its embeddings when it runs alone; half of them without logits. */
static void fill(job *j, fixture *f, const int32_t *common) {
    static bool all[CTX];
    const int64_t n_common = below(f, 2) ? below(f, 60) : 0;
    *j = (job){.f = f, .n_prompt = n_common + 1 + below(f, 50)};
    for (int64_t i = 0; i < j->n_prompt; i++)
        j->prompt[i] = i < n_common ? common[i] : below(f, f->n_vocab);
    j->pooling = below(f, 2) ? LLM_POOL_MEAN : below(f, 2) ? LLM_POOL_LAST : LLM_POOL_CLS;
    llm_pooling_range(j->pooling, 0, j->n_prompt, &j->from, &j->end);
    j->exact = calloc((size_t)(j->n_prompt * f->n_embd), sizeof *j->exact);
    memset(all, true, sizeof all);
    const llm_batch b = {.n = j->n_prompt,
                         .token = j->prompt,
                         .want = below(f, 2) ? all : NULL,
                         .want_embedding = all,
                         .each_embedding = keep,
                         .ctx = j};
    CHECK_OK(llm_session_clear(f->alone, 0, &f->err), &f->err);
    CHECK_OK(llm_session_eval(f->alone, &b, &f->err), &f->err);
    const llm_sampler_params sampling = llm_sampler_default();
    if (below(f, 3) == 0)
        CHECK_OK(llm_sampler_new(&j->sampler, &sampling, (int32_t)f->n_vocab, CTX, &f->err),
                 &f->err);
}

static void add(llm_engine *e, job *j) {
    uint64_t id;
    ggl_error err = {0};
    const llm_sequence_params p = {.size = sizeof p,
                                   .prompt = j->prompt,
                                   .n_prompt = (size_t)j->n_prompt,
                                   .sampler = j->sampler,
                                   .n_max = j->sampler ? 12 : 0,
                                   .embedded = j->sampler ? NULL : compare,
                                   .pooling = j->pooling,
                                   .ended = on_end,
                                   .ctx = j};
    CHECK_OK(llm_engine_add(e, &p, &id, &err), &err);
}

/* Sequences that are embedded and sequences that generate, in steps of both. */
LONG_TEST(same_bits_among_others) {
    fixture f;
    static job jobs[JOBS];
    int32_t common[CTX];
    llm_engine *e = NULL;
    bool ok = setup(&f);
    for (int i = 0; ok && i < CTX; i++)
        common[i] = below(&f, f.n_vocab);
    const llm_engine_params p = {.size = sizeof p, .session = f.s, .n_parallel = PARALLEL};
    ok = ok && CHECK_OK(llm_engine_new(&e, &p, &f.err), &f.err);
    for (int i = 0; ok && i < JOBS; i++) {
        fill(&jobs[i], &f, common);
        add(e, &jobs[i]);
        for (int k = below(&f, 4); k > 0; k--)
            CHECK_OK(llm_engine_step(e, &f.err), &f.err);
    }
    while (ok && llm_engine_n_running(e) + (int)llm_engine_n_waiting(e) > 0)
        ok = CHECK_OK(llm_engine_step(e, &f.err), &f.err);
    for (int i = 0; i < JOBS && ok; i++) {
        CHECK(jobs[i].has_ended);
        CHECK_INT(jobs[i].n, jobs[i].sampler ? 0 : jobs[i].end - jobs[i].from);
        llm_sampler_free(jobs[i].sampler);
        free(jobs[i].exact);
    }
    CHECK(!ok || llm_engine_get_stats(e).n_reused > 0);
    llm_engine_free(e);
    teardown(&f);
}

TEST(refused) {
    fixture f;
    llm_session *without = NULL;
    llm_engine *e = NULL;
    uint64_t id;
    const int32_t token[2] = {1, 2};
    const bool want[2] = {true, true};
    const llm_session_params plain = {
        .size = sizeof plain, .n_ubatch = 8, .n_slots = 1, .n_rows = 1};
    if (setup(&f) && session_open(&f, &without, &f.cpu, plain)) {
        const llm_batch b = {.n = 2, .token = token, .want_embedding = want};
        CHECK_INT(llm_session_n_embd(without), 0);
        CHECK_INT(llm_session_eval(without, &b, &f.err), GGL_USAGE);
        CHECK(strstr(f.err.msg, "llm_session_params.embeddings"));
        const llm_sequence_params good = {
            .size = sizeof good, .prompt = token, .n_prompt = 2, .embedded = compare};
        llm_sequence_params bad[3] = {good, good, good};
        bad[0].n_max = 1;
        bad[1].pooling = LLM_POOL_RANK; /* the model has no scores */
        bad[2].prompted = compare;
        const llm_engine_params p = {.size = sizeof p, .session = f.s, .n_parallel = 1};
        if (CHECK_OK(llm_engine_new(&e, &p, &f.err), &f.err))
            for (int i = 0; i < 3; i++)
                CHECK_INT(llm_engine_add(e, &bad[i], &id, &f.err), GGL_USAGE);
        llm_engine_free(e);
        const llm_engine_params q = {.size = sizeof q, .session = without, .n_parallel = 1};
        if (CHECK_OK(llm_engine_new(&e, &q, &f.err), &f.err))
            CHECK_INT(llm_engine_add(e, &good, &id, &f.err), GGL_USAGE);
        llm_engine_free(e);
    }
    llm_session_free(without);
    teardown(&f);
}
