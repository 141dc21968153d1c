"""Kolibri 1 (Aleph Alpha 2026; after transformers' modular_kolibri1.py): experts whose scores, not their shares, choose them; norms before and after."""
from kin import head_size, scaled_frequencies
from mixtures import *


def kolibri1(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        near = k("attention.sliding_window_pattern")[l]
        if near:
            q, key = rotate(q, theta, True, mag), rotate(key, theta, True, mag)
        return rms_norm(output_of(b, attention(q, key, v, window=k("attention.sliding_window") if near else None)), b("post_attention_norm"), eps)

    def feed(b, h, l):
        s = linear(h, b("ffn_gate_inp"))
        y = moe(b, h, sigmoid(s), chosen_experts(s, k("expert_used_count"), b("exp_probs_b", ".bias")), k("expert_weights_norm", False))
        return rms_norm(y + shared(b, h), b("post_ffw_norm"), eps)

    return decoder(k, w, tokens, attend, feed)


def model(name, seed, pattern, more={}, **named):
    def extra(w, l):
        w.norm(f"blk.{l}.post_attention_norm", 48)
        w.norm(f"blk.{l}.post_ffw_norm", 48)
        w[f"blk.{l}.exp_probs_b.bias"] = 3 * w[f"blk.{l}.exp_probs_b.bias"]  # enough to choose other experts

    nano(name, "kolibri1", seed, {"attention.sliding_window": 5, "attention.sliding_window_pattern": pattern, "expert_shared_feed_forward_length": 26, **more}, n_layer=len(pattern), qk_norm="head",
         n_shared=26, choice_bias=True, extra=extra, forward=kolibri1, **named)


model("kolibri1", 3701, [True, False, True], {"rope.freq_base": 60.0})
model("kolibri1-normal", 3702, [False, True], {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 900.0, "expert_weights_norm": True,
      "expert_gating_func": 2, "expert_shared_count": 1, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 10}, d=14, n_kv=2, tied=True)
model("kolibri1-fused", 3703, [True, False], fused=True, qkv=True)
