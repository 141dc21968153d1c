/* Conversion: sources of types that weights don't have. */
#include "convert_alloc.h"
#include "ggl/internal/gguf.h"

typedef struct raw {
    const char *name, *dtype, *shape;
    size_t n; /* bytes, all 0x38 but those of F32, which are 2.0 */
} raw;

static bool put_raw(const raw *t, int n) {
    static char file[65536];
    size_t used = 8, at = 0;
    used += (size_t)sprintf(file + used, "{");
    for (int i = 0; i < n; i++) {
        used += (size_t)sprintf(
            file + used,
            "%s\"%s\": {\"dtype\": \"%s\", \"shape\": %s, \"data_offsets\": [%zu, %zu]}",
            i ? ", " : "", t[i].name, t[i].dtype, t[i].shape, at, at + t[i].n);
        at += t[i].n;
    }
    used += (size_t)sprintf(file + used, "}");
    for (int k = 0; k < 8; k++)
        file[k] = (char)((used - 8) >> 8 * k);
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < t[i].n; k++)
            file[used++] = strcmp(t[i].dtype, "F32") != 0 ? 0x38 : k % 4 == 3 ? 0x40 : 0;
    return test_write_file(test_path("model.safetensors"), file, used);
}

/* A folder with a tensor of a packed type, x, that becomes a weight of this shape. */
typedef struct packed_case {
    const char *shape, *t[2];  /* "NAME TYPE SHAPE BYTES" */
    const char *words, *first; /* words of the error; NULL: it is converted, to these numbers */
} packed_case;

static raw raw_of(const char *text, char buf[3][80]) {
    raw t = {buf[0], buf[1], buf[2], 0};
    CHECK(sscanf(text, "%79s %79s %79s %zu", buf[0], buf[1], buf[2], &t.n) == 4);
    return t;
}

static void convert_each(const packed_case *list, size_t n) {
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"]}"));
    for (size_t k = 0; k < n; k++) {
        char buf[2][3][80];
        const raw t[] = {{"embed", "F32", "[6, 4]", 96},
                         raw_of(list[k].t[0], buf[0]),
                         raw_of(list[k].t[1], buf[1])};
        REQUIRE(put_raw(t, 3));
        ggl_gguf *f = refused_with(made_with(list[k].shape, "  w <- \"x_blocks\" ?\? \"x\"\n"),
                                   list[k].words, list[k].t[0]);
        if (f)
            check_numbers(f, "w.weight", 1, list[k].first, list[k].t[0]);
        ggl_gguf_close(f);
    }
}

/* FP8 with factors 2, where 0x38 is 1; and types that cannot be unpacked. */
TEST(fp8) {
    static const packed_case list[] = {
        {"4, 2", {"x F8_E4M3 [2,4] 8", "x_scale_inv F32 [1,1] 4"}, NULL, "2 2 2"},
        {"4, 2", {"x F8_E4M3 [2,4] 8", "x_scale F32 [2,1] 8"}, NULL, "2 2 2"},
        {"4, 2", {"x F8_E4M3 [2,4] 8", "x_scale F32 [] 4"}, NULL, "2 2 2"},
        {"4, 2", {"x F8_E4M3 [2,4] 8", "y F32 [1] 4"}, "tensor x has the type F8_E4M3;", NULL},
        {"4, 2",
         {"x F8_E4M3 [2,4] 8", "y F32 [1] 4"},
         "here in a tensor that is missing: x_scale_inv or x_scale",
         NULL},
        {"4, 2",
         {"x F8_E4M3 [2,4] 8", "x_scale F32 [2,3] 24"},
         "tensor x_scale does not have the factors for the blocks of x",
         NULL},
        {"4, 2", {"x F8_E4M3 [2,4] 8", "x_scale F32 [1,1,1] 4"}, "does not have the factors", NULL},
        {"4, 2", {"x F8_E4M3 [2,4] 8", "x_scale U8 [1] 1"}, "does not have the factors", NULL},
        {"4, 2",
         {"x.weight F8_E4M3 [2,4] 8", "x.scale F8_E8M0 [1,1] 1"},
         NULL,
         "0x1p-71 0x1p-71 0x1p-71"},
        {"4, 2",
         {"x.weight F8_E4M3 [2,4] 8", "x.scale I8 [1,1] 1"},
         "does not have the factors",
         NULL},
        {"4, 2",
         {"x I64 [2,4] 64", "y F32 [1] 4"},
         "tensor x has the type I64; a weight can be made from F32, F16, BF16 or F64",
         NULL},
        {"4, 2",
         {"x F8_E5M2 [2,4] 8", "x_scale F32 [1] 4"},
         "tensor x has the type F8_E5M2; a weight can be made from",
         NULL},
    };
    convert_each(list, sizeof list / sizeof *list);
}

