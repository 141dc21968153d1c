"""What no shipped family uses: the models of ./archs, each with its forward pass from the papers.

A published family mixes several constructs, so the descriptors are such families, cut down. The passes are for clarity, not
for speed: tokens, heads and experts in plain loops where that reads better.
"""
import math

import numpy as np

from blocks import *
from families import layer, mixture, swiglu
from nano import CASES, Weights, add, keys_of


def custom(name, arch, keys, w, forward, n_ctx=0, descriptor=None):
    add(name, arch, keys, w, forward, n_ctx, descriptor or arch)


# --- sinks: gpt-oss


def sinks_forward(k, w, tokens, n_ctx):
    n_head, n_kv, d = k("attention.head_count"), k("attention.head_count_kv"), k("attention.key_length")
    eps, factor, limit = k("attention.layer_norm_rms_epsilon"), k("rope.scaling.factor"), k("swiglu_clamp")
    theta = yarn_frequencies(d, k("rope.freq_base"), factor, k("rope.scaling.original_context_length"))
    mag = 0.1 * math.log(factor) + 1
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = (linear(h, b("attn_" + p), b("attn_" + p, ".bias")) for p in "qkv")
        a = attention(rotate(split_heads(q, n_head), theta, True, mag), rotate(split_heads(key, n_kv), theta, True, mag),
                      split_heads(v, n_kv), window=None if l % 2 else k("attention.sliding_window"), sinks=b("attn_sinks"))
        x = x + linear(merge_heads(a), b("attn_output"), b("attn_output", ".bias"))
        h = rms_norm(x, b("post_attention_norm"), eps)
        scores = linear(h, b("ffn_gate_inp"), b("ffn_gate_inp", ".bias"))
        chosen = [best(s, k("expert_used_count")) for s in scores]
        weights = [dict(zip(of, softmax(s[of]))) for s, of in zip(scores, chosen)]

        def expert(e, x):
            gate = np.minimum(b("ffn_gate_exps")[e] @ x + b("ffn_gate_exps", ".bias")[e], limit)
            up = np.clip(b("ffn_up_exps")[e] @ x + b("ffn_up_exps", ".bias")[e], -limit, limit)
            return b("ffn_down_exps")[e] @ ((up + 1) * gate * sigmoid(1.702 * gate)) + b("ffn_down_exps", ".bias")[e]

        x = x + experts(h, weights, chosen, expert)
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["output.weight"])


def sinks():
    n_embd, n_head, n_kv, d, n_ff, n_exp = 44, 6, 2, 12, 26, 5
    w = Weights(103)
    w.embedding(70, n_embd, tied=False)
    for l in range(5):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, bias="qkvo")
        w.vector(f"blk.{l}.attn_sinks.weight", n_head, 1.0, 1.0)
        w.norm(f"blk.{l}.post_attention_norm", n_embd)
        w.experts(l, n_embd, n_ff, n_exp, bias=True)
    w.norm("output_norm", n_embd)
    keys = keys_of(5, n_embd, n_ff, n_head, 1e-2, attention__head_count_kv=n_kv, attention__key_length=d, rope__freq_base=150.0,
                   rope__scaling__type="yarn", rope__scaling__factor=8.0, rope__scaling__original_context_length=40,
                   attention__sliding_window=6, expert_count=n_exp, expert_used_count=2, expert_feed_forward_length=n_ff,
                   swiglu_clamp=1.2)
    del keys["feed_forward_length"]
    custom("sinks", "sinks", keys, w, sinks_forward)


sinks()


# --- neox: parallel attention and feed-forward, partial rotary, one or few key heads


