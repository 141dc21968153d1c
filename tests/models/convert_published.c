/* config.json of published models of the families whose layout differs most from a Llama's, value by value as they have them (some with fewer
 * layers, lists shortened): none of the values is in the way. */
#include "convert_test.h"

static const struct {
    const char *family, *config;
} list[] = {
    {"gpt-oss",
     "{\"architectures\": [\"GptOssForCausalLM\"], \"attention_bias\": true, "
     "\"attention_dropout\": 0.0, \"eos_token_id\": 200002, \"experts_per_token\": 4, "
     "\"head_dim\": 64, \"hidden_act\": \"silu\", \"hidden_size\": 2880, "
     "\"initial_context_length\":"
     " 4096, \"initializer_range\": 0.02, \"intermediate_size\": 2880, \"layer_types\": "
     "[\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\"], "
     "\"max_position_embeddings\": 131072, \"model_type\": \"gpt_oss\", \"num_attention_heads\": "
     "64, \"num_experts_per_tok\": 4, \"num_hidden_layers\": 4, \"num_key_value_heads\": 8, "
     "\"num_local_experts\": 32, \"output_router_logits\": false, \"pad_token_id\": 199999, "
     "\"quantization_config\": {\"modules_to_not_convert\": [\"model.layers.*.self_attn\", "
     "\"lm_head\"], \"quant_method\": \"mxfp4\"}, \"rms_norm_eps\": 1e-05, \"rope_scaling\": "
     "{\"beta_fast\": 32.0, \"beta_slow\": 1.0, \"factor\": 32.0, "
     "\"original_max_position_embeddings\": 4096, \"rope_type\": \"yarn\", \"truncate\": false}, "
     "\"rope_theta\": 150000, \"router_aux_loss_coef\": 0.9, \"sliding_window\": 128, "
     "\"swiglu_limit\": 7.0, \"tie_word_embeddings\": false, \"transformers_version\": "
     "\"4.55.0.dev0\", \"use_cache\": true, \"vocab_size\": 201088}"},
    {"deepseek2",
     "{\"architectures\": [\"DeepseekV3ForCausalLM\"], \"attention_bias\": false, "
     "\"attention_dropout\": 0.0, \"auto_map\": {\"AutoConfig\": \"x\"}, \"bos_token_id\": 0, "
     "\"eos_token_id\": 1, \"ep_size\": 1, \"first_k_dense_replace\": 3, \"hidden_act\": \"silu\", "
     "\"hidden_size\": 7168, \"initializer_range\": 0.02, \"intermediate_size\": 18432, "
     "\"kv_lora_rank\": 512, \"max_position_embeddings\": 163840, \"model_type\": \"deepseek_v3\","
     " \"moe_intermediate_size\": 2048, \"moe_layer_freq\": 1, \"n_group\": 8, "
     "\"n_routed_experts\": 256, \"n_shared_experts\": 1, \"norm_topk_prob\": true, "
     "\"num_attention_heads\": 128, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 61, "
     "\"num_key_value_heads\": 128, \"num_nextn_predict_layers\": 1, \"q_lora_rank\": 1536, "
     "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"quantization_config\": "
     "{\"activation_scheme\": \"dynamic\", \"fmt\": \"e4m3\", \"quant_method\": \"fp8\", "
     "\"weight_block_size\": [128, 128]}, \"rms_norm_eps\": 1e-06, \"rope_scaling\": "
     "{\"beta_fast\": 32, \"beta_slow\": 1, \"factor\": 40, \"mscale\": 1.0, \"mscale_all_dim\": "
     "1.0, \"original_max_position_embeddings\": 4096, \"type\": \"yarn\"}, \"rope_theta\": 10000,"
     " \"routed_scaling_factor\": 2.5, \"scoring_func\": \"sigmoid\", \"tie_word_embeddings\": "
     "false, \"topk_group\": 4, \"topk_method\": \"noaux_tc\", \"torch_dtype\": \"bfloat16\", "
     "\"transformers_version\": \"4.33.1\", \"use_cache\": true, \"v_head_dim\": 128, "
     "\"vocab_size\": 129280}"},
    {"deepseek4", "{\"architectures\": [\"DeepseekV4ForCausalLM\"], \"attention_bias\": false, "
                  "\"attention_dropout\": 0.0, \"bos_token_id\": 0, "
                  "\"eos_token_id\": 1, \"expert_dtype\": \"fp4\", \"hc_eps\": 1e-06, \"hc_mult\": "
                  "4, \"hc_sinkhorn_iters\": 20, \"head_dim\": 512, "
                  "\"hidden_act\": \"silu\", \"hidden_size\": 4096, \"index_head_dim\": 128, "
                  "\"index_n_heads\": 64, \"index_topk\": 512, "
                  "\"initializer_range\": 0.02, \"max_position_embeddings\": 1048576, "
                  "\"model_type\": \"deepseek_v4\", \"moe_intermediate_size\": 2048, "
                  "\"n_routed_experts\": 256, \"n_shared_experts\": 1, \"norm_topk_prob\": true, "
                  "\"num_attention_heads\": 64, "
                  "\"num_experts_per_tok\": 6, \"num_hidden_layers\": 5, \"num_hash_layers\": 3, "
                  "\"num_key_value_heads\": 1, "
                  "\"num_nextn_predict_layers\": 1, \"o_groups\": 8, \"o_lora_rank\": 1024, "
                  "\"q_lora_rank\": 1024, \"qk_rope_head_dim\": 64, "
                  "\"quantization_config\": {\"activation_scheme\": \"dynamic\", \"fmt\": "
                  "\"e4m3\", \"quant_method\": \"fp8\", \"scale_fmt\": "
                  "\"ue8m0\", \"weight_block_size\": [128, 128]}, \"rms_norm_eps\": 1e-06, "
                  "\"rope_scaling\": {\"beta_fast\": 32, \"beta_slow\": 1, "
                  "\"factor\": 16, \"original_max_position_embeddings\": 65536, \"type\": "
                  "\"yarn\"}, \"rope_theta\": 10000, "
                  "\"routed_scaling_factor\": 1.5, \"scoring_func\": \"sqrtsoftplus\", "
                  "\"sliding_window\": 128, \"swiglu_limit\": 10.0, "
                  "\"tie_word_embeddings\": false, \"topk_method\": \"noaux_tc\", \"torch_dtype\": "
                  "\"bfloat16\", \"transformers_version\": "
                  "\"4.57.1\", \"use_cache\": true, \"vocab_size\": 129280, "
                  "\"compress_rope_theta\": 160000, \"compress_ratios\": [0, 0, 4, 128, 4, 0, 0, "
                  "0], \"dspark_block_size\": 5, \"dspark_markov_rank\": 256, "
                  "\"dspark_noise_token_id\": 128799, \"dspark_target_layer_ids\": [2, 3, 4]}"},
    {"gemma3",
     "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"boi_token_index\": 255999, "
     "\"eoi_token_index\": 256000, \"eos_token_id\": [1, 106], \"image_token_index\": 262144, "
     "\"initializer_range\": 0.02, \"mm_tokens_per_image\": 256, \"model_type\": \"gemma3\", "
     "\"text_config\": {\"hidden_size\": 2560, \"intermediate_size\": 10240, \"model_type\": "
     "\"gemma3_text\", \"num_hidden_layers\": 34, \"rope_scaling\": {\"factor\": 8.0, "
     "\"rope_type\":"
     " \"linear\"}, \"sliding_window\": 1024}, \"torch_dtype\": \"bfloat16\", "
     "\"transformers_version\": \"4.50.0.dev0\", \"vision_config\": {\"hidden_size\": 1152, "
     "\"image_size\": 896, \"intermediate_size\": 4304, \"model_type\": \"siglip_vision_model\", "
     "\"num_attention_heads\": 16, \"num_hidden_layers\": 27, \"patch_size\": 14, "
     "\"vision_use_head\": false}}"},
    {"mistral3",
     "{\"architectures\": [\"Mistral3ForConditionalGeneration\"], \"image_token_index\": 10, "
     "\"model_type\": \"mistral3\", \"multimodal_projector_bias\": false, "
     "\"projector_hidden_act\": \"gelu\", \"spatial_merge_size\": 2, \"text_config\": "
     "{\"attention_dropout\": 0.0, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": "
     "5120, \"initializer_range\": 0.02, \"intermediate_size\": 32768, "
     "\"max_position_embeddings\": 131072, \"model_type\": \"mistral\", \"num_attention_heads\": "
     "32, \"num_hidden_layers\": 40, \"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-05, "
     "\"rope_theta\": 1000000000.0, \"sliding_window\": null, \"use_cache\": true, \"vocab_size\":"
     " 131072}, \"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.50.0.dev0\", "
     "\"vision_config\": {\"hidden_size\": 1024, \"rope_theta\": 10000.0}, "
     "\"vision_feature_layer\": -1}"},
    {"lfm2",
     "{\"architectures\": [\"Lfm2ForCausalLM\"], \"block_auto_adjust_ff_dim\": true, "
     "\"block_dim\": 2048, \"block_ff_dim\": 12288, \"block_ffn_dim_multiplier\": 1.0, "
     "\"block_mlp_init_scale\": 1.0, \"block_multiple_of\": 256, \"block_norm_eps\": 1e-05, "
     "\"block_out_init_scale\": 1.0, \"block_use_swiglu\": true, \"block_use_xavier_init\": "
     "true, \"bos_token_id\": 1, \"conv_L_cache\": 3, \"conv_bias\": false, \"conv_dim\": 2048, "
     "\"conv_dim_out\": 2048, \"conv_use_xavier_init\": true, \"eos_token_id\": 7, "
     "\"full_attn_idxs\": [2, 5, 8, 10, 12, 14], \"hidden_size\": 2048, \"initializer_range\": "
     "0.02, \"max_position_embeddings\": 128000, \"model_type\": \"lfm2\", \"norm_eps\": 1e-05, "
     "\"num_attention_heads\": 32, \"num_heads\": 32, \"num_hidden_layers\": 16, "
     "\"num_key_value_heads\": 8, \"pad_token_id\": 0, \"rope_theta\": 1000000.0, \"torch_dtype\":"
     " \"bfloat16\", \"transformers_version\": \"4.54\", \"use_cache\": true, \"use_pos_enc\": "
     "true,"
     " \"vocab_size\": 65536}"},
    {"phimoe",
     "{\"architectures\": [\"PhiMoEForCausalLM\"], \"attention_bias\": true, "
     "\"attention_dropout\": 0.0, \"auto_map\": {\"a\": \"b\"}, \"bos_token_id\": 1, "
     "\"eos_token_id\":"
     " 32000, \"hidden_act\": \"silu\", \"hidden_dropout\": 0.0, \"hidden_size\": 4096, "
     "\"initializer_range\": 0.02, \"input_jitter_noise\": 0.01, \"intermediate_size\": 6400, "
     "\"lm_head_bias\": true, \"max_position_embeddings\": 131072, \"model_type\": \"phimoe\", "
     "\"num_attention_heads\": 32, \"num_experts_per_tok\": 2, \"num_hidden_layers\": 32, "
     "\"num_key_value_heads\": 8, \"num_local_experts\": 16, "
     "\"original_max_position_embeddings\": 4096, \"output_router_logits\": false, "
     "\"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"long_factor\": [1.5, 1.5, 1.5, 1.5, 1.5, "
     "1.5, 1.5, 1.5], \"long_mscale\": 1.243163121016122, "
     "\"original_max_position_embeddings\": 4096, \"short_factor\": [1.0, 1.0, 1.0, 1.0, 1.0, "
     "1.0, 1.0, 1.0], \"short_mscale\": 1.243163121016122, \"type\": \"longrope\"}, "
     "\"rope_theta\": 10000.0, \"router_aux_loss_coef\": 0.0, \"router_jitter_noise\": 0.01, "
     "\"sliding_window\": 131072, \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\", "
     "\"transformers_version\": \"4.43.3\", \"use_cache\": true, \"vocab_size\": 32064}"},
    {"llama4",
     "{\"architectures\": [\"Llama4ForConditionalGeneration\"], \"boi_token_index\": 200080, "
     "\"eoi_token_index\": 200081, \"image_token_index\": 200092, \"model_type\": \"llama4\", "
     "\"text_config\": {\"_attn_implementation_autoset\": true, \"attention_bias\": false, "
     "\"attention_chunk_size\": 8192, \"attention_dropout\": 0.0, \"attn_scale\": 0.1, "
     "\"attn_temperature_tuning\": 4, \"bos_token_id\": 200000, \"cache_implementation\": "
     "\"hybrid\", \"eos_token_id\": [200001], \"floor_scale\": 8192, \"for_llm_compressor\": "
     "false, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": 5120, "
     "\"initializer_range\": 0.02, \"interleave_moe_layer_step\": 1, \"intermediate_size\": "
     "8192, \"intermediate_size_mlp\": 16384, \"max_position_embeddings\": 10485760, "
     "\"model_type\": \"llama4_text\", \"moe_layers\": [0, 1, 2, 3], \"no_rope_layers\": [1, 1, 1,"
     " 0], \"num_attention_heads\": 40, \"num_experts_per_tok\": 1, \"num_hidden_layers\": 4, "
     "\"num_key_value_heads\": 8, \"num_local_experts\": 16, \"output_router_logits\": false, "
     "\"pad_token_id\": 200018, \"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"factor\": 16.0, "
     "\"high_freq_factor\": 1.0, \"low_freq_factor\": 1.0, \"original_max_position_embeddings\":"
     " 8192, \"rope_type\": \"llama3\"}, \"rope_theta\": 500000.0, \"router_aux_loss_coef\": "
     "0.001, \"router_jitter_noise\": 0.0, \"torch_dtype\": \"bfloat16\", \"use_cache\": true, "
     "\"use_qk_norm\": true, \"vocab_size\": 202048}, \"torch_dtype\": \"bfloat16\", "
     "\"transformers_version\": \"4.51.0.dev0\", \"vision_config\": {\"hidden_size\": 1408}}"},
    {"minimax-m2",
     "{\"architectures\": [\"MiniMaxM2ForCausalLM\"], \"attn_type_list\": [1, 1, 1, 1], "
     "\"auto_map\": {\"x\": \"y\"}, \"eos_token_id\": 200020, \"bos_token_id\": 200019, "
     "\"head_dim\": "
     "128, \"hidden_act\": \"silu\", \"hidden_size\": 3072, \"initializer_range\": 0.02, "
     "\"intermediate_size\": 1536, \"layernorm_full_attention_beta\": 1.0, "
     "\"max_position_embeddings\": 196608, \"model_type\": \"minimax_m2\", "
     "\"mtp_transformer_layers\": 1, \"num_attention_heads\": 48, \"num_experts_per_tok\": 8, "
     "\"num_hidden_layers\": 4, \"num_key_value_heads\": 8, \"num_local_experts\": 256, "
     "\"num_mtp_modules\": 3, \"qk_norm_type\": \"per_layer\", \"quantization_config\": "
     "{\"activation_scheme\": \"dynamic\", \"fmt\": \"float8_e4m3fn\", \"quant_method\": \"fp8\", "
     "\"weight_block_size\": [128, 128], \"modules_to_not_convert\": [\"gate\", "
     "\"e_score_correction_bias\", \"lm_head\"]}, \"rms_norm_eps\": 1e-06, \"rope_theta\": "
     "5000000, \"rotary_dim\": 64, \"scoring_func\": \"sigmoid\", \"shared_intermediate_size\": 0,"
     " \"tie_word_embeddings\": false, \"transformers_version\": \"4.46.1\", \"use_cache\": true, "
     "\"use_mtp\": true, \"use_qk_norm\": true, \"use_routing_bias\": true, \"vocab_size\": "
     "200064}"},
    {"granitehybrid",
     "{\"architectures\": [\"GraniteMoeHybridForCausalLM\"], \"attention_bias\": false, "
     "\"attention_dropout\": 0.0, \"attention_multiplier\": 0.015625, \"bos_token_id\": 100257, "
     "\"embedding_multiplier\": 12, \"eos_token_id\": 100257, \"hidden_act\": \"silu\", "
     "\"hidden_size\": 1536, \"init_method\": \"mup\", \"initializer_range\": 0.1, "
     "\"intermediate_size\": 512, \"layer_types\": [\"mamba\", \"mamba\", \"mamba\", \"mamba\", "
     "\"mamba\", \"attention\"], \"logits_scaling\": 6, \"mamba_chunk_size\": 256, "
     "\"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_head\": 48, \"mamba_d_state\": "
     "128, \"mamba_expand\": 2, \"mamba_n_groups\": 1, \"mamba_n_heads\": 64, \"mamba_proj_bias\":"
     " false, \"max_position_embeddings\": 131072, \"model_type\": \"granitemoehybrid\", "
     "\"normalization_function\": \"rmsnorm\", \"num_attention_heads\": 12, "
     "\"num_experts_per_tok\": 6, \"num_hidden_layers\": 6, \"num_key_value_heads\": 4, "
     "\"num_local_experts\": 62, \"output_router_logits\": false, \"pad_token_id\": 100256, "
     "\"position_embedding_type\": \"nope\", \"residual_multiplier\": 0.22, \"rms_norm_eps\": "
     "1e-05, \"rope_scaling\": null, \"rope_theta\": 10000, \"router_aux_loss_coef\": 0.01, "
     "\"shared_intermediate_size\": 1024, \"tie_word_embeddings\": true, \"torch_dtype\": "
     "\"bfloat16\", \"transformers_version\": \"4.56.0\", \"use_cache\": true, \"vocab_size\": "
     "100352}"},
    {"falcon-h1",
     "{\"architectures\": [\"FalconH1ForCausalLM\"], \"attention_bias\": false, "
     "\"attention_dropout\": 0.0, \"attention_in_multiplier\": 1.0, "
     "\"attention_out_multiplier\": 0.9375, \"bos_token_id\": 1, \"embedding_multiplier\": "
     "5.656854249492381, \"eos_token_id\": 11, \"head_dim\": 64, \"hidden_act\": \"silu\", "
     "\"hidden_size\": 1024, \"initializer_range\": 0.02, \"intermediate_size\": 2048, "
     "\"key_multiplier\": 0.390625, \"lm_head_multiplier\": 0.0390625, \"mamba_chunk_size\": "
     "128, \"mamba_conv_bias\": true, \"mamba_d_conv\": 4, \"mamba_d_head\": 64, \"mamba_d_ssm\": "
     "1536, \"mamba_d_state\": 128, \"mamba_expand\": 2, \"mamba_n_groups\": 1, \"mamba_n_heads\":"
     " 24, \"mamba_norm_before_gate\": false, \"mamba_proj_bias\": false, \"mamba_rms_norm\": "
     "false, \"mamba_use_mlp\": true, \"max_position_embeddings\": 16384, \"mlp_bias\": false, "
     "\"mlp_expansion_factor\": 8, \"mlp_multipliers\": [0.88, 0.58], \"model_type\": "
     "\"falcon_h1\", \"num_attention_heads\": 8, \"num_hidden_layers\": 36, "
     "\"num_key_value_heads\": 2, \"num_logits_to_keep\": 1, \"pad_token_id\": 0, "
     "\"projectors_bias\": false, \"rms_norm_eps\": 1e-05, \"rope_scaling\": null, \"rope_theta\":"
     " 100000000000.0, \"ssm_in_multiplier\": 1.25, \"ssm_multipliers\": [0.35, 0.25, 0.17, "
     "0.5, 0.35], \"ssm_out_multiplier\": 0.23, \"tie_word_embeddings\": false, "
     "\"time_step_limit\": [0.0, Infinity], \"torch_dtype\":"
     " \"bfloat16\", \"transformers_version\": \"4.52\", \"use_cache\": true, \"vocab_size\": "
     "32784}"},
    {"deci",
     "{\"architectures\": [\"DeciLMForCausalLM\"], \"attention_bias\": false, "
     "\"attention_dropout\": 0.0, \"auto_map\": {\"a\": \"b\"}, \"block_configs\": "
     "[{\"attention\": "
     "{\"n_heads_in_group\": 8, \"no_op\": false, \"num_sink_tokens\": null, "
     "\"replace_with_linear\": false, \"sparsify\": null, \"unshifted_sink\": false, "
     "\"use_prefill_window_in_sink_attention\": false, \"window_length\": null}, \"ffn\": "
     "{\"ffn_mult\": 2.625, \"no_op\": false, \"replace_with_linear\": false, \"sparsify\": "
     "null}}, {\"attention\": {\"n_heads_in_group\": 8, \"no_op\": false, \"num_sink_tokens\": "
     "null, \"replace_with_linear\": false, \"sparsify\": null, \"unshifted_sink\": false, "
     "\"use_prefill_window_in_sink_attention\": false, \"window_length\": null}, \"ffn\": "
     "{\"ffn_mult\": 2.625, \"no_op\": false, \"replace_with_linear\": false, \"sparsify\": "
     "null}}], \"bos_token_id\": 128000, \"eos_token_id\": [128001], \"head_dim\": null, "
     "\"hidden_act\": \"silu\", \"hidden_size\": 8192, \"initializer_range\": 0.02, "
     "\"intermediate_size\": null, \"max_position_embeddings\": 131072, \"mlp_bias\": false, "
     "\"model_type\": \"nemotron-nas\", \"num_attention_heads\": 64, \"num_hidden_layers\": 2, "
     "\"num_key_value_heads\": null, \"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05, "
     "\"rope_scaling\": {\"factor\": 8.0, \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0, "
     "\"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}, \"rope_theta\": "
     "500000.0, \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\", "
     "\"transformers_version\": \"4.48.3\", \"use_cache\": true, \"vocab_size\": 128256}"},
    {"mamba2",
     "{\"architectures\": [\"Mamba2ForCausalLM\"], \"bos_token_id\": 0, \"chunk_size\": 256, "
     "\"conv_kernel\": 4, \"eos_token_id\": 0, \"expand\": 2, \"head_dim\": 64, \"hidden_act\": "
     "\"silu\", \"hidden_size\": 4096, \"initializer_range\": 0.1, \"intermediate_size\": 8192, "
     "\"layer_norm_epsilon\": 1e-05, \"model_type\": \"mamba2\", \"n_groups\": 8, "
     "\"norm_before_gate\": true, \"num_heads\": 128, \"num_hidden_layers\": 64, \"pad_token_id\":"
     " 0, \"rescale_prenorm_residual\": false, \"residual_in_fp32\": true, \"rms_norm\": true, "
     "\"state_size\": 128, \"tie_word_embeddings\": false, \"time_step_floor\": 0.0001, "
     "\"time_step_init_scheme\": \"random\", \"time_step_limit\": [0.0, Infinity], "
     "\"time_step_max\": "
     "0.1, \"time_step_min\": 0.001, \"time_step_rank\": 256, \"time_step_scale\": 1.0, "
     "\"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.44\", \"use_bias\": false, "
     "\"use_cache\": true, \"use_conv_bias\": true, \"vocab_size\": 32768}"},
};

