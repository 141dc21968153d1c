"""Writes GGUF files, right and wrong ones."""
import struct

FORMATS = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"), "f32": (6, "f"),
           "bool": (7, "?"), "string": (8, None), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q8_0": (8, 32, 34), "i32": (26, 1, 4), "f64": (28, 1, 8)}


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def encode(kind, value):
    number, form = FORMATS[kind]
    one = (lambda v: text(v)) if form is None else (lambda v: struct.pack("<" + form, v))
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, number, len(value)) + b"".join(map(one, value))
    return struct.pack("<I", number) + one(value)


def gguf(keys, tensors, offsets=None, end=b"", types=None):
    """The bytes of a file. keys: (name, kind, value); tensors: (name, type, ne, bytes). offsets, types: others than the right ones."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, kind, value in keys:
        head += text(key) + encode(kind, value)
    data = b""
    for i, (name, kind, ne, content) in enumerate(tensors):
        number = (types or {}).get(i, TYPES[kind][0])
        offset = (offsets or {}).get(i, len(data))
        head += text(name) + struct.pack("<I", len(ne)) + struct.pack(f"<{len(ne)}Q", *ne) + struct.pack("<IQ", number, offset)
        data += content + bytes(-len(content) % 32)
    return head + bytes(-len(head) % 32) + data + end
