#!/usr/bin/env python3
"""Adapters in llm-cli, as a user meets them: prompt caches belong to them, and mistakes are named.

    adapters.py LLM_CLI"""
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gguf_file import gguf


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


def vector(path, seed, n=128, layers=range(1, 5), size=0.5, architecture="controlvector"):
    """Writes a control vector for the built-in model."""
    r = random.Random(seed)
    data = [(f"direction.{l}", "f32", (n,), struct.pack(f"<{n}f", *(r.uniform(-size, size) for _ in range(n)))) for l in layers]
    with open(path, "wb") as f:
        f.write(gguf([("general.architecture", "string", architecture), ("controlvector.model_hint", "string", "llama")], data))


def steers(expect, folder, lora, faults):
    """Control vectors: saved prompts belong to them, and mistakes are named."""
    happy, sad, wrong, cache = (os.path.join(folder, n) for n in ("happy.gguf", "sad.gguf", "wrong.gguf", "steered"))
    vector(happy, 1)
    vector(sad, 2, layers=(2, 3))
    base = ("-p", "Once upon a time there was", "-n", "24", "--temp", "0", "--prompt-cache", cache)
    one = ("-p", "x", "-n", "1")
    plain = expect(0, "", *base)
    steered = expect(0, "another setting: none; now: control vector happy.gguf:1", *base, "--control-vector", happy)
    if steered == plain:
        faults.append("the control vector has no effect")
    expect(0, "from cache", *base, "--control-vector-scaled", happy + ":1.0")
    expect(0, "now: control vector happy.gguf:1 (layers 2 to 3)", *base, "--control-vector", happy, "--control-vector-layer-range", "2", "3")
    expect(0, "now: adapter one.gguf:0.5, control vector happy.gguf:0.5, control vector sad.gguf:-2", *base, "--control-vector-scaled", f"{happy}:0.5,{sad}:-2", "--lora",
           lora + ":0.5")
    vector(happy, 3)  # the same name and shapes, other numbers
    expect(0, "control vectors", *base, "--control-vector-scaled", f"{happy}:0.5,{sad}:-2", "--lora", lora + ":0.5")
    shown = expect(0, "", *one, "--plan", "--control-vector-scaled", happy, "0.5", "--control-vector-layer-range", "0", "3")
    if b"happy.gguf: a control vector for layers 1 to 3, scale 0.5" not in shown:
        faults.append(f"--plan shows {shown}")
    for last in ("-1", "0", "4", "5"):  # the last layer, as in llama.cpp
        expect(0, "", *one, "--control-vector", happy, "--control-vector-layer-range", "-1", last)
    expect(2, "--control-vector: happy.gguf: the range of layers is 1 to 6, but", *one, "--control-vector", happy, "--control-vector-layer-range", "1", "6")
    expect(2, "--control-vector: happy.gguf: the range of layers is 5 to 4, but", *one, "--control-vector", happy, "--control-vector-layer-range", "5", "0")
    expect(2, "begins at layer 3 and ends at 2", *one, "--control-vector", happy, "--control-vector-layer-range", "3", "2")
    expect(2, "--control-vector-scaled: sad.gguf: it has directions for some layers from 2 to 3, none of which is in the range of layers, 4 to 4", *one, "--control-vector-scaled",
           sad + ":1", "--control-vector-layer-range", "4", "4")
    expect(2, "--control-vector-layer-range 3: the numbers of two layers are expected", *one, "--control-vector", happy, "--control-vector-layer-range", "3")
    expect(2, "--control-vector-layer-range a 3: the numbers of two layers are expected", *one, "--control-vector", happy, "--control-vector-layer-range", "a", "3")
    expect(2, "--control-vector-layer-range 1 1.5: the numbers of two layers", *one, "--control-vector", happy, "--control-vector-layer-range", "1", "1.5")
    expect(2, "--control-vector-layer-range needs --control-vector", *one, "--control-vector-layer-range", "1", "2")
    expect(2, "happy.gguf:x: 'x' is not a scale", *one, "--control-vector-scaled", happy + ":x")
    expect(2, "happy.gguf has no scale; FILE:SCALE gives it one", *one, "--control-vector-scaled", happy)
    expect(1, "--control-vector: " + happy[:-5] + "s.gguf: No such file or directory; did you mean '" + happy + "'?", *one, "--control-vector", happy[:-5] + "s.gguf")
    vector(wrong, 1, n=64)
    expect(1, "--control-vector: wrong.gguf: direction.1 has 64 numbers, but the rows that layer 1 of", *one, "--control-vector", wrong)
    expect(1, "hands on have 128; it was made for a model of the kind llama", *one, "--control-vector", f"{happy},{wrong}")
    vector(wrong, 1, layers=range(1, 8))
    expect(1, "wrong.gguf: direction.7 is for layer 7, but", *one, "--control-vector", wrong)
    vector(wrong, 1, architecture="llama")
    expect(1, "wrong.gguf is not a control vector: its key general.architecture is \"llama\"", *one, "--control-vector", wrong)
    vector(wrong, 1, layers=())
    expect(1, "wrong.gguf has no directions", *one, "--control-vector", wrong)
    with open(happy, "rb") as f, open(wrong, "wb") as g:
        g.write(f.read()[:-400])
    expect(1, "--control-vector: " + wrong + ": the file is truncated: it needs 2368 bytes, the file has 1968: 400 are missing, from tensor 'direction.4' on", *one, "--control-vector", wrong)
    expect(1, "--control-vector: one.gguf is an adapter (general.type), not a control vector", *one, "--control-vector", lora)
    expect(1, "--lora: happy.gguf is a control vector, not a LoRA adapter", *one, "--lora", happy)
    expect(1, "happy.gguf: this is a control vector (general.architecture), not a model", "-m", happy, *one)
    vector(wrong, 1, size=1e38)
    expect(1, "are NaN) with wrong.gguf at scale 10: a scale is too large for an adapter or a control vector", *one, "--control-vector-scaled", wrong + ":10")


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
        expect(1, " are NaN) with one.gguf at scale 1e+38: a scale is too large for an adapter or a control vector, or its numbers are wrong", "-p", "Once upon", "-n", "2", "--lora", one + ":1e38")
        expect(0, "now: none", *base)
        expect(0, "from cache", *base)

        for bad in ("abc", "nan", "inf", "1e999", ""):
            expect(2, f"one.gguf:{bad}: '{bad}' is not a scale", "-p", "x", "-n", "1", "--lora", f"{one}:{bad}")
        expect(2, "'x' is not a scale", "-p", "x", "-n", "1", "--lora-scaled", f"{one}:x")
        odd = os.path.join(folder, "odd:name")
        os.rename(other, odd)
        expect(0, "", "-p", "x", "-n", "1", "--lora", odd)
        expect(1, "no:file", "-p", "x", "-n", "1", "--lora", os.path.join(folder, "no:file"))
        steers(expect, folder, one, faults)
        expect(1, "one.gguf: this is an adapter (general.type), not a model; it is applied to the model that it was made for", "-m", one, "-p", "x")
    for fault in faults:
        print(fault)
    sys.exit(len(faults) > 0)


main()
