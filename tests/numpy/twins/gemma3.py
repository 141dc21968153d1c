"""Gemma 3 (Gemma Team 2025): norms around each part, normalised queries and keys, local layers with a base of their own."""
from kin import *


def model(name, seed, more, **named):
    kin(name, "gemma3", seed, more, qk_norm=True,
        norms=("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), **named)


windows = {"attention.sliding_window": 7, "rope.freq_base": 300.0}
model("gemma3", 211, {**sizes(16, 2), **windows}, n_layer=7)
model("gemma3-full", 212, {**sizes(16), "attention.sliding_window": 0, "final_logit_softcapping": 0.8}, tied=False)
model("gemma3-period", 213, {**sizes(14, 1, 10), **YARN, **windows, "attention.sliding_window_pattern": 2,
                             "rope.freq_base_swa": 50.0}, n_layer=4)
model("gemma3-linear", 214, {**sizes(16, 2), **windows, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0,
                             "attention.sliding_window_pattern": [False, True, True]}, n_layer=3)
model("gemma3-ollama", 215, {**sizes(16, 2), "rope.local.freq_base": 20.0, "rope.global.freq_base": 90.0, "mm.tokens_per_image": 256,
                             "attention.layer_norm_rms_epsilon": None, "attention.sliding_window": 5,
                             "attention.sliding_window_pattern": [True, False, True]}, n_layer=3)
model("gemma3-ollama-scaled", 216, {**sizes(12), "mm.tokens_per_image": 256, "rope.scaling.factor": 2.0})
model("gemma3-27b", 217, {**sizes(6, 1), **windows}, n_layer=62)
