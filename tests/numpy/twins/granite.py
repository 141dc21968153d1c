"""Granite 3 and 4 (IBM; transformers' modeling_granite.py and modeling_granitemoeshared.py): four multipliers."""
from kin import *


def model(name, arch, seed, more={}, fused=False, factors=0, **named):
    n_shared = more.get("expert_shared_feed_forward_length", 0)

    def parts(w, l):
        if arch == "granitemoe":
            w.experts(l, N_EMBD, N_FF, more["expert_count"])
        if arch == "granitemoe" and n_shared:
            w.shared_expert(l, N_EMBD, n_shared)

    case = kin(name, arch, seed, more, feed_forward="none" if arch == "granitemoe" else "gated", parts=parts,
               whole=lambda w: factors and w.factors("rope_freqs", factors), **named)
    if fused:
        case.tensors.fuse_experts()


scales = {"embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 1.7, "attention.scale": 0.4}
model("granite", "granite", 231, {**scales, "rope.freq_base": 200.0})
model("granite-unscaled", "granite", 232, sizes(16, 2), tied=False, bias="qkvo", ffn_bias=True)
model("granite-yarn", "granite", 233, {**scales, **sizes(14, 1, 10), **YARN, "rope.dimension_count": 10})
model("granite-freqs", "granite", 234, {**scales, "rope.dimension_count": 12, "ssm.state_size": 256, "expert_count": 0,
                                        "attention.head_count_kv": None}, factors=6)
model("granite-no-positions", "granite", 235, {**scales, "rope.scaling.finetuned": False})
model("granitemoe", "granitemoe", 236, {**scales, **sizes(14, 2, 10), "expert_gating_func": 3, "expert_weights_norm": True, "expert_count": 6, "expert_used_count": 2, "expert_weights_scale": 1.5})
model("granitemoe-shared", "granitemoe", 237, {**scales, **sizes(16, 2), "expert_count": 7, "expert_used_count": 3,
                                               "expert_shared_feed_forward_length": 34, "rope.scaling.finetuned": True}, fused=True)
