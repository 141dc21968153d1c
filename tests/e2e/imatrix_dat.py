#!/usr/bin/env python3
"""imatrix_dat.py IN.gguf CHUNK OUT.dat: writes an importance matrix in llama.cpp's old format, which has means, and counts in chunks of so many rows."""
import struct
import sys

from gguf_file import read_gguf

path, chunk, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
keys, tensors = read_gguf(path)
names = [name[: -len(".in_sum2")] for name in tensors if name.endswith(".in_sum2")]
with open(out, "wb") as f:
    f.write(struct.pack("<i", len(names)))
    for name in names:
        _, (n_col, n_mat), data = tensors[name + ".in_sum2"]
        counts = struct.unpack_from(f"<{n_mat}f", tensors[name + ".counts"][2])
        sums = struct.unpack_from(f"<{n_col * n_mat}f", data)
        n_call = -(-int(max(counts)) // chunk)
        means = [(s / counts[i // n_col] if counts[i // n_col] else 1) * n_call for i, s in enumerate(sums)]
        f.write(struct.pack("<i", len(name)) + name.encode() + struct.pack(f"<ii{len(means)}f", n_call, len(means), *means))
    text = (keys["imatrix.datasets"] or [""])[-1].encode()
    f.write(struct.pack("<ii", keys["imatrix.chunk_count"], len(text)) + text)
