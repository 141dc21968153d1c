"""Maple (Deep Grove 2026; written from llama.cpp's converter and graph): Qwen 3's mixture, clamped; positions only in layers with a window."""
from mixtures import *


def model(name, seed, pattern, more={}, **named):
    def extra(w, l):
        for part in ("gate", "up"):
            name = f"blk.{l}.ffn_{part}_exps.weight"
            w[name] = w[name] * 2

    nano(name, "maple", seed, {"attention.sliding_window": 6, "attention.sliding_window_pattern": pattern, **more}, n_layer=len(pattern), qk_norm="head", extra=extra, **named)


model("maple", 3301, [True, False, True], {"rope.freq_base": 60.0, "swiglu_clamp_exp": [1.5, 2.0, 1.0]})
model("maple-scaled", 3302, [False, True], {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 900.0, "rope.freq_base_swa": 60.0,
      "rope.dimension_count": 8, "swiglu_clamp_exp": 1.5, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14}, d=14, n_kv=2, bias="qkv")
model("maple-fused", 3303, [True, False], {"rope.dimension_count_swa": 6, "swiglu_clamp_exp": [1.0, 1.5], "expert_feed_forward_length": [22, 22], "expert_gating_func": 1, "expert_weights_norm": True}, fused=True)
model("maple-common", 3304, [True, False, True], {"rope.freq_base": 60.0, "swiglu_clamp_exp": [1.5, 2.0, 1.0], "attention.key_length": 16, "attention.value_length": 16, "attention.head_count_kv": 2,
      "rope.dimension_count": 8}, d=16, n_kv=2, n_expert=8)
