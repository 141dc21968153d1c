"""Qwen 1 (Bai et al. 2023; modeling_qwen): a bias on the matrix of Q, K and V, nowhere else."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_rms_epsilon")
    d = n_embd // n_head
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = fused_qkv(b, rms_norm(x, b("attn_norm"), eps), n_head, n_head, d)
        x = x + linear(merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)), b("attn_output"))
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


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
    add(name, "qwen", {**keys_of(2, n_embd, 2 * n_ff, n_head, 1e-2), **more}, w, forward)


qwen1("qwen", 2111, {"rope.dimension_count": 12, "rope.freq_base": 300.0})
qwen1("qwen-tied", 2112, {"rope.dimension_count": 8, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0,
                          "rope.scaling.attn_factor": 1.3}, True)
qwen1("qwen-plain", 2113)
