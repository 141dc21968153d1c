"""Maion Coder (2026; after the functions of llama.cpp's build of November): experts in a short row, norms before and after, positions in layers with a window alone."""
from kin import head_size, scaled_frequencies
from mixtures import *


def maion(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, head_size(k))

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        near = k("attention.sliding_window_pattern")[l]
        if near:
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
        return rms_norm(output_of(b, attention(q, key, v, window=k("attention.sliding_window") if near else None)), b("post_attention_norm"), eps)

    def feed(b, h, l):
        if (l + 1) % k("interleave_moe_layer_step"):
            return rms_norm(swiglu(b, h), b("post_ffw_norm"), eps)
        p = softmax(linear(h, b("ffn_gate_inp")))
        y = moe(b, linear(h, b("ffn_latent_down")), p, chosen_experts(p, k("expert_used_count")), True)
        return rms_norm(linear(y, b("ffn_latent_up")), b("post_ffw_norm"), eps)

    return decoder(k, w, tokens, attend, feed)


def model(name, seed, pattern, step, more={}, short=18, **named):
    def extra(w, l):
        b = f"blk.{l}."
        for part in ("attention", "ffw"):
            w.norm(f"{b}post_{part}_norm", 48)
        made = [key for key in w if key.startswith(b + "ffn_") and key != b + "ffn_norm.weight"]
        for key in made:
            w.pop(key)
        if (l + 1) % step:
            w.gated(l, 48, 78)
            return
        w.experts(l, short, 22, 6)
        w.matrix(b + "ffn_gate_inp", 6, 48, gain=2)
        w.matrix(b + "ffn_latent_down", short, 48)
        w.matrix(b + "ffn_latent_up", 48, short, gain=2)

    nano(name, "maion-coder", seed, {"attention.sliding_window": 5, "attention.sliding_window_pattern": pattern, "interleave_moe_layer_step": step, "moe_latent_size": short, **more},
         n_layer=len(pattern), qk_norm="head", extra=extra, forward=maion, **named)


model("maion-coder", 3761, [True, False, True, False], 2, {"rope.freq_base": 60.0})
model("maion-coder-all", 3762, [False, True], 1, {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 900.0,
      "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 14}, d=14, n_kv=2, tied=True)
model("maion-coder-fused", 3763, [True, False, True], 3, fused=True, qkv=True)
