"""BitNet b1.58 (Ma et al. 2024, 2025): norms before attention's output and before the down projection, a scale beside each matrix."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward_of(arch):
    def forward(k, w, tokens, n_ctx):
        n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_rms_epsilon")
        theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", n_embd // n_head)))
        squared = k("hidden_activation", "relu2" if arch != "bitnet" else "silu") == "relu2"
        x = w["token_embd.weight"][tokens]
        for l in range(k("block_count")):
            b = layer(w, l)

            def times(h, name):
                return linear(h, b(name)) * (1.0 if b(name, ".scale") is None else b(name, ".scale"))

            h = rms_norm(x, b("attn_norm"), eps)
            q, key, v = (split_heads(times(h, "attn_" + p), n) for p, n in
                         (("q", n_head), ("k", k("attention.head_count_kv", n_head)), ("v", k("attention.head_count_kv", n_head))))
            a = merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))
            x = x + times(rms_norm(a, b("attn_sub_norm"), eps), "attn_output")
            h = rms_norm(x, b("ffn_norm"), eps)
            gate = times(h, "ffn_gate")
            h = (np.maximum(gate, 0) ** 2 if squared else silu(gate)) * times(h, "ffn_up")
            x = x + times(rms_norm(h, b("ffn_sub_norm"), eps), "ffn_down")
        return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))
    return forward


def bitnet(name, arch, seed, more={}, n_kv=4, d=12, tied=True, scales=False):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.norm(b + "attn_sub_norm", n_head * d)
        w.norm(b + "ffn_norm", n_embd)
        w.gated(l, n_embd, n_ff)
        w.norm(b + "ffn_sub_norm", n_ff)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down") if scales else ():
            w.put(f"{b}{part}.scale", w.random.uniform(0.5, 2, 1))
    w.norm("output_norm", n_embd)
    add(name, arch, {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w, forward_of(arch))


bitnet("bitnet", "bitnet", 2141, {"attention.head_count_kv": 4, "rope.scaling.type": "linear", "rope.scaling.factor": 1.0}, scales=True)
bitnet("bitnet-2b", "bitnet-b1.58", 2142, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                                           "rope.freq_base": 300.0, "rope.scaling.attn_factor": 1.3}, 2, 14, False)
bitnet("bitnet-relu2", "bitnet", 2143, {"hidden_activation": "relu2"})
bitnet("bitnet-2b-silu", "bitnet-b1.58", 2144, {"hidden_activation": "silu"})
