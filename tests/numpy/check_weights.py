#!/usr/bin/env python3
"""Random blocks of every quantized type, as ggml-lite decodes them and as ./weights.py does: the same floats, bit for bit.

    check_weights.py --dump DUMP_FLOATS --dir FOLDER [--seed N]

The blocks go through a GGUF file. Their scales are random, too, and so are those of rows; some are infinite or NaN.
"""
import argparse
import os
import subprocess
import sys

import numpy as np

import gguf
import weights

BLOCKS = 1000


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dump", required=True)
    p.add_argument("--dir", default=".")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    rng = np.random.default_rng(a.seed)
    data, tensors = {}, {}
    for name, (kind, n, _, _) in weights.TYPES.items():
        data[name] = rng.integers(0, 256, (BLOCKS, weights.row_bytes(name, n)), dtype=np.uint8)
        tensors[name] = gguf.Blocks(kind, (BLOCKS, n), data[name].tobytes())
    path = os.path.join(a.dir, "weights.gguf")
    gguf.write(path, {"general.architecture": "none"}, tensors)
    done = subprocess.run([a.dump, path], stdin=subprocess.DEVNULL, capture_output=True)
    os.unlink(path)
    if done.returncode:
        print(done.stderr.decode())
        return 1
    got, at, failed = np.frombuffer(done.stdout, np.float32), 0, 0
    for name, (_, n, _, _) in weights.TYPES.items():
        ours, theirs = weights.decode_rows(name, data[name], n), got[at : at + BLOCKS * n].reshape(BLOCKS, n)
        at += BLOCKS * n
        same = (ours.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(ours) & np.isnan(theirs))
        failed += not same.all()
        print(f"{name:8} {same.sum()} of {same.size} elements, {np.isnan(ours).sum()} of them NaN",
              "" if same.all() else "FAILED, first at %d, %d" % tuple(np.argwhere(~same)[0]))
    if at != len(got):
        print(f"{len(got)} elements, expected {at}")
    return 1 if failed or at != len(got) else 0


if __name__ == "__main__":
    sys.exit(main())
