"""Folders of classes whose GGUF files ran before their folders, as ./folders_late.py has them: rows in ./recorded.txt are transformers'."""
import numpy as np

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


def youtu_weights(c, w):
    ends(c, w)
    d, rot, r, dv, r_q = (c[key] for key in ("qk_nope_head_dim", "qk_rope_head_dim", "kv_lora_rank", "v_head_dim", "q_lora_rank"))
    low = {"q_a_proj": (r_q, N_EMBD), "q_a_layernorm": r_q, "q_b_proj": (N_HEAD * (d + rot), r_q)} if r_q else {"q_proj": (N_HEAD * (d + rot), N_EMBD)}
    low |= {"kv_a_proj_with_mqa": (r + rot, N_EMBD), "kv_a_layernorm": r, "kv_b_proj": (N_HEAD * (d + dv), r), "o_proj": (N_EMBD, N_HEAD * dv)}
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | FEED | {"self_attn." + name: shape for name, shape in low.items()})


def older(changes, *without):
    """Other values in the form of transformers 4."""
    return lambda config: config if "rope_parameters" in config else {**{key: value for key, value in config.items() if key not in without}, **changes}


def guessing(of, p, names, prefix, **more):
    """The class with a layer that guesses, whose tensors begin with prefix: the last layer's once more, and those at the names, joined to p."""
    config, weights, *_ = of

    def layout(w):
        last = f"model.layers.{config['num_hidden_layers'] - 1}."
        shapes = dict(zip(names, ((N_EMBD, 2 * N_EMBD), N_EMBD, N_EMBD, N_EMBD)))
        return {**w, **{prefix + name.removeprefix(last): t for name, t in w.items() if name.startswith(last)},
                **{f"{p}{name}.weight": np.full(shape, 0.01 if isinstance(shape, tuple) else 1.0) for name, shape in shapes.items()}}

    return {**config, "num_nextn_predict_layers": 1, "how": {"layout": layout, "guesses": prefix.split(".")[0] if p == "mtp." else p, "keys": more}}, weights, ["default"]


