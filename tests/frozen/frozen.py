#!/usr/bin/env python3
"""Runs descriptors of earlier days on nano models, and compares the logits with those of that day. README.md has the rule of this folder.

    frozen.py BIN          runs all: with the descriptor as a file, inside the GGUF file, and in a copy that llm-quantize made
    frozen.py --digests    checks that no file was changed or removed
    frozen.py --add        appends the digests of new files to digests.txt
    frozen.py --test       shows that --digests finds a changed, a removed and an unlisted file
    frozen.py --record LLM_CLI NAME    prints the lines `logits` of NAME.model, as this engine computes them

NAME.arch is a text and NAME.model its nano model: keys, tensors (shape innermost first; numbers of their own in each layer), tokens, and the
logits after some of them. The numbers of a tensor are a function of its name, so that the file needs only their mean and deviation.
Python's own library is enough.
"""
import array
import hashlib
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 2e-4  # float32, on values of a few units; what a change of meaning gives is larger by far
OWN = "frozen.py", "README.md", "digests.txt", "CMakeLists.txt"
NUMBERS = {"u32": (4, "<I", int), "i32": (5, "<i", int), "f32": (6, "<f", float), "bool": (7, "<?", lambda s: s == "true")}


# --- models --------------------------------------------------------------------------------------

def numbers_of(name, n, mean, deviation):
    """n numbers, evenly distributed, the same ones for ever: of SHAKE-256 of the name."""
    drawn = array.array("I", hashlib.shake_256(name.encode()).digest(4 * n))
    if sys.byteorder == "big":
        drawn.byteswap()
    scale, low = deviation * 12 ** 0.5 / 2 ** 32, mean - deviation * 3 ** 0.5
    return struct.pack(f"<{n}f", *(low + scale * u for u in drawn))


def string(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def value_of(kind, words):
    if kind == "str":
        return struct.pack("<I", 8) + string(" ".join(words))
    if kind == "str*":
        return struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(string, words))
    number, form, read = NUMBERS[kind.rstrip("*")]
    items = b"".join(struct.pack(form, read(w)) for w in words)
    if kind.endswith("*"):  # a list
        return struct.pack("<IIQ", 9, number, len(words)) + items
    return struct.pack("<I", number) + items


def layers_of(name):
    """blk.0-2,5.attn_q.weight: the names of the layers 0, 1, 2 and 5."""
    found = re.match(r"blk\.([\d,-]+)\.(.*)", name)
    if not found:
        return [name]
    spans = [s.split("-") for s in found.group(1).split(",")]
    return [f"blk.{l}.{found.group(2)}" for s in spans for l in range(int(s[0]), int(s[-1]) + 1)]


