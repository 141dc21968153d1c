"""What twins of autumn 2026's families share: states with a delta rule, latent attention to rows that an indexer chooses, clamped experts, and their weights."""
import math

import numpy as np

from mixtures import *
from nano import Weights, add, keys_of

N_EMBD, N_HEAD, N_FF, N_EACH, N_EXPERT, SIZE, RANK, LOW, D, DV = 48, 4, 60, 22, 8, 7, 14, 18, 10, 9


def delta_rule(b, h, g, gate, eps):
    """Kimi's (KDA): g [T, heads, numbers], the logarithms of the decays, and the gate of the result [T, wide]."""
    q, key, v = (split_heads(silu(causal_conv(linear(h, b("attn_" + p)), b("ssm_conv1d_" + p)[:, 0])), N_HEAD) for p in "qkv")
    q, key = (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, key))
    beta, y = sigmoid(linear(h, b("ssm_beta"))), np.zeros_like(v)
    for i in range(N_HEAD):
        s = np.zeros((SIZE, SIZE))
        for t in range(len(h)):
            s = np.exp(g[t, i])[:, None] * s
            s = s + beta[t, i] * np.outer(key[t, i], v[t, i] - key[t, i] @ s)
            y[t, i] = q[t, i] @ s / math.sqrt(SIZE)
    return linear(merge_heads(rms_norm(y, b("ssm_norm"), eps)) * sigmoid(gate), b("attn_output"))


def bounded(raw, a, bound):
    """Logarithms of decays: within a bound, or without one."""
    a, raw = abs(a).reshape(1, -1, 1), split_heads(raw, N_HEAD)
    return bound * sigmoid(a * raw) if bound else -a * softplus(raw)


def latent(b, h, q, c, tail, turn, **more):
    """Heads of queries [.., D | rotated], latent rows c, and the rotated part of the key: a head's numbers, before gates and the output."""
    d = q.shape[-1] - tail.shape[-1]
    key = np.concatenate([np.einsum("tr,hrd->thd", c, b("attn_k_b")), np.repeat(turn(tail[:, None]), q.shape[1], 1)], -1)
    q = np.concatenate([q[..., :d], turn(q[..., d:])], -1)
    return attention(q, key, np.einsum("tr,hdr->thd", c, b("attn_v_b")), scale=1 / math.sqrt(q.shape[-1]), **more)


