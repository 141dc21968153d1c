"""Phi 3.5 MoE (Microsoft 2024) as its published GGUF files are run: RMSNorm with a bias, and the best experts' shares of the softmax made to
add up to one. Microsoft's modeling_phimoe.py differs in both."""
from mixtures import *


def biases(w, l):
    for part in ("attn_norm", "ffn_norm"):
        w.vector(f"blk.{l}.{part}.bias", 48)
    if l == 0:
        w.vector("output_norm.bias", 48)
        w.vector("output.bias", 92)


longrope = {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 8, "rope.freq_base": 300.0, "rope.scaling.attn_factor": 1.2,
            "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 32, "attention.sliding_window": 64, "expert_weights_scale": 1.3}
nano("phimoe", "phimoe", 1261, {"feed_forward_length": 22, "expert_feed_forward_length": None, "rope.scaling.attn_factor": 1.2}, bias="qkvo", extra=biases,
     factors={"rope_factors_long": 6, "rope_factors_short": 6})
nano("phimoe-long", "phimoe", 1262, longrope, n_kv=2, d=14, extra=biases, fused=True, factors={"rope_factors_long": 4, "rope_factors_short": 4})
nano("phimoe-plain", "phimoe", 1263, {"expert_gating_func": 1, "expert_weights_norm": True, "attention.value_length": 12, "rope.freq_base": 300.0}, tied=True)
nano("phimoe-common", "phimoe", 1264, {"feed_forward_length": 22, "expert_feed_forward_length": None, "attention.head_count_kv": 2, "context_length": 256,
     "rope.scaling.original_context_length": 256, "rope.freq_base": 300.0}, n_kv=2, bias="qkvo", extra=biases, factors={"rope_factors_long": 6, "rope_factors_short": 6})
