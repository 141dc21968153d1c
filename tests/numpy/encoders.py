"""What the twins of models whose tokens all see each other share: the classification head, a pre-norm frame, and the weights of small models."""
import numpy as np

from blocks import *
from families import dense, layer, layer_normed, scaled_frequencies, swiglu
from nano import CASES, Weights, add, keys_of

N_EMBD, N_FF, N_VOCAB, EPS = 48, 60, 92, 1e-2


def heads_of(k, b, h, n_kv=None):
    """Queries, keys and values from three matrices, or from one whose rows are queries, keys, values; cut into heads."""
    n_head = k("attention.head_count")
    n_kv = n_kv or n_head
    if b("attn_qkv") is None:
        parts = [dense(b, h, "attn_" + p) for p in "qkv"]
    else:
        both = dense(b, h, "attn_qkv")
        n = both.shape[-1] // (n_head + 2 * n_kv)
        parts = np.split(both, [n * n_head, n * (n_head + n_kv)], axis=-1)
    return [split_heads(p, n) for p, n in zip(parts, (n_head, n_kv, n_kv))]


def attend(k, b, h, theta=None, halves=True, mag=1.0, n_kv=None, **more):
    """Of all tokens to all tokens. theta: rotary frequencies."""
    q, key, v = heads_of(k, b, h, n_kv)
    if theta is not None:
        q, key = rotate(q, theta, halves, mag), rotate(key, theta, halves, mag)
    return dense(b, merge_heads(attention(q, key, v, both=True, **more)), "attn_output")


def classified(w, row, act=np.tanh, norm=lambda h: h):
    """A dense layer, its activation and perhaps a norm; then the classifier. Either may be missing."""
    if "cls.weight" in w:
        row = act(linear(row, w["cls.weight"], w.get("cls.bias")))
    row = norm(row)
    return linear(row, w["cls.output.weight"], w.get("cls.output.bias")) if "cls.output.weight" in w else row


def output_of(k, output, rows, w):
    """The rows of the embedding, or the scores of the first."""
    return sentence_dense(k, w, rows) if output in ("none", "mean") else classified(w, rows[:1])


def sentence_dense(k, w, rows):
    """The dense layer of sentence-transformers: on each row, or with an activation on their mean if that is the pooling; of ColBERT, unit rows."""
    if "dense_2.weight" not in w:
        return rows
    pooling, bends = k("pooling_type", 1), k("dense_2_activation", "identity") == "tanh"
    if bends and pooling == 1:
        rows = rows.mean(0, keepdims=True)
    rows = linear(rows, w["dense_2.weight"], w.get("dense_2.bias"))
    if bends:
        return np.tanh(rows)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if pooling == 0 else rows


def prenorm(k, w, tokens, attention_of, feed):
    """RMS norms: x + attention_of(norm(x)), then x + feed(norm(x)), then a norm. Both are called with the layer's tensors and the rows."""
    eps = k("attention.layer_norm_rms_epsilon")
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        x = x + attention_of(b, rms_norm(x, b("attn_norm"), eps))
        x = x + feed(b, rms_norm(x, b("ffn_norm"), eps))
    return rms_norm(x, w["output_norm.weight"], eps)


def llama_rows(k, w, tokens, halves, feed=swiglu):
    """Llama's block without its mask."""
    n_rot = k("rope.dimension_count", k("attention.key_length", k("embedding_length") // k("attention.head_count")))
    theta, mag = scaled_frequencies(k, n_rot, w.get("rope_freqs.weight"))
    return prenorm(k, w, tokens, lambda b, h: attend(k, b, h, theta, halves, mag, k("attention.head_count_kv", None)), feed)


def head(w, n_labels=0, bias=True, pooled=True, width=N_EMBD):
    """The tensors of a classification head. pooled: with the dense layer, which gives width numbers."""
    if pooled:
        w.matrix("cls", width, N_EMBD, bias=bias)
    if n_labels:
        w.matrix("cls.output", n_labels, N_EMBD, gain=3, bias=bias)


def fuse_qkv(w, l):
    """One matrix for queries, keys and values of a layer."""
    for end in (".weight", ".bias"):
        if f"blk.{l}.attn_q{end}" in w:
            w.put(f"blk.{l}.attn_qkv{end}", np.concatenate([w.pop(f"blk.{l}.attn_{part}{end}") for part in "qkv"]))


def labels(n):
    return {"classifier.output_labels": [f"LABEL_{i}" for i in range(n)]}


def llama_weights(seed, n_kv=4, d=12, dv=None, bias="", tied=True, n_layer=2, feed=lambda w, l: w.gated(l, N_EMBD, N_FF), parts=lambda w, l: None):
    """Llama's tensors; feed and parts put those of the feed-forward part and further ones of a layer."""
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD, tied)
    for l in range(n_layer):
        w.norm(f"blk.{l}.attn_norm", N_EMBD)
        w.attention(l, N_EMBD, 4, n_kv, d, dv, bias)
        w.norm(f"blk.{l}.ffn_norm", N_EMBD)
        feed(w, l)
        parts(w, l)
    w.norm("output_norm", N_EMBD)
    return w


def encoder(name, arch, keys, w, forward, output="none"):
    """Adds a model, and if its keys say so a dense layer after it. forward(k, w, tokens, output): the rows of its output; None: they are recorded."""
    if "dense_2_feat_out" in keys and "dense_2.weight" not in w:
        w.matrix("dense_2", keys["dense_2_feat_out"], N_EMBD, bias="dense_2_activation" in keys)
    case = add(name, arch, {key: v for key, v in keys.items() if v is not None}, w,
               forward and (lambda k, w, tokens, n_ctx: forward(k, w, tokens, output)))
    case.output = output
