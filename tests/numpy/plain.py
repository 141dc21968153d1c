"""Nano models of the families whose forward passes are in ./families.py; ./published.py builds others with these functions."""
import numpy as np

import families
from nano import guess, CASES, Weights, add, keys_of, other_names


# --- llama


def llama(name, seed, more={}, n_kv=5, d=12, dv=None, bias=False, tied=True, n_expert=0, n_factors=0, n_ff=88, fused=False, n_long=0, n_ctx=0):
    n_embd, n_head, n_vocab = 60, 5, 104
    w = Weights(seed)
    w.embedding(n_vocab, n_embd, tied)
    if n_factors:
        w.factors("rope_freqs", n_factors)
    if n_long:
        w.factors("rope_factors_long", n_long, 2, 9)
        w.factors("rope_factors_short", n_long, 1, 2)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, dv, "qkvo" if bias else "")
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        if n_expert:
            w.experts(l, n_embd, n_ff, n_expert)
        else:
            w.gated(l, n_embd, n_ff, bias)
    w.norm("output_norm", n_embd)
    if fused:
        w.fuse_experts()
    add(name, "llama", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w, other_names(families.llama), n_ctx)


llama("llama", 1, tied=False)
llama("llama-mqa", 16, {"attention.head_count_kv": 1}, n_kv=1, tied=False)
llama("llama-gqa", 2, {"attention.head_count_kv": 1, "attention.key_length": 14, "attention.value_length": 10,
                       "rope.dimension_count": 8, "rope.freq_base": 500.0}, n_kv=1, d=14, dv=10)
