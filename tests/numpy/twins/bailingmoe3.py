"""Ling 3 (inclusionAI 2026; after transformers' modeling_bailing_hybrid.py): states with a delta rule and a bound of decays, latent attention with a gate for each head."""
from nano import guess
from nano import CASES, guess
from sparse import *

ROT = 6


def bailingmoe3(k, w, tokens, n_ctx):
    eps, theta = k("attention.layer_norm_rms_epsilon"), inverse_frequencies(ROT, k("rope.freq_base", 10000.0))
    bounds = lambda name, l: k(name, [0] * 9)[l]

    def attend(b, h, l):
        if not k("attention.head_count_kv")[l]:
            g = bounded(linear(h, b("ssm_f_a")) + b("ssm_dt", ".bias"), b("ssm_a", ""), k("kda.gate_lower_bound"))
            return delta_rule(b, h, g, linear(h, b("ssm_g_a")), eps)
        q = linear(h, b("attn_q")) if b("attn_q") is not None else linear(rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps), b("attn_q_b"))
        c = linear(h, b("attn_kv_a_mqa"))
        a = latent(b, h, split_heads(q, N_HEAD), rms_norm(c[:, :RANK], b("attn_kv_a_norm"), eps), c[:, RANK:], lambda x: rotate(x, theta, False))
        return linear(merge_heads(a * sigmoid(linear(h, b("attn_gate")))[..., None]), b("attn_output"))

    return decoder(k, w, tokens, attend, lambda b, h, l: feed(k, b, h, l, bounds("swiglu_clamp_exp", l), bounds("swiglu_clamp_shexp", l), True))


def model(name, seed, kinds, more={}, r_q=0, draft=0):
    w = Weights(seed)
    w.embedding(92, N_EMBD, False)
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        if kind == "K":
            put_delta_rule(w, b, False)
        else:
            put_latent(w, b, ROT, r_q)
            w.matrix(b + "attn_gate", N_HEAD, N_EMBD)
        put_feed(w, l, 1)
    w.norm("output_norm", N_EMBD)
    for l in range(len(kinds), len(kinds) + draft):
        w.norm(f"blk.{l}.attn_norm", N_EMBD)
    keys = {**sizes(len(kinds) + draft, ROT), "attention.head_count_kv": [int(kind == "A") for kind in kinds] + [1] * draft, "ssm.conv_kernel": 4, "kda.head_dim": SIZE,
            "kda.safe_gate": True, "kda.gate_lower_bound": -3.0, "expert_group_count": 2, "expert_group_used_count": 1, "rope.freq_base": 900.0, **more}
    add(name, "bailingmoe3", keys, w, bailingmoe3)
    if r_q:
        CASES[name].keys["attention.q_lora_rank"] = r_q


model("bailingmoe3", 1510, "KAK", {"swiglu_clamp_exp": [0.0, 0.3, 0.0], "swiglu_clamp_shexp": [0.1, 0.2, 0.0]})
model("bailingmoe3-rank", 1511, "AKA", {"kda.gate_lower_bound": -5.0}, r_q=LOW)
model("bailingmoe3-ahead", 1512, "KA", {"nextn_predict_layers": 1}, draft=1)
guess("bailingmoe3-ahead", own=True, leading_dense_block_count=0)
