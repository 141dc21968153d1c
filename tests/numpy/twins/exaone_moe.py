"""K-EXAONE (LG AI Research 2026), after transformers' modeling_exaone_moe.py."""
from mixtures import *
from nano import guess


nano("exaone-moe", "exaone-moe", 1301, {"attention.sliding_window": 6, "attention.sliding_window_pattern": [True, False, False, True, True],
     "leading_dense_block_count": 1, "expert_shared_count": 1, "expert_shared_feed_forward_length": 30, "expert_weights_norm": True,
     "expert_weights_scale": 2.5, "expert_gating_func": 2, "nextn_predict_layers": 1, "rope.scaling.type": "none", "rope.freq_base": 300.0},
     n_layer=4, n_dense=1, n_shared=30, choice_bias=True, qk_norm="head", draft=1)
guess("exaone-moe", own=True)
nano("exaone-moe-sizes", "exaone-moe", 1302, {"attention.sliding_window_pattern": 2, "attention.sliding_window": 5, "attention.head_count_kv": 2, "attention.key_length": 14,
     "attention.value_length": 10, "rope.dimension_count": 8, "expert_group_count": 3, "expert_group_used_count": 2, "expert_shared_count": 2,
     "rope.scaling.factor": 2.0}, n_kv=2, d=14, dv=10, n_shared=44, qk_norm="head", fused=True, tied=True, factors={"rope_freqs": 4})
nano("exaone-moe-softmax", "exaone-moe", 1303, {"expert_gating_func": 1, "expert_shared_count": 1}, n_layer=4, n_shared=22, qk_norm="head")
nano("exaone-moe-common", "exaone-moe", 1304, {"attention.sliding_window": 6, "attention.sliding_window_pattern": 4,
     "attention.head_count_kv": 2, "leading_dense_block_count": 1, "expert_shared_count": 1, "expert_shared_feed_forward_length": 30,
     "expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_gating_func": 2, "rope.freq_base": 300.0},
     n_layer=4, n_kv=2, n_dense=1, n_shared=30, choice_bias=True, qk_norm="head")
