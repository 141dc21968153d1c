"""ChatGLM 2 and 3, GLM-4 9B (GLM team 2024; modeling_chatglm): half of each head rotated by adjacent pairs, SwiGLU in one matrix."""
from nano import Weights, add, keys_of


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
    add(name, "chatglm", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w)


chatglm("chatglm", 2151, {"attention.head_count_kv": 2, "rope.dimension_count": 6, "rope.freq_base": 300.0}, 2)
chatglm("chatglm-edge", 2152, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.scaling.type": "linear",
                               "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, 2, 14, True, False)
chatglm("chatglm-apart", 2153, fused=False, bias=False)
chatglm("chatglm-fused", 2154, {"attention.head_count_kv": 2}, 2, bias=False)
