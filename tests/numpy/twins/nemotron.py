"""Nemotron (NVIDIA 2024; transformers' modeling_nemotron.py): LayerNorm, a part of a head rotated, a squared ReLU without a gate."""
from kin import *


def nemotron(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))

    def norm(x, weight, bias):
        return layer_norm(x, weight, bias, eps)

    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, norm(x, b("attn_norm"), b("attn_norm", ".bias")))
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + project(b, "attn_output", merge_heads(a))
        up = project(b, "ffn_up", norm(x, b("ffn_norm"), b("ffn_norm", ".bias")))
        x = x + project(b, "ffn_down", np.maximum(up, 0) ** 2)
    return tied_output(w, norm(x, w["output_norm.weight"], w["output_norm.bias"]))


def model(name, seed, more={}, arch="nemotron", **named):
    kin(name, arch, nemotron, seed, more, layer_norm=True, norm_bias=True, feed_forward="plain", **named)


model("nemotron", 341, {**sizes(None, 2), "rope.dimension_count": 6, "rope.scaling.type": "none", "rope.scaling.factor": 1.0}, tied=False)
model("nemotron-biases", 342, {**sizes(14, 1, 10), **YARN}, bias="qkvo", ffn_bias=True)
model("nemotron-plain", 343, {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0})
model("jais2", 344, {**sizes(12, 2, 12), "rope.dimension_count": 12, "rope.freq_base": 300.0}, "jais2", bias="qkvo", ffn_bias=True, tied=False)
model("jais2-common", 345, {"rope.freq_base": 300.0}, "jais2", bias="qkvo", ffn_bias=True, tied=False)
