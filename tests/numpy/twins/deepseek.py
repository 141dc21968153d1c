"""DeepSeek MoE (DeepSeek-AI 2024), after the authors' modeling_deepseek.py."""
from nano import Weights, add, keys_of


def model(name, seed, more={}, n_kv=4, d=12, dv=None, bias="", tied=False, n_dense=1, n_shared=2, fused=False, factors=0):
    n_embd, n_head, n_expert, n_each = 48, 4, 6, 22
    w = Weights(seed)
    w.embedding(92, n_embd, tied)
    if factors:
        w.factors("rope_freqs", factors)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, dv, bias)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        if l < n_dense:
            w.gated(l, n_embd, 78)
            continue
        w.experts(l, n_embd, n_each, n_expert)
        w.shared_expert(l, n_embd, n_shared * n_each)
    w.norm("output_norm", n_embd)
    if fused:
        w.fuse_experts()
    add(name, "deepseek", {**keys_of(2, n_embd, 78, n_head, 1e-2), "expert_count": n_expert, "expert_used_count": 3, "expert_shared_count": n_shared,
                           "expert_feed_forward_length": n_each, **more}, w)


model("deepseek", 1131, {"leading_dense_block_count": 1, "expert_weights_scale": 1.3, "expert_gating_func": 1, "rope.scaling.type": "none"})
model("deepseek-gqa", 1132, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.freq_base": 300.0,
                             "rope.dimension_count": 8, "rope.scaling.factor": 3.0, "attention.scale": 0.4, "expert_weights_norm": False},
      n_kv=2, d=14, dv=10, bias="qkvo", tied=True, n_dense=0, fused=True, factors=4)
