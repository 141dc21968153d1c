/* Each limit of the language is an ordinary error; what is made to take long ends by the limit of steps, or ctest ends the
 * case. */
#include "arch_test.h"
#include "test.h"

/* `n` times a text. */
static char *many(const char *begin, const char *piece, int n, const char *end) {
    size_t a = strlen(begin), p = strlen(piece), e = strlen(end);
    char *out = malloc(a + p * (size_t)n + e + 1);
    memcpy(out, begin, a);
    for (int k = 0; k < n; k++)
        memcpy(out + a + p * (size_t)k, piece, p);
    memcpy(out + a + p * (size_t)n, end, e + 1);
    return out;
}

/* Builds head + n pieces + tail in the place of `body` and frees nothing of what it is given. */
static ggl_status try(const char *begin, const char *piece, int n, const char *end,
                      ggl_error *err) {
    char *body = many(begin, piece, n, end);
    ggl_status s = arch_try("", body, "t.big = 2000000000\n", NULL, err);
    free(body);
    return s;
}

static void fails(const char *begin, const char *piece, int n, const char *end, const char *want) {
    ggl_error err;
    ggl_status s = try(begin, piece, n, end, &err);
    CHECK_MSG(s == GGL_LIMIT, "%.40s %.40s: %s, %.200s", begin, piece, ggl_status_text(s), err.msg);
    CHECK_HAS(err.msg, want);
}

static void passes(const char *begin, const char *piece, int n, const char *end) {
    ggl_error err;
    CHECK_OK(try(begin, piece, n, end, &err), &err);
}

#define AND_IGNORE "\nignore .big\n"

