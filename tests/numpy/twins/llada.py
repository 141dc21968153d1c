"""LLaDA (Nie et al. 2025; the authors' modeling_llada.py): Llama's block without its mask; logits of each token."""
from encoders import *


def llada(k, w, tokens, output):
    return linear(llama_rows(k, w, tokens, False), w.get("output.weight", w["token_embd.weight"]))


def model(name, seed, more={}, **parts):
    encoder(name, "llada", {**keys_of(2, N_EMBD, N_FF, 4, EPS), **more}, llama_weights(seed, **parts), llada, "logits")


model("llada", 3801, {"attention.causal": False}, tied=False)
model("llada-sizes", 3802, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8,
                            "rope.freq_base": 300.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.4},
      n_kv=2, d=14, dv=10, bias="qkvo")
