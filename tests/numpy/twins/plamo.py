"""PLaMo 13B (Preferred Networks; modeling_plamo): RMSNorm once, attention and SwiGLU side by side."""
from nano import Weights, add, keys_of


def plamo(name, seed, more={}, n_kv=4, d=12, tied=False):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    add(name, "plamo", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w)


plamo("plamo", 2131, {"attention.head_count_kv": 1, "rope.freq_base": 300.0}, 1)
plamo("plamo-others", 2132, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                             "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, 2, 14, True)
plamo("plamo-plain", 2133)
