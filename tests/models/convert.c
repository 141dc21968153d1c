/* llm-convert's library: nano models of each family, taken apart into Hugging Face's layout and put together again; the real
 * config.json files with tensors of the right shapes; and folders that are wrong. */
#include <math.h>

#include "ggl/alloc.h"
#include "convert_alloc.h"
#include "hf_layout.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/tokenizer.h"

/* --- there and back --------------------------------------------------------------------------- */

typedef struct family {
    const char *name, *class_name, *golden, *optional, *keys;
} family;

static const family families[] = {
    {"llama", "LlamaForCausalLM", "llama", "output.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=3 feed_forward_length=160 "
     "attention.head_count=4 "
     "attention.head_count_kv=4 attention.layer_norm_rms_epsilon=0.01 rope.freq_base=10000 "
     "rope.dimension_count=16"},
    {"llama", "LlamaForCausalLM", "llama3", "rope_freqs.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=96 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=0.01 rope.freq_base=500000 "
     "rope.dimension_count=16"},
    {"llama", "LlamaForCausalLM", "llama-bias",
     "attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_gate.bias ffn_up.bias ffn_down.bias",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=96 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=0.002 rope.freq_base=10000 "
     "rope.dimension_count=16 "
     "rope.scaling.type=linear rope.scaling.factor=2"},
    {"llama", "LlamaForCausalLM", "llama-yarn", "output.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=96 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.key_length=32 attention.value_length=32 "
     "attention.layer_norm_rms_epsilon=0.01 "
     "rope.freq_base=1000000 rope.dimension_count=32 rope.scaling.type=yarn rope.scaling.factor=4 "
     "rope.scaling.original_context_length=64"},
    {"llama", "MixtralForCausalLM", "mixtral", "output.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=64 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=0.01 rope.freq_base=1000000 "
     "rope.dimension_count=16 "
     "expert_count=4 expert_used_count=2"},
    {"gpt2", "GPT2LMHeadModel", "gpt2", "output.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=3 feed_forward_length=128 "
     "attention.head_count=4 "
     "attention.layer_norm_epsilon=0.02"},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", "",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=3 feed_forward_length=160 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=0.002 rope.freq_base=1000000"},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", "",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=3 feed_forward_length=96 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.key_length=32 attention.value_length=32 "
     "attention.layer_norm_rms_epsilon=0.002 "
     "rope.freq_base=1000000"},
    {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3moe", "output.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=160 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.key_length=32 attention.value_length=32 "
     "attention.layer_norm_rms_epsilon=0.002 "
     "rope.freq_base=1000000 expert_count=8 expert_used_count=2 expert_feed_forward_length=32"},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", "",
     "vocab_size=320 context_length=256 embedding_length=32 block_count=26 feed_forward_length=64 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.key_length=16 attention.value_length=16 "
     "attention.layer_norm_rms_epsilon=0.002 "
     "attention.sliding_window=16 attn_logit_softcapping=3 final_logit_softcapping=4"},
    {"phi3", "Phi3ForCausalLM", "phi3",
     "output.weight rope_factors_long.weight rope_factors_short.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=96 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=0.01 rope.freq_base=10000 "
     "rope.dimension_count=16 "
     "attention.sliding_window=16 rope.scaling.original_context_length=128"},
    {"bloom", "BloomForCausalLM", "bloom", "output.weight",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=2 feed_forward_length=128 "
     "attention.head_count=4 "
     "attention.head_count_kv=4 attention.layer_norm_epsilon=0.02"},
    {"qwen35", "Qwen3_5ForCausalLM", "qwen35", "",
     "vocab_size=320 context_length=256 embedding_length=64 block_count=4 feed_forward_length=160 "
     "attention.head_count=4 "
     "attention.head_count_kv=2 attention.key_length=32 attention.value_length=32 "
     "attention.layer_norm_rms_epsilon=0.002 "
     "rope.freq_base=10000000 rope.dimension_count=16 ssm.conv_kernel=4 ssm.state_size=16 "
     "ssm.group_count=2 "
     "ssm.time_step_rank=4 ssm.inner_size=64 full_attention_interval=4"},
};
#define N_FAMILIES (sizeof families / sizeof *families)

