"""Folders of classes whose GGUF files ran before their folders, as ./folders_late.py has them: rows in ./recorded.txt are transformers'."""
from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB
from folders_experts import N_EACH, N_EXPERT
from folders_late import FEED, SIZE, attention, put

NORMS = {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD}


def ends(c, w, last="model.norm"):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), last: N_EMBD} | ({} if c["tie_word_embeddings"] else {"lm_head": (N_VOCAB, N_EMBD)}))


def feed(p, n):
    return {p + "gate_proj": (n, N_EMBD), p + "up_proj": (n, N_EMBD), p + "down_proj": (N_EMBD, n)}


def each(p, n):
    return {name: shape for e in range(N_EXPERT) for name, shape in feed(f"{p}{e}.", n).items()}


def hunyuan_weights(c, w):
    ends(c, w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(12) | {"self_attn.query_layernorm": 12, "self_attn.key_layernorm": 12, "mlp.gate.wg": (N_EXPERT, N_EMBD)} | feed("mlp.shared_mlp.", N_FF)
            | each("mlp.experts.", N_FF))


def hy3_weights(c, w):
    ends(c, w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16} | (FEED if l < 1 else {
            "mlp.router.gate": (N_EXPERT, N_EMBD), "mlp.expert_bias!": N_EXPERT} | feed("mlp.shared_mlp.", N_EACH) | each("mlp.experts.", N_EACH)))


def bamba_weights(c, w):
    ends(c, w, "model.final_layernorm")
    n_in, n_h = 2 * N_EMBD, c["mamba_n_heads"]
    mixer = {"in_proj": (2 * n_in + 2 * 8 + n_h, N_EMBD), "conv1d": (n_in + 2 * 8, 1, 4), "conv1d.bias!": n_in + 2 * 8, "dt_bias!": n_h, "A_log!": n_h, "D!": n_h, "norm": n_in, "out_proj": (N_EMBD, n_in)}
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD, "pre_ff_layernorm": N_EMBD} | feed("feed_forward.", N_FF)
            | (attention(12) if l in c["attn_layer_indices"] else {"mamba." + name: shape for name, shape in mixer.items()}))


def exaone_weights(c, w):
    ends(c, w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16} | (FEED if l < 1 else {
            "mlp.gate": (N_EXPERT, N_EMBD), "mlp.e_score_correction_bias!": N_EXPERT} | feed("mlp.shared_experts.", N_EACH) | each("mlp.experts.", N_EACH)))


def laguna_weights(c, w):
    ends(c, w)
    for l, n_head in enumerate(c["num_attention_heads_per_layer"]):
        put(w, f"model.layers.{l}.", NORMS | attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16, "self_attn.q_proj": (n_head * 16, N_EMBD), "self_attn.o_proj": (N_EMBD, n_head * 16),
                                                            "self_attn.g_proj": (n_head * (1 if c["gating"] is True else 16), N_EMBD)} | (FEED if l < 1 else {
            "mlp.gate": (N_EXPERT, N_EMBD), "mlp.experts.e_score_correction_bias!": N_EXPERT} | feed("mlp.shared_expert.", 28) | each("mlp.experts.", N_EACH)))


def cohere_weights(c, w):
    ends(c, w)
    for l, kind in enumerate(c["mlp_layer_types"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD} | attention(16) | (feed("mlp.", 28) if kind == "dense" else {"mlp.gate": (N_EXPERT, N_EMBD)} | each("mlp.experts.", N_FF)
            | (feed("mlp.shared_experts.", c["num_shared_experts"] * N_FF) if c["num_shared_experts"] else {})))


def older(changes, *without):
    """Other values in the form of transformers 4."""
    return lambda config: config if "rope_parameters" in config else {**{key: value for key, value in config.items() if key not in without}, **changes}


