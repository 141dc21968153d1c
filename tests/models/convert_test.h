/* The folder of a test, converted: for the tests of llm-convert. One file of a test program includes this. */
#ifndef CONVERT_TEST_H
#define CONVERT_TEST_H

#include "ggl/backends.h"
#include "llm/internal/convert.h"
#include "test.h"

static ggl_error err;

TEST_UNUSED static llm_convert_params params_of(llm_convert_type type) {
    static ggl_backend *reference;
    llm_convert_params p = llm_convert_default();
    if (!reference && ggl_backend_open(&reference, "reference", NULL, &err) != GGL_OK)
        exit(1);
    p.backend = reference;
    p.type = type;
    return p;
}

TEST_UNUSED static bool put_text(const char *name, const char *text) {
    return test_write_file(test_path(name), text, strlen(text));
}

/* The test's folder to out.gguf there, opened; NULL: err says why. */
TEST_UNUSED static ggl_gguf *convert(const llm_convert_params *params) {
    llm_converter *c;
    ggl_gguf *f = NULL;
    err = (ggl_error){0};
    if (llm_converter_open(&c, test_folder(), params, &err) != GGL_OK)
        return NULL;
    const char *out = test_path("out.gguf");
    if (llm_converter_write(c, out, &err) == GGL_OK && ggl_gguf_open(&f, out, NULL, &err) != GGL_OK)
        f = NULL;
    llm_converter_free(c);
    return f;
}

/* The same by a descriptor with a weight w of this shape, and these lines of its section. */
TEST_UNUSED static ggl_gguf *made_with(const char *shape, const char *line) {
    char text[2048], path[512];
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    snprintf(text, sizeof text,
             "arch t\nlanguage 1\nembd [4, n_vocab]\nw [%s] bias?\nb = w.bias\n"
             "h = sum(flat(w)) + (sum(flat(b)) if has(b) else 0)\n"
             "logits = linear(embd[token] * h, embd)\nignore \".*\"\nconvert Own:\n  .vocab_size "
             "<- 6\n  embd <- \"embed\"\n"
             "  ignore \"*\"\n%s",
             shape, line);
    snprintf(path, sizeof path, "%s", test_path("own.arch"));
    if (!put_text("own.arch", text))
        return NULL;
    params.arch_path = path;
    return convert(&params);
}

#endif
