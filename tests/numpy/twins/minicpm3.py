"""MiniCPM 3 (OpenBMB 2024), after the authors' modeling_minicpm.py of that model."""
from mixtures import *
from families import scaled_frequencies
from nano import Weights, add, keys_of


def minicpm3(k, w, tokens, n_ctx):
    eps, n_head, rot = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("rope.dimension_count")
    r, d, part = k("attention.kv_lora_rank"), k("attention.key_length") - rot, 1.4 / math.sqrt(k("block_count"))
    long = n_ctx > k("rope.scaling.original_context_length", k("context_length"))
    theta, mag = scaled_frequencies(k, rot, w.get("rope_factors_long.weight" if long else "rope_factors_short.weight"))
    x = 12 * w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = split_heads(linear(rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps), b("attn_q_b")), n_head)
        low = linear(h, b("attn_kv_a_mqa"))
        both = split_heads(linear(rms_norm(low[:, :r], b("attn_kv_a_norm"), eps), b("attn_kv_b")), n_head)
        k_rot = np.repeat(rotate(low[:, None, r:], theta, True, mag), n_head, 1)
        q = np.concatenate([q[..., :d], rotate(q[..., d:], theta, True, mag)], -1)
        a = attention(q, np.concatenate([both[..., :d], k_rot], -1), both[..., d:])
        x = x + part * linear(merge_heads(a), b("attn_output"))
        x = x + part * swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps)) * 256 / k("embedding_length")


def model(name, seed, more={}, tied=False, factors=()):
    n_embd, n_head, r_q, r, rot, d, dv, n_ff = 48, 4, 22, 20, 6, 10, 14, 78
    w = Weights(seed)
    w.embedding(92, n_embd, tied)
    for part in factors:
        w.factors(part, rot // 2)
    for l in range(2):
        b = f"blk.{l}."
        for part, n in (("attn_norm", n_embd), ("attn_q_a_norm", r_q), ("attn_kv_a_norm", r), ("ffn_norm", n_embd)):
            w.norm(b + part, n)
        for part, rows, columns in (("attn_q_a", r_q, n_embd), ("attn_q_b", n_head * (d + rot), r_q), ("attn_kv_a_mqa", r + rot, n_embd),
                                    ("attn_kv_b", n_head * (d + dv), r), ("attn_output", n_embd, n_head * dv)):
            w.matrix(b + part, rows, columns, gain=1.5)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    add(name, "minicpm3", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), "attention.q_lora_rank": r_q, "attention.kv_lora_rank": r,
                           "attention.key_length": d + rot, "attention.value_length": dv, "rope.dimension_count": rot, **more}, w, minicpm3)


model("minicpm3", 1211, {"attention.head_count_kv": 4}, tied=True)
model("minicpm3-long", 1212, {"rope.freq_base": 300.0, "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 32,
                              "rope.scaling.attn_factor": 1.2}, factors=("rope_factors_long", "rope_factors_short"))
model("minicpm3-short", 1213, {"rope.freq_base": 300.0}, factors=("rope_factors_long", "rope_factors_short"))
