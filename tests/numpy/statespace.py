"""The layers of Mamba 1 and 2 (Gu & Dao 2023; Dao & Gu 2024), token after token, and their weights: for ./twins of several families."""
import math

import numpy as np

from blocks import *
from families import dense


def selective(dt, a, b, c, u):
    """Mamba 1: dt, u [T, n], a [n, N], b, c [T, N]."""
    y, s = np.zeros_like(u), np.zeros_like(a)
    for t in range(len(u)):
        s = np.exp(dt[t][:, None] * a) * s + np.outer(dt[t] * u[t], b[t])
        y[t] = s @ c[t]
    return y


def mamba1(b, h, n_dt, n_st, eps, normed):
    """normed: the norms of dt, b and c, or three weights."""
    u, z = np.split(linear(h, b("ssm_in")), 2, axis=-1)
    u = silu(causal_conv(u, b("ssm_conv1d"), b("ssm_conv1d", ".bias")))
    parts = np.split(linear(u, b("ssm_x")), [n_dt, n_dt + n_st], axis=-1)
    if normed:
        parts = [rms_norm(p, b(f"ssm_{name}_norm"), eps) for p, name in zip(parts, ("dt", "b", "c"))]
    dt = softplus(dense(b, parts[0], "ssm_dt"))
    y = selective(dt, b("ssm_a", ""), parts[1], parts[2], u) + b("ssm_d", "") * u
    return linear(y * silu(z), b("ssm_out"))


def mamba2(b, h, n_in, n_st, n_h, n_g, eps):
    z, mixed, dt = np.split(linear(h, b("ssm_in")), [n_in, 2 * n_in + 2 * n_g * n_st], axis=-1)
    mixed = silu(causal_conv(mixed, b("ssm_conv1d"), b("ssm_conv1d", ".bias")))
    u, rows, columns = np.split(mixed, [n_in, n_in + n_g * n_st], axis=-1)
    u, rows, columns = split_heads(u, n_h), split_heads(rows, n_g), split_heads(columns, n_g)
    dt = softplus(dt + b("ssm_dt", ".bias"))
    y = np.zeros_like(u)
    for i in range(n_h):
        g, s = i // (n_h // n_g), np.zeros((u.shape[2], n_st))
        for t in range(len(h)):
            s = math.exp(dt[t, i] * b("ssm_a", "")[i, 0]) * s + dt[t, i] * np.outer(u[t, i], rows[t, g])
            y[t, i] = s @ columns[t, g] + b("ssm_d", "")[i, 0] * u[t, i]
    y = merge_heads(y) * silu(z)
    if b("ssm_norm") is not None:
        y = merge_heads(rms_norm(split_heads(y, n_g), b("ssm_norm"), eps))
    return linear(y, b("ssm_out"))


def mamba1_weights(w, b, n_embd, n_in, n_st, n_dt, norms=False, bias=True):
    w.put(b + "ssm_conv1d.weight", 0.7 * w.random.normal(size=(n_in, 4)))
    if bias:
        w.vector(b + "ssm_conv1d.bias", n_in)
    w.matrix(b + "ssm_in", 2 * n_in, n_embd)
    w.matrix(b + "ssm_x", n_dt + 2 * n_st, n_in, gain=2)
    for name, n in (("dt", n_dt), ("b", n_st), ("c", n_st)) if norms else ():
        w.norm(f"{b}ssm_{name}_norm", n)
    w.matrix(b + "ssm_dt", n_in, n_dt, bias=True)
    w.put(b + "ssm_a", -w.random.uniform(0.1, 1.5, (n_in, n_st)))
    w.vector(b + "ssm_d", n_in, 0.5, 1)
    w.matrix(b + "ssm_out", n_embd, n_in, gain=2)


def mamba2_weights(w, b, n_embd, n_in, n_st, n_h, n_g, bias=True, norm=True):
    wide = n_in + 2 * n_g * n_st
    w.put(b + "ssm_conv1d.weight", 0.7 * w.random.normal(size=(wide, 4)))
    if bias:
        w.vector(b + "ssm_conv1d.bias", wide)
    w.matrix(b + "ssm_in", n_in + wide + n_h, n_embd, gain=1.5)
    w.vector(b + "ssm_dt.bias", n_h, 0.5)
    w.put(b + "ssm_a", -w.random.uniform(0.1, 1.5, (n_h, 1)))
    w.vector(b + "ssm_d", (n_h, 1), 0.5, 1)
    if norm:
        w.vector(b + "ssm_norm.weight", (n_g, n_in // n_g), 0.3, 1)
    w.matrix(b + "ssm_out", n_embd, n_in, gain=2)


def ssm_keys(n_in, n_st, n_dt):
    return {"ssm.conv_kernel": 4, "ssm.inner_size": n_in, "ssm.state_size": n_st, "ssm.time_step_rank": n_dt}
