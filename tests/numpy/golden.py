#!/usr/bin/env python3
"""Runs the engine on nano models and compares its logits with those that llama.cpp computed from the same weights.

    golden.py --cli LLM_CLI --dir FOLDER [--backend NAME] [--sample N] [NAME ..]
    golden.py --cli LLM_CLI --dir FOLDER --forks   models with the types that llama.cpp does not know, beside a forward pass in float64
    golden.py --list                  the names
    golden.py --record NAME=FILE ..   prints the entries of models whose logits another engine wrote into FILE: float32, [tokens, vocabulary]

The logits are in ../golden/llama.cpp.txt; ../golden/README.md describes the file. The weights are not stored: ./plain.py, ./constructs.py,
./twins and ./typed.py make them again from their seeds, and a digest shows that they are the same. A line for each model: the largest difference and the
limit. Exit code 0, 1; 77 if this numpy draws other random numbers, or if there is no such backend.
"""
import argparse
import os
import subprocess
import sys

import numpy as np

import check
import gguf
import nano
import today
import typed
from recorded import DRAWN, drawn, short_digest

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "llama.cpp.txt")
POSITIONS = 11, 23
UNIT = 1e-5
# An engine in float32 is at most so far from exact arithmetic. llama.cpp's own distance, which a model's entry states, comes on top.
LIMIT = 1e-4
# With quantized matrices both engines round activations to 8 bits, which makes a mean difference; ours may be as much larger than llama.cpp's.
SLACK = 1.15
# Where there is no other engine: what rounding to 8 bits may make of the logits of a model whose matrices have 5 or 6 bits.
ROUNDED = 0.02


class Golden:
    def __init__(self, name, arch, digest, distance):
        self.name, self.arch, self.digest, self.distance, self.rows = name, arch, digest, float(distance), {}


def read(path=FILE):
    out = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            word, *rest = line.split() or ["#"]
            if word == "model":
                golden = out[rest[0]] = Golden(*rest)
            elif not word.startswith("#"):
                golden.rows[int(word)] = np.array([int(x) for x in rest]) * UNIT
    return out


def cases(names):
    """The models with these names. Making those of ./typed.py takes a second."""
    nano.load_all()
    return nano.CASES if set(names) <= set(nano.CASES) else {**nano.CASES, **typed.cases()}


def difference(case, pairs):
    """Of pairs of rows: the mean where arithmetic is coarse, else the largest."""
    d = np.concatenate([np.abs(a - b) for a, b in pairs])
    return d.mean() if case.quantized else d.max()


def limit_of(case, golden):
    return golden.distance * (1 + SLACK) if case.quantized else golden.distance + LIMIT


def digest_of(case):
    """Of the keys and of all tensors, so that a changed model is noticed."""
    keys = repr(sorted(case.meta().items())).encode()
    tensors = [(n, gguf.blocks_of(t, n)) for n, t in sorted(case.tensors.items())]
    return short_digest(keys, *(f"{n} {t.kind} {tuple(t.shape)}".encode() + t.data for n, t in tensors))


def compare(a, case, golden):
    model, out = os.path.join(a.dir, f"golden-{case.name}.gguf"), os.path.join(a.dir, f"golden-{case.name}.npy")
    gguf.write(model, case.meta(), case.tensors)
    try:
        got = check.run_engine(a.cli, model, case, out, "--backend", a.backend)
    finally:
        for path in model, out:
            if os.path.exists(path):
                os.unlink(path)
    far = difference(case, [(got[at], row) for at, row in golden.rows.items()])
    limit = limit_of(case, golden)
    print(f"{case.name:26} {'mean' if case.quantized else 'max '} {far:8.1e}, at most {limit:8.1e}  {'ok' if far <= limit else 'TOO FAR'}")
    return far <= limit


def compare_forks(a):
    """Of the models of ./typed.py that llama.cpp.txt does not have. Returns how many failed."""
    goldens, failed = read(), 0
    nano.load_all()
    for name, case in typed.cases().items():
        if name not in goldens:
            golden = Golden(name, case.arch, "", ROUNDED / (1 + SLACK) if case.quantized else 0)
            golden.rows = dict(enumerate(case.logits()))
            failed += not compare(a, case, golden)
    return failed


def has_backend(a):
    """False if no such device is there, which a model that is known to work tells apart from a fault."""
    model = os.path.join(os.path.dirname(FILE), "..", "data", "stories-qwen3.gguf")
    done = subprocess.run([a.cli, "-m", model, "--backend", a.backend, "--tokens", "1", "-n", "0"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        print("skipped:", done.stderr.strip())
    return done.returncode == 0


def record(items):
    items = dict(item.split("=") for item in items)
    known = cases(items)
    for name, path in items.items():
        case = known[name]
        exact = case.logits()
        got = np.fromfile(path, np.float32).reshape(exact.shape)
        distance = difference(case, [(got[at], exact[at]) for at in POSITIONS])
        print(f"model {name} {case.arch} {digest_of(case)} {distance:.1e}")
        for at in POSITIONS:
            print(at, *(round(float(x) / UNIT) for x in got[at]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--dir", default=".")
    p.add_argument("--backend", default="cpu")
    p.add_argument("--sample", type=int)
    p.add_argument("--list", action="store_true")
    p.add_argument("--forks", action="store_true")
    p.add_argument("--record", action="store_true")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    if a.record:
        record(a.names)
        return 0
    goldens = read()
    if a.list:
        print("\n".join(goldens))
        return 0
    if a.backend != "cpu" and not has_backend(a):
        return 77
    os.makedirs(a.dir, exist_ok=True)
    if a.forks:
        return 1 if compare_forks(a) else 0
    names = today.sample("golden", a.names or goldens, a.sample)
    known, failed = cases(names), 0
    for name in names:
        case, golden = known.get(name), goldens[name]
        if case is None or digest_of(case) != golden.digest:
            if drawn() != DRAWN:
                print(f"skipped: numpy {np.__version__} draws other random numbers than the one that made the weights of tests/golden/llama.cpp.txt")
                return 77
            print(f"{name:26} FAILED: its keys or weights are not those from which tests/golden/llama.cpp.txt was computed")
            failed += 1
            continue
        try:
            failed += not compare(a, case, golden)
        except RuntimeError as e:
            print(f"{name:26} FAILED: {e}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
