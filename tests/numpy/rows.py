#!/usr/bin/env python3
"""Stages over rows, and rows in place of tokens, of seeded shapes: results within 5e-6 of the range of a pass in float64 (on the cpu, 1e-4), and the same bits
whether a row is given or is the token's.

    rows.py --cli LLM_CLI --dir FOLDER ROWS

ROWS is the program test-rows. Exit code 0, 1.
"""
import argparse
import math
import os
import subprocess
import sys

import numpy as np

import gguf
import today

HERE = os.path.dirname(os.path.abspath(__file__))


class Runner:
    def __init__(self, a):
        self.a, self.failed = a, 0
        self.at = lambda name: os.path.join(a.dir, f"rows-{os.getpid()}.{name}")

    def run(self, arch, meta, tensors, *words, rows=None, backend="cpu", code=0):
        gguf.write(self.at("gguf"), meta, tensors)
        np.ascontiguousarray(rows, np.float32).tofile(self.at("in"))
        command = [self.a.rows, "-m", self.at("gguf"), "--arch", os.path.join(HERE, "archs", "rows", arch), "--backend", backend, "--out", self.at("out"),
                   *(self.at("in") if w is None else w for w in words)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != code or "runtime error" in done.stderr:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
        return np.fromfile(self.at("out"), np.float32) if code == 0 else done.stderr

    def tell(self, name, ok, what=""):
        self.failed += not ok
        print(f"{name:44} {'ok' if ok else 'FAILED'} {what}")

    def clean(self):
        for name in ("gguf", "in", "out"):
            if os.path.exists(self.at(name)):
                os.unlink(self.at(name))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def convolved(x, w, b, every):
    """x [n, in], w [out, in, k]: as torch.nn.Conv1d, with k // 2 zeros on both sides."""
    k = w.shape[2]
    padded = np.pad(x, ((k // 2, k // 2), (0, 0)))
    return np.array([sum(w[:, :, j] @ padded[i + j] for j in range(k)) + b for i in range(0, len(x), every)])


def attended(x, n_head, w, l, window, block=None):
    n, d = len(x), x.shape[1] // n_head
    cut = lambda y: y.reshape(n, n_head, d)
    q, k, v = (cut(x @ w[f"enc.blk.{l}.attn_{p}.weight"].T + (w[f"enc.blk.{l}.attn_q.bias"] if p == "q" else 0)) for p in "qkv")
    s = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(d)
    if window:
        s = np.where(np.abs(np.arange(n)[:, None] - np.arange(n)) <= window // 2, s, -np.inf)
    if block:
        s = np.where(np.arange(n)[:, None] // block == np.arange(n) // block, s, -np.inf)
    return np.einsum("hij,jhd->ihd", softmax(s), v).reshape(n, -1)


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def hears(w, x, tokens, n_head, n_enc, n_dec):
    w = {name: t.astype(np.float64) for name, t in w.items()}
    x = convolved(gelu(convolved(x, w["enc.conv1.weight"], 0, 1)), w["enc.conv2.weight"], 0, 2)
    x = x + w["enc.position_embd.weight"][: len(x)]
    for l in range(n_enc):
        x = x + attended(x, n_head, w, l, None)
    y = w["dec.token_embd.weight"][tokens] + w["dec.position_embd.weight"][: len(tokens)]
    cut = lambda z: z.reshape(len(z), n_head, -1)
    for l in range(n_dec):
        at = lambda part, z: cut(z @ w[f"dec.blk.{l}.{part}.weight"].T)
        q = at("attn_q", y)
        s = np.einsum("ihd,jhd->hij", q, q) / math.sqrt(q.shape[2])
        s = np.where(np.arange(len(y))[:, None] >= np.arange(len(y)), s, -np.inf)
        y = y + np.einsum("hij,jhd->ihd", softmax(s), q).reshape(len(y), -1)
        s = np.einsum("ihd,jhd->hij", at("cross_q", y), at("cross_k", x)) / math.sqrt(q.shape[2])
        y = y + np.einsum("hij,jhd->ihd", softmax(s), at("cross_v", x)).reshape(len(y), -1)
    return y @ w["dec.token_embd.weight"].T


def forward(w, x, n_head, n_layer, join, block):
    w = {name: t.astype(np.float64) for name, t in w.items()}
    x = gelu(convolved(x, w["enc.conv1.weight"], w["enc.conv1.bias"], 1))
    x = convolved(x, w["enc.conv2.weight"], 0, 2) + x[::2]
    x = x + w["enc.position_embd.weight"][: len(x)]
    for l in range(n_layer):
        x = x + attended(x, n_head, w, l, 6 if l == 1 else None, block if l == 2 else None)
    rows = []
    for i in range(1, len(x), join):
        row = np.zeros((join, x.shape[1]))
        row[: len(x[i : i + join])] = x[i : i + join]
        rows.append(w["mm.m.weight"] @ row.ravel() + w["mm.m.bias"])
    return np.array(rows)


def moved(run, x, want):
    """How far results move, as a share of their range, if the last digits of the input's floats do. Some random models have attention so sharp that f32 between
    operators moves them by more than the usual bound."""
    g = np.random.default_rng(1)
    return max(np.abs(run(x * (1 + g.uniform(-1, 1, x.shape) * 2.0**-24)) - want).max() for _ in range(4)) / np.abs(want).max()


def test_stages(r, seed):
    g = np.random.default_rng(seed)
    n_head, n_in, join, n_layer, n_out = (int(g.integers(*x)) for x in ((1, 4), (1, 20), (1, 5), (0, 4), (1, 40)))
    n_embd, n, block = n_head * int(g.integers(1, 20)), int(g.integers(3, 150)), int(g.integers(1, 60))
    random = lambda *shape: (g.normal(size=shape) / math.sqrt(shape[-1])).astype(np.float32)
    w = {"enc.conv1.weight": random(n_embd, n_in, 3), "enc.conv1.bias": random(n_embd), "enc.conv2.weight": random(n_embd, n_embd, 5),
         "enc.position_embd.weight": random(80, n_embd), "mm.m.weight": random(n_out, n_embd * join), "mm.m.bias": random(n_out)}
    for l in range(n_layer):
        w |= {f"enc.blk.{l}.attn_{p}.weight": random(n_embd, n_embd) for p in "qkv"} | {f"enc.blk.{l}.attn_q.bias": random(n_embd)}
    meta = {"general.architecture": "rows"} | {"rows." + k: v for k, v in {
        "embedding_length": n_embd, "input_length": n_in, "attention.head_count": n_head, "join": join, "block": block, "context_length": 80, "block_count": n_layer,
        "output_length": n_out}.items()}
    x = g.normal(size=(n, n_in)).astype(np.float32)
    run = lambda x: forward(w, x, n_head, n_layer, join, block)
    want = run(x.astype(np.float64))
    least = 20 * moved(run, x.astype(np.float64), want)
    name = f"{n} rows of {n_in}, {n_layer} layers of {n_embd}, {join} joined, blocks of {block}"
    for backend, most in (("cpu", 1e-4), ("reference", 5e-6)):
        got = r.run("rows.arch", meta, w, "--rows", None, str(n), rows=x, backend=backend)
        off = np.abs(got.reshape(-1, n_out) - want).max() / np.abs(want).max() if got.size == want.size else np.inf
        r.tell(f"{name}, {backend}", off < max(most, least), f"{off:.1e} of the range, {len(want)} rows, by rounding {least:.1e}")
    return meta, w, n_in


def test_hears(r, seed):
    g = np.random.default_rng(seed)
    n_head, n_in, n_enc, n_dec, n_vocab = (int(g.integers(*x)) for x in ((1, 4), (1, 20), (0, 3), (1, 4), (9, 40)))
    n_embd, most, n_ctx = n_head * int(g.integers(1, 20)), int(g.integers(3, 150)), int(g.integers(4, 90))
    n, tokens = int(g.integers(1, most + 1)), g.integers(0, n_vocab, int(g.integers(1, n_ctx + 1)))
    random = lambda *shape: (g.normal(size=shape) / math.sqrt(shape[-1])).astype(np.float32)
    w = {"enc.conv1.weight": random(n_embd, n_in, 3), "enc.conv2.weight": random(n_embd, n_embd, 3),
         "enc.position_embd.weight": random((most + 1) // 2, n_embd), "dec.token_embd.weight": random(n_vocab, n_embd),
         "dec.position_embd.weight": random(n_ctx, n_embd)}
    for l in range(n_enc):
        w |= {f"enc.blk.{l}.attn_{p}.weight": random(n_embd, n_embd) for p in "qkv"} | {f"enc.blk.{l}.attn_q.bias": random(n_embd)}
    for l in range(n_dec):
        w |= {f"dec.blk.{l}.{p}.weight": random(n_embd, n_embd) for p in ("attn_q", "cross_q", "cross_k", "cross_v")}
    meta = {"general.architecture": "hears", "tokenizer.ggml.bos_token_id": 0} | {"hears." + k: v for k, v in {
        "embedding_length": n_embd, "input_length": n_in, "input_count": most, "attention.head_count": n_head, "enc_block_count": n_enc,
        "block_count": n_dec, "context_length": n_ctx, "vocab_size": n_vocab}.items()}
    x = g.normal(size=(n, n_in)).astype(np.float32)
    run = lambda x: hears(w, x, tokens, n_head, n_enc, n_dec)
    want = run(x.astype(np.float64))
    least = 20 * moved(run, x.astype(np.float64), want)
    for backend, limit in (("cpu", 1e-4), ("reference", 5e-6)):
        got = r.run("hears.arch", meta, w, "--read", None, str(n), "--tokens", ",".join(map(str, tokens)), rows=x, backend=backend)
        off = np.abs(got.reshape(len(tokens), -1) - want).max() / np.abs(want).max() if got.size == want.size else np.inf
        r.tell(f"{len(tokens)} tokens that read {n} rows, {n_enc} + {n_dec} layers of {n_embd}, {backend}", off < max(limit, least), f"{off:.1e} of the range, by rounding {least:.1e}")
    said = r.run("hears.arch", meta, w, "--read", None, str(most + 1), "--tokens", "0", rows=np.zeros((most + 1, n_in)), code=1)
    r.tell("one row too many", f"has {most + 1} rows" in said and f"made for {most}" in said, said.strip()[:60])


def test_mistakes(r, meta, w, n_in):
    """Inputs that give a stage no rows, or more rows than it has positions for."""
    for n, words in ((1, "makes none"), (400, "position_embd")):
        said = r.run("rows.arch", meta, w, "--rows", None, str(n), rows=np.zeros((n, n_in)), code=1)
        r.tell(f"{n} rows", words in said, said.strip()[:60])


def test_given(r, seed):
    g = np.random.default_rng(seed)
    n_embd, n_vocab, n_layer = 2 * 2 * int(g.integers(1, 12)), 40, int(g.integers(1, 4))
    random = lambda *shape: (g.normal(size=shape) / math.sqrt(shape[-1])).astype(np.float32)
    w = {"token_embd.weight": random(n_vocab, n_embd)}
    for l in range(n_layer):
        w |= {f"blk.{l}.attn_{p}.weight": random(n_embd, n_embd) for p in "qv"}
    meta = {"general.architecture": "given", "given.embedding_length": n_embd, "given.block_count": n_layer, "given.vocab_size": n_vocab,
            "given.context_length": 64}
    tokens = g.integers(0, n_vocab, int(g.integers(4, 40)))
    first = int(g.integers(0, len(tokens) - 1))
    n = int(g.integers(1, len(tokens) - first))
    logits = lambda tokens, first, rows: r.run("given.arch", meta, w, "--tokens", ",".join(map(str, tokens)), "--given", None, str(first), str(len(rows)),
                                               rows=rows)
    own = w["token_embd.weight"][tokens[first : first + n]] * np.float32(3)
    plain = logits(tokens, 0, own[:0])
    others = tokens.copy()
    others[first : first + n] = 0
    same = logits(others, first, own)
    r.tell(f"{n} of {len(tokens)} tokens given, from {first}", np.array_equal(plain.view(np.uint32), same.view(np.uint32)))
    other = logits(tokens, first, own + np.float32(1)).reshape(len(tokens), -1)
    plain = plain.reshape(len(tokens), -1)
    r.tell("other rows change what follows, and no more", np.array_equal(plain[:first], other[:first]) and (plain[first:] != other[first:]).any(1).all())


def test_branches(r):
    """Of stages in the branches of an `if`, those of the branch that is taken run, all of them."""
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    for kind in (1, 2):
        got = r.run("branches.arch", {"general.architecture": "branches", "branches.context_length": 16, "branches.kind": kind}, {}, "--rows", None, "6", rows=x)
        r.tell(f"branch {kind}", np.array_equal(got, (x * (kind + 1) + 100 * kind).ravel()), str(got[:4]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--dir", required=True)
    p.add_argument("rows")
    r = Runner(p.parse_args())
    try:
        for seed in today.sample("shapes", range(40), 6):
            model = test_stages(r, seed)
            test_given(r, seed)
            test_hears(r, seed)
        test_mistakes(r, *model)
        test_branches(r)
    finally:
        r.clean()
    return int(r.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
