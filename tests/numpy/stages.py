#!/usr/bin/env python3
"""Runs the engine on models of encoders, rerankers, diffusion and layers that guess that another engine ran, in a folder that is no part of the repository,
and compares what they give.

    stages.py --cli LLM_CLI --dir FOLDER GOLDEN [NAME ..]

GOLDEN has NAME.gguf.xz, NAME.json (the texts' tokens, and which files hold what) and the recorded arrays. All texts run in one batch, where they do not guess. Each number
must be within 1e-4 of the recorded one, in parts of the range of the file's numbers. Other texts have to become the recorded tokens. A line for each
file. Exit code 0, 1; 77 without the folder.
"""
import argparse
import io
import json
import lzma
import os
import subprocess
import sys

import numpy as np

LIMIT = 1e-4
# The last part but one of a file's name, and what ./outputs.c calls it. A row for each token, or one for each text.
EACH = {"tokens": "none", "encoder": "none", "logits": "logits", "target-logits": "logits"}
ALONE = {"hidden": "rows", "features": "rows", "draft-hidden": "guess-rows", "draft-logits": "guess"}  # a row for each token; texts run alone
WITHIN = {"fused"}  # what a model computes on the way, and gives to nobody
WHOLE = {"mean": "mean", "cls": "cls", "last": "last", "rank": "rank"}


def array(path):
    packed = path + ".xz"
    with lzma.open(packed) if os.path.exists(packed) else open(path, "rb") as f:
        return np.load(io.BytesIO(f.read())).astype(np.float64)


def outputs(model, texts, what, target=None):
    out = model + ".npy"
    words = [w for text in texts for w in ("--tokens", ",".join(map(str, text)))] + (["--target", target] if target else [])
    done = subprocess.run([os.environ["TEST_OUTPUTS"], "-m", model, "--output", what, "--logits", out, *words],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode or "runtime error:" in done.stderr:
        raise RuntimeError(done.stderr.strip())
    rows = np.load(out)
    os.unlink(out)
    return rows


def answer(cli, model, text, tokens):
    """The logits of a text's tokens, written by a model that reads another text first."""
    out = model + ".npy"
    ids = lambda tokens: ",".join(map(str, tokens))
    done = subprocess.run([cli, "-m", model, "--encode-tokens", ids(text), "--tokens", ids(tokens), "-n", "0", "-t", "1", "-ctk", "f32", "-ctv", "f32",
                           "--logits", out], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode or "runtime error:" in done.stderr:
        raise RuntimeError(done.stderr.strip())
    rows = np.load(out)
    os.unlink(out)
    return rows


def rows_of(a, model, target, about, entry, found):
    """What the engine gives for a recorded file. found: what all texts in one batch gave, by name."""
    kind, texts = entry["file"].split(".")[-2], about["inputs"]
    if kind in WHOLE:
        if kind not in found:
            found[kind] = outputs(model, texts, WHOLE[kind])
        return found[kind]
    i = [len(t) for t in texts].index(int(entry["file"].split(".")[-3]))
    if kind in ALONE:
        return outputs(model, [texts[i]], ALONE[kind], target)
    if kind == "logits" and "decoder_inputs" in about:
        return answer(a.cli, model, texts[i], about["decoder_inputs"][i])
    if EACH[kind] not in found:
        found[EACH[kind]] = outputs(target or model, texts, EACH[kind])
    end = sum(len(t) for t in texts[: i + 1])
    return found[EACH[kind]][end - len(texts[i]) : end]


def compare(folder, name, entry, got):
    want = array(os.path.join(folder, entry["file"]))
    if got.shape != want.shape:
        print(f"{entry['file']:34} FAILED: its rows are {want.shape}, not {got.shape}")
        return False
    none = want < -1e29  # minus infinity
    if (got[none] > -1e29).any():
        print(f"{entry['file']:34} FAILED: scores where there are none")
        return False
    got, want = got[~none], want[~none]
    far = np.abs(got - want).max() / (want.max() - want.min())
    print(f"{entry['file']:34} {far:8.1e}  {'ok' if far <= LIMIT else 'TOO FAR'}")
    return bool(far <= LIMIT)


def same_tokens(a, model, about):
    """Whether llm-tokenize, beside llm-cli, makes the recorded tokens of the texts."""
    tool, ok = os.path.join(os.path.dirname(a.cli), "llm-tokenize"), True
    for t in about.get("texts", []) if os.path.exists(tool) else []:
        done = subprocess.run([tool, "-m", model, "--ids", "--no-parse-special", "-p", t["text"]],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode or json.loads(done.stdout) != t["ids"]:
            print(f"{about['name']}: other tokens of {t['text']!r}: {(done.stdout + done.stderr).strip()}, not {t['ids']}")
            ok = False
    return ok


def unpacked(a, file):
    path = os.path.join(a.dir, "stages-" + file[: -len(".xz")])
    with lzma.open(os.path.join(a.golden, file)) as packed, open(path, "wb") as out:
        out.write(packed.read())
    return path


def check(a, name):
    with open(os.path.join(a.golden, name + ".json"), encoding="utf-8") as f:
        about = json.load(f)
    model = unpacked(a, name + ".gguf.xz")
    target = unpacked(a, about["target"]) if "target" in about else None
    ok, found = True, {}
    try:
        for entry in about["files"]:
            if entry["file"].split(".")[-2] not in WITHIN:
                ok = compare(a.golden, name, entry, rows_of(a, model, target, about, entry, found)) and ok
    except (RuntimeError, KeyError) as e:
        print(f"{name}: FAILED: {e}")
        ok = False
    tokens_ok = same_tokens(a, model, about)
    for path in (model, target) if target else (model,):
        os.unlink(path)
    return ok and tokens_ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", default=".")
    p.add_argument("golden")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    names = a.names or sorted(f[:-5] for f in os.listdir(a.golden) if f.endswith(".json")) if os.path.isdir(a.golden) else []
    if not names:
        print("skipped: reference models of encoders: not part of the repository, and found in no folder GGL_SHARED")
        return 77
    os.makedirs(a.dir, exist_ok=True)
    failed = sum(not check(a, name) for name in names)
    print(f"{failed} models failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
