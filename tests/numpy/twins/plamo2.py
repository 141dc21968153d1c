"""PLaMo 2 (Preferred Networks 2025; the authors' modeling_plamo.py): Mamba with heads (as Samba), attention on some layers."""
from kin import *
from blocks import causal_conv


def mamba(k, b, h, eps):
    n_h, n_st, rank = k("ssm.time_step_rank"), k("ssm.state_size"), max(64, k("embedding_length") // 16)
    both = split_heads(linear(h, b("ssm_in")), n_h)
    z, u = np.split(both, 2, axis=-1)
    u = silu(causal_conv(merge_heads(u), b("ssm_conv1d")))
    rows, columns, dt = np.split(linear(u, b("ssm_x")), [n_st, 2 * n_st], axis=-1)
    rows, columns = rms_norm(rows, b("ssm_b_norm"), eps), rms_norm(columns, b("ssm_c_norm"), eps)
    dt = softplus(project(b, "ssm_dt", rms_norm(dt, b("ssm_dt_norm"), eps)))
    u, y = split_heads(u, n_h), np.zeros_like(z)
    for i in range(n_h):
        s = np.zeros((u.shape[2], n_st))
        for t in range(len(h)):
            s = np.exp(dt[t, i] * b("ssm_a", "")[i]) * s + dt[t, i] * np.outer(u[t, i], rows[t])
            y[t, i] = s @ columns[t] + b("ssm_d", "")[i] * u[t, i]
    return linear(merge_heads(y * silu(z)), b("ssm_out"))


def plamo2(k, w, tokens, n_ctx):
    eps, d = k("attention.layer_norm_rms_epsilon"), k("attention.key_length")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b, n_head, n_kv = layer(w, l), k("attention.head_count")[l], k("attention.head_count_kv")[l]
        h = rms_norm(x, b("attn_norm"), eps)
        if n_kv:
            q, key, v = np.split(linear(h, b("attn_qkv")), [n_head * d, (n_head + n_kv) * d], axis=-1)
            q = rotate(rms_norm(split_heads(q, n_head), b("attn_q_norm"), eps), theta, True, mag)
            key = rotate(rms_norm(split_heads(key, n_kv), b("attn_k_norm"), eps), theta, True, mag)
            y = linear(merge_heads(attention(q, key, split_heads(v, n_kv))), b("attn_output"))
        else:
            y = mamba(k, b, h, eps)
        x = x + rms_norm(y, b("post_attention_norm"), eps)
        gate, up = np.split(linear(rms_norm(x, b("ffn_norm"), eps), b("ffn_up")), 2, axis=-1)
        x = x + rms_norm(linear(silu(gate) * up, b("ffn_down")), b("post_ffw_norm"), eps)
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


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
    add(name, "plamo2", {key: v for key, v in keys.items() if v is not None}, w, plamo2)


model("plamo2", 1741, (0, 2, 0, 1), {"rope.freq_base": 300.0, "rope.dimension_count": 8}, d=14, dv=10)
model("plamo2-plain", 1742, (0, 4), YARN, tied=False)
