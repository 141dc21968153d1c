"""DeciLM, Llama-Nemotron (Bercovich et al. 2024, Puzzle): Llama's layers with parts of other sizes, replaced or left out."""
from nano import Weights, add, keys_of


def deci(name, seed, n_heads, n_kvs, n_ffs, more={}, d=12, dv=12, bias=False, tied=False, n_factors=0):
    n_embd = 48
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    if n_factors:
        w.factors("rope_freqs", n_factors)
    for l, (n_head, n_kv, n_ff) in enumerate(zip(n_heads, n_kvs or n_heads, n_ffs)):
        b = f"blk.{l}."
        if n_head:
            w.norm(b + "attn_norm", n_embd)
            if n_kv:
                w.attention(l, n_embd, n_head, n_kv, d, dv, "qkvo" if bias else "")
            else:
                w.matrix(b + "attn_output", n_embd, n_embd)
        if n_ff:
            w.norm(b + "ffn_norm", n_embd)
            w.gated(l, n_embd, n_ff, bias)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(len(n_heads), n_embd, n_ffs, n_heads, 1e-2), **({"attention.head_count_kv": n_kvs} if n_kvs else {}), **more}
    add(name, "deci", keys, w)


deci("deci", 2171, [4, 4, 0, 0, 4], [2, 0, 0, 0, 1], [76, 0, 60, 0, 76], {"rope.freq_base": 300.0})
deci("deci-others", 2172, [4, 2], [2, 1], [76, 60], {"attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8,
                                                     "rope.scaling.attn_factor": 1.3}, 14, 10, True, True, 4)
deci("deci-plain", 2173, [4, 4], None, [76, 76])
