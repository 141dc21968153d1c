"""Ling 2 (Ling team 2025), after the authors' modeling_bailing_moe_v2.py."""
from families import scaled_frequencies
from mixtures import *
from nano import guess


def ling(k, w, tokens, n_ctx):
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)))
    eps = k("attention.layer_norm_rms_epsilon")

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        q, key = (rotate(rms_norm(x, b(f"attn_{name}_norm"), eps), theta, True, mag) for name, x in (("q", q), ("k", key)))
        return output_of(b, attention(q, key, v))

    def feed(b, h, l):
        return swiglu(b, h) if b("ffn_gate_inp") is None else routed(k, b, h, gating=2) + shared(b, h)

    return decoder(k, w, tokens, attend, feed)


nano("bailingmoe2", "bailingmoe2", 1171, {"expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_gating_func": 2,
     "leading_dense_block_count": 1, "expert_shared_count": 1, "expert_shared_feed_forward_length": 30, "expert_group_count": 3,
     "expert_group_used_count": 2, "rope.dimension_count": 8, "attention.key_length": 14, "attention.value_length": 10, "attention.head_count_kv": 2, "nextn_predict_layers": 2},
     n_kv=2, d=14, dv=10, qkv=True, qk_norm="head", n_dense=1, n_shared=30, choice_bias=True, draft=2)
guess("bailingmoe2")
nano("bailingmoe2-plain", "bailingmoe2", 1172, {"rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
     "expert_shared_count": 2}, qkv=True, qk_norm="head", n_shared=44, fused=True, tied=True, bias="qkvo")
nano("bailingmoe2-softmax", "bailingmoe2", 1173, {"expert_gating_func": 1, "expert_shared_count": 1}, qkv=True, qk_norm="head",
     n_shared=22)
nano("bailingmoe2-ahead", "bailingmoe2", 1174, {"expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_gating_func": 2,
     "leading_dense_block_count": 1, "expert_shared_count": 1, "rope.dimension_count": 6, "nextn_predict_layers": 1}, qkv=True, qk_norm="head", n_dense=1,
     n_shared=22, choice_bias=True, draft=1, forward=ling)
guess("bailingmoe2-ahead", norm="layer_output_norm", leading_dense_block_count=0)     # the name that files have for the last norm of the authors' layer
