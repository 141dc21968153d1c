"""Qwen 1.5 MoE (Qwen team 2024), after transformers' modeling_qwen2_moe.py."""
from nano import Weights, add, keys_of


def model(name, seed, more={}, n_kv=4, d=12, dv=None, bias="qkv", tied=False, n_expert=6, n_ff=26, n_shared=34, fused=False):
    n_embd, n_head = 48, 4
    w = Weights(seed)
    w.embedding(92, n_embd, tied)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, dv, bias)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.experts(l, n_embd, n_ff, n_expert)
        w.shared_expert(l, n_embd, n_shared)
        w.vector(f"blk.{l}.ffn_gate_inp_shexp.weight", n_embd)
    w.norm("output_norm", n_embd)
    if fused:
        w.fuse_experts()
    add(name, "qwen2moe", {**keys_of(2, n_embd, 78, n_head, 1e-2), "expert_count": n_expert, "expert_used_count": 3, **more}, w)


model("qwen2moe", 1101, {"expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 34}, n_ff=22)
model("qwen2moe-gqa", 1102, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.freq_base": 300.0,
                             "rope.dimension_count": 8, "expert_weights_scale": 1.4, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                             "norm_top_k_prob": False}, n_kv=2, d=14, dv=10, bias="qkvo", tied=True, fused=True, n_shared=78)
model("qwen2moe-no-bias", 1103, {"expert_gating_func": 1, "expert_weights_norm": False, "attention.head_count_kv": 2, "expert_weights_scale": 0.0}, n_kv=2, bias="", n_shared=78)
