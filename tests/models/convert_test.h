/* The folder of a test, converted: for the tests of llm-convert. One file of a test program includes this. */
#ifndef CONVERT_TEST_H
#define CONVERT_TEST_H

#include "ggl/backends.h"
#include "hf_layout.h"
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

/* The same by a descriptor of its own. */
TEST_UNUSED static ggl_gguf *convert_by(const char *arch, bool vocab_only) {
    char path[512];
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    snprintf(path, sizeof path, "%s", test_path("own.arch")); /* test_path's are reused */
    params.arch_path = path;
    params.vocab_only = vocab_only;
    return put_text("own.arch", arch) ? convert(&params) : NULL;
}

/* The same by a descriptor with a weight w of this shape, and these lines of its section. */
TEST_UNUSED static ggl_gguf *made_with(const char *shape, const char *line) {
    char text[2048];
    snprintf(text, sizeof text,
             "arch t\nlanguage 1\nembd [4, n_vocab]\nw [%s] bias?\nb = w.bias\n"
             "h = sum(flat(w)) + (sum(flat(b)) if has(b) else 0)\n"
             "logits = linear(embd[token] * h, embd)\nignore \".*\"\nconvert Own:\n  .vocab_size "
             "<- 6\n  embd <- \"embed\"\n"
             "  ignore \"*\"\n%s",
             shape, line);
    return convert_by(text, false);
}

/* A folder is refused with these words, or converted if they are NULL; returns f, or NULL after freeing it. */
TEST_UNUSED static ggl_gguf *refused_with(ggl_gguf *f, const char *words, const char *what) {
    CHECK_MSG(!f == !!words, "%s: %s", what, f ? "converted" : err.msg);
    if (!f && words)
        CHECK_HAS(err.msg, words);
    if (words)
        ggl_gguf_close(f);
    return words ? NULL : f;
}

/* The numbers of an f32 tensor, each step-th of its beginning; "": there is no such tensor. */
TEST_UNUSED static void check_numbers(const ggl_gguf *f, const char *name, int step,
                                      const char *want, const char *what) {
    const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, name);
    char *end;
    CHECK_MSG(!t == !*want, "%s: %s", what, name);
    for (int i = 0; t && *want; i += step, want = end) {
        const float x = strtof(want, &end), got = ((const float *)t->data)[i];
        if (!CHECK_MSG(end > want && got == x, "%s: number %d of %s is %g, not %g", what, i, name,
                       (double)got, (double)x))
            return;
        end += *end == ' ';
    }
}

/* Writes model.safetensors: "NAME 4,6 100; .." are tensors of F32, their shapes, innermost first, and the first of their numbers, which
 * count up; without one all are 0. */
TEST_UNUSED static void put_made(const char *list) {
    layout hf = {.tensor = calloc(64, sizeof(layout_tensor)), .n = 0};
    for (int used = 0; *list; list += used) {
        layout_tensor *t = &hf.tensor[hf.n++];
        int64_t count = 1;
        sscanf(list, "%120[^ ]%n", t->name, &used);
        do {
            char *end;
            t->ne[t->n_dims++] = strtoll(list + used + 1, &end, 10);
            used = (int)(end - list);
            count *= t->ne[t->n_dims - 1];
        } while (list[used] == ',');
        t->data = calloc((size_t)count, sizeof *t->data);
        for (int64_t i = 0; list[used] == ' ' && i < count; i++)
            t->data[i] = strtof(list + used, NULL) + (float)i;
        used += (int)strcspn(list + used, ";");
        used += (int)strspn(list + used, "; ");
    }
    CHECK(layout_write(&hf, test_path("model.safetensors"), "F32"));
    layout_free(&hf);
}

#endif
