/* llm-convert and config.json of classes that ship: each way to scale the rotation, in each form that transformers writes, with all
 * the values that published files have; options that are refused, and notes. */
#include <math.h>

#include "config_test.h"

#define COMMON                                                                                     \
    "'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': [2, 3], 'initializer_range': "   \
    "0.02, 'use_cache': true, 'vocab_size': 320"
#define SHAPE                                                                                      \
    "'hidden_size': 64, 'intermediate_size': 96, 'max_position_embeddings': 256, "                 \
    "'num_attention_heads': 4, 'num_hidden_layers': 4, 'num_key_value_heads': 2, 'rms_norm_eps': " \
    "1e-05"
#define FULL                                                                                       \
    "'layer_types': ['full_attention', 'full_attention', 'full_attention', 'full_attention']"
#define MIXED                                                                                      \
    "'layer_types': ['sliding_attention', 'full_attention', 'sliding_attention', "                 \
    "'full_attention']"
#define SCALED "default linear yarn"
#define MORE   SCALED " llama3 longrope"

/* A class, with values as they are published: of both versions of transformers, and of 4 and 5 alone. */
static const struct class {
    const char *name, *family;
    double theta;         /* 0: nothing is rotated */
    const char *scalings; /* those that the descriptor has */
    const char *both, *from4, *from5, *keys;
} classes[] = {
    {"LlamaForCausalLM", "llama", 10000, MORE,
     "'attention_bias': false, 'mlp_bias': false, 'head_dim': 16, 'pretraining_tp': 1, "
     "'tie_word_embeddings': false",
     "'is_llama_config': true, 'rope_interleaved': false, '_name_or_path': 'x', "
     "'max_sequence_length': 2048, 'transformers.js_config': {'dtype': 'q4', 'kv_cache_dtype': "
     "{'q4f16': 'float16'}}",
     "'pad_token_id': null", "rope.dimension_count=16"},
    {"MistralForCausalLM", "llama", 1e6, MORE, "'head_dim': 16, 'tie_word_embeddings': false",
     "'sliding_window': null", "'sliding_window': 4096", "rope.dimension_count=16"},
    {"MixtralForCausalLM", "llama", 1e6, MORE,
     "'num_experts_per_tok': 2, 'num_local_experts': 4, 'output_router_logits': false, "
     "'router_aux_loss_coef': 0.02, 'router_jitter_noise': 0.0, 'tie_word_embeddings': false",
     "'sliding_window': null", "'head_dim': null", "expert_count=4 expert_used_count=2"},
    {"Qwen2ForCausalLM", "qwen2", 1e6, SCALED,
     "'head_dim': 16, 'use_sliding_window': false, 'tie_word_embeddings': true, "
     "'max_window_layers': 21",
     "'sliding_window': 32768, 'use_mrope': false", "'sliding_window': null, " FULL,
     "attention.key_length=16"},
    {"Qwen3ForCausalLM", "qwen3", 1e6, SCALED,
     "'attention_bias': false, 'head_dim': 16, 'max_window_layers': 28, 'sliding_window': null, "
     "'use_sliding_window': false, 'tie_word_embeddings': true",
     "'pad_token_id': 0", FULL, "attention.key_length=16 attention.value_length=16"},
    {"Qwen3MoeForCausalLM", "qwen3moe", 1e6, SCALED,
     "'attention_bias': false, 'decoder_sparse_step': 1, 'head_dim': 16, 'mlp_only_layers': [], "
     "'moe_intermediate_size': 32, 'norm_topk_prob': true, 'num_experts': 4, "
     "'num_experts_per_tok': 2, 'output_router_logits': false, 'router_aux_loss_coef': 0.001, "
     "'sliding_window': null, 'use_sliding_window': false, 'tie_word_embeddings': false",
     "'max_window_layers': 48", "'pad_token_id': null",
     "expert_count=4 expert_used_count=2 expert_feed_forward_length=32"},
    {"Gemma2ForCausalLM", "gemma2", 10000, SCALED,
     "'attention_bias': false, 'attn_logit_softcapping': 50.0, 'final_logit_softcapping': 30.0, "
     "'head_dim': 16, 'hidden_activation': 'gelu_pytorch_tanh', 'query_pre_attn_scalar': 16, "
     "'sliding_window': 64",
     "'cache_implementation': 'hybrid', 'sliding_window_size': 64, 'pad_token_id': 0",
     "'tie_word_embeddings': true, 'use_bidirectional_attention': false, " MIXED,
     "attention.sliding_window=64 attn_logit_softcapping=50 final_logit_softcapping=30"},
    {"Phi3ForCausalLM", "phi3", 10000, "default longrope",
     "'embd_pdrop': 0.0, 'resid_pdrop': 0.0, 'sliding_window': 2047, 'tie_word_embeddings': false",
     "'attention_bias': false, 'auto_map': {'AutoConfig': 'configuration_phi3.Phi3Config'}, "
     "'full_attn_mod': 1, 'interpolate_factor': 1, 'lm_head_bias': false, 'mlp_bias': false",
     "'pad_token_id': null", "rope.dimension_count=16 attention.sliding_window=2047"},
    {"Qwen3_5ForCausalLM", "qwen35", 1e7, SCALED,
     "'attention_bias': false, 'attn_output_gate': true, 'full_attention_interval': 4, 'head_dim': "
     "16, 'layer_types': ['linear_attention', 'linear_attention', 'linear_attention', "
     "'full_attention'], 'linear_conv_kernel_dim': 4, 'linear_key_head_dim': 16, "
     "'linear_num_key_heads': 2, 'linear_num_value_heads': 4, 'linear_value_head_dim': 16, "
     "'mamba_ssm_dtype': 'float32', 'mlp_only_layers': [], 'mtp_num_hidden_layers': 1, "
     "'mtp_use_dedicated_embeddings': false, 'tie_word_embeddings': true",
     "'pad_token_id': 0", "'pad_token_id': null",
     "full_attention_interval=4 ssm.conv_kernel=4 ssm.state_size=16 ssm.group_count=2 "
     "ssm.time_step_rank=4"},
    {"GPT2LMHeadModel", "gpt2", 0, "default",
     "'activation_function': 'gelu_new', 'attn_pdrop': 0.1, 'embd_pdrop': 0.1, "
     "'layer_norm_epsilon': 1e-05, 'n_ctx': 256, 'n_embd': 64, 'n_head': 4, 'n_inner': null, "
     "'n_layer': 4, 'n_positions': 256, 'reorder_and_upcast_attn': false, 'resid_pdrop': 0.1, "
     "'scale_attn_by_inverse_layer_idx': false, 'scale_attn_weights': true, "
     "'summary_first_dropout': 0.1, 'summary_proj_to_labels': true, 'summary_type': 'cls_index', "
     "'summary_use_proj': true",
     "'summary_activation': null, 'task_specific_params': {'text-generation': {'do_sample': true, "
     "'max_length': 50}}",
     "'add_cross_attention': false, 'pad_token_id': null, 'tie_word_embeddings': true", ""},
    {"BloomForCausalLM", "bloom", 0, "default",
     "'apply_residual_connection_post_layernorm': false, 'hidden_dropout': 0.0, 'hidden_size': 64, "
     "'layer_norm_epsilon': 1e-05, 'n_head': 4, 'n_layer': 4, 'seq_length': 256, 'slow_but_exact': "
     "false",
     "'attention_softmax_in_fp32': true, 'bias_dropout_fusion': true, 'masked_softmax_fusion': "
     "true, 'n_inner': null, 'offset_alibi': 100, 'pad_token_id': 3, 'pretraining_tp': 4, "
     "'skip_bias_add': true, 'skip_bias_add_qkv': false, 'unk_token_id': 0",
     "'pretraining_tp': 1, 'tie_word_embeddings': true", ""},
};
enum { N_CLASSES = sizeof classes / sizeof *classes };

