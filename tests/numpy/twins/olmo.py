"""OLMo (Groeneveld et al. 2024; modeling_olmo): LayerNorm without parameters, clamped Q, K and V."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    n_kv, clip = k("attention.head_count_kv", n_head), k("attention.clamp_kqv", 0) or math.inf
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", n_embd // n_head)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = (np.clip(p, -clip, clip) for p in separate_qkv(b, layer_norm(x, None, None, eps), n_head, n_kv))
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = x + linear(merge_heads(a), b("attn_output"))
        x = x + swiglu(b, layer_norm(x, None, None, eps))
    return tied_output(w, layer_norm(x, None, None, eps))


def olmo(name, seed, more={}, n_kv=4, d=12, tied=True):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        w.attention(l, n_embd, n_head, n_kv, d)
        w.gated(l, n_embd, n_ff)
    add(name, "olmo", {**keys_of(2, n_embd, n_ff, n_head, 1e-1, True), **more}, w, forward)


olmo("olmo", 2061, {"attention.clamp_kqv": 1.2, "rope.freq_base": 300.0})
olmo("olmo-gqa", 2062, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10}, 2, 14, False)
olmo("olmo-no-clamp", 2063, {"attention.clamp_kqv": 0.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3})
