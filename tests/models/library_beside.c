/* Several contexts of one model (llm_open_beside): each gives what a context of a file that was opened alone gives, whatever the others
 * do, and they share the prepared weights. */
#include <pthread.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/sched.h"
#include "library_test.h"
#include "opening.h"

static const char story[] = "Once upon a time", other_story[] = "The cat sat";

/* What one context gives: a text, or a vector. */
typedef struct given {
    written text;
    float vector[512];
} given;

/* Generates, and embeds if the context can. */
static bool run(llm_context *c, const char *prompt, given *g) {
    ggl_error err;
    const llm_generate_params p = greedy(24);
    *g = (given){0};
    if (llm_context_facts(c)->n_embd > 0 &&
        !CHECK_OK(llm_embed(c, prompt, strlen(prompt), g->vector, &err), &err))
        return false;
    return CHECK_OK(llm_generate(c, prompt, &p, take, &g->text, &err), &err);
}

static bool same(const given *a, const given *b) {
    return CHECK(a->text.n > 0) && CHECK_STR(a->text.s, b->text.s) &&
           CHECK(memcmp(a->vector, b->vector, sizeof a->vector) == 0);
}

/* Opens another context of the same model. */
static llm_context *beside(const llm_context *c, llm_open_params p) {
    ggl_error err;
    llm_context *out = NULL;
    p.size = sizeof p;
    p.n_ctx = p.n_ctx ? p.n_ctx : 128;
    p.n_threads = 2;
    CHECK_OK(llm_open_beside(&out, c, &p, &err), &err);
    return out;
}

/* Other windows, slots, types of the cache, devices, templates; one embeds. */
static const llm_open_params kinds[] = {
    {.n_ctx = 128},
    {.n_ctx = 96, .embeddings = true, .pooling = "mean"},
    {.n_ctx = 200, .n_parallel = 3, .cache_type_k = "q8_0", .chat_template = "chatml"},
    {.device = "cpu1", .n_gpu_layers = 1},
    {.no_repack = true},
    {.repack_late = true},
    {.lookup = true}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* Each beside the first, and beside one that is beside it; the first may be closed. */
TEST(as_alone) {
    llm_context *first = open_with("builtin:stories", kinds[0]), *c[N_KINDS];
    static given want, got;
    REQUIRE(first && run(first, story, &want));
    for (int k = 0; k < N_KINDS; k++) {
        c[k] = beside(k % 2 ? c[k - 1] : first, kinds[k]);
        REQUIRE(c[k]);
    }
    CHECK(run(first, story, &got) && same(&got, &want));
    llm_close(first);
    for (int k = N_KINDS - 1; k >= 0; k--) {
        llm_context *alone = open_with("builtin:stories", kinds[k]);
        REQUIRE(alone && run(alone, story, &want) && run(c[k], story, &got));
        CHECK_MSG(same(&got, &want), "context %d", k);
        CHECK_INT(llm_context_facts(c[k])->has_chat, llm_context_facts(alone)->has_chat);
        CHECK_INT(llm_context_facts(c[k])->n_ctx, llm_context_facts(alone)->n_ctx);
        llm_close(alone);
        llm_close(c[k]);
    }
}

typedef struct worker {
    const llm_context *of;
    llm_open_params p;
    const char *prompt;
    given got;
} worker;

static void *work(void *arg) {
    worker *w = arg;
    llm_context *c = beside(w->of, w->p);
    for (int i = 0; i < 3 && c; i++)
        run(c, w->prompt, &w->got);
    llm_close(c);
    return NULL;
}

/* Contexts are opened, used and closed by several threads, while the first one is in use. */
TEST(threads) {
    static worker w[4];
    static given want[4], mine;
    pthread_t thread[4];
    llm_context *first = open_with("builtin:stories", (llm_open_params){.repack_late = true});
    REQUIRE(first);
    for (int i = 0; i < 4; i++) {
        w[i] = (worker){first,
                        {.embeddings = i % 2 == 0, .repack_late = i == 1},
                        i < 2 ? story : other_story,
                        {.text = {.n = 0}}};
        llm_context *alone = open_with("builtin:stories", w[i].p);
        REQUIRE(alone && run(alone, w[i].prompt, &want[i]));
        llm_close(alone);
    }
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&thread[i], NULL, work, &w[i]) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(run(first, story, &mine));
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++)
        same(&w[i].got, &want[i]);
    llm_close(first);
}

