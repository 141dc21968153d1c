"""Cohere 2 (transformers' modeling_cohere2.py): Command R's block; layers with a window rotate, the others have no positions."""
from families import swiglu
from kin import *


def cohere2(k, w, tokens, n_ctx):
    eps, every = k("attention.layer_norm_epsilon"), k("attention.sliding_window_pattern", 4)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_norm(x, b("attn_norm"), None, eps)
        q, key, v = qkv(k, b, h)
        if every[l] if isinstance(every, list) else l % every != every - 1:
            a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v, window=k("attention.sliding_window"))
        else:
            a = attention(q, key, v)
        x = x + project(b, "attn_output", merge_heads(a)) + swiglu(b, h)
    return k("logit_scale", 1.0) * linear(layer_norm(x, w["output_norm.weight"], None, eps), w["token_embd.weight"])


def model(name, seed, more={}, **named):
    kin(name, "cohere2", cohere2, seed, {"attention.sliding_window": 6, **more}, norms=("attn_norm",), layer_norm=True, **named)


model("cohere2", 251, {"logit_scale": 0.6, "rope.scaling.type": "none", "rope.freq_base": 300.0}, n_layer=5)
model("cohere2-period", 252, {**sizes(14, 2, 10), **YARN, "rope.dimension_count": 8, "attention.sliding_window_pattern": 2}, n_layer=3)
model("cohere2-list", 253, {**sizes(16, 1), "attention.sliding_window_pattern": [False, True, True]}, n_layer=3, bias="qkvo")
