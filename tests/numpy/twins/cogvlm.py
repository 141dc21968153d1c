"""CogVLM (THUDM 2023; the authors' modeling_cogvlm.py), for text: its language experts alone."""
from kin import *


def joined(w, l):
    w.put(f"blk.{l}.attn_qkv.weight", np.concatenate([w.pop(f"blk.{l}.attn_{part}.weight") for part in "qkv"]))
    w.matrix(f"blk.{l}.vis_attn_qkv", 20, N_EMBD)
    w.matrix(f"blk.{l}.vis_up", 20, N_EMBD)


EXPERTS = (("attn_qkv", "attn_qkv"), ("attn_output", "attn_output"), ("gate", "ffn_gate"), ("up", "ffn_up"), ("down", "ffn_down"))


def parts(w, l):
    """The experts for images are there, and have no effect."""
    joined(w, l)
    for name in ("attn_qkv", "up"):
        w.pop(f"blk.{l}.vis_{name}.weight")
    for name, of_text in EXPERTS:
        w.put(f"blk.{l}.vis_{name}.weight", np.full_like(w[f"blk.{l}.{of_text}.weight"], 7))


def common(w, l):
    """The same, of random numbers."""
    joined(w, l)
    for name, *shape in (("attn_qkv", 3 * N_EMBD, N_EMBD), ("attn_output", N_EMBD, N_EMBD), ("gate", N_FF, N_EMBD), ("up", N_FF, N_EMBD), ("down", N_EMBD, N_FF)):
        w.matrix(f"blk.{l}.vis_{name}", *shape)


kin("cogvlm", "cogvlm", 1781, {**sizes(14, 4, 14), "rope.freq_base": 500000.0}, tied=False, parts=parts)
kin("cogvlm-plain", "cogvlm", 1782, parts=parts)
kin("cogvlm-common", "cogvlm", 1783, tied=False, parts=common)
