"""GLM 5.3 Flash (Z.ai 2026; after transformers' modeling_glm5_next.py): four residual rows, states with a delta rule, latent attention to groups of rows."""
from sparse import *

N_HC, EVERY = 4, 2


def glm5_next(k, w, tokens, n_ctx):
    eps, more, chosen = k("attention.layer_norm_rms_epsilon"), k("hyper_connection.epsilon"), None
    bounds = lambda name, l: k(name, [0] * 9)[l]

    def attend(b, h, l):
        nonlocal chosen
        if not k("attention.head_count_kv")[l]:
            raw = linear(linear(h, b("ssm_f_a")), b("ssm_f_b")) + b("ssm_dt", ".bias")
            return delta_rule(b, h, bounded(raw, b("ssm_a", ""), k("kda.gate_lower_bound", 0)), linear(linear(h, b("ssm_g_a")), b("ssm_g_b")), eps)
        low = rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps)
        if k("attention.indexer.types", [True] * 9)[l] and k("attention.indexer.top_k") < len(tokens):
            chosen = chosen_by(k, b, h, low)
        c = rms_norm(linear(h, b("attn_kv_a_mqa")), b("attn_kv_a_norm"), eps)
        a = latent(b, h, split_heads(linear(low, b("attn_q_b")), N_HEAD), c, c[:, :0], lambda x: x, chosen=chosen)
        return linear(merge_heads(a), b("attn_output"))

    x = np.repeat(w["token_embd.weight"][tokens][:, None], N_HC, 1)
    for l in range(k("block_count")):
        b = layer(w, l)
        most = bounds("swiglu_clamp_exp", l)
        for name, part in (("attn", attend), ("ffn", lambda b, h, l: feed(k, b, h, l, most, k("swiglu_clamp_shexp", [most] * 9)[l]))):
            base, scale = b(f"hc_{name}_base"), b(f"hc_{name}_scale")
            m = linear(rms_norm(x.reshape(len(x), -1), 1, eps), b(f"hc_{name}_fn"))
            read = sigmoid(m[:, :N_HC] * scale[0] + base[:N_HC]) + more
            shares = 2 * sigmoid(m[:, N_HC : 2 * N_HC] * scale[1] + base[N_HC : 2 * N_HC])
            mix = doubly_stochastic((m[:, 2 * N_HC :] * scale[2] + base[2 * N_HC :]).reshape(-1, N_HC, N_HC), more, k("hyper_connection.sinkhorn_iterations"))
            y = part(b, rms_norm(np.einsum("tr,trn->tn", read, x), b(name + "_norm"), eps), l)
            x = shares[:, :, None] * y[:, None] + np.einsum("tfr,tfn->trn", mix, x)
    return linear(rms_norm(x.mean(1), w["output_norm.weight"], eps), w["output.weight"])


def model(name, seed, kinds, more={}, every=EVERY, rank=RANK):
    """kinds: K has a state, A chooses rows, B reads what an earlier one has chosen. rank: of keys and values."""
    w = Weights(seed)
    w.embedding(92, N_EMBD, False)
    index = {}
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        for part in ("attn", "ffn"):
            put_mixing(w, f"{b}hc_{part}", (2 + N_HC) * N_HC, N_HC, 3)
        w.norm(b + "attn_norm", N_EMBD)
        if kind == "K":
            put_delta_rule(w, b, True)
        else:
            put_latent(w, b, 0, r=rank)
        if kind == "A":
            index = put_indexer(w, b, every=every)
        put_feed(w, l, 1)
    w.norm("output_norm", N_EMBD)
    keys = {**sizes(len(kinds), 0), **index, "attention.head_count_kv": [int(kind != "K") for kind in kinds], "attention.indexer.types": [kind != "B" for kind in kinds],
            "attention.indexer.top_k": 4, "attention.indexer.kpool": every, "attention.indexer.kpool_select_tail": True, "attention.q_lora_rank": LOW, "ssm.conv_kernel": 4,
            "kda.head_dim": SIZE, "attention.kv_lora_rank": rank, "hyper_connection.count": N_HC, "hyper_connection.epsilon": 1e-3, "hyper_connection.sinkhorn_iterations": 5, **more}
    add(name, "glm5-next", keys, w, glm5_next)


model("glm5-next", 1520, "KABA", {"kda.gate_lower_bound": -3.0, "swiglu_clamp_exp": [0.9, 0.5, 0.7, 0.9], "expert_group_count": 2, "expert_group_used_count": 1})
model("glm5-next-free", 1523, "KAK", {"attention.indexer.top_k": 8}, every=4)
model("glm5-next-wide", 1526, "A", rank=66)  # more than there are tokens
