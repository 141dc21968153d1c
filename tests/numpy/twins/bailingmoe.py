"""Ling (Ling team 2025), after the authors' modeling_bailing_moe.py."""
from mixtures import *


nano("bailingmoe", "bailingmoe", 1161, {"expert_weights_norm": True, "expert_weights_scale": 1.0, "leading_dense_block_count": 0,
     "expert_shared_count": 2, "rope.dimension_count": 14, "attention.head_count_kv": 2}, n_kv=2, d=14, n_shared=44)
nano("bailingmoe-dense", "bailingmoe", 1162, {"expert_weights_scale": 1.4, "leading_dense_block_count": 1, "expert_gating_func": 1,
     "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8, "rope.freq_base": 300.0, "expert_shared_count": 1},
     d=14, dv=10, n_shared=22, n_dense=1, fused=True, tied=True, bias="qkvo", factors={"rope_freqs": 4})
nano("bailingmoe-plain", "bailingmoe", 1163, {"expert_shared_count": 1}, n_shared=22)
