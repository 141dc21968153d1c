"""Maincoder 1B (Maincode 2025; the authors' modeling_maincoder.py): Q and K normalised after the rotation."""
from kin import *


def maincoder(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        q = rms_norm(rotate(q, theta, False, mag), b("attn_q_norm"), eps)
        key = rms_norm(rotate(key, theta, False, mag), b("attn_k_norm"), eps)
        x = x + project(b, "attn_output", merge_heads(attention(q, key, v)))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + project(b, "ffn_down", silu(project(b, "ffn_gate", h)) * project(b, "ffn_up", h))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


kin("maincoder", "maincoder", maincoder, 1661, {**sizes(14, 2, 10), "rope.dimension_count": 8, "rope.freq_base": 300.0}, qk_norm=True)
kin("maincoder-plain", "maincoder", maincoder, 1662, YARN, tied=False, qk_norm=True)
