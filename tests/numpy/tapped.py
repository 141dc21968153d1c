"""A model for which others guess, from rows that enter its layers."""
from kin import *
from nano import Case


def entering(k, w, tokens, layers, more=()):
    """The rows that enter these layers of a llama, side by side; its number of layers: that leave the last. more: what control vectors add to the rows that
    leave a layer, by its number."""
    eps, n_head = k("attention.layer_norm_rms_epsilon"), k("attention.head_count")
    theta, mag = scaled_frequencies(k, k("attention.key_length"))
    x, before = w["token_embd.weight"][tokens], []
    for l in range(k("block_count")):
        before.append(x)
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = (split_heads(h @ b("attn_" + part).T, n) for part, n in (("q", n_head), ("k", 2), ("v", 2)))
        x = x + merge_heads(attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)) @ b("attn_output").T
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
        x = x + dict(more).get(l, 0)
    before.append(x)
    return np.concatenate([before[l] for l in layers], axis=-1)


def target(n_embd, seed):
    w = Weights(seed)
    w.embedding(N_VOCAB, n_embd, False)
    for l in range(4):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.attention(l, n_embd, 4, 2, 10)
        w.gated(l, n_embd, 52)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(4, n_embd, 52, 4, 1e-2), "attention.head_count_kv": 2, "attention.key_length": 10, "attention.value_length": 10,
            "rope.freq_base": 300.0, "rope.dimension_count": 10, "vocab_size": N_VOCAB}
    return Case("tapped", "llama", keys, w, None)


# --- drafts that guess in blocks
MASK = 5


def of_tokens(k, w, scores):
    if "d2t" not in w:
        return scores
    out = np.full((len(scores), k("vocab_size")), -np.inf)
    out[:, w["d2t"].astype(int)] = scores
    return out


def pairs(k, w, x, scores, newest, chance):
    """x: what the chance is computed of. DSpark (llama.cpp's source): the scores of a place, and those of pairs with the guess before."""
    out, chances, before = [], [], newest
    for i in range(0 if k("sample_from_anchor", True) else 1, len(scores)):
        pair = w["markov_w1.weight"][before]
        out.append(of_tokens(k, w, (scores[i] + w["markov_w2.weight"] @ pair)[None])[0])
        if "conf_proj.weight" in w:
            chances.append(1 / (1 + np.exp(-(w["conf_proj.weight"] @ np.concatenate([x[i], pair]) + w.get("conf_proj.bias", 0)))))
        before = int(out[-1].argmax())
    return np.array(chances if chance else out)
