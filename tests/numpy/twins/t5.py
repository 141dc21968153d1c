"""T5 (Raffel et al. 2020; transformers' modeling_t5.py): RMS norms before each part, biases by the bucket of a distance, scores that are not scaled;
a decoder that also attends to the encoder's rows."""
from encoders import *
from t5_buckets import bias_of, past_bias_of

READ = [int(t) for t in np.random.default_rng(9).integers(0, N_VOCAB, 19)]  # the text that the encoder reads


def stack(k, w, side, ids, n_layer, text=None):
    eps, n_head, bias = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), None
    x = w["token_embd.weight"][ids]
    for l in range(n_layer):
        def b(name):
            return w.get(f"{side}blk.{l}.{name}.weight")

        def project(x, name):
            return split_heads(linear(x, b(name)), n_head)

        if b("attn_rel_b") is not None:
            bias = (bias_of if text is None else past_bias_of)(b("attn_rel_b"), len(ids))
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = (project(h, "attn_" + p) for p in "qkv")
        x = x + linear(merge_heads(attention(q, key, v, 1.0, both=text is None, bias=bias)), b("attn_o"))
        if text is not None:
            h = rms_norm(x, b("cross_attn_norm"), eps)
            p = softmax(np.einsum("thd,shd->hts", project(h, "cross_attn_q"), project(text, "cross_attn_k")))
            x = x + linear(merge_heads(np.einsum("hts,shd->thd", p, project(text, "cross_attn_v"))), b("cross_attn_o"))
        h = rms_norm(x, b("ffn_norm"), eps)
        up = linear(h, b("ffn_up"))
        x = x + linear(np.maximum(up, 0) if b("ffn_gate") is None else gelu(linear(h, b("ffn_gate"))) * up, b("ffn_down"))
    return rms_norm(x, w[side + "output_norm.weight"], eps)


def forward(k, w, tokens, n_ctx):
    text = stack(k, w, "enc.", READ, k("block_count"))
    y = stack(k, w, "dec.", tokens, k("decoder_block_count", k("block_count")), text)
    return linear(y, w.get("output.weight", w["token_embd.weight"]))


def model(name, seed, n_buckets, gated, d=10, biases=(0,), n_enc=2, n_dec=2, tied=False, more={}):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD, tied)
    for side, n_layer in (("enc.", n_enc), ("dec.", n_dec)):
        for l in range(n_layer):
            b = f"{side}blk.{l}."
            for part in ("attn_", "cross_attn_") if side == "dec." else ("attn_",):
                w.norm(b + part + "norm", N_EMBD)
                for name_of, gain in (("q", 0.8), ("k", 0.8), ("v", 1)):
                    w.matrix(b + part + name_of, 4 * d, N_EMBD, gain=gain)
                w.matrix(b + part + "o", N_EMBD, 4 * d)
            if l in biases:
                w.put(b + "attn_rel_b.weight", w.random.normal(size=(n_buckets, 4)))
            w.norm(b + "ffn_norm", N_EMBD)
            for part in ("ffn_gate", "ffn_up") if gated else ("ffn_up",):
                w.matrix(b + part, N_FF, N_EMBD)
            w.matrix(b + "ffn_down", N_EMBD, N_FF, gain=2)
        w.norm(side + "output_norm", N_EMBD)
    keys = {**keys_of(n_enc, N_EMBD, N_FF, 4, EPS), "context_length": 256, "attention.key_length": d, "attention.relative_buckets_count": n_buckets,
            "decoder_start_token_id": 0, **({"decoder_block_count": n_dec} if n_dec != n_enc else {}), **more}
    case = add(name, "t5", keys, w, forward)
    case.read = READ
    return case


model("t5", 4001, 32, True)
model("t5-relu", 4002, 8, False, 14, (0, 1), n_enc=1, n_dec=3, tied=True, more={"rope.freq_base": 20000.0}).tokens = [
    int(t) for t in np.random.default_rng(7).integers(0, N_VOCAB, 150)]
