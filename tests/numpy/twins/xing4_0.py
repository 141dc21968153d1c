"""Xing 4.0 (XingChen 2026; after the sources of SGLang, mlx-lm and llama.cpp): latent attention, experts, and four residual rows whose mixture is clamped."""
from nano import CASES, guess, other_names
from sparse import *

N_HC, ROT = 4, 6


def mixture(x, more, steps):
    """x [.., to, from] -> shares of the rows in each other, after so many turns over `from`, then over `to`."""
    x = np.clip(x, -30, 30)
    x = np.exp(x - x.max(-1, keepdims=True))
    for _ in range(steps):
        x = x / (x.sum(-1, keepdims=True) + more)
        x = x / (x.sum(-2, keepdims=True) + more)
    return x


def xing4_0(k, w, tokens, n_ctx):
    eps, more, factor = k("attention.layer_norm_rms_epsilon"), k("hyper_connection.epsilon"), k("rope.scaling.factor", 1.0)
    theta, mag, sharper = inverse_frequencies(ROT, k("rope.freq_base", 10000.0)), 1.0, 1.0
    if k("rope.scaling.type", None) == "yarn":
        theta = yarn_frequencies(ROT, k("rope.freq_base", 10000.0), factor, k("rope.scaling.original_context_length"))
        times = k("rope.scaling.yarn_log_multiplier", 0.0)
        mag, sharper = (1.0, 1 + times * math.log(factor)) if times else (1 + 0.1 * math.log(factor), 1.0)

    def attend(b, h, l):
        q = split_heads(linear(rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps), b("attn_q_b")), N_HEAD)
        c = linear(h, b("attn_kv_a_mqa"))
        return linear(merge_heads(latent(b, h, sharper**2 * q, rms_norm(c[:, :RANK], b("attn_kv_a_norm"), eps), c[:, RANK:], lambda x: rotate(x, theta, False, mag))), b("attn_output"))

    x = np.repeat(w["token_embd.weight"][tokens][:, None], N_HC, 1)
    for l in range(k("block_count") - k("nextn_predict_layers", 0)):
        b = layer(w, l)
        for name, part in (("attn", attend), ("ffn", lambda b, h, l: feed(k, b, h, l))):
            enter = lambda h: part(b, rms_norm(h, b(name + "_norm"), eps), l)[:, None]
            if b(f"hc_{name}_fn") is None:  # a layer that guesses: its rows are all the same
                x = x + enter(x[:, 0])
                continue
            base, scale = b(f"hc_{name}_base"), b(f"hc_{name}_scale")
            m = linear(rms_norm(x.reshape(len(x), -1), 1, eps), b(f"hc_{name}_fn"))
            read = sigmoid(m[:, :N_HC] * scale[0] + base[:N_HC])
            shares = 2 * sigmoid(m[:, N_HC : 2 * N_HC] * scale[1] + base[N_HC : 2 * N_HC])
            mix = mixture((m[:, 2 * N_HC :] * scale[2] + base[2 * N_HC :]).reshape(-1, N_HC, N_HC), more, k("hyper_connection.sinkhorn_iterations"))
            x = shares[:, :, None] * enter(np.einsum("tr,trn->tn", read, x)) + mix @ x
    return linear(rms_norm(x.mean(1), w["output_norm.weight"], eps), w.get("output.weight", w["token_embd.weight"]))


def model(name, seed, n_layer, more={}, tied=False, fused=False, sharp=1.0, draft=0):
    """sharp: how much larger the mixture's numbers are."""
    w = Weights(seed)
    w.embedding(92, N_EMBD, tied)
    for l in range(n_layer):
        b = f"blk.{l}."
        for part in ("attn", "ffn"):
            put_mixing(w, f"{b}hc_{part}", (2 + N_HC) * N_HC, N_HC, 3)
            w.put(f"{b}hc_{part}_scale.weight", w[f"{b}hc_{part}_scale.weight"] * [1, 1, sharp])
        w.norm(b + "attn_norm", N_EMBD)
        put_latent(w, b, ROT)
        put_feed(w, l, 1)
    for l in range(draft):
        w.norm(f"blk.{n_layer + l}.attn_norm", N_EMBD)
    w.norm("output_norm", N_EMBD)
    if fused:
        w.fuse_experts()
    add(name, "xing4_0", {**sizes(n_layer + draft, ROT), "attention.head_count_kv": 1, "attention.q_lora_rank": LOW, "rope.freq_base": 300.0, "hyper_connection.count": N_HC,
                          "hyper_connection.epsilon": 1e-3, "hyper_connection.sinkhorn_iterations": 5, **more}, w, other_names(xing4_0))


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
model("xing4_0", 1540, 3, {**YARN, "rope.scaling.yarn_log_multiplier": 0.1, "expert_group_count": 2, "expert_group_used_count": 1, "nextn_predict_layers": 1}, draft=1)
model("xing4_0-clamped", 1541, 2, {"hyper_connection.sinkhorn_iterations": 2}, tied=True, fused=True, sharp=25.0)
model("xing4_0-grown", 1542, 2, YARN)
guess("xing4_0", own=True, leading_dense_block_count=0)
guessing = CASES["xing4_0-guess"].tensors
for t in [t for t in guessing if t.startswith("blk.3.hc_")]:  # it has one row
    del guessing[t]
