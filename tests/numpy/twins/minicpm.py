"""MiniCPM (Hu et al. 2024), after the authors' modeling_minicpm.py."""
from mixtures import *
from families import scaled_frequencies


def minicpm(k, w, tokens, n_ctx):
    eps, n_embd, n_layer = k("attention.layer_norm_rms_epsilon"), k("embedding_length"), k("block_count")
    long = n_ctx > k("rope.scaling.original_context_length", k("context_length"))
    factors = w.get("rope_factors_long.weight" if long else "rope_factors_short.weight")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)), factors)
    part = k("residual_scale", 1.4 / math.sqrt(n_layer))
    x = w["token_embd.weight"][tokens] * k("embedding_scale", 12)
    for l in range(n_layer):
        b = layer(w, l)
        q, key, v = queries_keys_values(k, b, rms_norm(x, b("attn_norm"), eps))
        x = x + part * output_of(b, attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + part * (swiglu(b, h) if b("ffn_gate_inp") is None else routed(k, b, h, normal=True))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps)) / k("logit_scale", n_embd / 256)


scales = {"embedding_scale": 3.0, "residual_scale": 0.7, "logit_scale": 0.6}


def biases(w, l):
    for part, n in (("gate", 78), ("up", 78), ("down", 48)):
        w.vector(f"blk.{l}.ffn_{part}.bias", n)


nano("minicpm", "minicpm", 1201, minicpm, {}, n_expert=0, tied=True)
nano("minicpm-long-factors", "minicpm", 1202, minicpm, {**scales, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 32},
     n_kv=2, d=14, dv=10, n_expert=0, bias="qkvo", factors={"rope_factors_long": 4, "rope_factors_short": 4}, extra=biases)
nano("minicpm-short-factors", "minicpm", 1203, minicpm, scales, n_expert=0, factors={"rope_factors_long": 6, "rope_factors_short": 6})
nano("minicpm-moe", "minicpm", 1204, minicpm, {**scales, "feed_forward_length": 22, "expert_feed_forward_length": None})
nano("minicpm-moe-fused", "minicpm", 1205, minicpm, {**scales, "feed_forward_length": 26, "expert_feed_forward_length": None, "expert_gating_func": 1, "expert_weights_norm": True},
     n_each=26, fused=True)
