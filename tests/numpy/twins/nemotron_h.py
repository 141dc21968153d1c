"""Nemotron-H (NVIDIA 2025; modeling_nemotron_h): layers of one part each; Nano 3 and Super 3 with experts (2025, 2026)."""
from mixtures import *
from nano import CASES, Weights, add, keys_of, other_names
from statespace import *


def puzzle(k, w, tokens, n_ctx):
    """Layers of attention and of experts alone, each with its own width and number of experts."""
    eps = k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        if k("attention.head_count_kv")[l]:
            q, key, v = (split_heads(linear(h, b("attn_" + part)), n) for part, n in (("q", 4), ("k", 2), ("v", 2)))
            x = x + linear(merge_heads(attention(q, key, v)), b("attn_output"))
            continue
        p = sigmoid(linear(h, b("ffn_gate_inp")))
        of = chosen_experts(p, k("expert_used_count")[l], b("exp_probs_b", ".bias"))
        weights = [{e: k("expert_weights_scale") * row[e] / sum(row[c] for c in es) for e in es} for row, es in zip(p, of)]
        square = lambda x: np.maximum(x, 0) ** 2
        up, down = b("ffn_up_exps"), b("ffn_down_exps")
        y = experts(linear(h, b("ffn_latent_down")), weights, of, lambda e, x: down[e] @ square(up[e] @ x))
        x = x + linear(square(linear(h, b("ffn_up_shexp"))), b("ffn_down_shexp")) + linear(y, b("ffn_latent_up"))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, arch, seed, more={}, kinds="MAFM", d=9, dv=None, n_g=1, tied=True, bias=False, n_exp=0, short=0, other=False, choice=True, draft=0, each={}, forward=None):
    """each: widths of the experts of some layers."""
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
            wide, n_wide = short or n_embd, each.get(l, n_each)
            w.matrix(b + "ffn_gate_inp", n_exp, n_embd, gain=2)
            if choice:
                w.vector(b + "exp_probs_b.bias", n_exp, 0.5)
            w.matrix(b + "ffn_up_exps", n_exp, n_wide, wide)
            w.matrix(b + "ffn_down_exps", n_exp, wide, n_wide)
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
    add(name, arch, keys, w, forward and other_names(forward))


model("nemotron_h", "nemotron_h", 1691, {"attention.key_length": 10, "attention.value_length": 12, "ssm.group_count": 2, "rope.dimension_count": 84}, d=10,
      dv=12, n_g=2, bias=True, tied=False)
model("nemotron_h-plain", "nemotron_h", 1692, {"attention.scale": 0.4, "expert_count": 0})
model("nemotron_h_moe", "nemotron_h_moe", 1693, {"expert_weights_norm": True, "expert_weights_scale": 1.6, "nextn_predict_layers": 1, "expert_group_count": 3,
      "expert_group_used_count": 2, "expert_feed_forward_length": 26}, n_exp=6, draft=1)
model("nemotron_h_moe-latent", "nemotron_h_moe", 1694, {"expert_gating_func": 2, "moe_latent_size": 20, "expert_group_count": 1}, n_exp=5, short=20, choice=False)
model("nemotron_h_omni", "nemotron_h_omni", 1695, {"moe_latent_size": 20}, n_exp=5, short=20, other=True)
model("nemotron_h_moe-puzzle", "nemotron_h_moe", 1698, {"moe_latent_size": 20, "expert_weights_norm": True, "expert_weights_scale": 1.6, "expert_used_count": [2, 0, 4, 1], "feed_forward_length": [26, 0, 18, 32],
      "expert_feed_forward_length": [26, 0, 18, 32]}, kinds="FAFF", n_exp=5, short=20, each={2: 18, 3: 32}, forward=puzzle)
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
guesses.output = "guess"
