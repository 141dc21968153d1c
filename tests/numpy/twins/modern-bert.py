"""ModernBERT (Warner et al. 2024; transformers' modeling_modernbert.py): norms before each part, none before the first attention, windows."""
from encoders import *


def modern_bert(k, w, tokens, output):
    eps, n_head, n_ff = k("attention.layer_norm_epsilon"), k("attention.head_count"), k("feed_forward_length")
    d = k("embedding_length") // n_head
    whole, mag = scaled_frequencies(k, d)
    window, act = k("attention.sliding_window", 0), silu if k("hidden_activation", "gelu") == "silu" else gelu
    near = inverse_frequencies(d, k("rope.freq_base_swa", 10000.0))
    x = layer_norm(w["token_embd.weight"][tokens], w["token_embd_norm.weight"], None, eps)
    for l in range(k("block_count")):
        b = layer(w, l)
        h = x if b("attn_norm") is None else layer_norm(x, b("attn_norm"), None, eps)  # nn.Identity in layer 0
        if window == 0 or l % k("attention.sliding_window_pattern", 3) == 0:  # global_attn_every_n_layers
            x = x + attend(k, b, h, whole, True, mag)
        else:
            x = x + attend(k, b, h, near, True, window=window)
        both = linear(layer_norm(x, b("ffn_norm"), None, eps), b("ffn_up"))
        x = x + linear(act(both[:, :n_ff]) * both[:, n_ff:], b("ffn_down"))
    x = layer_norm(x, w["output_norm.weight"], None, eps)
    if output == "none":
        return sentence_dense(k, w, x)
    # classifier_pooling "mean"; ModernBertPredictionHead: dense, GELU, norm
    norm = (lambda h: layer_norm(h, w["cls.norm.weight"], None, eps)) if "cls.norm.weight" in w else lambda h: h
    return classified(w, x.mean(0, keepdims=True), gelu, norm)


def model(name, seed, more={}, output="none", n_labels=0, norm=True, bias=True, pooled=True, fused=True, n_layer=4, first_norm=False):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD)
    w.norm("token_embd_norm", N_EMBD)
    for l in range(n_layer):
        if l > 0 or first_norm:
            w.norm(f"blk.{l}.attn_norm", N_EMBD)
        w.attention(l, N_EMBD, 4, 4, 12)
        if fused:
            fuse_qkv(w, l)
        w.norm(f"blk.{l}.ffn_norm", N_EMBD)
        w.matrix(f"blk.{l}.ffn_up", 2 * N_FF, N_EMBD)
        w.matrix(f"blk.{l}.ffn_down", N_EMBD, N_FF, gain=2)
    w.norm("output_norm", N_EMBD)
    if output == "rank":
        head(w, n_labels, bias, pooled)
        if norm:
            w.norm("cls.norm", N_EMBD)
    encoder(name, "modern-bert", {**keys_of(n_layer, N_EMBD, N_FF, 4, EPS, True), "attention.sliding_window": 9, **more}, w, modern_bert, output)


model("modern-bert", 3101, {"attention.causal": False, "rope.scaling.type": "none"})
model("modern-bert-pattern", 3102, {"attention.sliding_window_pattern": 2, "attention.sliding_window": 6, "rope.freq_base": 300.0,
                                    "rope.freq_base_swa": 20.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0,
                                    "rope.scaling.attn_factor": 1.4}, fused=False)
model("modern-bert-rank", 3103, labels(3), "rank", n_labels=3, bias=False)
model("modern-bert-dense-rank", 3104, {}, "rank", norm=False)
model("modern-bert-direct-rank", 3105, labels(2), "rank", n_labels=2, norm=False, pooled=False)
model("modern-bert-dense", 3106, {"dense_2_feat_out": 20, "pooling_type": 0})
model("modern-bert-silu", 3107, {"hidden_activation": "silu", "rope.freq_base": 160000.0}, first_norm=True)  # Granite's embedders
model("modern-bert-whole", 3108, {"attention.sliding_window": None, "hidden_activation": "gelu"})
