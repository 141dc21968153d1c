"""Granite 3 and 4 (IBM; transformers' modeling_granite.py and modeling_granitemoeshared.py): four multipliers."""
from families import swiglu
from kin import *


def granite(k, w, tokens, n_ctx):
    eps, residual = k("attention.layer_norm_rms_epsilon"), k("residual_scale", 1.0)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)), w.get("rope_freqs.weight"))
    if not k("rope.scaling.finetuned", True):
        theta, mag = np.zeros_like(theta), 1.0
    x = w["token_embd.weight"][tokens] * k("embedding_scale", 1.0)
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v, k("attention.scale", None))
        x = x + residual * project(b, "attn_output", merge_heads(a))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + residual * (swiglu(b, h) if b("ffn_gate_inp") is None else mixture(k, b, h))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps)) / k("logit_scale", 1.0)


def mixture(k, b, h):
    """The softmax is taken over the chosen experts' scores."""
    s = linear(h, b("ffn_gate_inp"))
    chosen = [best(row, k("expert_used_count")) for row in s]
    share = [dict(zip(e, softmax(row[e]) * k("expert_weights_scale", 1.0))) for e, row in zip(chosen, s)]
    both = b("ffn_gate_up_exps")
    gate, up = (b("ffn_gate_exps"), b("ffn_up_exps")) if both is None else np.split(both, 2, axis=1)
    y = experts(h, share, chosen, lambda e, x: b("ffn_down_exps")[e] @ (silu(gate[e] @ x) * (up[e] @ x)))
    if b("ffn_up_shexp") is None:
        return y
    return y + linear(silu(linear(h, b("ffn_gate_shexp"))) * linear(h, b("ffn_up_shexp")), b("ffn_down_shexp"))


def model(name, arch, seed, more={}, fused=False, factors=0, **named):
    n_shared = more.get("expert_shared_feed_forward_length", 0)

    def parts(w, l):
        if arch == "granitemoe":
            w.experts(l, N_EMBD, N_FF, more["expert_count"])
        if arch == "granitemoe" and n_shared:
            w.shared_expert(l, N_EMBD, n_shared)

    case = kin(name, arch, granite, seed, more, feed_forward="none" if arch == "granitemoe" else "gated", parts=parts,
               whole=lambda w: factors and w.factors("rope_freqs", factors), **named)
    if fused:
        case.tensors.fuse_experts()


scales = {"embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 1.7, "attention.scale": 0.4}
model("granite", "granite", 231, {**scales, "rope.freq_base": 200.0})
model("granite-unscaled", "granite", 232, sizes(16, 2), tied=False, bias="qkvo", ffn_bias=True)
model("granite-yarn", "granite", 233, {**scales, **sizes(14, 1, 10), **YARN, "rope.dimension_count": 10})
model("granite-freqs", "granite", 234, {**scales, "rope.dimension_count": 12, "ssm.state_size": 256, "expert_count": 0,
                                        "attention.head_count_kv": None}, factors=6)
model("granite-no-positions", "granite", 235, {**scales, "rope.scaling.finetuned": False})
model("granitemoe", "granitemoe", 236, {**scales, **sizes(14, 2, 10), "expert_gating_func": 3, "expert_weights_norm": True, "expert_count": 6, "expert_used_count": 2, "expert_weights_scale": 1.5})
model("granitemoe-shared", "granitemoe", 237, {**scales, **sizes(16, 2), "expert_count": 7, "expert_used_count": 3,
                                               "expert_shared_feed_forward_length": 34, "rope.scaling.finetuned": True}, fused=True)