def chosen_by(k, b, h, low, turn=lambda x: x, eps=1e-6):
    """Whether a token reads another one, by the layer's indexer."""
    n, every = k("attention.indexer.head_count"), k("attention.indexer.kpool", 1)
    q = turn(split_heads(linear(low, b("indexer.attn_q_b")), n))
    key = layer_norm(linear(h, b("indexer.attn_k")), b("indexer.k_norm"), b("indexer.k_norm", ".bias"), eps)
    if every > 1:
        z = linear(h, b("indexer_compressor_gate")) + b("indexer_compressor_ape")[np.arange(len(h)) % every]
        for t in range(every - 1, len(h), every):
            part = slice(t + 1 - every, t + 1)
            key[t] = (softmax(z[part].T).T * key[part]).sum(0)
    return best_rows(q, turn(key[:, None])[:, 0], linear(h, b("indexer.proj")) / math.sqrt(n * key.shape[1]), k("attention.indexer.top_k") // every, every)


def clamped(x, gate, up, down, most, late=False):
    """late: the gate is bounded after its activation."""
    g, u = linear(x, gate), linear(x, up)
    if most > 0:
        g, u = np.minimum(silu(g), most) if late else silu(np.minimum(g, most)), np.clip(u, -most, most)
    else:
        g = silu(g)
    return linear(g * u, down)


def feed(k, b, h, l, most=0, common=0, late=False):
    """A dense layer, or experts as DeepSeek 3 and the shared one. most, common: bounds of the experts, and of the shared one and dense layers."""
    if b("ffn_gate") is not None:
        return clamped(h, b("ffn_gate"), b("ffn_up"), b("ffn_down"), common, late)
    p = sigmoid(linear(h, b("ffn_gate_inp")))
    of = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"), k("expert_group_count", 1), k("expert_group_used_count", 1))
    weights = [{e: k("expert_weights_scale") * row[e] / sum(row[c] for c in es) for e in es} for row, es in zip(p, of)]
    gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
    y = experts(h, weights, of, lambda e, x: clamped(x, gate[e], up[e], down[e], most, late))
    return y + clamped(h, b("ffn_gate_shexp"), b("ffn_up_shexp"), b("ffn_down_shexp"), common, late)


def put_delta_rule(w, b, low):
    """low: decays and gate by way of a shorter row."""
    wide = SIZE * N_HEAD
    for p in "qkv":
        w.matrix(f"{b}attn_{p}", wide, N_EMBD, gain=1.5)
        w.put(f"{b}ssm_conv1d_{p}.weight", 0.7 * w.random.normal(size=(wide, 1, 4)))
    for p in "fg":
        w.matrix(f"{b}ssm_{p}_a", SIZE if low else wide, N_EMBD)
        if low:
            w.matrix(f"{b}ssm_{p}_b", wide, SIZE)
    w.vector(b + "ssm_dt.bias", wide, 0.5)
    a = w.random.uniform(0.1, 1.5, N_HEAD)
    w.put(b + "ssm_a", -a if low else a[:, None])
    w.matrix(b + "ssm_beta", N_HEAD, N_EMBD)
    w.norm(b + "ssm_norm", SIZE)
    w.matrix(b + "attn_output", N_EMBD, wide)


def put_latent(w, b, rot, r_q=LOW, n_head=N_HEAD, r=RANK, d=D, dv=DV):
    if r_q:
        w.matrix(b + "attn_q_a", r_q, N_EMBD)
        w.norm(b + "attn_q_a_norm", r_q)
    w.matrix(b + ("attn_q_b" if r_q else "attn_q"), n_head * (d + rot), r_q or N_EMBD, gain=1.5)
    w.matrix(b + "attn_kv_a_mqa", r + rot, N_EMBD, gain=1.5)
    w.norm(b + "attn_kv_a_norm", r)
    w.put(b + "attn_k_b.weight", w.random.normal(size=(n_head, r, d)) / 3)
    w.put(b + "attn_v_b.weight", w.random.normal(size=(n_head, dv, r)) / 3)
    w.matrix(b + "attn_output", N_EMBD, n_head * dv)


def put_indexer(w, b, n_head=5, d=64, every=1):
    w.matrix(b + "indexer.attn_q_b", n_head * d, LOW)
    w.matrix(b + "indexer.attn_k", d, N_EMBD)
    w.norm(b + "indexer.k_norm", d, True)
    w.matrix(b + "indexer.proj", n_head, N_EMBD)
    if every > 1:
        w.matrix(b + "indexer_compressor_gate", d, N_EMBD)
        w.put(b + "indexer_compressor_ape.weight", 0.5 * w.random.normal(size=(every, d)))
    return {"attention.indexer.head_count": n_head, "attention.indexer.key_length": d}


def put_feed(w, l, dense):
    w.norm(f"blk.{l}.ffn_norm", N_EMBD)
    if l < dense:
        w.gated(l, N_EMBD, N_FF)
        return
    w.experts(l, N_EMBD, N_EACH, N_EXPERT)
    w.vector(f"blk.{l}.exp_probs_b.bias", N_EXPERT, 0.5)
    w.shared_expert(l, N_EMBD, N_EACH)


def put_mixing(w, name, n, n_rows, n_scale):
    w.matrix(name + "_fn", n, n_rows * N_EMBD)
    w.vector(name + "_base.weight", n, 0.5)
    w.vector(name + "_scale.weight", n_scale, 0.3, 1.0)


def sizes(n_layer, rot, **more):
    return {**keys_of(n_layer, N_EMBD, N_FF, N_HEAD, 1e-6), "attention.kv_lora_rank": RANK, "attention.key_length": RANK + rot, "attention.value_length": RANK,
            "attention.key_length_mla": D + rot, "attention.value_length_mla": DV, "rope.dimension_count": rot, "leading_dense_block_count": 1, "expert_count": N_EXPERT,
            "expert_used_count": 2, "expert_shared_count": 1, "expert_feed_forward_length": N_EACH, "expert_weights_scale": 2.5, "expert_weights_norm": True,
            "expert_gating_func": 2, **more}
