"""Folders of families that an indexer, states and streams of residual rows make, whose rows in ./recorded.txt transformers gave (../real/folder_logits.py). For ./folders.py."""
import sys

import numpy as np

import nano
from folders import EPS, N_EMBD, N_FF, N_HEAD, N_VOCAB, TOKENS
from folders_experts import CLASSES as EXPERTS
from folders_experts import N_EACH, N_EXPERT
from folders_late import FEED, SIZE, put, without
from folders_more import nested

INDEX = {"index_topk": 5, "index_n_heads": 12, "index_head_dim": 12}


def sparse_weights(c, w):
    """DeepSeek 3's, and an indexer in the layers that choose rows."""
    EXPERTS["DeepseekV3ForCausalLM"][1](c, w)
    without(w, "model.layers.3.enorm")
    for l in range(c["num_hidden_layers"]):
        if c.get("indexer_types", ["full"] * 3)[l] == "full":
            put(w, f"model.layers.{l}.self_attn.indexer.", {"wq_b": (c["index_n_heads"] * c["index_head_dim"], c["q_lora_rank"]), "wk": (c["index_head_dim"], N_EMBD),
                                                            "k_norm": c["index_head_dim"], "k_norm.bias!": c["index_head_dim"], "weights_proj": (c["index_n_heads"], N_EMBD)})


def sparse(kind, **more):
    base = {key: value for key, value in EXPERTS["DeepseekV3ForCausalLM"][0].items() if key not in ("scoring_func", "topk_method", "num_nextn_predict_layers")}
    return {**base, "model_type": kind, "num_key_value_heads": N_HEAD, "rms_norm_eps": 1e-6, "layer_types": ["indexed_attention"] * base["num_hidden_layers"], **INDEX, **more}, sparse_weights, ["default", "yarn-latent"]


KDA, LATENT = {"head_dim": 12, "short_conv_kernel_size": 4}, {"kv_lora_rank": 20, "qk_nope_head_dim": 10, "qk_rope_head_dim": 8, "v_head_dim": 14}
DELTA = {"q_proj": (N_HEAD * 12, N_EMBD), "k_proj": (N_HEAD * 12, N_EMBD), "v_proj": (N_HEAD * 12, N_EMBD), "q_conv1d": (N_HEAD * 12, 1, 4), "k_conv1d": (N_HEAD * 12, 1, 4),
         "v_conv1d": (N_HEAD * 12, 1, 4), "A_log!": N_HEAD, "dt_bias!": N_HEAD * 12, "b_proj": (N_HEAD, N_EMBD), "o_norm": 12}
EACH = {"gate_proj": (N_EACH, N_EMBD), "up_proj": (N_EACH, N_EMBD), "down_proj": (N_EMBD, N_EACH)}


def latent(c, n_q=0):
    """Latent attention's matrices; n_q: the rank of the queries."""
    d, rot, r, dv = (c[name] for name in ("qk_nope_head_dim", "qk_rope_head_dim", "kv_lora_rank", "v_head_dim"))
    q = {"q_a_proj": (n_q, N_EMBD), "q_a_layernorm": n_q, "q_b_proj": (N_HEAD * (d + rot), n_q)} if n_q else {"q_proj": (N_HEAD * (d + rot), N_EMBD)}
    return q | {"kv_a_proj_with_mqa": (r + rot, N_EMBD), "kv_a_layernorm": r, "kv_b_proj": (N_HEAD * (d + dv), r)}


def experts(bias="gate.e_score_correction_bias!", shared=True):
    return {"gate": (N_EXPERT, N_EMBD), bias: N_EXPERT} | {f"{of}.{name}": shape for of in (*(["shared_experts"] if shared else []), *(f"experts.{e}" for e in range(N_EXPERT)))
                                                          for name, shape in EACH.items()}


