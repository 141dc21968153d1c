"""Beam 1.0 (Reflection AI 2026; after transformers' modular_beam.py): sums scaled by the depth, and queries that grow in layers without positions."""
from kin import head_size, scaled_frequencies
from mixtures import *


def beam(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    base = k("rope.freq_base_swa", k("rope.freq_base", 10000.0))
    theta, mag = scaled_frequencies(lambda key, *rest: base if key == "rope.freq_base" else k(key, *rest), k("rope.dimension_count", head_size(k)))
    grown = (1 + (np.arange(len(tokens)) + 1) / k("attention.temperature_length", 2048)) ** k("attention.temperature_scale", 0.1)
    x = w["token_embd.weight"][tokens]
    n = 1  # rows that have been summed up

    def add(x, y):
        nonlocal n
        n += 1
        return math.sqrt((n - 1) / n) * x + y / math.sqrt(n)

    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = queries_keys_values(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        near = k("attention.sliding_window_pattern")[l]
        if near:
            q, key = rotate(q, theta, True, mag), rotate(key, theta, True, mag)
        else:
            q = q * grown[:, None, None]
        a = attention(q, key, v, window=k("attention.sliding_window") if near else None)
        a = a * sigmoid(linear(h, b("attn_gate")).reshape(a.shape) + b("attn_gate", ".bias")[:, None])
        x = add(x, rms_norm(output_of(b, a), b("post_attention_norm"), eps))
        h = rms_norm(x, b("ffn_norm"), eps)
        y = swiglu(b, h) if b("ffn_gate") is not None else routed(k, b, h, 2, True)
        x = add(x, rms_norm(y, b("post_ffw_norm"), eps))
    y, most = tied_output(w, rms_norm(x, w["output_norm.weight"], eps)), k("final_logit_softcapping", 0)
    return most * np.tanh(y / most) if most else y


def model(name, seed, pattern, more={}, n_dense=1, d=12, **named):
    def extra(w, l):
        w.norm(f"blk.{l}.post_attention_norm", 48)
        w.norm(f"blk.{l}.post_ffw_norm", 48)
        w.matrix(f"blk.{l}.attn_gate", 4 * d, 48)
        w.vector(f"blk.{l}.attn_gate.bias", 4, 1.0)

    nano(name, "beam", seed, {"attention.sliding_window": 5, "attention.sliding_window_pattern": pattern, "leading_dense_block_count": n_dense, **more}, n_layer=len(pattern), qk_norm="head",
         n_dense=n_dense, d=d, choice_bias=True, extra=extra, forward=beam, **named)


model("beam", 3721, [True, True, False], {"rope.freq_base": 60.0, "attention.temperature_scale": 0.4, "attention.temperature_length": 7, "final_logit_softcapping": 3.0,
      "expert_group_count": 3, "expert_group_used_count": 2, "expert_weights_scale": 2.5})
model("beam-scaled", 3722, [False, True], {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 60.0, "rope.freq_base_swa": 900.0,
      "expert_weights_norm": False, "expert_gating_func": 2, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 10}, d=14, n_kv=2, tied=True, n_dense=0)
model("beam-fused", 3723, [True, False], fused=True, qkv=True)
