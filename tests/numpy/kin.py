"""What the twins of Llama's kin share: their sizes and weights, and the projections of a row to heads. A twin's own file says
what its family does with them.
"""
import math

import numpy as np

from blocks import *
from families import layer, scaled_frequencies, swiglu, tied_output  # noqa: F401  for the twins
from nano import Weights, add, keys_of, other_names  # noqa: F401

N_EMBD, N_HEAD, N_FF, N_VOCAB, EPS = 48, 4, 60, 92, 1e-2


def project(b, name, x):
    return linear(x, b(name), b(name, ".bias"))


def qkv(k, b, x):
    """Queries, keys and values, cut into heads."""
    n_head = k("attention.head_count")
    n_kv = k("attention.head_count_kv", n_head)
    return (split_heads(project(b, "attn_" + p, x), n) for p, n in (("q", n_head), ("k", n_kv), ("v", n_kv)))


def head_size(k):
    return k("attention.key_length", k("embedding_length") // k("attention.head_count"))


def sizes(d=None, n_kv=None, dv=None):
    """The keys of these sizes; None: the key is not there."""
    out = {"attention.head_count_kv": n_kv, "attention.key_length": d, "attention.value_length": dv}
    return {key: n for key, n in out.items() if n}


def kin(name, arch, seed, more={}, n_layer=2, tied=True, norms=("attn_norm", "ffn_norm"), norm_bias=False, layer_norm=False,
        qk_norm=False, bias="", feed_forward="gated", ffn_bias=False, parts=lambda w, l: None, whole=lambda w: None, n_ctx=0, forward=None):
    """A model: norms are a layer's of its whole row; qk_norm: one for each head of Q and K, of the head's size; bias: which of q k v
    o have one; feed_forward: gated, plain or none; parts and whole put further tensors, of a layer and of the model."""
    d = more.get("attention.key_length") or N_EMBD // N_HEAD
    n_kv = more.get("attention.head_count_kv") or N_HEAD
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD, tied)
    whole(w)
    for l in range(n_layer):
        b = f"blk.{l}."
        for norm in norms:
            w.norm(b + norm, N_EMBD, norm_bias)
        w.attention(l, N_EMBD, N_HEAD, n_kv, d, more.get("attention.value_length"), bias)
        if qk_norm:
            w.norm(b + "attn_q_norm", d)
            w.norm(b + "attn_k_norm", d)
        if feed_forward == "gated":
            w.gated(l, N_EMBD, N_FF, ffn_bias)
        elif feed_forward == "plain":
            w.matrix(b + "ffn_up", N_FF, N_EMBD, bias=ffn_bias)
            w.matrix(b + "ffn_down", N_EMBD, N_FF, gain=2, bias=ffn_bias)
        parts(w, l)
    w.norm("output_norm", N_EMBD, norm_bias)
    keys = {**keys_of(n_layer, N_EMBD, N_FF, N_HEAD, EPS, layer_norm), **more}
    return add(name, arch, {key: v for key, v in keys.items() if v is not None}, w, forward, n_ctx)


def fused(name, arch, seed, more={}, n_kv=4, d=12, n_ff=92, tied=True, norms=("attn_norm", "ffn_norm"), bias=True,
          whole=lambda w: None):
    """A model with LayerNorm, one matrix for Q, K and V, and a plain feed-forward part; bias: of all matrices or none."""
    w = Weights(seed)
    w.embedding(88, N_EMBD, tied)
    whole(w)
    for l in range(2):
        b = f"blk.{l}."
        for norm in norms:
            w.norm(b + norm, N_EMBD, True)
        w.matrix(b + "attn_qkv", (N_HEAD + 2 * n_kv) * d, N_EMBD, gain=1.5, bias=bias)
        w.matrix(b + "attn_output", N_EMBD, N_HEAD * d, bias=bias)
        w.matrix(b + "ffn_up", n_ff, N_EMBD, bias=bias)
        w.matrix(b + "ffn_down", N_EMBD, n_ff, gain=2, bias=bias)
    w.norm("output_norm", N_EMBD, True)
    add(name, arch, {**keys_of(2, N_EMBD, n_ff, N_HEAD, EPS, True), **more}, w)


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 60.0,
        "rope.scaling.yarn_beta_fast": 6.0, "rope.scaling.yarn_beta_slow": 0.5}
