"""Phi 1, 1.5, 2 (Li et al. 2023; Microsoft's modeling_phi): one LayerNorm for attention and feed-forward, side by side."""
from nano import Weights, add, keys_of


def phi2(name, seed, more={}, n_kv=4, d=12, apart="", fused=True, tied=False):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd)
    if not tied:
        w.matrix("output", 88, n_embd, bias=fused)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        if fused:
            w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5, bias=True)
            w.matrix(b + "attn_output", n_embd, n_head * d, bias=True)
        else:
            w.attention(l, n_embd, n_head, n_kv, d, bias=apart + "o")
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, "phi2", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w)


phi2("phi2", 2001, {"rope.dimension_count": 6, "attention.head_count_kv": 4, "rope.freq_base": 300.0})
phi2("phi2-apart", 2002, {"rope.dimension_count": 8, "attention.head_count_kv": 2, "attention.key_length": 14}, 2, 14, "qkv", False)
phi2("phi2-fused-gqa", 2003, {"attention.head_count_kv": 2}, 2)
phi2("phi2-apart-no-biases", 2004, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, fused=False, tied=True)