def ling3_weights(c, w):
    put(w, "", {"model.word_embeddings": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | (FEED if l == 0 else {}))
        if l:
            put(w, p + "mlp.", experts("gate.expert_bias!"))
        attends = (l + 1) % c["layer_group_size"] == 0
        put(w, p + "attention.", latent(c, c["q_lora_rank"]) | {"g_proj": (N_HEAD, N_EMBD), "dense": (N_EMBD, N_HEAD * 14)} if attends else
            DELTA | {"f_proj": (N_HEAD * 12, N_EMBD), "g_proj": (N_HEAD * 12, N_EMBD), "o_proj": (N_EMBD, N_HEAD * 12)})


def ling3(q_rank):
    return {**SIZE, **KDA, **LATENT, "num_key_value_heads": N_HEAD, "model_type": "bailing_hybrid", "how": {"class": "BailingHybridForCausalLM"}, "intermediate_size": N_FF, "num_hidden_layers": 4, "layer_group_size": 2,
            "q_lora_rank": q_rank, "kda_safe_gate": True, "kda_lower_bound": -3.0, "rms_norm_eps": 1e-6, "first_k_dense_replace": 1, "num_experts": N_EXPERT, "num_experts_per_tok": 2,
            "num_shared_experts": 1, "moe_intermediate_size": N_EACH, "n_group": 2, "topk_group": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "tie_word_embeddings": False,
            "pad_token_id": 0, "theta": 900.0, "d": 8, "linear_conv_kernel_dim": 4, "linear_head_dim": 12, "linear_num_heads": N_HEAD}, ling3_weights, ["default"]


def ling3_sees():
    """The text part of Ling 3 VL, whose heads are turned by halves."""
    config, weights, scalings = ling3(18)

    def write(config):
        return {"model_type": "bailing_moe_v3_vl", "text_config": {**config, "mrope_section": [2, 1, 1]}, "image_token_id": 39,
                "vision_config": {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": 64, "disable_merger_proj": True}}

    return {**config, "how": {**config["how"], "renamed": True, "turns_halves": True}, "write": write,
            "layout": lambda w: {**w, "model.visual.merger.norm.weight": np.zeros(4), "linear_proj.0.weight": np.zeros((4, 4))}}, weights, scalings


def beside_eye(kind):
    """The configuration of a text model in that of a model that sees."""
    def write(config):
        text = {name: value for name, value in config.items() if name not in ("model_type", "tie_word_embeddings")}
        return {"model_type": kind, "tie_word_embeddings": False, "vision_config": {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": N_EMBD},
                "text_config": {**text, "model_type": kind + "_text"}}
    return write


def inner(w):
    return {name.replace("model.", "model.language_model.", 1) if name.startswith("model.") else name: t for name, t in w.items()}


def mixing(w, p, n, wide, n_scale):
    for part in ("attn", "ffn"):
        put(w, f"{p}hc_{part}_", {"fn!": (n, wide), "base!": n, "scale!": n_scale})


def indexer(c, n_q):
    n, d = c["index_n_heads"], c["index_head_dim"]
    return {"wq_b": (n * d, n_q), "wk": (d, N_EMBD), "k_norm": d, "k_norm.bias!": d, "weights_proj": (n, N_EMBD)}


def glm53_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    n_hc, d = c["hc_mult"], c["index_head_dim"]
    for l, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | (FEED if l == 0 else {}))
        mixing(w, p, (2 + n_hc) * n_hc, n_hc * N_EMBD, 3)
        if l:
            put(w, p + "mlp.", experts())
        if kind == "linear_attention":
            put(w, p + "self_attn.", DELTA | {"f_a_proj": (12, N_EMBD), "f_b_proj": (N_HEAD * 12, 12), "g_a_proj": (12, N_EMBD), "g_b_proj": (N_HEAD * 12, 12), "o_proj": (N_EMBD, N_HEAD * 12)})
            continue
        put(w, p + "self_attn.", latent(c, 18) | {"o_proj": (N_EMBD, N_HEAD * 14)})
        if c["indexer_types"][l] == "full":
            put(w, p + "self_attn.indexer.", indexer(c, 18) | {"index_kpool_compress_gate!": (d, N_EMBD), "index_kpool_compress_ape!": (c["index_kpool"], d)})


def glm53(bound, **more):
    return {**SIZE, **LATENT, "qk_rope_head_dim": 0, "num_key_value_heads": N_HEAD, "model_type": "glm5_next", "intermediate_size": N_FF, "num_hidden_layers": 5, "q_lora_rank": 18,
            "layer_types": ["linear_attention", "indexed_attention", "indexed_attention", "linear_attention", "indexed_attention"],
            "indexer_types": ["full", "full", "shared", "full", "full"], "rms_norm_eps": 1e-6, "mlp_layer_types": ["dense"] + ["sparse"] * 4,
            "linear_head_dim": 12, "linear_num_heads": N_HEAD, "linear_conv_kernel_dim": 4, "linear_lower_bound": bound, "hc_mult": 4, "hc_eps": 1e-3, "hc_sinkhorn_iters": 20,
            **INDEX, "index_topk": 4, "index_kpool": 2, "n_routed_experts": N_EXPERT, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "n_group": 2,
            "topk_group": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "swiglu_limit": 0.9, "tie_word_embeddings": False, "pad_token_id": 0, "write": beside_eye("glm5_next"),
            "layout": inner, "how": {"sees": "model.visual."}, **more}, glm53_weights, [None]


# --- Kimi K3: as ./twins/kimi-k3.py computes it

PARTS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "ssm_conv1d_q": "self_attn.q_conv1d", "ssm_conv1d_k": "self_attn.k_conv1d", "ssm_conv1d_v": "self_attn.v_conv1d", "ssm_f_a": "self_attn.f_a_proj", "ssm_f_b": "self_attn.f_b_proj",
         "ssm_g": "self_attn.g_proj", "attn_gate": "self_attn.g_proj", "ssm_beta": "self_attn.b_proj", "ssm_norm": "self_attn.o_norm", "attn_q_a": "self_attn.q_a_proj",
         "attn_q_a_norm": "self_attn.q_a_layernorm", "attn_q_b": "self_attn.q_b_proj", "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_a_norm": "self_attn.kv_a_layernorm",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "block_sparse_moe.gate",
         "ffn_routed_down": "block_sparse_moe.routed_expert_down_proj", "ffn_routed_up": "block_sparse_moe.routed_expert_up_proj", "ffn_routed_norm": "block_sparse_moe.routed_expert_norm",
         "ffn_gate_shexp": "block_sparse_moe.shared_experts.gate_proj", "ffn_up_shexp": "block_sparse_moe.shared_experts.up_proj", "ffn_down_shexp": "block_sparse_moe.shared_experts.down_proj"}


def kimi_k3_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD), "model.output_attn_res_norm": N_EMBD, "model.output_attn_res_proj": (1, N_EMBD)})
    wide, low, attends = N_HEAD * 7, c["routed_expert_hidden_size"], c["linear_attn_config"]["full_attn_layers"]
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attention_res_norm": N_EMBD, "self_attention_res_proj": (1, N_EMBD), "mlp_res_norm": N_EMBD,
                   "mlp_res_proj": (1, N_EMBD)} | (FEED if l == 0 else {}))
        if l + 1 in attends:
            put(w, p + "self_attn.", latent(c, 18) | {"g_proj": (N_HEAD * 9, N_EMBD), "o_proj": (N_EMBD, N_HEAD * 9)})
        else:
            put(w, p + "self_attn.", {name: (wide, *shape[1:]) if isinstance(shape, tuple) and shape[0] == N_HEAD * 12 else shape for name, shape in DELTA.items()}
                | {"dt_bias!": wide, "o_norm": 7, "f_a_proj": (7, N_EMBD), "f_b_proj": (wide, 7), "g_proj": (wide, N_EMBD), "o_proj": (N_EMBD, wide)})
        if l:
            put(w, p + "block_sparse_moe.", {"gate": (N_EXPERT, N_EMBD), "gate.e_score_correction_bias!": N_EXPERT, "routed_expert_down_proj": (low, N_EMBD),
                                             "routed_expert_up_proj": (N_EMBD, low), "routed_expert_norm": low} | {f"shared_experts.{name}": shape for name, shape in EACH.items()})
            for e in range(N_EXPERT):
                put(w, f"{p}block_sparse_moe.experts.{e}.", {"w1": (N_EACH, low), "w3": (N_EACH, low), "w2": (low, N_EACH)})


