/* llm-convert and config.json as it is published for each class that ships: all of it is read, or known to be harmless. */
#include "config_test.h"

#define COMMON4                                                                                    \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 1, \"eos_token_id\": [2, 3], "                  \
    "\"initializer_range\": 0.02, "                                                                \
    "\"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.51.0\", \"use_cache\": true, "
#define COMMON5                                                                                    \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 1, \"eos_token_id\": [2, 3], "                  \
    "\"initializer_range\": 0.02, \"pad_token_id\": null, "                                        \
    "\"dtype\": \"bfloat16\", \"transformers_version\": \"5.0.0\", \"use_cache\": true, "
#define SIZE SHAPE ", \"hidden_act\": \"silu\""
#define SHAPE                                                                                      \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"max_position_embeddings\": 256, "           \
    "\"num_attention_heads\": 4, "                                                                 \
    "\"num_hidden_layers\": 4, \"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-05, "              \
    "\"vocab_size\": 320"
#define FULL                                                                                       \
    "\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\", "               \
    "\"full_attention\"]"
#define MIXED                                                                                      \
    "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\", "         \
    "\"full_attention\"]"
#define ROPE4             ", \"rope_theta\": 10000.0, \"rope_scaling\": null}"
#define ROPE5             ", \"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": \"default\"}}"
#define CLASS(name, type) "{\"architectures\": [\"" name "\"], \"model_type\": \"" type "\", "

