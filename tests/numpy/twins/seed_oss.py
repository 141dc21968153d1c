"""Seed-OSS (ByteDance; transformers' modeling_seed_oss.py): a Llama with biases on queries, keys and values."""
from kin import *


def model(name, seed, more={}, **named):
    kin(name, "seed_oss", seed, more, norms=("attn_norm", "post_attention_norm"), **named)


model("seed_oss", 301, {**sizes(16, 2), "rope.freq_base": 300.0}, bias="qkv", tied=False)
model("seed_oss-plain", 302)
model("seed_oss-yarn", 303, {**sizes(14, 1, 10), **YARN}, bias="qkvo")
