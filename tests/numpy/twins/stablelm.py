"""StableLM (Bellagente et al. 2024; Stability AI's modeling_stablelm): LayerNorm, partial rotation; 12B parallel, with a norm
for each head of Q and K."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    n_kv = k("attention.head_count_kv", n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", n_embd // n_head)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_normed(b, x, "attn_norm", eps)
        q, key, v = separate_qkv(b, h, n_head, n_kv)
        if b("attn_q_norm") is not None:
            q = np.stack([layer_norm(q[:, i], b("attn_q_norm")[i], None, eps) for i in range(n_head)], 1)
            key = np.stack([layer_norm(key[:, i], b("attn_k_norm")[i], None, eps) for i in range(n_kv)], 1)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + linear(merge_heads(a), b("attn_output"))
        x = x + swiglu(b, h if b("ffn_norm") is None else layer_normed(b, x, "ffn_norm", eps))
    return tied_output(w, final_norm(w, x, eps))


def stablelm(name, seed, more={}, n_kv=4, d=12, bias="", twelve=False, tied=False, norm_bias=True):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.attention(l, n_embd, n_head, n_kv, d, bias=bias)
        if twelve:
            w.vector(b + "attn_q_norm.weight", (n_head, d), 0.4, 1)
            w.vector(b + "attn_k_norm.weight", (n_kv, d), 0.4, 1)
        else:
            w.norm(b + "ffn_norm", n_embd, norm_bias)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd, True)
    add(name, "stablelm", {**keys_of(2, n_embd, n_ff, n_head, 1e-1, True), **more}, w, forward)


stablelm("stablelm", 2011, {"rope.dimension_count": 4, "use_parallel_residual": False, "rope.freq_base": 300.0})
stablelm("stablelm-2", 2012, {"rope.dimension_count": 6}, bias="qkv", tied=True)
stablelm("stablelm-2-12b", 2013, {"rope.dimension_count": 8, "attention.head_count_kv": 2, "attention.key_length": 14,
                                  "use_parallel_residual": True}, 2, 14, twelve=True)
stablelm("stablelm-linear", 2014, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, norm_bias=False)