/* FP4: 0x38 is 0 (8: -0) and 1.5 (3), and as an exponent 2^(56 - 127). */
TEST(fp4) {
    static const packed_case list[] = {
        {"32, 2",
         {"x.weight I8 [2,16] 32", "x.scale F8_E8M0 [2,1] 2"},
         NULL,
         "-0.0 0x1.8p-71 -0.0"},
        {"64, 2", {"x.weight I8 [2,32] 64", "x.scale U8 [2,2] 4"}, NULL, "-0.0 0x1.8p-71 -0.0"},
        {"32, 2",
         {"x.weight I8 [2,16] 32", "x.scale F8_E8M0 [1,1] 1"},
         "tensors x.weight and x.scale are not FP4, which has two numbers in a byte",
         NULL},
        {"32, 2", {"x.weight I8 [2,16] 32", "x.scale F32 [2,1] 8"}, "are not FP4", NULL},
        {"32, 2",
         {"x.weight I8 [2,16] 32", "y F32 [1] 4"},
         "here in a tensor that is missing: x.scale or x.scales",
         NULL},
    };
    convert_each(list, sizeof list / sizeof *list);
}

/* MXFP4: the same numbers, in blocks. */
TEST(mxfp4) {
    static const packed_case list[] = {
        {"32, 2", {"x_blocks U8 [2,1,16] 32", "x_scales U8 [2,1] 2"}, NULL, "-0.0 0x1.8p-71 -0.0"},
        {"64, 2", {"x_blocks U8 [2,2,16] 64", "x_scales U8 [2,2] 4"}, NULL, "-0.0 0x1.8p-71 -0.0"},
        {"32, 2",
         {"x_blocks U8 [2,1,8] 16", "x_scales U8 [2,1] 2"},
         "tensors x_blocks and x_scales are not MXFP4",
         NULL},
        {"32, 2", {"x_blocks U8 [2,1,16] 32", "x_scales U8 [2,2] 4"}, "are not MXFP4", NULL},
        {"32, 2",
         {"x_blocks U8 [1,1,1,1,2,1,16] 32", "x_scales U8 [1,1,1,1,2,1] 2"},
         "are not MXFP4",
         NULL},
        {"32, 2",
         {"x_blocks U8 [2,1,16] 32", "x_scale U8 [2,1] 2"},
         "a tensor that is missing: x_scales or",
         NULL},
    };
    convert_each(list, sizeof list / sizeof *list);
}

/* Codes 0x38 and factors 2, one for each row or for both; no factors for no codes. */
TEST(groups) {
    static const packed_case list[] = {
        {"4, 2", {"x.weight I8 [2,4] 8", "x.scales F32 [2] 8"}, NULL, "112 112 112"},
        {"4, 2", {"x.weight I8 [2,4] 8", "x.scales F32 [1] 4"}, NULL, "112 112 112"},
        {"4, 2",
         {"x.weight I8 [2,4] 8", "x.scales F32 [3] 12"},
         "tensor x.scales does not have the factors for the groups of x.weight",
         NULL},
        {"4, 2",
         {"x.weight I8 [0,4] 0", "x.scales F32 [1] 4"},
         "tensor x.scales does not have the factors for the groups of x.weight",
         NULL},
        {"4, 2", {"x.weight I8 [2,0] 0", "x.scales F32 [0] 0"}, "does not have the factors", NULL},
    };
    convert_each(list, sizeof list / sizeof *list);
}