static const family *find_family(const char *golden) {
    for (size_t k = 0; k < N_FAMILIES; k++)
        if (strcmp(families[k].golden, golden) == 0)
            return &families[k];
    return NULL;
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

/* The same tensors, bit for bit; but ssm_a went through a logarithm and back, and rope_freqs is computed. */
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
        bool about = strstr(t->name, "ssm_a") && !strstr(t->name, "ssm_alpha");
        float *x = malloc((size_t)n * sizeof *x);
        ggl_type_get((int)got->type)->to_float(got->data, x, n);
        for (int64_t k = 0; k < n; k++)
            n_bad += fabs(x[k] - t->data[k]) >
                     (about || most > 0 ? (most + 1e-6) * fabs(t->data[k]) : 0);
        CHECK_MSG(n_bad == 0, "%s: %lld of %lld numbers differ", t->name, (long long)n_bad,
                  (long long)n);
        free(x);
    }
}

static void fix_made(layout *l) {
    for (int i = 0; i < l->n; i++)
        for (int64_t k = 0; strstr(l->tensor[i].name, "ssm_a") && l->tensor[i].n_dims == 1 &&
                            k < l->tensor[i].ne[0];
             k++)
            l->tensor[i].data[k] = -expf(l->tensor[i].data[k]);
    for (int i = 0; i < l->n; i++) /* factors are above zero */
        for (int64_t k = 0; strstr(l->tensor[i].name, "rope_f") && k < l->tensor[i].ne[0]; k++)
            l->tensor[i].data[k] = fabsf(l->tensor[i].data[k]) + 1;
}

static bool put_folder(const layout *gguf, const char *class_name, const char *dtype) {
    layout hf;
    char *config;
    if (!CHECK(layout_to_hf(gguf, class_name, &hf, &config)))
        return false;
    bool ok = CHECK(put_text("config.json", config)) &&
              CHECK(layout_write(&hf, test_path("model.safetensors"), dtype));
    layout_free(&hf);
    free(config);
    return ok;
}

static void there_and_back(const char *golden) {
    const family *a = find_family(golden);
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    for (int from_file = 0; from_file < 2; from_file++) {
        char path[128];
        layout l;
        ggl_gguf *file = NULL, *f;
        snprintf(path, sizeof path, "golden/%s.gguf", golden);
        const char *full = from_file ? test_shared(path) : NULL;
        if (from_file && !full)
            return; /* the made one has been checked */
        if (from_file) {
            REQUIRE_OK(ggl_gguf_open(&file, full, NULL, &err), &err);
            REQUIRE(layout_read(&l, file, a->keys));
        } else {
            REQUIRE(layout_make(&l, a->name, a->keys, a->optional, true));
            fix_made(&l);
        }
        layout_tensor *freqs =
            layout_find(&l, "rope_freqs.weight"); /* made from numbers of config.json's */
        REQUIRE(put_folder(&l, a->class_name, "F32"));
        f = convert(&params);
        if (CHECK_MSG(f, "%s: %s", golden, err.msg)) {
            if (freqs) {
                const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, freqs->name);
                const float *x = t ? t->data : NULL;
                /* 8 frequencies of base 500000, original context 64: the fast ones stay, the slow ones are divided by 32 */
                CHECK(x && x[0] == 1 && x[7] == 32 && x[1] > 1 && x[1] < 32);
                memcpy(freqs->data, x, 8 * sizeof *x);
            }
            check_keys(f, a->name, a->keys);
            check_tensors(f, &l, 0);
            ggl_gguf_close(f);
        }
        layout_free(&l);
        ggl_gguf_close(file);
    }
}

TEST(llama) {
    there_and_back("llama");
}
TEST(llama3) {
    there_and_back("llama3");
}
TEST(llama_bias) {
    there_and_back("llama-bias");
}
TEST(llama_yarn) {
    there_and_back("llama-yarn");
}
TEST(mixtral) {
    there_and_back("mixtral");
}
TEST(gpt2) {
    there_and_back("gpt2");
}
TEST(qwen2) {
    there_and_back("qwen2");
}
TEST(qwen3) {
    there_and_back("qwen3");
}
TEST(qwen3moe) {
    there_and_back("qwen3moe");
}
TEST(gemma2) {
    there_and_back("gemma2");
}
TEST(phi3) {
    there_and_back("phi3");
}
TEST(bloom) {
    there_and_back("bloom");
}
TEST(qwen35) {
    there_and_back("qwen35");
}

