"""Talkie 13B (2026; after the authors' modelling code): norms without weights, the embedding added again after each layer."""
from kin import *


def parts(w, l):
    w.vector(f"blk.{l}.attn_q_norm.weight", (N_HEAD, 1), 0.3, 1)
    w.vector(f"blk.{l}.layer_output_scale.weight", 1, 0.3, 0.6)


def model(name, seed, more):
    case = kin(name, "talkie", seed, {"logit_scale": 0.7, **more}, tied=False, norms=(), parts=parts)
    del case.tensors["output_norm.weight"]


model("talkie", 1681, {**sizes(14, 2), "rope.dimension_count": 8, "rope.freq_base": 300.0})
model("talkie-plain", 1682, YARN)