def neox_forward(k, w, tokens, n_ctx):
    n_embd, n_head, n_kv = k("embedding_length"), k("attention.head_count"), k("attention.head_count_kv", 1)
    d, eps = n_embd // n_head, k("attention.layer_norm_epsilon")
    theta = inverse_frequencies(k("rope.dimension_count"), k("rope.freq_base", 10000.0))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        ln = (b("attn_norm"), b("attn_norm", ".bias"), eps)
        rows = linear(layer_norm(x, *ln), b("attn_qkv"), b("attn_qkv", ".bias")).reshape(len(x), n_kv, -1, d)
        q = rows[:, :, :-2].reshape(len(x), n_head, d)
        a = merge_heads(attention(rotate(q, theta, True), rotate(rows[:, :, -2], theta, True), rows[:, :, -1]))
        a = linear(a, b("attn_output"), b("attn_output", ".bias"))
        if b("ffn_norm") is not None:
            ln = (b("ffn_norm"), b("ffn_norm", ".bias"), eps)
        h = layer_norm(x if k("use_parallel_residual") else x + a, *ln)
        f = linear(gelu_erf(linear(h, b("ffn_up"), b("ffn_up", ".bias"))), b("ffn_down"), b("ffn_down", ".bias"))
        x = x + a + f
    return linear(layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], eps), w["output.weight"])


def neox(name, seed, n_kv, parallel, own_norm, bias):
    n_embd, n_head, n_ff = 48, 4, 92
    d = n_embd // n_head
    w = Weights(seed)
    w.embedding(74, n_embd, tied=False)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5, bias=bias)
        w.matrix(b + "attn_output", n_embd, n_embd, bias=bias)
        if own_norm:
            w.norm(b + "ffn_norm", n_embd, True)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=bias)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=bias)
    w.norm("output_norm", n_embd, True)
    keys = keys_of(2, n_embd, n_ff, n_head, 1e-2, True, rope__dimension_count=6, use_parallel_residual=parallel)
    if n_kv > 1:
        keys["attention.head_count_kv"] = n_kv
    custom(name, "neox", keys, w, neox_forward)


neox("neox", 104, 4, True, True, True)
neox("neox-serial", 105, 2, False, True, True)
neox("neox-falcon", 106, 1, True, False, False)


# --- perlayer: arrays of head counts, sizes, windows and bases


def perlayer_forward(k, w, tokens, n_ctx):
    d, eps = k("attention.key_length"), k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        n_head, n_kv, n_ff = (k(name)[l] for name in ("attention.head_count", "attention.head_count_kv", "feed_forward_length"))
        if n_head:
            h = rms_norm(x, b("attn_norm"), eps)
            q, key, v = (split_heads(linear(h, b("attn_" + p)), n) for p, n in (("q", n_head), ("k", n_kv), ("v", n_kv)))
            if l not in k("rope.no_layers"):
                base = k("rope.freq_base")
                theta = inverse_frequencies(d, base[l] if isinstance(base, list) else base)
                q, key = rotate(q, theta, True), rotate(key, theta, True)
            a = attention(q, key, v, window=k("attention.sliding_window")[l] or None)
            x = x + linear(merge_heads(a), b("attn_output"))
        if n_ff:
            h = rms_norm(x, b("ffn_norm"), eps)
            up = linear(h, b("ffn_up"))
            if l < k("leading_dense_block_count", 1):
                f = np.maximum(up, 0) ** 2
            elif l % 2 == 1:
                f = silu(up)
            else:
                f = up * gelu(linear(h, b("ffn_gate")))
            x = x + linear(f, b("ffn_down"))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w.get("output.weight", w["token_embd.weight"]))


def perlayer(name, seed, more={}, base=None, tied=True):
    n_embd, d, dense = 40, 8, more.get("leading_dense_block_count", 1)
    heads, kv, ff, windows = [2, 0, 6, 4, 3], [1, 0, 2, 4, 1], [24, 30, 0, 52, 44], [0, 5, 9, 0, 4]
    w = Weights(seed)
    w.embedding(82, n_embd, tied)
    for l in range(5):
        if heads[l]:
            w.norm(f"blk.{l}.attn_norm", n_embd)
            w.attention(l, n_embd, heads[l], kv[l], d)
        if ff[l]:
            w.norm(f"blk.{l}.ffn_norm", n_embd)
            w.matrix(f"blk.{l}.ffn_up", ff[l], n_embd)
            w.matrix(f"blk.{l}.ffn_down", n_embd, ff[l])
            if l >= dense and l % 2 == 0:
                w.matrix(f"blk.{l}.ffn_gate", ff[l], n_embd)
    w.norm("output_norm", n_embd)
    keys = keys_of(5, n_embd, ff, heads, 1e-2, attention__head_count_kv=kv, attention__key_length=d,
                   attention__sliding_window=windows, rope__freq_base=base or [100.0, 100.0, 900.0, 50.0, 20.0], rope__no_layers=[2, 9])
    custom(name, "perlayer", {**keys, **more}, w, perlayer_forward)


