"""Writes GGUF files, right and wrong ones, and reads right ones."""
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


def read_gguf(path):
    """The keys of a file, and its tensors: name -> (type, shape, bytes from its data on)."""
    with open(path, "rb") as f:
        data = f.read()
    forms = dict(FORMATS.values())
    at = 24
    n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def string():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode()

    def value(kind):
        if kind == 9:
            inner = take("I")
            return [value(inner) for _ in range(take("Q"))]
        return take(forms[kind]) if forms[kind] else string()

    keys, table = {}, []
    for _ in range(n_keys):
        name = string()
        keys[name] = value(take("I"))
    for _ in range(n_tensors):
        name = string()
        shape = [take("Q") for _ in range(take("I"))]
        table.append((name, shape, take("I"), take("Q")))
    start = (at + 31) // 32 * 32
    return keys, {name: (kind, shape, data[start + offset:]) for name, shape, kind, offset in table}
