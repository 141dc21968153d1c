"""ChatGLM 2 and 3, GLM-4 9B (GLM team 2024; modeling_chatglm): half of each head rotated by adjacent pairs, SwiGLU in one matrix."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_rms_epsilon")
    n_kv, d = k("attention.head_count_kv", n_head), k("attention.key_length", n_embd // n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = separate_qkv(b, h, n_head, n_kv) if b("attn_q") is not None else fused_qkv(b, h, n_head, n_kv, d)
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = x + linear(merge_heads(a), b("attn_output"))
        gate, up = np.split(linear(rms_norm(x, b("ffn_norm"), eps), b("ffn_up")), 2, axis=-1)
        x = x + linear(silu(gate) * up, b("ffn_down"))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def chatglm(name, seed, more={}, n_kv=4, d=12, tied=False, fused=True, bias=True):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if fused:
            w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5, bias=bias)
            w.matrix(b + "attn_output", n_embd, n_head * d)
        else:
            w.attention(l, n_embd, n_head, n_kv, d, bias="qkv" if bias else "")
        w.norm(b + "ffn_norm", n_embd)
        w.matrix(b + "ffn_up", 2 * n_ff, n_embd)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2)
    w.norm("output_norm", n_embd)
    add(name, "chatglm", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w, forward)


chatglm("chatglm", 2151, {"attention.head_count_kv": 2, "rope.dimension_count": 6, "rope.freq_base": 300.0}, 2)
chatglm("chatglm-edge", 2152, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.scaling.type": "linear",
                               "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, 2, 14, True, False)
chatglm("chatglm-apart", 2153, fused=False, bias=False)
chatglm("chatglm-fused", 2154, {"attention.head_count_kv": 2}, 2, bias=False)