perlayer("perlayer", 109)
perlayer("perlayer-one-base", 110, {"leading_dense_block_count": 2}, 100.0, tied=False)


# --- sharedkv: layers that read another layer's keys and values


def sharedkv_forward(k, w, tokens, n_ctx):
    n_embd, n_head, n_kv = k("embedding_length"), k("attention.head_count"), k("attention.head_count_kv")
    n_layer, d, eps = k("block_count"), k("attention.key_length"), k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens] * math.sqrt(n_embd)
    stored = {}  # kind of layer -> its last keys and values
    for l in range(n_layer):
        b = layer(w, l)
        whole = l % 3 == 2
        theta = inverse_frequencies(d, k("rope.freq_base" if whole else "rope.freq_base_swa"))
        h = rms_norm(x, b("attn_norm"), eps)
        if l < n_layer - k("attention.shared_kv_layers"):
            stored[whole] = (rotate(split_heads(linear(h, b("attn_k")), n_kv), theta, True),
                             rms_norm(split_heads(linear(h, b("attn_v")), n_kv), None, eps))
        q = rotate(split_heads(linear(h, b("attn_q")), n_head), theta, True)
        a = attention(q, *stored[whole], scale=1, window=None if whole else k("attention.sliding_window"))
        x = x + linear(merge_heads(a), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + linear(gelu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down"))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["token_embd.weight"])


def sharedkv():
    n_embd, n_head, n_kv, d, n_ff, n_layer, n_shared = 40, 4, 2, 12, 54, 7, 3
    w = Weights(111)
    w.embedding(84, n_embd)
    for l in range(n_layer):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d)
        for part in "qk":
            if f"blk.{l}.attn_{part}.weight" in w:
                w[f"blk.{l}.attn_{part}.weight"] *= np.float32(0.4)  # the scale is 1
        if l >= n_layer - n_shared:
            del w[f"blk.{l}.attn_k.weight"], w[f"blk.{l}.attn_v.weight"]
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    custom("sharedkv", "sharedkv", keys_of(n_layer, n_embd, n_ff, n_head, 1e-2, attention__head_count_kv=n_kv, attention__key_length=d,
                                           attention__shared_kv_layers=n_shared, attention__sliding_window=6,
                                           rope__freq_base=900.0, rope__freq_base_swa=20.0), w, sharedkv_forward)


sharedkv()


# --- longrope, as MiniCPM has it, with Granite's scales on everything


def longrope_forward(k, w, tokens, n_ctx):
    n_embd, n_head, n_kv = k("embedding_length"), k("attention.head_count"), k("attention.head_count_kv")
    eps, d = k("attention.layer_norm_rms_epsilon"), n_embd // n_head
    original = k("rope.scaling.original_context_length")
    mag = math.sqrt(1 + math.log(k("context_length") / original) / math.log(original))
    factors = w["rope_factors_long.weight" if n_ctx > original else "rope_factors_short.weight"]
    theta = inverse_frequencies(d, k("rope.freq_base")) / factors
    x = k("embedding_scale") * w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = rotate(split_heads(linear(h, b("attn_q")), n_head), theta, True, mag)
        key = rotate(split_heads(linear(h, b("attn_k")), n_kv), theta, True, mag)
        a = attention(q, key, split_heads(linear(h, b("attn_v")), n_kv), scale=k("attention.scale", None))
        x = x + k("residual_scale") * linear(merge_heads(a), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        shared = linear(silu(linear(h, b("ffn_gate_shexp"))) * linear(h, b("ffn_up_shexp")), b("ffn_down_shexp"))
        x = x + k("residual_scale") * (mixture(b, h, k("expert_used_count")) + shared)
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["token_embd.weight"]) / k("logit_scale")


def longrope(name, seed, more={}, n_ctx=0):
    n_embd, n_head, n_kv, n_ff, n_sh, n_exp = 48, 4, 2, 22, 34, 6
    w = Weights(seed)
    w.embedding(88, n_embd)
    w.factors("rope_factors_long", 6, 2, 9)
    w.factors("rope_factors_short", 6, 1, 2)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, 12)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.experts(l, n_embd, n_ff, n_exp)
        w.shared_expert(l, n_embd, n_sh)
    w.norm("output_norm", n_embd)
    keys = keys_of(2, n_embd, n_ff, n_head, 1e-2, attention__head_count_kv=n_kv, rope__freq_base=200.0, expert_count=n_exp,
                   expert_used_count=2, expert_shared_feed_forward_length=n_sh, embedding_scale=3.0, residual_scale=0.4,
                   logit_scale=1.7)
    custom(name, "longrope", {**keys, **more}, w, longrope_forward, n_ctx)


