"""Gemma 3 (Gemma Team 2025): norms around each part, normalised queries and keys, local layers with a base of their own."""
import math

from kin import *


def gemma3(k, w, tokens, n_ctx):
    d, n_layer, eps = k("attention.key_length"), k("block_count"), k("attention.layer_norm_rms_epsilon", 1e-6)
    heads = k("attention.head_count")
    base = k("rope.freq_base", k("rope.global.freq_base", 1e6))
    theta, mag = scaled_frequencies(lambda key, *other: base if key == "rope.freq_base" else k(key, *other), d)
    if k("mm.tokens_per_image", 0) and not k("rope.scaling.factor", 0):  # trained with it, and not said by some files
        theta = theta / 8
    local = inverse_frequencies(d, k("rope.freq_base_swa", k("rope.local.freq_base", 10000.0)))
    window, every = k("attention.sliding_window", 0), k("attention.sliding_window_pattern", 6)
    near = every if isinstance(every, list) else [(l + 1) % every > 0 for l in range(n_layer)]
    scalar = k("embedding_length") / heads if n_layer == 62 else d  # query_pre_attn_scalar
    x = w["token_embd.weight"][tokens] * math.sqrt(k("embedding_length"))
    for l in range(n_layer):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        turn = (local, True, 1.0) if window and near[l] else (theta, True, mag)
        a = attention(rotate(q, *turn), rotate(key, *turn), v, scalar**-0.5, window if window and near[l] else None)
        x = x + rms_norm(project(b, "attn_output", merge_heads(a)), b("post_attention_norm"), eps)
        h = rms_norm(x, b("ffn_norm"), eps)
        f = project(b, "ffn_down", gelu(project(b, "ffn_gate", h)) * project(b, "ffn_up", h))
        x = x + rms_norm(f, b("post_ffw_norm"), eps)
    y = tied_output(w, rms_norm(x, w["output_norm.weight"], eps))
    cap = k("final_logit_softcapping", 0)
    return cap * np.tanh(y / cap) if cap else y


def model(name, seed, more, **named):
    kin(name, "gemma3", gemma3, seed, more, qk_norm=True,
        norms=("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), **named)


windows = {"attention.sliding_window": 7, "rope.freq_base": 300.0}
model("gemma3", 211, {**sizes(16, 2), **windows}, n_layer=7)
model("gemma3-full", 212, {**sizes(16), "attention.sliding_window": 0, "final_logit_softcapping": 0.8}, tied=False)
model("gemma3-period", 213, {**sizes(14, 1, 10), **YARN, **windows, "attention.sliding_window_pattern": 2,
                             "rope.freq_base_swa": 50.0}, n_layer=4)
model("gemma3-linear", 214, {**sizes(16, 2), **windows, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0,
                             "attention.sliding_window_pattern": [False, True, True]}, n_layer=3)
model("gemma3-ollama", 215, {**sizes(16, 2), "rope.local.freq_base": 20.0, "rope.global.freq_base": 90.0, "mm.tokens_per_image": 256,
                             "attention.layer_norm_rms_epsilon": None, "attention.sliding_window": 5,
                             "attention.sliding_window_pattern": [True, False, True]}, n_layer=3)
model("gemma3-ollama-scaled", 216, {**sizes(12), "mm.tokens_per_image": 256, "rope.scaling.factor": 2.0})
model("gemma3-27b", 217, {**sizes(6, 1), **windows}, n_layer=62)
