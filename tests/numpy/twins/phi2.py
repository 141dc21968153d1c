"""Phi 1, 1.5, 2 (Li et al. 2023; Microsoft's modeling_phi): one LayerNorm for attention and feed-forward, side by side."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    n_kv = k("attention.head_count_kv", n_head)
    d = k("attention.key_length", n_embd // n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_normed(b, x, "attn_norm", eps)
        q, key, v = separate_qkv(b, h, n_head, n_kv) if b("attn_q") is not None else fused_qkv(b, h, n_head, n_kv, d)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + dense(b, merge_heads(a), "attn_output") + gelu_feed_forward(b, h)
    return linear(final_norm(w, x, eps), w.get("output.weight", w["token_embd.weight"]), w.get("output.bias"))


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
    add(name, "phi2", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w, forward)


phi2("phi2", 2001, {"rope.dimension_count": 6, "attention.head_count_kv": 4, "rope.freq_base": 300.0})
phi2("phi2-apart", 2002, {"rope.dimension_count": 8, "attention.head_count_kv": 2, "attention.key_length": 14}, 2, 14, "qkv", False)
phi2("phi2-fused-gqa", 2003, {"attention.head_count_kv": 2}, 2)
phi2("phi2-apart-no-biases", 2004, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, fused=False, tied=True)