longrope("longrope", 116, {"attention.scale": 0.4, "rope.scaling.original_context_length": 32})
longrope("longrope-short", 116, {"rope.scaling.original_context_length": 32}, n_ctx=32)


# --- interleaved: a shared expert with a gate, llama3's frequencies


def interleaved_forward(k, w, tokens, n_ctx):
    n_embd, n_head, n_kv = k("embedding_length"), k("attention.head_count"), k("attention.head_count_kv")
    eps, s = k("attention.layer_norm_rms_epsilon"), "rope.scaling."
    theta = llama3_frequencies(n_embd // n_head, k("rope.freq_base"), k(s + "factor"), k(s + "low_freq_factor"),
                               k(s + "high_freq_factor"), k(s + "original_context_length"))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = (split_heads(linear(h, b("attn_" + p), b("attn_" + p, ".bias")), n) for p, n in
                     (("q", n_head), ("k", n_kv), ("v", n_kv)))
        a = attention(rotate(q, theta, True), rotate(key, theta, True), v)
        x = x + linear(merge_heads(a), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        if (l + 1) % k("interleave_moe_layer_step"):
            x = x + swiglu(b, h)
            continue
        p = softmax(linear(h, b("ffn_gate_inp")))
        chosen = [best(row, k("expert_used_count")) for row in p]
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        y = experts(h, p, chosen, lambda e, x: down[e] @ (silu(gate[e] @ x) * (up[e] @ x)))
        shared = linear(silu(linear(h, b("ffn_gate_shexp"))) * linear(h, b("ffn_up_shexp")), b("ffn_down_shexp"))
        x = x + y + shared * sigmoid(h @ b("ffn_gate_inp_shexp"))[:, None]
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["output.weight"])


def interleaved():
    n_embd, n_head, n_kv, n_ff, n_ffe, n_ffs, n_exp = 48, 4, 2, 58, 20, 30, 6
    w = Weights(117)
    w.embedding(90, n_embd, tied=False)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, 12, bias="qkv")
        w.norm(b + "ffn_norm", n_embd)
        if l == 0:
            w.gated(l, n_embd, n_ff)
            continue
        w.experts(l, n_embd, n_ffe, n_exp)
        w.shared_expert(l, n_embd, n_ffs)
        w.vector(b + "ffn_gate_inp_shexp.weight", n_embd, 0.3)
    w.norm("output_norm", n_embd)
    custom("interleaved", "interleaved", keys_of(2, n_embd, n_ff, n_head, 1e-2, attention__head_count_kv=n_kv, rope__freq_base=500.0,
                                           rope__scaling__factor=8.0, rope__scaling__low_freq_factor=1.0,
                                           rope__scaling__high_freq_factor=4.0, rope__scaling__original_context_length=100,
                                           expert_count=n_exp, expert_used_count=3, expert_feed_forward_length=n_ffe,
                                           expert_shared_feed_forward_length=n_ffs, interleave_moe_layer_step=2),
           w, interleaved_forward)


