#!/usr/bin/env python3
"""llm-lora: merged models against --lora and against numpy, extracted adapters against numpy's singular value decomposition.

    lora.py --cli LLM_CLI --dir FOLDER LLM_LORA LLM_QUANTIZE

The model is the nano one of Mixtral's form: matrices, stacks of experts, an embedding, norms. Exit code 0, 1.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

import gguf
import nano

failed = False
RANK, ALPHA, SCALE = 3, 6.0, 0.75


def fault(text):
    global failed
    failed = True
    print("FAILED:", text)


def call(code, words, *command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != code or words not in done.stdout + done.stderr or "runtime error:" in done.stderr or "Sanitizer" in done.stderr:
        fault(f"{' '.join(command[1:])}: exit code {done.returncode}, not {code}; '{words}' is expected in: {done.stdout}{done.stderr}")
    return done.stdout


def logits(a, case, path, *more):
    out = path + ".npy"
    call(0, "", a.cli, "-m", path, "--tokens", ",".join(map(str, case.tokens)), "-n", "0", "-c", str(case.n_ctx), "-t", "1", "--logits", out, *more)
    return np.load(out)


def product(name, a, b):
    """B A of the halves as they are in the file, in numpy's order: [out, in], or [n, out, in]."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return a @ b.T if name == "token_embd.weight" else b @ a


def pair(rng, name, w):
    n_out, n_in = w.shape[-2:]
    stack = w.shape[:-2]
    a, b = rng.normal(size=(*stack, RANK, n_in)), rng.normal(size=(*stack, n_out, RANK)) * 0.1
    return [x.astype(np.float32) for x in ((b, a.T) if name == "token_embd.weight" else (a, b))]


def with_magnitudes(rng, names, case, pairs):
    """The pairs with lengths of their rows, but for the embedding's."""
    def sizes(w):
        return (np.linalg.norm(w, axis=-1) * rng.uniform(0.7, 1.3, w.shape[:-1])).astype(np.float32)
    return {n: p if n == "token_embd.weight" else [*p, sizes(case.tensors[n])] for n, p in pairs.items()}


def changed(base, w, name, scale, parts):
    """w with the change of a pair, whose magnitudes, if it has some, are over the lengths of base with that change."""
    add = scale * product(name, *parts[:2])
    return w + add if len(parts) == 2 else (w + add) * (parts[2] / np.linalg.norm(base + add, axis=-1))[..., None]


def write_adapter(path, pairs, arch, alpha=None):
    meta = {"general.type": "adapter", "adapter.type": "lora", "general.architecture": arch, **({} if alpha is None else {"adapter.lora.alpha": alpha})}
    tensors = {f"{n}.lora_{part}": np.ascontiguousarray(x) for n, p in pairs.items() for part, x in zip(("a", "b", "magnitude"), p)}
    gguf.write(path, meta, tensors)


