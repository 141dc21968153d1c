#!/usr/bin/env python3
"""llm-quantize and experts: files with a tensor for each expert, which --merge-experts joins, and experts in MXFP4.

    experts.py --cli LLM_CLI --dir FOLDER LLM_QUANTIZE

The nano model of Mixtral's form is written whole and apart; what llm-quantize makes of the latter must be the former to the byte of
each tensor, and have its logits to the bit. Exit code 0, 1.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

import gguf
import nano
import published
import weights

failed = False
TYPE_BF16, TYPE_MXFP4 = 30, 39


def fault(text):
    global failed
    failed = True
    print("FAILED:", text)


def call(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if "runtime error:" in done.stderr or "Sanitizer" in done.stderr:
        fault(done.stderr)
    return done


def quantize(a, *arguments):
    done = call(a.quantize, *arguments)
    if done.returncode:
        fault(f"llm-quantize {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def expect(a, code, words, *arguments):
    done = call(a.quantize, *arguments)
    if done.returncode != code or words not in done.stderr:
        fault(f"llm-quantize {' '.join(arguments)}: exit code {done.returncode}, no '{words}' in: {done.stderr}")


def logits(a, path, case):
    out = path + ".npy"
    done = call(a.cli, "-m", path, "--tokens", ",".join(map(str, case.tokens)), "-n", "0", "-c", str(case.n_ctx), "-t", "1",
                "--backend", "cpu", "--logits", out)
    return (np.load(out) if done.returncode == 0 else None), done.stderr


def raw(path):
    """The tensors as bytes: name -> (shape, type, bytes)."""
    with open(path, "rb") as f:
        r = gguf.Reader(f.read())
    r.at = 4
    _, n_tensors, n_meta = r.take("<IQQ")
    for _ in range(n_meta):
        r.string()
        r.value(r.take("<I"))
    infos = []
    for _ in range(n_tensors):
        name, n_dims = r.string(), r.take("<I")
        infos.append((name, tuple(r.take("<Q") for _ in range(n_dims)), *r.take("<IQ")))
    start = r.at + -r.at % gguf.ALIGNMENT
    sizes = {0: (1, 4), 1: (1, 2), TYPE_BF16: (1, 2), 8: (32, 34), TYPE_MXFP4: (32, 17)}
    tensors = {}
    for name, shape, kind, offset in infos:
        block, size = sizes[kind]
        n = int(np.prod(shape)) // block * size
        tensors[name] = shape, kind, r.data[start + offset : start + offset + n]
    return tensors


def same_tensors(a, b, what):
    x, y = raw(a), raw(b)
    if x != y:
        fault(f"{what}: {sorted(n for n in x.keys() | y.keys() if x.get(n) != y.get(n))} differ")


def merge(a, folder, case):
    whole, apart, merged = (os.path.join(folder, f"{name}.gguf") for name in ("whole", "apart", "merged"))
    gguf.write(whole, case.meta(), case.tensors)
    tensors = dict(case.tensors)
    published.apart(tensors, "blk.*_exps.weight")
    gguf.write(apart, case.meta(), dict(reversed(tensors.items())))  # the last expert first
    want, stderr = logits(a, whole, case)
    if want is None:
        return fault(f"the plain model does not run: {stderr}")
    _, stderr = logits(a, apart, case)
    for words in ("there is blk.0.ffn_down.0.weight", "'llm-quantize --merge-experts IN OUT COPY'"):
        if words not in stderr:
            fault(f"no '{words}' in: {stderr}")
    quantize(a, "--merge-experts", apart, merged, "COPY")
    same_tensors(whole, merged, "merged experts")
    if not np.array_equal(want, logits(a, merged, case)[0]):
        fault("merged experts give other logits")
    by = 2.0 ** np.arange(case.tensors["blk.0.ffn_up_exps.weight"].shape[0])
    for e, x in enumerate(by):  # a factor of each expert
        tensors[f"blk.0.ffn_up.{e}.weight"] = (tensors[f"blk.0.ffn_up.{e}.weight"] / x).astype(np.float32)
        tensors[f"blk.0.ffn_up.{e}.scale"] = np.array([x], np.float32)
    factors, merged_factors = (os.path.join(folder, f"{name}.gguf") for name in ("factors", "merged-factors"))
    gguf.write(factors, case.meta(), tensors)
    quantize(a, "--merge-experts", factors, merged_factors, "COPY")
    if raw(merged_factors)["blk.0.ffn_up_exps.scale"][0] != (len(by),) or not np.allclose(want, logits(a, merged_factors, case)[0], 1e-5, 1e-5):
        fault("merged factors give other logits")
    q = [os.path.join(folder, f"{name}.gguf") for name in ("q-whole", "q-merged")]
    quantize(a, whole, q[0], "Q8_0")
    out = quantize(a, "-v", "--merge-experts", apart, q[1], "q8_0")  # both at once
    same_tensors(*q, "merged and quantized experts")
    if "blk.0.ffn_down_exps.weight" not in out or "ffn_down.0" in out:
        fault(f"the experts are listed apart: {out}")
    expect(a, 2, "no tensor belongs to a single expert", "--merge-experts", whole, merged, "COPY")
    for name, words in (("blk.1.ffn_up.1.weight", "but they are not numbered from 0 to"), ("shape", "has another type or shape than")):
        odd = dict(tensors)
        if name == "shape":
            odd["blk.1.ffn_up.1.weight"] = np.ascontiguousarray(odd["blk.1.ffn_up.1.weight"][:-1])
        else:
            del odd[name]
        gguf.write(apart, case.meta(), odd)
        expect(a, 1, words, "--merge-experts", apart, merged + ".odd", "COPY")
        if os.path.exists(merged + ".odd"):
            fault("a file is left")
    tensors["blk.0.ffn_up_exps.weight"] = case.tensors["blk.0.ffn_up_exps.weight"]
    gguf.write(apart, case.meta(), tensors)
    expect(a, 1, "blk.0.ffn_up_exps.weight", "--merge-experts", apart, merged + ".odd", "COPY")


def mxfp4(a, folder, case):
    """Experts that were MXFP4, as gpt-oss's, and became bf16 on the way from their folder: back without a loss."""
    bf16, back, mix = (os.path.join(folder, f"{name}.gguf") for name in ("bf16", "mxfp4", "mix"))
    rng = np.random.default_rng(5)
    tensors = {}
    shapes = {"token_embd": (32, 96), "blk.0.attn_q": (96, 96), "blk.0.ffn_gate_inp": (4, 96), "blk.0.ffn_gate_exps": (4, 64, 96),
              "blk.0.ffn_up_exps": (4, 64, 96), "blk.0.ffn_down_exps": (4, 96, 64)}
    for name, shape in shapes.items():
        name += ".weight"
        t = rng.normal(size=shape).astype(np.float32)
        if "_exps." in name:
            n = t.size // 32
            blocks = rng.integers(0, 256, (n, 17), dtype=np.uint8)
            blocks[:, 0] = rng.integers(100, 130, n)  # exponents
            blocks[:: 7, 1:] &= 0x99  # small codes only: a block whose scale could be another
            values = weights.decode("mxfp4", blocks)
            bits = values.astype("<f4").view("<u4")
            assert not (bits & 0xffff).any()
            t = gguf.Blocks(TYPE_BF16, t.shape, (bits >> 16).astype("<u2").tobytes())
        tensors[name] = t
    gguf.write(bf16, case.meta(), tensors)
    for out, arguments in ((back, ["--tensor-type", "_exps=mxfp4", bf16, back, "COPY"]), (mix, [bf16, mix, "MXFP4_MOE"])):
        text = quantize(a, "-v", *arguments)
        lines = [line for line in text.splitlines() if "_exps.weight" in line]
        if not lines or any(not line.endswith("mxfp4 0.00e+00 0.00e+00 0.00e+00") for line in lines):
            fault(f"experts are not MXFP4 without a loss: {text}")
        x, y = raw(bf16), raw(out)
        for name in x:
            if "_exps." in name:
                values = weights.decode("mxfp4", np.frombuffer(y[name][2], np.uint8).reshape(-1, 17)) if y[name][1] == TYPE_MXFP4 else None
                before = (np.frombuffer(x[name][2], "<u2").astype("<u4") << 16).view("<f4")
                if values is None or not np.array_equal(values.ravel(), before):
                    fault(f"{out}: {name} has other values")
            elif out == back and x[name] != y[name]:
                fault(f"COPY changes {name}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("quantize")
    a = p.parse_args()
    case = nano.CASES["llama-moe"]
    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        merge(a, folder, case)
        mxfp4(a, folder, case)
    return failed


if __name__ == "__main__":
    sys.exit(main())