interleaved()


# --- hybrid: attention and a state-space part side by side


def hybrid_forward(k, w, tokens, n_ctx):
    n_head, n_kv, d = k("attention.head_count"), k("attention.head_count_kv"), k("attention.key_length")
    n_in, n_st, n_h, eps = k("ssm.inner_size"), k("ssm.state_size"), k("ssm.time_step_rank"), k("attention.layer_norm_rms_epsilon")
    theta = inverse_frequencies(d, k("rope.freq_base"))
    x = w["token_embd.weight"][tokens]
    n = len(x)
    sharp = [math.log(math.floor((t + 1) / k("attention.floor_scale")) + 1) * k("attention.temperature_scale") + 1 for t in range(n)]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = rotate(split_heads(linear(h, b("attn_q")), n_head), theta, True) * np.array(sharp)[:, None, None]
        key = rotate(split_heads(linear(h, b("attn_k")), n_kv), theta, True)
        a = linear(merge_heads(attention(q, key, split_heads(linear(h, b("attn_v")), n_kv))), b("attn_output"))
        u, rows, columns, dt = np.split(linear(h, b("ssm_in")), [n_in, n_in + n_st, n_in + 2 * n_st], axis=-1)
        u, dt = split_heads(u, n_h), softplus(dt + b("ssm_dt", ".bias"))
        y = np.zeros_like(u)
        for i in range(n_h):
            s = np.zeros((n_st, u.shape[2]))
            for t in range(n):
                s = s * math.exp(-math.exp(b("ssm_a_log", "")[i]) * dt[t, i]) + dt[t, i] * np.outer(rows[t], u[t, i])
                y[t, i] = columns[t] @ s
        x = x + k("attention.output_scale") * a + k("ssm.output_scale") * linear(merge_heads(y), b("ssm_out"))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["token_embd.weight"])


def hybrid():
    n_embd, n_head, n_kv, d, n_in, n_st, n_h = 40, 4, 2, 12, 42, 9, 6
    w = Weights(125)
    w.embedding(58, n_embd)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.matrix(b + "ssm_in", n_in + 2 * n_st + n_h, n_embd)
        w.vector(b + "ssm_dt.bias", n_h, 0.5)
        w.vector(b + "ssm_a_log", n_h, 0.7)
        w.matrix(b + "ssm_out", n_embd, n_in)
    w.norm("output_norm", n_embd)
    keys = {"block_count": 2, "context_length": 64, "embedding_length": n_embd, "attention.layer_norm_rms_epsilon": 1e-2,
            "attention.head_count": n_head, "attention.head_count_kv": n_kv, "attention.key_length": d, "rope.freq_base": 100.0,
            "attention.temperature_scale": 0.4, "attention.floor_scale": 4, "attention.output_scale": 0.7, "ssm.output_scale": 0.5,
            "ssm.inner_size": n_in, "ssm.state_size": n_st, "ssm.time_step_rank": n_h}
    custom("hybrid", "hybrid", keys, w, hybrid_forward)
    custom("hybrid-own-descriptor", "hybrid", keys, w, hybrid_forward)
    CASES["hybrid-own-descriptor"].embedded = True


hybrid()


# --- rwkv 6


