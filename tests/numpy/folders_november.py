"""Folders of classes that came with transformers 5.24, as ./folders_late.py has them: rows in ./recorded.txt are transformers' own."""
import sys

import numpy as np

import nano
from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB, TOKENS
from folders_experts import N_EACH, N_EXPERT
from folders_indexed import beside_eye, inner
from folders_late import FEED, SIZE, attention, put

N_ALL = 20  # the width of the expert that all tokens pass
KINDS = ["sliding_attention", "full_attention", "sliding_attention"]
OWN = {**SIZE, "num_hidden_layers": 3, "head_dim": 16, "rms_norm_eps": EPS, "hidden_act": "silu", "sliding_window": 5, "layer_types": KINDS, "num_experts": N_EXPERT, "num_experts_per_tok": 2,
       "moe_intermediate_size": N_EACH, "tie_word_embeddings": False, "d": 16, "theta": 500.0}
EACH = {"gate_proj": (N_EACH, N_EMBD), "up_proj": (N_EACH, N_EMBD), "down_proj": (N_EMBD, N_EACH)}
ALL = {"gate_proj": (N_ALL, N_EMBD), "up_proj": (N_ALL, N_EMBD), "down_proj": (N_EMBD, N_ALL)}


def under(p, shapes):
    return {p + name: shape for name, shape in shapes.items()}


def experts(shared=""):
    """A router, its experts, and one that all tokens pass."""
    return {"mlp.gate": (N_EXPERT, N_EMBD)} | (under(f"mlp.{shared}.", ALL) if shared else {}) | {name: shape for e in range(N_EXPERT) for name, shape in under(f"mlp.experts.{e}.", EACH).items()}


def frame(w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})


QK = attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16}


def kolibri_weights(c, w):
    frame(w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", dict.fromkeys(("input_layernorm", "post_attn_norm", "post_attention_layernorm", "post_ffn_norm"), N_EMBD) | QK
            | experts("shared_experts") | {"moe.router.expert_bias!": N_EXPERT})


def renamed(**names):
    """The names of transformers' code in place of those of published folders."""
    def layout(w):
        for old, new in names.items():
            w = {name.replace(old, new): t for name, t in w.items()}
        return w
    return layout