TEST(every_value_is_read) {
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        llm_convert_params params = params_of(LLM_CONVERT_AUTO);
        params.vocab_only = true;
        REQUIRE(put_text("config.json", list[i].config));
        ggl_gguf *f = convert(&params);
        ggl_str name = {"", 0};
        if (CHECK_MSG(f, "%s: %s", list[i].family, err.msg))
            CHECK(ggl_gguf_get_string(f, "general.architecture", &name, &err) == 1 &&
                  name.n == strlen(list[i].family) && memcmp(name.s, list[i].family, name.n) == 0);
        ggl_gguf_close(f);
    }
}

/* Infinity, as Python's json writes it, means no limit; so does null, or no value. */
TEST(limits_of_time_steps) {
    static const struct {
        const char *limit;
        bool converts;
    } limits[] = {{"[0.0, Infinity]", true}, {"[0.0, null]", true},       {"null", true},
                  {"[0.0, 0.5]", false},     {"[1e-3, Infinity]", false}, {"[0.0, NaN]", false}};
    int n_families = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        static const char key[] = "\"time_step_limit\": [0.0, Infinity]";
        const char *at = strstr(list[i].config, key);
        n_families += at != NULL;
        for (size_t k = 0; at && k < sizeof limits / sizeof *limits; k++) {
            llm_convert_params params = params_of(LLM_CONVERT_AUTO);
            char text[4096];
            params.vocab_only = true;
            snprintf(text, sizeof text, "%.*s\"time_step_limit\": %s%s", (int)(at - list[i].config),
                     list[i].config, limits[k].limit, at + sizeof key - 1);
            REQUIRE(put_text("config.json", text));
            ggl_gguf *f = convert(&params);
            CHECK_MSG(!f == !limits[k].converts, "%s with %s: %s", list[i].family, limits[k].limit,
                      err.msg);
            if (!f)
                CHECK_HAS(err.msg, "steps that are limited");
            ggl_gguf_close(f);
        }
    }
    CHECK_INT(n_families, 2);
}