def rwkv_forward(k, w, tokens, n_ctx):
    n_embd, n_h, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    d = n_embd // n_h
    x = layer_norm(w["token_embd.weight"][tokens], w["token_embd_norm.weight"], w["token_embd_norm.bias"], eps)
    n = len(x)

    def shifted(h):
        return np.concatenate([np.zeros((1, n_embd)), h[:-1]])

    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_norm(x, b("attn_norm"), b("attn_norm", ".bias"), eps)
        mk, mv, mr, mg, mw = (h + (shifted(h) - h) * mu for mu in b("time_mix"))
        key, v, r = (split_heads(linear(m, b("time_mix_" + p)), n_h) for m, p in ((mk, "k"), (mv, "v"), (mr, "r")))
        gate = silu(linear(mg, b("time_mix_g")))
        decay = b("time_decay") + linear(np.tanh(linear(mw, b("time_decay_a"))), b("time_decay_b"))
        keep = split_heads(np.exp(-np.exp(decay)), n_h)
        y = np.zeros((n, n_h, d))
        for i in range(n_h):
            s = np.zeros((d, d))
            for t in range(n):
                now = np.outer(key[t, i], v[t, i])
                y[t, i] = r[t, i] @ (s + b("time_first")[i][:, None] * now)
                s = keep[t, i][:, None] * s + now
        y = merge_heads(layer_norm(y, None, None, eps)) * b("time_norm") + b("time_norm", ".bias")
        x = x + linear(y * gate, b("time_mix_out"))
        h = layer_norm(x, b("ffn_norm"), b("ffn_norm", ".bias"), eps)
        mk, mr = (h + (shifted(h) - h) * mu for mu in b("channel_mix"))
        f = linear(np.maximum(linear(mk, b("channel_mix_k")), 0) ** 2, b("channel_mix_v"))
        x = x + sigmoid(linear(mr, b("channel_mix_r"))) * f
    return linear(layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], eps), w["output.weight"])


def rwkv():
    n_embd, d, n_ff, r = 40, 10, 56, 6
    w = Weights(121)
    w.embedding(96, n_embd, tied=False)
    w.norm("token_embd_norm", n_embd, True)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.put(b + "time_mix.weight", w.random.uniform(0, 1, (5, n_embd)))
        for part in ("r", "k", "v", "g", "out"):
            w.matrix(b + "time_mix_" + part, n_embd, n_embd)
        w.vector(b + "time_decay.weight", n_embd, 0.5, -1)
        w.matrix(b + "time_decay_a", r, n_embd)
        w.matrix(b + "time_decay_b", n_embd, r)
        w.vector(b + "time_first.weight", (n_embd // d, d), 0.5)
        w.norm(b + "time_norm", n_embd, True)
        w.norm(b + "ffn_norm", n_embd, True)
        w.put(b + "channel_mix.weight", w.random.uniform(0, 1, (2, n_embd)))
        w.matrix(b + "channel_mix_k", n_ff, n_embd)
        w.matrix(b + "channel_mix_v", n_embd, n_ff)
        w.matrix(b + "channel_mix_r", n_embd, n_embd)
    w.norm("output_norm", n_embd, True)
    keys = {"block_count": 2, "context_length": 64, "embedding_length": n_embd, "feed_forward_length": n_ff,
            "attention.head_count": n_embd // d,
            "time_decay_extra_dim": r, "attention.layer_norm_epsilon": 1e-2}
    custom("rwkv", "rwkv", keys, w, rwkv_forward)


rwkv()


# --- every common activation, gated and not

ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "relu2": lambda x: np.maximum(x, 0) ** 2, "silu": silu, "gelu": gelu,
               "gelu_erf": gelu_erf, "gelu_quick": gelu_quick, "sigmoid": sigmoid, "tanh": np.tanh, "softplus": softplus,
               "mish": lambda x: x * np.tanh(softplus(x)), "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
               "leaky": lambda x: np.where(x > 0, x, 0.1 * x), "none": lambda x: x}


def activations_forward(k, w, tokens, n_ctx):
    n_head, eps = k("attention.head_count"), k("attention.layer_norm_rms_epsilon")
    theta = inverse_frequencies(k("rope.dimension_count"), k("rope.freq_base"))
    x = w["token_embd.weight"][tokens] + w["position_embd.weight"][: len(tokens)]
    for l in range(k("block_count")):
        b = layer(w, l)
        if l == 0:
            q, key, v = (split_heads(p, n_head) for p in np.split(linear(rms_norm(x, None, eps), b("attn_qkv")), 3, axis=-1))
            a = attention(rotate(q, theta, False), rotate(key, theta, False), v)
            x = x + linear(merge_heads(a), b("attn_output"))
        h = rms_norm(x, None, eps)
        act = ACTIVATIONS[k("activation")[l]]
        up = linear(h, b("ffn_up"))
        f = act(up) if b("ffn_gate") is None else act(linear(h, b("ffn_gate"))) * up
        x = x + linear(f, b("ffn_down"))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["token_embd.weight"])