def merges(a, folder, case, arch, model, names, sized):
    rng = np.random.default_rng(1)
    one, two, merged = (os.path.join(folder, n) for n in ("one.gguf", "two.gguf", "merged.gguf"))
    first = {n: pair(rng, n, case.tensors[n]) for n in names}
    second = {n: pair(rng, n, case.tensors[n]) for n in names[::2]}
    if sized:
        first, second = (with_magnitudes(rng, names, case, pairs) for pairs in (first, second))
    write_adapter(one, first, arch, ALPHA)
    write_adapter(two, second, arch)
    call(0, f"{len(names)} of ", a.lora, "merge", model, f"{one}={SCALE}", two, "-o", merged)
    _, tensors = gguf.read(merged)
    for name, w in case.tensors.items():
        want = base = w.astype(np.float64)
        if name in first:
            want = changed(base, want, name, SCALE * ALPHA / RANK, first[name])
        if name in second:
            want = changed(base, want, name, 1, second[name])
        got = np.asarray(tensors[name], np.float64).reshape(want.shape)
        if np.abs(got - want).max() > 0.51 * np.spacing(np.float32(np.abs(want).max())):
            fault(f"merged {name} differs from numpy's by {np.abs(got - want).max()}")
    run, plain = logits(a, case, model, "--lora", f"{one}:{SCALE},{two}"), logits(a, case, model)
    far = np.abs(logits(a, case, merged) - run).max()
    print(f"merged and run-time logits differ by {far:.1e}; the adapters change them by {np.abs(run - plain).max():.1e}")
    if far > 1e-4 * np.abs(run).max() or np.abs(run - plain).max() < 0.1:
        fault("merged logits are not those of --lora")
    # threads, types, and what is refused
    data = open(merged, "rb").read()
    call(0, "", a.lora, "merge", model, f"{one}={SCALE}", two, "-o", merged, "-t", "7")
    if data != open(merged, "rb").read():
        fault("the merged file depends on threads")
    call(0, "", a.lora, "merge", model, one, "-o", merged, "--type", "f16")
    if os.path.getsize(merged) >= len(data):
        fault("--type f16 makes nothing smaller")
    call(2, "does not have type f17", a.lora, "merge", model, one, "-o", merged, "--type", "f17")
    call(2, "also the file of", a.lora, "merge", model, one, "-o", one)
    write_adapter(two, {"blk.9.attn_q.weight": first[names[1]]}, arch)
    call(1, "blk.9.attn_q.weight", a.lora, "merge", model, two, "-o", merged)
    wrong = first[names[1]]
    write_adapter(two, {names[1]: [wrong[0], wrong[1] * np.float32("inf"), *wrong[2:]]}, arch)
    call(1, "NaN or infinite", a.lora, "merge", model, two, "-o", merged + ".none")
    if os.path.exists(merged + ".none"):
        fault("a failed merge leaves a file")
    shown = call(0, f"{len(names)} pairs, rank {RANK}", a.lora, "show", one)
    name = names[1]
    norm = ALPHA / RANK * np.linalg.norm(product(name, *first[name][:2]))
    line = re.search(rf"{re.escape(name)} .* norm (\S+)" + ("  magnitudes" if sized else "$"), shown, re.M)
    if ("4 with magnitudes (DoRA)" in shown) != sized:
        fault(f"magnitudes: {sized}, and it shows: {shown}")
    if not line or abs(float(line[1]) / norm - 1) > 1e-3:
        fault(f"the norm of {name} is {norm:.4g}, not as in: {shown}")


def halves(a, folder, case, arch, model, names):
    """A model in f16 stays one: each merged weight is the exact one, rounded."""
    half, one, merged = (os.path.join(folder, n) for n in ("half.gguf", "one.gguf", "half-merged.gguf"))
    call(0, "", a.quantize, model, half, "F16")
    rng = np.random.default_rng(2)
    pairs = {n: pair(rng, n, case.tensors[n]) for n in names}
    write_adapter(one, pairs, arch)
    call(0, "", a.lora, "merge", half, one, "-o", merged)
    before, after = gguf.read(half)[1], gguf.read(merged)[1]
    for name in names:
        want = before[name].astype(np.float64) + product(name, *pairs[name])
        step = np.spacing(np.abs(want).astype(np.float16)).astype(np.float64)
        if np.any(np.abs(after[name].astype(np.float64) - want) > 0.51 * step):
            fault(f"{name} in f16 is not the rounded sum")


