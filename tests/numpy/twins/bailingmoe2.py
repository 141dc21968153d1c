"""Ling 2 (Ling team 2025), after the authors' modeling_bailing_moe_v2.py."""
from mixtures import *
from nano import guess


nano("bailingmoe2", "bailingmoe2", 1171, {"expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_gating_func": 2,
     "leading_dense_block_count": 1, "expert_shared_count": 1, "expert_shared_feed_forward_length": 30, "expert_group_count": 3,
     "expert_group_used_count": 2, "rope.dimension_count": 8, "attention.key_length": 14, "attention.value_length": 10, "attention.head_count_kv": 2, "nextn_predict_layers": 2},
     n_kv=2, d=14, dv=10, qkv=True, qk_norm="head", n_dense=1, n_shared=30, choice_bias=True, draft=2)
guess("bailingmoe2")
nano("bailingmoe2-plain", "bailingmoe2", 1172, {"rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
     "expert_shared_count": 2}, qkv=True, qk_norm="head", n_shared=44, fused=True, tied=True, bias="qkvo")
nano("bailingmoe2-softmax", "bailingmoe2", 1173, {"expert_gating_func": 1, "expert_shared_count": 1}, qkv=True, qk_norm="head",
     n_shared=22)
