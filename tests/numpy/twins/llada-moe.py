"""LLaDA-MoE (Zhu et al. 2025; the authors' modeling_lladamoe.py) and RND1 (Radical Numerics 2025; modeling_rnd.py): heads of Q and K normalised,
experts; RND1 divides the shares of the chosen experts by their sum. Logits of each token, without a mask."""
from encoders import *
from mixtures import chosen_experts, moe


def forward_of(arch):
    def forward(k, w, tokens, output):
        eps, n_kv = k("attention.layer_norm_rms_epsilon"), k("attention.head_count_kv", k("attention.head_count"))
        theta, mag = scaled_frequencies(k, k("attention.key_length", 12))

        def attention_of(b, h):
            q, key, v = heads_of(k, b, h, n_kv)
            q, key = (rotate(rms_norm(x, b(norm), eps), theta, True, mag) for x, norm in ((q, "attn_q_norm"), (key, "attn_k_norm")))
            return dense(b, merge_heads(attention(q, key, v, both=True)), "attn_output")

        def feed(b, h):
            p = softmax(linear(h, b("ffn_gate_inp")))
            return moe(b, h, p, chosen_experts(p, k("expert_used_count")), arch == "rnd1")

        return linear(prenorm(k, w, tokens, attention_of, feed), w["output.weight"])
    return forward


def model(name, arch, seed, more={}, d=12, **parts):
    def norms(w, l):
        w.norm(f"blk.{l}.attn_q_norm", d)
        w.norm(f"blk.{l}.attn_k_norm", d)
    w = llama_weights(seed, tied=False, d=d, feed=lambda w, l: w.experts(l, N_EMBD, 22, 6), parts=norms, **parts)
    keys = {**keys_of(2, N_EMBD, N_FF, 4, EPS), "expert_count": 6, "expert_used_count": 3, "expert_feed_forward_length": 22, **more}
    encoder(name, arch, keys, w, forward_of(arch), "logits")


model("llada-moe", "llada-moe", 3901, {"attention.causal": False})
model("rnd1", "rnd1", 3902, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.freq_base": 300.0,
                             "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.4}, 14, n_kv=2, dv=10)
