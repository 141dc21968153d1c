/* llm-convert's library: the types of tensors and keys, the real config.json files, and folders that are wrong. What each class
 * becomes: convert_classes.c, tests/numpy/folders.py. */
#include <math.h>

#include "ggl/alloc.h"
#include "convert_alloc.h"
#include "hf_layout.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/tokenizer.h"

/* A mixture of experts, whose numbers f16 can hold. */
static bool make_mixture(layout *l) {
    return layout_make(
        l, "qwen3moe",
        "vocab_size=320 context_length=256 embedding_length=64 block_count=2 "
        "feed_forward_length=160 attention.head_count=4 attention.head_count_kv=2 "
        "attention.key_length=32 attention.value_length=32 attention.layer_norm_rms_epsilon=0.002 "
        "rope.freq_base=1000000 expert_count=4 expert_used_count=2 expert_feed_forward_length=32",
        "output.weight", true);
}

/* Every key of the list is in the file, with that value. */
static void check_keys(const ggl_gguf *f, const char *name, const char *keys) {
    ggl_str arch;
    CHECK(ggl_gguf_get_string(f, "general.architecture", &arch, &err) == 1 &&
          arch.n == strlen(name) && memcmp(arch.s, name, arch.n) == 0);
    for (const char *s = keys; *s; s += strspn(s, " ")) {
        char key[128];
        int n = (int)strcspn(s, "=");
        snprintf(key, sizeof key, "%s.%.*s", name, n, s);
        const char *value = s + n + 1;
        const ggl_gguf_value *v = ggl_gguf_find(f, key);
        s = value + strcspn(value, " ");
        double x;
        ggl_str text;
        if (!CHECK_MSG(v, "%s: no key %s", name, key))
            continue;
        if (*value >= 'a')
            CHECK_MSG(ggl_gguf_string(v, 0, &text) && memcmp(text.s, value, text.n) == 0 &&
                          text.n == (size_t)(s - value),
                      "%s is not %.20s", key, value);
        else
            CHECK_MSG(ggl_gguf_number(v, 0, &x) && (float)x == (float)strtod(value, NULL),
                      "%s is %g, not %.20s", key, x, value);
    }
}

/* The same tensors, each number but for `most` of itself. */
static void check_tensors(const ggl_gguf *f, const layout *want, double most) {
    CHECK_INT(ggl_gguf_n_tensors(f), want->n);
    for (int i = 0; i < want->n; i++) {
        const layout_tensor *t = &want->tensor[i];
        const ggl_gguf_tensor *got = ggl_gguf_find_tensor(f, t->name);
        if (!CHECK_MSG(got, "no tensor %s", t->name))
            continue;
        bool same = got->n_dims == t->n_dims && got->size % ggl_type_get((int)got->type)->size == 0;
        int64_t n = 1, n_bad = 0;
        for (int d = 0; d < t->n_dims; d++) {
            same = same && got->ne[d] == t->ne[d];
            n *= t->ne[d];
        }
        if (!CHECK_MSG(same, "%s has another shape", t->name))
            continue;
        float *x = malloc((size_t)n * sizeof *x);
        ggl_type_get((int)got->type)->to_float(got->data, x, n);
        for (int64_t k = 0; k < n; k++)
            n_bad += fabs(x[k] - t->data[k]) > most * fabs(t->data[k]);
        CHECK_MSG(n_bad == 0, "%s: %lld of %lld numbers differ", t->name, (long long)n_bad,
                  (long long)n);
        free(x);
    }
}

static bool put_folder(const layout *gguf, const char *dtype) {
    layout hf;
    char *config;
    if (!CHECK(layout_to_hf(gguf, "Qwen3MoeForCausalLM", "", &hf, &config)))
        return false;
    bool ok = CHECK(put_text("config.json", config)) &&
              CHECK(layout_write(&hf, test_path("model.safetensors"), dtype));
    layout_free(&hf);
    free(config);
    return ok;
}

