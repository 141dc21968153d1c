"""Jais (Sengupta et al. 2023; modeling_jais): ALiBi, scores divided by the head's size, SwiGLU with biases."""
from nano import Weights, add, keys_of


def jais(name, seed, more={}, n_kv=6, d=8, tied=False):
    n_embd, n_head, n_ff = 48, 6, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=3, bias=True)
        w.matrix(b + "attn_output", n_embd, n_head * d, bias=True)
        w.norm(b + "ffn_norm", n_embd, True)
        w.gated(l, n_embd, n_ff, True)
    w.norm("output_norm", n_embd, True)
    add(name, "jais", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w)


jais("jais", 2161, {"attention.max_alibi_bias": 8.0})
jais("jais-others", 2162, {"rope.freq_base": 20000.0, "attention.max_alibi_bias": 5.0, "attention.head_count_kv": 2, "attention.key_length": 10}, 2, 10, True)
jais("jais-plain", 2163)