/* The contents of rope_scaling, and the resulting keys. */
static const struct {
    const char *type, *old_type, *values, *keys;
} scalings[] = {
    {"default", NULL, "", ""},
    {"linear", NULL, ", 'factor': 4.0", "rope.scaling.type=linear rope.scaling.factor=4"},
    {"llama3", NULL,
     ", 'factor': 32.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, "
     "'original_max_position_embeddings': 64",
     ""},
    {"yarn", NULL, ", 'factor': 4.0, 'original_max_position_embeddings': 64",
     "rope.scaling.type=yarn rope.scaling.factor=4 rope.scaling.original_context_length=64"},
    /* 1.25 / (1 + 0.1 ln 4) */
    {"yarn", NULL, ", 'factor': 4.0, 'attention_factor': 1.25, 'beta_fast': 64, 'beta_slow': 2",
     "rope.scaling.type=yarn rope.scaling.factor=4 rope.scaling.original_context_length=256 "
     "rope.scaling.attn_factor=1.0978111 rope.scaling.yarn_beta_fast=64 "
     "rope.scaling.yarn_beta_slow=2"},
    /* equal mscales leave a magnitude of 1, which is 1 / (1 + 0.1 ln 4) times yarn's */
    {"yarn", NULL, ", 'factor': 4.0, 'mscale': 1.0, 'mscale_all_dim': 1.0",
     "rope.scaling.factor=4 rope.scaling.attn_factor=0.87824887"},
    /* sqrt(1 + ln 4 / ln 64) */
    {"longrope", "su",
     ", 'long_factor': [1, 2, 3, 4, 5, 6, 7, 8], 'short_factor': [1, 1, 1, 1, 1, 1, 1, 2]",
     "rope.scaling.original_context_length=64 rope.scaling.attn_factor=1.1547005"},
    {"dynamic", NULL, ", 'factor': 2.0", ""},
    {"proportional", NULL, ", 'factor': 2.0", ""},
};
#define N_SCALINGS ((int)(sizeof scalings / sizeof *scalings))

