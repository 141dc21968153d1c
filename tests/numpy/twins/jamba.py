"""Jamba (Lieber et al. 2024; modeling_jamba): Mamba 1 with norms, attention without positions on some layers, experts on some."""
from blocks import *
from families import *
from nano import Weights, add, keys_of
from statespace import *


def forward(k, w, tokens, n_ctx):
    n_head, n_kvs, eps = k("attention.head_count"), k("attention.head_count_kv"), k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        if n_kvs[l] == 0:
            x = x + mamba1(b, h, k("ssm.time_step_rank"), k("ssm.state_size"), eps, True)
        else:
            x = x + linear(merge_heads(attention(*separate_qkv(b, h, n_head, n_kvs[l]))), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        if b("ffn_gate_inp") is None:
            x = x + swiglu(b, h)
            continue
        p = softmax(linear(h, b("ffn_gate_inp")))
        chosen = [best(row, k("expert_used_count")) for row in p]
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        x = x + experts(h, p, chosen, lambda e, y: down[e] @ (silu(gate[e] @ y) * (up[e] @ y)))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def jamba(name, seed, more={}, d=9, n_exp=5, tied=True, n_in=60):
    n_embd, n_st, n_dt, n_head, n_ff, n_kvs = 36, 8, 5, 4, 44, [0, 2, 0]
    w = Weights(seed)
    w.embedding(94, n_embd, tied)
    for l, n_kv in enumerate(n_kvs):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if n_kv:
            w.attention(l, n_embd, n_head, n_kv, d)
        else:
            mamba1_weights(w, b, n_embd, n_in, n_st, n_dt, True)
        w.norm(b + "ffn_norm", n_embd)
        if l % 2 == 0 and n_exp:
            w.experts(l, n_embd, n_ff, n_exp)
        else:
            w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(3, n_embd, n_ff, n_head, 1e-2), "attention.head_count_kv": n_kvs, **ssm_keys(n_in, n_st, n_dt)}
    add(name, "jamba", {**keys, **more}, w, forward)


jamba("jamba", 2211, {"expert_gating_func": 1, "expert_weights_norm": False, "rope.freq_base": 20000.0, "expert_count": 5, "expert_used_count": 2})
jamba("jamba-dense", 2212, {"attention.key_length": 10}, 10, 0, False)
jamba("jamba-common", 2213, {"expert_count": 5, "expert_used_count": 2}, tied=False, n_in=72)
