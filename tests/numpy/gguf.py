"""GGUF version 3, as far as the tests need it: written from the format's description.

write(path, meta, tensors): meta is a dict of Python values (a bool, an int, a float, a string or a list of one kind; Typed where
the type matters), tensors a dict of float32 or int32 arrays, numpy order: the last dimension is GGUF's first; or of Blocks, which are written as they are.
read(path) gives both back, of f32 and f16 tensors; read_blocks(path) as Typed and Blocks, which write() takes.
"""
import collections
import struct

import numpy as np

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q", 11: "<q", 12: "<d"}
ALIGNMENT = 32
TYPE_F32, TYPE_F16, TYPE_I32, TYPE_I64 = 0, 1, 26, 27
# elements and bytes; 2: q4_0, 3: q4_1, 7: q5_1, 8: q8_0, 30: bf16
BLOCK_SIZES = {TYPE_F32: (1, 4), TYPE_F16: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
               11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 30: (1, 2), 35: (256, 66), 39: (32, 17),
               40: (64, 36)}

# A tensor of any type: GGUF's number of it, the shape in elements, the bytes.
Blocks = collections.namedtuple("Blocks", "kind shape data")

# A value of a type of the caller's choice: GGUF's number of it, and that of the elements if it is an array.
Typed = collections.namedtuple("Typed", "kind value inner", defaults=[None])


def kind_of(value):
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return U32 if value >= 0 else I32
    if isinstance(value, float):
        return F32
    if isinstance(value, str):
        return STRING
    if isinstance(value, (list, tuple)):
        return ARRAY
    raise TypeError(f"no GGUF type for {value!r}")


def pack_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def typed(value):
    if isinstance(value, Typed):
        return value
    kind = kind_of(value)
    return Typed(kind, value, kind_of(value[0]) if kind == ARRAY else None)


def pack_value(value, kind, inner=None):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        return struct.pack("<IQ", inner, len(value)) + b"".join(pack_value(v, inner) for v in value)
    return struct.pack(SCALARS[kind], value)


def blocks_of(t, name):
    if isinstance(t, Blocks):
        return t
    return Blocks({"float32": TYPE_F32, "float16": TYPE_F16, "int32": TYPE_I32, "int64": TYPE_I64}[t.dtype.name], t.shape, t.tobytes())


def write(path, meta, tensors):
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for key, value in meta.items():
        t = typed(value)
        head += pack_string(key) + struct.pack("<I", t.kind) + pack_value(t.value, t.kind, t.inner)
    offset = 0
    for name, t in tensors.items():
        t = blocks_of(t, name)
        head += pack_string(name) + struct.pack("<I", len(t.shape))
        head += struct.pack(f"<{len(t.shape)}Q", *reversed(t.shape)) + struct.pack("<IQ", t.kind, offset)
        offset += len(t.data) + -len(t.data) % ALIGNMENT
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % ALIGNMENT))
        for name, t in tensors.items():
            data = blocks_of(t, name).data
            f.write(data + bytes(-len(data) % ALIGNMENT))


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, fmt):
        values = struct.unpack_from(fmt, self.data, self.at)
        self.at += struct.calcsize(fmt)
        return values[0] if len(values) == 1 else values

    def string(self):
        n = self.take("<Q")
        self.at += n
        return self.data[self.at - n : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, n = self.take("<I"), self.take("<Q")
            return [self.value(inner) for _ in range(n)]
        return self.take(SCALARS[kind])


def read(path):
    with open(path, "rb") as f:
        r = Reader(f.read())
    assert r.data[:4] == b"GGUF", path
    r.at = 4
    version, n_tensors, n_meta = r.take("<IQQ")
    assert version in (2, 3), version
    meta, infos, tensors = {}, [], {}
    for _ in range(n_meta):
        key = r.string()
        meta[key] = r.value(r.take("<I"))
    for _ in range(n_tensors):
        name, n_dims = r.string(), r.take("<I")
        shape = [r.take("<Q") for _ in range(n_dims)]
        infos.append((name, shape[::-1], *r.take("<IQ")))
    align = meta.get("general.alignment", ALIGNMENT)
    start = r.at + -r.at % align
    for name, shape, kind, offset in infos:
        dtypes = {TYPE_F32: "<f4", TYPE_F16: "<f2", TYPE_I32: "<i4", TYPE_I64: "<i8"}
        assert kind in dtypes, f"{name}: type {kind} is not read here"
        flat = np.frombuffer(r.data, np.dtype(dtypes[kind]), int(np.prod(shape)), start + offset)
        tensors[name] = flat.reshape(shape).astype(np.float32)
    return meta, tensors


def read_blocks(path):
    with open(path, "rb") as f:
        r = Reader(f.read())
    r.at = 8
    n_tensors, n_meta = r.take("<QQ")
    meta, infos, tensors = {}, [], {}
    for _ in range(n_meta):
        key, kind = r.string(), r.take("<I")
        inner = struct.unpack_from("<I", r.data, r.at)[0] if kind == ARRAY else None
        meta[key] = Typed(kind, r.value(kind), inner)
    for _ in range(n_tensors):
        name, n_dims = r.string(), r.take("<I")
        infos.append((name, tuple(r.take("<Q") for _ in range(n_dims))[::-1], *r.take("<IQ")))
    start = r.at + -r.at % ALIGNMENT
    for name, shape, kind, offset in infos:
        block, size = BLOCK_SIZES[kind]
        n = int(np.prod(shape)) // block * size
        tensors[name] = Blocks(kind, shape, r.data[start + offset : start + offset + n])
    return meta, tensors
