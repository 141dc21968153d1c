"""Dream (Ye et al. 2025; the authors' modeling_dream.py): Qwen 2's block without its mask; logits of each token."""
from encoders import *


def dream(k, w, tokens, output):
    return linear(llama_rows(k, w, tokens, True), w.get("output.weight", w["token_embd.weight"]))


def model(name, seed, more={}, **parts):
    w = llama_weights(seed, tied=parts.pop("tied", False), **parts)
    encoder(name, "dream", {**keys_of(2, N_EMBD, N_FF, 4, EPS), **more}, w, dream, "logits")


model("dream", 3701, {"attention.head_count_kv": 2}, n_kv=2, bias="qkv")
model("dream-sizes", 3702, {"attention.causal": False, "attention.key_length": 14, "rope.freq_base": 300.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0,
                            "rope.scaling.attn_factor": 1.4}, d=14, bias="o")
model("dream-tied", 3703, {"attention.head_count_kv": 2}, n_kv=2, bias="qkv", tied=True)
