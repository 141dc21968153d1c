"""DSpark of DeepSeek V4 (llama.cpp's source): layers like those of that model without summaries guess a block of tokens at once."""
import nano

nano.load_family("deepseek4")
from deepseek4 import *
from tapped import MASK, pairs


def guessed_in_blocks(case):
    def forward(k, w, tokens, n_ctx):
        """The scores of what follows the last token."""
        other, keys = {name: t.astype(np.float64) for name, t in case.target.tensors.items()}, case.target.keys
        before = lambda l: states(lambda name, *rest: {**keys, "block_count": l}.get(name, *rest), other, tokens[:-1], n_ctx).mean(1)  # the rows that enter layer l
        eps, n_head, n_embd = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), k("embedding_length")
        d, theta, n = k("attention.key_length"), inverse_frequencies(k("rope.dimension_count"), k("rope.freq_base", 10000.0)), len(tokens) - 1
        y = rms_norm(linear(np.concatenate([before(l) for l in k("target_layers")], axis=-1), w["fc.weight"]), w["enc.output_norm.weight"], eps)
        x = np.repeat(w.get("token_embd.weight", other["token_embd.weight"])[[tokens[-1]] + [MASK] * (k("block_size") - 1)][:, None], N_HC, 1)
        places = n + np.arange(len(x))
        for l in range(k("block_count")):
            b = layer(w, l)

            def attend(h):
                low = rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps)
                q = tail_rotated(rms_norm(split_heads(linear(low, b("attn_q_b")), n_head), None, eps), theta, places)
                rows = rms_norm(linear(np.concatenate([y, h]), b("attn_kv")), b("attn_kv_a_norm"), eps)
                rows = tail_rotated(rows[:, None], theta, np.arange(n + len(h)))[:, 0]
                out = np.zeros_like(q)
                for i, t in enumerate(places):
                    own = rows[max(0, t + 1 - k("attention.sliding_window")) : t + 1 if k("attention.causal", False) else len(rows)]
                    out[i] = softmax(np.concatenate([q[i] @ own.T / math.sqrt(d), b("attn_sinks")[:, None]], 1))[:, :-1] @ own
                out = tail_rotated(out, theta, places, -1).reshape(len(h), k("attention.output_group_count"), -1)
                first = b("attn_output_a").reshape(out.shape[1], -1, out.shape[2])
                return linear(np.einsum("tgi,gri->tgr", out, first).reshape(len(h), -1), b("attn_output_b"))

            def feed(h):
                p = np.sqrt(softplus(linear(h, b("ffn_gate_inp"))))
                return fed(k, b, h, l, p, chosen_experts(p, k("expert_used_count"), b("exp_probs_b", ".bias")))

            for part, f in ("attn", attend), ("ffn", feed):
                z, post, comb = mixed(k, x, b(f"hc_{part}_fn"), b(f"hc_{part}_base"), b(f"hc_{part}_scale"), eps)
                x = after(x, f(rms_norm(z, b(part + "_norm"), eps)), post, comb)
        x = joined(k, w, x)
        scores = linear(rms_norm(x, w["output_norm.weight"], eps), w.get("output.weight", other["output.weight"]))
        if "markov_w1.weight" not in w:
            return scores[1:]
        return pairs(k, w, x, scores, tokens[-1], case.output == "guess-chance")
    return forward


def model_in_blocks(name, of, output="guess", own=False, more={}, markov=True, layers=(0, 2, 3)):
    """A draft for the case `of`, with two layers like the last one of that case without summaries."""
    target, made = CASES[of], CASES["deepseek4-plain"]
    n_embd, w, n_layer = target.keys["embedding_length"], Weights(sum(map(ord, name))), 2
    for t, v in made.tensors.items():
        if t.startswith("blk.0.") and "tid2eid" not in t:
            for l in range(n_layer):
                w.put(t.replace("blk.0.", f"blk.{l}."), sums.mean(v) + sums.std(v) * w.random.normal(size=v.shape))
        elif t.startswith("output_") or (own and t in ("token_embd.weight", "output.weight")):
            w.put(t, v)
    for l in range(n_layer):
        w.vector(f"blk.{l}.exp_probs_b.bias", made.keys["expert_count"], 0.5)
    w.matrix("fc", n_embd, len(layers) * n_embd)
    w.norm("enc.output_norm", n_embd)
    if markov:
        w.matrix("markov_w1", 70, 7, gain=2)
        w.matrix("markov_w2", 70, 7, gain=2)
        w.matrix("conf_proj", 1, n_embd + 7, gain=2.5)
    # llama.cpp's converter writes the keys of the layers that the draft lacks, too
    keys = {**made.keys, "block_count": n_layer, "attention.compress_ratios": [0] * n_layer, "hash_layer_count": 0, "attention.head_count_kv": 1, "target_layers": list(layers),
            "block_size": 5, "vocab_size": 70, "attention.sliding_window": 6, "rope.freq_base": 300.0, "expert_weights_scale": 1.5, "swiglu_clamp_exp": [0.6] * n_layer,
            "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32, "tokenizer.ggml.mask_token_id": MASK, **more}
    case = add(name, "dflash", {key: v for key, v in keys.items() if v is not None}, w, None)
    case.target, case.output = target, output
    case.forward = guessed_in_blocks(case)


model_in_blocks("dspark-deepseek4", "deepseek4")
model_in_blocks("dspark-deepseek4-chance", "deepseek4", "guess-chance")
model_in_blocks("dspark-deepseek4-own", "deepseek4-plain", own=True, layers=(1, 2), markov=False,
                more={"attention.causal": True, "swiglu_clamp_exp": None, "expert_gating_func": None, "attention.head_count_kv": 1})
