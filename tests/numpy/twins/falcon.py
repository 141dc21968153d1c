"""Falcon (Almazrouei et al. 2023; modeling_falcon): parallel, LayerNorm, few key heads; 40B with a norm for each half."""
from kin import *


def falcon(name, seed, more={}, n_kv=4, d=12, tied=True, two=False):
    norms = ["attn_norm"] + ["attn_norm_2"] * two
    fused(name, "falcon", seed, more, n_kv, d, tied=tied, norms=norms, bias=False)


falcon("falcon", 2021, {"attention.head_count_kv": 1, "tensor_data_layout": "jploski"}, 1)
falcon("falcon-40b", 2022, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                            "rope.freq_base": 300.0, "tensor_data_layout": "jploski"}, 2, 14, False, True)
falcon("falcon-plain", 2023, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3})
