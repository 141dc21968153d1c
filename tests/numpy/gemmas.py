"""Gemma 4 (Gemma Team 2026; modeling_gemma4): two kinds of attention, shared keys and values, vectors per layer, experts beside a dense part."""
import math

from kin import *
from mixtures import moe, chosen_experts


def both_forms(b):
    """The experts' matrices, where gate and up are one."""
    def get(name, end=".weight"):
        fused = b("ffn_gate_up_exps")
        if fused is not None and name in ("ffn_gate_exps", "ffn_up_exps"):
            return np.split(fused, 2, axis=1)[name == "ffn_up_exps"]
        return b(name, end)
    return get


def mixture(k, b, x, eps):
    p = softmax(linear(rms_norm(x, None, eps) * b("ffn_gate_inp", ".scale") * k("embedding_length") ** -0.5, b("ffn_gate_inp")))
    chosen = chosen_experts(p, k("expert_used_count"))
    each = b("ffn_down_exps", ".scale")
    p = np.array([[row[e] / row[of].sum() * (1 if each is None else each[e]) for e in range(len(row))] for row, of in zip(p, chosen)])
    return moe(both_forms(b), rms_norm(x, b("pre_ffw_norm_2"), eps), p, chosen, act=gelu)


def states(k, w, tokens):
    """The rows after the last norm, and what the last layers of each kind store: is it local -> keys, values [T, heads, d]."""
    n_layer, n_embd, eps = k("block_count"), k("embedding_length"), k("attention.layer_norm_rms_epsilon")
    width = k("embedding_length_per_layer_input", 0)
    of = lambda key, l, *other: k(key, *other)[l] if isinstance(k(key, *other), list) else k(key, *other)
    kinds = {}  # is it local: frequencies, magnitude, window
    full = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length")), w.get("rope_freqs.weight"))
    kinds[False] = *full, None
    near_base = k("rope.freq_base_swa", k("rope.freq_base", 10000.0))
    kinds[True] = inverse_frequencies(k("rope.dimension_count_swa", k("attention.key_length_swa")), near_base), 1.0, k("attention.sliding_window")
    x = w["token_embd.weight"][tokens] * math.sqrt(n_embd)
    if width:
        projected = (linear(x, w["per_layer_model_proj.weight"]) / math.sqrt(n_embd)).reshape(len(x), n_layer, width)
        own = rms_norm(projected, w["per_layer_proj_norm.weight"], eps)
        own = (own + math.sqrt(width) * w["per_layer_token_embd.weight"][tokens].reshape(len(x), n_layer, width)) / math.sqrt(2)
    stored = {}
    for l in range(n_layer):
        b, near = layer(w, l), bool(k("attention.sliding_window_pattern")[l])
        theta, mag, window = kinds[near]
        n_head = of("attention.head_count", l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = rotate(rms_norm(split_heads(linear(h, b("attn_q")), n_head), b("attn_q_norm"), eps), theta, True, mag)
        if l < n_layer - k("attention.shared_kv_layers", 0):
            key = split_heads(linear(h, b("attn_k")), of("attention.head_count_kv", l, n_head))
            v = key if b("attn_v") is None else split_heads(linear(h, b("attn_v")), key.shape[1])
            stored[near] = rotate(rms_norm(key, b("attn_k_norm"), eps), theta, True, mag), rms_norm(v, None, eps)
        a = attention(q, *stored[near], 1.0, window)
        x = x + rms_norm(linear(merge_heads(a), b("attn_output")), b("post_attention_norm"), eps)
        h = rms_norm(x, b("ffn_norm"), eps)
        f = linear(gelu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down"))
        if k("expert_count", 0):
            f = rms_norm(f, b("post_ffw_norm_1"), eps) + rms_norm(mixture(k, b, x, eps), b("post_ffw_norm_2"), eps)
        x = x + rms_norm(f, b("post_ffw_norm"), eps)
        if width:
            y = gelu(linear(x, b("inp_gate"))) * own[:, l]
            x = x + rms_norm(linear(y, b("proj")), b("post_norm"), eps)
        if b("layer_output_scale") is not None:
            x = x * b("layer_output_scale")
    return rms_norm(x, w["output_norm.weight"], eps), stored


def gemma4(k, w, tokens, n_ctx):
    y = tied_output(w, states(k, w, tokens)[0])
    cap = k("final_logit_softcapping", 0)
    return cap * np.tanh(y / cap) if cap else y


def model(name, seed, near, more={}, heads=(4, 4), kv=(2, 2), d=(12, 16), n_ff=60, tied=True, k_is_v=False, n_own=99, width=0, n_expert=0,
          fused=False, scale="", factors=False, extra=False):
    """Pairs: of a layer with a window, of one without."""
    w, n = Weights(seed), len(near)
    w.embedding(N_VOCAB, N_EMBD, tied)
    if factors:
        w.put("rope_freqs.weight", [1.0] * (d[1] // 2 - 4) + [1e30] * 4)
    if width:
        w.put("per_layer_token_embd.weight", 0.3 * w.random.normal(size=(N_VOCAB, n * width)))
        w.matrix("per_layer_model_proj", n * width, N_EMBD, gain=7)
        w.norm("per_layer_proj_norm", width)
    for l in range(n):
        b, far = f"blk.{l}.", not near[l]
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            w.norm(b + norm, N_EMBD)
        w.attention(l, N_EMBD, heads[far], kv[far], d[far])
        w.vector(b + "attn_q_norm.weight", d[far], 0.2, 0.6)
        w.vector(b + "attn_k_norm.weight", d[far], 0.2, 0.6)
        if l >= n_own and not extra:
            for part in "kv":
                del w[f"{b}attn_{part}.weight"]
            del w[b + "attn_k_norm.weight"]
        elif far and k_is_v:
            del w[b + "attn_v.weight"]
        w.gated(l, N_EMBD, n_ff[l] if isinstance(n_ff, list) else n_ff)
        if n_expert:
            w.experts(l, N_EMBD, 22, n_expert)
            w.vector(b + "ffn_gate_inp.scale", N_EMBD, 1.0, 4.0)
            for norm in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"):
                w.norm(b + norm, N_EMBD)
            if scale:
                w.vector(b + scale, n_expert, 0.4, 1.0)
        if width:
            w.matrix(b + "inp_gate", width, N_EMBD)
            w.matrix(b + "proj", N_EMBD, width)
            w.norm(b + "post_norm", N_EMBD)
        if l != 1:
            w.vector(b + "layer_output_scale.weight", 1, 0.1, 0.8)
    if fused:
        w.fuse_experts()
    w.norm("output_norm", N_EMBD)
    alike = lambda pair: pair[0] if pair[0] == pair[1] else [pair[not of] for of in near]
    keys = {**keys_of(n, N_EMBD, n_ff, alike(heads), EPS), "attention.head_count_kv": alike(kv), "attention.key_length": d[1],
            "attention.value_length": d[1], "attention.key_length_swa": d[0], "attention.value_length_swa": d[0], "attention.sliding_window": 6,
            "attention.sliding_window_pattern": list(near), "embedding_length_per_layer_input": width}
    if n_expert:
        keys.update({"expert_count": n_expert, "expert_used_count": 2, "expert_feed_forward_length": 22})
    return name, "gemma4", {key: v for key, v in {**keys, **more}.items() if v is not None}, w, other(gemma4)


def other(forward):
    """A file with another name for the experts' scales."""
    def run(k, w, tokens, n_ctx):
        return forward(k, {name.replace("ffn_gate_inp.per_expert_scale", "ffn_down_exps.scale"): t for name, t in w.items()}, tokens, n_ctx)
    return run
