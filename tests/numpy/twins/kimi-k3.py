"""Kimi K3 (Moonshot 2026; after the card and llama.cpp's graph): Kimi Linear's layers, a mean of earlier inputs in place of the residual stream, experts on a shorter row."""
import math

from kin import *
from blocks import causal_conv

RANK, ROT, D, DV, SIZE, LOW, EACH, N_EXPERT = 14, 6, 10, 9, 7, 20, 22, 6


def kda(k, b, h, eps):
    n_head, bound = k("attention.head_count"), k("kda.gate_lower_bound", 0.0)
    q, key, v = (split_heads(silu(causal_conv(linear(h, b("attn_" + p)), b("ssm_conv1d_" + p)[:, 0])), n_head) for p in "qkv")
    q, key = (x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6) for x in (q, key))
    g, a = split_heads(linear(linear(h, b("ssm_f_a")), b("ssm_f_b")) + b("ssm_dt", ".bias"), n_head), b("ssm_a", "")[None, :, None]
    g = bound * sigmoid(-a * g) if bound else a * softplus(g)
    beta, y = sigmoid(linear(h, b("ssm_beta"))), np.zeros_like(v)
    for i in range(n_head):
        s = np.zeros((SIZE, SIZE))
        for t in range(len(h)):
            s = np.exp(g[t, i])[:, None] * s
            s = s + beta[t, i] * np.outer(key[t, i], v[t, i] - key[t, i] @ s)
            y[t, i] = q[t, i] @ s / math.sqrt(SIZE)
    return linear(merge_heads(rms_norm(y, b("ssm_norm"), eps)) * sigmoid(linear(h, b("ssm_g"))), b("attn_output"))


def latent(k, b, h, eps):
    n_head = k("attention.head_count")
    q = linear(h, b("attn_q")) if b("attn_q") is not None else linear(rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps), b("attn_q_b"))
    low = linear(h, b("attn_kv_a_mqa"))
    c = rms_norm(low[:, :RANK], b("attn_kv_a_norm"), eps)
    key = np.concatenate([np.einsum("tr,hrd->thd", c, b("attn_k_b")), np.repeat(low[:, None, RANK:], n_head, 1)], -1)
    a = merge_heads(attention(split_heads(q, n_head), key, np.einsum("tr,hdr->thd", c, b("attn_v_b"))))
    return linear(a if b("attn_gate") is None else a * sigmoid(linear(h, b("attn_gate"))), b("attn_output"))


def situ(k, gate, up):
    beta, most = k("activation.situ_beta"), k("activation.situ_linear_beta")
    return beta * np.tanh(gate / beta) * sigmoid(gate) * (most * np.tanh(up / most) if most > 0 else up)


def mixture(k, b, h, eps):
    down = b("ffn_routed_down")
    low = h if down is None else linear(h, down)
    p = sigmoid(linear(h, b("ffn_gate_inp")))
    y = np.zeros_like(low)
    for t in range(len(h)):
        chosen = np.argsort(-(p[t] + b("exp_probs_b", ".bias")), kind="stable")[: k("expert_used_count")]
        for e in chosen:
            share = p[t, e] / p[t, chosen].sum() * k("expert_weights_scale")
            y[t] += share * (b("ffn_down_exps")[e] @ situ(k, b("ffn_gate_exps")[e] @ low[t], b("ffn_up_exps")[e] @ low[t]))
    if down is not None:
        y = linear(y if b("ffn_routed_norm") is None else rms_norm(y, b("ffn_routed_norm"), eps), b("ffn_routed_up"))
    return y + linear(situ(k, linear(h, b("ffn_gate_shexp")), linear(h, b("ffn_up_shexp"))), b("ffn_down_shexp"))


def kimi_k3(k, w, tokens, n_ctx):
    eps, each, kept = k("attention.layer_norm_rms_epsilon"), k("attn_res.block_size"), []

    def read(x, score):
        if not kept:
            return x
        rows = np.stack(kept + [x], 1)
        return (softmax((rms_norm(rows, np.ones(rows.shape[-1]), eps) * score).sum(-1))[..., None] * rows).sum(1)

    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h, begins = read(x, b("attn_res_score")), each and l % each == 0
        if begins:
            kept.append(x)
        a = (latent if k("attention.head_count_kv")[l] else kda)(k, b, rms_norm(h, b("attn_norm"), eps), eps)
        x = a if begins else x + a
        h = rms_norm(read(x, b("ffn_res_score")), b("ffn_norm"), eps)
        x = x + (mixture(k, b, h, eps) if b("ffn_gate") is None else linear(situ(k, linear(h, b("ffn_gate")), linear(h, b("ffn_up"))), b("ffn_down")))
    return linear(rms_norm(read(x, w.get("output_res_score.weight")), w["output_norm.weight"], eps), w["output.weight"])


