"""Talkie 13B (2026; after the authors' modelling code): norms without weights, the embedding added again after each layer."""
from kin import *


def talkie(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    first = x = rms_norm(w["token_embd.weight"][tokens], None, eps)
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, None, eps))
        q = rms_norm(rotate(q, theta, True, mag), None, eps) * b("attn_q_norm")[None]
        key = rms_norm(rotate(key, theta, True, mag), None, eps)
        x = x + project(b, "attn_output", merge_heads(attention(q, key, v)))
        h = rms_norm(x, None, eps)
        x = x + project(b, "ffn_down", silu(project(b, "ffn_gate", h)) * project(b, "ffn_up", h)) + b("layer_output_scale") * first
    return linear(rms_norm(x, None, eps), w["output.weight"]) * k("logit_scale")


def parts(w, l):
    w.vector(f"blk.{l}.attn_q_norm.weight", (N_HEAD, 1), 0.3, 1)
    w.vector(f"blk.{l}.layer_output_scale.weight", 1, 0.3, 0.6)


def model(name, seed, more):
    case = kin(name, "talkie", talkie, seed, {"logit_scale": 0.7, **more}, tied=False, norms=(), parts=parts)
    del case.tensors["output_norm.weight"]


model("talkie", 1681, {**sizes(14, 2), "rope.dimension_count": 8, "rope.freq_base": 300.0})
model("talkie-plain", 1682, YARN)
