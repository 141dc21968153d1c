"""Limite (2026; after llama.cpp's graph and limite-violetto, the authors' program): norms without weights, exclusive attention, values of a second table, rows of earlier layers."""
from kin import head_size, scaled_frequencies
from mixtures import *


def limite(k, w, tokens, n_ctx):
    eps, n_head, n_taps = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("mudd.tap_count", 0)
    n_kv = k("attention.head_count_kv", n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    norm = lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    pattern = k("attention.sliding_window_pattern", 4)
    x, seen = norm(w["token_embd.weight"][tokens]), []
    for l in range(k("block_count")):
        b = layer(w, l)
        near = (l + 1) % pattern != 0 if isinstance(pattern, int) else pattern[l]
        seen.append(x)
        h = x
        if b("mudd_up") is not None:
            shares = linear(gelu_erf(linear(norm(x), b("mudd_down"))), b("mudd_up"), b("mudd_up", ".bias"))
            rows = [seen[i] for i in k("mudd.tap_indices")[l * n_taps:(l + 1) * n_taps]]
            h, x = (sum(shares[:, [first + i]] * row for i, row in enumerate(rows)) for first in (0, n_taps))
        h = norm(h)
        q, key, v = queries_keys_values(k, b, h)
        if b("attn_ve_gate") is not None:
            v = v + split_heads(w["value_embd.weight"][tokens], n_kv) * sigmoid(linear(h, b("attn_ve_gate")))[..., None]
        q, key = norm(q), norm(key)
        if near:
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
        a = attention(q, key, v, scale=k("attention.scale"), window=k("attention.sliding_window") if near else None)
        if b("attn_xsa_alpha") is not None:
            own = np.repeat(v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), k("attention.xsa_epsilon")), n_head // n_kv, axis=1)
            a = a - own * (a * own).sum(-1, keepdims=True) * b("attn_xsa_alpha")[:, None]
        if b("attn_gate") is not None:
            a = a * sigmoid(linear(h, b("attn_gate")))[..., None]
        x = x * b("attn_resid_scale") + output_of(b, a)
        x = x * b("ffn_resid_scale") + swiglu(b, norm(x))
    y, (most, up, width) = tied_output(w, norm(x)), k("final_logit_sigmoid_capping", (0, 0, 0))
    return most * sigmoid((y + up) / width) if most and width else y


def model(name, seed, n_layer, more={}, n_kv=2, taps=None, whole=True, d=12, **named):
    def extra(w, l):
        b = f"blk.{l}."
        w.pop(b + "attn_norm.weight")
        for part in ("attn", "ffn"):
            w.vector(f"{b}{part}_resid_scale.weight", 1, 1.0)
        if l == 0:
            w.matrix("value_embd", 92, n_kv * d, gain=5)
        if whole or l == 1:
            w.matrix(b + "attn_ve_gate", n_kv, 48, gain=2)
        if whole:
            w.matrix(b + "attn_gate", 4, 48, gain=2)
            w.vector(b + "attn_xsa_alpha.weight", 4, 0.7)
        if taps and taps[l][0] >= 0:
            w.matrix(b + "mudd_down", 10, 48, gain=2)
            w.matrix(b + "mudd_up", 2 * len(taps[l]), 10, gain=2, bias=True)

    keys = {"attention.sliding_window": 5, "attention.scale": 0.4, "attention.head_count_kv": n_kv, **more}
    if whole:
        keys["attention.xsa_epsilon"] = 0.1
    if taps:
        keys = {"mudd.tap_count": len(taps[0]), "mudd.feed_forward_length": 10, "mudd.tap_indices": sum(taps, []), **keys}
    nano(name, "limite", seed, keys, n_layer=n_layer, n_expert=0, n_kv=n_kv, d=d, second="", last="", extra=extra, forward=limite, **named)


model("limite", 3771, 4, {"rope.freq_base": 60.0, "final_logit_sigmoid_capping": [3.0, 0.5, 1.5]}, taps=[[-1, -1, -1], [0, 1, 1], [-1, 0, 0], [0, 3, 2]])
model("limite-early", 3773, 3, {"attention.sliding_window_pattern": 2}, taps=[[-1, 0], [0, 1], [-1, 0]])
model("limite-plain", 3772, 2, {"attention.sliding_window_pattern": [False, True], "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24,
      "rope.freq_base": 900.0, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 10}, whole=False, n_kv=4, d=14, tied=True, qkv=True)
