"""DeepSeek V4 (DeepSeek-AI 2026), after the paper, transformers' modeling_deepseek_v4.py and the authors' inference code for the mixing of
the residual rows (mHC). Summaries are listed for each layer, whole ones only, and each token picks those that it may see."""
from mixtures import *
import sums
from nano import CASES, Weights, add, guess, keys_of

N_HC = 4


def mixed(k, x, fn, base, scale, eps):
    """x [T, rows, n] -> what a part reads, the shares of its result in each row, the rows' own [from, to]."""
    e = k("hyper_connection.epsilon")
    m = linear(rms_norm(x.reshape(len(x), -1), None, eps), fn)
    pre = sigmoid(m[:, :N_HC] * scale[0] + base[:N_HC]) + e
    post = 2 * sigmoid(m[:, N_HC : 2 * N_HC] * scale[1] + base[N_HC : 2 * N_HC])
    comb = (m[:, 2 * N_HC :] * scale[2] + base[2 * N_HC :]).reshape(-1, N_HC, N_HC)
    return np.einsum("tr,trn->tn", pre, x), post, doubly_stochastic(comb, e, k("hyper_connection.sinkhorn_iterations"))


def after(x, y, post, comb):
    return post[:, :, None] * y[:, None] + np.einsum("tfr,tfn->trn", comb, x)


def tail_rotated(x, theta, places, sign=1):
    """The last 2 * len(theta) numbers of each row of [T, H, d], adjacent pairs, by the angles of the places."""
    out, r = x.copy(), 2 * len(theta)
    z = (x[..., -r::2] + 1j * x[..., -r + 1 :: 2]) * np.exp(sign * 1j * np.outer(places, theta))[:, None]
    out[..., -r::2], out[..., -r + 1 :: 2] = z.real, z.imag
    return out


