"""Cohere 2 with experts (Cohere 2026): Cohere 2 (modeling_cohere2.py) with dense layers first, then experts, averaged with shared ones."""
from mixtures import *
from nano import guess


nano("cohere2moe", "cohere2moe", 1721, {"attention.sliding_window": 6, "logit_scale": 0.7, "leading_dense_block_count": 1, "expert_shared_count": 1,
     "expert_shared_feed_forward_length": 30, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 1.4,
     "nextn_predict_layers": 1, "attention.layer_norm_rms_epsilon": None, "attention.layer_norm_epsilon": 1e-2, "rope.freq_base": 300.0,
     "rope.freq_base_swa": 300.0, "attention.key_length": 14, "attention.value_length": 14, "attention.head_count_kv": 2},
     d=14, n_kv=2, n_layer=5, n_dense=1, n_shared=30, second="", draft=1, factors={"rope_freqs": 7})
nano("cohere2moe-rms", "cohere2moe", 1722, {"attention.sliding_window": 5, "logit_scale": 1.3, "leading_dense_block_count": 0, "expert_shared_count": 2,
     "attention.sliding_window_pattern": [True, False, True]}, n_layer=3, n_shared=44, second="", fused=True, bias="qkv", tied=True)
nano("cohere2moe-draft", "cohere2moe", 1724, {"attention.sliding_window": 5, "logit_scale": 1.3, "leading_dense_block_count": 0, "expert_shared_count": 2,
     "attention.sliding_window_pattern": [True, False, True, False], "nextn_predict_layers": 1}, n_layer=3, n_shared=44, second="", bias="qkv", draft=1)


guess("cohere2moe-draft")
nano("cohere2moe-plain", "cohere2moe", 1723, {"attention.sliding_window": 5, "logit_scale": 1.3, "leading_dense_block_count": 0, "expert_gating_func": 1,
     "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, second="")
