"""Nemotron (NVIDIA 2024; transformers' modeling_nemotron.py): LayerNorm, a part of a head rotated, a squared ReLU without a gate."""
from kin import *


def model(name, seed, more={}, arch="nemotron", **named):
    kin(name, arch, seed, more, layer_norm=True, norm_bias=True, feed_forward="plain", **named)


model("nemotron", 341, {**sizes(None, 2), "rope.dimension_count": 6, "rope.scaling.type": "none", "rope.scaling.factor": 1.0}, tied=False)
model("nemotron-biases", 342, {**sizes(14, 1, 10), **YARN}, bias="qkvo", ffn_bias=True)
model("nemotron-plain", 343, {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0})
model("jais2", 344, {**sizes(12, 2, 12), "rope.dimension_count": 12, "rope.freq_base": 300.0}, "jais2", bias="qkvo", ffn_bias=True, tied=False)
model("jais2-common", 345, {"rope.freq_base": 300.0}, "jais2", bias="qkvo", ffn_bias=True, tied=False)
