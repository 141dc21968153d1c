"""Refact (smallcloudai's modeling_gpt_refact): RMSNorm, ALiBi, SwiGLU, one key head."""
from nano import Weights, add, keys_of


def refact(name, seed, more={}, n_kv=6, d=8, tied=False):
    n_embd, n_head, n_ff = 48, 6, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    add(name, "refact", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w)


refact("refact", 2091, {"attention.head_count_kv": 1}, 1)
refact("refact-others", 2092, {"rope.freq_base": 20000.0, "attention.head_count_kv": 3, "attention.key_length": 10, "attention.max_alibi_bias": 5.0}, 3, 10, True)
refact("refact-plain", 2093)
