"""DBRX (Databricks 2024), after transformers' modeling_dbrx.py."""
from mixtures import *


eps = {"attention.layer_norm_rms_epsilon": None, "attention.layer_norm_epsilon": 1e-2}
nano("dbrx", "dbrx", 1271, {**eps, "attention.clamp_kqv": 0.8, "feed_forward_length": 22, "expert_feed_forward_length": None,
     "attention.head_count_kv": 2, "rope.freq_base": 300.0}, n_kv=2, qkv=True, second="attn_output_norm")
nano("dbrx-sizes", "dbrx", 1272, {**eps, "expert_gating_func": 1, "expert_weights_norm": True, "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8,
     "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_weights_scale": 1.3}, d=14, dv=10, qkv=True, fused=True, tied=True,
     second="attn_output_norm")
