"""StarCoder (Li et al. 2023; modeling_gpt_bigcode): GPT-2 with one head of keys and values."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    n_kv, d = k("attention.head_count_kv", n_head), k("attention.key_length", n_embd // n_head)
    x = w["token_embd.weight"][tokens] + w["position_embd.weight"][: len(tokens)]
    for l in range(k("block_count")):
        b = layer(w, l)
        a = attention(*fused_qkv(b, layer_normed(b, x, "attn_norm", eps), n_head, n_kv, d))
        x = x + dense(b, merge_heads(a), "attn_output")
        x = x + gelu_feed_forward(b, layer_normed(b, x, "ffn_norm", eps))
    return tied_output(w, final_norm(w, x, eps))


def starcoder(name, seed, more={}, n_kv=4, d=12, tied=True):
    n_embd, n_head, n_ff = 48, 4, 92
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, n_embd)))
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5, bias=True)
        w.matrix(b + "attn_output", n_embd, n_head * d, bias=True)
        w.norm(b + "ffn_norm", n_embd, True)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, "starcoder", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w, forward)


starcoder("starcoder", 2051, {"attention.head_count_kv": 1}, 1)
starcoder("starcoder-untied", 2052, {"rope.freq_base": 20000.0, "attention.head_count_kv": 2, "attention.key_length": 14}, 2, 14, False)
starcoder("starcoder-heads", 2053)