def flint_weights(c, w):
    frame(w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attn.softmax_offset!": N_HEAD} | QK | (FEED if l == 0 else experts("shared_expert")))


def beam_weights(c, w):
    frame(w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", dict.fromkeys(("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"), N_EMBD) | QK
            | {"self_attn.gate_proj": (N_HEAD * 16, N_EMBD), "self_attn.gate_bias!": N_HEAD}
            | (FEED if l == 0 else experts() | {"mlp.gate.e_score_correction_bias!": N_EXPERT}))


# --- Mistral Large 4: the names of its own files, which transformers writes, too

N_INDEX, R, ROT, D, DV = 6, 20, 8, 10, 14


def mistral_weights(c, w):
    put(w, "", {"tok_embeddings": (N_VOCAB, N_EMBD), "norm": N_EMBD, "output": (N_VOCAB, N_EMBD)})
    w.vector("lerope.alpha", ROT // 2, 0.0)
    for l in range(c["num_hidden_layers"]):
        p, turns = f"layers.{l}.", c["no_rope_layers"][l]
        own = {"attention.wkv_a_with_mqa": (R + ROT * turns, N_EMBD), "attention.kv_a_norm": R} if c["kv_source_layers"][l] == l else {}
        put(w, p, {"attention_norm": N_EMBD, "ffn_norm": N_EMBD, "attention.wq": (N_HEAD * (D + ROT), N_EMBD), "attention.ssmax_scaling.s!": N_HEAD, "attention.ssmax_scaling.b!": N_HEAD,
                   "attention.wkv_b": (N_HEAD * (D + ROT * (1 - turns) + DV), R), "attention.wo": (N_EMBD, N_HEAD * DV)} | own)
        if c["indexer_types"][l] == "full":
            put(w, p + "attention.indexer.", {"q_input_norm": N_EMBD, "q_input_norm.bias!": N_EMBD, "wq_b": (N_INDEX * 12, N_EMBD), "ssmax_scaling.s!": N_INDEX, "ssmax_scaling.b!": N_INDEX,
                                              "wk": (12, N_EMBD), "k_norm": 12, "k_norm.bias!": 12, "weights_proj": (N_INDEX, N_EMBD)})
        if l == 0:
            put(w, p + "feed_forward.", {"w1": (N_FF, N_EMBD), "w3": (N_FF, N_EMBD), "w2": (N_EMBD, N_FF)})
        else:
            put(w, p, {"gate": (N_EXPERT, N_EMBD)} | {f"{of}.{part}": shape for of in ("shared_experts", *(f"experts.{e}" for e in range(N_EXPERT)))
                                                    for part, shape in (("w1", (N_EACH, N_EMBD)), ("w3", (N_EACH, N_EMBD)), ("w2", (N_EMBD, N_EACH)))})


def beside_pixtral(config):
    return {"model_type": "mistral_large4", "tie_word_embeddings": False, "text_config": config, "spatial_merge_size": 2, "vision_feature_layer": -1, "vision_config": {
        "model_type": "pixtral", "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "patch_size": 14, "image_size": 28}}


MISTRAL = {**SIZE, "num_key_value_heads": N_HEAD, "model_type": "mistral_large4_text", "intermediate_size": N_FF, "moe_intermediate_size": N_EACH, "num_hidden_layers": 4, "n_routed_experts": N_EXPERT,
           "num_experts_per_tok": 2, "n_shared_experts": 1, "routed_scaling_factor": 1.5, "n_group": 2, "topk_group": 1, "kv_lora_rank": R, "qk_rope_head_dim": ROT, "qk_nope_head_dim": D, "v_head_dim": DV,
           "rms_norm_eps": EPS, "index_topk": 5, "index_head_dim": 12, "index_n_heads": N_INDEX, "first_k_dense_replace": 1, "indexer_types": ["full", "shared", "full", "shared"],
           "no_rope_layers": [1, 0, 1, 0], "kv_source_layers": [0, 1, 0, 3], "final_logit_softcapping": 3.0, "hidden_act": "silu", "tie_word_embeddings": False, "d": ROT, "theta": 900.0,
           "layer_types": ["indexed_attention"] * 4}

# --- Qwen 4 Exp

N_HC, N_LOW, PRIMES, SHARDS = 3, 9, [31, 37, 41, 43], [54, 54, 52]


def qwen4_weights(c, w):
    wide, d, n_index = N_HC * N_EMBD, c["head_dim"], c["indexer_n_heads"]
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "lm_head": (N_VOCAB, N_EMBD)})
    mix = {"hc_norm": wide, "input_mix_weight_down": (N_LOW, wide), "input_mix_weight_up": (wide, N_LOW)}
    put(w, "model.hyper_connection_mixer.", mix)
    for l, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{l}."
        for part in ("attn", "mlp"):
            put(w, f"{p}{part}_hyper_connection.", mix | {"block_inject_weight": (N_HC, wide)})
        if kind == "linear_attention":
            n = 2 * 2 * 8 + 4 * 8
            put(w, p + "linear_attn.", {"in_proj_qkv": (n, N_EMBD), "in_proj_z": (32, N_EMBD), "in_proj_a": (4, N_EMBD), "in_proj_b": (4, N_EMBD), "conv1d": (n, 1, 4), "A_log!": 4, "dt_bias!": 4,
                                        "norm": 8, "out_proj": (N_EMBD, 32)})
        else:
            put(w, p + "self_attn.", {"q_proj": (2 * N_HEAD * d, N_EMBD), "k_proj": (2 * d, N_EMBD), "v_proj": (2 * d, N_EMBD), "o_proj": (N_EMBD, N_HEAD * d), "q_norm": d, "k_norm": d,
                                      "indexer.index_qk_proj": ((n_index + 1) * 16, N_EMBD), "indexer.q_layernorm": 16, "indexer.k_layernorm": 16})
        put(w, p, experts("shared_expert") | {"mlp.shared_expert_gate": (1, N_EMBD)})
        if l + 1 in c["ple_layer_ids"]:
            put(w, p + "ple.", {"key_proj": (wide, N_EMBD), "value_proj": (N_EMBD, N_EMBD), "norm_key": wide, "norm_query": wide, "norm_conv": wide, "conv1d": (wide, 1, 4)}
                | {f"ple_embedding.ngram_embedding.shard_{i}": (n, N_EMBD // 4) for i, n in enumerate(SHARDS)})
            for name, numbers in (("layer_multipliers", [24414062500001, 7654321012345, 35184372088831]), ("ngram_heads_offsets", [sum(PRIMES[:i]) for i in range(4)]),
                                  ("ngram_heads_vocab_sizes", PRIMES)):
                w[f"{p}ple.ple_embedding.{name}"] = np.array(numbers, np.int64)


QWEN = {"number_of_conv_states": 1, **SIZE, "model_type": "qwen4_exp_text", "num_hidden_layers": 4, "head_dim": 16, "rms_norm_eps": 1e-6, "hidden_act": "silu", "output_gate_type": "sigmoid", "attention_bias": False,
        "layer_types": ["linear_attention", "linear_attention", "full_attention", "full_attention"], "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "shared_expert_intermediate_size": N_ALL,
        "norm_topk_prob": True, "hc_count": N_HC, "hc_lowrank": N_LOW, "ple_layer_ids": [2], "ple_embed_dim": N_EMBD, "ple_conv_kernel_size": 4, "ngram_size": 3, "heads_per_ngram": 2,
        "ngram_vocab_size_base": 31, "make_ngram_vocab_size_divisible_by": 16, "seed": 1234, "split_ngram_parts": len(SHARDS), "indexer_n_heads": 5, "indexer_kv_heads": 1, "indexer_head_dim": 16,
        "indexer_budget": 6, "indexer_compress_ratio": 3, "eos_token_id": 7, "tie_word_embeddings": False, "d": 16, "theta": 900.0, "partial": 0.5}

KOLIBRI = {**OWN, "model_type": "kolibri1", "shared_expert_intermediate_size": N_ALL, "norm_topk_prob": False}
SAVED = renamed(post_attn_norm="post_self_attn_layernorm", post_ffn_norm="post_mlp_layernorm", **{"moe.router.expert_bias": "mlp.gate.e_score_correction_bias"})
M3_NAMES = {"block_sparse_moe.e_score": "mlp.gate.e_score", "block_sparse_moe": "mlp", "self_attn.index_": "self_attn.indexer."}
M3 = {**SIZE, "num_hidden_layers": 3, "head_dim": 16, "rms_norm_eps": EPS, "hidden_act": "swigluoai", "swiglu_limit": 7.0, "swiglu_alpha": 1.702, "intermediate_size": N_EACH, "dense_intermediate_size": N_FF,
      "shared_intermediate_size": N_EACH, "n_shared_experts": 1, "num_local_experts": N_EXPERT, "num_experts_per_tok": 2, "routed_scaling_factor": 2.0, "scoring_func": "sigmoid", "use_qk_norm": True,
      "use_gemma_norm": True, "rotary_dim": 8, "moe_layer_freq": [0, 1, 1], "tie_word_embeddings": False, "d": 16, "theta": 700.0, "partial": 0.5,
      "sparse_attention_config": {"sparse_num_index_heads": N_KV, "sparse_index_dim": 12, "sparse_topk_blocks": 2, "sparse_block_size": 3, "sparse_local_block": 1, "sparse_attention_freq": [0, 1, 1]}}


def minimax_weights(c, w):
    """As published: whole matrices, and norms without their 1."""
    frame(w)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | QK)
        if l == 0:
            put(w, p, FEED)
            continue
        put(w, p + "self_attn.index_", {"q_proj": (N_KV * 12, N_EMBD), "k_proj": (12, N_EMBD), "q_norm": 12, "k_norm": 12})
        put(w, p + "block_sparse_moe.", {"gate": (N_EXPERT, N_EMBD), "e_score_correction_bias!": N_EXPERT} | under("shared_experts.", EACH))
        for e in range(N_EXPERT):
            put(w, f"{p}block_sparse_moe.experts.{e}.", {"w1": (N_EACH, N_EMBD), "w3": (N_EACH, N_EMBD), "w2": (N_EMBD, N_EACH)})


def beside_m3_eye(config):
    out = beside_eye("minimax_m3_vl")(config)
    out["vision_config"] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28}
    return out


def outer(w):
    return {"language_model." + name: t for name, t in w.items()}


def as_saved(w):
    """As transformers saves its text part: matrices that are computed together are one."""
    out = {}
    for name, t in w.items():
        for old, new in M3_NAMES.items():
            name = name.replace(old, new)
        out[name] = t
    for l in range(3):
        p = f"model.layers.{l}.mlp."
        if p + "gate.weight" in out:
            pairs = [[out.pop(f"{p}experts.{e}.{part}.weight") for part in ("w1", "w3")] for e in range(N_EXPERT)]
            out[p + "experts.gate_up_proj"] = np.stack([np.concatenate(pair) for pair in pairs])
            out[p + "experts.down_proj"] = np.stack([out.pop(f"{p}experts.{e}.w2.weight") for e in range(N_EXPERT)])
            p += "shared_experts."
        out[p + "gate_up_proj.weight"] = np.concatenate([out.pop(f"{p}{part}_proj.weight") for part in ("gate", "up")])
    return out


# --- K2 Horizon: as ./twins/k2-horizon.py computes it

K2 = {**SIZE, "model_type": "k2_horizon", "num_hidden_layers": 3, "head_dim": 10, "intermediate_size": N_FF, "rms_norm_eps": EPS, "hidden_act": "silu", "layernorm_num_groups": 4, "attention_bias": False,
      "decoder_sparse_step": 1, "query_key_norm": False, "rope_head_dim": 10, "router_score_func": "sigmoid", "router_scaling_factor": 2.5, "norm_topk_prob": True, "moe_gate_bias": True,
      "moe_intermediate_size": N_EACH, "mlp_only_layers": [0], "num_experts": N_EXPERT, "num_experts_per_tok": 2, "num_shared_experts": 1, "mova_num_experts": 5, "mova_num_experts_per_tok": 2,
      "attention_gate_func": "softplus", "sliding_window": None, "use_sliding_window": False, "tie_word_embeddings": False, "d": 10, "theta": 900.0}
DENSE = {**K2, "num_experts": 0, "mova_num_experts": 0, "mova_num_experts_per_tok": 0, "num_experts_per_tok": 0, "num_shared_experts": 0, "moe_intermediate_size": 0, "attention_gate_func": None,
         "query_key_norm": True, "mlp_only_layers": []}


def k2_weights(c, w):
    frame(w)
    for l in range(c["num_hidden_layers"]):
        p, mixed = f"model.layers.{l}.", c["num_experts"] and l not in c["mlp_only_layers"]
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | attention(10))
        if c["attention_gate_func"]:
            put(w, p, {"self_attn.gate_proj": (N_HEAD * 10, N_EMBD)})
        if c["query_key_norm"]:
            put(w, p, {"self_attn.q_norm": N_HEAD * 10, "self_attn.k_norm": N_KV * 10})
        if not mixed:
            put(w, p, FEED)
            continue
        del w[p + "self_attn.v_proj.weight"]
        put(w, p + "self_attn.", {"v_router": (5, N_EMBD), "v_router.bias!": 5} | {f"v_experts.{e}": (N_KV * 10, N_EMBD) for e in range(5)})
        put(w, p, {"mlp.gate.bias!": N_EXPERT, "mlp.gate": (N_EXPERT, N_EMBD)} | {f"mlp.{of}.{name}": shape for of in ("shared_experts", *(f"experts.{e}" for e in range(N_EXPERT)))
                                                                                for name, shape in EACH.items()})


def k2_horizon(c, w, n_ctx):
    nano.load_family("k2-horizon")
    twin = sys.modules["k2-horizon"]
    twin.N_HEAD, twin.N_KV, twin.SIZE = N_HEAD, N_KV, 10
    keys = {"block_count": c["num_hidden_layers"], "attention.layer_norm_rms_epsilon": EPS, "attention.group_norm_groups": c["layernorm_num_groups"], "rope.freq_base": c["theta"],
            "expert_used_count": c["num_experts_per_tok"], "expert_weights_norm": True, "expert_weights_scale": c["router_scaling_factor"],
            "attention.value_expert_used_count": c["mova_num_experts_per_tok"]}
    if c["rope"]:
        keys |= {"rope.scaling.type": "yarn", "rope.scaling.factor": c["rope"]["factor"], "rope.scaling.original_context_length": c["rope"]["original_max_position_embeddings"]}
    parts = {f"attn_{part}": f"self_attn.{part}_proj" for part in ("q", "k", "v", "gate")} | {f"ffn_{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")}
    parts |= {f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")}
    parts |= {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
              "attn_v_gate": "self_attn.v_router", "ffn_gate_inp": "mlp.gate"}
    out = {"token_embd.weight": w["model.embed_tokens.weight"], "output_norm.weight": w["model.norm.weight"], "output.weight": w["lm_head.weight"]}
    for l in range(c["num_hidden_layers"]):
        p, b = f"model.layers.{l}.", f"blk.{l}."
        out.update({f"{b}{part}.weight": w[f"{p}{name}.weight"] for part, name in parts.items() if f"{p}{name}.weight" in w})
        if b + "attn_v_gate.weight" in out:
            out[b + "attn_v_gate.bias"], out[b + "exp_probs_b.bias"] = w[p + "self_attn.v_router.bias"], w[p + "mlp.gate.bias"]
            out[b + "attn_v_exps.weight"] = np.stack([w[f"{p}self_attn.v_experts.{e}.weight"] for e in range(5)])
            out.update({f"{b}ffn_{part}_exps.weight": np.stack([w[f"{p}mlp.experts.{e}.{part}_proj.weight"] for e in range(N_EXPERT)]) for part in ("gate", "down", "up")})
    return twin.k2_horizon(lambda name, *default: keys.get(name, *default), out, TOKENS, n_ctx)


CLASSES = {
    "K2HorizonForCausalLM": (K2, k2_weights, ["default", "yarn"], k2_horizon),
    "K2HorizonForCausalLM dense": (DENSE, k2_weights, ["default"], k2_horizon),
    "Kolibri1ForCausalLM": (KOLIBRI, kolibri_weights, ["default", "yarn"]),
    "Kolibri1ForCausalLM saved": ({**KOLIBRI, "layout": SAVED, "norm_topk_prob": True}, kolibri_weights, ["default"]),
    "FlintForCausalLM": ({**OWN, "model_type": "flint", "intermediate_size": N_FF, "shared_expert_intermediate_size": N_ALL, "norm_topk_prob": True, "mlp_only_layers": [0], "decoder_sparse_step": 1,
                          "attention_bias": False}, flint_weights, ["default", "linear"]),
    "MistralLarge4ForConditionalGeneration": ({**MISTRAL, "write": beside_pixtral, "how": {"sees": "model.multi_modal_projector"}}, mistral_weights,
                                              ["default", "yarn-factors"]),
    "Qwen4ExpForCausalLM": (QWEN, qwen4_weights, ["default", "yarn"]),
    "Qwen4ExpForCausalLM plain": ({**{key: value for key, value in QWEN.items() if key != "layer_types"}, "ple_layer_ids": [], "layer_types": ["linear_attention"] * 3 + ["indexed_attention"],
                                   "tie_word_embeddings": False, "indexer_budget": 3}, qwen4_weights, ["default"]),
    "Qwen4ExpForConditionalGeneration": ({**QWEN, "eos_token_id": [7, 9], "write": beside_eye("qwen4_exp"), "layout": inner}, qwen4_weights, ["default"]),
    "BeamForCausalLM": ({**OWN, "model_type": "beam", "intermediate_size": N_FF, "mlp_layer_types": ["dense", "sparse", "sparse"], "n_group": 2, "topk_group": 1, "routed_scaling_factor": 2.5,
                         "norm_topk_prob": True, "final_logit_softcapping": 3.0, "attention_bias": False,
                         "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 500.0}, "full_attention": None}}, beam_weights, [None]),
    "MiniMaxM3SparseForConditionalGeneration": ({**M3, "write": beside_m3_eye, "layout": outer, "how": {"sees": "model.multi_modal_projector"}}, minimax_weights, ["default"]),
    "MiniMaxM3SparseForCausalLM": ({**M3, "layout": dict, "how": {"class": "MiniMaxM3VLForCausalLM", "renamed": True, "layout": as_saved}}, minimax_weights, ["default"]),
    "MiniMaxM3VLForCausalLM": ({**{key: value for key, value in M3.items() if key not in ("n_shared_experts", "moe_layer_freq", "sparse_attention_config", "scoring_func", "use_qk_norm", "use_gemma_norm")},
                                "hidden_act": "silu", "mlp_layer_types": ["dense", "sparse", "sparse"], "layer_types": ["full_attention"] + ["minimax_m3_sparse"] * 2, "index_n_heads": N_KV, "index_head_dim": 12,
                                "index_topk_blocks": 3, "index_block_size": 2, "index_local_blocks": 2, "layout": as_saved}, minimax_weights, ["default"]),
}
