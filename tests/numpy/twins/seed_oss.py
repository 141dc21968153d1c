"""Seed-OSS (ByteDance; transformers' modeling_seed_oss.py): a Llama with biases on queries, keys and values."""
from kin import *


def seed_oss(k, w, tokens, n_ctx):
    return tied_output(w, last_norm(k, w, through_layers(k, w, w["token_embd.weight"][tokens], True, ffn_norm="post_attention_norm")))


def model(name, seed, more={}, **named):
    kin(name, "seed_oss", seed_oss, seed, more, norms=("attn_norm", "post_attention_norm"), **named)


model("seed_oss", 301, {**sizes(16, 2), "rope.freq_base": 300.0}, bias="qkv", tied=False)
model("seed_oss-plain", 302)
model("seed_oss-yarn", 303, {**sizes(14, 1, 10), **YARN}, bias="qkvo")
