"""DeepSeek V4.1 (DeepSeek-AI 2026; after transformers' modeling_deepseek_v41.py, whose rounding of stored rows to FP8 and FP4 is left out): rows of the stream that a part
reads as the part before says, latents that a few layers publish, groups that a few layers choose, rows of tables that hashes of the last tokens choose."""
from gguf import ARRAY, I32, U64, Typed
from mixtures import *
from nano import CASES, Weights, add, keys_of

N_HC = 4


def shares(k, x, fn, base, scale, eps):
    """x [T, rows, n] -> shares of the rows in what a part reads, of its result in the rows, of the rows in each other [from, to]."""
    e = k("hyper_connection.epsilon")
    m = linear(rms_norm(x.reshape(len(x), -1), None, eps), fn)
    pre, post, comb = (m[:, a:b] * s + base[a:b] for a, b, s in zip((0, N_HC, 2 * N_HC), (N_HC, 2 * N_HC, len(base)), scale))
    return sigmoid(pre) + e, 2 * sigmoid(post), doubly_stochastic(comb.reshape(-1, N_HC, N_HC), e, k("hyper_connection.sinkhorn_iterations"))


def turned(x, theta, places, sign=1):
    """The last 2 * len(theta) numbers of rows [T, .., d], neighbours, by the angles of the places."""
    out, r = x.copy(), 2 * len(theta)
    angle = (sign * np.outer(places, theta)).reshape(len(x), *[1] * (x.ndim - 2), -1)
    u, v = x[..., -r::2], x[..., -r + 1 :: 2]
    out[..., -r::2], out[..., -r + 1 :: 2] = u * np.cos(angle) - v * np.sin(angle), u * np.sin(angle) + v * np.cos(angle)
    return out


def plain(v):
    return v.value if isinstance(v, Typed) else v


def memory(k, w, tokens, x, l, eps):
    """What the table of layer l adds to the rows x [T, rows, n]."""
    at, n, heads = plain(k("engram.layer_ids")).index(l), k("engram.max_ngram_size"), k("engram.head_count")
    by, sizes, firsts, alike = (plain(k("engram." + name)) for name in ("multipliers", "primes", "offsets", "token_map"))
    b, out = layer(w, l), []
    for t in range(len(tokens)):
        mixed, rows = 0, []
        for back in range(n):
            mixed ^= (alike[tokens[t - back]] if back <= t else k("engram.pad_id")) * by[at * n + back]
            for head in range(heads if back else 0):
                i = (at * (n - 1) + back - 1) * heads + head
                rows.append(firsts[i] + mixed % sizes[i])
        out.append(b("engram_embd")[rows].reshape(-1))
    both = linear(np.array(out), b("engram_wkv")).reshape(len(tokens), N_HC + 1, -1)
    s = (rms_norm(x, b("engram_q"), eps) * rms_norm(both[:, :N_HC], b("engram_k"), eps)).sum(-1) / math.sqrt(x.shape[-1])
    root = np.copysign(np.sqrt(np.maximum(abs(s), 1e-6)), s)
    return x + sigmoid(root)[..., None] * both[:, N_HC:]


def clamped(x, gate, up, down, most):
    g, u = linear(x, gate), linear(x, up)
    if most > 0:
        g, u = np.minimum(g, most), np.clip(u, -most, most)
    return linear(silu(g) * u, down)


