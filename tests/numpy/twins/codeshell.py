"""CodeShell (Xie et al. 2024; modeling_codeshell): LayerNorm and biases everywhere, rotary positions, few key heads."""
from families import *
from kin import *


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    d = k("attention.key_length", n_embd // n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    x = w.get("token_embd.weight", w["output.weight"])[tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = fused_qkv(b, layer_normed(b, x, "attn_norm", eps), n_head, k("attention.head_count_kv", n_head), d)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + dense(b, merge_heads(a), "attn_output")
        x = x + gelu_feed_forward(b, layer_normed(b, x, "ffn_norm", eps))
    return linear(final_norm(w, x, eps), w["output.weight"])


def codeshell(name, seed, more={}, n_kv=4, d=12, once=False):
    fused(name, "codeshell", forward, seed, more, n_kv, d, 76, False, whole=lambda w: once and w.pop("token_embd.weight"))


codeshell("codeshell", 2081, {"rope.freq_base": 300.0, "attention.head_count_kv": 2, "rope.scaling.type": "linear",
                              "rope.scaling.factor": 1.0}, 2)
codeshell("codeshell-once", 2082, {"vocab_size": 88, "attention.key_length": 14, "rope.dimension_count": 10,
                                   "rope.scaling.attn_factor": 1.3}, d=14, once=True)
codeshell("codeshell-plain", 2083)