/* The numbers are exact in f16; bf16 keeps 8 bits of them. Norms and routers stay f32, whatever the type of the rest. */
TEST(types) {
    static const struct {
        const char *dtype;
        llm_convert_type type;
        ggl_type matrix;
        double most;
        int file_type;
    } list[] = {{"F32", LLM_CONVERT_AUTO, GGL_F32, 0, 0},
                {"F32", LLM_CONVERT_F16, GGL_F16, 0, 1},
                {"F16", LLM_CONVERT_AUTO, GGL_F16, 0, 1},
                {"F16", LLM_CONVERT_F32, GGL_F32, 0, 0},
                {"F32", LLM_CONVERT_BF16, GGL_BF16, 0.004, 32},
                {"F16", LLM_CONVERT_BF16, GGL_BF16, 0.004, 32},
                {"BF16", LLM_CONVERT_AUTO, GGL_BF16, 0.004, 32}};
    static const struct {
        const char *name;
        bool f32;
    } tensors[] = {{"token_embd.weight", false},
                   {"blk.0.attn_norm.weight", true},
                   {"blk.1.attn_output.weight", false},
                   {"blk.1.ffn_gate_inp.weight", true},
                   {"blk.1.ffn_down_exps.weight", false}};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        layout l;
        int64_t type;
        llm_convert_params params = params_of(list[k].type);
        REQUIRE(make_mixture(&l));
        REQUIRE(put_folder(&l, list[k].dtype));
        ggl_gguf *f = convert(&params);
        if (CHECK_MSG(f, "%s", err.msg)) {
            check_tensors(f, &l, list[k].most);
            for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
                CHECK_INT(ggl_gguf_find_tensor(f, tensors[i].name)->type,
                          tensors[i].f32 ? GGL_F32 : list[k].matrix);
            CHECK(ggl_gguf_get_integer(f, "general.file_type", &type, &err) == 1 &&
                  type == list[k].file_type);
            CHECK_INT(ggl_gguf_find(f, "qwen3moe.rope.freq_base")->type, GGL_GGUF_F32);
            CHECK_INT(ggl_gguf_find(f, "qwen3moe.block_count")->type, GGL_GGUF_U32);
            ggl_gguf_close(f);
        }
        layout_free(&l);
    }
}

TEST(too_large_for_f16) {
    layout l;
    llm_convert_params params = params_of(LLM_CONVERT_F16);
    REQUIRE(make_mixture(&l));
    layout_find(&l, "blk.1.attn_q.weight")->data[77] = 65520;
    REQUIRE(put_folder(&l, "F32"));
    CHECK(!convert(&params));
    CHECK_HAS(err.msg, "tensor 'blk.1.attn_q.weight': 65520 is too large for f16");
    CHECK(access(test_path("out.gguf"), F_OK) != 0);
    layout_free(&l);
}

/* --- real configurations ---------------------------------------------------------------------- */