def activations(name, seed, gated):
    n_embd, n_head, n_ff, n_layer = 32, 2, 28, len(ACTIVATIONS)
    w = Weights(seed)
    w.embedding(98, n_embd)
    w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, n_embd)))
    w.matrix("blk.0.attn_qkv", 3 * n_embd, n_embd, gain=1.5)
    w.matrix("blk.0.attn_output", n_embd, n_embd)
    for l in range(n_layer):
        if gated(l):
            w.matrix(f"blk.{l}.ffn_gate", n_ff, n_embd)
        w.matrix(f"blk.{l}.ffn_up", n_ff, n_embd)
        w.matrix(f"blk.{l}.ffn_down", n_embd, n_ff)
    w.norm("output_norm", n_embd)
    custom(name, "activations", keys_of(n_layer, n_embd, n_ff, n_head, 1e-2, rope__dimension_count=12, rope__freq_base=50.0,
                                        activation=list(ACTIVATIONS)), w, activations_forward)


activations("activations", 122, lambda l: l % 2 == 0)
activations("activations-others-gated", 123, lambda l: l % 2 == 1)


# --- primitives, one after the other


def primitives_forward(k, w, tokens, n_ctx):
    n_embd, n_group, top = k("embedding_length"), k("groups"), 5
    part = n_embd // n_group
    out = []
    for token in tokens:
        x = w["token_embd.weight"][token] * w["some.odd.name"]
        for l in range(k("block_count")):
            y = np.concatenate([x[n_embd // 2 :] * 2, x[: n_embd // 2] - l])
            y = y + np.where(x > 0.1, np.sin(x), np.cos(x)) + np.floor(x * 4) / 4
            y = y + np.sqrt(np.abs(x)) * 0.5 + np.log1p(x * x) + erf(x)
            y = y + np.mod(x, 0.3) + (x <= -0.2) + (x < 0) * 0.25 + (x >= 0.2) * 0.125 + 0.5
            g = y.reshape(n_group, part)
            g = g - g.max(1)[:, None] + g.sum(0) / 8 + g.max(0)
            g = np.stack([w["small.weight"][i] @ g[i] for i in range(n_group)])  # [n_group, part]
            place = np.stack([[sum(o > v for o in column) for v in column] for column in g.T], 1)
            t = g * (place < 2) + np.arange(n_group)[:, None] / 16
            row = (t + np.minimum(t * t, 1) ** 2).reshape(-1)
            e = best(row, top)
            p = softmax(row[e])
            picked = w["mix.weight"] @ row
            x = x * 0.5 + row + p @ picked[e] + w["mix.weight"][2] * max((p * p).sum(), 0.3) + picked / n_embd
        for l in range(2):
            x = (x * w[f"blk.{l}.gain.weight"]) ** 3
        out.append(w["token_embd.weight"] @ (x / math.sqrt((x**2).mean())))
    return np.array(out)


def primitives():
    n_embd, n_group = 24, 4
    w = Weights(124)
    w.embedding(50, n_embd)
    w.vector("some.odd.name", n_embd, 1.0)
    w.matrix("mix", n_embd, n_embd, gain=0.5)
    w.matrix("small", n_group, 6, 6)
    for l in range(2):
        w.norm(f"blk.{l}.gain", n_embd)
    w.vector("unused.a", 3)
    w.vector("unused.b.c", 3)
    custom("primitives", "primitives", {"block_count": 2, "context_length": 64, "embedding_length": n_embd, "groups": n_group,
                                        "note": "nobody reads this"}, w, primitives_forward)


primitives()
