"""BART (Lewis et al. 2020), mBART (Liu et al. 2020), Marian (Junczys-Dowmunt et al. 2018) and M2M100 (Fan et al. 2020) as published (transformers'
modeling_bart.py, modeling_mbart.py, modeling_marian.py, modeling_m2m_100.py): an encoder, and a decoder that also attends to its rows."""
from families import *
from nano import Weights, add, keys_of

N_EMBD, N_FF, N_HEAD, N_VOCAB, N_POS = 48, 60, 4, 92, 40
READ = [int(t) for t in np.random.default_rng(8).integers(0, N_VOCAB, 17)]  # the text that the encoder reads
ACTIVATIONS = {"gelu": gelu_erf, "gelu_tanh": gelu, "relu": lambda x: np.maximum(x, 0), "silu": silu}


def part_of(w, prefix):
    return lambda name, end=".weight": w.get(prefix + name + end)


def sinusoids(n_tokens, n):
    """Row p: the sines of p / 10000^(2i/n), then their cosines (Vaswani et al. 2017, not interleaved)."""
    out = np.zeros((n_tokens, n))
    for p in range(n_tokens):
        for i in range(n // 2):
            out[p, i], out[p, n // 2 + i] = math.sin(p / 10000 ** (2 * i / n)), math.cos(p / 10000 ** (2 * i / n))
    return out


def fairseq_sinusoids(n_tokens, n):
    """The same of p + 2, as fairseq has them: the exponents end at 1 (tensor2tensor's, with two rows for padding before the first)."""
    out = np.zeros((n_tokens, n))
    for p in range(n_tokens):
        for i in range(n // 2):
            angle = (p + 2) * math.exp(-i * math.log(10000) / (n // 2 - 1))
            out[p, i], out[p, n // 2 + i] = math.sin(angle), math.cos(angle)
    return out


def seq2seq(arch):
    pre_norm = arch in ("mbart", "m2m_100")

    def sublayer(b, x, name, f, eps):
        return x + f(layer_normed(b, x, name, eps)) if pre_norm else layer_normed(b, x + f(x), name, eps)

    def heads_of(b, name, x):
        return split_heads(dense(b, x, name), N_HEAD)

    def forward(k, w, tokens, n_ctx):
        eps, act = k("attention.layer_norm_epsilon"), ACTIVATIONS[k("hidden_activation", "gelu")]

        def rows(side, ids):
            x = w["token_embd.weight"][ids] * np.float64(np.float32(k("embedding_scale", 1.0)))
            if arch in ("marian", "m2m_100"):
                return x + (sinusoids if arch == "marian" else fairseq_sinusoids)(len(ids), N_EMBD)
            return layer_normed(part_of(w, side), x + w[side + "position_embd.weight"][: len(ids)], "token_embd_norm", eps)

        def stack(side, x, n_layer, both, text=None):
            for l in range(n_layer):
                b = part_of(w, f"{side}blk.{l}.")

                def own(h):
                    return dense(b, merge_heads(attention(*(heads_of(b, "attn_" + p, h) for p in "qkv"), both=both)), "attn_o")

                def cross(h):  # each token sees all rows of the text
                    q, key, v = heads_of(b, "cross_attn_q", h), heads_of(b, "cross_attn_k", text), heads_of(b, "cross_attn_v", text)
                    p = softmax(np.einsum("thd,shd->hts", q, key) / math.sqrt(q.shape[-1]))
                    return dense(b, merge_heads(np.einsum("hts,shd->thd", p, v)), "cross_attn_o")

                def feed(h):
                    return dense(b, act(dense(b, h, "ffn_up")), "ffn_down")

                x = sublayer(b, x, "attn_norm", own, eps)
                if text is not None:
                    x = sublayer(b, x, "cross_attn_norm", cross, eps)
                x = sublayer(b, x, "ffn_norm", feed, eps)
            return layer_normed(part_of(w, side), x, "output_norm", eps) if pre_norm else x

        text = stack("enc.", rows("enc.", READ), k("block_count"), True)
        y = stack("dec.", rows("dec.", tokens), k("decoder_block_count", k("block_count")), False, text)
        scores = linear(y, w["token_embd.weight"]) + w.get("output.bias", 0)
        if arch == "marian" and k("decoder_start_token_id", -1) >= 0:  # never predict padding, with which answers begin
            scores[:, k("decoder_start_token_id")] = -np.inf
        if k("forced_bos_token_id", -1) >= 0:  # the first token is this one, whatever the model says
            scores[0] = [0 if i == k("forced_bos_token_id") else -np.inf for i in range(N_VOCAB)]
        return scores

    return forward


def model(name, arch, seed, more={}, biased=False, n_enc=2, n_dec=2, n_embd=N_EMBD):
    w = Weights(seed)
    w.embedding(N_VOCAB, n_embd)
    if biased:
        w.put("output.bias", w.random.normal(size=N_VOCAB))

    def attention_weights(prefix):
        for part, gain in (("q", 1.5), ("k", 1.5), ("v", 1), ("o", 1)):
            w.matrix(prefix + part, n_embd, n_embd, gain=gain, bias=True)

    for side, n_layer in (("enc.", n_enc), ("dec.", n_dec)):
        if arch not in ("marian", "m2m_100"):
            w.put(side + "position_embd.weight", 0.25 * w.random.normal(size=(N_POS, n_embd)))
            w.norm(side + "token_embd_norm", n_embd, True)
        if arch in ("mbart", "m2m_100"):
            w.norm(side + "output_norm", n_embd, True)
        for l in range(n_layer):
            b = f"{side}blk.{l}."
            for part in ("attn_", "cross_attn_") if side == "dec." else ("attn_",):
                w.norm(b + part + "norm", n_embd, True)
                attention_weights(b + part)
            w.norm(b + "ffn_norm", n_embd, True)
            w.matrix(b + "ffn_up", N_FF, n_embd, bias=True)
            w.matrix(b + "ffn_down", n_embd, N_FF, gain=2, bias=True)
    keys = {**keys_of(n_enc, n_embd, N_FF, N_HEAD, 1e-2, True), "context_length": N_POS, **more}
    if n_dec != n_enc:
        keys["decoder_block_count"] = n_dec
    add(name, arch, keys, w, seq2seq(arch)).read = READ


model("bart", "bart", 3901, {"decoder_start_token_id": 2})
model("bart-large", "bart", 3902, {"forced_bos_token_id": 7, "embedding_scale": 2.5, "hidden_activation": "relu"}, biased=True, n_dec=1)
model("mbart", "mbart", 3903, {"embedding_scale": 3.0, "hidden_activation": "gelu_tanh"}, biased=True, n_enc=1, n_dec=3)
model("marian", "marian", 3904, {"embedding_scale": 2.0, "hidden_activation": "silu", "decoder_start_token_id": 33}, biased=True)
model("marian-plain", "marian", 3905, {"hidden_activation": "gelu"})
model("m2m_100", "m2m_100", 3906, {"embedding_scale": 2.0, "hidden_activation": "relu", "decoder_start_token_id": 2}, n_enc=3)
