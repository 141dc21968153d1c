"""PLaMo 3 (Preferred Networks 2025; the authors' modeling_plamo.py): windows, norms around each part, normalised queries and keys."""
from kin import *


def as_published(w, l):
    """Queries, keys and values in one matrix, gate and up in one; the norms of what a part gives without `.weight`."""
    b = f"blk.{l}."
    w.put(b + "attn_qkv.weight", np.concatenate([w.pop(f"{b}attn_{part}.weight") for part in "qkv"]))
    w.put(b + "ffn_up.weight", np.concatenate([w.pop(f"{b}ffn_{part}.weight") for part in ("gate", "up")]))
    for norm in ("post_attention_norm", "post_ffw_norm"):
        w.put(b + norm, w.pop(f"{b}{norm}.weight"))


def model(name, seed, more, n_layer=2, tied=True, factors=0):
    kin(name, "plamo3", seed, more, n_layer, tied, ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), qk_norm=True, parts=as_published,
        whole=lambda w: w.factors("rope_freqs", factors) if factors else None)


model("plamo3", 1751, {**sizes(14, 2, 10), "attention.sliding_window": 6, "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 8}, 9)
model("plamo3-list", 1752, {**sizes(12), **YARN, "attention.sliding_window": 5, "attention.sliding_window_pattern": [True, False, True]}, 3, False)
model("plamo3-plain", 1753, {**sizes(12), "attention.sliding_window": 0}, factors=6)
model("plamo3-factors", 1754, {**sizes(12), "attention.sliding_window": 5}, factors=6)
