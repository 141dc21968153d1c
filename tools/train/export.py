"""Parts of a GGUF file (version 3), of which export_senses.py puts files together.

Layout: header, keys, tensor infos, padding to 32, then each tensor's data at a multiple of 32. A matrix of
shape (rows, columns) has ne = {columns, rows}. Q8_0 stores 32 neighbours of a row in 34 bytes: a half-float
d = max|x| / 127 and 32 signed bytes round(x / d).
"""

import struct

import numpy as np

ALIGN = 32
U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9              # value kinds of GGUF keys
F32, Q8_0 = 0, 8                                                   # tensor types
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6                          # token types
PACK = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}


def string(s):
    data = s.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def value(kind, x):
    return string(x) if kind == STRING else struct.pack(PACK[kind], x)


def key(name, kind, x):
    if isinstance(x, list):
        body = struct.pack("<IQ", kind, len(x)) + b"".join(value(kind, v) for v in x)
        return string(name) + struct.pack("<I", ARRAY) + body
    return string(name) + struct.pack("<I", kind) + value(kind, x)


def q8_0(x):
    """x: (rows, columns) float32, columns a multiple of 32."""
    x = np.ascontiguousarray(x, np.float32).reshape(-1, 32)
    d = np.abs(x).max(1) / np.float32(127)
    inverse = np.where(d > 0, 1 / np.where(d > 0, d, 1), 0).astype(np.float32)
    y = x * inverse[:, None]
    out = np.empty(len(x), np.dtype([("d", "<f2"), ("q", "i1", 32)]))
    out["d"] = d
    out["q"] = np.trunc(y + np.copysign(np.float32(0.5), y))       # halves away from zero
    return out.tobytes()
