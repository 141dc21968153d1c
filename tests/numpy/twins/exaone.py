"""EXAONE 3 (LG AI Research 2024, the authors' modeling_exaone.py): a Llama; halves of a head are rotated."""
from kin import *


def model(name, seed, more={}, factors=0, **named):
    kin(name, "exaone", seed, more, whole=lambda w: factors and w.factors("rope_freqs", factors), **named)


model("exaone", 321, {**sizes(None, 2), "rope.freq_base": 300.0, "rope.dimension_count": 12, "attention.layer_norm_epsilon": 1e-5})
model("exaone-freqs", 322, sizes(16, 2), factors=8, tied=False)
model("exaone-yarn", 323, {**sizes(14, 1, 10), **YARN, "rope.dimension_count": 8}, bias="qkvo")
model("exaone-plain", 324)
