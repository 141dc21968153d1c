"""The encoder of T5 (Raffel et al. 2020; transformers' modeling_t5.py): biases by the bucket of a distance, scores that are not scaled."""
from encoders import *
from t5_buckets import bias_of


def t5_encoder(k, w, tokens, output):
    eps = k("attention.layer_norm_rms_epsilon")
    x, bias = w["token_embd.weight"][tokens], None
    for l in range(k("block_count")):
        def b(name):
            return w.get(f"enc.blk.{l}.{name}.weight")
        if b("attn_rel_b") is not None:
            bias = bias_of(b("attn_rel_b"), len(tokens))
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = (split_heads(linear(h, b("attn_" + p)), k("attention.head_count")) for p in "qkv")
        x = x + linear(merge_heads(attention(q, key, v, 1.0, both=True, bias=bias)), b("attn_o"))
        h = rms_norm(x, b("ffn_norm"), eps)
        up = linear(h, b("ffn_up"))
        x = x + linear(np.maximum(up, 0) if b("ffn_gate") is None else gelu(linear(h, b("ffn_gate"))) * up, b("ffn_down"))
    return sentence_dense(k, w, rms_norm(x, w["enc.output_norm.weight"], eps))


def model(name, seed, n_buckets, gated, d=10, biases=(0,), n_layer=3, length=24, more={}):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD)
    for l in range(n_layer):
        b = f"enc.blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        for part, gain in (("q", 0.8), ("k", 0.8), ("v", 1)):
            w.matrix(f"{b}attn_{part}", 4 * d, N_EMBD, gain=gain)
        w.matrix(b + "attn_o", N_EMBD, 4 * d)
        if l in biases:
            w.put(b + "attn_rel_b.weight", w.random.normal(size=(n_buckets, 4)))
        w.norm(b + "ffn_norm", N_EMBD)
        for part in ("ffn_gate", "ffn_up") if gated else ("ffn_up",):
            w.matrix(b + part, N_FF, N_EMBD)
        w.matrix(b + "ffn_down", N_EMBD, N_FF, gain=2)
    w.norm("enc.output_norm", N_EMBD)
    keys = {**keys_of(n_layer, N_EMBD, N_FF, 4, EPS), "context_length": 256, "attention.key_length": d, "attention.relative_buckets_count": n_buckets, **({"attention.causal": False} if gated else {}), **more}
    encoder(name, "t5encoder", keys, w, t5_encoder)
    case = CASES[name]
    case.tokens = [int(t) for t in np.random.default_rng(7).integers(0, N_VOCAB, length)]


model("t5encoder", 3601, 32, True)
model("t5encoder-relu", 3602, 8, False, 14, (0, 2), length=150)
model("t5encoder-dense", 3603, 8, False, more={"dense_2_feat_out": 20})
