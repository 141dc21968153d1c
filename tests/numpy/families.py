"""Forward passes of the families that ship, in float64, straight from the papers and the models' cards.

Each takes k (hyperparameters: k("key") or k("key", default), the architecture's prefix left out), w (tensors by name, numpy
order [out, in]), the tokens and the session's context, and gives the logits [T, n_vocab].
"""
import math

import numpy as np

from blocks import *


def layer(w, l):
    """The tensors of a layer: a call gives one by its short name, None if it is absent."""
    return lambda name, end=".weight": w.get(f"blk.{l}.{name}{end}")


def dense(b, x, name):
    """A matrix and its bias, if it has one."""
    return linear(x, b(name), b(name, ".bias"))


def layer_normed(b, x, name, eps):
    return layer_norm(x, b(name), b(name, ".bias"), eps)


def separate_qkv(b, h, n_head, n_kv):
    return tuple(split_heads(dense(b, h, "attn_" + p), n) for p, n in (("q", n_head), ("k", n_kv), ("v", n_kv)))


def scaled_frequencies(k, n, factors=None):
    """Frequencies and magnitude after the keys rope.scaling.*."""
    base = k("rope.freq_base", 10000.0)
    kind = k("rope.scaling.type", None)
    factor = k("rope.scaling.factor", k("rope.scale_linear", 1.0)) or 1.0
    mag = k("rope.scaling.attn_factor", 1.0)
    share = k("rope.scaling.yarn_ext_factor", -1.0)
    if share < 0:
        share = 1.0 if kind == "yarn" else 0.0
    if share > 0 and kind in (None, "linear", "yarn"):
        fast, slow = k("rope.scaling.yarn_beta_fast", 32.0), k("rope.scaling.yarn_beta_slow", 1.0)
        original = k("rope.scaling.original_context_length", k("context_length"))
        mag *= (1 + 0.1 * math.log(factor)) / (1 + 0.1 * k("rope.scaling.yarn_log_multiplier", 0.0) * math.log(factor))
        return yarn_frequencies(n, base, factor, original, fast, slow, share), mag
    mag *= k("rope.scaling.yarn_attn_factor", 1.0)
    theta = inverse_frequencies(n, base)
    if factors is not None:
        theta = theta / factors
    if kind in (None, "linear", "yarn"):
        theta = theta / factor
    return theta, mag


def swiglu(b, h):
    gate = linear(h, b("ffn_gate"), b("ffn_gate", ".bias"))
    up = linear(h, b("ffn_up"), b("ffn_up", ".bias"))
    return linear(silu(gate) * up, b("ffn_down"), b("ffn_down", ".bias"))


def mixture(b, h, n_used):
    """Mixtral: softmax over all experts, the best n_used, their probabilities made to add up to one."""
    p = softmax(linear(h, b("ffn_gate_inp")))
    chosen = [best(row, n_used) for row in p]
    weights = [{e: row[e] / sum(row[c] for c in of) for e in of} for row, of in zip(p, chosen)]
    gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
    return experts(h, weights, chosen, lambda e, x: down[e] @ (silu(gate[e] @ x) * (up[e] @ x)))


def tied_output(w, x):
    return linear(x, w.get("output.weight", w["token_embd.weight"]))


def long_or_short(k, w, n_ctx):
    """The divisors for a context longer than the one of the training, or for another; None: the model has none."""
    long = n_ctx > k("rope.scaling.original_context_length", k("context_length"))
    return w.get("rope_factors_long.weight" if long else "rope_factors_short.weight")


