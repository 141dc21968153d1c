#!/usr/bin/env python3
"""Files that have Q, K and V as one tensor: the logits' bits are those of the file with separate tensors.

    fused.py --cli LLM_CLI --quantize LLM_QUANTIZE --dir FOLDER [--sample N] [--vulkan] ARCHS [MODEL ..]

ARCHS is the folder of the descriptors. All nano models whose descriptor has attn_q and attn_k are run in f32, the first of each
family in f16, too (--sample: N models only); the trained MODELs, whose rows are whole blocks, quantized. On the cpu backend, or with
--vulkan on that one. Exit code 0, 1; 77: no device.
"""
import argparse
import os
import random
import re
import subprocess
import sys

import numpy as np

import gguf
import nano

PARTS = ("attn_q", "attn_k", "attn_v")
WHOLE = "attn_qkv"
TYPE_F16 = 1
# Families that declare attn_qkv: what a descriptor names is its own, and the prelude's line is not for them.
LEAST_FAMILIES, LEAST_TRAINED = 60, 2
MUST = {"llama", "phi2", "gemma4", "nanbeige", "qwen35", "qwen3next"}


def own_names(archs):
    """For each family whether its descriptor declares attn_qkv itself, and has no line about its parts."""
    out = {}
    for file in sorted(os.listdir(archs)):
        with open(os.path.join(archs, file)) as f:
            text = f.read().split("\nconvert ")[0]
        own = re.search(r"^\s*(if .*: *)?attn_qkv\s+\[", text, re.M) and not re.search(r"^attn_q, .* from \"attn_qkv\"", text, re.M)
        header = re.search(r"^arch (.*)$", text, re.M)
        for name in header.group(1).split(",") if header else []:
            out[name.strip().strip('"')] = bool(own)
    return out


def fuse(tensors, order=PARTS):
    """The same tensors with attn_qkv in place of those parts that a layer has, if Q and K are among them; how many there are."""
    out, n = dict(tensors), 0
    for prefix in {m.group(1) for m in (re.match(r"(blk\.\d+\.)attn_q\.weight$", name) for name in tensors) if m}:
        for end in (".weight", ".bias"):  # parts that a layer lacks, as V where it is K, take no rows
            names = [prefix + part + end for part in order if prefix + part + ".weight" in tensors]
            if len(names) < 2 or not all(name in tensors for name in names):
                continue
            parts = [gguf.blocks_of(out.pop(name), name) for name in names]
            if len({(p.kind, p.shape[1:]) for p in parts}) != 1:  # a mix may give V another type
                out.update(zip(names, parts))
                continue
            shape = (sum(p.shape[0] for p in parts), *parts[0].shape[1:])
            out[prefix + WHOLE + end] = gguf.Blocks(parts[0].kind, shape, b"".join(p.data for p in parts))
            n += 1
    return out, n


def in_f16(tensors):
    out = {}
    for name, t in tensors.items():
        ours = re.search(r"\.attn_[qkv]\.weight$", name)
        out[name] = gguf.Blocks(TYPE_F16, t.shape, t.astype(np.float16).tobytes()) if ours else t
    return out


class Runner:
    def __init__(self, a):
        self.a, self.failed = a, 0
        self.output = self.target = None  # as a case's

    def logits(self, meta, tensors, tokens, n_ctx, *more):
        path = os.path.join(self.a.dir, f"fused-{os.getpid()}.gguf")
        out = path + ".npy"
        gguf.write(path, meta, tensors)
        if self.target:
            gguf.write(path + ".target", self.target.meta(), self.target.tensors)
            more += ("--target", path + ".target")
        how = [os.environ["TEST_OUTPUTS"], "--output", self.output] if self.output else [self.a.cli, "-n", "0", "-c", str(n_ctx), "-t", "1"]
        command = [*how, "-m", path, "--tokens", ",".join(map(str, tokens)), "--logits", out, "--backend", "vulkan" if self.a.vulkan else "cpu", *more]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
            if done.returncode or "runtime error:" in done.stderr or "Sanitizer" in done.stderr:
                raise RuntimeError(done.stderr.strip())
            return np.load(out)
        finally:
            for file in (path, path + ".target", out):
                if os.path.exists(file):
                    os.unlink(file)

    def compare(self, name, meta, tensors, tokens, n_ctx, *more):
        """False: there is nothing to fuse."""
        fused, n = fuse(tensors)
        if n == 0:
            return False
        try:
            apart, whole = (self.logits(meta, t, tokens, n_ctx, *more) for t in (tensors, fused))
            same = np.array_equal(apart.view(np.uint32), whole.view(np.uint32))
            what = "ok" if same else f"FAILED: other logits, by up to {np.abs(apart - whole).max()}"
        except RuntimeError as e:
            same, what = False, f"FAILED: {e}"
        self.failed += not same
        print(f"{name:32} {n} tensors {what}")
        return True


def run_nano(r, archs, sample):
    nano.load_all()
    own, seen = own_names(archs), set()
    cases = [c for c in nano.CASES.values() if not c.descriptor and not own[c.arch]]
    if sample:
        seed = int.from_bytes(os.urandom(4), "little")
        print("seed", seed)
        cases = random.Random(seed).sample(cases, sample)
    for case in cases:
        r.output, r.target = case.output, case.target
        if not r.compare(case.name, case.meta(), case.tensors, case.tokens, case.n_ctx):
            continue
        if case.arch not in seen:
            r.compare(case.name + ", f16", case.meta(), in_f16(case.tensors), case.tokens, case.n_ctx)
        seen.add(case.arch)
    r.output = r.target = None
    print(len(seen), "families")
    if not sample and (len(seen) < LEAST_FAMILIES or MUST - seen):
        print(f"FAILED: fewer than {LEAST_FAMILIES}, or without some of {MUST}")
        r.failed += 1


def has_vulkan(a):
    done = subprocess.run([a.cli, "-m", a.models[0], "--backend", "vulkan", "--tokens", "1", "-n", "0", "--logits", os.devnull],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        print("skipped:", done.stderr.strip())
    return done.returncode == 0


def run_trained(r, models):
    n = 0
    for model in models:
        for mix in ("Q8_0", "Q4_0"):
            path = os.path.join(r.a.dir, f"fused-{os.getpid()}-{mix}.gguf")
            subprocess.run([r.a.quantize, "--pure", "--allow-requantize", model, path, mix], check=True, capture_output=True)
            try:
                meta, tensors = gguf.read_blocks(path)
            finally:
                os.unlink(path)
            tokens = [int(t) for t in np.random.default_rng(3).integers(0, 200, 24)]
            for more in ((), ("--no-repack",)):
                n += r.compare(" ".join((os.path.basename(model), mix, *more)), meta, tensors, tokens, 64, *more)
    if n < LEAST_TRAINED:
        print("FAILED: nothing quantized was fused")
        r.failed += 1


def main():
    p = argparse.ArgumentParser()
    for name in ("--cli", "--quantize", "--dir"):
        p.add_argument(name, required=True)
    p.add_argument("--sample", type=int)
    p.add_argument("--vulkan", action="store_true")
    p.add_argument("archs")
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    if a.vulkan and not has_vulkan(a):
        return 77
    r = Runner(a)
    run_nano(r, a.archs, a.sample)
    run_trained(r, a.models)
    return 1 if r.failed else 0


if __name__ == "__main__":
    sys.exit(main())
