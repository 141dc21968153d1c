/* The language of convert sections: what lines make, what is ignored, the types of keys, and errors. */
#include <math.h>

#include "ggl/backends.h"
#include "hf_layout.h"
#include "llm/convert.h"
#include "test.h"

static ggl_error err;
static ggl_backend *reference;

static llm_convert_params params_of(llm_convert_type type) {
    llm_convert_params p = llm_convert_default();
    if (!reference && ggl_backend_open(&reference, "reference", NULL, &err) != GGL_OK)
        exit(1);
    p.backend = reference;
    p.type = type;
    return p;
}

static bool put_text(const char *name, const char *text) {
    return test_write_file(test_path(name), text, strlen(text));
}

/* The test's folder to out.gguf there, opened; NULL: err says why. */
static ggl_gguf *convert(const llm_convert_params *params) {
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

static const char own_begin[] =
    "arch t, u\nlanguage 1\nn_embd = .n\ntoken_embd [n_embd, n_vocab]\nx = token_embd[token]\n"
    "w [n_embd, n_embd] bias?\nx = x + linear(x, w)\nf [n_embd] ?\ny = x * f if has(f) else x\n"
    "logits = linear(y, token_embd)\nconvert Own:\n";

static ggl_gguf *own(const char *lines) {
    char text[2048];
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    snprintf(text, sizeof text, "%s%s", own_begin, lines);
    if (!put_text("own.arch", text))
        return NULL;
    params.arch_path = test_path("own.arch");
    return convert(&params);
}

#define OWN                                                                                        \
    "  .vocab_size <- config.v\n  .n <- config.a.n\n  token_embd <- \"embed\"\n  ignore "          \
    "config.a.l, config.s, config.o\n"

TEST(language) {
    static const int64_t e[2] = {4, 6}, w[2] = {4, 4};
    layout hf = {.tensor = calloc(8, sizeof(layout_tensor)), .n = 4};
    hf.tensor[0] =
        (layout_tensor){.name = "embed", .n_dims = 2, .ne = {e[0], e[1]}, .data = calloc(24, 4)};
    hf.tensor[1] =
        (layout_tensor){.name = "w.weight", .n_dims = 2, .ne = {w[0], w[1]}, .data = calloc(16, 4)};
    hf.tensor[2] = (layout_tensor){.name = "w.bias", .n_dims = 1, .ne = {4}, .data = calloc(4, 4)};
    hf.tensor[3] = (layout_tensor){.name = "f", .n_dims = 3, .ne = {1, 1, 4}, .data = calloc(4, 4)};
    for (int k = 0; k < 16; k++)
        hf.tensor[1].data[k] = (float)k;
    for (int k = 0; k < 4; k++) {
        hf.tensor[2].data[k] = (float)k;
        hf.tensor[3].data[k] = (float)k;
    }
    REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
    layout_free(&hf);
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 6, \"a\": {\"n\": 4, "
                                    "\"l\": [1, 2, 3, 4.5]}, \"s\": \"u\", \"o\": [{\"x\": 1}]}"));
    static const struct {
        const char *lines;
        float w[4], b[4], f[4]; /* column 0 of w, the bias, f */
    } good[] = {
        {OWN "  w <- \"w\"\n  f <- \"f\"\n", {0, 4, 8, 12}, {0, 1, 2, 3}, {0, 1, 2, 3}},
        {OWN "  w <- transpose(\"w\") * 2 + 1\n  f <- 1 - \"f\" if false else \"f\" - 1\n",
         {1, 3, 5, 7},
         {0, 1, 2, 3},
         {-1, 0, 1, 2}},
        {OWN "  w <- pairs(\"w\", 1)\n  f <- exp(\"f\" * 0)\n",
         {0, 8, 4, 12},
         {0, 2, 1, 3},
         {1, 1, 1, 1}},
        {OWN "  w <- regroup(\"w\", 2, 2)\n  f <- config.a.l\n  ignore \"f*\"\n",
         {0, 8, 4, 12},
         {0, 2, 1, 3},
         {1, 2, 3, 4.5f}},
        {OWN "  w <- concat(rows(\"w\", 1, 3), rows(\"w\", 0, 1))\n  f <- \"f\" / 2\n",
         {4, 8, 12, 0},
         {1, 2, 3, 0},
         {0, 0.5f, 1, 1.5f}},
        {OWN "  w <- \"none\" ?? \"w\"\n  f <- iota(n_embd) * 2 + log2(8)\n  ignore \"f\"\n",
         {0, 4, 8, 12},
         {0, 1, 2, 3},
         {3, 5, 7, 9}},
        {OWN "  arch <- config.s\n  w <- \"w\"\n  f <- \"f\"\n",
         {0, 4, 8, 12},
         {0, 1, 2, 3},
         {0, 1, 2, 3}},
    };
    static const struct {
        const char *lines, *words;
    } bad[] = {
        {OWN "  w <- \"w\"\n", "tensor f: read by no line of the convert section in"},
        {OWN "  f <- \"f\"\n", "'w' has no line in the convert section"},
        {OWN "  w <- none\n  f <- \"f\"\n", "nothing in the folder makes w.weight"},
        {OWN "  w <- \"w\"\n  f <- \"f\" + config.z\n", "config.z is missing in config.json"},
        {OWN "  w <- \"w\"\n  f <- config.z\n", "config.z is missing in config.json"},
        {OWN "  w <- \"w\"\n  f <- x\n", "'x' has no value here"},
        {OWN "  w <- \"w\"\n  f <- \"f\" + \"f\"\n", "a tensor and a number stand at '+'"},
        {OWN "  w <- rows(\"w\", 2, 3)\n", "rows 2 to 4 of [4, 4], which has 4 rows"},
        {OWN "  w <- pairs(\"w\", 3)\n", "the 4 rows of [4, 4] are no multiple of 6"},
        {OWN "  w <- concat(\"w\", \"v\")\n",
         "1 of the 2 tensors is missing in the folder: v.weight"},
        {OWN "  w <- concat(\"w\", \"f\")\n", "concat of [4, 4] and [4]"},
        {OWN "  w <- concat(\"w\", \"w\")\n",
         "tensor w.weight is [4, 8], declared [n_embd, n_embd] = [4, 4]"},
        {OWN "  arch <- \"v\"\n  w <- \"w\"\n",
         "'arch' is one of the descriptor's own names, in quotes"},
        {OWN "  .odd <- 1\n  w <- \"w\"\n  f <- \"f\"\n", "key t.odd = 1 is not read by"},
        {OWN "  w <- \"w\"\n  w <- \"w\"\n", "'w' is mapped twice"},
        {OWN "  require config.a.n == 5, \"n is\"\n", "n is: config.a.n = 4"},
        {OWN "  .l <- config.a\n", "config.a is an object in config.json"},
        {OWN "  .l <- transpose(\"a\")\n", "transpose(..) stands where a source tensor can stand"},
        {OWN "  w <- stack(stack(\"w\", 2), 2)\n", "a stack in a stack"},
        {OWN "  w <- stack(\"w{e}\", 2)\n",
         "nothing in the folder makes w.weight; it comes from w0.weight (its weight)"},
        {OWN "  w <- log(\"w\")\n",
         "log(..) takes no source tensor: in a conversion these go through transpose, pairs"},
        {OWN "  w <- heads(\"w\", 2)\n", "heads(..) takes no source tensor"},
        {OWN "  .l <- n_embd\n",
         "'n_embd' has no value yet where keys are made: use the key of a line above, .n"},
        {OWN "  .l <- x\n",
         "'x' has no value yet where keys are made: use config.x, or keys of lines above"},
        {"  .vocab_size <- 6\n  token_embd <- \"embed\"\n  w <- \"w\"\n  f <- \"f\"\n  ignore "
         "config.a, config.v, config.s, config.o\n",
         "key t.n is missing in the convert section in"},
        {"  .vocab_size <- 6\n  token_embd <- \"embed\"\n  w <- \"w\"\n  f <- \"f\"\n  ignore "
         "config.a, config.v, config.s, config.o\n",
         "the section has no line for it"},
        {"  .vocab_size <- 6\n  .n <- none\n  token_embd <- \"embed\"\n  w <- \"w\"\n  ignore "
         "config.a, config.v, config.s, config.o\n",
         "its line there gives none for this folder"},
        {OWN "  .l <- config.o[0]\n", "element 0 of config.o is an object in config.json"},
        {OWN "  .l <- config.o\n", "element 0 of config.o is an object in config.json"},
        {OWN "  w <- \"w\"\nconvert B, Own:\n  .n <- 1\n",
         "'Own' has a convert section already, in line 11"},
        {OWN "  w <- \"w\" if not has(\"v\") and has(\"w\") and has(\"w.bias\") else none\n  f <- "
             "\"f\" if has(\"v\") else \"g\"\n",
         "tensor f: read by no line"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ggl_gguf *f = own(bad[k].lines);
        CHECK_MSG(!f, "converted, but should not be: %s", bad[k].lines);
        CHECK_HAS(err.msg, bad[k].words);
        ggl_gguf_close(f);
    }
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        ggl_gguf *f = own(good[k].lines);
        if (!CHECK_MSG(f, "%s", err.msg))
            continue;
        const float *a = ggl_gguf_find_tensor(f, "w.weight")->data,
                    *b = ggl_gguf_find_tensor(f, "w.bias")->data;
        const float *c = ggl_gguf_find_tensor(f, "f.weight")->data;
        for (int i = 0; i < 4; i++)
            CHECK_MSG(a[4 * i] == good[k].w[i] && b[i] == good[k].b[i] && c[i] == good[k].f[i],
                      "case %zu: row %d begins with %g, bias %g, f %g", k, i, (double)a[4 * i],
                      (double)b[i], (double)c[i]);
        ggl_str name;
        CHECK(ggl_gguf_get_string(f, "general.architecture", &name, &err) == 1 &&
              name.s[0] == (k == 6 ? 'u' : 't'));
        ggl_gguf_close(f);
    }
}