/* As they are published, of transformers 4 and 5. */
static const char *const configs[] = {
    CLASS("LlamaForCausalLM", "llama") COMMON4 SIZE
    ", \"attention_bias\": false, \"mlp_bias\": false, \"head_dim\": 16, \"pretraining_tp\": "
    "1, "
    "\"tie_word_embeddings\": false, \"is_llama_config\": true, \"rope_interleaved\": false, "
    "\"_name_or_path\": \"x\", "
    "\"transformers.js_config\": {\"dtype\": \"q4\", \"kv_cache_dtype\": {\"q4f16\": "
    "\"float16\"}}" ROPE4,
    CLASS("LlamaForCausalLM", "llama") COMMON5 SIZE
    ", \"attention_bias\": false, \"mlp_bias\": false, \"head_dim\": 16, \"pretraining_tp\": "
    "1, "
    "\"tie_word_embeddings\": false" ROPE5,
    CLASS("LlamaForCausalLM",
          "llama") "\"bos_token_id\": 0, \"eos_token_id\": 1, \"hidden_act\": \"silu\", "
                   "\"hidden_size\": 64, \"intermediate_size\": 96, "
                   "\"initializer_range\": 0.02, \"max_sequence_length\": 2048, "
                   "\"max_position_embeddings\": 2048, \"num_attention_heads\": 4, "
                   "\"num_hidden_layers\": 4, \"pad_token_id\": -1, \"rms_norm_eps\": 1e-06, "
                   "\"torch_dtype\": \"float16\", "
                   "\"transformers_version\": \"4.27.0.dev0\", \"use_cache\": true, "
                   "\"vocab_size\": 320}",
    CLASS("MistralForCausalLM", "mistral") COMMON4 SIZE
    ", \"head_dim\": 16, \"sliding_window\": null, \"tie_word_embeddings\": false" ROPE4,
    CLASS("MistralForCausalLM", "mistral") COMMON5 SIZE
    ", \"head_dim\": 16, \"sliding_window\": 4096, \"tie_word_embeddings\": false" ROPE5,
    CLASS("MixtralForCausalLM", "mixtral") COMMON4 SIZE
    ", \"num_experts_per_tok\": 2, \"num_local_experts\": 4, \"output_router_logits\": false, "
    "\"router_aux_loss_coef\": 0.02, \"router_jitter_noise\": 0.0, \"sliding_window\": null, "
    "\"tie_word_embeddings\": false" ROPE4,
    CLASS("MixtralForCausalLM", "mixtral") COMMON5 SIZE
    ", \"head_dim\": null, \"num_experts_per_tok\": 2, \"num_local_experts\": 4, "
    "\"output_router_logits\": false, \"router_aux_loss_coef\": 0.02, \"router_jitter_noise\": "
    "0.0, \"tie_word_embeddings\": false" ROPE5,
    CLASS("GPT2LMHeadModel",
          "gpt2") "\"activation_function\": \"gelu_new\", \"attn_pdrop\": 0.1, \"bos_token_id\": "
                  "50256, \"embd_pdrop\": 0.1, "
                  "\"eos_token_id\": 50256, \"initializer_range\": 0.02, \"layer_norm_epsilon\": "
                  "1e-05, \"n_ctx\": 256, \"n_embd\": 64, \"n_head\": 4, \"n_inner\": null, "
                  "\"n_layer\": 2, \"n_positions\": 256, \"reorder_and_upcast_attn\": false, "
                  "\"resid_pdrop\": 0.1, \"scale_attn_by_inverse_layer_idx\": false, "
                  "\"scale_attn_weights\": true, \"summary_activation\": null, "
                  "\"summary_first_dropout\": 0.1, \"summary_proj_to_labels\": true, "
                  "\"summary_type\": \"cls_index\", \"summary_use_proj\": true, "
                  "\"task_specific_params\": {\"text-generation\": {\"do_sample\": true, "
                  "\"max_length\": 50}}, "
                  "\"transformers_version\": \"4.37.2\", \"use_cache\": true, \"vocab_size\": "
                  "320}",
    CLASS("GPT2LMHeadModel",
          "gpt2") "\"activation_function\": \"gelu_new\", \"add_cross_attention\": false, "
                  "\"attn_pdrop\": 0.1, \"bos_token_id\": 50256, "
                  "\"dtype\": \"float32\", \"embd_pdrop\": 0.1, \"eos_token_id\": 50256, "
                  "\"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"n_ctx\": 256, "
                  "\"n_embd\": 64, "
                  "\"n_head\": 4, \"n_inner\": null, \"n_layer\": 2, \"n_positions\": 256, "
                  "\"pad_token_id\": null, \"reorder_and_upcast_attn\": false, "
                  "\"resid_pdrop\": 0.1, "
                  "\"scale_attn_by_inverse_layer_idx\": false, \"scale_attn_weights\": true, "
                  "\"summary_first_dropout\": 0.1, \"summary_proj_to_labels\": true, "
                  "\"summary_type\": \"cls_index\", \"summary_use_proj\": true, "
                  "\"tie_word_embeddings\": true, \"transformers_version\": \"5.0.0\", "
                  "\"use_cache\": true, "
                  "\"vocab_size\": 320}",
    CLASS("Qwen2ForCausalLM", "qwen2") COMMON4 SIZE
    ", \"max_window_layers\": 21, \"sliding_window\": 32768, \"use_sliding_window\": false, "
    "\"use_mrope\": false, \"head_dim\": 16, \"tie_word_embeddings\": true" ROPE4,
    CLASS("Qwen2ForCausalLM", "qwen2") COMMON5 SIZE
    ", \"max_window_layers\": 28, \"sliding_window\": null, \"use_sliding_window\": false, "
    "\"tie_word_embeddings\": true, " FULL ROPE5,
    CLASS("Qwen3ForCausalLM", "qwen3") COMMON4 SIZE
    ", \"attention_bias\": false, \"head_dim\": 16, \"max_window_layers\": 28, "
    "\"sliding_window\": null, "
    "\"use_sliding_window\": false, \"tie_word_embeddings\": true" ROPE4,
    CLASS("Qwen3ForCausalLM", "qwen3") COMMON5 SIZE
    ", \"attention_bias\": false, \"head_dim\": 16, \"max_window_layers\": 28, "
    "\"sliding_window\": null, "
    "\"use_sliding_window\": false, \"tie_word_embeddings\": true, " FULL ROPE5,
    CLASS("Qwen3MoeForCausalLM", "qwen3_moe") COMMON4 SIZE
    ", \"attention_bias\": false, \"decoder_sparse_step\": 1, \"head_dim\": 16, "
    "\"max_window_layers\": 48, "
    "\"mlp_only_layers\": [], \"moe_intermediate_size\": 32, \"norm_topk_prob\": true, "
    "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
    "\"output_router_logits\": false, \"router_aux_loss_coef\": 0.001, \"sliding_window\": "
    "null, \"use_sliding_window\": false, \"tie_word_embeddings\": false" ROPE4,
    CLASS("Qwen3MoeForCausalLM", "qwen3_moe") COMMON5 SIZE
    ", \"attention_bias\": false, \"decoder_sparse_step\": 1, \"head_dim\": 16, "
    "\"mlp_only_layers\": [], \"moe_intermediate_size\": 32, \"norm_topk_prob\": true, "
    "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
    "\"output_router_logits\": false, \"router_aux_loss_coef\": 0.001, \"sliding_window\": "
    "null, \"use_sliding_window\": false, \"tie_word_embeddings\": false" ROPE5,
    CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SIZE
    ", \"attention_bias\": false, \"attn_logit_softcapping\": 50.0, \"cache_implementation\": "
    "\"hybrid\", "
    "\"final_logit_softcapping\": 30.0, \"head_dim\": 16, \"hidden_activation\": "
    "\"gelu_pytorch_tanh\", \"query_pre_attn_scalar\": 16, \"sliding_window\": 64, "
    "\"sliding_window_size\": 64, \"pad_token_id\": 0" ROPE4,
    CLASS("Gemma2ForCausalLM", "gemma2") COMMON5 SIZE
    ", \"attention_bias\": false, \"attn_logit_softcapping\": 50.0, "
    "\"final_logit_softcapping\": 30.0, "
    "\"head_dim\": 16, \"hidden_activation\": \"gelu_pytorch_tanh\", "
    "\"query_pre_attn_scalar\": 16, \"sliding_window\": 64, "
    "\"tie_word_embeddings\": true, \"use_bidirectional_attention\": false, " MIXED ROPE5,
    CLASS("Phi3ForCausalLM", "phi3") COMMON4 SIZE
    ", \"attention_bias\": false, \"auto_map\": {\"AutoConfig\": "
    "\"configuration_phi3.Phi3Config\"}, \"embd_pdrop\": 0.0, "
    "\"full_attn_mod\": 1, \"interpolate_factor\": 1, \"lm_head_bias\": false, \"mlp_bias\": "
    "false, \"original_max_position_embeddings\": 256, "
    "\"partial_rotary_factor\": 0.75, \"resid_pdrop\": 0.0, \"sliding_window\": 2047, "
    "\"tie_word_embeddings\": false" ROPE4,
    CLASS("Phi3ForCausalLM", "phi3") COMMON5 SIZE
    ", \"embd_pdrop\": 0.0, \"original_max_position_embeddings\": 256, \"resid_pdrop\": 0.0, "
    "\"sliding_window\": 2047, \"tie_word_embeddings\": false, \"rope_parameters\": "
    "{\"partial_rotary_factor\": 0.75, \"rope_theta\": 10000.0, "
    "\"rope_type\": \"default\"}}",
    CLASS("BloomForCausalLM",
          "bloom") "\"apply_residual_connection_post_layernorm\": false, "
                   "\"attention_dropout\": 0.0, \"attention_softmax_in_fp32\": true, "
                   "\"bias_dropout_fusion\": true, \"bos_token_id\": 1, \"eos_token_id\": 2, "
                   "\"hidden_dropout\": 0.0, \"hidden_size\": 64, \"initializer_range\": 0.02, "
                   "\"layer_norm_epsilon\": 1e-05, \"masked_softmax_fusion\": true, "
                   "\"n_head\": 4, \"n_inner\": null, \"n_layer\": 2, \"offset_alibi\": 100, "
                   "\"pad_token_id\": 3, "
                   "\"pretraining_tp\": 4, \"seq_length\": 256, \"skip_bias_add\": true, "
                   "\"skip_bias_add_qkv\": false, \"slow_but_exact\": false, \"unk_token_id\": "
                   "0, "
                   "\"use_cache\": true, \"vocab_size\": 320}",
    CLASS("BloomForCausalLM",
          "bloom") "\"apply_residual_connection_post_layernorm\": false, "
                   "\"attention_dropout\": 0.0, \"bos_token_id\": 1, \"dtype\": \"float16\", "
                   "\"eos_token_id\": 2, \"hidden_dropout\": 0.0, \"hidden_size\": 64, "
                   "\"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"n_head\": 4, "
                   "\"n_layer\": 2, "
                   "\"pretraining_tp\": 1, \"slow_but_exact\": false, \"tie_word_embeddings\": "
                   "true, \"transformers_version\": \"5.0.0\", \"use_cache\": true, "
                   "\"vocab_size\": 320}",
    CLASS("Qwen3_5ForCausalLM", "qwen3_5_text") COMMON5 SIZE
    ", \"attention_bias\": false, \"attn_output_gate\": true, \"full_attention_interval\": 4, "
    "\"head_dim\": 32, "
    "\"layer_types\": [\"linear_attention\", \"linear_attention\", \"linear_attention\", "
    "\"full_attention\"], \"linear_conv_kernel_dim\": 4, "
    "\"linear_key_head_dim\": 16, \"linear_num_key_heads\": 2, \"linear_num_value_heads\": 4, "
    "\"linear_value_head_dim\": 16, \"mamba_ssm_dtype\": \"float32\", "
    "\"mlp_only_layers\": [], \"mtp_num_hidden_layers\": 1, \"mtp_use_dedicated_embeddings\": "
    "false, \"tie_word_embeddings\": true, "
    "\"rope_parameters\": {\"mrope_interleaved\": true, \"mrope_section\": [2, 1, 1], "
    "\"partial_rotary_factor\": 0.25, \"rope_theta\": 10000000, "
    "\"rope_type\": \"default\"}}",
};

