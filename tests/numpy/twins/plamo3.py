"""PLaMo 3 (Preferred Networks 2025; the authors' modeling_plamo.py): windows, norms around each part, normalised queries and keys."""
from kin import *


def plamo3(k, w, tokens, n_ctx):
    eps, d, window, every = k("attention.layer_norm_rms_epsilon"), k("attention.key_length"), k("attention.sliding_window", 0), k("attention.sliding_window_pattern", 8)
    rot, factors = k("rope.dimension_count", d), w.get("rope_freqs.weight", 1.0)
    far = scaled_frequencies(k, rot, w.get("rope_freqs.weight"))
    near = inverse_frequencies(rot, k("rope.freq_base_swa", k("rope.freq_base", 10000.0))) / factors, 1.0
    n_head = k("attention.head_count")
    n_kv = k("attention.head_count_kv", n_head)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        local = window > 0 and (every[l] if isinstance(every, list) else (l + 1) % every > 0)
        theta, mag = near if local else far
        q, key, v = np.split(linear(rms_norm(x, b("attn_norm"), eps), b("attn_qkv")), [n_head * d, (n_head + n_kv) * d], axis=-1)
        q = rotate(rms_norm(split_heads(q, n_head), b("attn_q_norm"), eps), theta, True, mag)
        key = rotate(rms_norm(split_heads(key, n_kv), b("attn_k_norm"), eps), theta, True, mag)
        a = attention(q, key, split_heads(v, n_kv), window=window if local else None)
        x = x + rms_norm(linear(merge_heads(a), b("attn_output")), b("post_attention_norm", ""), eps)
        h = rms_norm(x, b("ffn_norm"), eps)
        gate, up = np.split(linear(h, b("ffn_up")), 2, axis=-1)
        x = x + rms_norm(linear(silu(gate) * up, b("ffn_down")), b("post_ffw_norm", ""), eps)
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def as_published(w, l):
    """Queries, keys and values in one matrix, gate and up in one; the norms of what a part gives without `.weight`."""
    b = f"blk.{l}."
    w.put(b + "attn_qkv.weight", np.concatenate([w.pop(f"{b}attn_{part}.weight") for part in "qkv"]))
    w.put(b + "ffn_up.weight", np.concatenate([w.pop(f"{b}ffn_{part}.weight") for part in ("gate", "up")]))
    for norm in ("post_attention_norm", "post_ffw_norm"):
        w.put(b + norm, w.pop(f"{b}{norm}.weight"))


def model(name, seed, more, n_layer=2, tied=True, factors=0):
    kin(name, "plamo3", plamo3, seed, more, n_layer, tied, ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), qk_norm=True, parts=as_published,
        whole=lambda w: w.factors("rope_freqs", factors) if factors else None)


model("plamo3", 1751, {**sizes(14, 2, 10), "attention.sliding_window": 6, "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 8}, 9)
model("plamo3-list", 1752, {**sizes(12), **YARN, "attention.sliding_window": 5, "attention.sliding_window_pattern": [True, False, True]}, 3, False)
model("plamo3-plain", 1753, {**sizes(12), "attention.sliding_window": 0}, factors=6)
model("plamo3-factors", 1754, {**sizes(12), "attention.sliding_window": 5}, factors=6)
