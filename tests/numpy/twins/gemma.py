"""Gemma (Gemma Team 2024): embeddings times sqrt(width), GEGLU, tied output, heads of a size of their own."""
import math

from kin import *


def gemma(k, w, tokens, n_ctx):
    def feed(b, h):
        return project(b, "ffn_down", gelu(project(b, "ffn_gate", h)) * project(b, "ffn_up", h))

    x = w["token_embd.weight"][tokens] * math.sqrt(k("embedding_length"))
    return linear(last_norm(k, w, through_layers(k, w, x, True, feed)), w["token_embd.weight"])


kin("gemma", "gemma", gemma, 201, sizes(d=16, n_kv=1))
kin("gemma-plain", "gemma", gemma, 202)
kin("gemma-yarn", "gemma", gemma, 203, {**sizes(d=14, n_kv=2, dv=10), **YARN})
