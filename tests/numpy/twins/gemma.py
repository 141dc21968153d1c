"""Gemma (Gemma Team 2024): embeddings times sqrt(width), GEGLU, tied output, heads of a size of their own."""
import math

from kin import *


def gemma(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, head_size(k))
    x = w["token_embd.weight"][tokens] * math.sqrt(k("embedding_length"))
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + project(b, "attn_output", merge_heads(a))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + project(b, "ffn_down", gelu(project(b, "ffn_gate", h)) * project(b, "ffn_up", h))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["token_embd.weight"])


kin("gemma", "gemma", gemma, 201, sizes(d=16, n_kv=1))
kin("gemma-plain", "gemma", gemma, 202)
kin("gemma-yarn", "gemma", gemma, 203, {**sizes(d=14, n_kv=2, dv=10), **YARN})
