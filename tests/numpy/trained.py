#!/usr/bin/env python3
"""Small trained gpt2 models: the one that sorts (bbycroft/llm-viz, gpt-nano), one step after the other against its author's
values; then what it sorts, and what the one that knows a page by heart (SLM_4096) recites.

    trained.py --cli LLM_CLI --dir FOLDER SHARED     SHARED: the folder of reference files; exit code 77 if it lacks them

Every intermediate value is compared twice: as the numpy pass computes it, and as the engine does. For the latter the shipped
descriptor is cut behind the line that computes the value, which becomes the "logits" of a model with as many tokens as the
value has elements.
"""
import argparse
import base64
import json
import os
import re
import subprocess
import sys

import numpy as np

import families
import gguf
from blocks import distance, softmax

LIMIT = 2e-5  # the author's values are float32, and grow to 8 in the logits
MODEL, VALUES = "models/gpt-nano-sort-f32.gguf", "models/gpt-nano-sort-t0-partials.json"
PAGE_MODEL, PAGE = "models/slm4096-f32.gguf", "models/slm4096-corpus.txt"
DESCRIPTOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/archs/gpt2.arch")

# name of the author's value -> (start of the last line of the descriptor that is needed, how often it stands there before,
# layers, lines instead of the rest, elements)
STEPS = {
    "tok_emb": ("x = token_embd", 0, 0, ["x = x - position_embd[pos]"], 48),
    "pos_emb": ("x = token_embd", 0, 0, ["x = x - token_embd[token]"], 48),
    "x": ("x = token_embd", 0, 0, [], 48),
    "ln1": ("h = layer_norm", 0, 1, ["x = h"], 48),
    "qkv": ("h = layer_norm", 0, 1, ["x = linear(h, attn_qkv)"], 144),
    "q": ("q, k, v = split", 0, 1, ["x = q"], 48),
    "k": ("q, k, v = split", 0, 1, ["x = k"], 48),
    "v": ("q, k, v = split", 0, 1, ["x = v"], 48),
    # the scores with the last 11 keys, the token's own last
    "att": ("q, k, v = split", 0, 1, ["k = transpose(reshape(recent(k, 11), 16, 3, 11), 1, 2)",
                                      "x = flat(linear(heads(q, n_head), k)) / sqrt(16)"], 33),
    # values that are a row of the unit matrix: what attention gives are its weights
    "attSm": ("q, k, v = split", 0, 1, ["one = iota(11) == pos", "one = repeat(reshape(one, 11, 1), 11, n_head)",
                                        "x = attention(heads(q, n_head), heads(k, n_head), one)"], 33),
    "y": ("a = attention", 0, 1, ["x = a"], 48),
    "yProj": ("a = attention", 0, 1, ["x = linear(a, attn_output)"], 48),
    "attnResid": ("x = x + linear(a", 0, 1, [], 48),
    "ln2": ("h = layer_norm", 1, 1, ["x = h"], 48),
    "fc": ("h = layer_norm", 1, 1, ["x = linear(h, ffn_up)"], 192),
    "gelu": ("h = layer_norm", 1, 1, ["x = gelu(linear(h, ffn_up))"], 192),
    "mlp": ("h = layer_norm", 1, 1, ["x = linear(gelu(linear(h, ffn_up)), ffn_down)"], 48),
    "mlpResid": ("x = x + linear(gelu", 0, 1, [], 48),
    "block0": ("x = x + linear(gelu", 0, 1, [], 48),
    "block1": ("x = x + linear(gelu", 0, 2, [], 48),
    "block2": ("x = x + linear(gelu", 0, 3, [], 48),
    "ln_f": ("output_norm", 0, 3, ["x = layer_norm(x, output_norm, eps)"], 48),
    "lm_head": ("logits", 0, 3, [], 5),
    "probs": ("logits", 0, 3, ["a, b = split(logits, 3, 2)", "logits = concat(softmax(a), b)"], 5),
}


def cut_descriptor(text, start, skip, n_layer, more):
    """The text up to that line, then the lines in more; declarations and names that are no longer used go."""
    out = []
    for line in text.split("convert ")[0].splitlines():
        line = line.split("#")[0].rstrip()
        if line.strip():
            out.append(line.replace("l < n_layer", f"l < {n_layer}"))
        if line.strip().startswith(start):
            skip -= 1
            if skip < 0:
                break
    indent = re.match(" *", out[-1]).group()
    if not any("logits" in line for line in out):
        more = more + ["\nlogits = x"]
    out += [indent + line if line[0] != "\n" else line[1:] for line in more] + ['ignore "*"', 'ignore ".*"']
    while True:
        body = "\n".join(out)
        used = [line for line in out if not (d := re.match(r" *(\w+(?:, \w+)*) +[=\[]", line)) or d.group(1) == "logits"
                or any(len(re.findall(rf"(?<![.\w]){name}\b", body)) > 1 for name in d.group(1).split(", "))]
        if used == out:
            return body + "\n"
        out = used


