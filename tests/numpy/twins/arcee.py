"""Arcee's AFM (transformers' modeling_arcee.py): a Llama with a squared ReLU and no gate."""
from kin import *


def model(name, seed, more={}, factors=0, **named):
    kin(name, "arcee", seed, more, feed_forward="plain", whole=lambda w: factors and w.factors("rope_freqs", factors), **named)


model("arcee", 351, {**sizes(14, 2, 10), **YARN, "rope.dimension_count": 12}, tied=False)
model("arcee-plain", 352, bias="qkvo", ffn_bias=True)
model("arcee-freqs", 353, {**sizes(16, 1), "rope.dimension_count": 8}, factors=4)
model("arcee-common", 354, {"attention.head_count_kv": 2, "rope.freq_base": 300.0}, tied=False)
