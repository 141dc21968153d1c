"""PLaMo 13B (Preferred Networks; modeling_plamo): RMSNorm once, attention and SwiGLU side by side."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", n_embd // n_head)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = separate_qkv(b, h, n_head, k("attention.head_count_kv", n_head))
        a = merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))
        x = x + linear(a, b("attn_output")) + swiglu(b, h)
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def plamo(name, seed, more={}, n_kv=4, d=12, tied=False):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    add(name, "plamo", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w, forward)


plamo("plamo", 2131, {"attention.head_count_kv": 1, "rope.freq_base": 300.0}, 1)
plamo("plamo-others", 2132, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                             "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, 2, 14, True)
plamo("plamo-plain", 2133)
