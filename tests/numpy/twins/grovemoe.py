"""Grove MoE (Wu et al. 2025), after the authors' modeling_grove_moe.py: each chosen expert brings its group's small expert along."""
from mixtures import *


def beside(n_group, n):
    def put(w, l):
        w.matrix(f"blk.{l}.ffn_gate_chexps", n_group, n, 48)
        w.matrix(f"blk.{l}.ffn_up_chexps", n_group, n, 48)
        w.matrix(f"blk.{l}.ffn_down_chexps", n_group, 48, n, gain=2)
    return put


nano("grovemoe", "grovemoe", 1811, {"experts_per_group": 2, "expert_group_scale": 0.8, "expert_chunk_feed_forward_length": 14,
     "rope.freq_base": 300.0}, n_expert=8, qk_norm="head", extra=beside(4, 14))
nano("grovemoe-few-groups", "grovemoe", 1812, {"experts_per_group": 3, "expert_group_scale": 0.6, "attention.key_length": 14,
     "attention.value_length": 10, "attention.head_count_kv": 2, "expert_weights_scale": 1.3}, n_kv=2, d=14, dv=10, qk_norm="head",
     tied=True, fused=True, extra=beside(2, 14))
nano("grovemoe-sigmoid", "grovemoe", 1813, {"experts_per_group": 2, "expert_group_scale": 0.7, "expert_chunk_feed_forward_length": 18,
     "expert_gating_func": 2, "expert_weights_norm": False, "rope.scaling.type": "linear", "rope.scaling.factor": 2.0, "rope.scaling.attn_factor": 1.3,
     "attention.head_count_kv": 2}, n_kv=2, qk_norm="head", extra=beside(3, 18))
