"""Nanbeige 4.2 (Nanbeige LLM Lab 2026; after its modeling_nanbeige.py as llama.cpp follows it): the layers run several times."""
from kin import *


kin("nanbeige", "nanbeige", 1811, {**sizes(14, 2, 10), "rope.dimension_count": 8, "rope.freq_base": 300.0, "num_loops": 2,
    "skip_loop_final_norm": False}, tied=False)
kin("nanbeige-three", "nanbeige", 1812, {"num_loops": 3, "skip_loop_final_norm": True}, bias="qkv",
    whole=lambda w: w.factors("rope_freqs", 6))
kin("nanbeige-once", "nanbeige", 1813, YARN)
