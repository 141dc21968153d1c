"""Muse Spark (Meta 2026, transformers' modeling_muse_spark.py): Muse Glimmer's block, factors of both sides of each sum, experts on a shorter row."""
from kin import *
from mixtures import chosen_experts


def muse_spark(k, w, tokens, n_ctx):
    eps, post, d = k("attention.layer_norm_rms_epsilon"), k("post_norm_epsilon", 1e-8), head_size(k)
    pattern, base = k("attention.sliding_window_pattern", 4), k("rope.freq_base_swa", k("rope.freq_base", 10000.0))
    theta, mag = scaled_frequencies(lambda key, *rest: base if key == "rope.freq_base" else k(key, *rest), d)
    x = rms_norm(w["token_embd.weight"][tokens], None, eps)

    def mixed(b, h):
        p = sigmoid(linear(h, b("ffn_gate_inp")) * k("logit_scale"))
        chosen = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"))
        weights = [{e: k("expert_weights_scale", 1.0) * row[e] / sum(row[c] for c in of) for e in of} for row, of in zip(p, chosen)]
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        z = rms_norm(linear(h, b("ffn_latent_down")), b("ffn_pre_exp_norm"), eps)
        y = experts(z, weights, chosen, lambda e, x: rms_norm(down[e] @ (silu(gate[e] @ x) * (up[e] @ x)) * b("ffn_post_exp_norm"), None, post))
        return linear(y, b("ffn_latent_up"))

    for l in range(k("block_count")):
        b = layer(w, l)
        near = pattern[l] if isinstance(pattern, list) else (l + 1) % pattern != 0
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = qkv(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        if near:
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
        a = rms_norm(attention(q, key, v, window=k("attention.sliding_window") if near else None), None, eps)
        y = linear(merge_heads(a) * sigmoid(linear(h, b("attn_gate"))), b("attn_output"))
        x = b("attn_resid_alpha") * x + b("attn_resid_beta") * rms_norm(y, None, post)
        h = rms_norm(x, b("ffn_norm"), eps)
        y = swiglu(b, h) if l < k("leading_dense_block_count", 0) else mixed(b, h)
        x = b("ffn_resid_alpha") * x + b("ffn_resid_beta") * rms_norm(y * b("post_ffw_norm"), None, post)
    y = tied_output(w, rms_norm(x, w["output_norm.weight"], eps)) * k("logit_scale")
    cap = k("final_logit_softcapping", 0)
    return cap * np.tanh(y / cap) if cap else y


def model(name, seed, more={}, n_dense=0, bias=True, fused=False, **named):
    d, n_short, n_each, n_expert = more.get("attention.key_length") or N_EMBD // N_HEAD, 26, 22, 6

    def parts(w, l):
        b = f"blk.{l}."
        w.matrix(b + "attn_gate", N_HEAD * d, N_EMBD)
        for part in ("attn", "ffn"):
            w.norm(f"{b}{part}_resid_alpha", N_EMBD)
            w.norm(f"{b}{part}_resid_beta", N_EMBD)
        if l < n_dense:
            w.gated(l, N_EMBD, N_FF)
            return
        w.experts(l, n_short, n_each, n_expert)
        w.matrix(b + "ffn_gate_inp", n_expert, N_EMBD, gain=3)
        if bias:
            w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
        w.matrix(b + "ffn_latent_down", n_short, N_EMBD)
        w.norm(b + "ffn_pre_exp_norm", n_short)
        w.norm(b + "ffn_post_exp_norm", n_short)
        w.matrix(b + "ffn_latent_up", N_EMBD, n_short)

    keys = {"attention.sliding_window": 7, "logit_scale": 0.5, "expert_count": n_expert, "expert_used_count": 2, "expert_feed_forward_length": n_each, "expert_latent_length": n_short,
            "leading_dense_block_count": n_dense or None, **more}
    case = kin(name, "muse-spark", seed, keys, n_layer=4, norms=("attn_norm", "ffn_norm", "post_ffw_norm"), qk_norm=True, feed_forward="none", parts=parts,
               forward=other_names(muse_spark), **named)
    if fused:
        case.tensors.fuse_experts()


model("muse-spark", 3801, {"final_logit_softcapping": 0.9, "post_norm_epsilon": 1e-2, "expert_weights_scale": 1.4, "expert_gating_func": 2, "expert_weights_norm": True}, n_dense=1, tied=False)
model("muse-spark-pattern", 3802, {**sizes(16, 2, 16), "attention.sliding_window_pattern": [0, 1, 1, 0], "rope.freq_base_swa": 300.0, "rope.freq_base": 10.0, "rope.dimension_count": 16}, fused=True)
model("muse-spark-plain", 3803, {**sizes(14, 1), "attention.sliding_window_pattern": 2, "expert_latent_length": None, "moe_latent_size": 26, **YARN}, bias=False)
