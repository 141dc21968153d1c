"""StarCoder (Li et al. 2023; modeling_gpt_bigcode): GPT-2 with one head of keys and values."""
from kin import *


def starcoder(name, seed, more={}, n_kv=4, d=12, tied=True):
    def positions(w):
        w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, N_EMBD)))

    fused(name, "starcoder", seed, more, n_kv, d, tied=tied, whole=positions)


starcoder("starcoder", 2051, {"attention.head_count_kv": 1}, 1)
starcoder("starcoder-untied", 2052, {"rope.freq_base": 20000.0, "attention.head_count_kv": 2, "attention.key_length": 14}, 2, 14, False)
starcoder("starcoder-heads", 2053)