class Engine:
    def __init__(self, cli, folder, meta, tensors):
        self.cli, self.folder, self.meta, self.tensors = cli, folder, meta, tensors
        with open(DESCRIPTOR) as f:
            self.text = f.read()

    def path(self, end):
        return os.path.join(self.folder, "sort" + end)

    def run(self, name, tokens):
        *where, size = STEPS[name]
        embedding = self.tensors["token_embd.weight"]
        rows = np.zeros((size, embedding.shape[1]), np.float32)
        rows[: len(embedding)] = embedding
        meta = {k: v for k, v in self.meta.items() if not k.startswith("tokenizer.")}
        gguf.write(self.path(".gguf"), {**meta, "gpt2.vocab_size": size}, {**self.tensors, "token_embd.weight": rows})
        with open(self.path(".arch"), "w") as f:
            f.write(cut_descriptor(self.text, *where))
        command = [self.cli, "-m", self.path(".gguf"), "--arch", self.path(".arch"), "--tokens", ",".join(map(str, tokens)),
                   "-n", "0", "-ctk", "f32", "-ctv", "f32", "--logits", self.path(".npy")]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")
        return np.load(self.path(".npy"))

    def remove(self):
        for end in (".gguf", ".arch", ".npy"):
            if os.path.exists(self.path(end)):
                os.unlink(self.path(end))


def rows_of(name, got, n):
    """An engine's rows [T, size] in the author's shape, and which elements count."""
    if name in ("q", "k", "v"):
        return got.reshape(n, 3, 16).transpose(1, 0, 2)
    if name == "attSm":
        return got.reshape(n, 3, n).transpose(1, 0, 2)
    if name == "att":  # column 10 is the token itself, 9 the one before, ..
        scores = got.reshape(n, 3, n).transpose(1, 0, 2)
        out = np.full((3, n, n), -np.inf)
        for i in range(n):
            out[:, i, : i + 1] = scores[:, i, n - 1 - i :]
        return out
    return got[:, :3] if name in ("lm_head", "probs") else got


def numpy_steps(keys, w, tokens):
    steps = []
    logits = families.gpt2(lambda k, *d: keys.get(k, *d), w, tokens, len(tokens), steps)[:, :3]
    out = dict(steps, lm_head=logits, probs=softmax(logits))
    out["tok_emb"], out["pos_emb"] = w["token_embd.weight"][tokens], w["position_embd.weight"]
    out["qkv"] = np.concatenate([out["q"], out["k"], out["v"]], -1)
    for name in "qkv":
        out[name] = out[name].reshape(-1, 3, 16).transpose(1, 0, 2)
    scores = out["q"] @ out["k"].transpose(0, 2, 1) / 4
    out["att"] = np.where(np.tril(np.ones(scores.shape[1:])) > 0, scores, -np.inf)
    out["attSm"] = softmax(out["att"])
    return out


def goes_on(cli, model, prompt, want):
    """Greedily, the model says the pieces in want after those in prompt: its ids or, where there is a tokenizer, its text."""
    pieces = [t.replace("\u010a", "\n").replace("\u0120", " ") for t in gguf.read(model)[0]["tokenizer.ggml.tokens"]]
    ids = [pieces.index(c) for c in want]
    command = [cli, "-m", model, "--tokens", ",".join(str(pieces.index(c)) for c in prompt), "-n", str(len(ids)), "--temp", "0",
               "--no-display-prompt"]
    text = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.strip()
    ok = text in (",".join(map(str, ids)), want.strip())
    print(f"{prompt!r} -> {want!r}  {'ok' if ok else 'FAILED: ' + text}")
    return ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", default=".")
    p.add_argument("shared", nargs="?", default="")
    a = p.parse_args()
    model, values = os.path.join(a.shared, MODEL), os.path.join(a.shared, VALUES)
    if not os.path.exists(model) or not os.path.exists(values):
        print("skipped: models of other projects: not part of the repository, and found in no folder GGL_SHARED")
        return 77
    with open(values) as f:
        author = {name: np.frombuffer(base64.b64decode(v["data"]), "<f4").reshape(v["shape"])
                  for name, v in json.load(f).items() if "shape" in v}
    meta, tensors = gguf.read(model)
    keys = {k.split(".", 1)[1]: v for k, v in meta.items() if k.startswith("gpt2.")}
    w = {name: t.astype(np.float64) for name, t in tensors.items()}
    engine = Engine(a.cli, a.dir, meta, tensors)
    worst = {name: [0.0, 0.0] for name in STEPS}
    for i, row in enumerate(author["idx"]):
        tokens = [int(t) for t in row]
        here = numpy_steps(keys, w, tokens)
        for name in STEPS:
            want = author[name][i if len(author[name]) > 1 else 0].astype(np.float64)
            worst[name][0] = max(worst[name][0], distance(here[name], want))
            worst[name][1] = max(worst[name][1], distance(rows_of(name, engine.run(name, tokens).astype(np.float64), len(tokens)), want))
    engine.remove()
    missing = set(author) - set(STEPS) - {"idx"}
    ok = not missing
    for name, (here, there) in worst.items():
        good = here <= LIMIT and there <= LIMIT
        ok = ok and good
        print(f"{name:10} numpy {here:8.1e}  engine {there:8.1e}  {'ok' if good else 'FAILED'}")
    for row in author["idx"]:
        letters = "".join("ABC"[int(t)] for t in row[:6])
        ok = goes_on(a.cli, model, letters, "".join(sorted(letters))) and ok
    with open(os.path.join(a.shared, PAGE)) as f:
        page = f.read()
    ok = goes_on(a.cli, os.path.join(a.shared, PAGE_MODEL), page[:40], page[40:120]) and ok
    if missing:
        print("not compared:", sorted(missing))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
