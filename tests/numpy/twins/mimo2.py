"""MiMo V2 Flash (Xiaomi 2025), after the authors' modeling_mimo_v2_flash.py."""
from mixtures import *
from nano import guess


def sinks(w, l):
    w.vector(f"blk.{l}.attn_sinks.weight", 4, 1.0)


def fewer(w, l):
    sinks(w, l)
    if l == 1:
        for part, n in (("k", 14), ("v", 10)):
            w.matrix(f"blk.1.attn_{part}", 2 * n, 48, gain=1.5)


nano("mimo2", "mimo2", 1241, {"attention.head_count": [4, 4, 4, 4], "attention.head_count_kv": [4, 2, 4, 4], "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "rope.freq_base_swa": 50.0, "attention.sliding_window": 6,
     "attention.sliding_window_pattern": [0, 1, 1, 0], "attention.value_scale": 0.7, "leading_dense_block_count": 1, "expert_gating_func": 2,
     "expert_group_count": 1, "expert_group_used_count": 1, "nextn_predict_layers": 1}, d=14, dv=10, n_layer=3, n_dense=1,
     choice_bias=True, extra=fewer, draft=1)
guess("mimo2")
guess("mimo2", layer=2, keys={"nextn_predict_layers": 3, "block_count": 6})
nano("mimo2-fused", "mimo2", 1242, {"attention.head_count": [4, 4], "attention.key_length": 12, "attention.sliding_window": 5,
     "attention.sliding_window_pattern": [True, False], "expert_group_count": 3, "expert_group_used_count": 2, "expert_weights_scale": 1.3,
     "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, qkv=True, fused=True, tied=True)
nano("mimo2-softmax", "mimo2", 1243, {"attention.head_count": [4, 4], "attention.key_length": 12, "attention.sliding_window": 5, "rope.freq_base": 200.0,
     "attention.sliding_window_pattern": [True, False], "expert_gating_func": 1, "expert_weights_norm": True}, extra=sinks)
