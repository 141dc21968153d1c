"""Folders of classes that llama.cpp's converter knows, for ./folders.py: rows in ./recorded.txt are what this engine gives for the file that llama.cpp's converter
made of the folder, whose tensors were those of llm-convert's file, number by number; of Limite they are those of a forward pass after the authors' program."""
import types

import numpy as np

from folders import CLASSES as FIRST
from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB
from folders_experts import N_EACH, N_EXPERT
from folders_late import FEED, SIZE, attention, put
from folders_older import NORMS, OWN, biased, ends, spelled
from folders_vision import CLASSES as SEEING
from folders_vision import turned


def limite_weights(c, w):
    d, n_gate, n_ve, n_layer = 12, c["attn_gate_channels"], c["ve_gate_channels"], c["num_hidden_layers"]
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.value_embeds": (N_VOCAB, c["ve_stored_heads"] * d)})
    if c["mudd"]:
        n_taps = c["mudd_taps"]
        put(w, "model.mudd.", {"dense1!": (10, N_EMBD), "dense2!": (n_layer, n_taps, 10), "dense2_mlp!": (n_layer, n_taps, 10)})
        for name in ("bias", "bias_mlp"):
            w.vector("model.mudd." + name, (n_layer, n_taps), 0.4)
    for l in range(n_layer):
        p = f"model.layers.{l}."
        put(w, p, attention(d) | FEED)
        for name in ("self_attn.qkv_scale", "self_attn.o_scale", "resid_lambda_attn", "post_lambda_attn", "resid_lambda_mlp", "post_lambda_mlp"):
            w.vector(p + name, 1, 1.0)
            w[p + name] = w[p + name].reshape(())
        w.vector(p + "self_attn.xsa_alpha", N_HEAD, 0.7)
        if l in c["ve_layers"]:
            put(w, p, {"self_attn.ve_gate!": (c["ve_stored_heads"], n_ve)})
        if n_gate:
            put(w, p, {"self_attn.attn_gate!": (N_HEAD, n_gate)})


def beside_eye(prefix, tower, *norms):
    """A text part's tensors under their prefix, and those of an eye."""
    return lambda w: {prefix + name: t for name, t in w.items()} | {tower: np.zeros((2, 2))} | dict.fromkeys(norms, np.zeros(N_EMBD))


def with_eye(text_type, **outer):
    """config.json of a model that sees: its text part has an object of its own."""
    return lambda config: {**outer, "vision_config": {"hidden_size": N_EMBD, "model_type": "qwen2_vl"}, "text_config": {**config, "model_type": text_type}}


def bitnet_weights(c, w):
    ends(w, c)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(12) | FEED | {"self_attn.inner_attn_ln": N_EMBD, "mlp.ffn_layernorm": N_FF})


def in_f16(w):
    """The tensors as F16."""
    return {name: types.SimpleNamespace(dtype="F16", shape=x.shape, data=x.astype("<f2")) for name, x in w.items()}