/* Bytes of prepared weights that the context has allocated for itself. */
static long long own_weights(const llm_context *c) {
    ggl_memory m;
    const bool ok = ggl_sched_memory(llm_session_sched(llm_opened_session(c)), 0, &m);
    return CHECK(ok) ? (long long)m.weights_repacked : -1;
}

/* Only the first context prepares them, and another one the few that the first does not need; after that one was closed, too. */
TEST(weights_are_shared) {
    static given g;
    llm_context *first = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(first);
    const long long all = own_weights(first);
    CHECK(all > 100000);
    for (int k = 0; k < N_KINDS; k++) {
        llm_context *c = beside(first, kinds[k]);
        REQUIRE(c);
        CHECK_MSG(own_weights(c) == 0, "context %d: %lld bytes", k, own_weights(c));
        llm_close(c);
    }
    llm_context *second = beside(first, kinds[0]), *third;
    llm_close(first);
    REQUIRE(second && (third = beside(second, kinds[1])) && run(third, story, &g));
    CHECK_INT(own_weights(third), 0);
    llm_close(second);
    llm_close(third);
    REQUIRE((first = open_with("builtin:stories", kinds[0])));
    CHECK_INT(own_weights(first), all);
    llm_close(first);
}

/* Layers that guess, in a file of their own, were joined when the model was opened, or are refused. */
TEST(layers_in_a_file) {
    const float x[1] = {0};
    const int64_t ne[1] = {1};
    char name[4096];
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 32}), *out = c;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    REQUIRE(c && w);
    ggl_gguf_put_string(w, "general.architecture", "llama", 5);
    ggl_gguf_put_tensor(w, "blk.99.x.weight", GGL_F32, 1, ne, x);
    snprintf(name, sizeof name, "%s", test_path("layers.gguf"));
    REQUIRE_OK(ggl_gguf_writer_write(w, name, &err), &err);
    ggl_gguf_writer_free(w);
    const llm_open_params p = {.size = sizeof p, .n_ctx = 32, .draft = name};
    CHECK_INT(llm_open_beside(&out, c, &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "layers.gguf has layers of the model itself");
    CHECK(!out);
    llm_close(c);
}

/* What says how a file is read cannot be said again. */
TEST(mistakes) {
    static const char *const override[] = {"general.name=str:x"};
    const struct {
        llm_open_params p;
        const char *name;
    } cases[] = {{{.arch = "llama"}, "arch"},
                 {{.type = "q8_0"}, "type"},
                 {{.hub_token = "x"}, "hub_token"},
                 {{.offline = true}, "offline"},
                 {{.no_mmap = true}, "no_mmap"},
                 {{.mlock = true}, "mlock"},
                 {{.override = override, .n_override = 1}, "override"},
                 {{.n_threads = -1}, "n_threads"},
                 {{.pooling = "most"}, "most"},
                 {{.device = "none1"}, "none1"}};
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 32});
    REQUIRE(c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ggl_error err;
        llm_context *out = c;
        llm_open_params p = cases[i].p;
        p.size = sizeof p;
        CHECK(llm_open_beside(&out, c, &p, &err) != GGL_OK);
        CHECK_HAS(err.msg, cases[i].name);
        CHECK(!out);
    }
    ggl_error err;
    llm_context *out = c;
    CHECK_INT(llm_open_beside(&out, NULL, NULL, &err), GGL_USAGE);
    CHECK(!out);
    llm_close(c);
}
