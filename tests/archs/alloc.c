/* Parsing, building and checking with every single allocation failing once: a clean error, no leak
 * (address sanitizer). */
#include "alloc_fail.h"
#include "arch_test.h"
#include "ggl/alloc.h"
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

static bool build(void *arg) {
    ggl_error err = {0};
    llm_arch_result r = {0};
    llm_arch_source src = llm_arch_source_gguf(m.file);
    ggl_graph *g = ggl_graph_new(NULL);
    if (!g)
        return false;
    ggl_status s = llm_arch_build(arg, &src, NULL, g, &r, &err);
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
                     "v [8] bias?\nlayer l < .block_count \?\? 2:\n  w [8, 8] ?\n  a, b = mix(x)\n "
                     " x = a + b if has(w) else silu(a) + "
                     "rms_norm(b, v, 1)\n"
                     "  x = x + linear(x, w) if has(w) else x\n");
    REQUIRE(model_new(&m, "v.weight [8]\nv.bias [8]\nt.logit_scale = 1\nv.blk.0.w [2]\n", "model.gguf"));
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
    check_count(alloc_fail_each(build, a), 20);
    llm_arch_free(a);
    model_free(&m);
    free(text);
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