def kimi_k3(c, w, n_ctx):
    nano.load_family("kimi-k3")
    attends = [int(l + 1 in c["linear_attn_config"]["full_attn_layers"]) for l in range(c["num_hidden_layers"])]
    keys = {"block_count": len(attends), "attention.head_count": N_HEAD, "attention.head_count_kv": attends, "attention.layer_norm_rms_epsilon": c["rms_norm_eps"], "expert_used_count": 2,
            "expert_weights_scale": c["routed_scaling_factor"], "kda.gate_lower_bound": c["linear_attn_config"]["gate_lower_bound"], "attn_res.block_size": c["attn_res_block_size"],
            "activation.situ_beta": c["activation_situ_beta"], "activation.situ_linear_beta": c["activation_situ_linear_beta"]}
    score = lambda name: w[name + "_proj.weight"].reshape(-1) * w[name + "_norm.weight"]
    out = {"token_embd.weight": w["model.embed_tokens.weight"], "output_norm.weight": w["model.norm.weight"], "output.weight": w["lm_head.weight"],
           "output_res_score.weight": score("model.output_attn_res")}
    for l in range(len(attends)):
        p, b = f"model.layers.{l}.", f"blk.{l}."
        out.update({f"{b}{part}.weight": w[f"{p}{name}.weight"] for part, name in PARTS.items() if f"{p}{name}.weight" in w})
        out.update({b + "attn_res_score.weight": score(p + "self_attention_res"), b + "ffn_res_score.weight": score(p + "mlp_res")})
        if attends[l]:
            both = w[p + "self_attn.kv_b_proj.weight"].reshape(N_HEAD, 10 + 9, 14)
            out.update({b + "attn_k_b.weight": both[:, :10].transpose(0, 2, 1), b + "attn_v_b.weight": both[:, 10:]})
        else:
            out.update({b + "ssm_a": -np.exp(w[p + "self_attn.A_log"]), b + "ssm_dt.bias": w[p + "self_attn.dt_bias"]})
        if l:
            out[b + "exp_probs_b.bias"] = w[p + "block_sparse_moe.gate.e_score_correction_bias"]
            out.update({f"{b}ffn_{part}_exps.weight": np.stack([w[f"{p}block_sparse_moe.experts.{e}.{name}.weight"] for e in range(N_EXPERT)])
                        for part, name in (("gate", "w1"), ("down", "w2"), ("up", "w3"))})
    return sys.modules["kimi-k3"].kimi_k3(lambda name, *default: keys.get(name, *default), out, TOKENS, n_ctx)


