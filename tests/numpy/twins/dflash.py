"""DFlash (Chen et al. 2026, arXiv 2602.06036; the authors' modeling): layers that guess a block of tokens at once, from what layers of another model had
of the text."""
from nano import add
from tapped import *


def seeing_all(q, key, v):
    out = np.zeros_like(q)
    for h in range(q.shape[1]):
        g = h * key.shape[1] // q.shape[1]
        out[:, h] = softmax(q[:, h] @ key[:, g].T / math.sqrt(q.shape[-1])) @ v[:, g]
    return out


def guesses(case):
    def forward(k, w, tokens, n_ctx):
        """The scores of what follows the last token."""
        other, keys = {name: t.astype(np.float64) for name, t in case.target.tensors.items()}, case.target.keys
        taken = entering(lambda name, *rest: keys.get(name, *rest), other, tokens, k("target_layers"))[:-1]
        eps, n_head, n_kv = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("attention.head_count_kv", k("attention.head_count"))
        theta, mag = scaled_frequencies(k, k("attention.key_length", k("embedding_length") // n_head))
        y = rms_norm(taken @ w["fc.weight"].T, w["enc.output_norm.weight"], eps)
        block = [tokens[-1]] + [MASK] * (k("block_size") - 1)
        x = w.get("token_embd.weight", other["token_embd.weight"])[block] * k("embedding_scale", 1.0)
        for l in range(k("block_count")):
            b = layer(w, l)
            h = rms_norm(x, b("attn_norm"), eps)
            both = np.concatenate([y, h])
            q = split_heads(np.concatenate([y, h]) @ b("attn_q").T, n_head)  # of the text, for the places
            key, v = split_heads(both @ b("attn_k").T, n_kv), split_heads(both @ b("attn_v").T, n_kv)
            q = rotate(rms_norm(q, b("attn_q_norm"), eps), theta, True, mag)[len(y):]
            key = rotate(rms_norm(key, b("attn_k_norm"), eps), theta, True, mag)
            x = x + merge_heads(seeing_all(q, key, v)) @ b("attn_output").T
            x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
        x = rms_norm(x, w["output_norm.weight"], eps)
        own = w.get("output.weight", w.get("token_embd.weight"))
        scores = (x @ (other.get("output.weight", other["token_embd.weight"]) if own is None else own).T)[1:] * k("logit_scale", 1.0)
        cap = k("final_logit_softcapping", 0.0)
        scores = cap * np.tanh(scores / cap) if cap else scores
        if "d2t" not in w:
            return scores
        out = np.full((len(scores), k("vocab_size")), -np.inf)
        out[:, w["d2t"].astype(int)] = scores
        return out
    return forward


def model(name, seed, n_embd, heads, more={}, layers=(1, 3), d=12, own=True, n_layer=2, n_block=5, some=0):
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
        for part, n in (("q", n_head), ("k", n_kv), ("v", n_kv)):
            w.matrix(b + "attn_" + part, n * d, n_embd, gain=1.5)
        for part in "qk":
            w.vector(b + f"attn_{part}_norm.weight", d, 0.3, 1)
        w.matrix(b + "attn_output", n_embd, n_head * d)
        w.gated(l, n_embd, 58)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(n_layer, n_embd, 58, n_head, 1e-2), "attention.head_count_kv": n_kv, "target_layers": list(layers), "block_size": n_block, "vocab_size": N_VOCAB,
            "rope.freq_base": 300.0, "attention.key_length": d, "tokenizer.ggml.mask_token_id": MASK, **more}
    case = add(name, "dflash", {key: v for key, v in keys.items() if v is not None}, w, None)
    case.target, case.output = of, "guess"
    case.forward = guesses(case)
    return case


MASK = 5
model("dflash", 1801, 36, (4, 2), {"logit_scale": 0.7, "final_logit_softcapping": 1.5, "embedding_scale": 1.3, "attention.causal": False,
      "rope.dimension_sections": [6, 0, 0, 0]}, some=40)
model("dflash-whole", 1803, 36, (3, 1), n_block=2)
model("dflash-of-target", 1802, 32, (2, 2), {"attention.head_count_kv": None, "attention.key_length": None, "rope.freq_base": 900.0}, layers=(0, 2, 4), d=16, own=False,
      n_layer=1, n_block=3)
