"""Granite 4 hybrids (IBM's modeling_granitemoehybrid): Mamba 2 and attention layers, Granite's scales, experts and a shared one."""
from nano import Weights, add, keys_of
from statespace import *


def granitehybrid(name, seed, more={}, n_kvs=(0, 2, 0), d=9, n_g=1, n_exp=0, tied=True, bias=False, shared=True, n_factors=0, n_in=60):
    n_embd, n_st, n_h, n_head, n_ff = 36, 8, 6, 4, 44
    w = Weights(seed)
    w.embedding(94, n_embd, tied)
    if n_factors:
        w.factors("rope_freqs", n_factors)
    for l, n_kv in enumerate(n_kvs):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if n_kv:
            w.attention(l, n_embd, n_head, n_kv, d, bias="qkvo" if bias else "")
        else:
            mamba2_weights(w, b, n_embd, n_in, n_st, n_h, n_g, not bias)
        w.norm(b + "ffn_norm", n_embd)
        if n_exp:
            w.experts(l, n_embd, n_ff, n_exp)
            if shared:
                w.shared_expert(l, n_embd, 30)
        else:
            w.gated(l, n_embd, n_ff, bias)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(len(n_kvs), n_embd, n_ff, n_head, 1e-2), "attention.head_count_kv": list(n_kvs), **ssm_keys(n_in, n_st, n_h)}
    add(name, "granitehybrid", {**keys, **more}, w)


granitehybrid("granitehybrid", 2231, {"expert_gating_func": 1, "expert_weights_norm": True, "attention.key_length": 10,
    "attention.scale": 0.4, "embedding_scale": 3.0, "residual_scale": 0.6, "logit_scale": 1.7, "ssm.group_count": 2, "expert_count": 5,
    "expert_used_count": 2, "expert_shared_feed_forward_length": 30, "rope.scaling.finetuned": False, "rope.freq_base": 300.0}, d=10, n_g=2, n_exp=5)
granitehybrid("granitehybrid-dense", 2232, {"attention.key_length": 10, "rope.dimension_count": 8, "rope.scaling.attn_factor": 1.3}, d=10,
              tied=False, bias=True)
granitehybrid("granitehybrid-plain", 2233, {"attention.key_length": 12, "expert_count": 0}, d=12)
granitehybrid("granitehybrid-bamba", 2234, {"attention.key_length": 12, "expert_count": 4, "expert_used_count": 1, "rope.scaling.finetuned": True}, d=12,
              n_exp=4, shared=False, n_factors=6)
granitehybrid("granitehybrid-common", 2235, {"attention.scale": 0.4, "embedding_scale": 3.0, "residual_scale": 0.6, "logit_scale": 1.7, "ssm.group_count": 2,
    "attention.key_length": 10, "attention.value_length": 10, "expert_count": 5, "expert_used_count": 2, "expert_shared_feed_forward_length": 30, "rope.scaling.finetuned": False}, d=10, n_g=2, n_exp=5, n_in=72)
granitehybrid("granitehybrid-common-dense", 2236, {"attention.key_length": 10, "attention.value_length": 10, "ssm.group_count": 1, "embedding_scale": 3.0,
    "residual_scale": 0.6, "logit_scale": 1.7, "rope.scaling.finetuned": True}, d=10, tied=False, n_in=72)
