"""OLMo (Groeneveld et al. 2024; modeling_olmo): LayerNorm without parameters, clamped Q, K and V."""
from nano import Weights, add, keys_of


def olmo(name, seed, more={}, n_kv=4, d=12, tied=True):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        w.attention(l, n_embd, n_head, n_kv, d)
        w.gated(l, n_embd, n_ff)
    add(name, "olmo", {**keys_of(2, n_embd, n_ff, n_head, 1e-1, True), **more}, w)


olmo("olmo", 2061, {"attention.clamp_kqv": 1.2, "rope.freq_base": 300.0})
olmo("olmo-gqa", 2062, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10}, 2, 14, False)
olmo("olmo-no-clamp", 2063, {"attention.clamp_kqv": 0.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3})