def rugpt_weights(c, w):
    put(w, "model.", {"embed_tokens": (N_VOCAB, N_EMBD), "embed_positions": (128, N_EMBD), "norm": N_EMBD, "norm.bias!": N_EMBD})
    put(w, "", {"lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, NORMS | attention(12, N_HEAD) | {"mlp.up_proj": (N_FF, N_EMBD), "mlp.down_proj": (N_EMBD, N_FF)})
        biased(w, [p + name for name in (*NORMS, *(f"self_attn.{part}_proj" for part in "qkvo"), "mlp.up_proj", "mlp.down_proj")])


def arwkv_weights(c, w):
    ends(w, c)
    gate = c["wkv_has_gate"]
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, NORMS | FEED)
        p += "self_attn.time_mixer."
        put(w, p, dict.fromkeys(("receptance", "key", "value", "output"), (N_EMBD, N_EMBD)))
        for part, rank in (("w", 64), ("a", 64), ("v", 32), ("g", 128))[: 4 if gate else 3]:
            put(w, p, {f"{part}1!": (N_EMBD, rank), f"{part}2!": (rank, N_EMBD)} | ({} if part == "g" else {f"{part}0!": (1, 1, N_EMBD)}))
        for name in [f"x_{part}" for part in ("rwkvag" if gate else "rwkva")] + ["k_k", "k_a"]:
            w.vector(p + name, (1, 1, N_EMBD), 0.5)
        w.vector(p + "r_k", (N_EMBD // c["head_size"], c["head_size"]))
        if c["wkv_has_group_norm"]:
            put(w, p, {"ln_x": N_EMBD, "ln_x.bias!": N_EMBD})


def grok_weights(c, w):
    """Grok 1's names."""
    put(w, "transformer.", {"in_out_embed": (N_VOCAB, N_EMBD), "rms_norm": N_EMBD})
    for l in range(c["num_hidden_layers"]):
        put(w, f"transformer.decoder_layer.{l}.", dict.fromkeys(("rms_norm", "rms_norm_1", "rms_norm_2", "rms_norm_3"), N_EMBD) | {"router": (N_EXPERT, N_EMBD)}
            | {f"multi_head_attention.{name}": shape for name, shape in (("query", (N_EMBD, N_EMBD)), ("key", (24, N_EMBD)), ("value", (24, N_EMBD)), ("linear", (N_EMBD, N_EMBD)))}
            | {f"moe.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in (("linear", (N_FF, N_EMBD)), ("linear_v", (N_FF, N_EMBD)), ("linear_1", (N_EMBD, N_FF)))})


def grok2_weights(c, w):
    ends(w, c)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", dict.fromkeys(("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"), N_EMBD) | attention(16) | FEED | {"block_sparse_moe.gate": (N_EXPERT, N_EMBD)}
            | {f"block_sparse_moe.experts.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in (("w1", (N_EACH, N_EMBD)), ("w3", (N_EACH, N_EMBD)), ("w2", (N_EMBD, N_EACH)))})


GROK = {**{name: value for name, value in OWN.items() if name not in ("hidden_act", "theta")}, "model_type": "grok-1", "tie_word_embeddings": True, "rope_theta": 900.0, "num_local_experts": N_EXPERT, "num_experts_per_tok": 2,
        "attn_output_multiplier": 0.3, "embedding_multiplier_scale": 3.0, "output_multiplier_scale": 0.6}
GROK2 = {**GROK, "tie_word_embeddings": False, "head_dim": 16, "moe_intermediate_size": N_EACH, "attn_logit_softcapping": 2.0, "router_logit_softcapping": 30.0, "final_logit_softcapping": 4.0, "attn_temperature_len": 1024,
         "rope_type": "original", "scaling_factor": 4.0, "original_max_position_embeddings": 32, "extrapolation_factor": 1.0, "attn_factor": 1.0, "beta_fast": 8, "beta_slow": 1}
RUGPT = {**{name: value for name, value in OWN.items() if name not in ("num_key_value_heads", "rms_norm_eps", "theta")}, "model_type": "rugpt3xl", "hidden_act": "gelu_new", "layer_norm_eps": EPS, "sparse_mode": "alternating",
         "sparse_block_size": 16, "sparse_num_local_blocks": 2, "sparse_num_global_blocks": 1, "sparse_num_different_global_patterns": 2, "attn_implementation": "sdpa", "embedding_dropout": 0.1, "output_dropout": 0.1}
ARWKV = {**{name: value for name, value in OWN.items() if name != "theta"}, "model_type": "rwkv_hybrid", "head_size": 8, "head_size_divisor": 8, "num_wkv_heads": 6, "wkv_version": 7, "wkv_has_gate": False, "wkv_has_group_norm": False,
         "wkv_layers": "all", "rope_theta": 900.0}
LIMITE = {**{name: value for name, value in SIZE.items() if name != "max_position_embeddings"}, "model_type": "limite", "num_hidden_layers": 4, "intermediate_size": N_FF, "head_dim": 12, "max_position_embeddings": 128,
          "tie_word_embeddings": True, "rms_norm_has_weight": False, "rms_norm_eps_mode": "torch_finfo_default", "qk_norm": "rms_pre_rope", "attention_softmax_scale": 0.4, "sliding_window": 4,
          "sliding_window_convention": "k >= q - sliding_window", "global_window": -1, "global_layers": [3], "global_every": 4, "global_nope": True, "attn_gate_channels": 20, "attn_gate_scale": 2.0,
          "attn_gate_applied": "per_head_before_o_proj", "pos_mode": "rope", "rope_frac": 0.5, "rope_base_local": 60.0, "rope_base_global": 60.0, "rope_per_layer": False, "rope_n_pairs": 4,
          "rope_style": "interleaved_pairs_odd_lane_sign_flip", "rope_cos_sin_dtype": "bfloat16", "ve_dim": 12, "ve_layers": [1, 2], "ve_gate_channels": 7, "ve_gate_scale": 2.0,
          "ve_head_slice": "first_num_key_value_heads", "ve_stored_heads": N_HEAD, "ve_applied_before_qk_norm": True, "xsa": True, "xsa_layers": [0, 1, 3], "xsa_normalize_eps": 1e-4, "mudd": True,
          "mudd_at": [2, 3], "mudd_layers": [2, 3], "mudd_taps": 3, "mudd_inter": 10, "mudd_tap_idx": {"2": [0, 1, 2], "3": [0, 2, 3]}, "mudd_mlp": True, "mudd_r_site": "resid", "mlp_type": "swiglu",
          "softcap_logits": {"kind": "sigmoid", "a": 3.0, "b": 0.5, "c": 1.5}, "final_softcap": 0.0, "lm_head_precision_mode": "oracle_exact"}
FEW = {name: (config, weights, ["default", "yarn"], *of) for name, (config, weights, _, *of) in FIRST.items()}
PLAIN = {name: (config, weights, ["default"], *of) for name, (config, weights, _, *of) in FIRST.items()}
LLAMA = spelled(FEW["MistralForCausalLM"])
CLASSES = {
    "LimiteForCausalLM": (LIMITE, limite_weights, [None]),
    "LimiteForCausalLM plain": ({**LIMITE, "num_hidden_layers": 2, "global_layers": [1], "mudd": False, "mudd_tap_idx": None, "attn_gate_channels": 0, "xsa": False, "ve_layers": [0], "ve_stored_heads": N_KV,
                                 "ve_gate_channels": N_EMBD - 1, "rope_n_pairs": 6}, limite_weights, [None]),
    "VLlama3ForCausalLM": spelled(LLAMA),
    "Sarashina2VisionForCausalLM": spelled(LLAMA, layout=beside_eye("llm.", "visual.blocks.0.norm1.weight", "norm.weight", "norm.bias"),
                                           write=with_eye("llama", image_token_index=39, start_image_token_index=38, end_image_token_index=37)),
    "Qwen2VLModel": spelled(FEW["Qwen2ForCausalLM"], layout=lambda w: beside_eye("", "visual.blocks.0.norm1.weight")({name.replace("model.", "language_model."): t for name, t in w.items()}),
                            write=lambda config: with_eye("qwen2_vl_text", image_token_id=39)(turned(config, [2, 2, 2]))),
    "LlavaStableLMEpochForCausalLM": spelled(PLAIN["StableLmForCausalLM"], how={"class": "StableLmForCausalLM"}, layout=beside_eye("", "model.vision_tower.x"),
                                             write=lambda config: {**config, "mm_vision_tower": "clip", "mm_hidden_size": 8, "mm_projector_type": "mlp2x_gelu", "use_mm_proj": True}),
    "UnlimitedOCRForCausalLM": spelled(SEEING["DeepseekOCRForCausalLM"], sliding_window_size=128, sliding_window=128, how={"keys": {"deepseek2-ocr.attention.sliding_window": 128}}),
    "BitnetForCausalLM": ({**OWN, "model_type": "llama", "tie_word_embeddings": True, "weight_bits": 1, "input_bits": 8, "attention_bias": False}, bitnet_weights, ["default"]),
    "BitnetForCausalLM halves": ({**OWN, "model_type": "llama", "tie_word_embeddings": True, "weight_bits": 1, "input_bits": 8, "attention_bias": False, "layout": in_f16}, bitnet_weights, ["default"]),
    "RuGPT3XLForCausalLM": (RUGPT, rugpt_weights, [None]),
    "RwkvHybridForCausalLM": (ARWKV, arwkv_weights, [None]),
    "RwkvHybridForCausalLM gate": ({**ARWKV, "wkv_has_gate": True, "wkv_has_group_norm": True, "tie_word_embeddings": True}, arwkv_weights, [None]),
    "GrokForCausalLM": (GROK, grok_weights, [None]),
    "Grok1ForCausalLM": (GROK2, grok2_weights, [None]),
}
