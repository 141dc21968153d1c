"""Command R (Cohere; transformers' modeling_cohere.py): parallel parts, LayerNorm without bias, rotation of adjacent elements."""
from families import swiglu
from kin import *


def command_r(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_norm(x, b("attn_norm"), None, eps)
        q, key, v = qkv(k, b, h)
        if b("attn_q_norm") is not None:
            q, key = layer_norm(q, b("attn_q_norm"), None, eps), layer_norm(key, b("attn_k_norm"), None, eps)
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = x + project(b, "attn_output", merge_heads(a)) + swiglu(b, h)
    return k("logit_scale", 1.0) * linear(layer_norm(x, w["output_norm.weight"], None, eps), w["token_embd.weight"])


def model(name, seed, more={}, n_norm=0, **named):
    def parts(w, l):
        if n_norm:
            w.vector(f"blk.{l}.attn_q_norm.weight", (N_HEAD, n_norm), shift=1)
            w.vector(f"blk.{l}.attn_k_norm.weight", (more["attention.head_count_kv"], n_norm), shift=1)

    kin(name, "command-r", command_r, seed, more, norms=("attn_norm",), layer_norm=True, parts=parts, **named)


model("command-r", 241, {"logit_scale": 0.6, "rope.scaling.type": "none", "rope.freq_base": 300.0})
model("command-r-plus", 242, {**sizes(14, 2, 10), "logit_scale": 2.0, "rope.dimension_count": 8}, n_norm=14)
model("command-r-yarn", 243, {**sizes(16, 1), **YARN}, bias="qkvo")
