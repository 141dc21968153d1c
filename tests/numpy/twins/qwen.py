"""Qwen 1 (Bai et al. 2023; modeling_qwen): a bias on the matrix of Q, K and V, nowhere else."""
from nano import Weights, add, keys_of


def qwen1(name, seed, more={}, tied=False):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.matrix(f"blk.{l}.attn_qkv", 3 * n_embd, n_embd, gain=1.5, bias=True)
        w.matrix(f"blk.{l}.attn_output", n_embd, n_embd)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    add(name, "qwen", {**keys_of(2, n_embd, 2 * n_ff, n_head, 1e-2), **more}, w)


qwen1("qwen", 2111, {"rope.dimension_count": 12, "rope.freq_base": 300.0})
qwen1("qwen-tied", 2112, {"rope.dimension_count": 8, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0,
                          "rope.scaling.attn_factor": 1.3}, True)
qwen1("qwen-plain", 2113)
