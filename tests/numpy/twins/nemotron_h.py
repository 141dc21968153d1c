"""Nemotron-H (NVIDIA 2025; modeling_nemotron_h): layers of one part each; Nano 3 and Super 3 with experts (2025, 2026)."""
from blocks import *
from families import *
from mixtures import chosen_experts
from nano import CASES, Weights, add, keys_of
from statespace import *


def squared(h, up, down):
    return linear(np.maximum(linear(h, up), 0) ** 2, down)


def mixture(k, b, h):
    p = sigmoid(linear(h, b("ffn_gate_inp")))
    chosen = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"), k("expert_group_count", 1), k("expert_group_used_count", 1))
    normal, scale = k("expert_weights_norm", False), k("expert_weights_scale", 1.0)
    weights = [{e: scale * row[e] / (row[of].sum() if normal else 1) for e in of} for row, of in zip(p, chosen)]
    low = h if b("ffn_latent_down") is None else linear(h, b("ffn_latent_down"))
    y = experts(low, weights, chosen, lambda e, x: b("ffn_down_exps")[e] @ np.maximum(b("ffn_up_exps")[e] @ x, 0) ** 2)
    y = y if b("ffn_latent_up") is None else linear(y, b("ffn_latent_up"))
    return y + squared(h, b("ffn_up_shexp"), b("ffn_down_shexp"))


def states(k, w, tokens, n_ctx, x=None, first=0, end=None):
    """The rows after layers first .. end - 1; x: before them."""
    eps, n_head = k("attention.layer_norm_rms_epsilon"), k("attention.head_count")
    w = {name.replace("latent_in", "latent_down").replace("latent_out", "latent_up"): t for name, t in w.items()}
    x = w["token_embd.weight"][tokens] if x is None else x
    for l in range(first, end or k("block_count") - k("nextn_predict_layers", 0)):
        b, n_kv, n_ff = layer(w, l), k("attention.head_count_kv")[l], k("feed_forward_length")[l]
        h = rms_norm(x, b("attn_norm"), eps)
        if not n_kv and not n_ff:
            x = x + mamba2(b, h, k("ssm.inner_size"), k("ssm.state_size"), k("ssm.time_step_rank"), k("ssm.group_count", 1), eps)
        elif n_kv:
            a = attention(*separate_qkv(b, h, n_head, n_kv), scale=k("attention.scale", None))
            x = x + dense(b, merge_heads(a), "attn_output")
        elif k("expert_count", 0):
            x = x + mixture(k, b, h)
        else:
            x = x + dense(b, np.maximum(dense(b, h, "ffn_up"), 0) ** 2, "ffn_down")
    return x


def forward(k, w, tokens, n_ctx):
    return tied_output(w, rms_norm(states(k, w, tokens, n_ctx), w["output_norm.weight"], k("attention.layer_norm_rms_epsilon")))


def guessed(k, w, tokens, n_ctx):
    """By the last two layers, one after the other."""
    eps, n = k("attention.layer_norm_rms_epsilon"), k("block_count")
    rows = rms_norm(states(k, w, tokens, n_ctx), w["output_norm.weight"], eps)
    b = layer(w, n - 2)
    before = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    e = rms_norm(w["token_embd.weight"][tokens], b("nextn.enorm"), eps)
    x = linear(np.concatenate([e, rms_norm(before, b("nextn.hnorm"), eps)], -1), b("nextn.eh_proj"))
    x = states(k, w, tokens, n_ctx, x, n - 2, n)
    return tied_output(w, rms_norm(x, w[f"blk.{n - 1}.nextn.shared_head_norm.weight"], eps))