TEST(text) {
    ggl_error err = {0};
    llm_arch *a;
    char *text = many("", "# 345678\n", 262144 / 9 + 1, "");
    CHECK_INT(llm_arch_parse(&a, text, strlen(text), "t.arch", &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "at most 256 KiB");
    free(text);
    passes("# ", "0123456789", 26000, AND_IGNORE);
}

TEST(names) {
    passes("def ", "a", 64, "(x) = x" AND_IGNORE);
    fails("", "a", 65, " = 3\n", "a name has at most 64 characters");
    fails("b = .", "a", 65, "\n", "its parts at most 64");
    fails("b = 1", "1", 64, "\n", "a number has at most 64 characters");
    fails("b = \"", "0123456789", 26, "\"\n", "a string has at most 256 bytes");
    fails("b = 1e", "9", 20, "\n", "this number is too large");
}

TEST(speech_sections) {
    ggl_error err;
    char *top = many("", "speech:\n  user \"a\"\n", 65, "");
    CHECK_INT(arch_try(top, "", "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "131:1: error: more than 64 speech sections");
    free(top);
}

TEST(nesting) {
    char close[160] = "1";
    strcat(memset(close + 1, ')', 99), "\nrequire b == 1" AND_IGNORE);
    passes("b = ", "(", 99, close);
    fails("b = ", "(", 101, "1\n", "brackets are nested more than 100 deep");
    fails("b = ", "-", 101, "1\n", "more than 100 operations deep");
    fails("b = ", "not ", 500, "true\n", "nested too deep");
    fails("b = 1", " + 1", 101, "\n", "more than 100 operations deep");
    fails("b = 1", " ** 1", 101, "\n", "more than 100 operations deep");
    fails("b = 1", " \?\? 1", 5000, "\n", "nested too deep");
    fails("b = 1", " if true else 1", 5000, "\n", "nested too deep");
    fails("b = [1]", "[0]", 101, "\n", "more than 100 operations deep");
    fails("", "if true: ", 101, "b = 1\n", "blocks are nested more than 100 deep");
}

TEST(blocks) {
    char text[60000] = "", line[256];
    for (int k = 0; k < 101; k++) {
        memset(line, ' ', (size_t)k);
        strcpy(line + k, "if true:\n");
        strcat(text, line);
    }
    fails(text, "", 0, "", "blocks are nested more than 100 deep");
}

TEST(counts) {
    fails("b = [1", ", 1", 64, "]\n", "more than 64 of them");
    fails("b = f(1", ", 1", 64, ")\n", "more than 64 of them");
}

TEST(calls) {
    char text[4000] = "def f0(x) = x\n", line[64];
    ggl_error err;
    for (int k = 1; k < 17; k++) {
        snprintf(line, sizeof line, "def f%d(x) = f%d(x)\n", k, k - 1);
        strcat(text, line);
    }
    char all[5000];
    snprintf(all, sizeof all, "%sb = f15(1)\nrequire b == 1\n", text);
    CHECK_OK(arch_try(all, "", "", NULL, &err), &err);
    snprintf(all, sizeof all, "%sb = f16(1)\n", text);
    CHECK_INT(arch_try(all, "", "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "calls are nested more than 16 deep");
}

/* The deepest that is allowed: 16 calls of 98 operations each. */
TEST(deep_calls) {
    char text[16000] = "def f0(x) = x\n", line[512];
    ggl_error err;
    for (int k = 1; k < 16; k++) {
        char deep[400] = "";
        for (int i = 0; i < 96; i++)
            strcat(deep, i % 2 ? "-(" : "-");
        snprintf(line, sizeof line, "def f%d(x) = %sf%d(x)", k, deep, k - 1);
        memset(deep, ')', 48);
        deep[48] = 0;
        strcat(strcat(strcat(text, line), deep), "\n");
    }
    strcat(text, "b = f15(1)\n");
    CHECK_INT(arch_try(text, "", "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "nested more than 400 deep in all");
}

/* 4^14 calls. */
TEST(steps) {
    char text[8000] = "def f0(x) = x\n", line[256];
    ggl_error err;
    for (int k = 1; k < 15; k++) {
        snprintf(line, sizeof line, "def f%d(x) = f%d(x) + f%d(x) + f%d(x) + f%d(x)\n", k, k - 1,
                 k - 1, k - 1, k - 1);
        strcat(text, line);
    }
    strcat(text, "b = f14(1)\n");
    CHECK_INT(arch_try(text, "", "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "takes more than 10000000 steps");
}

TEST(layers) {
    fails("layer l < 4097:\n  b = 1\n", "", 0, "", "'4097' is 4097; 0 to 4096 is allowed here");
    passes("layer l < 4096:\n  require l >= 0\n", "", 0, AND_IGNORE);
    passes("layer l < 0:\n  require l > 0\n", "", 0, AND_IGNORE);
}

TEST(nodes) {
    fails("layer l < 4096:\n  x = x", " + 1", 99,
          "\n  x = x + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + "
          "1 + 1 + 1 + 1 + 1\n"
          "  x = x + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1\n",
          "the graph has more than 1048576 nodes");
}

TEST(sizes) {
    fails("b = iota(.big)\n", "", 0, "", "computed constants need more than 64 MiB");
    fails("b = iota(3000000000)\n", "", 0, "", "1 to 2147483647 is allowed here");
    fails("b = 0\n", "b = iota(4000000)\n", 5, "", "computed constants need more than 64 MiB");
    fails("b = reshape(x, .big * 2)\n", "", 0, "", "is allowed here");
    passes("b = reshape(iota(5000), 1, 1, 5000) + 1\nx = x + sum(sum(sum(b, 2), 1)) * 0\n", "", 0,
           AND_IGNORE);
    fails("b = repeat(iota(1), 1048576, 1048576, 1048576)\n", "", 0, "",
          "at most 2^48 are allowed");
    fails("b = x[topk(x, 1025)]\n", "", 0, "", "1 to 1024 is allowed here");
}

TEST(large_weight) {
    ggl_error err;
    model m;
    /* 5000 x 5000 without data: only the table is read. */
    REQUIRE(model_new(&m, "", "model.gguf"));
    model_free(&m);
    CHECK_INT(arch_try("n = 4000\n",
                       "x = x * sum(sum(repeat(reshape(token_embd, 80), 80 * n * 60), 0))\n", "",
                       NULL, &err),
              GGL_SHAPE);
    CHECK_INT(arch_try("n = 4000\n",
                       "x = x * sum(sum(repeat(reshape(token_embd, 1, 80), n * 60, 80), 1))\n", "",
                       NULL, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "arithmetic on the large weight token_embd.weight");
    /* products that take long have a limit of their own */
    CHECK_INT(arch_try("a = repeat(reshape(iota(64), 64, 1), 64, 20000)\n",
                       "x = x * sum(sum(linear(a, a), 1))\n", "", NULL, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "the constant [20000, 20000]: computed constants need more than 1024 MiB");
}

TEST(many_names) {
    char *text = malloc(300000);
    size_t n = 0;
    ggl_error err;
    for (int k = 0; k < 20000; k++)
        n += (size_t)sprintf(text + n, "v%d = 1\n", k);
    CHECK_INT(arch_try("", text, "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "more than 4096 names");
    n = 0;
    for (int k = 0; k < 14000; k++)
        n += (size_t)sprintf(text + n, "def f%d() = 1\n", k);
    CHECK_INT(arch_try("", text, "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "more than 4096 functions");
    n = 0;
    for (int k = 0; k < 14000; k++)
        n += (size_t)sprintf(text + n, "v = .k%d \?\? 1\n", k);
    CHECK_INT(arch_try("", text, "", NULL, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "more than 4096 keys");
    free(text);
    fails("a = .big\n", "b = a \?\? 1\n", 15000, "", "the text takes too long to read");
}
