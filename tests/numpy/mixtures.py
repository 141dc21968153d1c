"""What twins of mixtures of experts share: who chooses the experts and how much each one says, shared experts, and the frame
that most decoders have in common. In float64, from the papers."""
import math

import numpy as np

from blocks import *
from families import layer, swiglu, tied_output


def chosen_experts(p, n_used, bias=None, groups=1, kept=1, of_group=2):
    """For each token the n_used experts of the largest p. bias: counts for the choice only. groups: only experts of the `kept` groups
    with the largest sum of their best `of_group` can be chosen (DeepSeek-AI 2024)."""
    out = []
    for row in p if bias is None else p + bias:
        if groups > 1:
            parts = row.reshape(groups, -1)
            strong = best([sum(sorted(part)[-of_group:]) for part in parts], kept)
            row = np.concatenate([part if g in strong else np.full_like(part, -np.inf) for g, part in enumerate(parts)])
        out.append(best(row, n_used))
    return out


def moe(b, h, p, chosen, normal=False, scale=1.0, act=silu):
    """Gated experts; the shares are those of p, divided by their sum if `normal`, times scale."""
    weights = [{e: scale * row[e] / (sum(row[c] for c in of) if normal else 1) for e in of} for row, of in zip(p, chosen)]
    gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
    return experts(h, weights, chosen, lambda e, x: down[e] @ (act(gate[e] @ x) * (up[e] @ x)))


def routed(k, b, h, gating=1, normal=False, of_group=2, act=silu):
    """As the keys expert_* say; gating and normal hold where a file does not say."""
    s = linear(h, b("ffn_gate_inp"))
    p = softmax(s) if k("expert_gating_func", gating) == 1 else sigmoid(s)
    chosen = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"), k("expert_group_count", 1),
                            k("expert_group_used_count", 1), of_group)
    return moe(b, h, p, chosen, k("expert_weights_norm", normal), k("expert_weights_scale", 1.0) or 1.0, act)


def shared(b, h):
    """A feed-forward part that all tokens pass; zero if the layer has none."""
    return 0 if b("ffn_up_shexp") is None else swiglu(lambda name, end=".weight": b(name + "_shexp", end), h)


def queries_keys_values(k, b, h, n_head=None, n_kv=None):
    """Heads of each, from three matrices or from one, with biases if there are any."""
    n_head = n_head or k("attention.head_count")
    n_kv = n_kv or k("attention.head_count_kv", n_head)
    if b("attn_qkv") is not None:
        d = k("attention.key_length", k("embedding_length") // n_head)
        parts = np.split(linear(h, b("attn_qkv"), b("attn_qkv", ".bias")), [n_head * d, (n_head + n_kv) * d], axis=-1)
    else:
        parts = [linear(h, b("attn_" + name), b("attn_" + name, ".bias")) for name in "qkv"]
    return [split_heads(part, n) for part, n in zip(parts, (n_head, n_kv, n_kv))]


def output_of(b, a):
    return linear(merge_heads(a), b("attn_output"), b("attn_output", ".bias"))


def decoded(k, w, tokens, attend, feed, n_layer=None, second="ffn_norm"):
    """x + attend(norm(x)), then x + feed(norm(x)): both are called with the layer's tensors, the rows and the layer's number."""
    eps = k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(n_layer or k("block_count") - k("nextn_predict_layers", 0)):
        b = layer(w, l)
        x = x + attend(b, rms_norm(x, b("attn_norm"), eps), l)
        x = x + feed(b, rms_norm(x, b(second), eps), l)
    return x


def decoder(k, w, *rest, **more):
    return tied_output(w, rms_norm(decoded(k, w, *rest, **more), w["output_norm.weight"], k("attention.layer_norm_rms_epsilon")))


def nano(name, arch, seed, more={}, n_kv=4, d=12, dv=None, bias="", tied=False, n_layer=2, n_dense=0, n_ff=78, n_expert=6, n_each=22,
         n_shared=0, choice_bias=False, fused=False, qkv=False, qk_norm="", second="ffn_norm", last="output_norm", factors={}, draft=0, extra=None, forward=None):
    """A small model of a decoder with experts (n_expert 0: without). n_shared: the width of the shared experts; fused: gate and up in one;
    qkv: so are queries, keys and values; qk_norm: "head", "row" or none; draft: layers at the end that are not run; extra(w, l): more tensors."""
    from nano import Weights, add, keys_of, other_names
    n_embd, n_head = 48, 4
    w = Weights(seed)
    w.embedding(92, n_embd, tied)
    for part, n in factors.items():
        w.factors(part, n)
    for l in range(n_layer):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d, dv, bias)
        for part, n in (("q", n_head), ("k", n_kv)) if qk_norm else ():
            w.norm(f"{b}attn_{part}_norm", d if qk_norm == "head" else n * d)
        if second:
            w.norm(b + second, n_embd)
        if l < n_dense or not n_expert:
            w.gated(l, n_embd, n_ff)
        else:
            w.experts(l, n_embd, n_each, n_expert)
            if choice_bias:
                w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
            if n_shared:
                w.shared_expert(l, n_embd, n_shared)
        if qkv:
            for end in [".weight"] + ([".bias"] if "q" in bias else []):
                w.put(f"{b}attn_qkv{end}", np.concatenate([w.pop(f"{b}attn_{part}{end}") for part in "qkv"]))
        if extra:
            extra(w, l)
    for l in range(draft):
        w.norm(f"blk.{n_layer + l}.attn_norm", n_embd)
    if last:
        w.norm(last, n_embd)
    if fused:
        w.fuse_experts()
    keys = {**keys_of(n_layer + draft, n_embd, n_ff, n_head, 1e-2), **more}
    if n_expert:
        keys = {"expert_count": n_expert, "expert_used_count": 3, "expert_feed_forward_length": n_each, **keys}
    add(name, arch, {key: value for key, value in keys.items() if value is not None}, w, forward and other_names(forward))


def doubly_stochastic(c, eps, steps):
    """c [.., from, to]: Sinkhorn and Knopp's normalisation, to begin with by a softmax over where to."""
    c = softmax(c) + eps
    c = c / (c.sum(-2, keepdims=True) + eps)
    for _ in range(steps - 1):
        c = c / (c.sum(-1, keepdims=True) + eps)
        c = c / (c.sum(-2, keepdims=True) + eps)
    return c
