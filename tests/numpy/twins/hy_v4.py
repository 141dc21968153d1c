"""Hunyuan 4 (Tencent 2026; after transformers' modeling_hy_v4.py, and llama.cpp for the rotation): several residual rows, latent attention with sinks and a gate."""
from sparse import *

N_HC, ROT = 3, 6


def hy_v4(k, w, tokens, n_ctx):
    eps, more, chosen = k("attention.layer_norm_rms_epsilon"), k("hyper_connection.epsilon"), None
    theta = inverse_frequencies(ROT, k("rope.freq_base", 10000.0))
    turn = lambda x: rotate(x, theta, False)
    at_end = lambda x: np.concatenate([x[..., :-ROT], turn(x[..., -ROT:])], -1)

    def attend(b, h, l):
        nonlocal chosen
        low = rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps)
        if k("attention.indexer.types", [True] * 9)[l] and 0 < k("attention.indexer.top_k", 0) < len(tokens):
            chosen = chosen_by(k, b, h, low, at_end, eps)
        c = linear(h, b("attn_kv_a_mqa"))
        a = latent(b, h, split_heads(linear(low, b("attn_q_b")), N_HEAD), rms_norm(c[:, :RANK], b("attn_kv_a_norm"), eps), c[:, RANK:], turn, chosen=chosen, sinks=b("attn_sinks"))
        return linear(merge_heads(a) * sigmoid(linear(h, b("attn_gate"))), b("attn_output"))

    x = np.repeat(w["token_embd.weight"][tokens][:, None], N_HC, 1)
    whole = lambda: rms_norm(x.reshape(len(x), -1), 1, eps)
    for l in range(k("block_count")):
        b = layer(w, l)
        for name, part in (("attn", attend), ("ffn", lambda b, h, l: feed(k, b, h, l, k("swiglu_clamp_exp", [0] * 9)[l]))):
            base, scale = b(f"hc_{name}_base"), b(f"hc_{name}_scale")
            m = linear(whole(), b(f"hc_{name}_fn"))
            read = sigmoid(m[:, :N_HC] * scale[0] + base[:N_HC]) + more
            shares = k("hyper_connection.magnitude") * sigmoid(m[:, N_HC:] * scale[1] + base[N_HC:]) + more
            x = x + shares[:, :, None] * part(b, rms_norm(np.einsum("tr,trn->tn", read, x), b(name + "_norm"), eps), l)[:, None]
    read = sigmoid(linear(whole(), w["output_hc_fn.weight"]) * w["output_hc_scale.weight"] + w["output_hc_base.weight"]) + more
    return linear(rms_norm(np.einsum("tr,trn->tn", read, x), w["output_norm.weight"], eps), w["output.weight"])


def model(name, seed, kinds, more={}):
    """kinds: A chooses rows, B reads what an earlier one has chosen, R reads all."""
    w = Weights(seed)
    w.embedding(92, N_EMBD, False)
    index = {}
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        for part in ("attn", "ffn"):
            put_mixing(w, f"{b}hc_{part}", 2 * N_HC, N_HC, 2)
        w.norm(b + "attn_norm", N_EMBD)
        put_latent(w, b, ROT)
        w.vector(b + "attn_sinks.weight", N_HEAD, 1.0)
        w.matrix(b + "attn_gate", N_HEAD * DV, N_EMBD)
        if kind == "A":
            index = {**put_indexer(w, b), "attention.indexer.types": [kind != "B" for kind in kinds], "attention.indexer.top_k": 5}
        put_feed(w, l, 1)
    put_mixing(w, "output_hc", N_HC, N_HC, 1)
    w.norm("output_norm", N_EMBD)
    add(name, "hy_v4", {**sizes(len(kinds), ROT), **index, "attention.head_count_kv": 1, "attention.q_lora_rank": LOW, "rope.freq_base": 900.0, "hyper_connection.count": N_HC,
                        "hyper_connection.epsilon": 1e-3, "hyper_connection.magnitude": 1.5, **more}, w, hy_v4)


model("hy_v4", 1530, "ABA", {"swiglu_clamp_exp": [0.9, 0.5, 0.7], "expert_group_count": 2, "expert_group_used_count": 1})
model("hy_v4-whole", 1531, "RR")
