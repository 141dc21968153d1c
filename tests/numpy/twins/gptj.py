"""GPT-J (Wang & Komatsuzaki 2021; modeling_gptj) and CodeGen (Nijkamp et al. 2022; modeling_codegen): parallel on one LayerNorm, adjacent pairs rotated, biases in the MLP only."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", n_embd // n_head)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_normed(b, x, "attn_norm", eps)
        q, key, v = separate_qkv(b, h, n_head, k("attention.head_count_kv", n_head))
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = x + linear(merge_heads(a), b("attn_output")) + gelu_feed_forward(b, h)
    return linear(final_norm(w, x, eps), w.get("output.weight", w["token_embd.weight"]), w.get("output.bias"))


def gptj(name, seed, more={}, n_kv=4, d=12, bias=True, tied=False, arch="gptj"):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd)
    if not tied:
        w.matrix("output", 88, n_embd, bias=bias)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, arch, {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w, forward)


gptj("gptj", 2071, {"rope.dimension_count": 6, "rope.freq_base": 300.0})
gptj("gptj-others", 2072, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.scaling.type": "linear",
                           "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, 2, 14, False)
gptj("gptj-plain", 2073, tied=True)
gptj("codegen", 2074, {"rope.dimension_count": 8}, arch="codegen")
