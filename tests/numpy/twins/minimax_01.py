"""MiniMax Text-01 (MiniMax 2025, after transformers' modeling_minimax.py): lightning attention, one token after the other."""
from kin import head_size, scaled_frequencies
from mixtures import *


def lightning(b, h, n_head, rate):
    """S <- exp(-slope) S + k v^T, y = S^T q; a row of qkv has a head's query, key and value side by side."""
    q, k, v = np.split(split_heads(silu(linear(h, b("attn_qkv"))), n_head), 3, axis=-1)
    out = np.zeros_like(v)
    for i in range(n_head):
        s, left = 0, math.exp(-rate * 2 ** (-8 * (i + 1) / n_head))
        for t in range(len(h)):
            s = left * s + np.outer(k[t, i], v[t, i])
            out[t, i] = q[t, i] @ s
    return merge_heads(out)


def minimax_01(k, w, tokens, n_ctx):
    eps, n_layer, share = k("attention.layer_norm_rms_epsilon"), k("block_count"), k("residual_scale")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    x = w["token_embd.weight"][tokens]
    for l in range(n_layer):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        if (k("attention.recurrent_layers", None) or [(i + 1) % k("full_attention_interval", 8) > 0 for i in range(n_layer)])[l]:
            a = lightning(b, h, k("attention.head_count"), 1 - l / max(n_layer - 1, 1) + 1e-5)
            a = rms_norm(a, b("attn_norm_2"), eps) * sigmoid(linear(h, b("attn_gate")))
        else:
            q, key, v = queries_keys_values(k, b, h)
            a = merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))
        h = rms_norm(linear(a, b("attn_output")) + share * h, b("ffn_norm"), eps)
        x = routed(k, b, h, normal=True) + share * h
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, recurrent, more={}, d=12, **named):
    def extra(w, l):
        if not recurrent[l]:
            return
        for part in "qkv":
            del w[f"blk.{l}.attn_{part}.weight"]
            w.pop(f"blk.{l}.attn_{part}.bias", None)
        w.matrix(f"blk.{l}.attn_qkv", 3 * 4 * d, 48, gain=1.5)
        w.matrix(f"blk.{l}.attn_gate", 4 * d, 48)
        w.norm(f"blk.{l}.attn_norm_2", 4 * d)

    more = {"residual_scale": 1.7, "feed_forward_length": 22, "expert_feed_forward_length": None, **more}
    nano(name, "minimax-01", seed, more, n_layer=len(recurrent), d=d, extra=extra, forward=minimax_01, **named)


model("minimax-01", 3401, [True, True, False, True], {"attention.recurrent_layers": [True, True, False, True], "rope.freq_base": 200.0, "rope.dimension_count": 8, "attention.head_count_kv": 2}, n_kv=2)
model("minimax-01-interval", 3402, [True, False, True, False], {"full_attention_interval": 2, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24,
                                                                "rope.freq_base": 60.0, "attention.key_length": 14, "attention.value_length": 14}, d=14, tied=True, fused=True, bias="qkv")
model("minimax-01-plain", 3403, [False], {"full_attention_interval": 1, "expert_gating_func": 1, "expert_weights_norm": True})
model("minimax-01-common", 3404, [True, True, False, True, True], {"attention.recurrent_layers": [True, True, False, True, True], "rope.freq_base": 200.0, "rope.dimension_count": 8, "attention.head_count_kv": 2,
                                                                   "attention.key_length": 16, "attention.value_length": 16}, d=16, n_kv=2, n_expert=8)
