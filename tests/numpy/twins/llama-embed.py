"""Llama as an encoder (Babakhin et al. 2025, llama-embed-nemotron; the authors' LlamaBidirectionalModel): Llama's block without its mask."""
from encoders import *


def model(name, seed, more={}, factors=0, **parts):
    w = llama_weights(seed, **parts)
    if factors:
        w.factors("rope_freqs", factors)
    encoder(name, "llama-embed", {**keys_of(2, N_EMBD, N_FF, 4, EPS), **more}, w,
            lambda k, w, tokens, output: llama_rows(k, w, tokens, False))


model("llama-embed", 3401, {"attention.causal": False})
model("llama-embed-gqa", 3402, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10, "rope.freq_base": 300.0,
                                "rope.scaling.attn_factor": 1.4}, factors=5, n_kv=2, d=14)