class Model:
    def __init__(self, path):
        self.keys, self.tensors, self.tokens, self.n_ctx, self.logits = [], [], [], 64, {}
        with open(path, encoding="utf-8") as f:
            for line in f:
                word, *rest = line.split("#")[0].split() or ["#"]
                if word == "key":
                    self.keys.append((rest[0], value_of(rest[1], rest[2:])))
                elif word == "tensor":
                    shape, mean, deviation = [int(n) for n in rest[1].split("x")], float(rest[2]), float(rest[3])
                    self.tensors += [(name, shape, mean, deviation) for name in layers_of(rest[0])]
                elif word == "tokens":
                    self.tokens = rest
                elif word == "context":
                    self.n_ctx = int(rest[0])
                elif word == "logits":
                    self.logits[int(rest[0])] = [float(x) for x in rest[1:]]

    def write(self, path, descriptor=None):
        keys = self.keys + ([("general.descriptor", struct.pack("<I", 8) + string(descriptor))] if descriptor else [])
        head, data = [b"GGUF", struct.pack("<IQQ", 3, len(self.tensors), len(keys))], []
        head += [string(name) + value for name, value in keys]
        at = 0
        for name, shape, mean, deviation in self.tensors:
            n = 1
            for extent in shape:
                n *= extent
            head.append(string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", 0, at))
            values = numbers_of(name, n, mean, deviation)
            data.append(values + bytes(-len(values) % 32))
            at += len(data[-1])
        start = b"".join(head)
        with open(path, "wb") as f:
            f.write(start + bytes(-len(start) % 32) + b"".join(data))


# --- running -------------------------------------------------------------------------------------

def run(cli, model, file, *more):
    """The logits after each token, and the notes; fails with the engine's message."""
    out = file + ".npy"
    done = subprocess.run([cli, "-m", file, "--tokens", ",".join(model.tokens), "-n", "0", "-c", str(model.n_ctx), "-t", "1", "-ctk", "f32",
                           "-ctv", "f32", "--logits", out, *more], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    with open(out, "rb") as f:
        raw = f.read()
    rows, columns = map(int, re.search(rb"'shape': \((\d+), (\d+)\)", raw[:128]).groups())
    numbers = struct.unpack(f"<{rows * columns}f", raw[10 + struct.unpack("<H", raw[8:10])[0]:])
    return [numbers[k * columns:(k + 1) * columns] for k in range(rows)], done.stderr


def distance(model, got):
    """The largest; infinite if the lengths or the places of -inf differ."""
    far = 0.0
    for at, row in model.logits.items():
        if len(row) != len(got[at]):
            return float("inf")
        for a, b in zip(row, got[at]):
            far = max(far, 0.0 if a == b else abs(a - b))
            if far != far:
                return float("inf")
    return far


def read_text(name):
    with open(os.path.join(HERE, name + ".arch"), encoding="utf-8") as f:
        return f.read()


def check(folder, tools, name):
    model, text, file = Model(os.path.join(HERE, name + ".model")), read_text(name), os.path.join(folder, name + ".gguf")
    cli = os.path.join(tools, "llm-cli")
    model.write(file)
    far = {"a file": distance(model, run(cli, model, file, "--arch", os.path.join(HERE, name + ".arch"))[0])}
    model.write(file, text)
    far["inside"] = distance(model, run(cli, model, file)[0])
    quantize, copy = os.path.join(tools, "llm-quantize"), file + "-copy"
    if os.path.exists(quantize):
        subprocess.run([quantize, file, copy, "COPY"], check=True, capture_output=True)
        far["copied"] = distance(model, run(cli, model, copy)[0])
    ok = bool(model.logits) and all(d <= LIMIT for d in far.values())
    print(f"{name:28}", "  ".join(f"{k} {d:7.1e}" for k, d in far.items()), "ok" if ok else "OTHER LOGITS")
    return ok


def run_all(tools):
    names = sorted(f[:-len(".arch")] for f in os.listdir(HERE) if f.endswith(".arch"))
    failed = 0 if names else 1
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                failed += not check(folder, tools, name)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as e:
                print(f"{name:28} REFUSED: {e}")
                failed += 1
    print(f"{len(names)} texts, {failed} failed")
    return 1 if failed else 0


# --- the rule ------------------------------------------------------------------------------------

def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def listed(folder):
    with open(os.path.join(folder, "digests.txt"), encoding="utf-8") as f:
        return {name: d for d, name in (line.split() for line in f)}


def faults(folder):
    want, there = listed(folder), set(os.listdir(folder)) - set(OWN) - {"__pycache__"}
    out = [f"{name} was removed: this folder only grows" for name in sorted(set(want) - there)]
    out += [f"{name} was changed: this folder only grows, so put the old text back, and freeze a new one beside it"
            for name in sorted(set(want) & there) if digest(os.path.join(folder, name)) != want[name]]
    return out + [f"{name} is not listed: frozen.py --add" for name in sorted(there - set(want))]


def add():
    want = listed(HERE)
    with open(os.path.join(HERE, "digests.txt"), "a", encoding="utf-8") as f:
        for name in sorted(set(os.listdir(HERE)) - set(OWN) - set(want) - {"__pycache__"}):
            f.write(f"{digest(os.path.join(HERE, name))}  {name}\n")


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ("a.arch", "1"), ("b.arch", "2"), ("c.arch", "3"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        with open(os.path.join(folder, "digests.txt"), "w", encoding="utf-8") as f:
            f.write("".join(f"{digest(os.path.join(folder, n))}  {n}\n" for n in ("a.arch", "b.arch")) + f"{'0' * 64}  gone.arch\n")
        with open(os.path.join(folder, "a.arch"), "a", encoding="utf-8") as f:
            f.write(" ")
        found = faults(folder)
    assert len(found) == 3 and "gone.arch was removed" in found[0] and "a.arch was changed" in found[1] and "c.arch is not listed" in found[2], found


def record(cli, name):
    model = Model(os.path.join(HERE, name + ".model"))
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "m.gguf")
        model.write(file)
        rows = run(cli, model, file, "--arch", os.path.join(HERE, name + ".arch"))[0]
    for at in (len(model.tokens) // 2, len(model.tokens) - 1):
        print("logits", at, *(f"{x:.4f}" for x in rows[at]))


def main():
    if sys.argv[1:] == ["--digests"]:
        found = faults(HERE)
        print("\n".join(found) if found else f"{len(listed(HERE))} files, as they were")
        return 1 if found else 0
    if sys.argv[1:] == ["--test"]:
        return self_test()
    if sys.argv[1:] == ["--add"]:
        return add()
    if sys.argv[1:2] == ["--record"]:
        return record(*sys.argv[2:4])
    return run_all(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
