"""EXAONE 3 (LG AI Research 2024, the authors' modeling_exaone.py): a Llama; halves of a head are rotated."""
from families import swiglu
from kin import *


def exaone(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)), w.get("rope_freqs.weight"))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + project(b, "attn_output", merge_heads(a))
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, more={}, factors=0, **named):
    kin(name, "exaone", exaone, seed, more, whole=lambda w: factors and w.factors("rope_freqs", factors), **named)


model("exaone", 321, {**sizes(None, 2), "rope.freq_base": 300.0, "rope.dimension_count": 12, "attention.layer_norm_epsilon": 1e-5})
model("exaone-freqs", 322, sizes(16, 2), factors=8, tied=False)
model("exaone-yarn", 323, {**sizes(14, 1, 10), **YARN, "rope.dimension_count": 8}, bias="qkvo")
model("exaone-plain", 324)
