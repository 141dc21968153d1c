"""Step 3.5 Flash (StepFun 2026; modeling_step3p5): windows, gated heads, experts with limits."""
from kin import *
from mixtures import chosen_experts, queries_keys_values
from nano import guess


def limited_swiglu(h, gate, up, down, most):
    g, u = silu(linear(h, gate)), linear(h, up)
    if most:
        g, u = np.minimum(g, most), np.clip(u, -most, most)
    return linear(g * u, down)


def feed(k, b, h, l):
    common, own = k("swiglu_clamp_shexp", None), k("swiglu_clamp_exp", None)
    most, most_own = common[l] if common else 0, own[l] if own else 0
    if b("ffn_gate_inp") is None:
        return limited_swiglu(h, b("ffn_gate"), b("ffn_up"), b("ffn_down"), most)
    s = linear(h, b("ffn_gate_inp"))
    p = softmax(s) if k("expert_gating_func", 0) == 1 else sigmoid(s)
    chosen = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"))
    normal, scale = k("expert_weights_norm", False), k("expert_weights_scale", 1.0)
    weights = [{e: scale * row[e] / (row[of].sum() if normal else 1) for e in of} for row, of in zip(p, chosen)]
    three = [b(f"ffn_{part}_exps") for part in ("gate", "up", "down")]
    y = experts(h, weights, chosen, lambda e, x: limited_swiglu(x, *(m[e] for m in three), most_own))
    return y + limited_swiglu(h, *(b(f"ffn_{part}_shexp") for part in ("gate", "up", "down")), most)


def states(k, w, tokens, n_ctx):
    eps, d = k("attention.layer_norm_rms_epsilon"), k("attention.key_length")
    rot = k("rope.dimension_count", d)
    factors = w.get("rope_freqs.weight")
    far = scaled_frequencies(k, rot // 2, None if factors is None else factors[: rot // 4])
    near = inverse_frequencies(k("rope.dimension_count_swa", rot), k("rope.freq_base_swa", k("rope.freq_base", 10000.0)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count") - k("nextn_predict_layers", 0)):
        b, heads = layer(w, l), k("attention.head_count")
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = queries_keys_values(k, b, h, heads[l], k("attention.head_count_kv", heads)[l])
        if b("attn_q_norm") is not None:
            q = rms_norm(q, b("attn_q_norm"), eps)
        if b("attn_k_norm") is not None:
            key = rms_norm(key, b("attn_k_norm"), eps)
        local = k("attention.sliding_window_pattern")[l]
        turn = (near, True) if local else (far[0], True, far[1])
        a = attention(rotate(q, *turn), rotate(key, *turn), v, window=k("attention.sliding_window") if local else None)
        if b("attn_gate") is not None:
            a = a * sigmoid(linear(h, b("attn_gate")))[..., None]
        x = x + linear(merge_heads(a), b("attn_output"))
        x = x + feed(k, b, rms_norm(x, b("ffn_norm"), eps), l)
    return x


def step35(k, w, tokens, n_ctx):
    return tied_output(w, rms_norm(states(k, w, tokens, n_ctx), w["output_norm.weight"], k("attention.layer_norm_rms_epsilon")))


def model(name, seed, more, heads, kv, near, d=16, dv=None, n_dense=1, normed="qk", gate=True, bias=True, factors=0, draft=0, fused=False, tied=False):
    w, n_expert, n_each, n_shared = Weights(seed), 6, 22, 26
    w.embedding(N_VOCAB, N_EMBD, tied)
    if factors:
        w.factors("rope_freqs", factors)
    for l in range(len(near)):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.attention(l, N_EMBD, heads[l], kv[l], d, dv)
        for part in normed:
            w.norm(f"{b}attn_{part}_norm", d)
        if fused:
            w.put(b + "attn_qkv.weight", np.concatenate([w.pop(f"{b}attn_{part}.weight") for part in "qkv"]))
        if gate:
            w.matrix(b + "attn_gate", heads[l], N_EMBD)
        w.norm(b + "ffn_norm", N_EMBD)
        if l < n_dense:
            w.gated(l, N_EMBD, N_FF)
        else:
            w.experts(l, N_EMBD, n_each, n_expert)
            w.shared_expert(l, N_EMBD, n_shared)
            if bias:
                w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
    for l in range(draft):
        w.norm(f"blk.{len(near) + l}.attn_norm", N_EMBD)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(len(near) + draft, N_EMBD, N_FF, heads, EPS), "attention.head_count_kv": kv, "attention.key_length": d, "attention.value_length": dv,
            "attention.sliding_window": 6, "attention.sliding_window_pattern": near, "expert_count": n_expert, "expert_used_count": 3,
            "expert_feed_forward_length": n_each, "expert_shared_feed_forward_length": n_shared, **more}
    add(name, "step35", {key: v for key, v in keys.items() if v is not None}, w, step35)


model("step35", 1651, {"rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16, "swiglu_clamp_exp": [0.0, 0.4, 0.0, 0.3],
                       "swiglu_clamp_shexp": [0.5, 0.0, 0.4, 0.0], "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 1.5,
                       "leading_dense_block_count": 1, "moe_every_n_layers": 1, "nextn_predict_layers": 1},
      [4, 6, 6, 2], [2, 2, 1, 2], [False, True, True], factors=8, draft=1)
model("step35-draft", 1655, {"rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16, "expert_gating_func": 2, "nextn_predict_layers": 1,
                             "attention.sliding_window_pattern": [False, True, True, True], "expert_weights_norm": True, "swiglu_clamp_exp": [0.0, 0.4, 0.0, 0.3]},
      [4, 6, 6, 6], [2, 2, 1, 1], [False, True, True], draft=1)
guess("step35-draft", over=states)
guess("step35-draft", over=states, layer=2, keys={"nextn_predict_layers": 3, "block_count": 6})
model("step35-fused", 1652, {"rope.dimension_count": 16, "rope.dimension_count_swa": 8, "expert_gating_func": 1, "rope.freq_base": 300.0}, [4, 2], [4, 1], [True, False], d=20, dv=10,
      fused=True, n_dense=0, normed="", gate=False, bias=False, tied=True)
model("step35-plain", 1653, {"attention.head_count_kv": None, **YARN}, [4, 3], [4, 3], [True, False], n_dense=0)
model("step35-common", 1654, {"attention.value_length": 16, "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16, "rope.dimension_count_swa": 16,
                              "swiglu_clamp_exp": [0.0, 0.4, 0.0, 0.3], "swiglu_clamp_shexp": [0.5, 0.0, 0.4, 0.0], "expert_gating_func": 2,
                              "expert_weights_norm": True, "expert_weights_scale": 1.5, "leading_dense_block_count": 1},
      [4, 6, 6, 2], [2, 2, 2, 2], [False, True, True, False])
