"""Command R (Cohere; transformers' modeling_cohere.py): parallel parts, LayerNorm without bias, rotation of adjacent elements."""
from kin import *


def model(name, seed, more={}, n_norm=0, **named):
    def parts(w, l):
        if n_norm:
            w.vector(f"blk.{l}.attn_q_norm.weight", (N_HEAD, n_norm), shift=1)
            w.vector(f"blk.{l}.attn_k_norm.weight", (more["attention.head_count_kv"], n_norm), shift=1)

    kin(name, "command-r", seed, more, norms=("attn_norm",), layer_norm=True, parts=parts, **named)


model("command-r", 241, {"logit_scale": 0.6, "rope.scaling.type": "none", "rope.freq_base": 300.0})
model("command-r-plus", 242, {**sizes(14, 2, 10), "logit_scale": 2.0, "rope.dimension_count": 8}, n_norm=14)
model("command-r-yarn", 243, {**sizes(16, 1), **YARN}, bias="qkvo")