static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *s = list; (s = strstr(s, word)); s++)
        if ((s == list || s[-1] == ' ') && (s[n] == 0 || s[n] == ' '))
            return true;
    return false;
}

static void check_keys(const char *file, const struct class *a, const char *keys) {
    ggl_gguf *f;
    REQUIRE_OK(ggl_gguf_open(&f, test_path(file), NULL, &err), &err);
    char all[700];
    snprintf(all, sizeof all,
             "vocab_size=320 context_length=256 block_count=4 embedding_length=64 "
             "attention.head_count=4 %s %s",
             a->keys, keys);
    if (a->theta > 0)
        snprintf(
            all + strlen(all), 100,
            " rope.freq_base=%.0f attention.head_count_kv=2 attention.layer_norm_rms_epsilon=1e-5",
            a->theta);
    for (char *s = strtok(all, " "); s; s = strtok(NULL, " ")) {
        char key[128], *value = strchr(s, '=');
        double x;
        ggl_str text;
        snprintf(key, sizeof key, "%s.%.*s", a->family, (int)(value - s), s);
        const ggl_gguf_value *v = ggl_gguf_find(f, key);
        if (!CHECK_MSG(v, "no key %s", key))
            continue;
        if (*++value >= 'a')
            CHECK_MSG(ggl_gguf_string(v, 0, &text) && text.n == strlen(value) &&
                          memcmp(text.s, value, text.n) == 0,
                      "%s", key);
        else
            CHECK_MSG(ggl_gguf_number(v, 0, &x) && fabs(x - strtod(value, NULL)) <= 1e-6 * x,
                      "%s is %.9g, not %s", key, x, value);
    }
    snprintf(all, sizeof all, "%s.rope.scaling.type", a->family);
    CHECK(strstr(keys, "rope.scaling.") || !ggl_gguf_find(f, all));
    ggl_gguf_close(f);
}

static bool same_bytes(const char *a, const char *b) {
    size_t n[2];
    unsigned char *x = test_read_file(test_path(a), &n[0]),
                  *y = test_read_file(test_path(b), &n[1]);
    bool same = x && y && n[0] == n[1] && memcmp(x, y, n[0]) == 0;
    free(x);
    free(y);
    return same;
}

