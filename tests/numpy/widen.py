"""Makes a model's rows multiples of 256, so that all types of weights fit them, without changing what it computes.

wide(meta, tensors) returns both again, for models with the tensor names of Llama whose embedding is at most 256 wide.

The hidden state x becomes E x, where the columns of E are orthonormal: matrices that read it are multiplied by the transpose of E, matrices
that write it by E. RMS norms scale E x by sqrt(256 / width) more than x, so their weights move into the matrices that follow. Attention gets
copies of its heads, each with its values in another basis, and a share of the output. The feed-forward part gets copies of some hidden
units, each with a share of the output. The matrix of the logits becomes a tensor of its own.
"""
import math

import numpy as np

WIDTH = 256


def copies(n):
    """The smallest number of copies of n elements that fill rows of whole blocks."""
    return WIDTH // math.gcd(WIDTH, n)


def orthonormal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def shares(rng, n):
    x = rng.uniform(0.4, 0.6, n)
    return x / x.sum()


def widen_attention(rng, t, n_head, n_kv):
    """Repeats the heads of a layer, in place; returns how often."""
    n = copies(t["attn_output"].shape[1])
    heads = {name: np.split(t[name], count) for name, count in (("attn_q", n_head), ("attn_k", n_kv), ("attn_v", n_kv))}
    outputs, group = np.split(t["attn_output"], n_head, axis=1), n_head // n_kv
    basis = [[orthonormal(rng, len(v)) for _ in range(n)] for v in heads["attn_v"]]
    share = [shares(rng, n) for _ in heads["attn_v"]]
    order = [(kv, c) for kv in range(n_kv) for c in range(n)]
    t["attn_k"] = np.concatenate([heads["attn_k"][kv] for kv, _ in order])
    t["attn_v"] = np.concatenate([basis[kv][c] @ heads["attn_v"][kv] for kv, c in order])
    readers = [(kv * group + q, kv, c) for kv, c in order for q in range(group)]
    t["attn_q"] = np.concatenate([heads["attn_q"][h] for h, _, _ in readers])
    t["attn_output"] = np.concatenate([share[kv][c] * outputs[h] @ basis[kv][c].T for h, kv, c in readers], axis=1)
    return n


def widen_ffn(rng, t):
    """Repeats hidden units of a layer, in place."""
    n = t["ffn_up"].shape[0]
    to = -(-n // WIDTH) * WIDTH
    order = np.concatenate([np.arange(n), rng.permutation(n)[:to - n]])
    weight = np.ones(to)
    for i in range(n, to):
        weight[i] = rng.uniform(0.2, 0.8)
        weight[order[i]] = 1 - weight[i]
    mixed = rng.permutation(to)
    order, weight = order[mixed], weight[mixed]
    for name in ("ffn_gate", "ffn_up"):
        t[name] = t[name][order]
    t["ffn_down"] = t["ffn_down"][:, order] * weight


def wide(meta, tensors, seed=1):
    rng = np.random.default_rng(seed)
    arch = meta["general.architecture"]
    meta = dict(meta)
    n_head, n_kv = (meta[f"{arch}.attention.{key}"] for key in ("head_count", "head_count_kv"))
    width = meta[f"{arch}.embedding_length"]
    into = orthonormal(rng, WIDTH)[:, :width]              # E
    back = into.T * math.sqrt(width / WIDTH)               # of what a norm made of it
    x = {name: t.astype(np.float64) for name, t in tensors.items()}
    out = dict(x, **{"token_embd.weight": x["token_embd.weight"] @ into.T, "output_norm.weight": np.ones(WIDTH),
                     "output.weight": x.get("output.weight", x["token_embd.weight"]) * x["output_norm.weight"] @ back})
    for layer in range(meta[f"{arch}.block_count"]):
        full = f"blk.{layer}.{{}}.weight".format
        t = {name: x[full(name)] for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")}
        for norm, readers in (("attn_norm", ("attn_q", "attn_k", "attn_v")), ("ffn_norm", ("ffn_gate", "ffn_up"))):
            for name in readers:
                bias = x.get(f"blk.{layer}.{name}.bias", np.zeros(len(t[name])))  # one more column, which goes where its row goes
                t[name] = np.column_stack([t[name] * x[full(norm)] @ back, bias])
            out[full(norm)] = np.ones(WIDTH)
        n = widen_attention(rng, t, n_head, n_kv)
        widen_ffn(rng, t)
        for name in ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"):
            if f"blk.{layer}.{name}.bias" in x:
                out[f"blk.{layer}.{name}.bias"] = t[name][:, -1]
            t[name] = t[name][:, :-1]
        out.update({full(name): into @ w if name in ("attn_output", "ffn_down") else w for name, w in t.items()})
    for key in ("key_length", "value_length"):
        meta.setdefault(f"{arch}.attention.{key}", width // n_head)
    meta.update({f"{arch}.embedding_length": WIDTH, f"{arch}.feed_forward_length": out["blk.0.ffn_up.weight"].shape[0],
                 f"{arch}.attention.head_count": n_head * n, f"{arch}.attention.head_count_kv": n_kv * n, "general.file_type": 0})
    return meta, {name: np.ascontiguousarray(w, dtype=np.float32) for name, w in out.items()}
