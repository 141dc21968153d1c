"""StableLM (Bellagente et al. 2024; Stability AI's modeling_stablelm): LayerNorm, partial rotation; 12B parallel, with a norm
for each head of Q and K."""
from nano import Weights, add, keys_of


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
    add(name, "stablelm", {**keys_of(2, n_embd, n_ff, n_head, 1e-1, True), **more}, w)


stablelm("stablelm", 2011, {"rope.dimension_count": 4, "use_parallel_residual": False, "rope.freq_base": 300.0})
stablelm("stablelm-2", 2012, {"rope.dimension_count": 6}, bias="qkv", tied=True)
stablelm("stablelm-2-12b", 2013, {"rope.dimension_count": 8, "attention.head_count_kv": 2, "attention.key_length": 14,
                                  "use_parallel_residual": True}, 2, 14, twelve=True)
stablelm("stablelm-linear", 2014, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, norm_bias=False)
