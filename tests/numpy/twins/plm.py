"""PLM 1.8B (Deng et al. 2025; the authors' modeling_plm.py): latent attention and a squared ReLU."""
from kin import *


def model(name, seed, more={}, d=10, rot=6, dv=9, rank=14):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.matrix(b + "attn_q", N_HEAD * (d + rot), N_EMBD, gain=1.5)
        w.matrix(b + "attn_kv_a_mqa", rank + rot, N_EMBD, gain=1.5)
        w.norm(b + "attn_kv_a_norm", rank)
        w.matrix(b + "attn_kv_b", N_HEAD * (d + dv), rank, gain=1.5)
        w.matrix(b + "attn_output", N_EMBD, N_HEAD * dv)
        w.norm(b + "ffn_norm", N_EMBD)
        w.matrix(b + "ffn_up", N_FF, N_EMBD)
        w.matrix(b + "ffn_down", N_EMBD, N_FF)
    w.norm("output_norm", N_EMBD)
    add(name, "plm", {**keys_of(2, N_EMBD, N_FF, N_HEAD, EPS), "attention.head_count_kv": N_HEAD, "attention.kv_lora_rank": rank, "attention.key_length": d + rot,
                      "attention.value_length": dv, "rope.dimension_count": rot, **more}, w)


model("plm", 1671, {"rope.freq_base": 300.0})
model("plm-yarn", 1672, YARN)