/* The nano models' numbers are exact in f16; bf16 keeps 8 bits of them. */
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
                {"BF16", LLM_CONVERT_AUTO, GGL_BF16, 0.004, 32}};
    const family *a = find_family("qwen35");
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        layout l;
        int64_t type;
        llm_convert_params params = params_of(list[k].type);
        REQUIRE(layout_make(&l, a->name, a->keys, a->optional, true));
        for (int i = 0; i < l.n; i++) /* all exact with 1 less, too */
            for (int64_t n = 0; strstr(l.tensor[i].name, "norm") && n < l.tensor[i].ne[0]; n++)
                l.tensor[i].data[n] = (float)(n % 7);
        for (int i = 0; i < l.n; i++)
            for (int64_t n = 0; strstr(l.tensor[i].name, "ssm_a") && l.tensor[i].n_dims == 1 &&
                                n < l.tensor[i].ne[0];
                 n++)
                l.tensor[i].data[n] = -1;
        REQUIRE(put_folder(&l, a->class_name, list[k].dtype));
        ggl_gguf *f = convert(&params);
        if (CHECK_MSG(f, "%s", err.msg)) {
            check_tensors(f, &l, list[k].most);
            CHECK_INT(ggl_gguf_find_tensor(f, "blk.0.attn_qkv.weight")->type, list[k].matrix);
            CHECK_INT(ggl_gguf_find_tensor(f, "token_embd.weight")->type, list[k].matrix);
            CHECK_INT(ggl_gguf_find_tensor(f, "blk.0.attn_norm.weight")->type, GGL_F32);
            CHECK_INT(ggl_gguf_find_tensor(f, "blk.0.ssm_conv1d.weight")->type,
                      GGL_F32); /* a matrix, but not used as one */
            CHECK(ggl_gguf_get_integer(f, "general.file_type", &type, &err) == 1 &&
                  type == list[k].file_type);
            CHECK_INT(ggl_gguf_find(f, "qwen35.rope.freq_base")->type, GGL_GGUF_F32);
            CHECK_INT(ggl_gguf_find(f, "qwen35.block_count")->type, GGL_GGUF_U32);
            ggl_gguf_close(f);
        }
        layout_free(&l);
    }
}

/* Routers stay f32, whatever the type of the rest; the experts do not. */
TEST(routers) {
    static const char *const golden[] = {"mixtral", "qwen3moe"};
    for (int k = 0; k < 2; k++) {
        const family *a = find_family(golden[k]);
        layout l;
        llm_convert_params params = params_of(k ? LLM_CONVERT_BF16 : LLM_CONVERT_AUTO);
        REQUIRE(layout_make(&l, a->name, a->keys, a->optional, true));
        REQUIRE(put_folder(&l, a->class_name, "F16"));
        ggl_gguf *f = convert(&params);
        if (CHECK_MSG(f, "%s", err.msg)) {
            CHECK_INT(ggl_gguf_find_tensor(f, "blk.1.ffn_gate_inp.weight")->type, GGL_F32);
            CHECK_INT(ggl_gguf_find_tensor(f, "blk.1.ffn_down_exps.weight")->type,
                      k ? GGL_BF16 : GGL_F16);
            CHECK_INT(ggl_gguf_find_tensor(f, "blk.1.attn_output.weight")->type,
                      k ? GGL_BF16 : GGL_F16);
            ggl_gguf_close(f);
        }
        layout_free(&l);
    }
}

TEST(too_large_for_f16) {
    const family *a = find_family("llama");
    layout l;
    llm_convert_params params = params_of(LLM_CONVERT_F16);
    REQUIRE(layout_make(&l, a->name, a->keys, a->optional, true));
    layout_find(&l, "blk.1.ffn_up.weight")->data[77] = 65520;
    REQUIRE(put_folder(&l, a->class_name, "F32"));
    CHECK(!convert(&params));
    CHECK_HAS(err.msg, "tensor 'blk.1.ffn_up.weight': 65520 is too large for f16");
    CHECK(access(test_path("out.gguf"), F_OK) != 0);
    layout_free(&l);
}

/* --- real configurations ---------------------------------------------------------------------- */

static void real(const char *folder, const char *name, const char *class_name, const char *optional,
                 const char *keys) {
    char path[128];
    size_t n;
    layout l, hf;
    char *config;
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    snprintf(path, sizeof path, "hf/%s/config.json", folder);
    const char *full = test_shared(path);
    if (!full)
        SKIP_NOT_SHIPPED("published Hugging Face folders");
    unsigned char *text = test_read_file(full, &n);
    REQUIRE(text && test_write_file(test_path("config.json"), text, n));
    free(text);
    REQUIRE(layout_make(&l, name, keys, optional, false)); /* shapes only: a file with a hole */
    REQUIRE(layout_to_hf(&l, class_name, &hf, &config));
    bool ok = layout_write(&hf, test_path("model.safetensors"), "BF16");
    int n_tensor = l.n;
    layout_free(&l);
    layout_free(&hf);
    free(config);
    if (!ok)
        SKIP("this file system has no room for holes");
    llm_converter *c;
    REQUIRE_OK(llm_converter_open(&c, test_folder(), &params, &err), &err);
    CHECK_INT(llm_converter_n_tensors(c), n_tensor);
    CHECK_HAS(llm_converter_notes(c), "the folder has no tokenizer");
    llm_converter_free(c);
    params.vocab_only = true;
    ggl_gguf *f = convert(&params);
    if (CHECK_MSG(f, "%s", err.msg))
        check_keys(f, name, keys);
    ggl_gguf_close(f);
}

