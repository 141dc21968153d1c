#!/usr/bin/env python3
"""Queries of ColBERT's kind: filled up with masks that other tokens do not see. llm-embed's scores of lines are compared with MaxSim over the rows of a
forward pass of BERT in numpy (Devlin et al. 2018; Khattab & Zaharia 2020, section 3.2).

    colbert.py --cli LLM_CLI --dir FOLDER --embed LLM_EMBED [--server LLM_SERVER]

llm-server's vectors of tokens and its /v1/rerank are compared, too.

Exit code 0, 1."""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../server"))
import encoder_file
import gguf
import running
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
    parser.add_argument("--server")
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
        if a.server:
            with running.Server([a.server, "-m", model, "--pooling", "none", "-t", "1"]) as s:
                def post(path, body):
                    status, _, text = s.post(path, body)
                    return json.loads(text) if status == 200 else print("FAILED:", path, status, text)

                unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)
                rows = [unit(np.array(x["embedding"])) for x in post("/embedding", {"input": [QUERY, LINES[3]], "prompt_name": "query"})]
                plain = unit(np.array(post("/embedding", {"input": QUERY, "prompt_name": "document"})[0]["embedding"]))
                short = tokens(LINES[3])
                far = max(np.abs(rows[0] - query).max() if rows[0].shape == query.shape else np.inf,
                          np.inf if len(rows[1]) != (LENGTH if seen is not None else len(short)) else 0,
                          np.abs(plain - forward(w, ids, 99)).max() if len(plain) == n else np.inf)
                ranked = post("/v1/rerank", {"query": QUERY, "documents": LINES, "return_documents": True})
                got = {x["index"]: x["relevance_score"] for x in ranked["results"]}
                far = max(far, max(abs(got.get(i, np.nan) - x) for i, x in enumerate(want)))
                order = [x["index"] for x in ranked["results"]]
                ok = far < 1e-4 and order == sorted(range(len(want)), key=lambda i: -want[i]) and all(LINES[x["index"]] == x["document"]["text"] for x in ranked["results"])
                ok &= ranked["usage"]["prompt_tokens"] == len(filled) + sum(len(tokens(x)) for x in LINES)
                print(f"{name:10} {far:8.1e}, llm-server  {'ok' if ok else 'FAILED'}")
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
