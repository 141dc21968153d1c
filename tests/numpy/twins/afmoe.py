"""Trinity (Arcee AI 2025), after transformers' modeling_afmoe.py."""
from mixtures import *


def more(d):
    def extra(w, l):
        w.matrix(f"blk.{l}.attn_gate", 4 * d, 48)
        w.norm(f"blk.{l}.post_attention_norm", 48)
        w.norm(f"blk.{l}.post_ffw_norm", 48)
        if l == 0:
            w["token_embd.weight"] /= 4
    return extra


nano("afmoe", "afmoe", 1291, {"attention.sliding_window": 6, "leading_dense_block_count": 1, "expert_shared_count": 1, "expert_weights_norm": True,
     "expert_weights_scale": 2.5, "expert_gating_func": 2, "rope.freq_base": 300.0}, n_layer=4, n_dense=1, n_shared=22, choice_bias=True, qk_norm="head", extra=more(12))
nano("afmoe-sizes", "afmoe", 1292, {"attention.sliding_window": 5, "attention.sliding_window_pattern": 2, "attention.head_count_kv": 2,
     "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
     "expert_group_count": 3, "expert_group_used_count": 2}, n_kv=2, d=14, dv=10, qk_norm="head", fused=True, tied=True, extra=more(10))
nano("afmoe-softmax", "afmoe", 1293, {"attention.sliding_window": 5, "expert_gating_func": 1, "expert_shared_count": 2}, n_shared=44, qk_norm="head", extra=more(12))
