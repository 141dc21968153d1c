"""PLaMo 2 (Preferred Networks 2025; the authors' modeling_plamo.py): Mamba with heads (as Samba), attention on some layers."""
from kin import *


def model(name, seed, kv, more={}, d=12, dv=None, tied=True):
    w, n_in, n_st, n_h, rank = Weights(seed), 55, 8, 5, 64
    w.embedding(N_VOCAB, N_EMBD, tied)
    for l, n_kv in enumerate(kv):
        b = f"blk.{l}."
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            w.norm(b + norm, N_EMBD)
        if n_kv:
            w.matrix(b + "attn_qkv", N_HEAD * d + n_kv * (d + (dv or d)), N_EMBD, gain=1.5)
            w.vector(b + "attn_q_norm.weight", (N_HEAD, d), 0.3, 1)
            w.vector(b + "attn_k_norm.weight", (n_kv, d), 0.3, 1)
            w.matrix(b + "attn_output", N_EMBD, N_HEAD * (dv or d))
        else:
            w.matrix(b + "ssm_in", 2 * n_in, N_EMBD, gain=1.5)
            w.put(b + "ssm_conv1d.weight", 0.7 * w.random.normal(size=(n_in, 4)))
            w.matrix(b + "ssm_x", rank + 2 * n_st, n_in)
            for part, n in (("b", n_st), ("c", n_st), ("dt", rank)):
                w.norm(f"{b}ssm_{part}_norm", n)
            w.matrix(b + "ssm_dt", n_h, rank, bias=True)
            w.put(b + "ssm_a", -w.random.uniform(0.1, 1.5, n_h))
            w.vector(b + "ssm_d", n_h, 0.5, 1)
            w.matrix(b + "ssm_out", N_EMBD, n_in)
        w.matrix(b + "ffn_up", 2 * N_FF, N_EMBD)
        w.matrix(b + "ffn_down", N_EMBD, N_FF)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(len(kv), N_EMBD, N_FF, [N_HEAD * (n > 0) for n in kv], EPS), "attention.head_count_kv": list(kv), "attention.key_length": d,
            "attention.value_length": dv, "ssm.conv_kernel": 4, "ssm.inner_size": n_in, "ssm.state_size": n_st, "ssm.time_step_rank": n_h,
            "ssm.group_count": 0, **more}
    add(name, "plamo2", {key: v for key, v in keys.items() if v is not None}, w)


model("plamo2", 1741, (0, 2, 0, 1), {"rope.freq_base": 300.0, "rope.dimension_count": 8}, d=14, dv=10)
model("plamo2-plain", 1742, (0, 4), YARN, tied=False)
