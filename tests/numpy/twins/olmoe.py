"""OLMoE (Muennighoff et al. 2024), after transformers' modeling_olmoe.py."""
from mixtures import *
from families import scaled_frequencies


def olmoe(k, w, tokens, n_ctx):
    eps, n_head, n_kv = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("attention.head_count_kv", 4)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)))
    clip = k("attention.clamp_kqv", 0.0) or np.inf

    def attend(b, h, l):
        q = np.clip(rms_norm(linear(h, b("attn_q")), b("attn_q_norm"), eps), -clip, clip)
        key = np.clip(rms_norm(linear(h, b("attn_k")), b("attn_k_norm"), eps), -clip, clip)
        q, key, v = split_heads(q, n_head), split_heads(key, n_kv), split_heads(np.clip(linear(h, b("attn_v")), -clip, clip), n_kv)
        return output_of(b, attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))

    return decoder(k, w, tokens, attend, lambda b, h, l: routed(k, b, h))


nano("olmoe", "olmoe", 1181, olmoe, {"feed_forward_length": 22, "expert_feed_forward_length": None}, qk_norm="row")
nano("olmoe-gqa", "olmoe", 1182, olmoe, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_gating_func": 1,
     "attention.clamp_kqv": 0.8, "expert_weights_scale": 1.3}, n_kv=2, d=14, dv=10, qk_norm="row", fused=True, tied=True)
