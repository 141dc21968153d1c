"""RWKV 6 "Finch" (Peng et al. 2024, and the authors' code), and QRWKV 6 (Recursal 2024: a gated linear attention in place of Qwen's)."""
import math

from blocks import *
from families import dense, layer, layer_normed, swiglu
from nano import Weights, add, keys_of


def shifted(x):
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def mixtures(b, x):
    """Five rows of each token, for w, k, v, r and g."""
    past = shifted(x) - x
    low = np.split(np.tanh(linear(x + past * b("time_mix_lerp_x"), b("time_mix_w1"))), 5, axis=-1)
    fused = b("time_mix_lerp_fused")
    fixed = [b("time_mix_lerp_" + part) for part in "wkvrg"] if fused is None else fused.reshape(5, -1)
    return [x + past * (fixed[i] + linear(low[i], b("time_mix_w2")[i])) for i in range(5)]


def recurrence(r, key, v, w, u):
    """One head: each [T, d]; u: the bonus of the token itself, or none, and then it counts as those before."""
    y, s = np.zeros_like(v), np.zeros((r.shape[1], v.shape[1]))
    for t in range(len(r)):
        now = np.outer(key[t], v[t])
        y[t] = r[t] @ (s + u[:, None] * now) if u is not None else r[t] @ (w[t][:, None] * s + now)
        s = w[t][:, None] * s + now
    return y


def time_mix(k, b, x):
    d, n = k("wkv.head_size"), x.shape[1]
    xw, xk, xv, xr, xg = mixtures(b, x)
    r, key, v = dense(b, xr, "time_mix_receptance"), dense(b, xk, "time_mix_key"), dense(b, xv, "time_mix_value")
    w = np.exp(-np.exp(b("time_mix_decay") + linear(np.tanh(linear(xw, b("time_mix_decay_w1"))), b("time_mix_decay_w2"))))
    gate, first, y = linear(xg, b("time_mix_gate")), b("time_mix_first"), np.zeros_like(x)
    for i in range(n // d):
        h, of = slice(i * d, i * d + d), i * (key.shape[1] // d) // (n // d)
        kv = slice(of * d, of * d + d)
        if first is not None:
            one = recurrence(r[:, h], key[:, kv], v[:, kv], w[:, h], first[i])
            y[:, h] = layer_norm(one, b("time_mix_ln")[h], b("time_mix_ln", ".bias")[h], 64e-5)
        else:
            y[:, h] = recurrence(r[:, h], key[:, kv] * (1 - w[:, h]), v[:, kv], w[:, h], None) * d**-0.5
    return linear(y * (sigmoid(gate) if first is None else silu(gate)), b("time_mix_output"))


def rwkv6(k, w, tokens, n_ctx):
    eps, halve = k("attention.layer_norm_epsilon"), k("rescale_every_n_layers", 0)
    x = layer_norm(w["token_embd.weight"][tokens], w["token_embd_norm.weight"], w["token_embd_norm.bias"], eps)
    for l in range(k("block_count")):
        b = layer(w, l)
        x = x + time_mix(k, b, layer_normed(b, x, "attn_norm", eps))
        h = layer_normed(b, x, "attn_norm_2", eps)
        past = shifted(h) - h
        f = linear(np.maximum(linear(h + past * b("channel_mix_lerp_k"), b("channel_mix_key")), 0) ** 2, b("channel_mix_value"))
        x = x + sigmoid(linear(h + past * b("channel_mix_lerp_r"), b("channel_mix_receptance"))) * f
        if halve and l % halve == halve - 1:
            x = x / 2
    return linear(layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], eps), w["output.weight"])


def rwkv6qwen2(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        x = x + time_mix(k, b, rms_norm(x, b("attn_norm"), eps))
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["output.weight"])


def model(name, seed, qwen=False, n_kv=6, fused=True, bias=False, first=True, more={}):
    n, n_h, d, n_ff, low, slow = 42, 6, 7, 50, 5, 8
    w = Weights(seed)
    w.embedding(90, n, False)
    if not qwen:
        w.norm("token_embd_norm", n, True)
    for l in range(3):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n, not qwen)
        w.matrix(b + "time_mix_w1", 5 * low, n)
        w.matrix(b + "time_mix_w2", 5, n, low)
        w.put(b + "time_mix_lerp_x.weight", w.random.uniform(0, 1, n))
        if fused:
            w.put(b + "time_mix_lerp_fused.weight", w.random.uniform(0, 1, (5, 1, 1, n)))
        else:
            for part in "wkvrg":
                w.put(f"{b}time_mix_lerp_{part}.weight", w.random.uniform(0, 1, n))
        w.vector(b + "time_mix_decay.weight", n, 0.7, -1)
        w.matrix(b + "time_mix_decay_w1", slow, n)
        w.matrix(b + "time_mix_decay_w2", n, slow)
        for part, width in (("key", n_kv * d), ("value", n_kv * d), ("receptance", n)):
            w.matrix(b + "time_mix_" + part, width, n, bias=bias)
        w.matrix(b + "time_mix_gate", n, n)
        w.matrix(b + "time_mix_output", n, n, gain=3)
        if first:
            w.vector(b + "time_mix_first.weight", (n_h, d), 0.5, 0.5)
            w.norm(b + "time_mix_ln", n, True)
        if qwen:
            w.norm(b + "ffn_norm", n)
            w.gated(l, n, n_ff)
        else:
            w.norm(b + "attn_norm_2", n, True)
            for part in "kr":
                w.put(f"{b}channel_mix_lerp_{part}.weight", w.random.uniform(0, 1, n))
            w.matrix(b + "channel_mix_key", n_ff, n)
            w.matrix(b + "channel_mix_value", n, n_ff)
            w.matrix(b + "channel_mix_receptance", n, n)
    w.norm("output_norm", n, not qwen)
    keys = {**keys_of(3, n, n_ff, 0, 1e-2, not qwen), "wkv.head_size": d, "time_mix_extra_dim": low, "time_decay_extra_dim": slow, **more}
    add(name, "rwkv6qwen2" if qwen else "rwkv6", keys, w, rwkv6qwen2 if qwen else rwkv6)


model("rwkv6", 1631, more={"rescale_every_n_layers": 2})
model("rwkv6-old", 1632, fused=False, more={"token_shift_count": 2, "rescale_every_n_layers": 0})
model("rwkv6qwen2", 1633, qwen=True, n_kv=2, bias=True, first=False, more={"attention.head_count_kv": 2, "token_shift_count": 1})
model("rwkv6qwen2-zero", 1634, qwen=True, first=False, more={"attention.head_count_kv": 0, "token_shift_count": 1})
model("rwkv6qwen2-plain", 1635, qwen=True, first=False)