KIMI_K3 = {"vocab_size": N_VOCAB, "hidden_size": N_EMBD, "num_attention_heads": N_HEAD, "num_key_value_heads": N_HEAD, "max_position_embeddings": 128, "model_type": "kimi_linear",
           "intermediate_size": N_FF, "num_hidden_layers": 4, "q_lora_rank": 18, "kv_lora_rank": 14, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 9, "mla_use_nope": True,
           "rms_norm_eps": EPS, "linear_attn_config": {"full_attn_layers": [2, 4], "kda_layers": [1, 3], "num_heads": N_HEAD, "head_dim": 7, "short_conv_kernel_size": 4, "gate_lower_bound": -3.0},
           "first_k_dense_replace": 1, "num_experts": N_EXPERT, "num_experts_per_token": 2, "num_shared_experts": 1, "moe_intermediate_size": N_EACH, "routed_expert_hidden_size": 20,
           "routed_scaling_factor": 2.5, "moe_renormalize": True, "moe_router_activation_func": "sigmoid", "hidden_act": "situ", "activation_situ_beta": 3.0, "activation_situ_linear_beta": 2.0,
           "attn_res_block_size": 2, "tie_word_embeddings": False}


def hunyuan4_weights(c, w):
    n_hc, wide = c["hc_mult"], c["hc_mult"] * N_EMBD
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD), "model.hc_head.hc_head_fn!": (n_hc, wide), "model.hc_head.hc_head_base!": n_hc,
                "model.hc_head.hc_head_scale!": 1})
    for l, kind in enumerate(c["indexer_types"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | (FEED if l == 0 else {}))
        for part in ("attn", "mlp"):
            put(w, f"{p}hc_{part}_layer.hc_pre.hc_", {"fn!": (2 * n_hc, wide), "base!": 2 * n_hc, "scale!": 2})
        put(w, p + "self_attn.", latent(c, 18) | {"o_proj": (N_EMBD, N_HEAD * 14), "linear_gate": (N_HEAD * 14, N_EMBD), "learnable_sink_param!": N_HEAD})
        if kind == "full":
            put(w, p + "self_attn.indexer.", indexer(c, 18))
        if l:
            put(w, p + "mlp.", {name: shape for name, shape in experts().items() if not name.startswith("experts.")}
                | {"experts.gate_up_proj!": (N_EXPERT, 2 * N_EACH, N_EMBD), "experts.down_proj!": (N_EXPERT, N_EMBD, N_EACH)})


HUNYUAN4 = {**SIZE, **LATENT, "num_key_value_heads": N_HEAD, "model_type": "hy_v4", "intermediate_size": N_FF, "num_hidden_layers": 4, "q_lora_rank": 18, "rms_norm_eps": 1e-6,
            "mlp_layer_types": ["dense"] + ["sparse"] * 3, "indexer_types": ["full", "shared", "full", "shared"], **INDEX, "index_n_heads": 16, "hc_mult": 4, "hc_magnitude": 1.5, "hc_eps": 1e-3,
            "n_routed_experts": N_EXPERT, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.5,
            "norm_topk_prob": True, "swiglu_limit": 0.9, "tie_word_embeddings": False, "pad_token_id": 0, "theta": 900.0, "d": 8,
            "how": {"pairs": True}}


def saved(w):
    """The names that transformers 5.24 writes, which are not those of published folders."""
    names = {"hc_attn_layer.hc_pre": "hc_pre.hc_attn_layer", "hc_mlp_layer.hc_pre": "hc_pre.hc_mlp_layer", "model.hc_head": "model.hc_pre.hc_head", "mlp.gate_proj": "mlp.linear_gate",
             "shared_experts.gate_proj": "shared_experts.linear_gate"}
    for new, old in names.items():
        w = {name.replace(new, old): t for name, t in w.items()}
    return w


def dots3_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l, kind in enumerate(c["layer_types"]):
        p, of = f"model.layers.{l}.", "swa_" if kind == "sliding_attention" else ""
        n_head, d, rot, r, dv = (c[of + name] for name in ("num_attention_heads", "qk_nope_head_dim", "qk_rope_head_dim", "kv_lora_rank", "v_head_dim"))
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | (FEED if l == 0 else {}))
        put(w, p + "self_attn.", {"q_a_proj": (18, N_EMBD), "q_a_layernorm": 18, "q_b_proj": (n_head * (d + rot), 18), "kv_a_proj_with_mqa": (r + rot, N_EMBD), "kv_a_layernorm": r,
                                  "k_rope_only_layernorm": rot, "kv_b_proj": (n_head * (d + dv), r), "g_proj": (n_head, N_EMBD), "o_proj": (N_EMBD, n_head * dv)})
        if not of:
            put(w, p + "self_attn.indexer.", indexer(c, 18))
        if l:
            put(w, p + "mlp.", experts())