TEST(real_tinyllama) {
    real("tinyllama-1.1b", "llama", "LlamaForCausalLM", "output.weight",
         "vocab_size=32000 context_length=2048 embedding_length=2048 block_count=22 "
         "feed_forward_length=5632 "
         "attention.head_count=32 attention.head_count_kv=4 attention.layer_norm_rms_epsilon=1e-5 "
         "rope.freq_base=10000 "
         "rope.dimension_count=64");
}

TEST(real_llama_3_2) {
    real("llama-3.2-1b", "llama", "LlamaForCausalLM", "rope_freqs.weight",
         "vocab_size=128256 context_length=131072 embedding_length=2048 block_count=16 "
         "feed_forward_length=8192 "
         "attention.head_count=32 attention.head_count_kv=8 attention.key_length=64 "
         "attention.layer_norm_rms_epsilon=1e-5 "
         "rope.freq_base=500000 rope.dimension_count=64");
}

TEST(real_mixtral) {
    real("mixtral-8x7b", "llama", "MixtralForCausalLM", "output.weight",
         "vocab_size=32000 context_length=32768 embedding_length=4096 block_count=32 "
         "feed_forward_length=14336 "
         "attention.head_count=32 attention.head_count_kv=8 attention.layer_norm_rms_epsilon=1e-5 "
         "rope.freq_base=1000000 "
         "expert_count=8 expert_used_count=2");
}

TEST(real_gpt2) {
    real("gpt2", "gpt2", "GPT2LMHeadModel", "",
         "vocab_size=50257 context_length=1024 embedding_length=768 block_count=12 "
         "feed_forward_length=3072 "
         "attention.head_count=12 attention.layer_norm_epsilon=1e-5");
}

TEST(real_qwen2_5) {
    real("qwen2.5-0.5b", "qwen2", "Qwen2ForCausalLM", "",
         "vocab_size=151936 context_length=32768 embedding_length=896 block_count=24 "
         "feed_forward_length=4864 "
         "attention.head_count=14 attention.head_count_kv=2 attention.layer_norm_rms_epsilon=1e-6 "
         "rope.freq_base=1000000");
}

TEST(real_qwen3) {
    real("qwen3-0.6b", "qwen3", "Qwen3ForCausalLM", "",
         "vocab_size=151936 context_length=40960 embedding_length=1024 block_count=28 "
         "feed_forward_length=3072 "
         "attention.head_count=16 attention.head_count_kv=8 attention.key_length=128 "
         "attention.value_length=128 "
         "attention.layer_norm_rms_epsilon=1e-6 rope.freq_base=1000000");
}

TEST(real_gemma_2) {
    real("gemma-2-2b", "gemma2", "Gemma2ForCausalLM", "",
         "vocab_size=256000 context_length=8192 embedding_length=2304 block_count=26 "
         "feed_forward_length=9216 "
         "attention.head_count=8 attention.head_count_kv=4 attention.key_length=256 "
         "attention.value_length=256 "
         "attention.layer_norm_rms_epsilon=1e-6 attention.sliding_window=4096 "
         "attn_logit_softcapping=50 "
         "final_logit_softcapping=30");
}

/* The attention factor: sqrt(1 + ln(131072 / 4096) / ln(4096)). */
TEST(real_phi_3_5) {
    real("phi-3.5-mini", "phi3", "Phi3ForCausalLM",
         "output.weight rope_factors_long.weight rope_factors_short.weight",
         "vocab_size=32064 context_length=131072 embedding_length=3072 block_count=32 "
         "feed_forward_length=8192 "
         "attention.head_count=32 attention.head_count_kv=32 attention.layer_norm_rms_epsilon=1e-5 "
         "rope.freq_base=10000 "
         "rope.dimension_count=96 attention.sliding_window=262144 "
         "rope.scaling.original_context_length=4096 "
         "rope.scaling.attn_factor=1.1902380714238083");
}