def model(name, arch, seed, more={}, kinds="MAFM", d=9, dv=None, n_g=1, tied=True, bias=False, n_exp=0, short=0, other=False, choice=True, draft=0):
    n_embd, n_in, n_st, n_h, n_head, n_ff, n_each, n_shared = 36, 60, 8, 6, 4, 44, 26, 30
    w = Weights(seed)
    w.embedding(94, n_embd, tied)
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if kind == "M":
            mamba2_weights(w, b, n_embd, n_in, n_st, n_h, n_g, bias)
        elif kind == "A":
            w.attention(l, n_embd, n_head, 2, d, dv, "qkvo" if bias else "")
        elif n_exp:
            wide = short or n_embd
            w.matrix(b + "ffn_gate_inp", n_exp, n_embd, gain=2)
            if choice:
                w.vector(b + "exp_probs_b.bias", n_exp, 0.5)
            w.matrix(b + "ffn_up_exps", n_exp, n_each, wide)
            w.matrix(b + "ffn_down_exps", n_exp, wide, n_each)
            w.matrix(b + "ffn_up_shexp", n_shared, n_embd)
            w.matrix(b + "ffn_down_shexp", n_embd, n_shared)
            if short:
                w.matrix(b + ("ffn_latent_in" if other else "ffn_latent_down"), short, n_embd)
                w.matrix(b + ("ffn_latent_out" if other else "ffn_latent_up"), n_embd, short, gain=2)
        else:
            w.matrix(b + "ffn_up", n_ff, n_embd, bias=bias)
            w.matrix(b + "ffn_down", n_embd, n_ff, bias=bias)
    for l in range(draft):
        w.norm(f"blk.{len(kinds) + l}.attn_norm", n_embd)
    w.norm("output_norm", n_embd)
    ff = [(n_each if n_exp else n_ff) if kind == "F" else 0 for kind in kinds] + [0] * draft
    keys = {**keys_of(len(kinds) + draft, n_embd, ff, n_head, 1e-2), "attention.head_count_kv": [2 * (kind == "A") for kind in kinds] + [0] * draft,
            **ssm_keys(n_in, n_st, n_h), **more}
    if n_exp:
        keys = {"expert_count": n_exp, "expert_used_count": 2, "expert_shared_feed_forward_length": n_shared, **keys}
    add(name, arch, keys, w, forward)


model("nemotron_h", "nemotron_h", 1691, {"attention.key_length": 10, "attention.value_length": 12, "ssm.group_count": 2, "rope.dimension_count": 84}, d=10,
      dv=12, n_g=2, bias=True, tied=False)
model("nemotron_h-plain", "nemotron_h", 1692, {"attention.scale": 0.4, "expert_count": 0})
model("nemotron_h_moe", "nemotron_h_moe", 1693, {"expert_weights_norm": True, "expert_weights_scale": 1.6, "nextn_predict_layers": 1, "expert_group_count": 3,
      "expert_group_used_count": 2, "expert_feed_forward_length": 26}, n_exp=6, draft=1)
model("nemotron_h_moe-latent", "nemotron_h_moe", 1694, {"expert_gating_func": 2, "moe_latent_size": 20, "expert_group_count": 1}, n_exp=5, short=20, choice=False)
model("nemotron_h_omni", "nemotron_h_omni", 1695, {"moe_latent_size": 20}, n_exp=5, short=20, other=True)
model("nemotron_h-common", "nemotron_h", 1696, {"attention.key_length": 9, "attention.value_length": 9, "ssm.group_count": 2}, n_g=2, bias=True, tied=False)
model("nemotron_h_moe-common", "nemotron_h_moe", 1699, {"attention.key_length": 9, "attention.value_length": 9, "ssm.group_count": 2, "expert_weights_norm": True,
      "expert_weights_scale": 1.6, "expert_feed_forward_length": 26, "expert_shared_count": 1}, n_g=2, bias=True, n_exp=6)
model("nemotron_h_moe-guess", "nemotron_h_moe", 1697, {"expert_weights_norm": True, "expert_weights_scale": 1.6, "nextn_predict_layers": 2, "moe_latent_size": 20},
      kinds="MAFMAF", n_exp=5, short=20)
guesses = CASES["nemotron_h_moe-guess"]
for part in ("enorm", "hnorm"):
    guesses.tensors.norm("blk.4.nextn." + part, 36)
guesses.tensors.matrix("blk.4.nextn.eh_proj", 36, 72, gain=0.5)
guesses.tensors.norm("blk.5.nextn.shared_head_norm", 36)
guesses.forward, guesses.output = guessed, "guess"