DOTS3 = {**SIZE, **LATENT, "num_key_value_heads": N_HEAD, "model_type": "dots3_note_text", "intermediate_size": N_FF, "num_hidden_layers": 4, "q_lora_rank": 18, "head_dim": 18,
         "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"], "sliding_window_size": 4, "swa_num_attention_heads": 2, "swa_num_key_value_heads": 2,
         "swa_q_lora_rank": 18, "swa_kv_lora_rank": 12, "swa_head_dim": 20, "swa_qk_nope_head_dim": 12, "swa_qk_rope_head_dim": 8, "swa_v_head_dim": 10, "rope_theta": 900.0,
         "swa_rope_theta": 70.0, "rms_norm_eps": 1e-5, "apply_mla_qkv_lora_rescale": True, "use_dsa": True, **INDEX, "first_k_dense_replace": 1, "moe_layer_freq": 1, "scoring_func": "sigmoid",
         "topk_method": "noaux_tc", "n_routed_experts": N_EXPERT, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "moe_shared_expert_intermediate_size": N_EACH,
         "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "tie_word_embeddings": False, "pad_token_id": 0, "how": {"halves": True}}


# --- Xing 4.0: as ./twins/xing4_0.py computes it

XING = {"vocab_size": N_VOCAB, "hidden_size": N_EMBD, "num_attention_heads": N_HEAD, "num_key_value_heads": N_HEAD, "max_position_embeddings": 128, "model_type": "xing4_0", "intermediate_size": N_FF,
        "num_hidden_layers": 3, "num_nextn_predict_layers": 1, "q_lora_rank": 18, "kv_lora_rank": 14, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 9, "rms_norm_eps": EPS, "hidden_act": "silu", "hc_mult": 4,
        "hc_sinkhorn_iters": 4, "hc_eps": 1e-3, "mhc_h_res_clamp_min": -30, "mhc_h_res_clamp_max": 30, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_routed_experts": N_EXPERT, "n_shared_experts": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.0, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": True,
        "attention_bias": False, "tie_word_embeddings": False, "theta": 900.0}


