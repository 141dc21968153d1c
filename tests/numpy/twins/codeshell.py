"""CodeShell (Xie et al. 2024; modeling_codeshell): LayerNorm and biases everywhere, rotary positions, few key heads."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


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
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, False)
    if once:
        del w["token_embd.weight"]
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5, bias=True)
        w.matrix(b + "attn_output", n_embd, n_head * d, bias=True)
        w.norm(b + "ffn_norm", n_embd, True)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, "codeshell", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w, forward)


codeshell("codeshell", 2081, {"rope.freq_base": 300.0, "attention.head_count_kv": 2, "rope.scaling.type": "linear",
                              "rope.scaling.factor": 1.0}, 2)
codeshell("codeshell-once", 2082, {"vocab_size": 88, "attention.key_length": 14, "rope.dimension_count": 10,
                                   "rope.scaling.attn_factor": 1.3}, d=14, once=True)
codeshell("codeshell-plain", 2083)
