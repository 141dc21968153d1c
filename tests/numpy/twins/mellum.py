"""Mellum 2 (JetBrains 2026): Qwen 3's mixture (modeling_qwen3_moe.py) with windows, whose layers are rotated without YaRN."""
from mixtures import *


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 60.0}
nano("mellum", "mellum", 1711, {**YARN, "attention.sliding_window": 6, "rope.freq_base_swa": 60.0}, n_layer=4, qk_norm="head")
nano("mellum-list", "mellum", 1712, {**YARN, "attention.key_length": 14, "attention.head_count_kv": 2, "attention.sliding_window": 5,
     "attention.sliding_window_pattern": [False, True, True], "expert_weights_scale": 1.3}, d=14, n_kv=2, n_layer=3, qk_norm="head")
nano("mellum-plain", "mellum", 1713, {"expert_gating_func": 1, "expert_weights_norm": True, "rope.scaling.type": "linear", "rope.scaling.factor": 2.0}, qk_norm="head")
