"""Mellum 2 (JetBrains 2026): Qwen 3's mixture (modeling_qwen3_moe.py) with windows, whose layers are rotated without YaRN."""
from mixtures import *
from families import scaled_frequencies


def mellum(k, w, tokens, n_ctx):
    eps, d, window, every = (k("attention.layer_norm_rms_epsilon"), k("attention.key_length", 12), k("attention.sliding_window", 0),
                             k("attention.sliding_window_pattern", 4))
    far, near = scaled_frequencies(k, d), (inverse_frequencies(d, k("rope.freq_base", 10000.0)), 1.0)

    def attend(b, h, l):
        local = window > 0 and (every[l] if isinstance(every, list) else (l + 1) % every > 0)
        theta, mag = near if local else far
        q, key, v = queries_keys_values(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v, window=window if local else None)
        return linear(merge_heads(a), b("attn_output"))

    return decoder(k, w, tokens, attend, lambda b, h, l: routed(k, b, h, normal=True))


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 60.0}
nano("mellum", "mellum", 1711, mellum, {**YARN, "attention.sliding_window": 6, "rope.freq_base_swa": 60.0}, n_layer=4, qk_norm="head")
nano("mellum-list", "mellum", 1712, mellum, {**YARN, "attention.key_length": 14, "attention.head_count_kv": 2, "attention.sliding_window": 5,
     "attention.sliding_window_pattern": [False, True, True], "expert_weights_scale": 1.3}, d=14, n_kv=2, n_layer=3, qk_norm="head")
nano("mellum-plain", "mellum", 1713, mellum, {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0}, qk_norm="head")
