"""Values of published config.json files that change nothing of what a model computes: folders.py writes them into each class's file in the form of
transformers 4, and leaves them out in the other forms, which must give the same logits. And values that are refused."""

EVERY = {"attention_dropout": 0.0, "bos_token_id": 1, "cache_implementation": "hybrid", "eos_token_id": [1, 106], "initializer_range": 0.02, "model_type": "x",
         "output_router_logits": False, "pad_token_id": 0, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.01, "torch_dtype": "bfloat16",
         "transformers_version": "4.55.0.dev0", "use_cache": True}
FP8 = {"activation_scheme": "dynamic", "quant_method": "fp8", "weight_block_size": [16, 16]}
DENSE = {"attention_bias": False, "mlp_bias": False, "pretraining_tp": 1, "head_dim": None}
SEES = {"boi_token_index": 255999, "eoi_token_index": 256000, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0"}
VALUES = {
    "AfmoeForCausalLM": {}, "ApertusForCausalLM": {}, "DbrxForCausalLM": {}, "Dots1ForCausalLM": {}, "Ernie4_5_MoeForCausalLM": {}, "Gemma2ForCausalLM": {},
    "GPTJForCausalLM": {}, "MistralForCausalLM": {}, "Qwen2ForCausalLM": {}, "Qwen3ForCausalLM": {}, "StableLmForCausalLM": {},
    "LlamaForCausalLM": {"attention_bias": False, "mlp_bias": False, "pretraining_tp": 1},
    "GptOssForCausalLM": {}, "GptOssForCausalLM MXFP4": {"quantization_config": {"modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}},
    "DeepseekV3ForCausalLM": {"attention_bias": False, "auto_map": {"AutoConfig": "x"}, "ep_size": 1},
    "DeepseekV3ForCausalLM FP8": {"quantization_config": {**FP8, "fmt": "float8_e4m3fn", "modules_to_not_convert": ["gate", "lm_head"]}},
    "DeepseekV4ForCausalLM": {"expert_dtype": "fp4", "dspark_markov_rank": 256, "dspark_noise_token_id": 128799},
    "Gemma3ForConditionalGeneration": {**SEES, "vision_config": {"image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
                                                                 "patch_size": 14, "vision_use_head": False}},
    "Mistral3ForConditionalGeneration": {"multimodal_projector_bias": False, "projector_hidden_act": "gelu", "text_config": {"sliding_window": None},
                                         "vision_config": {"rope_theta": 10000.0}, "vision_feature_layer": -1},
    "Llama4ForConditionalGeneration": {"eoi_token_index": 200081, "image_token_index": 200092, "text_config": {
        **EVERY, "_attn_implementation_autoset": True, "attention_bias": False, "for_llm_compressor": False, "moe_layers": [0, 1, 2, 3]}},
    "Lfm2ForCausalLM": {"block_dim": 2048, "block_ff_dim": 60, "block_mlp_init_scale": 1.0, "block_norm_eps": 1e-05, "block_out_init_scale": 1.0,
                        "block_use_swiglu": True, "block_use_xavier_init": True, "conv_dim": 2048, "conv_dim_out": 2048, "conv_use_xavier_init": True,
                        "full_attn_idxs": [2, 5, 8, 10, 12, 14], "num_heads": 32, "use_pos_enc": True},
    "PhiMoEForCausalLM": {"auto_map": {"a": "b"}, "hidden_dropout": 0.0},
    "MiniMaxM2ForCausalLM": {"auto_map": {"x": "y"}, "layernorm_full_attention_beta": 1.0, "shared_intermediate_size": 0},
    "GraniteMoeHybridForCausalLM": {"attention_bias": False, "init_method": "mup"},
    "FalconH1ForCausalLM": {"attention_bias": False, "mlp_bias": False, "mlp_expansion_factor": 8, "num_logits_to_keep": 1, "time_step_limit": [0.0, float("inf")]},
    "DeciLMForCausalLM": {**DENSE, "auto_map": {"a": "b"}},
    "Mamba2ForCausalLM": {"norm_before_gate": True, "rescale_prenorm_residual": False, "residual_in_fp32": True, "time_step_floor": 0.0001,
                          "time_step_init_scheme": "random", "time_step_limit": [0.0, float("inf")], "time_step_max": 0.1, "time_step_min": 0.001,
                          "time_step_rank": 256, "time_step_scale": 1.0},
}
VALUES |= {
    "Gemma4ForCausalLM": {"attention_bias": False, "enable_moe_block": False, "num_experts": None, "top_k_experts": None, "num_global_key_value_heads": None},
    "Gemma4ForConditionalGeneration": {"dtype": "bfloat16", "vision_soft_tokens_per_image": 280, "image_token_id": 258880, "vision_config": {"default_output_length": 280}, "text_config": {
        **EVERY, "expert_intermediate_size": None, "use_bidirectional_attention": "vision"}},
    "Gemma3nForConditionalGeneration": {"audio_soft_tokens_per_image": 188, "text_config": {**EVERY, "altup_lr_multiplier": 1.0, "query_pre_attn_scalar": 256}},
    "Lfm2MoeForCausalLM": {"tie_word_embeddings": True},
    "NemotronHForCausalLM": {"attention_bias": False, "chunk_size": 128, "hidden_dropout": 0.0, "mamba_proj_bias": False, "mlp_bias": False, "num_logits_to_keep": 1, "rescale_prenorm_residual": True,
                             "residual_in_fp32": False, "rms_norm_eps": 1e-05, "sliding_window": None, "time_step_floor": 0.0001, "time_step_max": 0.1, "time_step_min": 0.001, "use_bias": False,
                             "use_conv_bias": True, "use_mamba_kernels": True},
    "JambaForCausalLM": {"calc_logits_for_entire_prompt": False, "mamba_inner_layernorms": True, "num_logits_to_keep": 1, "sliding_window": None},
    "Qwen3Model": {"attention_bias": False, "max_window_layers": 28, "use_sliding_window": False},
}
VALUES |= {name: {} for name in ("GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM", "MiniMaxText01ForCausalLM", "HrmTextForCausalLM", "Lfm3ForCausalLM", "Spark2_5ForCausalLM", "MapleForCausalLM",
                                 "EmbeddingGemma2TextModel")}
VALUES["GraniteSwitchForCausalLM"] = {"mamba_d_conv": 4, "mamba_expand": 2, "time_step_limit": [0.0, float("inf")], "normalization_function": "rmsnorm", "attention_bias": False}
LIMITED = [({"time_step_limit": limit}, "steps that are limited") for limit in ([0.0, 0.5], [1e-3, float("inf")], [0.0, float("nan")])]
HEADS = {str(l): {"head_dim": 24, "num_key_value_heads": 1} for l in (1, 3, 4)}
TURNED = {"sliding_attention": {"rope_theta": 50.0, "rope_type": "default"}}
REFUSED = {"Gemma4ForCausalLM": [({"rope_parameters": {**TURNED, "full_attention": {"rope_theta": 900.0, "rope_type": "default", "partial_rotary_factor": 0.5}}},
                                  'config.json: rope_type = "default", partial_rotary_factor = 0.5'),
                                 ({"rope_parameters": {**TURNED, "full_attention": {"rope_theta": 900.0, "rope_type": "default", "partial_rotary_factor": 0.5}}}, "rope_type is not proportional")],
           "Gemma4ForCausalLM layers": [({"use_bidirectional_attention": "all"}, "attention to later tokens"), ({"per_layer_config": {**HEADS, "1": {"head_dim": 20}}}, "heads of other sizes"),
                                        ({"per_layer_config": {**HEADS, "1": {**HEADS["1"], "sliding_window": 7}}}, "per_layer_config.1.sliding_window")],
           "Step3p5ForCausalLM": [({"partial_rotary_factors": [1.0] * 4}, "half of it"), ({"partial_rotary_factors": None, "rope_theta": 900.0, "rope_scaling": None}, "half of it")],
           "Glm4MoeLiteForCausalLM": [({"rope_interleave": False}, "rotates neighbours")],
           "NemotronHForCausalLM": [({"hybrid_override_pattern": "M-*"}, "there is no letter 3"), ({"time_step_limit": [0.0, 0.5]}, "steps that are limited")],
           "Gemma3nForCausalLM": [({"activation_sparsity_pattern": [0.9] * 6}, "parts of the gates")],
           "GraniteSWAForCausalLM bases": [({"layer_rope_theta": [0, 500.0, 400.0]}, "different bases"), ({"no_rope_layers": [0, 1, 1]}, "both layer_rope_theta")],
           "HrmTextForCausalLM": [({"num_hidden_layers": 4}, "neither that of a stack")],
           "Lfm3ForCausalLM": [({"conv_bias": True}, "biases"), ({"layer_types": ["conv"] * 3 + ["linear_attention"]}, "layers of a kind")],
           "EmbeddingGemma2TextModel": [({"per_layer_config": {"2": {"head_dim": 24, "num_key_value_heads": 1}, "1": {"head_dim": 24}}}, "heads of other sizes")],
           "MuseSparkForConditionalGeneration": [({"text_config": {"hidden_act": "gelu"}}, "an activation")],
           "GraniteSwitchForCausalLM": [({"num_local_experts": 4}, "experts beside adapters"), ({"layer_types": ["attention", "mamba", "attention"]}, "layers that are not attention")],
           "MiniMaxForCausalLM": [({"mlp_alpha_factor": 1}, "another factor after the experts"), ({"linear_attn_beta_factor": 2}, "multiplied before they are added")],
           "MiniMaxText01ForCausalLM": [({"postnorm": False}, "the row before its norm"), ({"layernorm_linear_attention_alpha": 1.0}, "another factor after lightning attention")],
           "Spark2_5ForCausalLM": [({"gate_attn_act_mode": "tanh"}, "without a sigmoid"), ({"layer_types": ["full_attention"] * 2 + ["other"]}, "layers of a kind")],
           "Kolibri1ForCausalLM": [({"sliding_window": None}, "layers with a window"), ({"layer_types": ["full_attention"] * 2 + ["other"]}, "layers of a kind")],
           "FlintForCausalLM": [({"mlp_only_layers": [1]}, "other layers without experts"), ({"decoder_sparse_step": 2}, "decoder_sparse_step"), ({"attention_bias": True}, "biases")],
           "BeamForCausalLM": [({"mlp_layer_types": ["sparse", "dense", "sparse"]}, "mlp_layer_types"), ({"rope_parameters": {"sliding_attention": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 500.0}, "full_attention": None}}, "unknown rope_type"),
                               ({"rope_parameters": {kind: {"rope_type": "default", "rope_theta": 500.0} for kind in ("sliding_attention", "full_attention")}}, "positions in layers without a window")],
           "Qwen4ExpForCausalLM": [({"output_gate_type": None}, "a state whose gate is no sigmoid"), ({"ple_layer_ids": [1, 2]}, "at more than one layer"), ({"indexer_kv_heads": 2}, "more than one head"),
                                   ({"layer_types": ["linear_attention"] * 3 + ["sliding_attention"]}, "layers of a kind")],
           "MapleForCausalLM": [({"nope_on_global_attention": False}, "positions in layers that see everything"), ({"num_shared_experts": 1}, "shared experts")],
           "HunYuanMoEV1ForCausalLM": [({"moe_topk": [2, 1, 2]}, "different numbers of experts"), ({"use_mla": True}, "latent attention"), ({"norm_topk_prob": False}, "other shares")],
           "HYV3ForCausalLM": [({"mlp_layer_types": ["dense", "sparse", "dense"]}, "dense layers after"), ({"route_norm": False}, "other shares"), ({"hidden_act": "gelu"}, "an activation")],
           "BambaForCausalLM": [({"mamba_n_groups": 2}, "several groups"), ({"mamba_proj_bias": True}, "biases of the state spaces")],
           "Glm4vForConditionalGeneration": [({"other_value": 3}, "other_value")],
           "PaddleOCRVLForConditionalGeneration": [({"rope_is_neox_style": False}, "another rotation"), ({"use_bias": True}, "or biases")],
           "ExaoneMoeForCausalLM": [({"sliding_window": None}, "without sliding_window"), ({"mlp_layer_types": ["dense", "sparse", "dense", "sparse"]}, "dense layers after")],
           "LagunaForCausalLM": [({"gating": "per-element"}, "a gate of another size"), ({"moe_router_logit_softcapping": 5.0}, "capped scores"), ({"layer_types": ["full_attention"] * 3}, "without windows"),
                                 ({"layer_types": ["conv"] * 3}, "layers of a kind")],
           "Cohere2MoeForCausalLM": [({"expert_selection_fn": "softmax"}, "not chosen by a sigmoid"), ({"shared_expert_combination_strategy": "sum"}, "a sum of shared"),
                                     ({"prefix_dense_sliding_window_pattern": 2}, "some have a window")],
           "Xing4_0ForCausalLM": [({"mhc_h_res_clamp_max": 20}, "other bounds"), ({"topk_method": "greedy"}, "another choice of experts")],
           "K2HorizonForCausalLM": [({"rope_head_dim": 8}, "a part of each head"), ({"mlp_only_layers": [0, 2]}, "other layers without experts"), ({"attention_gate_func": "silu"}, "another gate"),
                                    ({"decoder_sparse_step": 2}, "layers without experts among"), ({"mova_num_experts_per_tok": 1}, "do not add up to 1"), ({"sliding_window": 9, "use_sliding_window": True}, "windows are not")],
           "BailingMoeForCausalLM": [({"norm_head": True}, "norm_head"), ({"use_sliding_window": True}, "windows are not")],
           "SmallThinkerForCausalLM": [({"rope_layout": [1, 1, 1, 1, 1]}, "rope_layout"), ({"sliding_window_layout": [1, 0, 1, 1, 0]}, "sliding_window_layout"), ({"norm_topk_prob": False}, "do not add up")],
           "MellumForCausalLM": [({"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 900.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 10.0}}}, "another rotary base"),
                                 ({"mlp_layer_types": ["dense", "sparse", "sparse"]}, "layers without experts")],
           "NanbeigeForCausalLM": [({"loop_loss_weights": [1.0]}, "loop_loss_weights"), ({"qk_layernorm": True}, "qk_layernorm")],
           "OpenELMForCausalLM": [({"share_input_output_layers": False}, "not the embedding"), ({"normalize_qk_projections": False}, "other norms")],
           "JAISLMHeadModel": [({"position_embedding_type": "learned"}, "other positions"), ({"mup_scale_qk_dot_by_d": False}, "root of the head")],
           "MambaLMHeadModel": [({"ssm_cfg": {"layer": "Mamba2"}}, "Mamba 2")], "PLMForCausalLM": [({"tie_word_embeddings": False}, "not the embedding")],
           "CodeShellForCausalLM": [({"group_query_attention": False}, "key heads for all"), ({"rope_scaling": {"type": "linear", "factor": 2}}, "other positions")],
           "Grok1ForCausalLM": [({"rope_type": "llama3"}, "unknown rope_type"), ({"hidden_act": "silu"}, "an activation")], "RwkvHybridForCausalLM": [({"wkv_version": 6}, "another RWKV")],
           "BitnetForCausalLM": [({"weight_bits": 2}, "more than three values"), ({"hidden_act": "relu2"}, "an activation")],
           "LimiteForCausalLM": [({"rope_per_layer": True}, "another rotation"), ({"mudd_mlp": False}, "for attention alone"), ({"ve_dim": 10}, "as long as a head")],
           "KimiLinearForCausalLM": [({"q_lora_rank": 8}, "queries of a low rank"), ({"num_expert_group": 2}, "experts in groups"), ({"layer_types": ["linear_attention"] * 3}, "than the other list says"),
                                     ({"moe_renormalize": False}, "not normalised")],
           "FalconH1ForCausalLM": LIMITED, "Mamba2ForCausalLM": LIMITED}


def with_values(class_name, config):
    """config.json's object with the values that its class has besides."""
    def join(a, b):
        return {**a, **{k: join(a[k], v) if isinstance(v, dict) and isinstance(a.get(k), dict) else v for k, v in b.items()}}

    return join({**EVERY, **config}, VALUES[class_name]) if class_name in VALUES else config