SPARSE = {"num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH}
BASE = {**SIZE, "intermediate_size": N_FF, "num_hidden_layers": 3, "rms_norm_eps": EPS, "hidden_act": "silu", "theta": 500.0, "d": 12, "tie_word_embeddings": False}
LAGUNA = {**{key: value for key, value in BASE.items() if key not in ("theta", "d")}, **SPARSE, "model_type": "laguna", "head_dim": 16, "shared_expert_intermediate_size": 28,
          "moe_routed_scaling_factor": 1.5, "mlp_layer_types": ["dense", "sparse", "sparse"]}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 16.0, "beta_slow": 2.0}
COHERE = {**{key: value for key, value in BASE.items() if key != "rms_norm_eps"}, "model_type": "cohere2_moe", "num_hidden_layers": 4, "num_experts": N_EXPERT, "num_experts_per_tok": 2, "d": 16,
          "head_dim": 16, "logit_scale": 0.5, "sliding_window": 5, "expert_selection_fn": "sigmoid", "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
          "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "prefix_dense_intermediate_size": 28}

CLASSES = {
    "HunYuanMoEV1ForCausalLM": ({**BASE, "model_type": "hunyuan_v1_moe", "num_experts": N_EXPERT, "moe_topk": [2, 2, 2], "head_dim": 12, "moe_intermediate_size": [N_FF] * 3, "num_shared_expert": [1] * 3,
                                 "use_qk_norm": True, "norm_topk_prob": True, "use_mixed_mlp_moe": True, "write": older({"moe_topk": 2, "num_shared_expert": 1}, "moe_intermediate_size"), "routed_scaling_factor": 1.0}, hunyuan_weights, ["default", "dynamic-alpha"]),
    "HYV3ForCausalLM": ({**BASE, **SPARSE, "model_type": "hy_v3", "d": 16, "head_dim": 16, "num_shared_experts": 1, "router_scaling_factor": 1.5, "mlp_layer_types": ["dense", "sparse", "sparse"]},
                        hy3_weights, ["default", "yarn"]),
    "BambaForCausalLM": ({**BASE, "model_type": "bamba", "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": "auto", "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_d_conv": 4,
                          "mamba_expand": 2, "mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_proj_bias": False, "attn_rotary_emb": 6, "partial": 0.5, "num_logits_to_keep": 1},
                         bamba_weights, ["default"]),
    "ExaoneMoeForCausalLM": ({**BASE, **SPARSE, "model_type": "exaone_moe", "d": 16, "head_dim": 16, "num_shared_experts": 1, "routed_scaling_factor": 1.5, "norm_topk_prob": True, "n_group": 1,
                              "topk_group": 1, "sliding_window": 5, "num_hidden_layers": 4, "layer_types": ["sliding_attention"] * 3 + ["full_attention"], "first_k_dense_replace": 1,
                              "write": older({"sliding_window_pattern": "LLLG"}, "layer_types")}, exaone_weights,
                             ["default", "yarn", "llama3"]),
    "LagunaForCausalLM": ({**LAGUNA, "gating": True, "num_attention_heads_per_layer": [4, 6, 4], "sliding_window": 5, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
                           "rope_parameters": {"full_attention": {**YARN, "partial_rotary_factor": 0.5}, "sliding_attention": {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 1.0}}},
                          laguna_weights, [None]),
    "LagunaForCausalLM numbers": ({**LAGUNA, "gating": "per-element", "num_attention_heads_per_layer": [4, 4, 4], "layer_types": ["full_attention"] * 3, "rope_parameters": {"full_attention": YARN}},
                                  laguna_weights, [None]),
    "Cohere2MoeForCausalLM": ({**COHERE, "layer_norm_eps": EPS, "num_shared_experts": 2, "norm_topk_prob": True,
                               "write": older({"first_k_dense_replace": 1, "sliding_window_pattern": 3}, "layer_types", "mlp_layer_types")}, cohere_weights, ["default"]),
    "Cohere2MoeForCausalLM rms": ({**COHERE, "rms_norm_eps": EPS, "num_shared_experts": 0, "norm_topk_prob": False, "tie_word_embeddings": True}, cohere_weights, ["default"]),
}