def llama(k, w, tokens, n_ctx):
    n_embd, n_head = k("embedding_length"), k("attention.head_count")
    n_kv = k("attention.head_count_kv", n_head)
    eps = k("attention.layer_norm_rms_epsilon")
    d = k("attention.key_length", n_embd // n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d), w.get("rope_freqs.weight", long_or_short(k, w, n_ctx)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = split_heads(linear(h, b("attn_q"), b("attn_q", ".bias")), n_head)
        key = split_heads(linear(h, b("attn_k"), b("attn_k", ".bias")), n_kv)
        v = split_heads(linear(h, b("attn_v"), b("attn_v", ".bias")), n_kv)
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = x + linear(merge_heads(a), b("attn_output"), b("attn_output", ".bias"))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + (mixture(b, h, k("expert_used_count")) if k("expert_count", 0) else swiglu(b, h))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def qwen2(k, w, tokens, n_ctx):
    n_embd, n_head = k("embedding_length"), k("attention.head_count")
    n_kv = k("attention.head_count_kv", n_head)
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("attention.key_length", n_embd // n_head))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = rotate(split_heads(linear(h, b("attn_q"), b("attn_q", ".bias")), n_head), theta, True, mag)
        key = rotate(split_heads(linear(h, b("attn_k"), b("attn_k", ".bias")), n_kv), theta, True, mag)
        v = split_heads(linear(h, b("attn_v"), b("attn_v", ".bias")), n_kv)
        x = x + dense(b, merge_heads(attention(q, key, v)), "attn_output")
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def qwen3(k, w, tokens, n_ctx):
    n_embd, n_head = k("embedding_length"), k("attention.head_count")
    n_kv = k("attention.head_count_kv", n_head)
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("attention.key_length", n_embd // n_head))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = rms_norm(split_heads(linear(h, b("attn_q")), n_head), b("attn_q_norm"), eps)
        key = rms_norm(split_heads(linear(h, b("attn_k")), n_kv), b("attn_k_norm"), eps)
        v = split_heads(linear(h, b("attn_v")), n_kv)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + linear(merge_heads(a), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + (swiglu(b, h) if b("ffn_gate_inp") is None else mixture(b, h, k("expert_used_count")))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def gelu_feed_forward(b, h):
    up = gelu(linear(h, b("ffn_up"), b("ffn_up", ".bias")))
    return linear(up, b("ffn_down"), b("ffn_down", ".bias"))


def gpt2(k, w, tokens, n_ctx, steps=None):
    """steps: a list that takes (name, value) of every intermediate of the first layer, and more."""
    note = (lambda name, value: steps.append((name, value))) if steps is not None else lambda name, value: None
    n_head, eps = k("attention.head_count"), k("attention.layer_norm_epsilon")
    x = w["token_embd.weight"][tokens] + w["position_embd.weight"][: len(tokens)]
    note("x", x)
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_norm(x, b("attn_norm"), b("attn_norm", ".bias"), eps)
        q, key, v = np.split(linear(h, b("attn_qkv"), b("attn_qkv", ".bias")), 3, axis=-1)
        a = merge_heads(attention(split_heads(q, n_head), split_heads(key, n_head), split_heads(v, n_head)))
        projected = linear(a, b("attn_output"), b("attn_output", ".bias"))
        x = x + projected
        h2 = layer_norm(x, b("ffn_norm"), b("ffn_norm", ".bias"), eps)
        f = gelu_feed_forward(b, h2)
        if l == 0:
            up = linear(h2, b("ffn_up"), b("ffn_up", ".bias"))
            for name, value in [("ln1", h), ("q", q), ("k", key), ("v", v), ("y", a), ("yProj", projected), ("attnResid", x),
                                ("ln2", h2), ("fc", up), ("gelu", gelu(up)), ("mlp", f), ("mlpResid", x + f)]:
                note(name, value)
        x = x + f
        note(f"block{l}", x)
    x = layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], eps)
    note("ln_f", x)
    return tied_output(w, x)


def bloom(k, w, tokens, n_ctx):
    n_head, eps = k("attention.head_count"), k("attention.layer_norm_epsilon")
    slopes = alibi_slopes(n_head, k("attention.max_alibi_bias", 8.0))
    x = layer_norm(w["token_embd.weight"][tokens], w["token_embd_norm.weight"], w["token_embd_norm.bias"], eps)
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_norm(x, b("attn_norm"), b("attn_norm", ".bias"), eps)
        q, key, v = (split_heads(p, n_head) for p in np.split(linear(h, b("attn_qkv"), b("attn_qkv", ".bias")), 3, axis=-1))
        a = attention(q, key, v, slopes=slopes)
        x = x + linear(merge_heads(a), b("attn_output"), b("attn_output", ".bias"))
        x = x + gelu_feed_forward(b, layer_norm(x, b("ffn_norm"), b("ffn_norm", ".bias"), eps))
    return tied_output(w, layer_norm(x, w["output_norm.weight"], w["output_norm.bias"], eps))


def gemma2(k, w, tokens, n_ctx):
    n_embd, n_head, n_kv = k("embedding_length"), k("attention.head_count"), k("attention.head_count_kv")
    d, eps = k("attention.key_length"), k("attention.layer_norm_rms_epsilon")
    # the 27B model, and only that one, scales by its width over its heads
    scale = (n_embd / n_head) ** -0.5 if k("block_count") == 46 else d**-0.5
    theta, mag = scaled_frequencies(k, d)
    x = w["token_embd.weight"][tokens] * math.sqrt(n_embd)
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = rotate(split_heads(linear(h, b("attn_q")), n_head), theta, True, mag)
        key = rotate(split_heads(linear(h, b("attn_k")), n_kv), theta, True, mag)
        v = split_heads(linear(h, b("attn_v")), n_kv)
        window = k("attention.sliding_window", 4096) if l % 2 == 0 else None
        a = attention(q, key, v, scale=scale, window=window, cap=k("attn_logit_softcapping", 50.0))
        x = x + rms_norm(linear(merge_heads(a), b("attn_output")), b("post_attention_norm"), eps)
        h = rms_norm(x, b("ffn_norm"), eps)
        f = linear(gelu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down"))
        x = x + rms_norm(f, b("post_ffw_norm"), eps)
    cap = k("final_logit_softcapping", 30.0)
    return cap * np.tanh(linear(rms_norm(x, w["output_norm.weight"], eps), w["token_embd.weight"]) / cap)


def phi3(k, w, tokens, n_ctx):
    n_embd, n_head = k("embedding_length"), k("attention.head_count")
    n_kv = k("attention.head_count_kv", n_head)
    eps, n_ff = k("attention.layer_norm_rms_epsilon"), k("feed_forward_length")
    d = n_embd // n_head
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d), long_or_short(k, w, n_ctx))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = np.split(linear(h, b("attn_qkv")), [n_head * d, (n_head + n_kv) * d], axis=-1)
        q, key = rotate(split_heads(q, n_head), theta, True, mag), rotate(split_heads(key, n_kv), theta, True, mag)
        a = attention(q, key, split_heads(v, n_kv), window=k("attention.sliding_window", None) or None)
        x = x + linear(merge_heads(a), b("attn_output"))
        both = linear(rms_norm(x, b("ffn_norm"), eps), b("ffn_up"))
        x = x + linear(silu(both[:, :n_ff]) * both[:, n_ff:], b("ffn_down"))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def lfm2(k, w, tokens, n_ctx):
    n_embd, n_head = k("embedding_length"), k("attention.head_count")
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, n_embd // n_head)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        n_kv = k("attention.head_count_kv")[l]
        h = rms_norm(x, b("attn_norm"), eps)
        if n_kv == 0:
            gate_in, gate_out, y = np.split(linear(h, b("shortconv.in_proj")), 3, axis=-1)
            x = x + linear(gate_out * causal_conv(gate_in * y, b("shortconv.conv")), b("shortconv.out_proj"))
        else:
            q = rms_norm(split_heads(linear(h, b("attn_q")), n_head), b("attn_q_norm"), eps)
            key = rms_norm(split_heads(linear(h, b("attn_k")), n_kv), b("attn_k_norm"), eps)
            v = split_heads(linear(h, b("attn_v")), n_kv)
            a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v,
                          window=k("attention.sliding_window", 0) or None)
            x = x + linear(merge_heads(a), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + (swiglu(b, h) if b("ffn_gate_inp") is None else k("expert_weights_scale", 1.0) * lfm2_experts(k, b, h))
    return tied_output(w, rms_norm(x, w["token_embd_norm.weight"], eps))


def lfm2_experts(k, b, h):
    """Chosen by a sigmoid and a bias; the shares are those without the bias, made to add up to one."""
    s = linear(h, b("ffn_gate_inp"))
    p, bias = softmax(s) if k("expert_gating_func", 2) == 1 else sigmoid(s), b("exp_probs_b", ".bias")
    chosen = [best(row, k("expert_used_count")) for row in (p if bias is None else p + bias)]
    weights = [{e: row[e] / row[of].sum() for e in of} for row, of in zip(p, chosen)]
    gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
    return experts(h, weights, chosen, lambda e, x: down[e] @ (silu(gate[e] @ x) * (up[e] @ x)))


def qwen35(k, w, tokens, n_ctx):
    n_head, n_kv, d = k("attention.head_count"), np.max(k("attention.head_count_kv")), k("attention.key_length")
    eps = k("attention.layer_norm_rms_epsilon")
    k_heads, v_heads, size = k("ssm.group_count"), k("ssm.time_step_rank"), k("ssm.state_size")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count"))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count") - k("nextn_predict_layers", 0)):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        every = k("full_attention_interval", 4)
        recurrent = k("attention.recurrent_layers")[l] if k("attention.recurrent_layers", None) else l % every < every - 1
        if not recurrent:
            both = split_heads(linear(h, b("attn_q")), n_head)
            q, gate = both[..., :d], both[..., d:]
            q = rotate(rms_norm(q, b("attn_q_norm"), eps), theta, True, mag)
            key = rotate(rms_norm(split_heads(linear(h, b("attn_k")), n_kv), b("attn_k_norm"), eps), theta, True, mag)
            a = attention(q, key, split_heads(linear(h, b("attn_v")), n_kv))
            x = x + linear(merge_heads(a * sigmoid(gate)), b("attn_output"))
        else:
            mixed = silu(causal_conv(linear(h, b("attn_qkv")), b("ssm_conv1d")))
            q, key, v = np.split(mixed, [k_heads * size, 2 * k_heads * size], axis=-1)
            q, key, v = split_heads(q, k_heads), split_heads(key, k_heads), split_heads(v, v_heads)
            q = q / np.maximum(np.linalg.norm(q, axis=-1, keepdims=True), eps)
            key = key / np.maximum(np.linalg.norm(key, axis=-1, keepdims=True), eps)
            of = [i % k_heads for i in range(v_heads)]
            decay = b("ssm_a", "") * softplus(linear(h, b("ssm_alpha")) + b("ssm_dt", ".bias"))
            y = gated_delta_rule(q[:, of], key[:, of], v, decay, sigmoid(linear(h, b("ssm_beta"))))
            y = rms_norm(y, b("ssm_norm"), eps) * silu(split_heads(linear(h, b("attn_gate")), v_heads))
            x = x + linear(merge_heads(y), b("ssm_out"))
        h = rms_norm(x, b("post_attention_norm"), eps)
        if b("ffn_gate_inp") is None:
            x = x + swiglu(b, h)
            continue
        common = swiglu(lambda name, end=".weight": b(name + "_shexp", end), h)
        x = x + k("expert_weights_scale", 1.0) * mixture(b, h, k("expert_used_count")) + common * sigmoid(h @ b("ffn_gate_inp_shexp"))[:, None]
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))