llama("llama-bias", 3, {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, bias=True)
llama("llama-freqs", 4, {"attention.key_length": 16, "rope.dimension_count": 14}, d=16, n_factors=7)
llama("llama-scale-linear", 5, {"rope.scale_linear": 3.0, "rope.scaling.type": "none", "rope.scaling.attn_factor": 1.2})
llama("llama-linear-old-key", 6, {"rope.scale_linear": 3.0})
llama("llama-yarn", 7, {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.freq_base": 50.0,
                        "rope.scaling.original_context_length": 48, "rope.scaling.attn_factor": 0.9,
                        "rope.scaling.yarn_beta_fast": 6.0, "rope.scaling.yarn_beta_slow": 0.5,
                        "rope.scaling.yarn_ext_factor": 1.0, "rope.scaling.yarn_attn_factor": 1.3, "rope.scaling.finetuned": True})
llama("llama-yarn-log", 18, {"rope.scaling.type": "yarn", "rope.scaling.factor": 6.0, "rope.freq_base": 50.0,
                             "rope.scaling.original_context_length": 48, "rope.scaling.yarn_ext_factor": -1.0,
                             "rope.scaling.yarn_log_multiplier": 0.7})
llama("llama-yarn-defaults", 8, {"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0, "rope.freq_base": 3.0,
                                 "context_length": 640, "attention.key_length": 40}, d=40)
STRETCHED = {"rope.scaling.factor": 4.0, "rope.freq_base": 50.0, "rope.scaling.original_context_length": 48}
llama("llama-yarn-part", 19, {**STRETCHED, "rope.scaling.type": "yarn", "rope.scaling.yarn_ext_factor": 0.4,
                              "rope.scaling.yarn_attn_factor": 1.3})
llama("llama-yarn-unnamed", 20, {**STRETCHED, "rope.scaling.yarn_ext_factor": 1.0})
llama("llama-yarn-off", 21, {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.yarn_ext_factor": 0.0,
                             "rope.scaling.yarn_attn_factor": 1.3})
llama("llama-linear-magnitude", 22, {"rope.scaling.factor": 4.0, "rope.scaling.yarn_attn_factor": 1.3})
llama("llama-moe", 9, {"expert_count": 7, "expert_used_count": 2, "attention.head_count_kv": 1, "attention.key_length": 14,
                       "attention.value_length": 10}, n_kv=1, d=14, dv=10, n_expert=7, n_ff=36)
llama("llama-moe-one", 10, {"use_parallel_residual": True, "expert_gating_func": 1, "expert_weights_norm": True, "expert_count": 3, "expert_used_count": 1, "attention.head_count_kv": 5}, n_expert=3, n_ff=36)
llama("llama-moe-fused", 17, {"expert_count": 7, "expert_used_count": 2}, n_expert=7, n_ff=36, fused=True)

LONG = {"rope.scaling.original_context_length": 32, "rope.scaling.attn_factor": 1.3, "rope.scaling.type": "longrope", "rope.dimension_count": 8, "rope.freq_base": 100.0}
llama("llama-long", 23, LONG, n_long=4, tied=False)
llama("llama-short", 24, LONG, n_long=4, n_ctx=32)
llama("llama-freqs-and-long", 26, LONG, n_factors=4, n_long=4)
llama("llama-no-original", 25, {"rope.scaling.attn_factor": 0.8, "context_length": 32}, n_long=6)


# --- gpt2, bloom: LayerNorm with biases, one matrix for Q, K and V


def fused(name, seed, arch, more={}, tied=True):
    n_embd, n_head, n_ff, n_vocab = 48, 6, 100, 90
    w = Weights(seed)
    w.embedding(n_vocab, n_embd, tied)
    if arch == "gpt2":
        w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, n_embd)))
    else:
        w.norm("token_embd_norm", n_embd, True)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd, True)
        w.matrix(f"blk.{l}.attn_qkv", 3 * n_embd, n_embd, gain=1.5, bias=True)
        w.matrix(f"blk.{l}.attn_output", n_embd, n_embd, bias=True)
        w.norm(f"blk.{l}.ffn_norm", n_embd, True)
        w.matrix(f"blk.{l}.ffn_up", n_ff, n_embd, bias=True)
        w.matrix(f"blk.{l}.ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, arch, {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w, families.gpt2 if arch == "gpt2" else families.bloom)


fused("gpt2", 11, "gpt2")
fused("gpt2-untied", 12, "gpt2", {"rope.freq_base": 20000.0}, tied=False)
fused("bloom", 13, "bloom")
fused("bloom-untied", 14, "bloom", {"rope.freq_base": 20000.0, "attention.head_count_kv": 6, "attention.max_alibi_bias": 5.0}, tied=False)


# --- qwen2, qwen3


def judged(forward):
    """Of a reranker: the softmax over its classifier's scores of the last token."""
    def run(key, w, tokens, n_ctx):
        last = forward(key, {**w, "output.weight": w["cls.output.weight"]}, tokens, n_ctx)[-1:]
        e = np.exp(last - last.max())
        return e / e.sum()
    return run


def qwen(name, seed, arch, more={}, n_kv=4, d=12, dv=None, tied=True, n_ff=76, fused=False, bias="qkv", n_judge=0):
    n_embd, n_head, n_vocab = 48, 4, 96
    w = Weights(seed)
    w.embedding(n_vocab, n_embd, tied)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, dv, "" if arch.startswith("qwen3") else bias)
        if arch.startswith("qwen3"):
            w.norm(f"blk.{l}.attn_q_norm", d)
            w.norm(f"blk.{l}.attn_k_norm", d)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        if arch.endswith("moe"):
            w.experts(l, n_embd, more["expert_feed_forward_length"], more["expert_count"])
        else:
            w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    if fused:
        w.fuse_experts()
    forward = other_names(families.qwen3 if arch.startswith("qwen3") else families.qwen2)
    if n_judge:
        w.matrix("cls.output", n_judge, n_embd, gain=3)
        more, forward = {**more, "pooling_type": 4}, judged(forward)
    case = add(name, arch, {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w, forward)
    case.output = "rank" if n_judge else None


yarn = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.attn_factor": 1.2}
qwen("qwen2", 21, "qwen2", {"use_parallel_residual": True})
qwen("qwen2-yarn", 26, "qwen2", {"attention.head_count_kv": 2, **yarn}, n_kv=2)
qwen("qwen2-gqa", 22, "qwen2", {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.freq_base": 300.0},
     n_kv=2, d=14, tied=False)
qwen("qwen2vl", 31001, "qwen2vl", {"attention.head_count_kv": 2, "rope.dimension_sections": [2, 2, 2, 0]}, n_kv=2)
qwen("qwen25vl", 31002, "qwen25vl", {"rope.mrope_section": [2, 2, 2], "vision.block_count": 32})
qwen("paddleocr", 31003, "paddleocr", {"attention.key_length": 16, "rope.dimension_sections": [3, 3, 2, 0]}, d=16, bias="", tied=False)
qwen("pangu-embedded", 31004, "pangu-embedded", {"attention.head_count_kv": 2, "rope.freq_base": 300.0}, n_kv=2, bias="qkvo")
qwen("qwen3vl", 31005, "qwen3vl", {"attention.key_length": 20, "rope.dimension_sections": [4, 3, 3, 0], "n_deepstack_layers": 3}, d=20)
qwen("qwen3vlmoe", 31006, "qwen3vlmoe", {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 30, "n_deepstack_layers": 3})
qwen("qwen3", 23, "qwen3")
qwen("qwen3-gqa", 24, "qwen3", {"attention.head_count_kv": 2, "attention.key_length": 20, "attention.value_length": 14,
                                "rope.freq_base": 300.0, **yarn}, n_kv=2, d=20, dv=14, tied=False)
qwen("qwen3-mqa", 27, "qwen3", {"attention.head_count_kv": 1}, n_kv=1)
qwen("qwen3-judge", 31007, "qwen3", n_judge=2)
qwen("qwen3-judge-labels", 31008, "qwen3", {"classifier.output_labels": ["no", "perhaps", "yes"], "attention.head_count_kv": 2, "attention.key_length": 20},
     n_kv=2, d=20, n_judge=3)
qwen("qwen3moe", 25, "qwen3moe", {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 28,
                                  "attention.head_count_kv": 2, "attention.key_length": 10}, n_kv=2, d=10)
qwen("qwen3moe-fused", 28, "qwen3moe", {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 30,
                                        "norm_top_k_prob": True, "expert_gating_func": 1, "expert_weights_norm": True}, fused=True)
qwen("qwen3moe-no-size", 30, "qwen3moe", {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 38})
del CASES["qwen3moe-no-size"].keys["expert_feed_forward_length"]  # feed_forward_length is that of all experts in use


# --- gemma2


def gemma2(name, seed, more={}, n_layer=3, n_kv=2, d=14, dv=None, n_embd=40, n_head=4, n_ff=68):
    w = Weights(seed)
    w.embedding(84, n_embd, scale=0.25)
    for l in range(n_layer):
        for part in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            w.norm(f"blk.{l}.{part}", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, dv)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(n_layer, n_embd, n_ff, n_head, 1e-1), "attention.head_count_kv": n_kv, "attention.key_length": d,
            "attention.sliding_window": 7, **more}
    add(name, "gemma2", keys, w, families.gemma2)


gemma2("gemma2", 31, {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0})
gemma2("gemma2-defaults", 32, {"attention.value_length": 10, "rope.freq_base": 200.0, **yarn}, dv=10, n_layer=2)
gemma2("gemma2-27b", 33, {}, n_layer=46, n_embd=16, n_head=2, n_kv=1, d=4, n_ff=12)


# --- phi3


def phi3(name, seed, more={}, n_kv=4, factors=False, n_rot=12, tied=True, n_ctx=0):
    n_embd, n_head, n_ff = 48, 4, 52
    d = n_embd // n_head
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    if factors:
        w.factors("rope_factors_long", n_rot // 2, 2, 9)
        w.factors("rope_factors_short", n_rot // 2, 1, 2)
    for l in range(2):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.matrix(f"blk.{l}.attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5)
        w.matrix(f"blk.{l}.attn_output", n_embd, n_head * d)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.matrix(f"blk.{l}.ffn_up", 2 * n_ff, n_embd)
        w.matrix(f"blk.{l}.ffn_down", n_embd, n_ff, gain=2)
    w.norm("output_norm", n_embd)
    add(name, "phi3", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), **more}, w, families.phi3, n_ctx)


phi3("phi3", 41, {"attention.sliding_window": 0})
longrope = {"rope.scaling.original_context_length": 32, "rope.scaling.attn_factor": 1.3, "rope.scaling.type": "longrope",
            "attention.sliding_window": 9, "attention.head_count_kv": 2, "rope.dimension_count": 8, "rope.freq_base": 100.0}
phi3("phi3-long", 42, longrope, n_kv=2, factors=True, n_rot=8, tied=False)
phi3("phi3-short", 43, longrope, n_kv=2, factors=True, n_rot=8, n_ctx=32)
phi3("phi3-no-original", 44, {"rope.scaling.attn_factor": 0.8}, factors=True)


# --- lfm2


def lfm2(name, seed, more={}, tied=True, n_taps=3, norm="token_embd_norm", n_dense=4, bias=True):
    n_embd, n_head, n_ff = 40, 5, 56
    kv = [0, 5, 0, 1]
    d = n_embd // n_head
    w = Weights(seed)
    w.embedding(92, n_embd, tied)
    for l, n_kv in enumerate(kv):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if n_kv == 0:
            w.put(b + "shortconv.conv.weight", w.random.normal(size=(n_embd, n_taps)))
            w.matrix(b + "shortconv.in_proj", 3 * n_embd, n_embd)
            w.matrix(b + "shortconv.out_proj", n_embd, n_embd)
        else:
            w.attention(l, n_embd, n_head, n_kv, d)
            w.norm(b + "attn_q_norm", d)
            w.norm(b + "attn_k_norm", d)
        w.norm(b + "ffn_norm", n_embd)
        if l < n_dense:
            w.gated(l, n_embd, n_ff)
            continue
        w.experts(l, n_embd, 24, 5)
        if bias:
            w.vector(b + "exp_probs_b.bias", 5, 0.5)
    w.norm(norm, n_embd)
    if n_dense < 4:
        more = {"expert_count": 5, "expert_used_count": 2, "expert_feed_forward_length": 24, **more}
    keys = {**keys_of(4, n_embd, n_ff, n_head, 1e-2), "attention.head_count_kv": kv, "shortconv.l_cache": n_taps, **more}
    add(name, "lfm2" if n_dense == 4 else "lfm2moe", keys, w, other_names(families.lfm2))


lfm2("lfm2", 51)
lfm2("lfm2-window", 52, {"attention.sliding_window": 6, "rope.freq_base": 200.0, **yarn}, tied=False, n_taps=4)
lfm2("lfm2-other-names", 53, norm="output_norm")
lfm2("lfm2moe", 54, {"leading_dense_block_count": 2, "expert_gating_func": 2, "expert_weights_scale": 1.3}, n_dense=2)
lfm2("lfm2moe-softmax", 55, {"expert_gating_func": 1, "expert_weights_norm": True}, n_dense=0, bias=False)


# --- qwen35


def qwen35(name, seed, more={}, n_layer=4, every=4, draft=0, tied=True, dt=".bias", n_expert=0, n_each=0, n_shared=0, fused=False,
           recurrent=None):
    n_embd, n_head, n_kv, d, n_ff = 44, 4, 2, 14, 52
    k_heads, v_heads, size, taps = 2, 6, 10, 4
    w = Weights(seed)
    w.embedding(86, n_embd, tied)
    for l in range(n_layer):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if (l + 1) % every == 0 if recurrent is None else l not in recurrent:
            w.attention(l, n_embd, n_head, n_kv, d)
            w.matrix(b + "attn_q", 2 * n_head * d, n_embd, gain=1.5)
            w.norm(b + "attn_q_norm", d)
            w.norm(b + "attn_k_norm", d)
        else:
            w.matrix(b + "attn_qkv", (2 * k_heads + v_heads) * size, n_embd, gain=1.5)
            w.matrix(b + "attn_gate", v_heads * size, n_embd)
            w.put(b + "ssm_conv1d.weight", 0.7 * w.random.normal(size=((2 * k_heads + v_heads) * size, taps)))
            w.matrix(b + "ssm_alpha", v_heads, n_embd)
            w.matrix(b + "ssm_beta", v_heads, n_embd)
            w.vector(b + "ssm_dt" + dt, v_heads, 0.5)
            w.put(b + "ssm_a", -w.random.uniform(0.1, 1.0, v_heads))
            w.norm(b + "ssm_norm", size)
            w.matrix(b + "ssm_out", n_embd, v_heads * size)
        w.norm(b + "post_attention_norm", n_embd)
        if n_expert:
            w.experts(l, n_embd, n_each, n_expert)
            w.shared_expert(l, n_embd, n_shared)
            w.vector(b + "ffn_gate_inp_shexp.weight", n_embd)
        else:
            w.gated(l, n_embd, n_ff)
    if fused:
        w.fuse_experts()
    for l in range(draft):
        w.norm(f"blk.{n_layer + l}.attn_norm", n_embd)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(n_layer + draft, n_embd, n_ff, n_head, 1e-2), "attention.head_count_kv": n_kv, "attention.key_length": d,
            "attention.value_length": d, "rope.dimension_count": 8, "rope.freq_base": 300.0, "ssm.group_count": k_heads,
            "ssm.time_step_rank": v_heads, "ssm.state_size": size, "ssm.conv_kernel": taps, "ssm.inner_size": v_heads * size, **more}
    add(name, "qwen35moe" if n_expert else "qwen35", keys, w, other_names(families.qwen35))


qwen35("qwen35", 61, {"rope.dimension_sections": [2, 1, 1, 0]})
qwen35("qwen35-draft", 62, {"full_attention_interval": 2, "nextn_predict_layers": 1, **yarn}, n_layer=3, every=2, draft=1, tied=False)
guess("qwen35-draft", 1, full_attention_interval=1)
qwen35("qwen35-other-names", 63, {"norm_top_k_prob": True, "attention.head_count_kv": [0, 0, 0, 2]}, dt="")
experts = {"expert_count": 5, "expert_used_count": 2}
qwen35("qwen35moe", 64, {**experts, "norm_top_k_prob": True, "expert_gating_func": 1, "expert_weights_norm": True}, n_expert=5, n_each=26, n_shared=52)
qwen35("qwen35moe-fused", 65, {**experts, "expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 30,
                               "expert_weights_scale": 1.6, "nextn_predict_layers": 2, "attention.recurrent_layers": [True, False, True, True, True]},
       n_layer=3, draft=2, n_expert=5, n_each=22, n_shared=30, fused=True, recurrent=(0, 2))
guess("qwen35moe-fused", 1, own=True, **{"attention.recurrent_layers": [False]})
guess("qwen35moe-fused", 1, own=True, layer=1, **{"attention.recurrent_layers": [False]})
