"""Falcon (Almazrouei et al. 2023; modeling_falcon): parallel, LayerNorm, few key heads; 40B with a norm for each half."""
from families import *
from kin import *


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
    norms = ["attn_norm"] + ["attn_norm_2"] * two
    fused(name, "falcon", forward, seed, more, n_kv, d, tied=tied, norms=norms, bias=False)


falcon("falcon", 2021, {"attention.head_count_kv": 1, "tensor_data_layout": "jploski"}, 1)
falcon("falcon-40b", 2022, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                            "rope.freq_base": 300.0, "tensor_data_layout": "jploski"}, 2, 14, False, True)
falcon("falcon-plain", 2023, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3})