def xing_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    n = c["hc_mult"]
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | (FEED if l == 0 else {}))
        for part in ("attn", "ffn"):
            put(w, f"{p}{part}_hc.hc_", {"fn!": ((2 + n) * n, n * N_EMBD), "base!": (2 + n) * n, "scale!": 3})
        put(w, p + "self_attn.", latent(c, 18) | {"o_proj": (N_EMBD, N_HEAD * c["v_head_dim"])})
        if l:
            put(w, p + "mlp.", experts())


def xing(c, w, n_ctx):
    nano.load_family("xing4_0")
    scaling = c["rope"]
    keys = {"block_count": c["num_hidden_layers"], "attention.layer_norm_rms_epsilon": EPS, "hyper_connection.epsilon": c["hc_eps"], "hyper_connection.sinkhorn_iterations": c["hc_sinkhorn_iters"],
            "rope.freq_base": c["theta"], "expert_used_count": c["num_experts_per_tok"], "expert_weights_scale": c["routed_scaling_factor"]}
    if scaling:
        keys |= {"rope.scaling.type": "yarn", "rope.scaling.factor": scaling["factor"], "rope.scaling.original_context_length": scaling["original_max_position_embeddings"],
                 "rope.scaling.yarn_log_multiplier": 0.1 * scaling["mscale_all_dim"]}
    parts = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "ffn_gate_inp": "mlp.gate", "attn_output": "self_attn.o_proj", "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
             "attn_kv_a_norm": "self_attn.kv_a_layernorm", "attn_q_a": "self_attn.q_a_proj", "attn_q_a_norm": "self_attn.q_a_layernorm", "attn_q_b": "self_attn.q_b_proj"}
    parts |= {f"ffn_{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")} | {f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")}
    out = {"token_embd.weight": w["model.embed_tokens.weight"], "output_norm.weight": w["model.norm.weight"], "output.weight": w["lm_head.weight"]}
    for l in range(c["num_hidden_layers"]):
        p, b = f"model.layers.{l}.", f"blk.{l}."
        out.update({f"{b}{part}.weight": w[f"{p}{name}.weight"] for part, name in parts.items() if f"{p}{name}.weight" in w})
        out.update({f"{b}hc_{part}_{name}.weight": w[f"{p}{part}_hc.hc_{name}"] for part in ("attn", "ffn") for name in ("fn", "base", "scale")})
        both = w[p + "self_attn.kv_b_proj.weight"].reshape(N_HEAD, 10 + 9, 14)
        out.update({b + "attn_k_b.weight": both[:, :10].transpose(0, 2, 1), b + "attn_v_b.weight": both[:, 10:]})
        if l:
            out[b + "exp_probs_b.bias"] = w[p + "mlp.gate.e_score_correction_bias"]
            out.update({f"{b}ffn_{part}_exps.weight": np.stack([w[f"{p}mlp.experts.{e}.{part}_proj.weight"] for e in range(N_EXPERT)]) for part in ("gate", "down", "up")})
    return sys.modules["xing4_0"].xing4_0(lambda name, *default: keys.get(name, *default), out, TOKENS, n_ctx)


CLASSES = {
    "Dots3NoteForCausalLM": (DOTS3, dots3_weights, [None]),
    "DeepseekV32ForCausalLM": sparse("deepseek_v32"),
    "BailingMoeV3ForCausalLM": ling3(None),
    "BailingMoeV3ForCausalLM rank": ling3(18),
    "BailingMoeV3VLForConditionalGeneration": ling3_sees(),
    "Glm5NextForConditionalGeneration": glm53(-3.0),
    "Glm5NextForConditionalGeneration free": glm53(None, index_kpool=4),
    "HYV4ForCausalLM": (HUNYUAN4, hunyuan4_weights, ["default"]),
    "HYV4ForCausalLM saved": ({**HUNYUAN4, "layout": saved}, hunyuan4_weights, ["default"]),
    "KimiK3ForConditionalGeneration": nested((KIMI_K3, kimi_k3_weights, [None], kimi_k3), sees="vision_tower", model_type="kimi_k3"),
    "Xing4_0ForCausalLM": (XING, xing_weights, ["default", "yarn-latent"], xing),
    "GlmMoeDsaForCausalLM": sparse("glm_moe_dsa", indexer_types=["full", "shared", "full"]),
}