/* config.json as transformers 4 writes it, 4 with the older name `type`, and 5; longrope's original length stood outside. */
static void put_class(const struct class *a, int form, int k) {
    const char *type = scalings[k].type, *values = scalings[k].values;
    const bool outside = strcmp(type, "longrope") == 0, part = strcmp(a->family, "qwen35") == 0;
    const char *share = part ? "'partial_rotary_factor': 1.0, " : "",
               *orig = outside ? ", 'original_max_position_embeddings': 64" : "";
    char rope[400], text[3000];
    if (form == 2)
        snprintf(rope, sizeof rope,
                 ", 'rope_parameters': {%s'rope_theta': %.1f, 'rope_type': '%s'%s%s}", share,
                 a->theta, type, values, orig);
    else if (strcmp(type, "default") == 0)
        snprintf(rope, sizeof rope, ", %s'rope_theta': %.1f, 'rope_scaling': null", share,
                 a->theta);
    else
        snprintf(rope, sizeof rope, ", %s'rope_theta': %.1f, 'rope_scaling': {'%s': '%s'%s}%s",
                 share, a->theta, form ? "type" : "rope_type",
                 form && scalings[k].old_type ? scalings[k].old_type : type, values, orig);
    snprintf(text, sizeof text,
             "{'architectures': ['%s'], 'model_type': 'x', 'transformers_version': '%d.0.0', '%s': "
             "'bfloat16', " COMMON ", %s, %s%s%s}",
             a->name, form == 2 ? 5 : 4, form == 2 ? "dtype" : "torch_dtype", a->both,
             form == 2 ? a->from5 : a->from4, a->theta > 0 ? ", 'hidden_act': 'silu', " SHAPE : "",
             a->theta > 0 ? rope : "");
    put_config(text);
}

static void check_forms(const struct class *a, int k) {
    static const char *const file[] = {"a.gguf", "b.gguf", "c.gguf"};
    const bool known = has_word(a->scalings, scalings[k].type);
    for (int form = 0; form < 3; form++) {
        char words[128];
        put_class(a, form, k);
        bool ok = convert_config(NULL, file[form], true);
        CHECK_MSG(ok == known, "%s with %s in form %d: %s", a->name, scalings[k].type, form,
                  ok ? "converted" : err.msg);
        snprintf(words, sizeof words, "unknown rope_type \"%s\"", scalings[k].type);
        if (!ok)
            CHECK_HAS(err.msg, words);
        if (!ok || !known)
            continue;
        check_keys(file[form], a, scalings[k].keys);
        CHECK_MSG(form == 0 || same_bytes(file[0], file[form]),
                  "%s, %s: form %d gives another file", a->name, scalings[k].type, form);
    }
}

/* The same keys in each form, to the byte; or refused by name. Every value that such a file has is read, or known to be harmless. */
TEST(forms) {
    for (int i = 0; i < N_CLASSES; i++)
        for (int k = 0; k < (classes[i].theta > 0 ? N_SCALINGS : 1); k++)
            check_forms(&classes[i], k);
}

/* --- options ---------------------------------------------------------------------------------- */

#define CLASS(name, rest) "{'architectures': ['" name "'], " rest "}"
#define ROTATED(name, rest)                                                                        \
    CLASS(name, COMMON ", " SHAPE ", 'rope_theta': 10000.0, 'rope_scaling': null, " rest)
#define READS(name, type, rest)                                                                    \
    CLASS(name, "'model_type': '" type                                                             \
                "', 'd_model': 64, 'encoder_layers': 2, 'decoder_layers': 2, 'encoder_ffn_dim': "  \
                "96, 'decoder_ffn_dim': 96, 'encoder_attention_heads': 4, "                        \
                "'decoder_attention_heads': 4, 'max_position_embeddings': 64, 'vocab_size': 320, " \
                "'is_encoder_decoder': true, 'eos_token_id': 2, 'pad_token_id': 1, " rest)