/* The keys of published folders. Phi's attention factor: sqrt(1 + ln(131072 / 4096) / ln(4096)). */
TEST(real) {
    static const struct {
        const char *folder, *name, *keys;
    } list[] = {
        {"tinyllama-1.1b", "llama",
         "vocab_size=32000 context_length=2048 embedding_length=2048 block_count=22 "
         "feed_forward_length=5632 attention.head_count=32 attention.head_count_kv=4 "
         "attention.layer_norm_rms_epsilon=1e-5 rope.freq_base=10000 rope.dimension_count=64"},
        {"llama-3.2-1b", "llama",
         "vocab_size=128256 context_length=131072 embedding_length=2048 block_count=16 "
         "feed_forward_length=8192 attention.head_count=32 attention.head_count_kv=8 "
         "attention.key_length=64 attention.layer_norm_rms_epsilon=1e-5 rope.freq_base=500000 "
         "rope.dimension_count=64"},
        {"mixtral-8x7b", "llama",
         "vocab_size=32000 context_length=32768 embedding_length=4096 block_count=32 "
         "feed_forward_length=14336 attention.head_count=32 attention.head_count_kv=8 "
         "attention.layer_norm_rms_epsilon=1e-5 rope.freq_base=1000000 expert_count=8 "
         "expert_used_count=2"},
        {"gpt2", "gpt2",
         "vocab_size=50257 context_length=1024 embedding_length=768 block_count=12 "
         "feed_forward_length=3072 attention.head_count=12 attention.layer_norm_epsilon=1e-5"},
        {"qwen2.5-0.5b", "qwen2",
         "vocab_size=151936 context_length=32768 embedding_length=896 block_count=24 "
         "feed_forward_length=4864 attention.head_count=14 attention.head_count_kv=2 "
         "attention.layer_norm_rms_epsilon=1e-6 rope.freq_base=1000000"},
        {"qwen3-0.6b", "qwen3",
         "vocab_size=151936 context_length=40960 embedding_length=1024 block_count=28 "
         "feed_forward_length=3072 attention.head_count=16 attention.head_count_kv=8 "
         "attention.key_length=128 attention.value_length=128 "
         "attention.layer_norm_rms_epsilon=1e-6 rope.freq_base=1000000"},
        {"gemma-2-2b", "gemma2",
         "vocab_size=256000 context_length=8192 embedding_length=2304 block_count=26 "
         "feed_forward_length=9216 attention.head_count=8 attention.head_count_kv=4 "
         "attention.key_length=256 attention.value_length=256 "
         "attention.layer_norm_rms_epsilon=1e-6 attention.sliding_window=4096 "
         "attn_logit_softcapping=50 final_logit_softcapping=30"},
        {"phi-3.5-mini", "phi3",
         "vocab_size=32064 context_length=131072 embedding_length=3072 block_count=32 "
         "feed_forward_length=8192 attention.head_count=32 attention.head_count_kv=32 "
         "attention.layer_norm_rms_epsilon=1e-5 rope.freq_base=10000 rope.dimension_count=96 "
         "attention.sliding_window=262144 rope.scaling.original_context_length=4096 "
         "rope.scaling.attn_factor=1.1902380714238083"},
        {"bloom-3b", "bloom",
         "vocab_size=250880 context_length=2048 embedding_length=2560 block_count=30 "
         "feed_forward_length=10240 attention.head_count=32 attention.layer_norm_epsilon=1e-5"},
    };
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    params.vocab_only = true;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char path[128];
        size_t n;
        snprintf(path, sizeof path, "hf/%s/config.json", list[k].folder);
        const char *full = test_shared(path);
        if (!full)
            SKIP_NOT_SHIPPED("published Hugging Face folders");
        unsigned char *text = test_read_file(full, &n);
        REQUIRE(text && test_write_file(test_path("config.json"), text, n));
        free(text);
        ggl_gguf *f = convert(&params);
        if (CHECK_MSG(f, "%s: %s", list[k].folder, err.msg))
            check_keys(f, list[k].name, list[k].keys);
        ggl_gguf_close(f);
    }
}

/* --- folders that are wrong ------------------------------------------------------------------- */

static void expect(const char *words) {
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    ggl_gguf *f = convert(&params);
    CHECK_MSG(!f, "converted, but should not be: %s", words);
    CHECK_HAS(err.msg, words);
    ggl_gguf_close(f);
}

TEST(wrong_tensors) {
    layout l, hf;
    char *config;
    REQUIRE(make_mixture(&l) && layout_to_hf(&l, "Qwen3MoeForCausalLM", "", &hf, &config));
    const char *path = test_path("model.safetensors");
    REQUIRE(put_text("config.json", config));
    expect("there is no model.safetensors");

    layout_tensor *t = layout_find(&hf, "model.layers.1.self_attn.k_proj.weight");
    t->name[0] = 'M';
    REQUIRE(layout_write(&hf, path, "F32"));
    expect("nothing in the folder is the source of blk.1.attn_k.weight; it comes from "
           "model.layers.1.self_attn.k_proj.weight (its weight)");
    t->name[0] = 'm';
    t = layout_find(&hf, "model.layers.0.mlp.experts.2.up_proj.weight");
    t->name[0] = 'M';
    REQUIRE(layout_write(&hf, path, "F32"));
    expect(
        "1 of the 4 tensors is missing in the folder: model.layers.0.mlp.experts.2.up_proj.weight");
    t->name[0] = 'm';
    t = layout_find(&hf, "model.layers.1.input_layernorm.weight");
    t->ne[0]--;
    REQUIRE(layout_write(&hf, path, "F32"));
    expect("tensor blk.1.attn_norm.weight is [63], declared [n_embd] = [64]");
    t->ne[0]++;
    hf.tensor[hf.n] = (layout_tensor){.n_dims = 1, .ne = {2}, .data = calloc(2, sizeof(float))};
    strcpy(hf.tensor[hf.n++].name, "model.layers.0.odd.weight");
    REQUIRE(layout_write(&hf, path, "F32"));
    expect("model.safetensors: tensor model.layers.0.odd.weight: read by no line of the convert "
           "section in qwen3.arch:");
    strcpy(hf.tensor[hf.n - 1].name, "visual.odd"); /* ignored */
    REQUIRE(layout_write(&hf, path, "F32"));
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    ggl_gguf *f = convert(&params);
    CHECK_MSG(f, "%s", err.msg);
    ggl_gguf_close(f);

    size_t n;
    unsigned char *bytes = test_read_file(path, &n);
    REQUIRE(bytes && test_write_file(path, bytes, n - 100));
    expect("its data is at");
    char *dtype = strstr((char *)bytes + 8, "\"F32\"");
    REQUIRE(dtype);
    memcpy(dtype, "\"I32\"", 5);
    REQUIRE(test_write_file(path, bytes, n));
    expect("tensor model.embed_tokens.weight has the type I32; a weight can be made from F32, F16, "
           "BF16 or F64");
    free(bytes);
    free(config);
    layout_free(&l);
    layout_free(&hf);
}

