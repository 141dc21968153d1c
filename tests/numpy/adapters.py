#!/usr/bin/env python3
"""Adapters: runs the engine on nano models with --lora, and compares its logits with the forward passes of ./families.py on
weights into which numpy has merged the same change, in float64. Of every other model, the pairs have magnitudes (DoRA): PEFT's formula.

    adapters.py --cli LLM_CLI --dir FOLDER

Each model gets adapters for some of its matrices, of the types that files have: f32, f16, bf16 and q8_0. A line for each model:
the largest difference of both backends, and of two adapters at once.
"""
import argparse
import os
import sys

import numpy as np

import gguf
import nano
from check import LIMIT_CPU, LIMIT_REFERENCE, run_engine

MODELS = ["llama", "llama-gqa", "llama-moe", "gpt2", "qwen2", "qwen3", "gemma2", "phi3", "lfm2", "deberta-v2-p2c", "deberta-v2"]
TYPE_BF16, TYPE_Q8_0 = 30, 8


def as_type(x, kind):
    """A tensor of the file, and the float64 numbers that it stands for."""
    x = np.ascontiguousarray(x, np.float32)
    if kind == gguf.TYPE_F16:
        half = x.astype(np.float16)
        return gguf.Blocks(kind, x.shape, half.tobytes()), half.astype(np.float64)
    if kind == TYPE_BF16:
        top = (x.view(np.uint32) >> 16).astype(np.uint16)  # cut, not rounded: any numbers will do
        return gguf.Blocks(kind, x.shape, top.tobytes()), (top.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == TYPE_Q8_0:
        rows = x.reshape(-1, 32)
        scale = (np.abs(rows).max(axis=1) / 127).astype(np.float16)
        code = np.rint(rows / np.maximum(scale, 1e-6).astype(np.float32)[:, None]).clip(-127, 127).astype(np.int8)
        data = b"".join(s.tobytes() + c.tobytes() for s, c in zip(scale, code))
        return gguf.Blocks(kind, x.shape, data), (code * scale.astype(np.float64)[:, None]).reshape(x.shape)
    return gguf.Blocks(gguf.TYPE_F32, x.shape, x.tobytes()), x.astype(np.float64)


def is_adapted(name, w):
    return w.ndim >= 2 and "conv" not in name and "norm" not in name and name not in ("rel_embd.weight", "token_types.weight", "position_embd.weight")


def lengths(w):
    return np.linalg.norm(w, axis=-1)


def make(case, random, kind, rank, alpha, scale, every, path, dora=False):
    """Writes an adapter for every `every`-th matrix; returns {name: (what it adds, by what it multiplies the rows)}. PEFT divides by the lengths
    of the model's rows with this adapter's change, whatever other adapters there are."""
    tensors, added = {}, {}
    for i, (name, w) in enumerate(case.tensors.items()):
        if not is_adapted(name, w) or i % every:
            continue
        *stack, n_out, n_in = w.shape
        embedding = name == "token_embd.weight"
        # rows that are not whole blocks stay f32, as converters keep them
        kind_a, kind_b = [kind if n % 32 == 0 or kind != TYPE_Q8_0 else gguf.TYPE_F32 for n in (n_in, rank)]
        a = random.normal(size=(*stack, rank, n_in))
        b = random.normal(size=(*stack, n_out, rank)) / np.sqrt(n_in * rank)
        if embedding:  # both the other way round
            tensors[name + ".lora_a"], b = as_type(b, kind_b)
            t, a = as_type(np.swapaxes(a, -1, -2), kind_b)
            tensors[name + ".lora_b"], a = t, np.swapaxes(a, -1, -2)
        else:
            tensors[name + ".lora_a"], a = as_type(a, kind_a)
            tensors[name + ".lora_b"], b = as_type(b, kind_b)
        add, size = scale * alpha / rank * (b @ a), np.ones(w.shape[:-1])
        if dora and not embedding:
            size = lengths(w) * random.uniform(0.7, 1.3, w.shape[:-1])
            tensors[name + ".lora_magnitude"], size = as_type(size, gguf.TYPE_F32)
            size = size / lengths(w.astype(np.float64) + add)
        added[name] = add, size
    gguf.write(path, {"general.type": "adapter", "general.architecture": case.arch, "adapter.type": "lora",
                      "adapter.lora.alpha": float(alpha)}, tensors)
    return added


def merged(case, *changes):
    """The logits of the model with the changes merged into its weights."""
    w = {name: t.astype(np.float64) for name, t in case.tensors.items()}
    for change in changes:
        for name, x in change.items():
            w[name] = (w[name] + x[0]) * x[1][..., None]

    def key(name, *default):
        return case.keys.get(name, *default) if default else case.keys[name]

    with np.errstate(all="ignore"):
        return case.forward(key, w, case.tokens, case.n_ctx)


def given(case, *adapters):
    """The options for (path, scale) ..; of one adapter, in llama.cpp's form."""
    if case.output:  # ./outputs.c
        return [word for path, scale in adapters for word in ("--lora", f"{path}:{scale}")]
    if len(adapters) == 1:
        return ["--lora-scaled", adapters[0][0], str(adapters[0][1])]
    return ["--lora", ",".join(f"{path}:{scale}" for path, scale in adapters)]


def check(cli, folder, case, n):
    random = np.random.default_rng(n)
    model, out, one, two = [os.path.join(folder, f"adapters-{case.name}{end}") for end in (".gguf", ".npy", "-1.gguf", "-2.gguf")]
    gguf.write(model, case.meta(), case.tensors)
    kind = [gguf.TYPE_F32, gguf.TYPE_F16, TYPE_BF16, TYPE_Q8_0][n % 4]
    # for products of q8_0 and bf16 the CPU rounds the activations, too; such small models may then choose other experts
    exact = kind in (gguf.TYPE_F32, gguf.TYPE_F16)
    first = make(case, random, kind, 32 if kind == TYPE_Q8_0 else 3, 7, 1.5, 1, one, n % 2 == 1)
    second = make(case, random, gguf.TYPE_F32, 2, 1, -0.5, 3, two, n % 3 == 1)
    plain = run_engine(cli, model, case, out, "--backend", "reference")
    want, both = merged(case, first), merged(case, first, second)
    reference = np.abs(run_engine(cli, model, case, out, "--backend", "reference", *given(case, (one, 1.5))) - want).max()
    cpu = np.abs(run_engine(cli, model, case, out, *given(case, (one, 1.5))) - want).max()
    twice = np.abs(run_engine(cli, model, case, out, "--backend", "reference", *given(case, (one, 1.5), (two, -0.5))) - both).max()
    far = np.abs(plain - want).max()
    size = np.abs(want).max()
    ok = (reference <= LIMIT_REFERENCE * max(size, 1) and twice <= LIMIT_REFERENCE * max(np.abs(both).max(), 1) and
          (cpu <= LIMIT_CPU * max(size, 1) or not exact and np.isfinite(cpu)) and far > 0.1)
    print(f"{case.name:12} {len(first):3} matrices  reference {reference:8.1e}  cpu {cpu:8.1e}  two at once {twice:8.1e}"
          f"  of {size:6.2f}, from the plain model {far:5.2f}  {'ok' if ok else 'FAILED'}")
    for path in (model, out, one, two):
        if os.path.exists(path):
            os.remove(path)
    return ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", default=".")
    args = p.parse_args()
    nano.load_all()
    ok = True
    for n, name in enumerate(MODELS):
        ok = check(args.cli, args.dir, nano.CASES[name], n) and ok
    return 0 if ok else 1


sys.exit(main())
