"""Snowflake Arctic (Snowflake 2024), after the authors' modeling_arctic.py."""
from mixtures import *
from families import scaled_frequencies


def arctic(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = queries_keys_values(k, b, rms_norm(x, b("attn_norm"), eps))
        y = x + output_of(b, attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v))
        y = y + swiglu(b, rms_norm(y, b("ffn_norm"), eps))
        x = y + routed(k, b, rms_norm(x, b("ffn_norm_exps"), eps), normal=True)
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def beside(w, l):
    w.gated(l, 48, 48)
    w.norm(f"blk.{l}.ffn_norm_exps", 48)


nano("arctic", "arctic", 1281, arctic, {"feed_forward_length": 22, "expert_feed_forward_length": None}, extra=beside)
nano("arctic-sizes", "arctic", 1282, arctic, {"expert_gating_func": 1, "expert_weights_norm": True, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8,
     "rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_weights_scale": 1.3, 
     "expert_gating_func": 1}, n_kv=2, d=14, dv=10, fused=True, tied=True, bias="qkvo", extra=beside)
