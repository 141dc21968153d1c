"""K2 Horizon (IFM 2026; after transformers' modeling_k2_horizon.py): norms of groups, a gate of logarithms to the base 2, experts for values."""
from mixtures import *
from nano import Weights, add, keys_of, other_names

N_EMBD, N_HEAD, N_KV, SIZE, N_FF, N_EACH, N_EXPERT, N_VALUE = 48, 4, 2, 10, 60, 22, 7, 5


def in_groups(x, w, n, eps):
    """RMSNorm of each of n equal parts."""
    return rms_norm(x.reshape(*x.shape[:-1], n, -1), 1, eps).reshape(x.shape) * w


def shares(k, s, bias, n_used):
    p = softmax(s) if k("expert_gating_func", 2) == 1 else sigmoid(s)
    of = chosen_experts(p, n_used, bias)
    whole = k("expert_weights_norm", False)
    return of, [{e: k("expert_weights_scale", 1.0) * row[e] / (sum(row[c] for c in es) if whole else 1) for e in es} for row, es in zip(p, of)]


def k2_horizon(k, w, tokens, n_ctx):
    eps, n = k("attention.layer_norm_rms_epsilon"), k("attention.group_norm_groups", 1)
    theta, mag = inverse_frequencies(SIZE, k("rope.freq_base", 10000.0)), 1.0
    if k("rope.scaling.type", None) == "yarn":
        theta = yarn_frequencies(SIZE, k("rope.freq_base", 10000.0), k("rope.scaling.factor"), k("rope.scaling.original_context_length"))
        mag = 1 + 0.1 * math.log(k("rope.scaling.factor"))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = in_groups(x, b("attn_norm"), n, eps)
        q, key = (linear(h, b("attn_" + part)) for part in "qk")
        if b("attn_q_norm") is not None:
            q, key = in_groups(q, b("attn_q_norm").reshape(-1), N_HEAD, eps), in_groups(key, b("attn_k_norm").reshape(-1), N_KV, eps)
        if b("attn_v_exps") is not None:
            of, weights = shares(k, linear(h, b("attn_v_gate")), b("attn_v_gate", ".bias"), k("attention.value_expert_used_count"))
            v = np.stack([sum(row[e] * silu(b("attn_v_exps")[e] @ one) for e in es) for one, es, row in zip(h, of, weights)])
        else:
            v = linear(h, b("attn_v"))
        q, key = (rotate(split_heads(part, heads), theta, True, mag) for part, heads in ((q, N_HEAD), (key, N_KV)))
        a = merge_heads(attention(q, key, split_heads(v, N_KV)))
        if b("attn_gate") is not None:
            a = a * np.log2(1 + 2 ** linear(h, b("attn_gate")))
        x = x + linear(a, b("attn_output"))
        h = in_groups(x, b("ffn_norm"), n, eps)
        if b("ffn_gate_inp") is None:
            x = x + swiglu(b, h)
            continue
        of, weights = shares(k, linear(h, b("ffn_gate_inp")), b("exp_probs_b", ".bias"), k("expert_used_count"))
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        x = x + experts(h, weights, of, lambda e, y: down[e] @ (silu(gate[e] @ y) * (up[e] @ y))) + shared(b, h)
    return linear(in_groups(x, w["output_norm.weight"], n, eps), w.get("output.weight", w["token_embd.weight"]))


def model(name, seed, kinds, more={}, tied=False, gate=True, heads=False, bias=True, n_shared=1):
    """kinds: D is dense, M has experts, V also experts for values. heads: the queries' and keys' heads are normalized."""
    w = Weights(seed)
    w.embedding(92, N_EMBD, tied)
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.attention(l, N_EMBD, N_HEAD, N_KV, SIZE)
        if kind == "V":
            del w[b + "attn_v.weight"]
            w.matrix(b + "attn_v_gate", N_VALUE, N_EMBD, gain=2)
            if bias:
                w.vector(b + "attn_v_gate.bias", N_VALUE, 0.5)
            w.put(b + "attn_v_exps.weight", w.random.normal(size=(N_VALUE, N_KV * SIZE, N_EMBD)) / 4)
        if heads:
            w.norm(b + "attn_q_norm", N_HEAD * SIZE)
            w.norm(b + "attn_k_norm", N_KV * SIZE)
        if gate:
            w.matrix(b + "attn_gate", N_HEAD * SIZE, N_EMBD, gain=2)
        w.norm(b + "ffn_norm", N_EMBD)
        if kind == "D":
            w.gated(l, N_EMBD, N_FF)
            continue
        w.experts(l, N_EMBD, N_EACH, N_EXPERT)
        if bias:
            w.vector(b + "exp_probs_b.bias", N_EXPERT, 0.5)
        if n_shared:
            w.shared_expert(l, N_EMBD, n_shared * N_EACH)
    w.norm("output_norm", N_EMBD)
    mixed = {"expert_count": N_EXPERT, "expert_used_count": 3, "expert_shared_count": n_shared, "expert_feed_forward_length": N_EACH} if set(kinds) - {"D"} else {}
    values = {"attention.value_expert_count": N_VALUE, "attention.value_expert_used_count": 2} if "V" in kinds else {}
    add(name, "k2-horizon", {**keys_of(len(kinds), N_EMBD, N_FF, N_HEAD, 1e-2), **mixed, **values, "attention.head_count_kv": N_KV, "attention.key_length": SIZE, "attention.group_norm_groups": 4, **more},
        w, other_names(k2_horizon))


model("k2-horizon", 1550, "DVV", {"leading_dense_block_count": 1, "expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_gating_func": 2, "rope.freq_base": 900.0})
model("k2-horizon-dense", 1551, "DD", {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}, tied=True, gate=False)
model("k2-horizon-heads", 1552, "MMM", {"expert_gating_func": 1, "attention.group_norm_groups": 1, "expert_shared_feed_forward_length": 2 * N_EACH}, heads=True, bias=False, n_shared=2)
model("k2-horizon-soft", 1553, "VV", {"expert_gating_func": 1, "attention.group_norm_groups": 2}, heads=True, n_shared=0)