/* Options that a descriptor does not have are refused by name. */
TEST(refused_options) {
    static const struct {
        const char *config, *words;
    } list[] = {
        {ROTATED("Qwen2ForCausalLM", "'use_sliding_window': true, 'sliding_window': 16"),
         "qwen2.arch has no sliding window"},
        {ROTATED("Qwen3ForCausalLM", "'head_dim': 16, " MIXED),
         "layer_types = [\"sliding_attention\", \"full_attention\", \"sliding_attention\", ..] of "
         "4. If"},
        {ROTATED("Gemma2ForCausalLM", "'tie_word_embeddings': false"),
         "gemma2.arch has no output apart from the embedding"},
        {ROTATED("Gemma2ForCausalLM", "'hidden_activation': 'gelu_pytorch_tanh', " FULL),
         "other layers have a window"},
        {ROTATED("Gemma2ForCausalLM",
                 "'hidden_activation': 'gelu_pytorch_tanh', 'layer_types': ['sliding_attention', "
                 "'full_attention', 'sliding_attention', 'sliding_attention']"),
         "other layers have a window"},
        {ROTATED("Gemma2ForCausalLM", "'hidden_activation': 'gelu_pytorch_tanh', 'layer_types': "
                                      "['sliding_attention', 'full_attention']"),
         "'e' is 2, but the list has 2 elements"},
        {ROTATED("LlamaForCausalLM", "'quantization_config': {'bits': 4, 'quant_method': 'quark'}"),
         "config.json has quantization_config.quant_method = \"quark\": the weights are quantized "
         "in a way that is not read: convert the folder of the original weights"},
        {ROTATED("LlamaForCausalLM", "'clip_qkv': 8.0, 'logits_scaling': 16"),
         "clip_qkv = 8, logits_scaling = 16. If"},
        {ROTATED("Qwen3MoeForCausalLM",
                 "'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 32, "
                 "'norm_topk_prob': true, 'mlp_only_layers': [0]"),
         "mlp_only_layers = [0]. If"},
        {READS("BartModel", "bart", "'activation_function': 'tanh'"),
         "an activation that is not bart's"},
        {READS("BartModel", "bart",
               "'activation_function': 'gelu', 'static_position_embeddings': true"),
         "positions that are not of this family"},
        {READS("MBartModel", "mbart", "'activation_function': 'gelu', 'normalize_before': false"),
         "norms that are not of this family"},
        {READS("MarianMTModel", "marian",
               "'activation_function': 'swish', 'share_encoder_decoder_embeddings': false"),
         "several tables of embeddings"},
        {READS("MarianMTModel", "marian",
               "'activation_function': 'swish', 'decoder_vocab_size': 300"),
         "a decoder with a vocabulary of its own"},
        {READS("BartForConditionalGeneration", "pegasus", "'activation_function': 'relu'"),
         "'arch' must be one of the descriptor's own names"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        put_config(list[i].config);
        CHECK_MSG(!convert_config(NULL, "out.gguf", true), "case %zu", i);
        CHECK_HAS(err.msg, list[i].words);
    }
}

/* A `note` line speaks where its condition holds. */
TEST(notes) {
    static const char *const windows[] = {"64", "null", "256"};
    for (int k = 0; k < 3; k++) {
        char text[1024];
        llm_convert_params p = llm_convert_default();
        llm_converter *c;
        p.vocab_only = true;
        snprintf(text, sizeof text,
                 ROTATED("MistralForCausalLM", "'hidden_act': 'silu', 'sliding_window': %s"),
                 windows[k]);
        put_config(text);
        REQUIRE_OK(llm_converter_open(&c, test_folder(), &p, &err), &err);
        CHECK_MSG((strstr(llm_converter_notes(c), "context_length is cut to sliding_window") !=
                   NULL) == (k == 0),
                  "window %s: %s", windows[k], llm_converter_notes(c));
        CHECK_HAS(llm_converter_notes(c), "there is no tokenizer.json");
        CHECK(!llm_converter_has_tokenizer(c));
        llm_converter_free(c);
    }
}
