"""MiniCPM 3 (OpenBMB 2024), after the authors' modeling_minicpm.py of that model."""
from nano import Weights, add, keys_of


def model(name, seed, more={}, tied=False, factors=()):
    n_embd, n_head, r_q, r, rot, d, dv, n_ff = 48, 4, 22, 20, 6, 10, 14, 78
    w = Weights(seed)
    w.embedding(92, n_embd, tied)
    for part in factors:
        w.factors(part, rot // 2)
    for l in range(2):
        b = f"blk.{l}."
        for part, n in (("attn_norm", n_embd), ("attn_q_a_norm", r_q), ("attn_kv_a_norm", r), ("ffn_norm", n_embd)):
            w.norm(b + part, n)
        for part, rows, columns in (("attn_q_a", r_q, n_embd), ("attn_q_b", n_head * (d + rot), r_q), ("attn_kv_a_mqa", r + rot, n_embd),
                                    ("attn_kv_b", n_head * (d + dv), r), ("attn_output", n_embd, n_head * dv)):
            w.matrix(b + part, rows, columns, gain=1.5)
        w.gated(l, n_embd, n_ff)
    w.norm("output_norm", n_embd)
    add(name, "minicpm3", {**keys_of(2, n_embd, n_ff, n_head, 1e-2), "attention.q_lora_rank": r_q, "attention.kv_lora_rank": r,
                           "attention.key_length": d + rot, "attention.value_length": dv, "rope.dimension_count": rot, **more}, w)


model("minicpm3", 1211, {"attention.head_count_kv": 4}, tied=True)
model("minicpm3-long", 1212, {"rope.freq_base": 300.0, "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 32,
                              "rope.scaling.attn_factor": 1.2}, factors=("rope_factors_long", "rope_factors_short"))
model("minicpm3-short", 1213, {"rope.freq_base": 300.0}, factors=("rope_factors_long", "rope_factors_short"))