def deepseek41(k, w, tokens, n_ctx):
    eps, n_head, d, rot, n = (k(name) for name in ("attention.layer_norm_rms_epsilon", "attention.head_count", "attention.key_length", "rope.dimension_count", "block_count"))
    base = k("attention.compress_rope_freq_base")
    far = inverse_frequencies(rot, base)
    if k("rope.scaling.type", None) == "yarn":
        far = yarn_frequencies(rot, base, k("rope.scaling.factor"), k("rope.scaling.original_context_length"))
    places, published, keys, chosen = np.arange(len(tokens)), None, None, None

    def attend(b, h, l):
        nonlocal published, keys, chosen
        ratio = k("attention.compress_ratios")[l]
        theta = far if ratio else inverse_frequencies(rot, k("rope.freq_base", 10000.0))
        low = rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps)
        q = turned(split_heads(linear(low, b("attn_q_b")), n_head), theta, places)
        own = turned(rms_norm(linear(h, b("attn_kv")), b("attn_kv_a_norm"), eps), theta, places)
        if b("attn_compressor_kv") is not None:
            c, whole = linear(h, b("attn_compressor_kv")), len(h) // ratio
            c = c[: whole * ratio].reshape(whole, ratio, d)
            if ratio > 1:
                z = linear(h, b("attn_compressor_gate"))[: whole * ratio].reshape(c.shape)
                c = c * np.moveaxis(softmax(np.moveaxis(z, 1, -1)), -1, 1)
            c = rms_norm(c.sum(1), b("attn_compressor_norm"), eps)
            at = np.arange(whole) * ratio
            published = turned(c, far, at)
            keys = turned(rms_norm(linear(c, b("indexer.attn_k")), b("indexer.k_norm"), eps), far, at)
        if b("indexer.attn_q_b") is not None:
            heads, size = k("attention.indexer.head_count"), k("attention.indexer.key_length")
            asks = turned(split_heads(linear(low, b("indexer.attn_q_b")), heads), far, places)
            weight = linear(h, b("indexer.proj")) / math.sqrt(heads * size)
            chosen = [best((np.maximum(asks[t] @ keys[: (t + 1) // ratio].T, 0) * weight[t][:, None]).sum(0), k("attention.indexer.top_k")) for t in places]
        out = np.zeros_like(q)
        for t in places:
            rows = own[max(0, t + 1 - k("attention.sliding_window")) : t + 1]
            if ratio:
                rows = np.concatenate([rows, published[list(chosen[t])]])
            s = np.concatenate([q[t] @ rows.T / math.sqrt(d), b("attn_sinks")[:, None]], 1)
            out[t] = softmax(s)[:, :-1] @ rows
        out = turned(out, theta, places, -1).reshape(len(h), k("attention.output_group_count"), -1)
        first = b("attn_output_a").reshape(out.shape[1], -1, out.shape[2])
        return linear(np.einsum("tgi,gri->tgr", out, first).reshape(len(h), -1), b("attn_output_b"))

    def feed(b, h, l):
        p = np.sqrt(softplus(linear(h, b("ffn_gate_inp"))))
        of = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"))
        weights = [{e: k("expert_weights_scale", 1.0) * row[e] / sum(row[c] for c in es) for e in es} for row, es in zip(p, of)]
        most = k("swiglu_clamp_exp", [0] * n)[l]
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        y = experts(h, weights, of, lambda e, x: clamped(x, gate[e], up[e], down[e], most))
        return y + clamped(h, b("ffn_gate_shexp"), b("ffn_up_shexp"), b("ffn_down_shexp"), k("swiglu_clamp_shexp", k("swiglu_clamp_exp", [0] * n))[l])

    x = np.repeat(w["token_embd.weight"][tokens][:, None], N_HC, 1)
    reads = np.zeros((len(tokens), N_HC))
    reads[:, 0] = 1
    for l in range(n):
        b = layer(w, l)
        if l in plain(k("engram.layer_ids", [])):
            x = memory(k, w, tokens, x, l, eps)
        for name, part in (("attn", attend), ("ffn", feed)):
            later, post, comb = shares(k, x, b(f"hc_{name}_fn"), b(f"hc_{name}_base"), b(f"hc_{name}_scale"), eps)
            y = part(b, rms_norm(np.einsum("tr,trn->tn", reads, x), b(name + "_norm"), eps), l)
            x = post[:, :, None] * y[:, None] + np.einsum("tfr,tfn->trn", comb, x)
            reads = later
    return linear(rms_norm(np.einsum("tr,trn->tn", reads, x), w["output_norm.weight"], eps), w["output.weight"])


def model(name, seed, ratios, publish, choose, tables=(), n_gram=4, more={}, n_group=2, clamp=True, n_shared=1, n_embd=48, n_vocab=70, n_ctx=0):
    n_head, d, r_q, r_o, n_expert, n_each, n_used, heads, size, d_row, n_hash = 4, 16, 22, 14, 8, 18, 3, 3, 10, 6, 2
    w = Weights(seed)
    w.embedding(n_vocab, n_embd, tied=False)
    primes, firsts = [], []
    for l, ratio in enumerate(ratios):
        b = f"blk.{l}."
        for part in ("attn", "ffn"):
            w.matrix(f"{b}hc_{part}_fn", (2 + N_HC) * N_HC, N_HC * n_embd, gain=2)
            w.vector(f"{b}hc_{part}_base.weight", (2 + N_HC) * N_HC, 0.7)
            w.vector(f"{b}hc_{part}_scale.weight", 3, 0.3, 1.0)
            w.norm(f"{b}{part}_norm", n_embd)
        w.matrix(b + "attn_q_a", r_q, n_embd)
        w.norm(b + "attn_q_a_norm", r_q)
        w.matrix(b + "attn_q_b", n_head * d, r_q, gain=2)
        w.matrix(b + "attn_kv", d, n_embd)
        w.norm(b + "attn_kv_a_norm", d)
        w.vector(b + "attn_sinks.weight", n_head, 1.0)
        w.matrix(b + "attn_output_a", n_group * r_o, n_head * d // n_group, gain=2)
        w.matrix(b + "attn_output_b", n_embd, n_group * r_o, gain=2)
        if l in publish:
            w.matrix(b + "attn_compressor_kv", d, n_embd)
            w.norm(b + "attn_compressor_norm", d)
            if ratio > 1:
                w.matrix(b + "attn_compressor_gate", d, n_embd, gain=2)
            w.matrix(b + "indexer.attn_k", size, d)
            w.norm(b + "indexer.k_norm", size)
        if l in choose:
            w.matrix(b + "indexer.attn_q_b", heads * size, r_q)
            w.matrix(b + "indexer.proj", heads, n_embd)
        if l in tables:
            own = [p for p in (41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89) if p not in primes][: (n_gram - 1) * n_hash]
            primes += own
            firsts += [sum(own[:i]) for i in range(len(own))]
            w.matrix(b + "engram_embd", sum(own) + 5, d_row, gain=3)
            w.matrix(b + "engram_wkv", (N_HC + 1) * n_embd, len(own) * d_row)
            w.put(b + "engram_q.weight", 1 + 0.3 * w.random.normal(size=(N_HC, n_embd)))
            w.put(b + "engram_k.weight", 1 + 0.3 * w.random.normal(size=(N_HC, n_embd)))
        w.experts(l, n_embd, n_each, n_expert)
        w.shared_expert(l, n_embd, n_shared * n_each)
        w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(len(ratios), n_embd, 72, n_head, 1e-2), "attention.head_count_kv": 1, "attention.key_length": d, "attention.value_length": d,
            "attention.q_lora_rank": r_q, "attention.output_lora_rank": r_o, "attention.output_group_count": n_group, "rope.dimension_count": 6,
            "rope.freq_base": 300.0, "attention.compress_rope_freq_base": 2000.0, "attention.sliding_window": 7, "attention.compress_ratios": list(ratios),
            "attention.indexer.head_count": heads, "attention.indexer.key_length": size, "attention.indexer.top_k": 3,
            "hyper_connection.count": N_HC, "hyper_connection.sinkhorn_iterations": 20, "hyper_connection.epsilon": 1e-3,
            "expert_count": n_expert, "expert_used_count": n_used, "expert_shared_count": n_shared, "expert_feed_forward_length": n_each, "expert_gating_func": 4,
            "expert_weights_scale": 1.5, "expert_weights_norm": True, **more}
    if clamp:
        keys["swiglu_clamp_exp"] = [0.6] * len(ratios)
    if tables:
        by = [int(x) * 2 + 1 for x in w.random.integers(0, 2**45, n_gram * len(tables))]
        keys.update({"engram.layer_ids": Typed(ARRAY, list(tables), I32), "engram.head_count": n_hash, "engram.key_length": d_row, "engram.max_ngram_size": n_gram, "engram.pad_id": 4,
                     "engram.token_map": Typed(ARRAY, [int(x) for x in w.random.integers(0, n_vocab // 2, n_vocab)], I32),
                     **{"engram." + key: Typed(ARRAY, value, U64) for key, value in (("multipliers", by), ("primes", primes), ("offsets", firsts))}})
    return add(name, "deepseek41", keys, w, deepseek41)


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32, "nextn_predict_layers": 3}
BLOCKS = {"attention.indexer.candidate_source_layer": 3, "attention.indexer.candidate_topk_blocks": 16, "attention.indexer.candidate_block_size": 4}
model("deepseek41", 2101, [0, 2, 2, 1, 1, 1], [1, 3], [1, 3, 5], tables=(1, 4), n_gram=3, more={**YARN, **BLOCKS})
model("deepseek41-all-chosen", 2102, [2, 2, 1], [0, 2], [0, 1, 2], tables=(0,), more={"attention.indexer.top_k": 70, "swiglu_clamp_shexp": [0.9, 0.0, 0.0]}, n_shared=2)
model("deepseek41-plain", 2103, [3, 0, 3, 3], [0, 3], [0, 2, 3], more={"attention.kv_source_layers": [0, 3], "attention.index_source_layers": [0, 2, 3], "hyper_connection.sinkhorn_iterations": 1, "attention.indexer.top_k": 5}, clamp=False, n_group=1)
for key in ("expert_shared_count", "expert_gating_func", "expert_weights_norm", "attention.value_length", "expert_weights_scale", "rope.freq_base"):
    del CASES["deepseek41-plain"].keys[key]
