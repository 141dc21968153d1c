"""EAGLE-3 (Li et al. 2025, arXiv 2503.01840; the authors' modeling): one layer that reads a token and what three layers of another model had before it."""
from tapped import *


def guesses(case):
    def forward(k, w, tokens, n_ctx):
        other = {name: t.astype(np.float64) for name, t in case.keys["target"].tensors.items()}
        keys = case.keys["target"].keys
        taken = entering(lambda name, *rest: keys.get(name, *rest), other, tokens, k("target_layers"))[:-1]
        eps, n_head, n_kv = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("attention.head_count_kv", k("attention.head_count"))
        theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", k("embedding_length") // n_head)), w.get("rope_freqs.weight"))
        b = layer(w, 0)
        y = (rms_norm(taken, w["enc.output_norm.weight"], eps) if k("norm_before_fc", False) else taken) @ w["fc.weight"].T
        g = rms_norm(y, b("attn_norm_2"), eps)
        embedded = w.get("token_embd.weight", other["token_embd.weight"])[tokens[1:]]
        h = np.concatenate([rms_norm(embedded, b("attn_norm"), eps), g], axis=-1)
        q, key, v = (split_heads(h @ b("attn_" + part).T, n) for part, n in (("q", n_head), ("k", n_kv), ("v", n_kv)))
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = (g if k("norm_before_residual", False) else y) + merge_heads(a) @ b("attn_output").T
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
        scores = rms_norm(x, w["output_norm.weight"], eps) @ w["output.weight"].T
        if "d2t" not in w:
            return scores
        out = np.full((len(scores), k("vocab_size")), -np.inf)
        out[:, w["d2t"].astype(int)] = scores
        return out
    return forward


def model(name, seed, n_embd, heads, more={}, layers=(1, 2, 3), d=12, own=True, some=0, factors=0, norm_fc=False, n_target=34):
    w, (n_head, n_kv) = Weights(seed), heads
    if own:
        w.embedding(N_VOCAB, n_embd)
    if factors:
        w.factors("rope_freqs", factors)
    w.matrix("fc", n_embd, len(layers) * n_target)
    if norm_fc:
        w.norm("enc.output_norm", len(layers) * n_target)
    for part in ("attn_norm", "attn_norm_2", "ffn_norm"):
        w.norm("blk.0." + part, n_embd)
    for part, n in (("q", n_head), ("k", n_kv), ("v", n_kv)):
        w.matrix("blk.0.attn_" + part, n * d, 2 * n_embd, gain=1.5)
    w.matrix("blk.0.attn_output", n_embd, n_head * d)
    w.gated(0, n_embd, 58)
    w.norm("output_norm", n_embd)
    w.matrix("output", some or N_VOCAB, n_embd, gain=1.5)
    if some:
        w["d2t"] = np.sort(w.random.choice(N_VOCAB, some, replace=False)).astype(np.int64)
    keys = {**keys_of(1, n_embd, 58, n_head, 1e-2), "attention.head_count_kv": n_kv, "target_hidden_size": n_target, "target_layers": list(layers),
            "vocab_size": N_VOCAB, "rope.freq_base": 300.0, "attention.key_length": d, **more}
    case = nano_case(name, {key: v for key, v in keys.items() if v is not None}, w)
    case.target = target(n_target, seed + 1)
    case.forward = guesses(type("Pair", (), {"keys": {"target": case.target}}))
    case.output = "guess"


def nano_case(name, keys, w):
    from nano import add
    return add(name, "eagle3", keys, w, None)


model("eagle3", 1701, 46, (4, 2), {"norm_before_residual": True, "norm_before_fc": True, "rope.dimension_count": 12}, some=40, factors=6, norm_fc=True)
model("eagle3-whole", 1702, 34, (3, 1), {"rope.freq_base": 900.0}, layers=(0, 2), d=10)
model("eagle3-of-target", 1703, 32, (2, 2), {"attention.head_count_kv": None, "attention.key_length": None}, layers=(3,), d=16, own=False, n_target=32)
