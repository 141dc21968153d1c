"""MiniMax M2 (MiniMax 2025), after transformers' modeling_minimax_m2.py."""
from mixtures import *


nano("minimax-m2", "minimax-m2", 1231, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "expert_gating_func": 2}, n_kv=2, d=14, qk_norm="row", choice_bias=True)
nano("minimax-m2-plain", "minimax-m2", 1232, {"expert_feed_forward_length": None, "feed_forward_length": 26, "expert_weights_scale": 1.3,
     "attention.value_length": 10, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, dv=10, n_each=26, qk_norm="row", fused=True, tied=True)
nano("minimax-m2-softmax", "minimax-m2", 1233, {"expert_gating_func": 1, "expert_weights_norm": True}, qk_norm="row")
nano("minimax-m2-common", "minimax-m2", 1234, {"feed_forward_length": 22, "expert_gating_func": 2, "attention.head_count_kv": 2, "attention.key_length": 14,
     "attention.value_length": 14, "rope.dimension_count": 8, "rope.freq_base": 300.0}, n_kv=2, d=14, qk_norm="row", choice_bias=True)
