#!/usr/bin/env python3
"""Measures what each type costs in quality, for a float model and a text, as a Markdown table. Needs only Python.

    scripts/quality-table.py [--bin build/release/bin] [--chunks N] [-c N] [--mixes] MODEL TEXT [TYPE ..]

The model's matrices are quantized to every type that llm-quantize lists, with --pure (and with --mixes to every mix, without --pure), and
llm-perplexity compares the result with MODEL on TEXT. Columns:

    bits         per weight, of all tensors of the model, including those that stay f32 and those whose rows do not fit
    fits         the share of the matrices' weights with that type; rows that are not whole blocks of it get another
    weights      relative error of the changed tensors: root of (sum of squares of the differences / sum of squares)
    normal       the same for 1024 x 1024 normally distributed weights, which fit every type
    PPL, change  perplexity, and its increase over MODEL's, with the error of the comparison, in which both read the same text
    KLD..        as printed by llm-perplexity; 99 %: it is less at 99 of 100 positions
"""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().split("\n")[-1])
    return done.stdout


def listed(quantize):
    """(mixes, types), as --help names them."""
    found = re.search(r"\nmixes[^\n]*:\n(.*)\ntypes:\n(.*)", run(quantize, "--help"), re.S)
    return found.group(1).split(), found.group(2).split()


def write_normal(path):
    """A GGUF file with one matrix."""
    name, n = b"a.weight", 1024
    rng = random.Random(1)
    head = b"GGUF" + struct.pack("<IQQQ", 3, 1, 0, len(name)) + name + struct.pack("<IQQIQ", 2, n, n, 0, 0)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        f.write(struct.pack(f"<{n * n}f", *(rng.gauss(0, 1) for _ in range(n * n))))


def relative(summary):
    found = re.search(r"^error .* relative ([0-9.e+-]+)", summary, re.M)
    return float(found.group(1)) if found else 0.0


def fits(verbose, name):
    """The share of the changed tensors' weights whose type was not replaced because of the length of their rows."""
    n_all = n_fit = 0
    for line in verbose.split("\n"):
        found = re.match(r"\S+ +(\d+(?: x \d+)*) +\S+ +-> ", line)
        if found:
            n = 1
            for x in found.group(1).split(" x "):
                n *= int(x)
            n_all += n
            n_fit += 0 if "are not whole blocks" in line else n
    return n_fit / n_all if n_all else 1.0


def row(a, name, is_mix, ppl, base, normal, folder):
    out = os.path.join(folder, "out.gguf")
    quantize = [os.path.join(a.bin, "llm-quantize"), "-v"] + ([] if is_mix else ["--pure"])
    told = run(*quantize, a.model, out, name)
    bits = re.search(r"-> ([0-9.]+) bits per weight", told).group(1)
    of_normal = "" if is_mix else f"{100 * relative(run(*quantize, normal, os.path.join(folder, 'normal-out.gguf'), name)):.3f} %"
    got = json.loads(run(os.path.join(a.bin, "llm-perplexity"), "-m", out, "--kl-divergence-base", base, "--kl-divergence", "-o", "json"))
    kld = got["kld"]
    return (f"| {name} | {bits} | {100 * fits(told, name):.0f} % | {100 * relative(told):.3f} % | {of_normal} "
            f"| {got['ppl']:.4f} | {100 * (got['ppl'] / ppl - 1):+.3f} ± {100 * got['ln_ppl_ratio_error']:.3f} % "
            f"| {kld['mean']:.6f} ± {kld['mean_error']:.6f} | {kld['q99']:.5f} | {100 * got['same_top_p']:.2f} % |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/release/bin")
    p.add_argument("--chunks", default="-1")
    p.add_argument("-c", default="512")
    p.add_argument("--mixes", action="store_true")
    p.add_argument("model")
    p.add_argument("text")
    p.add_argument("types", nargs="*")
    a = p.parse_args()
    mixes, types = listed(os.path.join(a.bin, "llm-quantize"))
    wanted = [(t, False) for t in types] + ([(m, True) for m in mixes] if a.mixes else [])
    if a.types:
        wanted = [(t, t not in types) for t in a.types]
    with tempfile.TemporaryDirectory() as folder:
        base, normal = os.path.join(folder, "base.kld"), os.path.join(folder, "normal.gguf")
        write_normal(normal)
        got = json.loads(run(os.path.join(a.bin, "llm-perplexity"), "-m", a.model, "-f", a.text, "-c", a.c, "--chunks", a.chunks,
                             "--kl-divergence-base", base, "-o", "json"))
        print(f"{got['n_chunk']} chunks of {got['n_ctx']} tokens, {got['n_scored']} scored\n")
        print("| type | bits | fits | weights | normal | PPL | change | KLD | KLD 99 % | same top |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        print(f"| unquantized | | | | | {got['ppl']:.4f} ± {got['ppl_error']:.4f} | | | | |")
        for name, is_mix in wanted:
            try:
                print(row(a, name, is_mix, got['ppl'], base, normal, folder), flush=True)
            except RuntimeError as e:
                print(f"{name}: {e}", file=sys.stderr)


if __name__ == "__main__":
    main()
