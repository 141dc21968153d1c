"""OpenELM (Mehta et al. 2024; the authors' modeling_openelm.py): layers scaled one by one."""
from kin import *


def model(name, seed, more, heads, kv, ff, d, tied=True):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD, tied)
    for l, (n_head, n_kv, n_ff) in enumerate(zip(heads, kv, ff)):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, N_EMBD, gain=1.5)
        w.norm(b + "attn_q_norm", d)
        w.norm(b + "attn_k_norm", d)
        w.matrix(b + "attn_output", N_EMBD, n_head * d)
        w.norm(b + "ffn_norm", N_EMBD)
        w.gated(l, N_EMBD, n_ff)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(len(ff), N_EMBD, ff, heads, EPS), "attention.key_length": d, "attention.head_count_kv": kv, **more}
    add(name, "openelm", {key: v for key, v in keys.items() if v is not None}, w)


model("openelm", 1641, {"attention.value_length": 14, "rope.dimension_count": 14, "rope.freq_base": 300.0}, [2, 4, 6], [1, 2, 2], [40, 52, 60], 14)
model("openelm-plain", 1642, {"attention.head_count_kv": None, **YARN, "rope.dimension_count": 8}, [2, 3], [2, 3], [40, 52], 12, False)
