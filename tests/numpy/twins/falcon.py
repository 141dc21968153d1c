"""Falcon (Almazrouei et al. 2023; modeling_falcon): parallel, LayerNorm, few key heads; 40B with a norm for each half."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    n_kv = k("attention.head_count_kv", n_head)
    d = k("attention.key_length", n_embd // n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        for_mlp = layer_normed(b, x, "attn_norm", eps)
        for_attention = for_mlp if b("attn_norm_2") is None else layer_normed(b, x, "attn_norm_2", eps)
        q, key, v = fused_qkv(b, for_attention, n_head, n_kv, d)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + linear(merge_heads(a), b("attn_output")) + gelu_feed_forward(b, for_mlp)
    return tied_output(w, final_norm(w, x, eps))


def falcon(name, seed, more={}, n_kv=4, d=12, tied=True, two=False):
    n_embd, n_head, n_ff = 48, 4, 92
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        for norm in ["attn_norm"] + ["attn_norm_2"] * two:
            w.norm(b + norm, n_embd, True)
        w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5)
        w.matrix(b + "attn_output", n_embd, n_head * d)
        w.matrix(b + "ffn_up", n_ff, n_embd)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2)
    w.norm("output_norm", n_embd, True)
    add(name, "falcon", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w, forward)


falcon("falcon", 2021, {"attention.head_count_kv": 1, "tensor_data_layout": "jploski"}, 1)
falcon("falcon-40b", 2022, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                            "rope.freq_base": 300.0, "tensor_data_layout": "jploski"}, 2, 14, False, True)
falcon("falcon-plain", 2023, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3})