def extracts(a, folder, case, arch, model, names):
    rng = np.random.default_rng(3)
    tuned, adapter, again = (os.path.join(folder, n) for n in ("tuned.gguf", "adapter.gguf", "again.gguf"))
    tensors, change = dict(case.tensors), {}
    for name in names:
        w = case.tensors[name]
        change[name] = (rng.normal(size=w.shape) * 0.9 ** np.arange(w.shape[-1])).astype(np.float32)
        tensors[name] = w + change[name]
        change[name] = (tensors[name].astype(np.float64) - w).astype(np.float32)  # as the tool sees it
    gguf.write(tuned, case.meta(), tensors)
    values = {n: np.linalg.svd(d.astype(np.float64), compute_uv=False) for n, d in change.items()}
    for rank in (1, 4, 7):
        out = call(0, "", a.lora, "extract", model, tuned, "-o", adapter, "--rank", str(rank), "-t", "1")
        call(0, "", a.lora, "extract", model, tuned, "-o", again, "--rank", str(rank), "-t", "5")
        if open(adapter, "rb").read() != open(again, "rb").read():
            fault("the adapter depends on threads")
        meta, halves = gguf.read(adapter)
        for name in names:
            d, s = change[name].astype(np.float64), values[name]
            got = product(name, halves[name + ".lora_a"], halves[name + ".lora_b"])
            error, best = np.linalg.norm(d - got), np.sqrt((s[..., rank:] ** 2).sum())
            if error > best * (1 + 1e-4) + 1e-6 * np.linalg.norm(d):
                fault(f"{name}, rank {rank}: the error is {error}, the least is {best}")
            line = re.search(rf"{re.escape(name)} +rank +{rank} +([0-9.]+) %.*error (\S+)", out)
            if not line or abs(float(line[1]) / 100 - 1 + (best / np.linalg.norm(d)) ** 2) > 2e-4:
                fault(f"{name}, rank {rank}: the energy should be {1 - (best / np.linalg.norm(d)) ** 2}: {out}")
    name = names[1]
    for energy in (0.5, 0.9, 0.99):
        out = call(0, "", a.lora, "extract", model, tuned, "-o", adapter, "--rank", "auto", "--energy", str(energy))
        kept = np.cumsum(values[name] ** 2) / (values[name] ** 2).sum()
        want = int(np.searchsorted(kept, energy)) + 1
        if not re.search(rf"{re.escape(name)} +rank +{want} ", out):
            fault(f"{name}: {energy} needs rank {want}: {out}")
    # the whole rank gives the tuned model back
    call(0, "100.00 %", a.lora, "extract", model, tuned, "-o", adapter, "--rank", "1000")
    far = np.abs(logits(a, case, tuned) - logits(a, case, model, "--lora", adapter)).max()
    print(f"logits of the tuned model and of the adapter of full rank differ by {far:.1e}")
    if far > 1e-3:
        fault("an adapter of full rank is not the tuned model")
    norm = next(n for n in case.tensors if n.endswith("norm.weight"))
    tensors[norm] = case.tensors[norm] * 2
    gguf.write(tuned, case.meta(), tensors)
    call(0, f"{norm} differs, but is not a matrix", a.lora, "extract", model, tuned, "-o", adapter)
    call(1, "no matrix of", a.lora, "extract", model, model, "-o", adapter)
    call(2, "--energy needs --rank auto", a.lora, "extract", model, tuned, "-o", adapter, "--rank", "3", "--energy", "0.5")
    del tensors[names[1]]
    gguf.write(tuned, case.meta(), tensors)
    call(1, "is missing in", a.lora, "extract", model, tuned, "-o", adapter)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("lora")
    p.add_argument("quantize")
    a = p.parse_args()
    nano.load("plain", "constructs")
    case = nano.CASES["llama-moe"]
    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        model = os.path.join(folder, "model.gguf")
        gguf.write(model, case.meta(), case.tensors)
        arch = case.meta()["general.architecture"]
        names = ["token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_up_exps.weight", "blk.1.attn_output.weight", "blk.0.ffn_down_exps.weight"]
        merges(a, folder, case, arch, model, names, False)
        merges(a, folder, case, arch, model, names, True)
        halves(a, folder, case, arch, model, names)
        extracts(a, folder, case, arch, model, names)
    return failed


if __name__ == "__main__":
    sys.exit(main())