def kimi_weights(c, w):
    ends(c, w)
    n, d, rot, r, dv = N_HEAD, c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["kv_lora_rank"], c["v_head_dim"]
    s = c["linear_attn_config"]["head_dim"]
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, NORMS | (FEED if l < 1 else {"block_sparse_moe.gate": (N_EXPERT, N_EMBD), "block_sparse_moe.gate.e_score_correction_bias!": N_EXPERT} | feed("block_sparse_moe.shared_experts.", N_EACH) | {
            f"block_sparse_moe.experts.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in (("w1", (N_EACH, N_EMBD)), ("w3", (N_EACH, N_EMBD)), ("w2", (N_EMBD, N_EACH)))}))
        put(w, p + "self_attn.", {"q_proj": (n * (d + rot), N_EMBD), "kv_a_proj_with_mqa": (r + rot, N_EMBD), "kv_a_layernorm": r, "kv_b_proj": (n * (d + dv), r), "o_proj": (N_EMBD, n * dv)}
            if l + 1 in c["linear_attn_config"]["full_attn_layers"] else {
                **{f"{name}_proj": (n * s, N_EMBD) for name in "qkv"}, **{f"{name}_conv1d": (n * s, 1, 4) for name in "qkv"}, "f_a_proj": (s, N_EMBD), "f_b_proj": (n * s, s), "dt_bias!": n * s,
                "A_log!": (1, 1, n, 1), "b_proj": (n, N_EMBD), "g_a_proj": (s, N_EMBD), "g_b_proj": (n * s, s), "o_norm": s, "o_proj": (N_EMBD, n * s)})


SPARSE = {"num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH}
BASE = {**SIZE, "intermediate_size": N_FF, "num_hidden_layers": 3, "rms_norm_eps": EPS, "hidden_act": "silu", "theta": 500.0, "d": 12, "tie_word_embeddings": False}
AUTHORS = {"num_experts": "num_local_experts", "num_experts_per_token": "num_experts_per_tok", "num_shared_experts": "n_shared_experts", "moe_renormalize": "norm_topk_prob", "num_expert_group": "n_group"}


def as_transformers(config):
    """The names that transformers writes."""
    attention = config["linear_attn_config"]
    return {**{AUTHORS.get(key, key): value for key, value in config.items() if key not in ("linear_attn_config", "first_k_dense_replace")}, "linear_head_dim": attention["head_dim"],
            "linear_num_heads": attention["num_heads"], "linear_conv_kernel_dim": attention["short_conv_kernel_size"],
            "layer_types": ["linear_attention", "full_attention", "linear_attention"], "mlp_layer_types": ["dense", "sparse", "sparse"]}


KIMI = {**{key: value for key, value in BASE.items() if key not in ("theta", "d")}, "model_type": "kimi_linear", "rms_norm_eps": 1e-6, "num_key_value_heads": N_HEAD, "pad_token_id": 0,
        "kv_lora_rank": 10, "qk_nope_head_dim": 12, "qk_rope_head_dim": 6, "v_head_dim": 14, "num_experts": N_EXPERT, "num_experts_per_token": 2, "num_shared_experts": 1,
        "moe_intermediate_size": N_EACH, "moe_renormalize": True, "routed_scaling_factor": 1.5, "first_k_dense_replace": 1, "num_expert_group": 1, "topk_group": 1,
        "linear_attn_config": {"full_attn_layers": [2], "kda_layers": [1, 3], "head_dim": 8, "num_heads": N_HEAD, "short_conv_kernel_size": 4}}
LAGUNA = {**{key: value for key, value in BASE.items() if key not in ("theta", "d")}, **SPARSE, "model_type": "laguna", "head_dim": 16, "shared_expert_intermediate_size": 28,
          "moe_routed_scaling_factor": 1.5, "mlp_layer_types": ["dense", "sparse", "sparse"]}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 16.0, "beta_slow": 2.0}
COHERE = {**{key: value for key, value in BASE.items() if key != "rms_norm_eps"}, "model_type": "cohere2_moe", "num_hidden_layers": 4, "num_experts": N_EXPERT, "num_experts_per_tok": 2, "d": 16,
          "head_dim": 16, "logit_scale": 0.5, "sliding_window": 5, "expert_selection_fn": "sigmoid", "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
          "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "prefix_dense_intermediate_size": 28}
YOUTU = {**BASE, "model_type": "youtu", "rms_norm_eps": 1e-6, "num_key_value_heads": N_HEAD, "kv_lora_rank": 20, "q_lora_rank": 18, "qk_nope_head_dim": 10, "qk_rope_head_dim": 8, "v_head_dim": 14, "d": 8, "theta": 1.6e6, "tie_word_embeddings": True,
         "embedding_initializer_range": 0.05}

CLASSES = {
    "HunYuanMoEV1ForCausalLM": ({**BASE, "model_type": "hunyuan_v1_moe", "num_experts": N_EXPERT, "moe_topk": [2, 2, 2], "head_dim": 12, "moe_intermediate_size": [N_FF] * 3, "num_shared_expert": [1] * 3,
                                 "use_qk_norm": True, "norm_topk_prob": True, "use_mixed_mlp_moe": True, "write": older({"moe_topk": 2, "num_shared_expert": 1}, "moe_intermediate_size"), "routed_scaling_factor": 1.0}, hunyuan_weights, ["default", "dynamic-alpha"]),
    "HYV3ForCausalLM": ({**BASE, **SPARSE, "model_type": "hy_v3", "d": 16, "head_dim": 16, "num_shared_experts": 1, "router_scaling_factor": 1.5, "mlp_layer_types": ["dense", "sparse", "sparse"]},
                        hy3_weights, ["default", "yarn"]),
    "YoutuForCausalLM": (YOUTU, youtu_weights, ["default"]),
    "YoutuForCausalLM whole": ({**YOUTU, "q_lora_rank": None, "tie_word_embeddings": False}, youtu_weights, ["default"]),
    "YoutuVLForConditionalGeneration": ({**YOUTU, "model_type": "youtu_vl", "how": {"class": "YoutuForCausalLM", "renamed": True}, "vision_config": {"hidden_size": 8},
                                         "layout": lambda w: {**w, "siglip2.vision_model.post_layernorm.weight": w["model.norm.weight"], "merger.ln_q.weight": w["model.norm.weight"]}}, youtu_weights, ["default"]),
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
    "KimiLinearForCausalLM": (KIMI, kimi_weights, [None]),
    "KimiLinearForCausalLM 5": ({**KIMI, "write": as_transformers}, kimi_weights, [None]),
    "Cohere2MoeForCausalLM": ({**COHERE, "layer_norm_eps": EPS, "num_shared_experts": 2, "norm_topk_prob": True,
                               "write": older({"first_k_dense_replace": 1, "sliding_window_pattern": 3}, "layer_types", "mlp_layer_types")}, cohere_weights, ["default"]),
    "Cohere2MoeForCausalLM rms": ({**COHERE, "rms_norm_eps": EPS, "num_shared_experts": 0, "norm_topk_prob": False, "tie_word_embeddings": True}, cohere_weights, ["default"]),
}
HEADS = ("eh_proj", "enorm", "hnorm")
CLASSES |= {
    "HYV3ForCausalLM guesses": guessing(CLASSES["HYV3ForCausalLM"], "model.layers.3.", (*HEADS, "final_layernorm"), "model.layers.3.", **{"hy_v3.nextn_predict_layers": 1}),
    "ExaoneMoeForCausalLM guesses": guessing(CLASSES["ExaoneMoeForCausalLM"], "mtp.", ("fc", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"), "mtp.layers.0.", **{"exaone-moe.nextn_predict_layers": 1}),
    "Cohere2MoeForCausalLM guesses": guessing(CLASSES["Cohere2MoeForCausalLM rms"], "model.layers.4.", (*HEADS, "shared_head.norm"), "model.layers.4.", **{"cohere2moe.nextn_predict_layers": 1}),
}
