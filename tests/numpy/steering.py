#!/usr/bin/env python3
"""Control vectors against numpy: the logits of a llama to whose rows, at the end of each layer, scale * direction is added, alone and with an adapter.

    steering.py --cli LLM_CLI --dir FOLDER

Exit code 0, 1.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

import gguf
from blocks import rms_norm
from tapped import entering, target

N_LAYER, N_EMBD = 4, 40


def write_vector(path, directions, **more):
    gguf.write(path, {"general.architecture": "controlvector", "controlvector.model_hint": "llama", **more},
               {f"direction.{l}": np.asarray(d, np.float32) for l, d in directions.items()})


def expected(case, more, tensors):
    """In double precision."""
    w = {name: t.astype(np.float64) for name, t in tensors.items()}
    x = entering(lambda name, *default: case.keys.get(name, *default), w, case.tokens, [N_LAYER], more)
    return rms_norm(x, w["output_norm.weight"], case.keys["attention.layer_norm_rms_epsilon"]) @ w["output.weight"].T


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", required=True)
    a = p.parse_args()
    case, rng, failed = target(N_EMBD, 5), np.random.default_rng(3), False
    one = {l: rng.normal(size=N_EMBD).astype(np.float32) for l in (1, 2, 3)}
    two = {l: rng.normal(size=N_EMBD).astype(np.float32) for l in (3, 1)}
    pair = rng.normal(size=(2, N_EMBD)).astype(np.float32), (0.3 * rng.normal(size=(N_EMBD, 2))).astype(np.float32)
    adapted = dict(case.tensors)
    adapted["blk.2.attn_q.weight"] = case.tensors["blk.2.attn_q.weight"] + 0.5 * pair[1] @ pair[0]

    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        model, first, second, adapter, out = (os.path.join(folder, n) for n in ("model.gguf", "one.gguf", "two.gguf", "adapter.gguf", "logits.npy"))
        gguf.write(model, case.meta(), case.tensors)
        write_vector(first, one)
        write_vector(second, two)
        gguf.write(adapter, {"general.type": "adapter", "adapter.type": "lora", "general.architecture": "llama"},
                   {"blk.2.attn_q.weight.lora_a": pair[0], "blk.2.attn_q.weight.lora_b": pair[1]})

        def logits(*more):
            subprocess.run([a.cli, "-m", model, "--tokens", ",".join(map(str, case.tokens)), "-n", "0", "-t", "1", "-ctk", "f32", "-ctv", "f32", "--logits", out, *more], check=True, capture_output=True,
                           stdin=subprocess.DEVNULL)
            return np.load(out)

        def sum_of(*uses, layers=range(1, N_LAYER)):
            return [(l, sum(scale * v[l].astype(np.float64) for v, scale in uses if l in v)) for l in layers]
        plain = logits()
        for what, more, want in (
                ("one vector", ["--control-vector", first], expected(case, sum_of((one, 1)), case.tensors)),
                ("with a scale", ["--control-vector-scaled", first + ":-0.7"], expected(case, sum_of((one, -0.7)), case.tensors)),
                ("two, of which one has fewer layers", ["--control-vector-scaled", f"{first}:0.5,{second}:2"], expected(case, sum_of((one, 0.5), (two, 2)), case.tensors)),
                ("both flags", ["--control-vector", first, "--control-vector-scaled", second, "0.25"], expected(case, sum_of((one, 1), (two, 0.25)), case.tensors)),
                ("a range of layers", ["--control-vector", first, "--control-vector-layer-range", "2", "3"], expected(case, sum_of((one, 1), layers=(2, 3)), case.tensors)),
                ("a range that ends behind the last layer", ["--control-vector", first, "--control-vector-layer-range", "1", "4"], expected(case, sum_of((one, 1)), case.tensors)),
                ("with an adapter", ["--control-vector", first, "--lora-scaled", adapter + ":0.5"], expected(case, sum_of((one, 1)), adapted))):
            got = logits(*more)
            far, moved, size = np.abs(got - want).max(), np.abs(want - plain).max(), np.abs(want).max()
            ok = far <= 2e-4 * size and moved > 0.05 * size
            failed |= not ok
            print(f"{'' if ok else 'FAILED: '}{what}: {far:.1e} away from numpy, {moved:.2g} from the plain model, of {size:.2g}")
        if not np.array_equal(logits("--control-vector-scaled", first + ":0"), plain):
            failed = True
            print("FAILED: scale 0 changes bits")
    return failed


if __name__ == "__main__":
    sys.exit(main())