def summaries(b, h, name, ratio, theta, eps):
    """One for each `ratio` tokens; with two halves, the first half of the numbers goes into the next one."""
    y, z, norm = linear(h, b(name + "_kv")), linear(h, b(name + "_gate")), b(name + "_norm")
    d = len(norm)
    z = z + b(name + "_ape")[np.arange(len(h)) % ratio]
    out = []
    for s in range(len(h) // ratio):
        now = slice(s * ratio, (s + 1) * ratio)
        rows, scores = y[now, -d:], z[now, -d:]
        if y.shape[1] == 2 * d and s > 0:
            prior = slice((s - 1) * ratio, s * ratio)
            rows, scores = np.concatenate([y[prior, :d], rows]), np.concatenate([z[prior, :d], scores])
        out.append((softmax(scores.T).T * rows).sum(0))
    out = rms_norm(np.array(out).reshape(-1, 1, d), norm, eps)
    return tail_rotated(out, theta, np.arange(len(out)) * ratio)[:, 0]


def clamped(x, gate, up, down, most):
    g, u = linear(x, gate), linear(x, up)
    if most > 0:
        g, u = np.minimum(g, most), np.clip(u, -most, most)
    return linear(silu(g) * u, down)


def fed(k, b, h, l, p, of):
    """What the experts `of` of each row say, with the shares p, and the shared one."""
    weights = [{e: k("expert_weights_scale", 1.0) * row[e] / sum(row[c] for c in es) for e in es} for row, es in zip(p, of)]
    most = k("swiglu_clamp_exp", [0] * 9)[l]
    gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
    y = experts(h, weights, of, lambda e, x: clamped(x, gate[e], up[e], down[e], most))
    return y + clamped(h, b("ffn_gate_shexp"), b("ffn_up_shexp"), b("ffn_down_shexp"), k("swiglu_clamp_shexp", k("swiglu_clamp_exp", [0] * 9))[l])


class Seen:
    """Rows of pictures in a text: which tokens are some, and for each the rows that see each other, from first to before end."""

    def __init__(self, is_row, first, end):
        self.is_row, self.first, self.end = is_row, first, end


def states(k, w, tokens, n_ctx, x=None, seen=None):
    """The residual rows [T, rows, n] after all layers; x: before them."""
    seen = seen or Seen([False] * len(tokens), range(len(tokens)), range(1, len(tokens) + 1))
    eps, n_head, d, rot = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("attention.key_length"), k("rope.dimension_count")
    far, base = inverse_frequencies(rot, k("attention.compress_rope_freq_base")), k("rope.freq_base", 10000.0)
    if k("rope.scaling.type", None) == "yarn":
        far = yarn_frequencies(rot, k("attention.compress_rope_freq_base"), k("rope.scaling.factor"), k("rope.scaling.original_context_length"))
    places = np.arange(len(tokens))

    def chosen(b, h, low, ratio):
        """For each token the summaries that it sees, by the indexer."""
        n, size = k("attention.indexer.head_count"), k("attention.indexer.key_length")
        keys = summaries(b, h, "indexer_compressor", ratio, far, eps)
        q = tail_rotated(split_heads(linear(low, b("indexer.attn_q_b")), n), far, places)
        share = linear(h, b("indexer.proj")) / math.sqrt(n * size)
        out = []
        for t in places:
            whole = keys[: (t + 1) // ratio]
            out.append(best((np.maximum(q[t] @ whole.T, 0) * share[t][:, None]).sum(0), k("attention.indexer.top_k")))
        return out

    def attend(b, h, l):
        ratio = k("attention.compress_ratios")[l]
        theta = far if ratio else inverse_frequencies(rot, base)
        low = rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps)
        q = tail_rotated(rms_norm(split_heads(linear(low, b("attn_q_b")), n_head), None, eps), theta, places)
        own = tail_rotated(rms_norm(linear(h, b("attn_kv")), b("attn_kv_a_norm"), eps)[:, None], theta, places)[:, 0]
        parts = summaries(b, h, "attn_compressor", ratio, theta, eps) if ratio else own[:0]
        some = chosen(b, h, low, ratio) if ratio == 4 else [range((t + 1) // ratio if ratio else 0) for t in places]
        out = np.zeros_like(q)
        for t in places:
            rows = np.concatenate([own[max(0, min(t + 1 - k("attention.sliding_window"), seen.first[t])) : seen.end[t]], parts[list(some[t])]])
            s = np.concatenate([q[t] @ rows.T / math.sqrt(d), b("attn_sinks")[:, None]], 1)
            out[t] = softmax(s)[:, :-1] @ rows
        out = tail_rotated(out, theta, places, -1).reshape(len(h), k("attention.output_group_count"), -1)
        first = b("attn_output_a").reshape(out.shape[1], -1, out.shape[2])
        return linear(np.einsum("tgi,gri->tgr", out, first).reshape(len(h), -1), b("attn_output_b"))

    def feed(b, h, l):
        p = np.sqrt(softplus(linear(h, b("ffn_gate_inp"))))
        if l < k("hash_layer_count", 0):
            of = [[int(e) for e in b("ffn_gate_tid2eid")[token]] for token in tokens]
        else:
            of = chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias"))
        if any(seen.is_row):
            of_rows = chosen_experts(p, k("expert_used_count"), b("exp_probs_b_vl", ".bias"))
            of = [other if is_row else own for is_row, own, other in zip(seen.is_row, of, of_rows)]
        return fed(k, b, h, l, p, of)

    x = np.repeat(w["token_embd.weight"][tokens][:, None], N_HC, 1) if x is None else x
    for l in range(k("block_count") - (k("nextn_predict_layers", 0) if any("nextn" in name for name in w) else 0)):
        b = layer(w, l)
        for name, norm, part in (("attn", "attn_norm", attend), ("ffn", "ffn_norm", feed)):
            y, post, comb = mixed(k, x, b(f"hc_{name}_fn"), b(f"hc_{name}_base"), b(f"hc_{name}_scale"), eps)
            x = after(x, part(b, rms_norm(y, b(norm), eps), l), post, comb)
    return x


def joined(k, w, x):
    """One row of those of the stream."""
    m = linear(rms_norm(x.reshape(len(x), -1), None, k("attention.layer_norm_rms_epsilon")), w["output_hc_fn.weight"])
    pre = sigmoid(m * w["output_hc_scale.weight"] + w["output_hc_base.weight"]) + k("hyper_connection.epsilon")
    return np.einsum("tr,trn->tn", pre, x)


def last(k, w, x):
    return linear(rms_norm(joined(k, w, x), w["output_norm.weight"], k("attention.layer_norm_rms_epsilon")), w["output.weight"])


def deepseek4(k, w, tokens, n_ctx):
    return last(k, w, states(k, w, tokens, n_ctx))


def with_pictures(case, rows, seen):
    """Scores of a text whose rows [T, n] enter the first layer."""
    w = {name: t.astype(np.float64) for name, t in case.tensors.items()}
    k = lambda name, *rest: case.keys.get(name, *rest) if rest else case.keys[name]
    return last(k, w, states(k, w, [0 if is_row else token for is_row, token in zip(seen.is_row, seen.tokens)], 0, np.repeat(rows[:, None], N_HC, 1), seen))


def guessed(first):
    """What the layer number `first`, behind the model's, guesses."""
    def forward(k, w, tokens, n_ctx):
        eps, b = k("attention.layer_norm_rms_epsilon"), layer(w, first)
        rows = states(k, w, tokens, n_ctx)
        before = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
        own = w.get(f"blk.{first}.nextn.embed_tokens.weight", w["token_embd.weight"])
        e = np.repeat(rms_norm(own[tokens], b("nextn.enorm"), eps)[:, None], N_HC, 1)
        x = linear(np.concatenate([e, rms_norm(before, b("nextn.hnorm"), eps)], -1), b("nextn.eh_proj"))
        one = {t.replace(f"blk.{first}.", "blk.0."): v for t, v in w.items() if t.startswith(f"blk.{first}.") and "nextn" not in t}
        values = {"block_count": 1, "compress_ratios": 0, "hash_layer_count": 0}
        key = lambda name, *rest: (values[name] if name in values else [0] if name == "attention.compress_ratios" else
                                   k(name, *rest)[first:][:1] or rest[0] if name.startswith("swiglu_clamp") else k(name, *rest))
        x = states(key, one, tokens, n_ctx, x)
        head = {"output.weight": w["output.weight"], "output_norm.weight": w["output_norm.weight"]}
        head.update({t: w[t] for t in w if t.startswith("output_hc")})
        head.update({t.replace(f"blk.{first}.nextn.hc_head", "output_hc"): w[t] for t in w if t.startswith(f"blk.{first}.nextn.hc_head")})
        for part, name in (("shared_head_norm", "output_norm"), ("shared_head_head", "output")):
            head[name + ".weight"] = w.get(f"blk.{first}.nextn.{part}.weight", head[name + ".weight"])
        return last(k, head, x)
    return forward


def model(name, seed, ratios, more={}, hashed=0, draft=0, n_group=2, clamp=True, n_shared=1, n_embd=48, n_vocab=70, sees=False):
    n_head, d, r_q, r_o, n_expert, n_each, n_used, heads, size = 4, 16, 22, 14, 8, 18, 3, 3, 10
    w = Weights(seed)
    w.embedding(n_vocab, n_embd, tied=False)

    def mixing(name, n):
        w.matrix(name + "_fn", n, N_HC * n_embd, gain=2)
        w.vector(name + "_base.weight", n, 0.7)
        w.vector(name + "_scale.weight", 1 if n == N_HC else 3, 0.3, 1.0)

    def compressor(name, n, halves, ratio):
        w.matrix(name + "_kv", halves * n, n_embd)
        w.matrix(name + "_gate", halves * n, n_embd, gain=2)
        w.vector(name + "_ape.weight", (ratio, halves * n), 0.8)
        w.norm(name + "_norm", n)

    mixing("output_hc", N_HC)
    for l, ratio in enumerate(ratios):
        b = f"blk.{l}."
        for part in ("attn", "ffn"):
            mixing(f"{b}hc_{part}", (2 + N_HC) * N_HC)
            w.norm(f"{b}{part}_norm", n_embd)
        w.matrix(b + "attn_q_a", r_q, n_embd)
        w.norm(b + "attn_q_a_norm", r_q)
        w.matrix(b + "attn_q_b", n_head * d, r_q)
        w.matrix(b + "attn_kv", d, n_embd)
        w.norm(b + "attn_kv_a_norm", d)
        w.vector(b + "attn_sinks.weight", n_head, 1.0)
        w.matrix(b + "attn_output_a", n_group * r_o, n_head * d // n_group, gain=2)
        w.matrix(b + "attn_output_b", n_embd, n_group * r_o, gain=2)
        if ratio:
            compressor(b + "attn_compressor", d, 2 if ratio == 4 else 1, ratio)
        if ratio == 4:
            w.matrix(b + "indexer.attn_q_b", heads * size, r_q)
            w.matrix(b + "indexer.proj", heads, n_embd)
            compressor(b + "indexer_compressor", size, 2, ratio)
        w.experts(l, n_embd, n_each, n_expert)
        w.shared_expert(l, n_embd, n_shared * n_each)
        if l < hashed:
            w[b + "ffn_gate_tid2eid.weight"] = np.array([w.random.permutation(n_expert)[:n_used] for _ in range(n_vocab)], np.int32)
        else:
            w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
        if sees:
            w.vector(b + "exp_probs_b_vl.bias", n_expert, 0.5)
    for l in range(draft):
        w.norm(f"blk.{len(ratios) + l}.attn_norm", n_embd)
        w.norm(f"blk.{len(ratios) + l}.nextn.enorm", n_embd)
    w.norm("output_norm", n_embd)
    n_layer = len(ratios) + draft  # most published files have the key nextn_predict_layers, and neither count nor have the draft layers
    keys = {**keys_of(n_layer, n_embd, 72, n_head, 1e-2), "attention.head_count_kv": 1, "attention.key_length": d, "attention.value_length": d,
            "attention.q_lora_rank": r_q, "attention.output_lora_rank": r_o, "attention.output_group_count": n_group, "rope.dimension_count": 6,
            "rope.freq_base": 300.0, "attention.compress_rope_freq_base": 2000.0, "attention.sliding_window": 7, "attention.compress_ratios": ratios + [0] * more.get("nextn_predict_layers", 0),
            "attention.indexer.head_count": heads, "attention.indexer.key_length": size, "attention.indexer.top_k": 2,
            "hyper_connection.count": N_HC, "hyper_connection.sinkhorn_iterations": 20, "hyper_connection.epsilon": 1e-3, "hash_layer_count": hashed,
            "expert_count": n_expert, "expert_used_count": n_used, "expert_shared_count": n_shared, "expert_feed_forward_length": n_each, "expert_gating_func": 4,
            "expert_weights_scale": 1.5, "expert_weights_norm": True, **more}
    if clamp:
        keys["swiglu_clamp_exp"] = [0.6] * n_layer
    return add(name, "deepseek4", keys, w, deepseek4)


YARN = {"nextn_predict_layers": 1, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32}
model("deepseek4", 1901, [0, 4, 8], YARN, hashed=1)
model("deepseek4-all-chosen", 1902, [4, 6], {"attention.indexer.top_k": 40, "hyper_connection.sinkhorn_iterations": 3, "nextn_predict_layers": 1,
      "swiglu_clamp_shexp": [0.9, 0.0, 0.0]}, draft=1, n_shared=2)
model("deepseek4-sees", 1904, [4, 0], {"attention.indexer.top_k": 3}, hashed=1, sees=True)
model("deepseek4-plain", 1903, [0, 8], {"hyper_connection.sinkhorn_iterations": 1, "attention.indexer.top_k": 7}, clamp=False, n_group=1, hashed=2)
for key in ("expert_shared_count", "expert_gating_func", "expert_weights_norm", "attention.value_length", "expert_weights_scale", "rope.freq_base"):
    del CASES["deepseek4-plain"].keys[key]


def model_that_guesses(name, like, own):
    """The case `like` with a layer that guesses behind its last one, which is like its first one. own: it has its own ends."""
    case = CASES[like]
    w, first, n_embd = Weights(sum(map(ord, name))), len(case.keys["attention.compress_ratios"]) - 1, case.keys["embedding_length"]
    w.update({t: v for t, v in case.tensors.items() if not t.startswith(f"blk.{first}.")})
    for t in [t for t in w if t.startswith("blk.0.") and "tid2eid" not in t]:
        w.put(t.replace("blk.0.", f"blk.{first}."), sums.mean(w[t]) + sums.std(w[t]) * w.random.normal(size=w[t].shape))
    b = f"blk.{first}."
    w.vector(b + "exp_probs_b.bias", case.keys["expert_count"], 0.5)
    w.matrix(b + "nextn.eh_proj", n_embd, 2 * n_embd, gain=0.5)
    w.norm(b + "nextn.enorm", n_embd)
    w.norm(b + "nextn.hnorm", n_embd)
    if own:
        n_vocab = len(w["token_embd.weight"])
        w.matrix(b + "nextn.embed_tokens", n_vocab, n_embd)
        w.matrix(b + "nextn.shared_head_head", n_vocab, n_embd)
        w.norm(b + "nextn.shared_head_norm", n_embd)
        w.matrix(b + "nextn.hc_head_fn", N_HC, N_HC * n_embd, gain=2)
        w.vector(b + "nextn.hc_head_base.weight", N_HC, 0.7)
        w.vector(b + "nextn.hc_head_scale.weight", 1, 0.3, 1.0)
    keys = {**case.keys, "block_count": first + 1, "nextn_predict_layers": 1}
    keys.update({key: list(keys[key]) + [0.5] * (first + 1 - len(keys[key])) for key in keys if key.startswith("swiglu_clamp")})
    case = add(name, "deepseek4", keys, w, guessed(first))
    case.output = "guess"


model_that_guesses("deepseek4-guess", "deepseek4", True)
model_that_guesses("deepseek4-plain-guess", "deepseek4-all-chosen", False)
