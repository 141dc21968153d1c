/* Parsing, building and checking with every single allocation failing once: a clean error, no leak
 * (address sanitizer). */
#include "alloc_fail.h"
#include "arch_test.h"
#include "ggl/alloc.h"
#include "llm/internal/arch.h"
#include "sample.h"
#include "test.h"

static model m;
static char *text;

static bool parse(void *arg) {
    llm_arch *a;
    ggl_error err = {0};
    (void)arg;
    ggl_status s = llm_arch_parse(&a, text, strlen(text), "t.arch", &err);
    if (s == GGL_OK)
        llm_arch_free(a);
    else
        CHECK_MSG(s == GGL_NOMEM && !a, "%s: %s", ggl_status_text(s), err.msg);
    return s == GGL_OK;
}

typedef struct building {
    const llm_arch *arch;
    const llm_arch_source *source;
} building;

static bool build(void *arg) {
    const building *b = arg;
    ggl_error err = {0};
    llm_arch_result r = {0};
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = p.n_batch = 8;
    ggl_graph *g = ggl_graph_new(&p);
    if (!g)
        return false;
    ggl_status s = llm_arch_build(b->arch, b->source, NULL, g, &r, &err);
    if (s == GGL_OK)
        s = ggl_graph_finish(g, &err);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s: %s", ggl_status_text(s), err.msg);
    llm_arch_result_fini(&r);
    ggl_graph_free(g);
    return s == GGL_OK;
}

static bool check(void *arg) {
    ggl_error err = {0};
    char *notes;
    ggl_status s = llm_arch_check(arg, &notes, &err);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s: %s", ggl_status_text(s), err.msg);
    if (s == GGL_OK)
        ggl_free(notes);
    return s == GGL_OK;
}

static void setup(void) {
    text = arch_text("def mix(x):\n  s = state(size(x))\n  keep s = s + x\n  return s, x * 2\n",
                     "p, q from \"pq\"\np [8]\nq [8]\nx = x * p + q\n"
                     "v [8] bias?\nlayer l < .block_count \?\? 2:\n  w [8, 8] ?\n  a, b = mix(x)\n "
                     " x = a + b if has(w) else silu(a) + "
                     "rms_norm(b, v, 1)\n"
                     "  x = x + linear(x, w) if has(w) else x\n");
    REQUIRE(model_new(
        &m, "v.weight [8]\nv.bias [8]\nt.logit_scale = 1\nv.blk.0.w [2]\npq.weight [16]\n",
        "model.gguf"));
}

static void check_count(long n, long least) {
    CHECK_MSG(n >= least, "allocation %ld", n);
}

TEST(parse_out_of_memory) {
    setup();
    check_count(alloc_fail_each(parse, NULL), 5);
    model_free(&m);
    free(text);
}

TEST(build_out_of_memory) {
    llm_arch *a;
    ggl_error err = {0};
    setup();
    REQUIRE_OK(llm_arch_parse(&a, text, strlen(text), "t.arch", &err), &err);
    llm_arch_source src = llm_arch_source_gguf(m.file);
    check_count(alloc_fail_each(build, &(building){a, &src}), 20);
    llm_arch_free(a);
    model_free(&m);
    free(text);
}

/* The right descriptor is found by headers alone: a hundred that are not it cost no time at start. */
TEST(opening_one_does_not_parse_the_others) {
    const char *name, *source, *last_name = NULL, *last = NULL;
    size_t n, last_n = 0;
    ggl_error err = {0};
    llm_arch *a;
    int k = 0;
    for (; llm_arch_builtin(k, &name, &source, &n); k++)
        last_name = name, last = source, last_n = n;
    REQUIRE(k > 10);
    long before = alloc_count();
    REQUIRE_OK(llm_arch_parse(&a, last, last_n, last_name, &err), &err);
    long parsed = alloc_count() - before;
    char family[64];
    snprintf(family, sizeof family, "%s", llm_arch_family(a, 0));
    llm_arch_free(a);
    before = alloc_count();
    REQUIRE_OK(llm_arch_open(&a, family, &err), &err);
    long opened = alloc_count() - before;
    CHECK_MSG(opened <= parsed + 4 * k, "%ld allocations to open %s, %ld to parse it, %d others",
              opened, family, parsed, k);
    llm_arch_free(a);
}

/* A text of many strings takes memory once, and not again for each of them. */
TEST(text_of_many_strings) {
    enum { STRINGS = 80000, MOST = 300 };
    static const char begin[] = "arch \"x\"\nlanguage 2\n\nspeech:\n  user (",
                      end[] = ")\n\nlogits = 1\n";
    ggl_error err;
    llm_arch *a = NULL;
    char *s = malloc(sizeof begin + (size_t)3 * STRINGS + sizeof end), *at = s;
    REQUIRE(s);
    at += sprintf(at, "%s", begin);
    for (int k = 0; k < STRINGS; k++)
        at += sprintf(at, "\"a\"");
    at += sprintf(at, "%s", end);
    const long before = alloc_count();
    CHECK_OK(llm_arch_parse(&a, s, (size_t)(at - s), "t.arch", &err), &err);
    const long taken = alloc_count() - before;
    CHECK_MSG(taken <= MOST, "%ld allocations", taken);
    if (CHECK(a && llm_arch_speech_first(a)))
        CHECK_INT(strlen(llm_arch_speech_first(a)->user), STRINGS);
    llm_arch_free(a);
    free(s);
}

/* Each of the shipped descriptors meets other code; a few of them in turn, fewer where each step is watched. */
LONG_TEST(build_shipped_out_of_memory) {
    const char *name, *source;
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &name, &source, &n); k++) {
        ggl_error err = {0};
        llm_arch *a;
        if (!sampled(k, TEST_SANITIZED ? 3 : 8))
            continue;
        REQUIRE_OK(llm_arch_parse(&a, source, n, name, &err), &err);
        llm_arch_toy *toy = llm_arch_toy_new(a, 0, &err);
        if (CHECK_MSG(toy, "%s: %s", name, err.msg)) {
            building b = {a, llm_arch_toy_source(toy)};
            CHECK_MSG(build(&b), "%s is not built", name); /* which makes up its tensors */
            llm_arch_toy_freeze(toy);
            long failed = alloc_fail_each(build, &b);
            CHECK_MSG(failed > 20, "%s: allocation %ld", name, failed);
        }
        llm_arch_toy_free(toy);
        llm_arch_free(a);
    }
}

TEST(check_out_of_memory) {
    llm_arch *a;
    ggl_error err = {0};
    static const char small[] =
        "arch t\nlanguage 1\nn = .embedding_length\ntoken_embd [n, n_vocab]\nw [n] ?\nx = "
        "token_embd[token]\nx = x * w if has(w) else x\n"
        "logits = linear(x * (.scale \?\? 1), token_embd)\n";
    REQUIRE_OK(llm_arch_parse(&a, small, strlen(small), "t.arch", &err), &err);
    check_count(alloc_fail_each(check, a), 50);
    llm_arch_free(a);
}
