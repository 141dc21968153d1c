"""Laguna (Poolside 2026; the authors' modeling_laguna.py): a softplus gate on attention, experts as in DeepSeek 3."""
from kin import *


def model(name, seed, more, heads, kv, d=14, n_dense=1, bias=True, tied=False, n=4):
    w, n_expert, n_each, n_shared = Weights(seed), 6, 22, 26
    w.embedding(N_VOCAB, N_EMBD, tied)
    of = lambda v, l: v[l] if isinstance(v, list) else v
    for l in range(n):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.attention(l, N_EMBD, of(heads, l), of(kv, l), d)
        w.norm(b + "attn_q_norm", d)
        w.norm(b + "attn_k_norm", d)
        w.matrix(b + "attn_gate", of(heads, l) * (1 if more.get("attention.sliding_window") else d), N_EMBD)
        w.norm(b + "ffn_norm", N_EMBD)
        if l < n_dense:
            w.gated(l, N_EMBD, N_FF)
            continue
        w.experts(l, N_EMBD, n_each, n_expert)
        w.shared_expert(l, N_EMBD, n_shared)
        if bias:
            w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(n, N_EMBD, N_FF, heads, EPS), "attention.head_count_kv": kv, "attention.key_length": d, "expert_count": n_expert, "expert_used_count": 3,
            "expert_feed_forward_length": n_each, "expert_shared_feed_forward_length": n_shared, "leading_dense_block_count": n_dense, **more}
    add(name, "laguna", {key: v for key, v in keys.items() if v is not None}, w)


model("laguna", 1701, {"attention.sliding_window": 6, "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 8,
      "rope.dimension_count_swa": 14, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 1.5, "expert_shared_count": 1,
      "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "attention.value_length": 14}, [4, 6, 6, 6, 4], 2, n=5)
model("laguna-all", 1702, {"expert_gating_func": 1, "rope.freq_base": 300.0, "attention.head_count_kv": None}, 4, 4, n_dense=0, bias=False, tied=True, n=2)
model("laguna-list", 1703, {"attention.sliding_window": 5, "attention.sliding_window_pattern": [True, False, True]}, 4, 1, n=3)
