"""The encoder of T5 (Raffel et al. 2020; transformers' modeling_t5.py): biases by the bucket of a distance, scores that are not scaled."""
from encoders import *


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
    encoder(name, "t5encoder", keys, w, None)
    case = CASES[name]
    case.tokens = [int(t) for t in np.random.default_rng(7).integers(0, N_VOCAB, length)]


model("t5encoder", 3601, 32, True)
model("t5encoder-relu", 3602, 8, False, 14, (0, 2), length=150)
model("t5encoder-dense", 3603, 8, False, more={"dense_2_feat_out": 20})
