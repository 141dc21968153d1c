#!/usr/bin/env python3
"""Measures what each type costs in quality, for a float model and a text, as a Markdown table, and how fast it is. Needs only Python.

    scripts/quality-table.py [--bin build/release/bin] [--chunks N] [-c N] [--mixes] [--speed LARGER] MODEL TEXT [TYPE ..]
    scripts/quality-table.py --calibration OTHER_TEXT [--outliers] MODEL TEXT MIX ..

The model's matrices are quantized to every type that llm-quantize lists, with --pure (and with --mixes to every mix, without --pure), and
llm-perplexity compares the result with MODEL on TEXT. Columns:

    bytes        of the file
    bits         per weight, of all tensors of the model, including those that stay f32 and those whose rows do not fit
    fits         the share of the matrices' weights with that type; rows that are not whole blocks of it get another
    weights      relative error of the changed tensors: root of (sum of squares of the differences / sum of squares)
    normal       the same for 1024 x 1024 normally distributed weights, which fit every type
    PPL, change  perplexity, and its increase over MODEL's, with the error of the comparison, in which both read the same text
    KLD..        as printed by llm-perplexity; 99 %: it is less at 99 of 100 positions
    t/s          with --speed: tokens per second of a prompt of 128 and of a generation of 32, the best of three runs, of the model LARGER in that type, which may have
                 random weights (llm-bench make qwen3-0.6b f16 LARGER --layers 4): a small model is not limited by what its weights cost

With --calibration, another table compares each mix with types of the same total size that llm-quantize --budget chose: guessed, from the
weights alone, and measured on OTHER_TEXT, which should not be in TEXT. --outliers first makes one of 16 input channels of each layer's
products 4 times as large in the weights, and as much smaller in the norm before them: the model computes the same, but its channels are
as uneven as those of large models. MODEL must then have f32 norms and weights, and the tensor names of Llama.
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
    found = re.search(r"\nmixes[^\n]*\n(.*?)\n\ntypes\n(.*?)\n\n", run(quantize, "--help"), re.S)
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
        found = re.match(r"\S+ +(\d+(?:x\d+)*) +\S+ -> (\S+)", line)
        if found:
            n = 1
            for x in found.group(1).split("x"):
                n *= int(x)
            n_all += n
            n_fit += 0 if "*" in found.group(2) else n
    return n_fit / n_all if n_all else 1.0


def speed(a, name, is_mix, folder):
    """The cells of --speed for this type, or of the unquantized model if name is None."""
    if not a.speed:
        return ""
    larger = a.speed
    if name:
        larger = os.path.join(folder, "larger.gguf")
        run(os.path.join(a.bin, "llm-quantize"), "-q", *([] if is_mix else ["--pure"]), a.speed, larger, name)
    best = {}
    for _ in range(3):  # machines are noisy
        for r in json.loads(run(os.path.join(a.bin, "llm-bench"), "-m", larger, "-p", "128", "-n", "32", "-r", "3", "-t", a.threads, "-o", "json")):
            best[r["n_gen"]] = max(best.get(r["n_gen"], 0), r["avg_ts"])
    return f" {best[0]:.0f} / {best[32]:.0f} |"


def row(a, name, is_mix, ppl, base, normal, folder):
    out = os.path.join(folder, "out.gguf")
    quantize = [os.path.join(a.bin, "llm-quantize"), "-v"] + ([] if is_mix else ["--pure"])
    told = run(*quantize, a.model, out, name)
    bits = re.search(r"-> ([0-9.]+) bits per weight", told).group(1)
    of_normal = "" if is_mix else f"{100 * relative(run(*quantize, normal, os.path.join(folder, 'normal-out.gguf'), name)):.3f} %"
    got = json.loads(run(os.path.join(a.bin, "llm-perplexity"), "-m", out, "--kl-divergence-base", base, "--kl-divergence", "-o", "json"))
    kld = got["kld"]
    return (f"| {name} | {os.path.getsize(out)} | {bits} | {100 * fits(told, name):.0f} % | {100 * relative(told):.3f} % | {of_normal} "
            f"| {got['ppl']:.4f} | {100 * (got['ppl'] / ppl - 1):+.3f} ± {100 * got['ln_ppl_ratio_error']:.3f} % "
            f"| {kld['mean']:.6f} ± {kld['mean_error']:.6f} | {kld['q99']:.5f} | {100 * got['same_top_p']:.2f} % |" + speed(a, name, is_mix, folder))


def add_outliers(model, out):
    """Writes the model with uneven channels. GGUF: see ggml-lite/include/ggl/gguf.h."""
    with open(model, "rb") as f:
        data = bytearray(f.read())
    at = 24
    n_tensor, n_key = struct.unpack_from("<QQ", data, 8)
    size = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def string(at):
        n, = struct.unpack_from("<Q", data, at)
        return bytes(data[at + 8:at + 8 + n]), at + 8 + n

    def skip(kind, at):
        return string(at)[1] if kind == 8 else at + size[kind]
    for _ in range(n_key):
        _, at = string(at)
        kind, = struct.unpack_from("<I", data, at)
        at, count = at + 4, 1
        if kind == 9:
            kind, count = struct.unpack_from("<IQ", data, at)
            at += 12
        for _ in range(count):
            at = skip(kind, at)
    tensors = []
    for _ in range(n_tensor):
        name, at = string(at)
        n_dim, = struct.unpack_from("<I", data, at)
        ne = struct.unpack_from(f"<{n_dim}Q", data, at + 4)
        kind, offset = struct.unpack_from("<IQ", data, at + 4 + 8 * n_dim)
        at += 4 + 8 * n_dim + 12
        tensors.append((name.decode(), ne, kind, offset))
    base = -(-at // 32) * 32
    for name, ne, kind, offset in tensors:
        norm = name.endswith(("attn_norm.weight", "ffn_norm.weight"))
        product = re.search(r"(attn_[qkv]|ffn_gate|ffn_up)\.weight$", name)
        if not norm and not product:
            continue
        if kind != 0:
            raise RuntimeError(f"--outliers: {name} is not f32")
        n = 1
        for x in ne:
            n *= x
        for i in range(n):
            if i % ne[0] % 16 == 5:
                x, = struct.unpack_from("<f", data, base + offset + 4 * i)
                struct.pack_into("<f", data, base + offset + 4 * i, x / 4 if norm else x * 4)
    with open(out, "wb") as f:
        f.write(data)


def against_mixes(a, base, folder):
    """The table of --calibration."""
    def measured(path):
        got = json.loads(run(os.path.join(a.bin, "llm-perplexity"), "-m", path, "--kl-divergence-base", base, "--kl-divergence", "-o", "json"))
        return f"{got['ppl']:.4f} | {got['kld']['mean']:.6f} ± {got['kld']['mean_error']:.6f}"
    quantize, out = os.path.join(a.bin, "llm-quantize"), os.path.join(folder, "out.gguf")
    loss = os.path.join(folder, "loss")
    print("| size of | bytes | bits | PPL, KLD of the mix | guessed | measured |")
    print("|---|---|---|---|---|---|")
    for mix in a.types:
        bits = re.search(r"-> ([0-9.]+) bits per weight", run(quantize, a.model, out, mix)).group(1)
        size = os.path.getsize(out)
        cells = [measured(out).replace(" | ", ", ")]
        for flags in [[], ["--calibration", a.calibration, "-c", a.c, "--loss", loss]]:
            run(quantize, "-q", "--budget", str(size), *flags, a.model, out)
            cells.append(measured(out).replace(" | ", ", "))
        print(f"| {mix} | {size} | {bits} | " + " | ".join(cells) + " |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/release/bin")
    p.add_argument("--chunks", default="-1")
    p.add_argument("-c", default="512")
    p.add_argument("--mixes", action="store_true")
    p.add_argument("--speed", metavar="LARGER")
    p.add_argument("-t", "--threads", default=str(os.cpu_count()))
    p.add_argument("--calibration")
    p.add_argument("--outliers", action="store_true")
    p.add_argument("model")
    p.add_argument("text")
    p.add_argument("types", nargs="*")
    a = p.parse_args()
    mixes, types = ([], []) if a.calibration else listed(os.path.join(a.bin, "llm-quantize"))
    wanted = [(t, False) for t in types] + ([(m, True) for m in mixes] if a.mixes else [])
    if a.types:
        wanted = [(t, t not in types) for t in a.types]
    with tempfile.TemporaryDirectory() as folder:
        base, normal = os.path.join(folder, "base.kld"), os.path.join(folder, "normal.gguf")
        write_normal(normal)
        if a.outliers:
            add_outliers(a.model, os.path.join(folder, "uneven.gguf"))
            a.model = os.path.join(folder, "uneven.gguf")
        got = json.loads(run(os.path.join(a.bin, "llm-perplexity"), "-m", a.model, "-f", a.text, "-c", a.c, "--chunks", a.chunks,
                             "--kl-divergence-base", base, "-o", "json"))
        print(f"{got['n_chunk']} chunks of {got['n_ctx']} tokens, {got['n_scored']} scored\n")
        if a.calibration:
            print(f"unquantized: PPL {got['ppl']:.4f} ± {got['ppl_error']:.4f}\n")
            return against_mixes(a, base, folder)
        print("| type | bytes | bits | fits | weights | normal | PPL | change | KLD | KLD 99 % | same top |" + (" t/s |" if a.speed else ""))
        print("|---" * (12 if a.speed else 11) + "|")
        print(f"| unquantized | {os.path.getsize(a.model)} | | | | | {got['ppl']:.4f} ± {got['ppl_error']:.4f} | | | | |"
              + speed(a, None, False, folder), flush=True)
        for name, is_mix in wanted:
            try:
                print(row(a, name, is_mix, got['ppl'], base, normal, folder), flush=True)
            except RuntimeError as e:
                print(f"{name}: {e}", file=sys.stderr)


if __name__ == "__main__":
    main()
