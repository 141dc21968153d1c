"""ALBERT (Lan et al. 2020; transformers' modeling_albert.py): embeddings of another width, and a few layers' weights for all layers."""
from encoders import *


def model(name, seed, more={}, output="none", width=20, n_layer=4, n_group=1, n_labels=1):
    w = Weights(seed)
    w.embedding(N_VOCAB, width)
    w.put("token_types.weight", 0.25 * w.random.normal(size=(2, width)))
    w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, width)))
    w.norm("token_embd_norm", width, True)
    w.matrix("token_embd_proj", N_EMBD, width, bias=True)
    for g in range(n_group):
        w.attention(g, N_EMBD, 4, 4, N_EMBD // 4, bias="qkvo")
        w.matrix(f"blk.{g}.ffn_up", N_FF, N_EMBD, bias=True)
        w.matrix(f"blk.{g}.ffn_down", N_EMBD, N_FF, gain=2, bias=True)
        for norm in ("attn_output_norm", "layer_output_norm"):
            w.norm(f"blk.{g}.{norm}", N_EMBD, True)
    if output == "rank":
        head(w, n_labels)
    keys = {**keys_of(n_layer, N_EMBD, N_FF, 4, EPS, True), "attention.causal": False, "word_embedding_length": width, **more}
    encoder(name, "albert", keys, w, None, output)


model("albert", 3911)
model("albert-groups-rank", 3912, {**labels(3), "block_group_count": 2, "hidden_activation": "gelu"}, "rank", n_layer=5, n_group=2, n_labels=3)
model("albert-wide", 3913, {"dense_2_feat_out": 20, "attention.causal": None, "tokenizer.ggml.token_type_count": 2}, width=N_EMBD)
