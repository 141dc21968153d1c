"""Hunyuan (Tencent 2025), after transformers' modeling_hunyuan_v1_dense.py and _moe.py."""
from mixtures import *
from families import scaled_frequencies


def hunyuan(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    d, alpha = k("attention.key_length", 12), k("rope.scaling.alpha", 0)
    base = k("rope.freq_base", 10000.0) * (alpha ** (d / (d - 2)) if alpha else 1)  # NTK-aware
    theta, mag = scaled_frequencies(lambda key, *other: base if key == "rope.freq_base" else k(key, *other), k("rope.dimension_count", k("attention.key_length", 12)), w.get("rope_freqs.weight"))

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        q = rms_norm(rotate(q, theta, True, mag), b("attn_q_norm"), eps)
        key = rms_norm(rotate(key, theta, True, mag), b("attn_k_norm"), eps)
        return output_of(b, attention(q, key, v))

    def feed(b, h, l):
        return swiglu(b, h) if b("ffn_gate_inp") is None else routed(k, b, h, normal=True) + shared(b, h)

    return decoder(k, w, tokens, attend, feed)


nano("hunyuan-moe", "hunyuan-moe", 1191, hunyuan, {"expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 30,
     "expert_shared_count": 1, "rope.scaling.type": "none", "rope.scaling.factor": 1.0, "expert_gating_func": 1, "expert_weights_norm": True}, qk_norm="head", n_shared=30)
nano("hunyuan-moe-gqa", "hunyuan-moe", 1192, hunyuan, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "expert_feed_forward_length": None, "expert_weights_scale": 1.3, "rope.scaling.factor": 3.0,
     "feed_forward_length": 26}, n_kv=2, d=14, dv=10, qk_norm="head", n_each=26, n_shared=26, fused=True, tied=True, bias="qkvo",
     factors={"rope_freqs": 4})
nano("hunyuan-dense", "hunyuan-dense", 1193, hunyuan, {"attention.head_count_kv": 2, "rope.freq_base": 300.0}, n_kv=2, qk_norm="head", n_expert=0)
nano("hunyuan_vl", "hunyuan_vl", 1194, hunyuan, {"attention.key_length": 14, "rope.freq_base": 30.0, "rope.scaling.alpha": 6.0,
     "rope.scaling.type": "none", "rope.scaling.factor": 1.0, "rope.dimension_sections": [2, 2, 2, 1]}, d=14, qk_norm="head", n_expert=0)
# As published: four equal sections. At a token of text all four have its position, so that it is a plain rotation.
nano("hunyuan_vl-equal", "hunyuan_vl", 1196, hunyuan, {"attention.key_length": 16, "attention.value_length": 16, "rope.freq_base": 30.0, "rope.scaling.alpha": 6.0,
     "rope.scaling.type": "none", "rope.scaling.factor": 1.0, "rope.scaling.original_context_length": 64, "rope.dimension_sections": [2, 2, 2, 2]}, d=16,
     qk_norm="head", n_expert=0)
nano("hunyuan_vl-plain", "hunyuan_vl", 1195, hunyuan, {"rope.scaling.alpha": 0.0}, qk_norm="head", n_expert=0)
nano("hunyuan-moe-common", "hunyuan-moe", 1197, hunyuan, {"attention.head_count_kv": 2, "rope.freq_base": 300.0, "feed_forward_length": 22,
     "expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 30, "expert_shared_count": 1}, n_kv=2, qk_norm="head", n_shared=30)
