"""ERNIE 4.5 (Baidu 2025), after transformers' modeling_ernie4_5.py and _moe.py."""
from mixtures import *
from families import scaled_frequencies
from nano import guess


def ernie(k, w, tokens, n_ctx):
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)))

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        return output_of(b, attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v))

    def feed(b, h, l):
        return swiglu(b, h) if b("ffn_gate_inp") is None else routed(k, b, h, normal=True) + shared(b, h)

    return decoder(k, w, tokens, attend, feed)


gqa = {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.freq_base": 300.0}
nano("ernie4_5", "ernie4_5", 1221, {**gqa, "rope.dimension_count": 8, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, n_kv=2, d=14, dv=10, n_expert=0, tied=True, bias="qkvo")
nano("ernie4_5-moe", "ernie4_5-moe", 1222, {"leading_dense_block_count": 1, "interleave_moe_layer_step": 1, "expert_shared_count": 2,
     "expert_shared_feed_forward_length": 44}, n_dense=1, n_shared=44, choice_bias=True)


def second(w, l):
    if l == 0:
        for part in ("gate_inp", "gate_exps", "up_exps", "down_exps"):
            del w[f"blk.0.ffn_{part}.weight"]
        w.gated(0, 48, 78)


nano("ernie4_5-moe-second", "ernie4_5-moe", 1223, {**gqa, "interleave_moe_layer_step": 2, "expert_weights_scale": 1.3}, n_kv=2, d=14, dv=10,
     extra=second)
nano("ernie4_5-moe-plain", "ernie4_5-moe", 1224, {"expert_gating_func": 1, "expert_weights_norm": True, "expert_group_count": 1, "expert_group_used_count": 1}, fused=True)
nano("ernie4_5-common", "ernie4_5", 1225, {"attention.head_count_kv": 2, "rope.freq_base": 300.0}, n_kv=2, n_expert=0, tied=True)
nano("ernie4_5-ahead", "ernie4_5", 1226, {**gqa, "rope.dimension_count": 8, "nextn_predict_layers": 1}, n_kv=2, d=14, dv=10, n_expert=0, tied=True, draft=1, forward=ernie)
guess("ernie4_5-ahead")
nano("ernie4_5-moe-ahead", "ernie4_5-moe", 1227, {"leading_dense_block_count": 1, "interleave_moe_layer_step": 1, "nextn_predict_layers": 1}, n_dense=1, choice_bias=True, draft=1, forward=ernie)
guess("ernie4_5-moe-ahead", like=0, leading_dense_block_count=1)
