"""CogVLM (THUDM 2023; the authors' modeling_cogvlm.py), for text: its language experts alone."""
from kin import *


def cogvlm(k, w, tokens, n_ctx):
    eps, n_head = k("attention.layer_norm_rms_epsilon"), k("attention.head_count")
    theta = inverse_frequencies(head_size(k), 10000.0)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = (split_heads(p, n_head) for p in np.split(linear(rms_norm(x, b("attn_norm"), eps), b("attn_qkv")), 3, axis=-1))
        x = x + linear(merge_heads(attention(rotate(q, theta, True), rotate(key, theta, True), v)), b("attn_output"))
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + linear(silu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down"))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def parts(w, l):
    w.put(f"blk.{l}.attn_qkv.weight", np.concatenate([w.pop(f"blk.{l}.attn_{part}.weight") for part in "qkv"]))
    w.matrix(f"blk.{l}.vis_attn_qkv", 20, N_EMBD)
    w.matrix(f"blk.{l}.vis_up", 20, N_EMBD)


def common(w, l):
    """The experts for images, in the sizes of those for text."""
    parts(w, l)
    for name, *shape in (("attn_qkv", 3 * N_EMBD, N_EMBD), ("attn_output", N_EMBD, N_EMBD), ("gate", N_FF, N_EMBD), ("up", N_FF, N_EMBD), ("down", N_EMBD, N_FF)):
        w.matrix(f"blk.{l}.vis_{name}", *shape)


kin("cogvlm", "cogvlm", cogvlm, 1781, {**sizes(14, 4, 14), "rope.freq_base": 500000.0}, tied=False, parts=parts)
kin("cogvlm-plain", "cogvlm", cogvlm, 1782, parts=parts)
kin("cogvlm-common", "cogvlm", cogvlm, 1783, tied=False, parts=common)