/* Numbers of experts: tests/numpy/folders_deepseek4.py converts some. */
TEST(whole_numbers) {
    static const struct {
        raw t;
        const char *section, *words;
    } list[] = {
        {{"x", "I64", "[2, 4]", 64},
         "  w <- whole(\"x\")\n",
         "tensor x has the number 4051049678932293688; at most 16777216 is allowed"},
        {{"x", "I32", "[2, 4]", 32},
         "  w <- whole(\"x\")\n",
         "tensor x has the number 943208504; at most 16777216 is allowed"},
        {{"x", "F32", "[2, 4]", 32},
         "  w <- whole(\"x\")\n",
         "tensor x has the type F32: I32 or I64 is expected"},
        {{"x", "I8", "[2, 4]", 8},
         "  w <- whole(\"x\")\n",
         "tensor x has the type I8: I32 or I64 is expected"},
        {{"x", "I32", "[4, 2]", 32},
         "  w <- whole(transpose(\"x\"))\n",
         "whole(..) needs the name of a source tensor, in quotes"},
        {{"x", "I32", "[3, 4]", 48}, "  w <- whole(\"x\")\n", "[4, 3]"},
        {{"x", "I64", "[2, 4]", 64},
         "  w <- offsets(\"x\")\n",
         "tensor x has the number 4051049678932293688; at most 16777216 is allowed"},
        {{"x", "F32", "[2, 4]", 32},
         "  w <- offsets(\"x\")\n",
         "tensor x has the type F32: I32 or I64 is expected"},
        {{"x", "I32", "[4, 2]", 32},
         "  w <- offsets(transpose(\"x\"))\n",
         "offsets(..) needs the name of a source tensor, in quotes"},
    };
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"]}"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        const raw t[] = {{"embed", "F32", "[6, 4]", 96}, list[k].t};
        REQUIRE(put_raw(t, 2));
        refused_with(made_with("4, 2", list[k].section), list[k].words, list[k].section);
    }
}

/* --- out of memory ---------------------------------------------------------------------------- */

/* MLX's codes that become blocks, codes that become numbers, and a tokenizer.model. */
LONG_TEST(out_of_memory) {
    static const char model[] =
        "\n\016\n\005<unk>\025\0\0\0\0\030\002\n\010\n\001a\025\0\0\200\277";
    static const char arch[] =
        "arch t\nlanguage 1\nembd [64, n_vocab]\nw [64, 64]\nv [64, 64]\n"
        "logits = linear(linear(linear(embd[token], w), v), embd)\nconvert Own:\n"
        "  .vocab_size <- 6\n  embd <- \"embed\"\n  w <- pairs(\"w\", 2)\n  v <- \"v\"\n";
    const raw t[] = {{"embed", "F32", "[6, 64]", 1536},     {"w.weight", "U32", "[64, 8]", 2048},
                     {"w.scales", "F32", "[64, 2]", 512},   {"w.biases", "F32", "[64, 2]", 512},
                     {"v.weight", "U32", "[64, 16]", 4096}, {"v.scales", "F32", "[64, 2]", 512},
                     {"v.biases", "F32", "[64, 2]", 512}};
    char path[1024]; /* test_path's are reused */
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    REQUIRE(put_raw(t, 7) && put_text("own.arch", arch));
    REQUIRE(test_write_file(test_path("tokenizer.model"), model, sizeof model - 1));
    REQUIRE(put_text("config.json",
                     "{\"architectures\": [\"Own\"], \"quantization\": {\"group_size\": "
                     "32, \"bits\": 4, \"v\": {\"group_size\": 32, \"bits\": 8}}}"));
    snprintf(path, sizeof path, "%s", test_path("own.arch"));
    params.arch_path = path;
    check_failing_allocations(&params);
    ggl_gguf *f;
    REQUIRE_OK(ggl_gguf_open(&f, test_path("out.gguf"), NULL, &err), &err);
    CHECK_INT(ggl_gguf_find_tensor(f, "w.weight")->type, GGL_Q4_1);
    CHECK_INT(ggl_gguf_find_tensor(f, "v.weight")->type, GGL_F32);
    CHECK(ggl_gguf_find(f, "tokenizer.ggml.scores") != NULL);
    ggl_gguf_close(f);
}
