"""Flint (RecursiveSI 2026; after transformers' modular_flint.py): Qwen 3's mixture with sinks, windows, and a shared expert."""
from mixtures import *


def model(name, seed, pattern, more={}, n_dense=1, **named):
    nano(name, "flint", seed, {"attention.sliding_window": 5, "attention.sliding_window_pattern": pattern, "expert_shared_feed_forward_length": 26, "leading_dense_block_count": n_dense or None, **more},
         n_layer=len(pattern), qk_norm="head", n_shared=26, n_dense=n_dense, extra=lambda w, l: w.vector(f"blk.{l}.attn_sinks.weight", 4, 1.0), **named)


model("flint", 3711, [False, True, True], {"rope.freq_base": 60.0})
model("flint-bias", 3712, [False, True], {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 900.0, "expert_weights_norm": False,
      "expert_weights_scale": 1.5, "expert_gating_func": 2, "expert_shared_count": 1, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 10,
      "attention.rope_pattern": [True, False]}, d=14, n_kv=2, tied=True, n_dense=0, choice_bias=True)
model("flint-fused", 3713, [True, False], fused=True, qkv=True)
