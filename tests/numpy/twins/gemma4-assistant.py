"""The assistant of Gemma 4 (Gemma Team 2026; modeling_gemma4_assistant.py): queries to the keys and values of the model, all from one place."""
from gemmas import *
from nano import Case, add


def seen(q, key, v, window):
    """For query row i, which is the token i + 1, the sum over tokens 0 .. i."""
    out = np.zeros_like(q)
    for i in range(len(q)):
        first = max(0, i + 2 - window) if window else 0
        for h in range(q.shape[1]):
            g = h * key.shape[1] // q.shape[1]
            out[i, h] = softmax((q[i, h] @ key[first : i + 1, g].T)[None])[0] @ v[first : i + 1, g]
    return out


def guesses(case):
    def forward(k, w, tokens, n_ctx):
        other = {name: t.astype(np.float64) for name, t in case.target.tensors.items()}
        keys, eps = case.target.keys, k("attention.layer_norm_rms_epsilon")
        rows, stored = states(lambda name, *rest: keys.get(name, *rest) if rest else keys[name], other, tokens)
        embedded = other["token_embd.weight"][tokens[1:]] * math.sqrt(rows.shape[1])
        x = linear(np.concatenate([embedded, rows[:-1]], -1), w["nextn.pre_projection.weight"])
        far = *scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length")), w.get("rope_freqs.weight")), None
        base = k("rope.freq_base_swa", k("rope.freq_base", 10000.0))
        near = inverse_frequencies(k("rope.dimension_count_swa", k("attention.key_length_swa")), base), 1.0, k("attention.sliding_window")
        for l in range(k("block_count")):
            b, local = layer(w, l), bool(k("attention.sliding_window_pattern")[l])
            theta, mag, window = near if local else far
            n_head = k("attention.head_count")
            q = split_heads(linear(rms_norm(x, b("attn_norm"), eps), b("attn_q")), n_head[l] if isinstance(n_head, list) else n_head)
            q = rms_norm(q, b("attn_q_norm"), eps)
            q = rotate(np.concatenate([q[:1], q]), theta, True, mag)[1:]  # the places of the tokens begin at 1
            a = seen(q, *stored[local], window)
            x = x + rms_norm(linear(merge_heads(a), b("attn_output")), b("post_attention_norm"), eps)
            h = rms_norm(x, b("ffn_norm"), eps)
            x = x + rms_norm(linear(gelu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down")), b("post_ffw_norm"), eps)
            x = x if b("layer_output_scale") is None else x * b("layer_output_scale")
        return rms_norm(x, w["output_norm.weight"], eps) @ w["token_embd.weight"].T
    return forward


def assistant(name, arch, seed, target, pattern, more={}, heads=(4, 4), n_embd=32, n_ff=50, factors=False, scaled=True):
    """target: what ../gemmas.py makes of a model; pattern: which layers have a window."""
    of = Case(*target)
    d, kv, near = (of.keys["attention.key_length_swa"], of.keys["attention.key_length"]), of.keys["attention.head_count_kv"], of.keys["attention.sliding_window_pattern"]
    kv = kv if isinstance(kv, list) else [kv] * len(near)
    n_back, w = of.keys["embedding_length"], Weights(seed)
    w.embedding(N_VOCAB, n_embd)
    w.matrix("nextn.pre_projection", n_embd, 2 * n_back)
    w.matrix("nextn.post_projection", n_back, n_embd)
    if factors:
        w.put("rope_freqs.weight", [1.0] * (d[1] // 2 - 4) + [1e30] * 4)
    for l, local in enumerate(pattern):
        b, size = f"blk.{l}.", d[not local]
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            w.norm(b + norm, n_embd)
        w.matrix(b + "attn_q", heads[not local] * size, n_embd, gain=1.5)
        w.matrix(b + "attn_output", n_embd, heads[not local] * size)
        w.vector(b + "attn_q_norm.weight", size, 0.2, 0.6)
        w.gated(l, n_embd, n_ff)
        if scaled:
            w.vector(b + "layer_output_scale.weight", 1, 0.1, 0.8)
    w.norm("output_norm", n_embd)
    keys = {**keys_of(len(pattern), n_embd, [n_ff] * len(pattern), [heads[not local] for local in pattern], EPS), "embedding_length_out": n_back,
            "attention.head_count_kv": [kv[[bool(x) for x in near].index(local)] for local in pattern], "attention.key_length": d[1], "attention.value_length": d[1],
            "attention.key_length_swa": d[0], "attention.value_length_swa": d[0], "attention.sliding_window": of.keys["attention.sliding_window"],
            "attention.sliding_window_pattern": list(pattern), "nextn_predict_layers": len(pattern), "attention.shared_kv_layers": len(pattern), **more}
    case = add(name, arch, {key: v for key, v in keys.items() if v is not None}, w, None)
    case.target, case.output = of, "guess"
    case.forward = guesses(case)


rotation = {"rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16}
assistant("gemma4-assistant", "gemma4-assistant", 1611, model("of", 1612, [True, False, True, False, True, False], {**rotation, "rope.dimension_count_swa": 10,
          "attention.shared_kv_layers": 3, "final_logit_softcapping": 0.9}, n_own=3, width=10, kv=(2, 1), factors=True),
          [True, True, False], {**rotation, "rope.dimension_count_swa": 10}, factors=True, heads=(4, 2))
assistant("gemma4-assistant-plain", "gemma4_assistant", 1613, model("of", 1614, [True, False, True], {"attention.value_length": None, "attention.value_length_swa": None, "attention.shared_kv_layers": 1}, n_own=2, extra=True),
          [False, True], {"attention.value_length": None, "attention.value_length_swa": None, "attention.sliding_window_pattern": [False, True], "rope.freq_base": None}, scaled=False)
