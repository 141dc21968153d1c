"""GPT-NeoX, Pythia (Black et al. 2022; modeling_gpt_neox): parallel or in turn, LayerNorm, partial rotation, biases."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    d = n_embd // n_head
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = fused_qkv(b, layer_normed(b, x, "attn_norm", eps), n_head, n_head, d)
        a = merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))
        a = dense(b, a, "attn_output")
        if k("use_parallel_residual", True):
            x = x + a + gelu_feed_forward(b, layer_normed(b, x, "ffn_norm", eps))
        else:
            x = x + a
            x = x + gelu_feed_forward(b, layer_normed(b, x, "ffn_norm", eps))
    return tied_output(w, final_norm(w, x, eps))


def gptneox(name, seed, more, tied=False):
    n_embd, n_head, n_ff = 48, 4, 92
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.matrix(b + "attn_qkv", 3 * n_embd, n_embd, gain=1.5, bias=True)
        w.matrix(b + "attn_output", n_embd, n_embd, bias=True)
        w.norm(b + "ffn_norm", n_embd, True)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, "gptneox", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w, forward)


gptneox("gptneox", 2031, {"rope.dimension_count": 4, "use_parallel_residual": True, "rope.freq_base": 300.0})
gptneox("gptneox-in-turn", 2032, {"rope.dimension_count": 6, "use_parallel_residual": False})
gptneox("gptneox-defaults", 2033, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, tied=True)
