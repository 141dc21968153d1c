"""Chameleon (Meta 2024; modeling_chameleon.py): LayerNorm on each head of Q and K, Swin's order of norms in the larger one, no image tokens."""
from kin import *


def model(name, seed, more={}, bias=False, tied=True):
    n_kv, d = more.get("attention.head_count_kv", N_HEAD), more.get("attention.key_length", 12)

    def parts(w, l):
        for part, n in (("q", N_HEAD), ("k", n_kv)):
            w.vector(f"blk.{l}.attn_{part}_norm.weight", (n, d), 0.3, 1)
            if bias:
                w.vector(f"blk.{l}.attn_{part}_norm.bias", (n, d))

    case = kin(name, "chameleon", seed, more, tied=tied, parts=parts)
    for part in ("token_embd", "output"):
        if part + ".weight" in case.tensors:  # so many that some are no pieces of images
            case.tensors[part + ".weight"] = np.concatenate([case.tensors[part + ".weight"]] * 90)[:8240]


model("chameleon", 1771, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 8, "rope.freq_base": 300.0}, True, False)
model("chameleon-swin", 1772, {"swin_norm": True, **YARN})
