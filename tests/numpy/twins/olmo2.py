"""OLMo 2 and 3 (Team OLMo 2024, 2025; transformers' modeling_olmo3.py): norms after each part, of Q and K over the whole row."""
from families import swiglu
from kin import *


def olmo2(k, w, tokens, n_ctx):
    eps, n_head = k("attention.layer_norm_rms_epsilon"), k("attention.head_count")
    n_kv, d, base = k("attention.head_count_kv", n_head), head_size(k), k("rope.freq_base", 10000.0)
    theta, mag = scaled_frequencies(k, d)
    if k("rope.scaling.attn_factor", 0.0) > 1.1:  # Ollama's: the whole magnitude
        mag = k("rope.scaling.attn_factor")
    local = inverse_frequencies(d, k("rope.freq_base_swa", base))
    window, every = k("attention.sliding_window", 0), k("attention.sliding_window_pattern", 4)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q = split_heads(rms_norm(project(b, "attn_q", x), b("attn_q_norm"), eps), n_head)
        key = split_heads(rms_norm(project(b, "attn_k", x), b("attn_k_norm"), eps), n_kv)
        near = window > 0 and (every[l] if isinstance(every, list) else l % every != every - 1)
        turn = (local, True) if near else (theta, True, mag)
        a = attention(rotate(q, *turn), rotate(key, *turn), split_heads(project(b, "attn_v", x), n_kv), window=window if near else None)
        x = x + rms_norm(project(b, "attn_output", merge_heads(a)), b("post_attention_norm"), eps)
        x = x + rms_norm(swiglu(b, x), b("post_ffw_norm"), eps)
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, arch, seed, more={}, **named):
    def parts(w, l):
        w.norm(f"blk.{l}.attn_q_norm", N_HEAD * (more.get("attention.key_length") or N_EMBD // N_HEAD))
        w.norm(f"blk.{l}.attn_k_norm", (more.get("attention.head_count_kv") or N_HEAD) * (more.get("attention.key_length") or 12))

    kin(name, arch, olmo2, seed, more, norms=("post_attention_norm", "post_ffw_norm"), parts=parts, **named)


three = {"attention.sliding_window": 6, **YARN}
model("olmo2", "olmo2", 261, {"rope.freq_base": 300.0}, tied=False)
model("olmo2-gqa", "olmo2", 262, {**sizes(14, 2, 10), "attention.sliding_window": 0})
model("olmo2-three", "olmo2", 263, {**three, **sizes(None, 2), "attention.sliding_window_pattern": [True, False, True],
                                    "rope.scaling.yarn_attn_factor": 1.2079}, n_layer=3)
model("olmo3", "olmo3", 264, {**three, "rope.scaling.attn_factor": 1 + 0.1 * math.log(4), "rope.freq_base_swa": 20.0}, n_layer=5)
model("olmo3-period", "olmo3", 265, {**three, "rope.scaling.attn_factor": 0.8, "attention.sliding_window_pattern": 2}, n_layer=3)
