#!/usr/bin/env python3
"""Keys of published files: each that is neutral or informational, added to a small model of its family, changes no bit of the
logits; and so do all keys that llama.cpp writes when it saves a model, at once.

    published_keys.py LLM_CLI SHARED FOLDER

SHARED holds found/published-files/keys.json and golden/*.gguf; without them the test is skipped (exit code 77). FOLDER is for
the changed models.
"""
import json
import os
import struct
import subprocess
import sys

CODES = {"u8": (0, "<B"), "u16": (2, "<H"), "u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<B"), "u64": (10, "<Q"),
         "i64": (11, "<q"), "f64": (12, "<d")}
SHIPPED = ["llama", "gpt2", "qwen2", "qwen3", "qwen3moe", "qwen35", "gemma2", "phi3", "lfm2", "bloom"]
SIZE = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
FORMAT = {code: f for code, f in CODES.values()}


def string(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def encoded(kind, value):
    """The type and value of a key, as a file has them."""
    if kind == "str":
        return struct.pack("<I", 8) + string(value)
    if kind == "arr[str]":
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(string(v) for v in value)
    if kind.startswith("arr["):
        code, f = CODES[kind[4:-1]]
        return struct.pack("<IIQ", 9, code, len(value)) + b"".join(struct.pack(f, v) for v in value)
    code, f = CODES[kind]
    return struct.pack("<I", code) + struct.pack(f, float(value) if kind[0] == "f" else int(value))


class Model:
    """A file cut into its keys, the table of tensors and the data, so that keys can be added."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.b = f.read()
        _, self.version, self.n_tensors, self.n_keys = struct.unpack_from("<4sIQQ", self.b)
        self.keys, at = {}, 24
        for _ in range(self.n_keys):
            name, at = self.string(at)
            self.keys[name], at = self.value(at)
        self.end = at
        for _ in range(self.n_tensors):
            _, at = self.string(at)
            at += 4 + 8 * struct.unpack_from("<I", self.b, at)[0] + 12
        self.end_table, self.data = at, (at + 31) // 32 * 32
        self.arch = self.keys["general.architecture"]

    def string(self, at):
        n, = struct.unpack_from("<Q", self.b, at)
        return self.b[at + 8:at + 8 + n].decode("utf8", "surrogateescape"), at + 8 + n

    def value(self, at):
        code, = struct.unpack_from("<I", self.b, at)
        at += 4
        if code == 8:
            return self.string(at)
        if code != 9:
            return struct.unpack_from(FORMAT.get(code, "<b"), self.b, at)[0], at + SIZE[code]
        code, n = struct.unpack_from("<IQ", self.b, at)
        at += 12
        out = []
        for _ in range(n):
            v, at = self.string(at) if code == 8 else (struct.unpack_from(FORMAT.get(code, "<b"), self.b, at)[0], at + SIZE[code])
            out.append(v)
        return out, at

    def get(self, name, otherwise=None):
        return self.keys.get(f"{self.arch}.{name}", otherwise)

    def write(self, path, added):
        """added: (key, type, value), none of them in the file."""
        head = struct.pack("<4sIQQ", b"GGUF", self.version, self.n_tensors, self.n_keys + len(added)) + self.b[24:self.end]
        head += b"".join(string(k) + encoded(t, v) for k, t, v in added) + self.b[self.end:self.end_table]
        with open(path, "wb") as f:
            f.write(head + b"\0" * (-len(head) % 32) + self.b[self.data:])


def off_values(model, rows):
    """What llama.cpp's saver writes for keys that a family does not use."""
    head_count = model.get("attention.head_count")
    head_count = max(head_count) if isinstance(head_count, list) else head_count
    d = model.get("attention.key_length", model.get("embedding_length") // head_count)
    names = {"d": d, "dv": model.get("attention.value_length", d), "L": model.get("block_count"), "ctx": model.get("context_length"),
             "rot": model.get("rope.dimension_count", d)}
    for row in rows:
        key = row["key"].replace("{arch}", model.arch)
        if key not in model.keys:
            used = {"bloom.attention.max_alibi_bias": 8.0,  # of a family that uses it, the value it uses
                    "qwen35.attention.recurrent_layers": [(l + 1) % 4 != 0 for l in range(names["L"])]}
            yield key, row["type"], used.get(key, eval(row["value"], {}, names))


def main():
    cli, shared, folder = sys.argv[1:4]
    table, golden = os.path.join(shared, "found/published-files/keys.json"), os.path.join(shared, "golden")
    if not shared or not os.path.exists(table) or not os.path.exists(os.path.join(golden, "llama.gguf")):
        print("skipped: a survey of published files: not part of the repository, and found in no folder GGL_SHARED")
        return 77
    with open(table) as f:
        data = json.load(f)
    path, out = os.path.join(folder, "published-keys.gguf"), os.path.join(folder, "published-keys.npy")
    n = wrong = 0

    def logits(file):
        done = subprocess.run([cli, "-m", file, "--tokens", "1,2,3,5,7", "-n", "0", "--logits", out], capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr
        with open(out, "rb") as f:
            return f.read(), done.stderr

    def check(model, want, what, added):
        nonlocal n, wrong
        model.write(path, added)
        got, message = logits(path)
        n += 1
        if got != want:
            wrong += 1
            print(f"{what}: {message or 'other logits'}")
        elif "published-keys" in message or "note" in message or "ignored" in message:
            wrong += 1
            print(f"{what}: not silent: {message}")

    for family in SHIPPED:
        file = os.path.join(golden, family + ".gguf")
        model = Model(file)
        want, message = logits(file)
        assert want, message
        for e in data["families"][family]:
            if "tried" in e and e["effect"].startswith("neutral") and e["key"] not in model.keys:
                check(model, want, f"{e['key']} {e['type']} {e['tried']}", [(e["key"], e["type"], e["tried"])])
        check(model, want, f"{family}, as llama.cpp saves it", list(off_values(model, data["saver_off_values"])))
    for name in (path, out):
        if os.path.exists(name):
            os.remove(name)
    print(f"{n} models, {wrong} wrong")
    return 1 if wrong or n < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
