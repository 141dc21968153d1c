"""SmallThinker (SJTU IPADS 2025), after the authors' modeling_smallthinker.py."""
from mixtures import *


nano("smallthinker", "smallthinker", 1311, {"expert_weights_norm": True, "attention.sliding_window": 6, "expert_gating_func": 2, "rope.freq_base": 300.0}, n_layer=5)
nano("smallthinker-sizes", "smallthinker", 1312, {"attention.sliding_window": 0, "attention.head_count_kv": 2, "attention.key_length": 14,
     "attention.value_length": 10, "rope.dimension_count": 8, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_gating_func": 1,
     "expert_feed_forward_length": None, "feed_forward_length": 26, "expert_weights_scale": 1.3}, n_kv=2, d=14, dv=10, n_each=26, fused=True, tied=True)
nano("smallthinker-plain", "smallthinker", 1313)
nano("smallthinker-common", "smallthinker", 1314, {"attention.sliding_window": 4096, "attention.head_count_kv": 2, "expert_gating_func": 2,
     "rope.freq_base": 300.0}, n_layer=5, n_kv=2)
