"""Mamba (Gu & Dao 2023), Falcon-Mamba (Zuo et al. 2024), Mamba 2 (Dao & Gu 2024)."""
from blocks import *
from families import *
from nano import Weights, add, keys_of
from statespace import *


def forward(k, w, tokens, n_ctx):
    n_in, n_st, n_dt, eps = k("ssm.inner_size"), k("ssm.state_size"), k("ssm.time_step_rank"), k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        x = x + (mamba1(b, h, n_dt, n_st, eps, k("ssm.dt_b_c_rms", False)) if b("ssm_x") is not None else
                 mamba2(b, h, n_in, n_st, n_dt, k("ssm.group_count", 1), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def mamba(name, arch, seed, more={}, tied=True, bias=True, n_g=1, n_in=60):
    n_embd, n_st, n_dt = 36, 8, 5 if arch == "mamba" else 6
    w = Weights(seed)
    w.embedding(94, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if arch == "mamba":
            mamba1_weights(w, b, n_embd, n_in, n_st, n_dt, bias=bias)
        else:
            mamba2_weights(w, b, n_embd, n_in, n_st, n_dt, n_g, bias)
    w.norm("output_norm", n_embd)
    add(name, arch, {**keys_of(2, n_embd, 0, 0, 1e-2), **ssm_keys(n_in, n_st, n_dt), **more}, w, forward)


mamba("mamba", "mamba", 2201, {"ssm.dt_b_c_rms": False})
mamba("mamba-falcon", "mamba", 2202, {"ssm.dt_b_c_rms": True}, False, False)
mamba("mamba2", "mamba2", 2203, {"rope.freq_base": 20000.0, "ssm.group_count": 2}, n_g=2)
mamba("mamba2-one-group", "mamba2", 2204, {"ssm.dt_b_c_rms": False}, False, False)
mamba("mamba-common", "mamba", 2205, n_in=72)
mamba("mamba-falcon-common", "mamba", 2206, {"ssm.dt_b_c_rms": True}, False, n_in=72)
