"""EuroBERT (Boizard et al. 2025; the authors' modeling_eurobert.py): Llama's block without its mask."""
from encoders import *


def model(name, seed, more={}, **parts):
    w = llama_weights(seed, **parts)
    encoder(name, "eurobert", {**keys_of(2, N_EMBD, N_FF, 4, EPS), **more}, w,
            lambda k, w, tokens, output: llama_rows(k, w, tokens, True))


model("eurobert", 3301, {"attention.causal": False, "attention.head_count_kv": 2}, n_kv=2)
model("eurobert-sizes", 3302, {"attention.key_length": 14, "rope.freq_base": 300.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0,
                               "rope.scaling.attn_factor": 1.4}, d=14)
