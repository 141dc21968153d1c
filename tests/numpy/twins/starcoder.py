"""StarCoder (Li et al. 2023; modeling_gpt_bigcode): GPT-2 with one head of keys and values."""
from families import *
from kin import *


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
    def positions(w):
        w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, N_EMBD)))

    fused(name, "starcoder", forward, seed, more, n_kv, d, tied=tied, whole=positions)


starcoder("starcoder", 2051, {"attention.head_count_kv": 1}, 1)
starcoder("starcoder-untied", 2052, {"rope.freq_base": 20000.0, "attention.head_count_kv": 2, "attention.key_length": 14}, 2, 14, False)
starcoder("starcoder-heads", 2053)
