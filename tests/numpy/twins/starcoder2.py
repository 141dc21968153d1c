"""StarCoder 2 (Lozhkov et al. 2024; transformers' modeling_starcoder2.py): LayerNorm, GELU without a gate, a window."""
from families import gelu_feed_forward
from kin import *


def starcoder2(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, layer_norm(x, b("attn_norm"), b("attn_norm", ".bias"), eps))
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v, window=k("attention.sliding_window", 0) or None)
        x = x + project(b, "attn_output", merge_heads(a))
        x = x + gelu_feed_forward(b, layer_norm(x, b("ffn_norm"), b("ffn_norm", ".bias"), eps))
    return tied_output(w, layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], eps))


def model(name, seed, more={}, biased=True, **named):
    kin(name, "starcoder2", starcoder2, seed, more, layer_norm=True, norm_bias=True, bias="qkvo" if biased else "", ffn_bias=biased,
        feed_forward="plain", **named)


model("starcoder2", 311, {**sizes(None, 2), "rope.freq_base": 300.0})
model("starcoder2-plain", 312, {"rope.dimension_count": 8}, biased=False)
model("starcoder2-window", 313, {**sizes(14, 1, 10), **YARN, "attention.sliding_window": 6}, tied=False)
