"""StarCoder 2 (Lozhkov et al. 2024; transformers' modeling_starcoder2.py): LayerNorm, GELU without a gate, a window."""
from kin import *


def model(name, seed, more={}, biased=True, **named):
    kin(name, "starcoder2", seed, more, layer_norm=True, norm_bias=True, bias="qkvo" if biased else "", ffn_bias=biased,
        feed_forward="plain", **named)


model("starcoder2", 311, {**sizes(None, 2), "rope.freq_base": 300.0})
model("starcoder2-plain", 312, {"rope.dimension_count": 8}, biased=False)
model("starcoder2-window", 313, {**sizes(14, 1, 10), **YARN, "attention.sliding_window": 6}, tied=False)
