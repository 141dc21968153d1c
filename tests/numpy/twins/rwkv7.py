"""RWKV 7 "Goose" (Peng et al. 2025, and the authors' rwkv_v7_demo.py), and ARWKV 7 (Yueyu et al. 2025)."""
import math

from blocks import *
from families import layer, layer_normed, swiglu
from nano import Weights, add, keys_of


def shifted(x):
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def time_mix(k, b, x, first):
    """The paper's formulas, one head after the other; S has a row for each value. Returns the output and the values."""
    size = k("wkv.head_size")
    mixes = b("time_mix_lerp_fused").reshape(-1, x.shape[1])
    xr, xw, xk, xv, xa, *xg = [x + (shifted(x) - x) * m for m in mixes]
    r, key, v = linear(xr, b("time_mix_receptance")), linear(xk, b("time_mix_key")), linear(xv, b("time_mix_value"))
    decay = -softplus(-(b("time_mix_w0") + linear(np.tanh(linear(xw, b("time_mix_w1"))), b("time_mix_w2")))) - 0.5
    w = np.exp(-np.exp(decay))
    a = sigmoid(b("time_mix_a0") + linear(linear(xa, b("time_mix_a1")), b("time_mix_a2")))
    own = v
    if first is not None:
        v = v + (first - v) * sigmoid(b("time_mix_v0") + linear(linear(xv, b("time_mix_v1")), b("time_mix_v2")))
    removed, key = key * b("time_mix_k_k"), key * (1 + (a - 1) * b("time_mix_k_a"))
    y, bonus = np.zeros_like(x), np.zeros_like(x)
    for start in range(0, x.shape[1], size):
        h, s = slice(start, start + size), np.zeros((size, size))
        for t in range(len(x)):
            kk = removed[t, h] / np.linalg.norm(removed[t, h])
            s = s * w[t, h] - np.outer(s @ kk, kk * a[t, h]) + np.outer(v[t, h], key[t, h])
            y[t, h] = s @ r[t, h]
            bonus[t, h] = (r[t, h] * key[t, h] * b("time_mix_r_k")[h]).sum() * v[t, h]
        if b("time_mix_ln") is not None:
            y[:, h] = layer_norm(y[:, h], b("time_mix_ln")[h], b("time_mix_ln", ".bias")[h], 64e-5)
    y = y + bonus
    if xg:
        y = y * linear(sigmoid(linear(xg[0], b("time_mix_g1"))), b("time_mix_g2"))
    return linear(y, b("time_mix_output")), own


def rwkv7(k, w, tokens, n_ctx):
    eps, first = k("attention.layer_norm_epsilon"), None
    x = layer_norm(w["token_embd.weight"][tokens], w["token_embd_norm.weight"], w["token_embd_norm.bias"], eps)
    for l in range(k("block_count")):
        b = layer(w, l)
        y, own = time_mix(k, b, layer_normed(b, x, "attn_norm", eps), first)
        x, first = x + y, own if first is None else first
        h = layer_normed(b, x, "attn_norm_2", eps)
        h = h + (shifted(h) - h) * b("channel_mix_lerp_k")
        x = x + linear(np.maximum(linear(h, b("channel_mix_key")), 0) ** 2, b("channel_mix_value"))
    return linear(layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], eps), w["output.weight"])


def arwkv7(k, w, tokens, n_ctx):
    eps, first = k("attention.layer_norm_rms_epsilon"), None
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        y, own = time_mix(k, b, rms_norm(x, b("attn_norm"), eps), first)
        x, first = x + y, own if first is None else first
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["output.weight"])


def model(name, seed, qwen=False, gate=True, normed=True, idle=False, more={}, n_h=6, d=7):
    n, n_ff, ranks = n_h * d, 50, {"w": 8, "a": 9, "v": 5, "g": 10}
    w = Weights(seed)
    w.embedding(90, n, False)
    if not qwen:
        w.norm("token_embd_norm", n, True)
    for l in range(3):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n, not qwen)
        w.put(b + "time_mix_lerp_fused.weight", w.random.uniform(0, 1, (5 + gate, 1, 1, n)))
        for part in ("receptance", "key", "value"):
            w.matrix(b + "time_mix_" + part, n, n)
        w.matrix(b + "time_mix_output", n, n, gain=2)
        for part in "wav" if l or idle else "wa":
            w.vector(f"{b}time_mix_{part}0.weight", n, 0.7, -0.5)
        for part in "wav" + "g" * gate if l or idle else "wa" + "g" * gate:
            w.matrix(f"{b}time_mix_{part}1", ranks[part], n)
            w.matrix(f"{b}time_mix_{part}2", n, ranks[part])
        for part in ("k_k", "k_a", "r_k"):
            w.vector(f"{b}time_mix_{part}.weight", n, 0.3, 0.8)
        if normed:
            w.norm(b + "time_mix_ln", n, True)
        if qwen:
            w.norm(b + "ffn_norm", n)
            w.gated(l, n, n_ff)
        else:
            w.norm(b + "attn_norm_2", n, True)
            w.put(b + "channel_mix_lerp_k.weight", w.random.uniform(0, 1, n))
            w.matrix(b + "channel_mix_key", n_ff, n)
            w.matrix(b + "channel_mix_value", n, n_ff)
    w.norm("output_norm", n, not qwen)
    keys = {**keys_of(3, n, n_ff, 0, 1e-2, not qwen), "wkv.head_size": d, "attention.decay_lora_rank": 8, "attention.iclr_lora_rank": 9,
            "attention.value_residual_mix_lora_rank": 5, "attention.gate_lora_rank": 10 * gate, **more}
    add(name, "arwkv7" if qwen else "rwkv7", {key: v for key, v in keys.items() if v is not None}, w, arwkv7 if qwen else rwkv7)


model("rwkv7", 1621)
model("rwkv7-idle", 1622, idle=True, more={"token_shift_count": 2, "rope.freq_base": 20000.0})
model("arwkv7", 1623, qwen=True, more={"token_shift_count": 1})
model("arwkv7-plain", 1624, qwen=True, gate=False, normed=False, idle=True, more={"attention.gate_lora_rank": None, "token_shift_count": 1})
model("rwkv7-common", 1625, n_h=1, d=64)
