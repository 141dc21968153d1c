"""MiniCPM (Hu et al. 2024), after the authors' modeling_minicpm.py."""
from mixtures import *


scales = {"embedding_scale": 3.0, "residual_scale": 0.7, "logit_scale": 0.6}


def biases(w, l):
    for part, n in (("gate", 78), ("up", 78), ("down", 48)):
        w.vector(f"blk.{l}.ffn_{part}.bias", n)


nano("minicpm", "minicpm", 1201, {}, n_expert=0, tied=True)
nano("minicpm-long-factors", "minicpm", 1202, {**scales, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 32},
     n_kv=2, d=14, dv=10, n_expert=0, bias="qkvo", factors={"rope_factors_long": 4, "rope_factors_short": 4}, extra=biases)
nano("minicpm-short-factors", "minicpm", 1203, scales, n_expert=0, factors={"rope_factors_long": 6, "rope_factors_short": 6})
nano("minicpm-moe", "minicpm", 1204, {**scales, "feed_forward_length": 22, "expert_feed_forward_length": None})
nano("minicpm-moe-fused", "minicpm", 1205, {**scales, "feed_forward_length": 26, "expert_feed_forward_length": None, "expert_gating_func": 1, "expert_weights_norm": True},
     n_each=26, fused=True)
