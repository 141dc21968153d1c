"""DBRX (Databricks 2024), after transformers' modeling_dbrx.py."""
from mixtures import *
from families import scaled_frequencies


def dbrx(k, w, tokens, n_ctx):
    eps, limit = k("attention.layer_norm_epsilon"), k("attention.clamp_kqv", 0.0) or np.inf
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = (np.clip(part, -limit, limit) for part in queries_keys_values(k, b, layer_norm(x, b("attn_norm"), None, eps)))
        x = x + output_of(b, attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))
        x = x + routed(k, b, layer_norm(x, b("attn_output_norm"), None, eps), normal=True)
    return tied_output(w, layer_norm(x, w["output_norm.weight"], None, eps))


eps = {"attention.layer_norm_rms_epsilon": None, "attention.layer_norm_epsilon": 1e-2}
nano("dbrx", "dbrx", 1271, dbrx, {**eps, "attention.clamp_kqv": 0.8, "feed_forward_length": 22, "expert_feed_forward_length": None,
     "attention.head_count_kv": 2, "rope.freq_base": 300.0}, n_kv=2, qkv=True, second="attn_output_norm")
nano("dbrx-sizes", "dbrx", 1272, dbrx, {**eps, "expert_gating_func": 1, "expert_weights_norm": True, "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8,
     "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_weights_scale": 1.3}, d=14, dv=10, qkv=True, fused=True, tied=True,
     second="attn_output_norm")
