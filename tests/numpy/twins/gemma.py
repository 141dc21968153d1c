"""Gemma (Gemma Team 2024): embeddings times sqrt(width), GEGLU, tied output, heads of a size of their own."""
from kin import *


kin("gemma", "gemma", 201, sizes(d=16, n_kv=1))
kin("gemma-plain", "gemma", 202)
kin("gemma-yarn", "gemma", 203, {**sizes(d=14, n_kv=2, dv=10), **YARN})
