#!/usr/bin/env python3
"""Runs the engine on nano models and compares its logits with ./families.py and ./constructs.py, or with what such a forward pass once gave.

    check.py --cli LLM_CLI --dir FOLDER [NAME ..]        --list: the names; --keep: leave the models in FOLDER
             --family NAME .. [--first]                  those of ./twins/NAME.py, or its first; --families: their names
             --record                                    prints the lines for ./recorded.txt of what the models' forward passes give

A line for each model: the largest difference of the double-precision backend, of the cpu backend, and of the cpu backend with
the prompt in pieces of 5 tokens, which must give the same bits as the cpu backend in one piece, also of guesses; where all tokens see each other, which
needs the whole text at once, between two other texts. Exit code 0, 1.
"""
import argparse
import os
import subprocess
import sys

import numpy as np

import gguf
import nano
import recorded

# The double-precision backend rounds the logits to float32, and so do the cached rows; float32 arithmetic of models this small
# stays well within 1e-4.
LIMIT_REFERENCE, LIMIT_CPU = 1e-5, 1e-4


def command_of(cli, model, case, out):
    """What writes the outputs of all tokens into a file."""
    tokens = ",".join(map(str, case.tokens))
    target = ["--target", model + ".target"] if case.target else []
    target += ["--layer", str(case.layer)] if case.layer else []
    if case.output:
        return [os.environ["TEST_OUTPUTS"], "-m", model, "--tokens", tokens, "--output", case.output, "--logits", out, *target]
    read = ["--encode-tokens", ",".join(map(str, case.read))] if case.read else []
    return [cli, "-m", model, *read, "--tokens", tokens, "-n", "0", "-c", str(case.n_ctx), "-t", "1", "-ctk", "f32", "-ctv", "f32", "--logits", out]


def write(model, case):
    """Writes the model's file, and that of the one for which it guesses. Returns their paths."""
    gguf.write(model, case.meta(), case.tensors)
    if case.target:
        gguf.write(model + ".target", case.target.meta(), case.target.tensors)
    return [model, model + ".target"] if case.target else [model]


def run_engine(cli, model, case, out, *more):
    command = command_of(cli, model, case, out) + list(more)
    if case.descriptor and not case.embedded:
        command += ["--arch", case.descriptor_path()]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode or "runtime error:" in done.stderr:
        raise RuntimeError(done.stderr.strip())
    return np.load(out)


def in_company(cli, model, case, out):
    """The case's rows where its text is the second of three in one batch."""
    before, after = case.tokens[5:12], case.tokens[::-1][:9]
    both = [",".join(map(str, tokens)) for tokens in (before, case.tokens, after)]
    command = command_of(cli, model, case, out)
    at = command.index("--tokens")
    done = subprocess.run(command[:at] + [x for text in both for x in ("--tokens", text)] + command[at + 2 :],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return np.load(out)[1:2] if case.output in ("rank", "mean") else np.load(out)[len(before) : -len(after)]


def check(cli, folder, case):
    model, out = os.path.join(folder, case.name + ".gguf"), os.path.join(folder, case.name + ".npy")
    files = write(model, case)
    want = case.outputs()
    scores = want.values[want.values > -np.inf]
    if not np.isfinite(scores).all() or len(scores) < want.shape[0] or scores.std() < 0.1 and len(scores) > 1:
        raise RuntimeError("the logits here are no numbers, or all the same")
    exact = run_engine(cli, model, case, out, "--backend", "reference")
    if exact.shape != want.shape:
        raise RuntimeError(f"rows of the shape {exact.shape}, not {want.shape}")
    reference = want.distance(exact)
    whole = run_engine(cli, model, case, out, "--backend", "cpu")
    cpu = want.distance(whole)
    same = np.array_equal(whole, in_company(cli, model, case, out) if case.output and not case.output.startswith("guess")
                          else run_engine(cli, model, case, out, "--backend", "cpu", "--pieces" if case.output else "-ub", "5"))
    ok = reference <= LIMIT_REFERENCE and cpu <= LIMIT_CPU and same
    print(f"{case.name:24} reference {reference:8.1e}  cpu {cpu:8.1e}  in pieces {'the same' if same else 'OTHER BITS'}"
          f"  of {scores.std():5.2f}  {'ok' if ok else 'FAILED'}")
    return ok, *files, out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--dir", default=".")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--families", action="store_true")
    p.add_argument("--family", nargs="+")
    p.add_argument("--first", action="store_true")
    p.add_argument("--record", action="store_true")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    if a.list:
        print("\n".join(nano.load_others()))
        return 0
    if a.families:
        print("\n".join(nano.FAMILIES))
        return 0
    if a.family:
        a.names = [n for family in a.family for n in nano.load_family(family)[: 1 if a.first else None]]
    elif a.names and set(a.names) <= set(nano.load_others()):
        pass
    else:
        nano.load_all()
    if a.record:
        print("\n".join(recorded.line_of(name, nano.CASES[name].logits()) for name in a.names))
        return 0
    os.makedirs(a.dir, exist_ok=True)
    failed = skipped = 0
    for name in a.names or nano.CASES:
        case = nano.CASES[name]
        try:
            ok, *files = check(a.cli, a.dir, case)
        except recorded.OtherNumpy:
            skipped += 1
            continue
        except RuntimeError as e:
            ok, files = False, []
            print(f"{name:24} FAILED: {e}")
        failed += not ok
        for path in [] if a.keep else files:
            os.unlink(path)
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
