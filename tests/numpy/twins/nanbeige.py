"""Nanbeige 4.2 (Nanbeige LLM Lab 2026; after its modeling_nanbeige.py as llama.cpp follows it): the layers run several times."""
from kin import *


def nanbeige(k, w, tokens, n_ctx):
    eps, runs = k("attention.layer_norm_rms_epsilon"), k("num_loops", 1)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)), w.get("rope_freqs.weight"))
    x = w["token_embd.weight"][tokens]
    for run in range(runs):
        if run and not k("skip_loop_final_norm", False):
            x = rms_norm(x, w["output_norm.weight"], eps)
        for l in range(k("block_count")):
            b = layer(w, l)
            q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
            a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
            x = x + project(b, "attn_output", merge_heads(a))
            h = rms_norm(x, b("ffn_norm"), eps)
            x = x + project(b, "ffn_down", silu(project(b, "ffn_gate", h)) * project(b, "ffn_up", h))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


kin("nanbeige", "nanbeige", nanbeige, 1811, {**sizes(14, 2, 10), "rope.dimension_count": 8, "rope.freq_base": 300.0, "num_loops": 2,
    "skip_loop_final_norm": False}, tied=False)
kin("nanbeige-three", "nanbeige", nanbeige, 1812, {"num_loops": 3, "skip_loop_final_norm": True}, bias="qkv",
    whole=lambda w: w.factors("rope_freqs", 6))
kin("nanbeige-once", "nanbeige", nanbeige, 1813, YARN)
