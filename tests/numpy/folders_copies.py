#!/usr/bin/env python3
"""Folders with a second copy of the embeddings, as those of tied models often have it under the name of the output.

    folders_copies.py --convert LLM_CONVERT --dir FOLDER [--sample N] [CLASS ..]

The classes of ./folders.py whose convert section has a `copy` line get the tensor of that line. A true copy must change nothing in the
file, also one of another type; one that differs in one number must be refused, unless the user ignores it. Exit code 0, 1.
"""
import argparse
import glob
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

import folders
import today

ARCHS = pathlib.Path(__file__).parent.parent.parent / "models" / "archs"


def copies():
    """The names of `copy` lines, by class."""
    found = {}
    for path in glob.glob(str(ARCHS / "*.arch")):
        classes = []
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith("convert "):
                classes = re.split(r",\s*", line[8:].split(":")[0].split(" if ")[0])
            elif line.startswith("  copy "):
                for name in classes:
                    found.setdefault(name, []).extend(re.findall(r'"([^"]+)"', line.split(" of ")[0]))
    return found


class Folder:
    def __init__(self, a, class_name):
        c, w = folders.model_of(class_name, folders.CLASSES[class_name][2][0])
        self.a, self.path, self.out = a, os.path.join(a.dir, "copy-" + class_name.replace(" ", "-")), os.path.join(a.dir, "copy.gguf")
        os.makedirs(self.path, exist_ok=True)
        self.stored = dict(folders.stored_tensors(c, w))
        folders.write_others(self.path, c)
        self.type = c.get("type", "auto")
        pathlib.Path(self.path, "config.json").write_text(json.dumps(folders.written_config(class_name, c, folders.CLASSES[class_name][2][0], 5)))

    def convert(self, more=None, *options):
        folders.write_safetensors(os.path.join(self.path, "model.safetensors"), {**self.stored, **(more or {})})
        done = subprocess.run([self.a.convert, self.path, "-o", self.out, "--type", self.type, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, done.stderr + done.stdout

    def file(self, more=None, *options):
        code, said = self.convert(more, *options)
        if code:
            raise RuntimeError(f"{[*(more or {})]} {options}: {said.strip()}")
        return pathlib.Path(self.out).read_bytes(), said


def need(ok, what, said=""):
    if not ok:
        raise RuntimeError(f"{what}: {said.strip()}")


def check(a, class_name, name):
    """False: the folder has the tensor, or reads it before the other."""
    folder = Folder(a, class_name)
    if any(stored.endswith(name) for stored in folder.stored):
        return False
    plain, _ = folder.file()
    code, said = folder.convert({name: np.ones((3, 5))})
    if code == 1 and "tensor token_embd.weight is [5, 3]" in said:
        return False
    original = re.search(rf"tensor {re.escape(name)} should be a copy of (\S+), but has another shape", said)
    need(code == 1 and original, "a tensor of another shape is not refused", said)
    table = folder.stored[original.group(1)]
    need(folder.file({name: table})[0] == plain, "a copy changes the file")
    changed = np.array(table, np.float32)
    at = changed.size - 3
    changed.reshape(-1)[at] += 1
    code, said = folder.convert({name: changed})
    need(code == 1 and f"{name} should be a copy of {original.group(1)}" in said and f"as number {at}:" in said, "what differs is not refused", said)
    code, said = folder.convert({name: changed}, "--ignore-tensor", "lm_haed.*")
    need(code == 1 and "lm_haed.*" in said, "a pattern that matches nothing is not named", said)
    code, said = folder.convert({name: changed}, "--dry-run")
    need(code == 1 and said.count(f"{name} should be a copy of") == 1, "the report lacks the fault", said)
    same, said = folder.file({name: changed}, "--ignore-tensor", name)
    need(same == plain and f"{name} is ignored at your request" in said, "what is ignored counts", said)
    return True


def check_types(a):
    """A copy of another type has other bytes, and the same numbers or not."""
    folder = Folder(a, "Qwen2ForCausalLM")
    name, table = "lm_head.weight", "model.embed_tokens.weight"
    folder.stored[table] = np.round(np.clip(folder.stored[table], -1, 1) * 64) / 64
    bf16 = in_bf16(folder.stored[table])
    plain, _ = folder.file()
    need(folder.file({name: bf16})[0] == plain, "a copy in BF16 changes the file")
    folder.stored[table] = folder.stored[table] + 2.0 ** -12
    code, said = folder.convert({name: bf16})
    need(code == 1 and "as number 0:" in said and "config.json: tie_word_embeddings = true: " in said, "a rounded copy is not refused", said)
    config = json.loads(pathlib.Path(folder.path, "config.json").read_text())
    pathlib.Path(folder.path, "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    need(b"output.weight" in folder.file({name: bf16})[0], "an output of its own is not kept")


def in_bf16(x):
    """As folders.write_safetensors takes other types."""
    class Stored:  # numpy has no such type
        dtype, shape, data = "BF16", x.shape, (np.asarray(x, "<f4").view("<u4") >> 16).astype("<u2")
    return Stored()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--convert")
    p.add_argument("--dir", default=".")
    p.add_argument("--sample", type=int, help="so many classes, others each day")
    p.add_argument("classes", nargs="*")
    a = p.parse_args()
    folders.add_all()
    found, failed, n = copies(), 0, 0
    every = [name for name in folders.CLASSES if name.split()[0] in found]
    for class_name in today.sample("copies", a.classes or every, a.sample):
        for name in found[class_name.split()[0]]:
            try:
                n += check(a, class_name, name)
            except RuntimeError as e:
                failed += 1
                print(f"{class_name} {name}: FAILED: {e}")
    check_types(a)
    print(f"{n} tensors of {len(every)} classes: {failed} failed")
    return 1 if failed or n == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
