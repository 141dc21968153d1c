"""OLMoE (Muennighoff et al. 2024), after transformers' modeling_olmoe.py."""
from mixtures import *


nano("olmoe", "olmoe", 1181, {"feed_forward_length": 22, "expert_feed_forward_length": None}, qk_norm="row")
nano("olmoe-gqa", "olmoe", 1182, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_gating_func": 1,
     "attention.clamp_kqv": 0.8, "expert_weights_scale": 1.3}, n_kv=2, d=14, dv=10, qk_norm="row", fused=True, tied=True)
