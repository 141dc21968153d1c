"""CodeShell (Xie et al. 2024; modeling_codeshell): LayerNorm and biases everywhere, rotary positions, few key heads."""
from kin import *


def codeshell(name, seed, more={}, n_kv=4, d=12, once=False):
    fused(name, "codeshell", seed, more, n_kv, d, 76, False, whole=lambda w: once and w.pop("token_embd.weight"))


codeshell("codeshell", 2081, {"rope.freq_base": 300.0, "attention.head_count_kv": 2, "rope.scaling.type": "linear",
                              "rope.scaling.factor": 1.0}, 2)
codeshell("codeshell-once", 2082, {"vocab_size": 88, "attention.key_length": 14, "rope.dimension_count": 10,
                                   "rope.scaling.attn_factor": 1.3}, d=14, once=True)
codeshell("codeshell-plain", 2083)
