"""Seed-OSS (ByteDance; transformers' modeling_seed_oss.py): a Llama with biases on queries, keys and values."""
from families import swiglu
from kin import *


def seed_oss(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, head_size(k))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + project(b, "attn_output", merge_heads(a))
        x = x + swiglu(b, rms_norm(x, b("post_attention_norm"), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, more={}, **named):
    kin(name, "seed_oss", seed_oss, seed, more, norms=("attn_norm", "post_attention_norm"), **named)


model("seed_oss", 301, {**sizes(16, 2), "rope.freq_base": 300.0}, bias="qkv", tied=False)
model("seed_oss-plain", 302)
model("seed_oss-yarn", 303, {**sizes(14, 1, 10), **YARN}, bias="qkvo")
