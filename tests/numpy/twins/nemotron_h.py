"""Nemotron-H (NVIDIA 2025; modeling_nemotron_h): layers of one part each; Nano 3 and Super 3 with experts (2025, 2026)."""
from nano import CASES, Weights, add, keys_of
from statespace import *


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
    add(name, arch, keys, w)


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
guesses.output = "guess"
