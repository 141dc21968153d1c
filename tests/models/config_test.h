/* A test's config.json, converted, for the tests of what sections read of it. One file of a test program includes this. */
#ifndef CONFIG_TEST_H
#define CONFIG_TEST_H

#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/convert.h"
#include "test.h"

static ggl_error err;
static ggl_backend *reference;

/* The test's folder to NAME there. */
TEST_UNUSED static bool convert_config(const char *arch_text, const char *name, bool vocab_only) {
    llm_convert_params p = llm_convert_default();
    char arch[512];
    llm_converter *c;
    if (!reference && ggl_backend_open(&reference, "reference", NULL, &err) != GGL_OK)
        exit(1);
    snprintf(arch, sizeof arch, "%s", test_path("own.arch"));
    if (arch_text && !test_write_file(arch, arch_text, strlen(arch_text)))
        exit(1);
    p.backend = reference;
    p.arch_path = arch_text ? arch : NULL;
    p.vocab_only = vocab_only;
    err = (ggl_error){0};
    if (llm_converter_open(&c, test_folder(), &p, &err) != GGL_OK)
        return false;
    bool ok = llm_converter_write(c, test_path(name), &err) == GGL_OK;
    llm_converter_free(c);
    return ok;
}

/* Quotes may be single ones. */
TEST_UNUSED static void put_config(const char *text) {
    const size_t n = strlen(text);
    char *copy = malloc(n + 1);
    for (size_t i = 0; i <= n; i++)
        copy[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    REQUIRE(test_write_file(test_path("config.json"), copy, n));
    free(copy);
}

/* A descriptor whose section has some more lines, and the begin of a config.json for it. */
#define OWN(lines)                                                                                 \
    "arch t\nlanguage 1\na [2, n_vocab]\nlogits = linear(a[token] * (.k ?? 1), a)\nconvert Own:\n" \
    "  .vocab_size <- config.v\n  a <- \"a\"\n" lines
#define BEGIN "{'architectures': ['Own'], 'v': 3, "

TEST_UNUSED static bool own(const char *lines, const char *config, double *k) {
    ggl_gguf *f;
    put_config(config);
    *k = 0;
    if (!convert_config(lines, "own.gguf", true))
        return false;
    if (!CHECK_OK(ggl_gguf_open(&f, test_path("own.gguf"), NULL, &err), &err))
        return true;
    const ggl_gguf_value *v = ggl_gguf_find(f, "t.k");
    CHECK(!v || ggl_gguf_number(v, 0, k));
    ggl_gguf_close(f);
    return true;
}

#endif
