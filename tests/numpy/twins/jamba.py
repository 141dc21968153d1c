"""Jamba (Lieber et al. 2024; modeling_jamba): Mamba 1 with norms, attention without positions on some layers, experts on some."""
from nano import Weights, add, keys_of
from statespace import *


def jamba(name, seed, more={}, d=9, n_exp=5, tied=True, n_in=60):
    n_embd, n_st, n_dt, n_head, n_ff, n_kvs = 36, 8, 5, 4, 44, [0, 2, 0]
    w = Weights(seed)
    w.embedding(94, n_embd, tied)
    for l, n_kv in enumerate(n_kvs):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if n_kv:
            w.attention(l, n_embd, n_head, n_kv, d)
        else:
            mamba1_weights(w, b, n_embd, n_in, n_st, n_dt, True)
        w.norm(b + "ffn_norm", n_embd)
        if l % 2 == 0 and n_exp:
            w.experts(l, n_embd, n_ff, n_exp)
        else:
            w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(3, n_embd, n_ff, n_head, 1e-2), "attention.head_count_kv": n_kvs, **ssm_keys(n_in, n_st, n_dt)}
    add(name, "jamba", {**keys, **more}, w)


jamba("jamba", 2211, {"expert_gating_func": 1, "expert_weights_norm": False, "rope.freq_base": 20000.0, "expert_count": 5, "expert_used_count": 2})
jamba("jamba-dense", 2212, {"attention.key_length": 10}, 10, 0, False)
jamba("jamba-common", 2213, {"expert_count": 5, "expert_used_count": 2}, tied=False, n_in=72)
