"""Snowflake Arctic (Snowflake 2024), after the authors' modeling_arctic.py."""
from mixtures import *


def beside(w, l):
    w.gated(l, 48, 48)
    w.norm(f"blk.{l}.ffn_norm_exps", 48)


nano("arctic", "arctic", 1281, {"feed_forward_length": 22, "expert_feed_forward_length": None}, extra=beside)
nano("arctic-sizes", "arctic", 1282, {"expert_gating_func": 1, "expert_weights_norm": True, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8,
     "rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_weights_scale": 1.3, 
     "expert_gating_func": 1}, n_kv=2, d=14, dv=10, fused=True, tied=True, bias="qkvo", extra=beside)
