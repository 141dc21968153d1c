"""Laguna (Poolside 2026; the authors' modeling_laguna.py): a softplus gate on attention, experts as in DeepSeek 3."""
from kin import *
from mixtures import queries_keys_values, routed, shared, swiglu


def laguna(k, w, tokens, n_ctx):
    eps, d, window = k("attention.layer_norm_rms_epsilon"), k("attention.key_length"), k("attention.sliding_window", 0)
    rot, every = k("rope.dimension_count", d), k("attention.sliding_window_pattern", 4)
    far = scaled_frequencies(k, rot)
    near = inverse_frequencies(k("rope.dimension_count_swa", rot), k("rope.freq_base_swa", k("rope.freq_base", 10000.0))), 1.0
    of = lambda key, l, *other: k(key, *other)[l] if isinstance(k(key, *other), list) else k(key, *other)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        local = window > 0 and (every[l] if isinstance(every, list) else l % every > 0)
        theta, mag = near if local else far
        n_head = of("attention.head_count", l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = queries_keys_values(k, b, h, n_head, of("attention.head_count_kv", l, n_head))
        q = rotate(rms_norm(q, b("attn_q_norm"), eps), theta, True, mag)
        key = rotate(rms_norm(key, b("attn_k_norm"), eps), theta, True, mag)
        a = attention(q, key, v, window=window if local else None)
        gate = softplus(linear(h, b("attn_gate")))  # of each head, or of each number
        x = x + linear(merge_heads(a * gate.reshape(len(x), n_head, -1)), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + (swiglu(b, h) if b("ffn_gate_inp") is None else routed(k, b, h, gating=2) + shared(b, h))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, more, heads, kv, d=14, n_dense=1, bias=True, tied=False, n=4):
    w, n_expert, n_each, n_shared = Weights(seed), 6, 22, 26
    w.embedding(N_VOCAB, N_EMBD, tied)
    of = lambda v, l: v[l] if isinstance(v, list) else v
    for l in range(n):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.attention(l, N_EMBD, of(heads, l), of(kv, l), d)
        w.norm(b + "attn_q_norm", d)
        w.norm(b + "attn_k_norm", d)
        w.matrix(b + "attn_gate", of(heads, l) * (1 if more.get("attention.sliding_window") else d), N_EMBD)
        w.norm(b + "ffn_norm", N_EMBD)
        if l < n_dense:
            w.gated(l, N_EMBD, N_FF)
            continue
        w.experts(l, N_EMBD, n_each, n_expert)
        w.shared_expert(l, N_EMBD, n_shared)
        if bias:
            w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(n, N_EMBD, N_FF, heads, EPS), "attention.head_count_kv": kv, "attention.key_length": d, "expert_count": n_expert, "expert_used_count": 3,
            "expert_feed_forward_length": n_each, "expert_shared_feed_forward_length": n_shared, "leading_dense_block_count": n_dense, **more}
    add(name, "laguna", {key: v for key, v in keys.items() if v is not None}, w, laguna)


model("laguna", 1701, {"attention.sliding_window": 6, "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 8,
      "rope.dimension_count_swa": 14, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 1.5, "expert_shared_count": 1,
      "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "attention.value_length": 14}, [4, 6, 6, 6, 4], 2, n=5)
model("laguna-all", 1702, {"expert_gating_func": 1, "rope.freq_base": 300.0, "attention.head_count_kv": None}, 4, 4, n_dense=0, bias=False, tied=True, n=2)
model("laguna-list", 1703, {"attention.sliding_window": 5, "attention.sliding_window_pattern": [True, False, True]}, 4, 1, n=3)
