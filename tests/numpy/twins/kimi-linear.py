"""Kimi Linear (Moonshot 2025; the paper and modeling_kimi.py): Kimi Delta Attention, latent attention without positions, experts."""
import math

from kin import *
from mixtures import routed, shared, swiglu
from blocks import causal_conv


def kda(k, b, h, eps):
    """S <- (I - beta k k^T) Diag(exp g) S + beta k v^T, y = S^T q."""
    n_head, size = k("attention.head_count"), k("kda.head_dim")
    q, key, v = (split_heads(silu(causal_conv(linear(h, b("attn_" + p)), b("ssm_conv1d_" + p)[:, 0])), n_head) for p in "qkv")
    unit = lambda x: x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), eps)
    q, key = unit(q) / math.sqrt(size), unit(key)
    g = split_heads(softplus(linear(linear(h, b("ssm_f_a")), b("ssm_f_b")) + b("ssm_dt", ".bias")), n_head) * b("ssm_a", "")[None]
    beta = sigmoid(linear(h, b("ssm_beta")))
    y = np.zeros_like(v)
    for i in range(n_head):
        s = np.zeros((size, size))
        for t in range(len(h)):
            s = np.exp(g[t, i])[:, None] * s
            s = s - beta[t, i] * np.outer(key[t, i], key[t, i] @ s) + beta[t, i] * np.outer(key[t, i], v[t, i])
            y[t, i] = q[t, i] @ s
    gate = sigmoid(linear(linear(h, b("ssm_g_a")), b("ssm_g_b")))
    return linear(merge_heads(rms_norm(y, b("ssm_norm"), eps)) * gate, b("attn_output"))


def latent(k, b, h, eps):
    n_head, rank, rot = k("attention.head_count"), k("attention.kv_lora_rank"), k("rope.dimension_count")
    d = k("attention.key_length_mla") - rot
    low = linear(h, b("attn_kv_a_mqa"))
    c = rms_norm(low[:, :rank], b("attn_kv_a_norm"), eps)
    if b("attn_kv_b") is not None:
        both = split_heads(linear(c, b("attn_kv_b")), n_head)
    else:
        both = np.concatenate([np.einsum("tr,hrd->thd", c, b("attn_k_b")), np.einsum("tr,hdr->thd", c, b("attn_v_b"))], -1)
    key = np.concatenate([both[..., :d], np.repeat(low[:, None, rank:], n_head, 1)], -1)
    return linear(merge_heads(attention(split_heads(linear(h, b("attn_q")), n_head), key, both[..., d:])), b("attn_output"))


def kimi_linear(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        x = x + (latent if k("attention.head_count_kv")[l] else kda)(k, b, h, eps)
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + (swiglu(b, h) if b("ffn_gate_inp") is None else routed(k, b, h, gating=2, normal=True) + shared(b, h))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, kinds, more={}, split=True, n_dense=1, n_shared=1, bias=True, tied=False):
    w, d, rot, dv, rank, size, n_each = Weights(seed), 10, 6, 9, 14, 7, 22
    w.embedding(N_VOCAB, N_EMBD, tied)
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.norm(b + "ffn_norm", N_EMBD)
        if kind == "K":
            wide = size * N_HEAD
            for p in "qkv":
                w.matrix(f"{b}attn_{p}", wide, N_EMBD, gain=1.5)
                w.put(f"{b}ssm_conv1d_{p}.weight", 0.7 * w.random.normal(size=(wide, 1, 4)))
            for p in "fg":
                w.matrix(f"{b}ssm_{p}_a", size, N_EMBD)
                w.matrix(f"{b}ssm_{p}_b", wide, size)
            w.vector(b + "ssm_dt.bias", wide, 0.5)
            w.put(b + "ssm_a", -w.random.uniform(0.1, 1.5, (N_HEAD, 1)))
            w.matrix(b + "ssm_beta", N_HEAD, N_EMBD)
            w.norm(b + "ssm_norm", size)
            w.matrix(b + "attn_output", N_EMBD, wide)
        else:
            w.matrix(b + "attn_q", N_HEAD * (d + rot), N_EMBD, gain=1.5)
            w.matrix(b + "attn_kv_a_mqa", rank + rot, N_EMBD, gain=1.5)
            w.norm(b + "attn_kv_a_norm", rank)
            both = w.random.normal(size=(N_HEAD, d + dv, rank)) * 1.5 / math.sqrt(rank)
            if split:
                w.put(b + "attn_k_b.weight", both[:, :d].transpose(0, 2, 1))
                w.put(b + "attn_v_b.weight", both[:, d:])
            else:
                w.put(b + "attn_kv_b.weight", both.reshape(-1, rank))
            w.matrix(b + "attn_output", N_EMBD, N_HEAD * dv)
        if l < n_dense:
            w.gated(l, N_EMBD, N_FF)
            continue
        w.experts(l, N_EMBD, n_each, 6)
        if bias:
            w.vector(b + "exp_probs_b.bias", 6, 0.5)
        if n_shared:
            w.shared_expert(l, N_EMBD, n_shared * n_each)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(len(kinds), N_EMBD, N_FF, N_HEAD, EPS), "attention.head_count_kv": [N_HEAD * (kind == "A") for kind in kinds],
            "attention.kv_lora_rank": rank, "attention.key_length_mla": d + rot, "attention.value_length_mla": dv, "rope.dimension_count": rot,
            "kda.head_dim": size, "ssm.conv_kernel": 4, "expert_count": 6, "expert_used_count": 3, "expert_feed_forward_length": n_each,
            "expert_shared_count": n_shared, "leading_dense_block_count": n_dense, **more}
    add(name, "kimi-linear", {key: v for key, v in keys.items() if v is not None}, w, kimi_linear)


model("kimi-linear", 1761, "KKAK", {"expert_gating_func": 2, "expert_weights_scale": 1.4, "attention.key_length": 576, "attention.value_length": 512,
                                    "expert_weights_norm": True})
model("kimi-linear-expanded", 1762, "AK", {"expert_gating_func": 1}, split=False, n_dense=0, n_shared=2, bias=False, tied=True)
model("kimi-linear-plain", 1763, "KA", {"leading_dense_block_count": None}, n_dense=0, n_shared=0)
