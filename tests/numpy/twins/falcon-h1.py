"""Falcon-H1 (Zuo et al. 2025; modeling_falcon_h1): attention and Mamba 2 side by side, then SwiGLU."""
from nano import Weights, add, keys_of
from statespace import *


def falcon_h1(name, seed, more={}, n_kv=4, d=9, n_g=1, tied=True, bias=False, norm=True, n_factors=0):
    n_embd, n_in, n_st, n_h, n_head, n_ff = 36, 60, 8, 6, 4, 44
    w = Weights(seed)
    w.embedding(94, n_embd, tied)
    if n_factors:
        w.factors("rope_freqs", n_factors)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, bias="qkvo" if bias else "")
        mamba2_weights(w, b, n_embd, n_in, n_st, n_h, n_g, bias, norm)
        w.norm(b + "ffn_norm", n_embd)
        if bias:
            w[b + "ffn_norm"] = w.pop(b + "ffn_norm.weight")
        w.gated(l, n_embd, n_ff, bias)
    w.norm("output_norm", n_embd)
    add(name, "falcon-h1", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **ssm_keys(n_in, n_st, n_h), **more}, w)


falcon_h1("falcon-h1", 2221, {"ssm.group_count": 2, "attention.head_count_kv": 2, "attention.key_length": 10, "rope.freq_base": 300.0,
                              "attention.value_length": 10}, 2, 10, 2)
falcon_h1("falcon-h1-others", 2222, {"attention.key_length": 10, "rope.dimension_count": 8, "attention.scale": 0.4,
                                     "rope.scaling.attn_factor": 1.3}, 4, 10, 1, False, True, False, 4)
falcon_h1("falcon-h1-plain", 2223, {"attention.key_length": 12, "attention.head_count_kv": 4}, d=12)
