"""MiniMax M3 (MiniMax 2026, text), after the authors' graph in llama.cpp and transformers' modeling_minimax_m3_vl.py; in -blocks not all blocks are chosen."""
from kin import scaled_frequencies
from mixtures import *


def best_blocks(q, key, n, size, near):
    """q [T, H, d], key [T, d] -> [H, T, T]: whether a token is in one of the n blocks of `size` tokens that a head of another one reads: those of the largest
    product with a key up to it, where the `near` last ones always are."""
    chosen = np.zeros((q.shape[1], len(q), len(q)), bool)
    for h in range(q.shape[1]):
        for t in range(len(q)):
            products, own = key[: t + 1] @ q[t, h], t // size
            score = [products[i * size : (i + 1) * size].max() if i <= own - near else np.inf for i in range(own + 1)]
            for i in np.argsort(-np.array(score), kind="stable")[:n]:
                chosen[h, t, i * size : (i + 1) * size] = True
    return chosen


def gated(gate, up):
    gate = np.minimum(gate, 7)
    return gate * sigmoid(1.702 * gate) * (np.clip(up, -7, 7) + 1)


def minimax(k, w, tokens, n_ctx):
    eps, n_head, n_kv = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("attention.head_count_kv")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count"))
    turned = lambda x, gain: rotate(rms_norm(x, gain, eps), theta, True, mag)
    feed = lambda h, gate, up, down: linear(gated(linear(h, gate), linear(h, up)), down)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b, share = layer(w, l), n_head // n_kv
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = queries_keys_values(k, b, h)
        q, key = turned(q, b("attn_q_norm")), turned(key, b("attn_k_norm"))
        chosen = [None] * n_kv
        if l >= k("leading_dense_block_count"):
            index_q = turned(split_heads(linear(h, b("indexer.q_proj")), n_kv), b("indexer.q_norm"))
            index_k = turned(linear(h, b("indexer.k_proj"))[:, None], b("indexer.k_norm"))[:, 0]
            chosen = best_blocks(index_q, index_k, k("attention.indexer.top_k"), k("attention.indexer.block_size"), k("attention.indexer.local_blocks"))
        x = x + output_of(b, np.concatenate([attention(q[:, g * share : (g + 1) * share], key[:, g : g + 1], v[:, g : g + 1], chosen=chosen[g]) for g in range(n_kv)], 1))
        h = rms_norm(x, b("ffn_norm"), eps)
        if l < k("leading_dense_block_count"):
            x = x + feed(h, b("ffn_gate"), b("ffn_up"), b("ffn_down"))
            continue
        p = sigmoid(linear(h, b("ffn_gate_inp")))
        of = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"))
        shares = [{e: k("expert_weights_scale") * row[e] / sum(row[c] for c in ids) for e in ids} for row, ids in zip(p, of)]
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        x = (x + experts(h, shares, of, lambda e, y: down[e] @ gated(gate[e] @ y, up[e] @ y))
             + feed(h, b("ffn_gate_shexp"), b("ffn_up_shexp"), b("ffn_down_shexp")))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


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

    nano(name, "minimax-m3", seed, {"expert_shared_count": 1, **more}, n_shared=22 * more.get("expert_shared_count", 1),
         qk_norm="head", extra=parts, **named)


CHOOSES = {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 8,
           "rope.freq_base": 300.0, "leading_dense_block_count": 1, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.0,
           "attention.indexer.head_count": 2, "attention.indexer.key_length": 12, "attention.indexer.top_k": 4,
           "attention.indexer.block_size": 16, "attention.indexer.local_blocks": 1}
FORM = {"n_kv": 2, "d": 14, "n_dense": 1, "n_layer": 3, "choice_bias": True}
model("minimax-m3", 1821, CHOOSES, "indexer.", **FORM)
model("minimax-m3-blocks", 1824, {**CHOOSES, "attention.key_length": 32, "attention.value_length": 32, "attention.indexer.top_k": 3, "attention.indexer.block_size": 4}, "indexer.",
      **{**FORM, "d": 32}, forward=minimax)
model("minimax-m3-plain", 1822, {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_shared_count": 2}, "index_", fused=True, tied=True)
model("minimax-m3-softmax", 1823, {"expert_gating_func": 1})