TEST(real_bloom) {
    real("bloom-3b", "bloom", "BloomForCausalLM", "",
         "vocab_size=250880 context_length=2048 embedding_length=2560 block_count=30 "
         "feed_forward_length=10240 "
         "attention.head_count=32 attention.layer_norm_epsilon=1e-5");
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
    const family *a = find_family("mixtral");
    layout l, hf;
    char *config;
    REQUIRE(layout_make(&l, a->name, a->keys, a->optional, true));
    REQUIRE(layout_to_hf(&l, a->class_name, &hf, &config));
    const char *path = test_path("model.safetensors");
    REQUIRE(put_text("config.json", config));
    expect("there is no model.safetensors");

    layout_tensor *t = layout_find(&hf, "model.layers.1.self_attn.k_proj.weight");
    t->name[0] = 'M';
    REQUIRE(layout_write(&hf, path, "F32"));
    expect("nothing in the folder is the source of blk.1.attn_k.weight; it comes from "
           "model.layers.1.self_attn.k_proj.weight (its weight)");
    t->name[0] = 'm';
    t = layout_find(&hf, "model.layers.0.block_sparse_moe.experts.2.w3.weight");
    t->name[0] = 'M';
    REQUIRE(layout_write(&hf, path, "F32"));
    expect("1 of the 4 tensors is missing in the folder: "
           "model.layers.0.block_sparse_moe.experts.2.w3.weight");
    t->name[0] = 'm';
    t = layout_find(&hf, "model.layers.1.input_layernorm.weight");
    t->ne[0]--;
    REQUIRE(layout_write(&hf, path, "F32"));
    expect("tensor blk.1.attn_norm.weight is [63], declared [n_embd] = [64]");
    t->ne[0]++;
    snprintf(hf.tensor[hf.n].name, 64, "model.layers.0.odd.weight");
    hf.tensor[hf.n] = (layout_tensor){.n_dims = 1, .ne = {2}, .data = calloc(2, sizeof(float))};
    strcpy(hf.tensor[hf.n++].name, "model.layers.0.odd.weight");
    REQUIRE(layout_write(&hf, path, "F32"));
    expect("model.safetensors: tensor model.layers.0.odd.weight: read by no line of the convert "
           "section in llama.arch:");
    strcpy(hf.tensor[hf.n - 1].name, "model.layers.0.self_attn.rotary_emb.inv_freq"); /* ignored */
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
         "are "
         "sections for "},
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
    "arch t, u\nlanguage 1\nn_embd = .n\ntoken_embd [n_embd, n_vocab]\nx = token_embd[token]\n"
    "w [n_embd, n_embd] bias?\nx = x + linear(x, w)\nf [n_embd] ?\ny = x * f if has(f) else x\n"
    "logits = linear(y, token_embd)\nconvert Own:\n";

#define OWN                                                                                        \
    "  .vocab_size <- config.v\n  .n <- config.a.n\n  token_embd <- \"embed\"\n  ignore "          \
    "config.a.l, config.s, config.o\n"

LONG_TEST(out_of_memory) {
    layout hf = {.tensor = calloc(2, sizeof(layout_tensor)), .n = 2};
    hf.tensor[0] =
        (layout_tensor){.name = "embed", .n_dims = 2, .ne = {4, 6}, .data = calloc(24, 4)};
    hf.tensor[1] =
        (layout_tensor){.name = "w.weight", .n_dims = 2, .ne = {4, 4}, .data = calloc(16, 4)};
    REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
    layout_free(&hf);
    REQUIRE(put_text("config.json", "{\"architectures\": [\"Own\"], \"v\": 6, \"a\": {\"n\": 4}}"));
    REQUIRE(put_text("tokenizer.json",
                     "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": "
                     "{\"vocab\": {\"a\": 0, \"aa\": 1}, \"merges\": [\"a a\"]}}"));
    char text[2048];
    llm_convert_params params = params_of(LLM_CONVERT_AUTO);
    snprintf(text, sizeof text, "%s%s", own_begin,
             OWN "  within config.text\n  prefix \"x\" ?\? \"em\"\n  note has(config.a.n), \"a "
                 "note\"\n  key(\"x.y\") <- list(value(\"w\")[e], 3)\n"
                 "  w <- reshape(transpose(reshape(concat(rows(\"w\", 1, 3), rows(\"w\", 0, 1)), "
                 "4, 2, 2), 1, 2), 4, 4)\n  f <- iota(n_embd) + 1\n");
    REQUIRE(put_text("own.arch", text));
    char path[1024]; /* test_path's are reused */
    snprintf(path, sizeof path, "%s", test_path("own.arch"));
    params.arch_path = path;
    check_failing_allocations(&params);
}
