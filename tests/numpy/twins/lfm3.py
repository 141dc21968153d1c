"""LFM 3 (Liquid 2026, transformers' modeling_lfm3.py): short convolutions, attention with a sigmoid for each head, windows, norms after each part."""
from kin import *


def lfm3(k, w, tokens, n_ctx):
    eps, d, base = k("attention.layer_norm_rms_epsilon"), head_size(k), k("rope.freq_base", 10000.0)
    far = scaled_frequencies(k, k("rope.dimension_count", d), w.get("rope_freqs.weight"))
    close = inverse_frequencies(k("rope.dimension_count_swa", d), k("rope.freq_base_swa", base)), 1.0
    x = w["token_embd.weight"][tokens]

    def after(b, name, y):
        return y if b(name) is None else rms_norm(y, b(name), eps)

    for l in range(k("block_count")):
        b = layer(w, l)
        h, n_kv, near = rms_norm(x, b("attn_norm"), eps), k("attention.head_count_kv")[l], k("attention.sliding_window_pattern")[l]
        if n_kv == 0:
            gate_in, gate_out, y = np.split(linear(h, b("shortconv.in_proj")), 3, axis=-1)
            y = linear(gate_out * causal_conv(gate_in * y, b("shortconv.conv")), b("shortconv.out_proj"))
        else:
            theta, mag = close if near else far
            q, key, v = (split_heads(linear(h, b("attn_" + p)), n) for p, n in (("q", N_HEAD), ("k", n_kv), ("v", n_kv)))
            q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
            y = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v, window=k("attention.sliding_window") if near else None)
            if b("attn_gate") is not None:
                y = y * sigmoid(linear(h, b("attn_gate")))[..., None]
            y = linear(merge_heads(y), b("attn_output"))
        x = x + after(b, "post_attention_norm", y)
        x = x + after(b, "post_ffw_norm", swiglu(b, rms_norm(x, b("ffn_norm"), eps)))
    return tied_output(w, rms_norm(x, w.get("token_embd_norm.weight", w.get("output_norm.weight")), eps))


def model(name, seed, kinds, more={}, norms=True, gate=True, factors=(), own_norm="token_embd_norm", **named):
    """kinds: of each layer, c: convolution, w: attention with a window, a: without."""
    d = more.get("attention.key_length") or 12

    def parts(w, l):
        b = f"blk.{l}."
        if norms:
            w.norm(b + "post_attention_norm", N_EMBD)
            w.norm(b + "post_ffw_norm", N_EMBD)
        if kinds[l] == "c":
            for part in ("q", "k", "v", "output", "q_norm", "k_norm"):
                del w[f"{b}attn_{part}.weight"]
            w.matrix(b + "shortconv.in_proj", 3 * N_EMBD, N_EMBD)
            w.matrix(b + "shortconv.conv", N_EMBD, 4)
            w.matrix(b + "shortconv.out_proj", N_EMBD, N_EMBD, gain=2)
        elif gate:
            w.matrix(b + "attn_gate", N_HEAD, N_EMBD, gain=2)

    case = kin(name, "lfm3", seed, {"attention.head_count_kv": 2, "attention.sliding_window": 5, "shortconv.l_cache": 4, **more}, n_layer=len(kinds), qk_norm=True, parts=parts,
               whole=lambda w: factors and w.put("rope_freqs.weight", factors), forward=lfm3, **named)
    case.tensors[own_norm + ".weight"] = case.tensors.pop("output_norm.weight")
    case.keys |= {"attention.head_count_kv": [0 if kind == "c" else 2 for kind in kinds], "attention.sliding_window_pattern": [kind == "w" for kind in kinds]}


model("lfm3", 3601, "cwca", {"rope.freq_base": 900.0, "rope.freq_base_swa": 30.0}, factors=[1, 1, 1, 1e30, 1e30, 1e30])
model("lfm3-plain", 3602, "wca", {**YARN, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 10}, norms=False, gate=False, own_norm="output_norm", tied=False)
model("lfm3-part", 3603, "acw", {"rope.dimension_count_swa": 8})
