"""Cohere 2 (transformers' modeling_cohere2.py): Command R's block; layers with a window rotate, the others have no positions."""
from kin import *


def model(name, seed, more={}, **named):
    kin(name, "cohere2", seed, {"attention.sliding_window": 6, **more}, norms=("attn_norm",), layer_norm=True, **named)


model("cohere2", 251, {"logit_scale": 0.6, "rope.scaling.type": "none", "rope.freq_base": 300.0}, n_layer=5)
model("cohere2-period", 252, {**sizes(14, 2, 10), **YARN, "rope.dimension_count": 8, "attention.sliding_window_pattern": 2}, n_layer=3)
model("cohere2-list", 253, {**sizes(16, 1), "attention.sliding_window_pattern": [False, True, True]}, n_layer=3, bias="qkvo")