/* As files have them: f32 by name, else integers if they are whole. */
TEST(key_types) {
    static const struct {
        const char *key, *value;
        ggl_gguf_type type;
    } list[] = {
        {"attention.scale", "12", GGL_GGUF_F32},
        {"logit_scale", "16", GGL_GGUF_F32},
        {"expert_weights_scale", "1", GGL_GGUF_F32},
        {"rope.freq_base_swa", "10000", GGL_GGUF_F32},
        {"rope.scaling.factor", "4", GGL_GGUF_F32},
        {"attention.group_norm_epsilon", "1", GGL_GGUF_F32},
        {"block_count", "12", GGL_GGUF_U32},
        {"rope.scaling.original_context_length", "12", GGL_GGUF_U32},
        {"odd", "-12", GGL_GGUF_I32},
        {"odd", "5000000000", GGL_GGUF_U64},
        {"odd", "0.5", GGL_GGUF_F32},
        {"odd", "[1, 2]", GGL_GGUF_I32},
        {"odd", "[1, 0.5]", GGL_GGUF_F32},
        {"odd", "[true, false]", GGL_GGUF_BOOL},
        {"odd", "true", GGL_GGUF_BOOL},
        {"odd", "\"x\"", GGL_GGUF_STRING},
        {"xielu.alpha_p", "[1, 2]", GGL_GGUF_F32},
        {"swiglu_clamp_exp", "[7, 7]", GGL_GGUF_F32},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char text[1024], path[512];
        llm_convert_params params = params_of(LLM_CONVERT_AUTO);
        snprintf(text, sizeof text,
                 "arch t\nlanguage 1\na [2, n_vocab]\nlogits = linear(a[token], a)\nignore "
                 ".%s\nconvert Own:\n"
                 "  .vocab_size <- 3\n  .%s <- config.x\n  a <- \"a\"\n",
                 list[k].key, list[k].key);
        snprintf(path, sizeof path, "%s", test_path("own.arch"));
        REQUIRE(put_text("own.arch", text));
        snprintf(text, sizeof text, "{\"architectures\": [\"Own\"], \"x\": %s}", list[k].value);
        REQUIRE(put_text("config.json", text));
        params.arch_path = path;
        params.vocab_only = true;
        ggl_gguf *f = convert(&params);
        snprintf(text, sizeof text, "t.%s", list[k].key);
        const ggl_gguf_value *v = f ? ggl_gguf_find(f, text) : NULL;
        if (CHECK_MSG(v, "%s: %s", text, err.msg))
            CHECK_MSG(v->type == list[k].type && v->is_array == (list[k].value[0] == '['),
                      "%s = %s", text, list[k].value);
        ggl_gguf_close(f);
    }
}

