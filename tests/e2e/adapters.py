#!/usr/bin/env python3
"""Adapters in llm-cli, as a user meets them: prompt caches belong to them, and mistakes are named.

    adapters.py LLM_CLI"""
import os
import random
import struct
import subprocess
import sys
import tempfile


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def adapter(path, seed):
    """Writes an adapter of rank 2 for a matrix of the built-in model."""
    r = random.Random(seed)
    keys = [("general.type", "adapter"), ("adapter.type", "lora"), ("general.architecture", "llama")]
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, len(keys))
    for key, value in keys:
        head += text(key) + struct.pack("<I", 8) + text(value)
    data = b""
    for half, shape in (("a", (128, 2)), ("b", (2, 128))):
        head += text("blk.1.attn_q.weight.lora_" + half) + struct.pack("<IQQIQ", 2, *shape, 0, len(data))
        data += struct.pack("<256f", *(r.uniform(-3, 3) for _ in range(256)))
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def main():
    cli = sys.argv[1]
    faults = []

    def expect(code, words, *args):
        r = subprocess.run([cli, *args], capture_output=True, stdin=subprocess.DEVNULL, check=False)
        err = r.stderr.decode(errors="replace")
        if r.returncode != code or words not in err:
            faults.append(f"{args}: exit code {r.returncode}, not {code}; '{words}' should be in: {err}")
        return r.stdout

    with tempfile.TemporaryDirectory() as folder:
        one, other, cache = (os.path.join(folder, n) for n in ("one.gguf", "other.gguf", "cache"))
        adapter(one, 1)
        adapter(other, 2)
        base = ("-p", "Once upon a time there was", "-n", "24", "--temp", "0", "--prompt-cache", cache)
        plain = expect(0, "", *base)
        with_one = expect(0, "made with another setting: none; now: adapter one.gguf:1", *base, "--lora", one)
        if with_one == plain:
            faults.append("the adapter has no effect")
        expect(0, "from cache", *base, "--lora", one + ":1.0")
        expect(0, "another setting: adapter one.gguf:1; now: adapter one.gguf:0.5", *base, "--lora", one + ":0.5")
        expect(0, "now: adapter one.gguf:0.5, adapter other.gguf:1", *base, "--lora", one + ":0.5," + other, "--prompt-cache-ro")
        adapter(one, 3)  # the same name and shapes, other numbers
        expect(0, "adapters", *base, "--lora", one + ":0.5")
        expect(0, "now: adapter one.gguf:0;", *base, "--lora", one + ":0")
        expect(1, "--lora: " + other[:-5] + "s.gguf: No such file or directory; did you mean '" + other + "'?", *base, "--lora", other[:-5] + "s.gguf")
        expect(2, "--lora: " + one + "=0.5: a scale stands after a colon: '" + one + ":0.5'", *base, "--lora", one + "=0.5")
        expect(1, " are NaN) with one.gguf at scale 1e+38: a scale is too large for an adapter, or its numbers are wrong", "-p", "Once upon", "-n", "2", "--lora", one + ":1e38")
        expect(0, "now: none", *base)
        expect(0, "from cache", *base)

        for bad in ("abc", "nan", "inf", "1e999", ""):
            expect(2, f"one.gguf:{bad}: '{bad}' is not a scale", "-p", "x", "-n", "1", "--lora", f"{one}:{bad}")
        expect(2, "'x' is not a scale", "-p", "x", "-n", "1", "--lora-scaled", f"{one}:x")
        odd = os.path.join(folder, "odd:name")
        os.rename(other, odd)
        expect(0, "", "-p", "x", "-n", "1", "--lora", odd)
        expect(1, "no:file", "-p", "x", "-n", "1", "--lora", os.path.join(folder, "no:file"))
        expect(1, "one.gguf: this is an adapter (general.type), not a model; it is applied to the model that it was made for", "-m", one, "-p", "x")
    for fault in faults:
        print(fault)
    sys.exit(len(faults) > 0)


main()
