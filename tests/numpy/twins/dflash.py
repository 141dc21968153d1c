"""DFlash (Chen et al. 2026, arXiv 2602.06036; the authors' modeling): layers that guess a block of tokens at once, from what layers of another model had
of the text."""
from nano import add
from tapped import *


def seeing(q, key, v, scale, windows, sinks):
    """windows: for each query, the keys that it sees, from and to."""
    out = np.zeros_like(q)
    for h in range(q.shape[1]):
        g = h * key.shape[1] // q.shape[1]
        for i, (first, last) in enumerate(windows):
            s = key[first:last, g] @ q[i, h] * scale
            s = s if sinks is None else np.append(s, sinks[h])
            out[i, h] = softmax(s)[: last - first] @ v[first:last, g]
    return out


def mixed(x, said, base):
    """Of rows x [n, n_embd] of a block: each and those before it, times base [kernel, n_embd], shifted for groups of numbers by said [n, kernel, groups]."""
    y = np.zeros_like(x)
    for tap in range(base.shape[0]):
        w = base[tap] + np.repeat(said[:, tap], x.shape[1] // said.shape[2], axis=1)
        y[tap:] += (w * np.vstack([np.zeros((tap, x.shape[1])), x])[: len(x)])[tap:]
    return y


def guesses(case):
    def forward(k, w, tokens, n_ctx):
        """The scores of what follows the last token."""
        other, keys = {name: t.astype(np.float64) for name, t in case.target.tensors.items()}, case.target.keys
        taken = entering(lambda name, *rest: keys.get(name, *rest), other, tokens, k("target_layers"))[:-1]
        eps, n_head, n_kv, n_embd = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("attention.head_count_kv", k("attention.head_count")), k("embedding_length")
        d, kernel, window = k("attention.key_length", n_embd // n_head), k("conv_kernel_size", 0), k("attention.sliding_window", 0)
        theta, mag = scaled_frequencies(k, d)
        theta = theta / w.get("rope_freqs.weight", 1)
        y = rms_norm(taken @ w["fc.weight"].T, w["enc.output_norm.weight"], eps)
        block = [tokens[-1]] + [MASK] * (k("block_size") - 1)
        x = w.get("token_embd.weight", other["token_embd.weight"])[block] * k("embedding_scale", 1.0)
        gate_of = silu if k("hidden_activation", "silu") == "silu" else gelu

        def around(part, h, f):
            """f of the row h, between the convolutions that stand before and behind it."""
            if not kernel:
                return f(h)
            said = (h @ part("conv_proj").T).reshape(len(h), 2, kernel, -1)
            base = w[f"{part.name}_conv_base"]  # [2, kernel, n_embd]
            return mixed(f(mixed(h, said[:, 0], base[0])), said[:, 1], base[1])

        for l in range(k("block_count")):
            b = layer(w, l)
            n, has = len(y), lambda name: f"blk.{l}.{name}.weight" in w

            def attend(h):
                both = np.concatenate([y, h])
                q = split_heads(np.concatenate([y, h]) @ b("attn_q").T, n_head)  # of the text, for the places
                key = split_heads(both @ b("attn_k").T, n_kv)
                v = split_heads(both @ b("attn_v").T, n_kv) if has("attn_v") else key / np.sqrt((key * key).mean(-1, keepdims=True) + eps)
                q = rotate(rms_norm(q, b("attn_q_norm"), eps), theta, True, mag)[n:]
                key = rotate(rms_norm(key, b("attn_k_norm"), eps), theta, True, mag)
                near = window if window and k("attention.sliding_window_pattern")[l] else len(both)
                sees = [(max(0, n + i - near + 1), n + i + 1 if k("attention.causal", False) else len(both)) for i in range(len(h))]
                out = seeing(q, key, v, k("attention.scale", 0) or 1 / math.sqrt(d), sees, w[f"blk.{l}.attn_sinks.weight"] if has("attn_sinks") else None)
                return merge_heads(out) @ b("attn_output").T * k("attention.value_scale", 1.0)

            def feed(h):
                return (gate_of(h @ b("ffn_gate").T) * (h @ b("ffn_up").T)) @ b("ffn_down").T

            for norm, post, part, f in (("attn_norm", "post_attention_norm", "attn", attend), ("ffn_norm", "post_ffw_norm", "ffn", feed)):
                inner = lambda name, part=part: b(f"{part}_{name}")
                inner.name = f"blk.{l}.{part}"
                h = around(inner, rms_norm(x, b(norm), eps), f)
                x = x + (rms_norm(h, b(post), eps) if has(post) else h)
            x = x * (b("layer_output_scale") if has("layer_output_scale") else 1)
        x = rms_norm(x, w["output_norm.weight"], eps)
        own = w.get("output.weight", w.get("token_embd.weight"))
        scores = x @ (other.get("output.weight", other["token_embd.weight"]) if own is None else own).T
        if "markov_w1.weight" in w:
            return pairs(k, w, x, scores, tokens[-1], case.output == "guess-chance")
        scores, cap = scores[1:] * k("logit_scale", 1.0), k("final_logit_softcapping", 0.0)
        scores = cap * np.tanh(scores / cap) if cap else scores
        if "selector_hidden.weight" in w:
            return selected(k, w, x[1:], scores, tokens[-1])
        return of_tokens(k, w, scores)
    return forward


def selected(k, w, x, scores, newest):
    """DFlash 2 (llama.cpp's source): the best tokens of a place, judged by the guess before."""
    out, before = np.full_like(scores, -np.inf), newest
    for i, s in enumerate(scores):
        best = np.argsort(-s, kind="stable")[: k("selector_top_k")]
        fit = w["selector_successor.weight"][best] @ (w["selector_hidden.weight"] @ x[i] * w["selector_predecessor.weight"][before])
        out[i, best] = s[best] + fit
        before = int(best[(s[best] + fit).argmax()])
    return out


def model(name, seed, n_embd, heads, more={}, layers=(1, 3), d=12, own=True, n_layer=2, n_block=5, some=0, parts=()):
    w, (n_head, n_kv), of = Weights(seed), heads, target(n_embd, seed + 1)
    if own:
        w.embedding(N_VOCAB, n_embd)
        w.matrix("output", some or N_VOCAB, n_embd, gain=1.5)
    if some:
        w["d2t"] = np.sort(w.random.choice(N_VOCAB, some, replace=False)).astype(np.int64)
    w.matrix("fc", n_embd, len(layers) * n_embd)
    w.norm("enc.output_norm", n_embd)
    for l in range(n_layer):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        w.norm(b + "ffn_norm", n_embd)
        for part, n in (("q", n_head), ("k", n_kv), ("v", n_kv))[: 2 if "shared" in parts else 3]:
            w.matrix(b + "attn_" + part, n * d, n_embd, gain=1.5)
        for part in "qk":
            w.vector(b + f"attn_{part}_norm.weight", d, 0.3, 1)
        w.matrix(b + "attn_output", n_embd, n_head * d)
        w.gated(l, n_embd, 58)
        if "norms" in parts:
            w.norm(b + "post_attention_norm", n_embd)
            w.norm(b + "post_ffw_norm", n_embd)
            w.vector(b + "layer_output_scale.weight", 1, 0.2, 1)
            w.vector(b + "attn_sinks.weight", n_head, 0.5)
        if "selector" in parts:
            kernel, groups = more["conv_kernel_size"], n_embd // more["conv_group_size"]
            for part in ("attn", "ffn"):
                w[b + part + "_conv_base"] = (w.random.standard_normal((2, kernel, n_embd)) * 0.6).astype(np.float32)
                w.matrix(b + part + "_conv_proj", 2 * kernel * groups, n_embd, gain=0.4)
    if "selector" in parts:
        for part in ("predecessor", "successor"):
            w.matrix("selector_" + part, N_VOCAB, more["selector_rank"], gain=1.5)
        w.matrix("selector_hidden", more["selector_rank"], n_embd, gain=1.5)
    if "markov" in parts:
        w.matrix("markov_w1", N_VOCAB, 7, gain=2)
        w.matrix("markov_w2", some or N_VOCAB, 7, gain=2)
    if "conf" in parts:
        w.matrix("conf_proj", 1, n_embd + 7, gain=2.5)
        w.vector("conf_proj.bias", 1, 0.3)
    if "freqs" in parts:
        w.vector("rope_freqs.weight", d // 2, 0.2, 1.5)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(n_layer, n_embd, 58, n_head, 1e-2), "attention.head_count_kv": n_kv, "target_layers": list(layers), "block_size": n_block, "vocab_size": N_VOCAB,
            "rope.freq_base": 300.0, "attention.key_length": d, "tokenizer.ggml.mask_token_id": MASK, **more}
    case = add(name, "dflash", {key: v for key, v in keys.items() if v is not None}, w, None)
    case.target, case.output = of, "guess-chance" if "chance" in parts else "guess"
    case.forward = guesses(case)
    return case


model("dflash", 1801, 36, (4, 2), {"logit_scale": 0.7, "final_logit_softcapping": 1.5, "embedding_scale": 1.3, "attention.causal": False,
      "rope.dimension_sections": [6, 0, 0, 0]}, some=40)
model("dflash-whole", 1803, 36, (3, 1), n_block=2)
model("dflash-of-target", 1802, 32, (2, 2), {"attention.head_count_kv": None, "attention.key_length": None, "rope.freq_base": 900.0}, layers=(0, 2, 4), d=16, own=False,
      n_layer=1, n_block=3)
model("dflash-windows", 1804, 36, (4, 2), {"attention.causal": True, "attention.sliding_window": 4, "attention.sliding_window_pattern": [True, False], "attention.scale": 0.4,
      "attention.value_scale": 0.8, "hidden_activation": "gelu_pytorch_tanh"}, parts=("norms", "shared", "freqs"))
SELECTOR = {"selector_rank": 6, "selector_top_k": 4, "conv_kernel_size": 3, "conv_group_size": 9, "final_logit_softcapping": 4.0}
model("dflash2", 1805, 36, (4, 2), SELECTOR, n_block=6, parts=("selector",))
model("dflash2-of-target", 1806, 36, (4, 2), {**SELECTOR, "selector_top_k": 3, "conv_kernel_size": 1, "conv_group_size": 36}, own=False, n_layer=1, parts=("selector",))
model("dspark", 1807, 36, (4, 2), {"sample_from_anchor": True, "has_confidence_head": True}, parts=("markov", "conf"))
model("dspark-some", 1808, 36, (4, 2), {"sample_from_anchor": False, "has_confidence_head": False}, some=40, parts=("markov",))
model("dspark-chance", 1807, 36, (4, 2), {}, parts=("markov", "conf", "chance"))
