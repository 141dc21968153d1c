#!/usr/bin/env python3
"""Queries of ColBERT's kind: filled up with masks that other tokens do not see. llm-embed's scores of lines are compared with MaxSim over the rows of a
forward pass of BERT in numpy (Devlin et al. 2018; Khattab & Zaharia 2020, section 3.2).

    colbert.py --cli LLM_CLI --dir FOLDER --embed LLM_EMBED

Exit code 0, 1."""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import encoder_file
import gguf
from blocks import attention, gelu, layer_norm, linear

HEADS, EPS, LENGTH, MASK = 4, 1e-6, 12, 4
QUERY, LINES = "a fox in the garden", ["the dog sleeps", "the small fox eats", "a cat sits on the big red house", "king"]


def forward(w, ids, n_seen):
    """The rows of all tokens, which see the first n_seen."""
    f = lambda name: np.asarray(w[name], float)
    norm = lambda x, name: layer_norm(x, f(name + ".weight"), f(name + ".bias"), EPS)
    dense = lambda x, name: linear(x, f(name + ".weight"), f(name + ".bias"))
    hidden = np.where(np.arange(len(ids)) < n_seen, 0, -np.inf)[None, None, :].repeat(HEADS, 0).repeat(len(ids), 1)
    x = norm(f("token_embd.weight")[ids] + f("token_types.weight")[0] + f("position_embd.weight")[: len(ids)], "token_embd_norm")
    for l in range(encoder_file.LAYERS):
        p = f"blk.{l}."
        q, k, v = (dense(x, p + "attn_" + n).reshape(len(ids), HEADS, -1) for n in "qkv")
        a = attention(q, k, v, both=True, bias=hidden).reshape(len(ids), -1)
        h = norm(x + dense(a, p + "attn_output"), p + "attn_output_norm")
        x = norm(h + dense(gelu(dense(h, p + "ffn_up")), p + "ffn_down"), p + "layer_output_norm")
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--cli", "--dir", "--embed"):
        parser.add_argument(name, required=True)
    a = parser.parse_args()
    vocabulary = {t[1:]: i for i, t in reversed(list(enumerate(encoder_file.vocabulary()))) if t.startswith("\u2581")}
    tokens = lambda text: [2, *(vocabulary[word] for word in text.split()), 3]
    faults = 0
    for name, keys, seen in (("plain", [], None), ("expanded", [("sentence_transformers.query_length", "u32", LENGTH)], False),
                             ("attended", [("sentence_transformers.query_length", "u32", LENGTH), ("sentence_transformers.attend_to_expansion_tokens", "bool", True)], True)):
        model = encoder_file.encoder(os.path.join(a.dir, name + ".gguf"), keys=keys)
        w = gguf.read(model)[1]
        ids = tokens(QUERY)
        n = len(ids)
        filled = ids + [MASK] * (LENGTH - n) if seen is not None else ids
        query = forward(w, filled, len(filled) if seen or seen is None else n)
        want = [float((query @ forward(w, tokens(line), 99).T).max(axis=1).sum()) for line in LINES]
        done = subprocess.run([a.embed, "-m", model, "--pooling", "none", "--query", QUERY, *sum((["-p", x] for x in LINES), [])], capture_output=True, text=True)
        got = {}
        for line in done.stdout.splitlines():
            x = json.loads(line)
            got[x["index"]] = x["score"]
        far = max((abs(got.get(i, np.nan) - s) for i, s in enumerate(want)), default=np.nan)
        ok = far < 1e-4
        print(f"{name:10} {far:8.1e} of {want[0]:.3f}  {'ok' if ok else 'FAILED ' + done.stderr}")
        faults += not ok
    for keys, words in (([("sentence_transformers.query_length", "u32", 1000)], "0 to 512"),):
        model = encoder_file.encoder(os.path.join(a.dir, "wrong.gguf"), keys=keys)
        done = subprocess.run([a.embed, "-m", model, "--pooling", "none", "--query", QUERY, "-p", "king"], capture_output=True, text=True)
        if done.returncode != 1 or words not in done.stderr:
            print("FAILED:", done.returncode, done.stderr)
            faults += 1
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