static const char layered[] = "arch t\nlanguage 1\nn_layer = 2\nembd [4, n_vocab]\nx = "
                              "embd[token]\nlayer l < n_layer:\n  w [4, 4]\n"
                              "  x = x + linear(x, w)\nlogits = linear(x, embd)\nconvert Own:\n  "
                              ".vocab_size <- config.v\n  embd <- \"embed\"\n"
                              "  w <- \"l.{l}.w\"\n";

/* Layers 0 and 1 are the model's; 2 is a draft layer. */
TEST(ignored) {
    static const struct {
        const char *lines, *words; /* NULL: it is converted */
    } list[] = {
        {"  ignore \"l.{n_layer}.*\"\n",
         "tensor l.0.bias: read by no line"}, /* that layer, not every layer */
        {"  ignore \"l.{n_layer}.*\", \"l.{l}.bias\"\n", NULL},
        {"  ignore \"l.{l}.*\"\n", NULL},
        {"  ignore \"l.2.*\", \"l.{e}.bias\"\n", NULL},
        {"  ignore \"l.{l}.bias\"\n", "tensor l.2.w: read by no line"},
        {"  ignore \"l.{n_layers}.*\"\n", "'{n_layers}' is no name of this descriptor"},
        {"  ignore \"l.{x}.*\"\n", "'{x}' is to be the name of a whole number"},
    };
    layout hf = {.tensor = calloc(8, sizeof(layout_tensor)), .n = 5};
    hf.tensor[0] =
        (layout_tensor){.name = "embed", .n_dims = 2, .ne = {4, 6}, .data = calloc(24, 4)};
    hf.tensor[1] =
        (layout_tensor){.name = "l.0.w", .n_dims = 2, .ne = {4, 4}, .data = calloc(16, 4)};
    hf.tensor[2] =
        (layout_tensor){.name = "l.1.w", .n_dims = 2, .ne = {4, 4}, .data = calloc(16, 4)};
    hf.tensor[3] =
        (layout_tensor){.name = "l.0.bias", .n_dims = 1, .ne = {4}, .data = calloc(4, 4)};
    hf.tensor[4] = (layout_tensor){.name = "l.2.w", .n_dims = 1, .ne = {4}, .data = calloc(4, 4)};
    REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
    layout_free(&hf);
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 6}"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char text[1024], path[512];
        llm_convert_params params = params_of(LLM_CONVERT_AUTO);
        snprintf(text, sizeof text, "%s%s", layered, list[k].lines);
        snprintf(path, sizeof path, "%s", test_path("own.arch"));
        REQUIRE(put_text("own.arch", text));
        params.arch_path = path;
        ggl_gguf *f = convert(&params);
        CHECK_MSG(!f == !!list[k].words, "case %zu: %s", k, f ? "converted" : err.msg);
        if (!f && list[k].words)
            CHECK_HAS(err.msg, list[k].words);
        ggl_gguf_close(f);
    }
}

