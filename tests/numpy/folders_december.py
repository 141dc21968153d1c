"""Folders of classes that llama.cpp's converter knows, for ./folders.py: rows in ./recorded.txt are what this engine gives for the file that llama.cpp's converter
made of the folder, whose tensors were those of llm-convert's file, number by number; of Limite they are those of a forward pass after the authors' program."""
import numpy as np

from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB
from folders_late import FEED, SIZE, attention, put


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


LIMITE = {**{name: value for name, value in SIZE.items() if name != "max_position_embeddings"}, "model_type": "limite", "num_hidden_layers": 4, "intermediate_size": N_FF, "head_dim": 12, "max_position_embeddings": 128,
          "tie_word_embeddings": True, "rms_norm_has_weight": False, "rms_norm_eps_mode": "torch_finfo_default", "qk_norm": "rms_pre_rope", "attention_softmax_scale": 0.4, "sliding_window": 4,
          "sliding_window_convention": "k >= q - sliding_window", "global_window": -1, "global_layers": [3], "global_every": 4, "global_nope": True, "attn_gate_channels": 20, "attn_gate_scale": 2.0,
          "attn_gate_applied": "per_head_before_o_proj", "pos_mode": "rope", "rope_frac": 0.5, "rope_base_local": 60.0, "rope_base_global": 60.0, "rope_per_layer": False, "rope_n_pairs": 4,
          "rope_style": "interleaved_pairs_odd_lane_sign_flip", "rope_cos_sin_dtype": "bfloat16", "ve_dim": 12, "ve_layers": [1, 2], "ve_gate_channels": 7, "ve_gate_scale": 2.0,
          "ve_head_slice": "first_num_key_value_heads", "ve_stored_heads": N_HEAD, "ve_applied_before_qk_norm": True, "xsa": True, "xsa_layers": [0, 1, 3], "xsa_normalize_eps": 1e-4, "mudd": True,
          "mudd_at": [2, 3], "mudd_layers": [2, 3], "mudd_taps": 3, "mudd_inter": 10, "mudd_tap_idx": {"2": [0, 1, 2], "3": [0, 2, 3]}, "mudd_mlp": True, "mudd_r_site": "resid", "mlp_type": "swiglu",
          "softcap_logits": {"kind": "sigmoid", "a": 3.0, "b": 0.5, "c": 1.5}, "final_softcap": 0.0, "lm_head_precision_mode": "oracle_exact"}
CLASSES = {
    "LimiteForCausalLM": (LIMITE, limite_weights, [None]),
    "LimiteForCausalLM plain": ({**LIMITE, "num_hidden_layers": 2, "global_layers": [1], "mudd": False, "mudd_tap_idx": None, "attn_gate_channels": 0, "xsa": False, "ve_layers": [0], "ve_stored_heads": N_KV,
                                 "ve_gate_channels": N_EMBD - 1, "rope_n_pairs": 6}, limite_weights, [None]),
}
