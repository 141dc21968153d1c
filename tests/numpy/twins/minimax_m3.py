"""MiniMax M3 (MiniMax 2026, text), after the authors' graph in llama.cpp, where the blocks that are chosen are all there are."""
from mixtures import *
from families import scaled_frequencies


def gated(gate, up):
    gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
    return gate * sigmoid(1.702 * gate) * (up + 1)


def minimax(k, w, tokens, n_ctx):
    eps, n_head = k("attention.layer_norm_rms_epsilon"), k("attention.head_count")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)))

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        return output_of(b, attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))

    def pass_all(b, h, end=""):
        return linear(gated(linear(h, b("ffn_gate" + end)), linear(h, b("ffn_up" + end))), b("ffn_down" + end))

    def feed(b, h, l):
        if l < k("leading_dense_block_count", 0):
            return pass_all(b, h)
        s = linear(h, b("ffn_gate_inp"))
        p = softmax(s) if k("expert_gating_func", 2) == 1 else sigmoid(s)
        chosen = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"))
        total = [sum(row[e]) if k("expert_weights_norm", False) else 1 for row, e in zip(p, chosen)]
        share = [{e: k("expert_weights_scale", 1.0) * row[e] / t for e in of} for row, of, t in zip(p, chosen, total)]
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        return experts(h, share, chosen, lambda e, x: down[e] @ gated(gate[e] @ x, up[e] @ x)) + pass_all(b, h, "_shexp")

    return decoder(k, w, tokens, attend, feed)


def model(name, seed, more, index=None, **named):
    """index: how the files name what belongs to the indexer."""
    def parts(w, l):
        for of in ("exps", "shexp"):  # so that both limits are met
            for part in ("gate", "up"):
                if f"blk.{l}.ffn_{part}_{of}.weight" in w:
                    w[f"blk.{l}.ffn_{part}_{of}.weight"] *= 4
        for part in ("gate", "up"):
            if f"blk.{l}.ffn_{part}.weight" in w:
                w[f"blk.{l}.ffn_{part}.weight"] *= 4
        if index and f"blk.{l}.ffn_gate_inp.weight" in w:
            for part, n in (("q_proj", 24), ("k_proj", 12)):
                w.matrix(f"blk.{l}.{index}{part}", n, 48)
            for part in "qk":
                w.norm(f"blk.{l}.{index}{part}_norm", 12)

    nano(name, "minimax-m3", seed, minimax, {"expert_shared_count": 1, **more}, n_shared=22 * more.get("expert_shared_count", 1),
         qk_norm="head", extra=parts, **named)


model("minimax-m3", 1821, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 8,
      "rope.freq_base": 300.0, "leading_dense_block_count": 1, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.0,
      "attention.indexer.head_count": 2, "attention.indexer.key_length": 12, "attention.indexer.top_k": 4,
      "attention.indexer.block_size": 16, "attention.indexer.local_blocks": 1}, "indexer.", n_kv=2, d=14, n_dense=1, n_layer=3, choice_bias=True)
model("minimax-m3-plain", 1822, {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_shared_count": 2}, "index_", fused=True, tied=True)
model("minimax-m3-softmax", 1823, {"expert_gating_func": 1})