def model(name, seed, kinds, more={}, each=2, low=LOW, r_q=12, gate=True):
    w, wide, row = Weights(seed), SIZE * N_HEAD, low or N_EMBD
    w.embedding(N_VOCAB, N_EMBD, False)
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        for part in ("attn", "ffn"):
            w.norm(f"{b}{part}_norm", N_EMBD)
            if each:
                w.vector(f"{b}{part}_res_score.weight", N_EMBD, 0.3)
        if kind == "K":
            for p in "qkv":
                w.matrix(f"{b}attn_{p}", wide, N_EMBD, gain=1.5)
                w.put(f"{b}ssm_conv1d_{p}.weight", 0.7 * w.random.normal(size=(wide, 1, 4)))
            w.matrix(b + "ssm_f_a", SIZE, N_EMBD)
            w.matrix(b + "ssm_f_b", wide, SIZE)
            w.matrix(b + "ssm_g", wide, N_EMBD)
            w.vector(b + "ssm_dt.bias", wide, 0.5)
            w.put(b + "ssm_a", -w.random.uniform(0.1, 1.5, N_HEAD))
            w.matrix(b + "ssm_beta", N_HEAD, N_EMBD)
            w.norm(b + "ssm_norm", SIZE)
            w.matrix(b + "attn_output", N_EMBD, wide)
        else:
            if r_q:
                w.matrix(b + "attn_q_a", r_q, N_EMBD)
                w.norm(b + "attn_q_a_norm", r_q)
            w.matrix(b + ("attn_q_b" if r_q else "attn_q"), N_HEAD * (D + ROT), r_q or N_EMBD, gain=1.5)
            w.matrix(b + "attn_kv_a_mqa", RANK + ROT, N_EMBD, gain=1.5)
            w.norm(b + "attn_kv_a_norm", RANK)
            w.put(b + "attn_k_b.weight", w.random.normal(size=(N_HEAD, RANK, D)) / 3)
            w.put(b + "attn_v_b.weight", w.random.normal(size=(N_HEAD, DV, RANK)) / 3)
            if gate:
                w.matrix(b + "attn_gate", N_HEAD * DV, N_EMBD)
            w.matrix(b + "attn_output", N_EMBD, N_HEAD * DV)
        if l == 0:
            w.gated(l, N_EMBD, N_FF)
            continue
        w.matrix(b + "ffn_gate_inp", N_EXPERT, N_EMBD)
        w.vector(b + "exp_probs_b.bias", N_EXPERT, 0.5)
        for part, shape in (("gate", (EACH, row)), ("up", (EACH, row)), ("down", (row, EACH))):
            w.put(f"{b}ffn_{part}_exps.weight", w.random.normal(size=(N_EXPERT, *shape)) / math.sqrt(shape[1]))
        if low:
            w.matrix(b + "ffn_routed_down", low, N_EMBD)
            w.matrix(b + "ffn_routed_up", N_EMBD, low)
            w.norm(b + "ffn_routed_norm", low)
        w.shared_expert(l, N_EMBD, EACH)
    w.norm("output_norm", N_EMBD)
    if each:
        w.vector("output_res_score.weight", N_EMBD, 0.3)
    keys = {**keys_of(len(kinds), N_EMBD, N_FF, N_HEAD, 1e-6), "attention.head_count_kv": [int(kind == "A") for kind in kinds], "attention.kv_lora_rank": RANK,
            "attention.key_length": RANK + ROT, "attention.value_length": RANK, "attention.key_length_mla": D + ROT, "attention.value_length_mla": DV, "rope.dimension_count": ROT,
            "ssm.conv_kernel": 4, "kda.head_dim": SIZE, "leading_dense_block_count": 1, "expert_count": N_EXPERT, "expert_used_count": 2, "expert_shared_count": 1,
            "expert_feed_forward_length": EACH, "expert_weights_scale": 2.5, "expert_weights_norm": True, "expert_gating_func": 2, "attn_res.block_size": each,
            "activation.situ_beta": 3.0, "activation.situ_linear_beta": 2.0, **({"attention.q_lora_rank": r_q} if r_q else {}), **({"expert_latent_length": low} if low else {}), **more}
    add(name, "kimi-k3", keys, w, kimi_k3)


model("kimi-k3", 1501, "KAKKA", {"kda.gate_lower_bound": -5.0})
model("kimi-k3-long", 1502, "KAK", {"kda.gate_lower_bound": -2.0, "activation.situ_linear_beta": 0.0}, each=3, low=0, r_q=0, gate=False)
model("kimi-k3-free", 1503, "AK", each=0)