/* What a number might be is told only if it is clear: 16 may be n_embd, or twice n_ff. */
TEST(hints) {
    static const char text[] = "arch t\nlanguage 1\nn_embd = .n\nn_ff = 8\nn_odd = 11\nmag = 1\na "
                               "[n_embd, n_vocab]\nw [n_embd, n_ff]\n"
                               "x = a[token]\nlogits = linear(x * (1 + sum(linear(x, w))) * n_odd "
                               "* mag, a)\nconvert Own:\n"
                               "  .vocab_size <- 6\n  .n <- 16\n  a <- \"a\"\n  w <- \"w\"\n";
    static const int64_t rows[] = {16, 11, 1};
    for (int k = 0; k < 3; k++) {
        char path[512];
        llm_convert_params params = params_of(LLM_CONVERT_AUTO);
        layout hf = {.tensor = calloc(2, sizeof(layout_tensor)), .n = 2};
        hf.tensor[0] =
            (layout_tensor){.name = "a", .n_dims = 2, .ne = {16, 6}, .data = calloc(96, 4)};
        hf.tensor[1] =
            (layout_tensor){.name = "w", .n_dims = 2, .ne = {16, rows[k]}, .data = calloc(256, 4)};
        REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
        layout_free(&hf);
        REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"]}") &&
                put_text("own.arch", text));
        snprintf(path, sizeof path, "%s", test_path("own.arch"));
        params.arch_path = path;
        CHECK(!convert(&params));
        CHECK_HAS(err.msg, "declared [n_embd, n_ff] = [16, 8]");
        CHECK_MSG(!strstr(err.msg, " here is ") == (k != 1), "%s", err.msg);
    }
}

/* Each class of a built-in descriptor has one section. */
TEST(built_in_classes) {
    const char *name, *text;
    char seen[4096] = " ";
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (const char *s = text; (s = strstr(s, "\nconvert ")); s++) {
            char line[512], *class_name;
            snprintf(line, sizeof line, "%.*s", (int)strcspn(s + 9, ":"), s + 9);
            for (char *at = line; (class_name = strtok(at, ", ")); at = NULL) {
                char word[128];
                snprintf(word, sizeof word, " %s ", class_name);
                CHECK_MSG(!strstr(seen, word), "%s: '%s' has two sections", name, class_name);
                strncat(seen, word + 1, sizeof seen - strlen(seen) - 1);
            }
        }
    CHECK_HAS(seen, " MixtralForCausalLM ");
}
