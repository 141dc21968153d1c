"""Granite with windows (transformers' modeling_granite_swa.py and modeling_granitemoe_swa.py): sinks in all layers, a window and positions in some."""
from kin import *


def model(name, seed, more={}, n_expert=0, fused=False, factors=0, **named):
    n_shared = more.get("expert_shared_feed_forward_length", 0)

    def parts(w, l):
        w.put(f"blk.{l}.attn_sinks.weight", 1 + w.random.normal(size=N_HEAD))
        if n_expert:
            w.experts(l, N_EMBD, N_FF, n_expert)
        if n_shared:
            w.matrix(f"blk.{l}.ffn_up_shexp", 2 * n_shared, N_EMBD)
            w.matrix(f"blk.{l}.ffn_down_shexp", N_EMBD, n_shared)

    more = {"attention.sliding_window": 5, **more, **({"expert_count": n_expert, "expert_used_count": 2} if n_expert else {})}
    case = kin(name, "granite_swa", seed, more, n_layer=len(more["attention.sliding_window_pattern"]), feed_forward="none" if n_expert else "gated", parts=parts,
               whole=lambda w: factors and w.factors("rope_freqs", factors), **named)
    if fused:
        case.tensors.fuse_experts()


SCALES = {"embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 1.7, "attention.scale": 0.4}
model("granite_swa", 3101, {**SCALES, "rope.freq_base": 200.0, "attention.sliding_window_pattern": [False, True, True], "attention.rope_pattern": [False, True, True]})
model("granite_swa-plain", 3102, {**sizes(14, 2), **YARN, "attention.sliding_window_pattern": [True, False]}, tied=False, bias="qkvo", ffn_bias=True)
model("granite_swa-freqs", 3103, {"rope.dimension_count": 10, "attention.sliding_window_pattern": [True, False], "attention.value_length": 12, "deepstack_mapping": [-1, -1]}, factors=5)
model("granite_swa-experts", 3104, {**SCALES, **sizes(16, 2), "attention.sliding_window_pattern": [False, True]}, n_expert=6)
model("granite_swa-shared", 3105, {**SCALES, "expert_shared_feed_forward_length": 34, "attention.sliding_window_pattern": [False, True], "attention.rope_pattern": [True, False],
                                   "deepstack_mapping": [-1, 1]}, n_expert=5, fused=True)
model("granite_swa-common", 3106, {**SCALES, **sizes(16, 2, 16), "rope.dimension_count": 16, "expert_shared_feed_forward_length": 32, "attention.sliding_window_pattern": [False, True, True],
                                   "attention.rope_pattern": [False, True, True]}, n_expert=8, fused=True)
