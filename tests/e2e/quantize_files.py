#!/usr/bin/env python3
"""llm-quantize on files that this script writes. quantize_files.py LLM_QUANTIZE LLM_GGUF"""
import json
import os
import random
import struct
import sys

from checks import TMP, check, finish, runner
from gguf_file import gguf

QUANTIZE, GGUF = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
run_tool = runner("")


def run(code, words, tool, *args):
    """Runs a tool; returns what it wrote to standard output."""
    return run_tool(tool, *args, code=code, said=words)


def model(n_layer, more=(), keys=()):
    """A model with a matrix in each layer."""
    r = random.Random(1)
    head = [("general.architecture", "string", "llama"), ("llama.block_count", "u32", n_layer), *keys]
    return gguf(head, [(f"blk.{i}.attn_q.weight", "f32", [256, 8], struct.pack("<2048f", *(r.gauss(0, 1) for _ in range(2048))))
                       for i in range(n_layer)] + list(more))


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def integers():
    """A matrix of integers is copied, and its size counts."""
    write("i32.gguf", model(3, [("blk.0.ffn_up.weight", "i32", [256, 64], struct.pack("<16384i", *range(16384)))]))
    for limit in (80000, 90000):
        run(0, "", QUANTIZE, "-q", "--budget", str(limit), "i32.gguf", "out.gguf")
        size = os.path.getsize("out.gguf")
        check(limit - 10000 < size <= limit, f"--budget {limit} gives {size} bytes")
    tensors = json.loads(run(0, "", GGUF, "show", "out.gguf", "--json"))["tensors"]
    check([t["type"] for t in tensors if t["name"] == "blk.0.ffn_up.weight"] == ["i32"], f"the integers became {tensors}")
    # of "few", the least is a number of thousandths whose product with the weights rounds to a byte less
    write("few.gguf", model(9, [("blk.0.ffn_up.weight", "i32", [256, 3], struct.pack("<768i", *range(768)))]))
    for path, flag, limit, unit in (("i32.gguf", "--budget", "60000", " bytes)"), ("i32.gguf", "--bpw", "2", " bits per weight"),
                                    ("few.gguf", "--bpw", "1", " bits per weight")):
        _, err = runner("", both=True)(QUANTIZE, flag, limit, path, "out.gguf", code=2, has="is too little")
        least = err.split("the smallest choice has ")[1].split(unit)[0].split("(")[-1]
        run(0, "", QUANTIZE, "-q", flag, least, path, "out.gguf")  # the least that the message names is enough


def layers():
    """--prune-layers shortens the lists of layers, and only them."""
    lists = [("llama.attention.head_count_kv", "u32", [1, 2, 3, 4]), ("llama.rope.dimension_sections", "i32", [11, 11, 10, 0]),
             ("llama.classifier.output_labels", "string", ["a", "b", "c", "d"]), ("clip.vision.sizes", "u32", [1, 2, 3, 4])]
    write("layers.gguf", model(4, keys=lists))
    run(0, "", QUANTIZE, "-q", "--prune-layers", "1,3", "layers.gguf", "out.gguf", "COPY")
    shown = json.loads(run(0, "", GGUF, "show", "out.gguf", "--json"))
    got = {k["key"]: k["value"] for k in shown["keys"]}
    want = {k: v for k, _, v in lists} | {"general.architecture": "llama", "llama.block_count": 2, "llama.attention.head_count_kv": [1, 3]}
    check(got == want and [t["name"] for t in shown["tensors"]] == ["blk.0.attn_q.weight", "blk.1.attn_q.weight"],
          f"--prune-layers: {got} {shown['tensors']}")


def losses():
    """--loss with its records in another order, and with absurd numbers, gives the best choice."""
    write("six.gguf", model(6))
    run(0, "", QUANTIZE, "-q", "--bpw", "4.5", "--loss", "loss.json", "six.gguf", "first.gguf")
    with open("loss.json", encoding="utf-8") as f:
        d = json.load(f)
    d["tensors"] = dict(reversed(d["tensors"].items()))
    with open("loss.json", "w", encoding="utf-8") as f:
        json.dump(d, f)
    run(0, "", QUANTIZE, "-q", "--bpw", "4.5", "--loss", "loss.json", "six.gguf", "out.gguf")
    with open("first.gguf", "rb") as a, open("out.gguf", "rb") as b:
        check(a.read() == b.read(), "the order of a file of losses matters")
    for i, t in enumerate(d["tensors"].values()):
        for kind in t["errors"]:
            t["errors"][kind] = 1e308 if i % 2 else 1.7e308
    with open("loss.json", "w", encoding="utf-8") as f:
        json.dump(d, f)
    run(0, "", QUANTIZE, "-q", "--bpw", "4.5", "--loss", "loss.json", "six.gguf", "out.gguf")


def pure():
    """With --pure, a name that is both a mix's and a type's is the type."""
    write("pure.gguf", model(2))
    for name, want in (("IQ2_S", "iq2_s"), ("iq2_s", "iq2_s"), ("Q4_K_M", "q4_k"), ("Q8_0", "q8_0")):
        run(0, "", QUANTIZE, "-q", "--pure", "pure.gguf", "out.gguf", name)
        types = {t["type"] for t in json.loads(run(0, "", GGUF, "show", "out.gguf", "--json"))["tensors"]}
        check(types == {want}, f"--pure {name} makes {types}")


os.chdir(TMP.name)
for step in (integers, layers, losses, pure):
    step()
os.chdir("/")
sys.exit(finish())