TEST(wrong_configurations) {
    static const struct {
        const char *config, *words;
    } list[] = {
        {"{", "config.json:1:2:"},
        {"{}", "\"architectures\" is not a list with a name"},
        {"{\"architectures\": []}", "\"architectures\" is not a list with a name"},
        {"{\"architectures\": [\"UnheardOfForCausalLM\"]}",
         "no built-in descriptor converts 'UnheardOfForCausalLM', which config.json names. There "
         "are sections for "},
        {"{\"architectures\": [\"LlamaForCausalLM\"]}",
         "config.vocab_size is missing in config.json"},
        {"{\"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": {}}",
         "config.vocab_size is an object in config.json"},
        {"{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_act\": \"relu\"}",
         "an activation that is not llama's: (config.hidden_act ?? \"silu\") = \"relu\""},
        {"{\"architectures\": [\"LlamaForCausalLM\"], \"rope_scaling\": {\"type\": \"dynamic\"}}",
         "unknown rope_type \"dynamic\""},
        {"{\"architectures\": [\"Qwen2ForCausalLM\"], \"use_sliding_window\": true}",
         "qwen2.arch has no sliding window"},
    };
    expect("config.json: No such file");
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        REQUIRE(put_text("config.json", list[k].config));
        expect(list[k].words);
    }
}

/* --- out of memory ---------------------------------------------------------------------------- */

static const char own_begin[] =
    "arch t, u\nlanguage 1\nn_embd = .n\ntoken_embd [n_embd, n_vocab]\n"
    "x = token_embd[token]\nw [n_embd, n_embd] bias?\nx = x + linear(x, w)\n"
    "f [n_embd] ?\ny = x * f if has(f) else x\nlogits = linear(y, token_embd)\n"
    "convert Own:\n";

#define OWN                                                                                        \
    "  .vocab_size <- config.v\n  .n <- config.a.n\n  token_embd <- \"embed\"\n  ignore "          \
    "config.a.l, config.s, config.o\n"

LONG_TEST(out_of_memory) {
    put_made("embed 4,6; w.weight 4,4");
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 6, \"a\": {\"n\": 4}}"));
    REQUIRE(put_text("tokenizer.json",
                     "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": "
                     "{\"vocab\": {\"a\": 0, \"aa\": 1}, \"merges\": [\"a a\"]}}"));
    char text[2048];
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    snprintf(
        text, sizeof text, "%s%s", own_begin,
        OWN
        "  within config.text\n  prefix \"x\" ?\? \"em\"\n"
        "  note has(config.a.n), \"a note\"\n  key(\"training.y\") <- list(value(\"w\")[e], 3)\n"
        "  w <- reshape(transpose(reshape(concat(rows(\"w\", 1, 3), rows(\"w\", 0, 1)), "
        "4, 2, 2), 1, 2), 4, 4)\n"
        "  f <- iota(n_embd) + 1\n");
    REQUIRE(put_text("own.arch", text));
    char path[1024]; /* test_path's are reused */
    snprintf(path, sizeof path, "%s", test_path("own.arch"));
    params.arch_path = path;
    check_failing_allocations(&params);
}
