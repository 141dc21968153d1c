"""Orion 14B (Chen et al. 2024; modeling_orion): Llama's layers with LayerNorm."""
from nano import Weights, add, keys_of


def orion(name, seed, more={}, n_kv=4, d=12, tied=False):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd, True)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.norm(f"blk.{l}.ffn_norm", n_embd, True)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd, True)
    add(name, "orion", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w)


orion("orion", 2121, {"attention.head_count_kv": 4, "rope.freq_base": 300.0, "tensor_data_layout": "Meta AI original pth"})
orion("orion-others", 2122, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                             "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, 2, 14, True)
orion("orion-plain", 2123)
