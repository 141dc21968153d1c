"""Grove MoE (Wu et al. 2025), after the authors' modeling_grove_moe.py: each chosen expert brings its group's small expert along."""
from mixtures import *
from families import scaled_frequencies


def grovemoe(k, w, tokens, n_ctx):
    eps, d = k("attention.layer_norm_rms_epsilon"), k("attention.key_length", 12)
    theta, mag = scaled_frequencies(k, d)

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        return linear(merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)), b("attn_output"))

    def feed(b, h, l):
        def of_group(name):  # for each expert the one of its group
            return np.repeat(b(name.replace("_exps", "_chexps")), k("experts_per_group"), axis=0)

        s = linear(h, b("ffn_gate_inp"))
        p = softmax(s) if k("expert_gating_func", 1) == 1 else sigmoid(s)
        shares = p, chosen_experts(p, k("expert_used_count")), k("expert_weights_norm", True), k("expert_weights_scale", 1.0)
        return moe(b, h, *shares) + k("expert_group_scale") * moe(of_group, h, *shares)

    return decoder(k, w, tokens, attend, feed)


def beside(n_group, n):
    def put(w, l):
        w.matrix(f"blk.{l}.ffn_gate_chexps", n_group, n, 48)
        w.matrix(f"blk.{l}.ffn_up_chexps", n_group, n, 48)
        w.matrix(f"blk.{l}.ffn_down_chexps", n_group, 48, n, gain=2)
    return put


nano("grovemoe", "grovemoe", 1811, grovemoe, {"experts_per_group": 2, "expert_group_scale": 0.8, "expert_chunk_feed_forward_length": 14,
     "rope.freq_base": 300.0}, n_expert=8, qk_norm="head", extra=beside(4, 14))
nano("grovemoe-few-groups", "grovemoe", 1812, grovemoe, {"experts_per_group": 3, "expert_group_scale": 0.6, "attention.key_length": 14,
     "attention.value_length": 10, "attention.head_count_kv": 2, "expert_weights_scale": 1.3}, n_kv=2, d=14, dv=10, qk_norm="head",
     tied=True, fused=True, extra=beside(2, 14))
nano("grovemoe-sigmoid", "grovemoe", 1813, grovemoe, {"experts_per_group": 2, "expert_group_scale": 0.7, "expert_chunk_feed_forward_length": 18,
     "expert_gating_func": 2, "expert_weights_norm": False, "rope.scaling.type": "linear", "rope.scaling.factor": 2.0, "rope.scaling.attn_factor": 1.3,
     "attention.head_count_kv": 2}, n_kv=2, qk_norm="head", extra=beside(3, 18))