/* Every value that such a file has: none is in the way. The sizes are small. */
TEST(published) {
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        put_config(configs[i]);
        CHECK_MSG(convert_config(NULL, "out.gguf", true), "%.60s: %s", configs[i], err.msg);
    }
}

#define READER                                                                                     \
    "\"d_model\": 64, \"encoder_layers\": 2, \"decoder_layers\": 2, \"encoder_ffn_dim\": 96, "     \
    "\"decoder_ffn_dim\": 96, \"encoder_attention_heads\": 4, \"decoder_attention_heads\": 4, "    \
    "\"max_position_embeddings\": 64, \"vocab_size\": 320, \"is_encoder_decoder\": true, "         \
    "\"eos_token_id\": 2, \"pad_token_id\": 1, "

/* Options that a descriptor does not have are refused by name. */
TEST(refused_options) {
    static const struct {
        const char *config, *words;
    } list[] = {
        {CLASS("Qwen2ForCausalLM", "qwen2") COMMON4 SIZE
         ", \"use_sliding_window\": true, \"sliding_window\": 16" ROPE4,
         "qwen2.arch has no sliding window"},
        {CLASS("Qwen3ForCausalLM", "qwen3") COMMON5 SIZE ", \"head_dim\": 16, " MIXED ROPE5,
         "layer_types = [\"sliding_attention\", \"full_attention\", \"sliding_attention\", ..] of "
         "4. If"},
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SHAPE
         ", \"tie_word_embeddings\": false" ROPE4,
         "gemma2.arch has no output apart from the embedding"},
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SIZE
         ", \"hidden_activation\": \"gelu_pytorch_tanh\", " FULL ROPE4,
         "other layers have a window"},
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SHAPE
         ", \"hidden_activation\": \"gelu_pytorch_tanh\", \"layer_types\": [\"sliding_attention\", "
         "\"full_attention\", "
         "\"sliding_attention\", \"sliding_attention\"]" ROPE4,
         "other layers have a window"}, /* the last one */
        {CLASS("Gemma2ForCausalLM", "gemma2") COMMON4 SHAPE
         ", \"hidden_activation\": \"gelu_pytorch_tanh\", \"layer_types\": [\"sliding_attention\", "
         "\"full_attention\"]" ROPE4,
         "'e' is 2, but the list has 2 elements"},
        {CLASS("LlamaForCausalLM", "llama") COMMON4 SIZE
         ", \"quantization_config\": {\"bits\": 4, \"quant_method\": \"gptq\"}" ROPE4,
         "config.json has quantization_config.quant_method: the weights are quantized in a way "
         "that is not "
         "read: "
         "convert the folder of the original weights"},
        {CLASS("LlamaForCausalLM", "llama") COMMON4 SIZE
         ", \"clip_qkv\": 8.0, \"logits_scaling\": 16" ROPE4,
         "clip_qkv = 8, logits_scaling = 16. If"},
        {CLASS("Qwen3MoeForCausalLM", "qwen3_moe") COMMON4 SIZE
         ", \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "
         "\"norm_topk_prob\": true, \"mlp_only_layers\": [0]" ROPE4,
         "mlp_only_layers = [0]. If"},
        {CLASS("BartModel", "bart") READER "\"activation_function\": \"tanh\"}",
         "an activation that is not bart's"},
        {CLASS("BartModel", "bart") READER
         "\"activation_function\": \"gelu\", \"static_position_embeddings\": true}",
         "positions that are not of this family"},
        {CLASS("MBartModel", "mbart") READER
         "\"activation_function\": \"gelu\", \"normalize_before\": false}",
         "norms that are not of this family"},
        {CLASS("MarianMTModel", "marian") READER
         "\"activation_function\": \"swish\", \"share_encoder_decoder_embeddings\": false}",
         "several tables of embeddings"},
        {CLASS("MarianMTModel", "marian") READER
         "\"activation_function\": \"swish\", \"decoder_vocab_size\": 300}",
         "a decoder with a vocabulary of its own"},
        {CLASS("BartForConditionalGeneration", "pegasus") READER
         "\"activation_function\": \"relu\"}",
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
                 CLASS("MistralForCausalLM", "mistral") COMMON4 SIZE
                 ", \"sliding_window\": %s" ROPE4,
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
