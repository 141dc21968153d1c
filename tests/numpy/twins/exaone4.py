"""EXAONE 4 (LG AI Research 2025; transformers' modeling_exaone4.py): norms after each part, positions where there is a window."""
from kin import *
from nano import guess


def model(name, seed, more={}, factors=0, drafts=0, **named):
    case = kin(name, "exaone4", seed, more, norms=("post_attention_norm", "post_ffw_norm"), qk_norm=True,
               whole=lambda w: factors and w.factors("rope_freqs", factors), **named)
    for l in range(case.keys["block_count"], case.keys["block_count"] + drafts):
        case.tensors.norm(f"blk.{l}.post_ffw_norm", N_EMBD)
    case.keys["block_count"] += drafts


model("exaone4", 331, {**sizes(16, 2), "rope.freq_base": 300.0, "attention.sliding_window": 6}, factors=8, n_layer=5, tied=False)
model("exaone4-small", 332, {"attention.sliding_window": 0, "rope.dimension_count": 8}, n_layer=4)
model("exaone4-list", 333, {**sizes(14, 1, 10), **YARN, "attention.sliding_window": 7, "nextn_predict_layers": 2,
                            "attention.sliding_window_pattern": [False, True, True]}, n_layer=3, drafts=2)
guess("exaone4-list")
model("exaone4-draft", 337, {**sizes(14, 1), "attention.sliding_window": 7, "nextn_predict_layers": 1,
                             "attention.sliding_window_pattern": [False, True, True, True]}, n_layer=3, drafts=1, tied=False)
guess("exaone4-draft")
model("exaone4-32b", 334, {**sizes(6, 1), "attention.sliding_window_pattern": 3, "rope.freq_base": 3.0}, n_layer=64)
model("exaone4-common", 335, {"attention.head_count_kv": 2, "rope.freq_base": 300.0}, factors=6, n_layer=3, tied=False)
model("exaone4-32b-common", 336, {"attention.head_count_kv": 2, "attention.sliding_window": 6, "attention.sliding_window_pattern": 4,
                                  "rope.freq_base": 300.0}, n_layer=64)
