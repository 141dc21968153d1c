#!/usr/bin/env python3
"""Well-known published GGUF files as nano models: their keys, key types and tensor names from ./published.txt, with small sizes.

    published.py --cli LLM_CLI --dir FOLDER [--name TEXT] [GROUP ..]        --list: the groups; --name: files so called

For each file llm-cli runs two models of the same weights: a plain one, with the keys that plain.py writes, and one with exactly
the keys and tensors of the published file. Their logits must be equal, bit for bit, or, where a key of the file changes the
computation, those of the forward pass in families.py and not the plain ones. Then one key at a time gets a value that is not
neutral: llm-cli must refuse the file with exit code 1 and name the key. Exit code 0, 1.
"""
import argparse
import ast
import fnmatch
import inspect
import os
import re
import struct
import subprocess
import sys
import zlib

import numpy as np

import check
import gguf
import nano
import plain
import today

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published.txt")
KINDS = {"u8": 0, "i8": 1, "u16": 2, "i16": 3, "u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8, "u64": 10, "i64": 11, "f64": 12}
FLOATS = (KINDS["f32"], KINDS["f64"])

# architecture: the builder of plain.py, and the group in which the file is tested
BUILDERS = {
    "llama": (plain.llama, "llama"), "gpt2": (plain.fused, "gpt2_bloom"), "bloom": (plain.fused, "gpt2_bloom"),
    "qwen2": (plain.qwen, "qwen"), "qwen3": (plain.qwen, "qwen"), "qwen3moe": (plain.qwen, "qwen"),
    "qwen35": (plain.qwen35, "qwen35_lfm2"), "lfm2": (plain.lfm2, "qwen35_lfm2"),
    "gemma2": (plain.gemma2, "gemma2_phi3"), "phi3": (plain.phi3, "gemma2_phi3"),
}
# arguments of the builders that are the values of keys, too
KEY_OF = {"n_kv": "attention.head_count_kv", "d": "attention.key_length", "dv": "attention.value_length",
          "n_expert": "expert_count", "n_rot": "rope.dimension_count", "base": "rope.freq_base"}


class Wrong(Exception):
    """The data is wrong, not the engine."""


# --- published.txt


class File:
    def __init__(self, name):
        self.name, self.arch, self.arguments = name, None, {}
        self.grounds, self.keys, self.edits, self.negatives, self.variants = [], [], [], [], []
        self.changes = False  # a key changes the computation: the logits are the twin's, not the plain ones
        self.refused = None  # a key or tensor for which the file is refused
        self.advice = ""  # what the message says then
        self.sorted = False
        self.notes = 0  # lines about keys of other tools and unused parts of the file

    def group(self):
        return BUILDERS[self.arch][1]


def split_key(text, arch):
    """"KEY TYPE VALUE"; a leading dot stands for the architecture's name."""
    parts = text.split(None, 2)
    if len(parts) < 2:
        raise Wrong(f"'{text}': KEY TYPE VALUE is wanted")
    key, kind, value = (parts + [""])[:3]
    return (arch + key if key.startswith(".") else key), kind, value


def expand(lines, blocks, arguments=()):
    """The lines with those of each block instead of 'use BLOCK ARGUMENT | ..', in which $1 is the first argument."""
    for line in lines:
        for i, a in enumerate(arguments, 1):
            line = line.replace(f"${i}", a)
        word, _, rest = line.partition(" ")
        if word != "use":
            yield line
            continue
        name, _, rest = rest.strip().partition(" ")
        if name not in blocks:
            raise Wrong(f"there is no block '{name}'")
        yield from expand(blocks[name], blocks, [a.strip() for a in rest.split("|")] if rest else [])


def parse_file(name, lines):
    f = File(name)
    for line in lines:
        word, rest = (line.split(None, 1) + [""])[:2]
        if word == "grounds":
            f.grounds.append(rest)
        elif word == "model":
            f.arch, *pairs = rest.split()
            f.arguments = {k: ast.literal_eval(v) for k, v in (p.split("=", 1) for p in pairs)}
        elif word in ("without", "rename", "apart", "together", "extra", "copy"):
            f.edits.append((word, rest.split()))
        elif word in ("sorted", "changes"):
            setattr(f, word, True)
        elif word in ("refused", "advice", "notes"):
            setattr(f, word, rest)
        elif word in ("negative", "variant"):
            (f.negatives if word == "negative" else f.variants).append([split_key(part.strip(), f.arch) for part in rest.split(" && ")])
        elif "." in word:
            f.keys.append(split_key(line, f.arch))
        else:
            raise Wrong(f"'{word}' is no word of this file")
    if not f.grounds or f.arch not in BUILDERS or not f.keys or not (f.negatives or f.refused):
        raise Wrong("grounds, a model, keys and a negative are wanted")
    return f


def parse(path):
    blocks, files, lines = {}, [], None
    with open(path, encoding="utf-8") as text:
        for line in text:
            line = line.strip()
            word, _, name = line.partition(" ")
            if word in ("block", "file"):
                lines = []
                if word == "block":
                    blocks[name] = lines
                else:
                    files.append((name, lines))
            elif line and not line.startswith("#"):
                lines.append(line)
    out = []
    for name, lines in files:
        try:
            out.append(parse_file(name, expand(lines, blocks)))
        except (Wrong, ValueError, SyntaxError) as e:
            raise SystemExit(f"{path}: {name}: {e}")
    return out


# --- from a file's description to two models


def build(f):
    """The plain model."""
    builder = BUILDERS[f.arch][0]
    takes = inspect.signature(builder).parameters
    given, more = {}, {}
    for name, value in f.arguments.items():
        if name == "eps":
            more["attention.layer_norm_epsilon" if f.arch in ("gpt2", "bloom") else "attention.layer_norm_rms_epsilon"] = value
            continue
        if name in takes:
            given[name] = value
        if name in KEY_OF or name not in takes:
            more[KEY_OF.get(name, name)] = value
    if "arch" in takes:
        given["arch"] = f.arch
    builder("published", zlib.crc32(f.name.encode()), more=more, **given)
    case = nano.CASES.pop("published")
    for word, (pattern, *_) in f.edits:
        if word == "without":
            for name in matching(case.tensors, pattern):
                del case.tensors[name]
    return case


def implied(case):
    """What '=' stands for in published.txt: the plain model's value of a key, or what its absence means."""
    k = dict(case.keys)
    k["vocab_size"] = case.tensors["token_embd.weight"].shape[0]
    k.setdefault("attention.head_count_kv", k["attention.head_count"])
    d = k.setdefault("attention.key_length", k["embedding_length"] // k["attention.head_count"])
    k.setdefault("attention.value_length", d)
    k["attention.head_dim"] = d
    k["attention.key_length_swa"], k["attention.value_length_swa"] = d, k["attention.value_length"]
    k["rope.dimension_count_swa"] = k.setdefault("rope.dimension_count", d)
    k["rope.freq_base_swa"] = k.setdefault("rope.freq_base", 10000.0)
    k.setdefault("rope.scaling.original_context_length", k["context_length"])
    return k


def vocabulary(what, n):
    """Small vocabularies: the tokenizer is not what is tested."""
    special = ["<unk>", "<s>", "</s>"]
    return {
        "@spm": special + [f"t{i}" for i in range(3, n)], "@spm_types": [2, 3, 3] + [1] * (n - 3),
        "@bpe": [chr(33 + i) for i in range(80)] + [f"<|{i}|>" for i in range(80, n)], "@bpe_types": [1] * 80 + [3] * (n - 80),
        "@scores": [-float(i) for i in range(n)], "@merges": ["a b", "c d", "ab cd"],
    }[what]


def one_value(text, kind):
    if kind == KINDS["str"]:
        return text.replace("\\n", "\n")
    if kind == KINDS["bool"]:
        return {"true": True, "false": False}[text]
    return float(text) if kind in FLOATS else int(text)


def list_of(text, kind, n_layer):
    """"1, 2, 0*L": L is the number of layers."""
    out = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        value, star, count = part.rpartition("*") if kind != KINDS["str"] else ("", "", part)
        out += [one_value(value, kind)] * (n_layer if count == "L" else int(count)) if star else [one_value(part, kind)]
    return out


def typed(key, kind_name, text, case, tensors):
    """The value of a line of published.txt."""
    array = re.fullmatch(r"arr\[(\w+)\]", kind_name)
    kind = KINDS[array[1] if array else kind_name]
    known = implied(case)
    if text == "=":
        special = {"general.architecture": case.arch, "split.tensors.count": len(tensors)}
        short = key[len(case.arch) + 1 :]
        value = special[key] if key in special else known[short]
        if array and not isinstance(value, list):
            value = [value] * known["block_count"]
        if kind in FLOATS:
            value = float(value)
    elif text.startswith("@"):
        value = vocabulary(text, known["vocab_size"])
    else:
        value = list_of(text, kind, known["block_count"]) if array else one_value(text, kind)
    return gguf.Typed(gguf.ARRAY, value, kind) if array else gguf.Typed(kind, value)


def matching(tensors, pattern):
    names = [n for n in tensors if fnmatch.fnmatchcase(n, pattern)]
    if not names:
        raise Wrong(f"no tensor is called {pattern}")
    return names


def apart(tensors, pattern):
    """One tensor for each expert, as converters wrote until April 2024."""
    for name in matching(tensors, pattern):
        stack = tensors.pop(name)
        for e, t in enumerate(stack):
            tensors[name.replace("_exps.", f".{e}.")] = np.ascontiguousarray(t)


def together(tensors, pattern):
    """ffn_gate_exps and ffn_up_exps in one, the gate's rows first."""
    for name in matching(tensors, pattern):
        up = tensors.pop(name.replace("_gate_", "_up_"))
        both = np.concatenate([tensors.pop(name), up], axis=1)
        tensors[name.replace("_gate_", "_gate_up_")] = np.ascontiguousarray(both)


def rename(tensors, old, new):
    names = matching(tensors, f"*{old}*")
    for name in names:
        tensors[name.replace(old, new)] = tensors.pop(name)


def extra(tensors, name, *shape):
    if name in tensors:
        raise Wrong(f"{name} is there already")
    seed = zlib.crc32(name.encode())
    tensors[name] = np.random.default_rng(seed).normal(size=[int(n) for n in shape]).astype(np.float32)


def copy(tensors, old, new):
    tensors[new] = tensors[old]


EDITS = {"apart": apart, "together": together, "rename": rename, "extra": extra, "copy": copy}


def published(f, case):
    """The keys and tensors of the published file."""
    tensors = dict(case.tensors)
    for word, arguments in f.edits:
        if word != "without":
            EDITS[word](tensors, *arguments)
    meta = {}
    for key, kind, text in f.keys:
        if key in meta:
            raise Wrong(f"{key} is there twice")
        meta[key] = typed(key, kind, text, case, tensors)
    if f.sorted:
        meta, tensors = dict(sorted(meta.items())), dict(sorted(tensors.items()))
    return meta, tensors


def twin(f, case, meta):
    """The logits by families.py, with the file's keys."""
    w = {name: t.astype(np.float64) for name, t in case.tensors.items()}

    def key(name, *default):
        t = meta.get(f"{f.arch}.{name}")
        if t is None:
            return default[0] if default else case.keys[name]
        return struct.unpack("<f", struct.pack("<f", t.value))[0] if t.kind == KINDS["f32"] else t.value

    return case.forward(key, w, case.tokens, case.n_ctx)


# --- the test


def run(a, case, meta, tensors):
    """Exit code, standard error, logits (None unless the code is 0)."""
    model, out = (os.path.join(a.dir, f"published-{os.getpid()}.{end}") for end in ("gguf", "npy"))
    gguf.write(model, meta, tensors)
    command = [a.cli, "-m", model, "--tokens", ",".join(map(str, case.tokens)), "-n", "0", "-c", str(case.n_ctx), "-t", "1",
               "-ctk", "f32", "-ctv", "f32", "--backend", "cpu", "--logits", out]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    logits = np.load(out) if done.returncode == 0 else None
    for path in (model, out):
        if os.path.exists(path):
            os.unlink(path)
    return done.returncode, done.stderr, logits


def refusal_fault(rc, stderr, key):
    """What is wrong with a refusal; None if nothing is."""
    short = key.split(".", 1)[1]
    if "runtime error:" in stderr or "Sanitizer" in stderr:
        return "a sanitizer speaks: " + stderr.strip()
    if rc == 0:
        return "it runs"
    if rc != 1:
        return f"exit code {rc}: {stderr.strip()}"
    if short not in stderr:
        return f"the message does not name {key}: {stderr.strip()}"
    return None


def logits_fault(f, case, plain, rc, stderr, logits, want):
    """What is wrong with the published file's run; None if nothing is."""
    if rc or "runtime error:" in stderr:
        return f"refused: {stderr.strip()}" if rc == 1 else f"exit code {rc}: {stderr.strip()}"
    if sum("published-" in line for line in stderr.splitlines()) != int(f.notes):
        return f"{f.notes} notes are wanted: {stderr.strip()}"
    if not f.changes:
        return None if np.array_equal(plain, logits) else f"other logits than the plain model's, by {np.abs(plain - logits).max():.2g}"
    if np.abs(logits - want).max() > check.LIMIT_CPU:
        return f"other logits than the twin's, by {np.abs(logits - want).max():.2g}"
    return None if np.abs(logits - plain).max() > 1e-3 else "the same logits as the plain model's, though a key changes them"


def with_keys(meta, keys, case, tensors):
    return {**meta, **{key: typed(key, kind, text, case, tensors) for key, kind, text in keys}}


def variant_fault(f, case, plain, meta, tensors, a):
    """What is wrong with the run of a file with other keys, of which each changes the logits; None if nothing is."""
    rc, stderr, logits = run(a, case, meta, tensors)
    if rc:
        return f"refused: {stderr.strip()}"
    off = np.abs(logits - twin(f, case, meta)).max()
    if off > check.LIMIT_CPU:
        return f"other logits than the twin's, by {off:.2g}"
    return None if np.abs(logits - plain).max() > 1e-3 else "the same logits as without these keys"


def check_file(f, a):
    """A list of faults."""
    case = build(f)
    meta, tensors = published(f, case)
    rc, stderr, plain = run(a, case, case.meta(), case.tensors)
    if rc:
        return [f"the plain model is refused: {stderr.strip()}"]
    faults = []
    if np.abs(plain - case.logits()).max() > check.LIMIT_CPU:
        faults.append(f"the plain model has other logits than the twin, by {np.abs(plain - case.logits()).max():.2g}")
    rc, stderr, logits = run(a, case, meta, tensors)
    if f.refused:
        fault = refusal_fault(rc, stderr, f.refused) or (None if f.advice in stderr else f"the message does not say {f.advice}: {stderr.strip()}")
    else:
        fault = logits_fault(f, case, plain, rc, stderr, logits, twin(f, case, meta) if f.changes else None)
    if fault:
        faults.append(fault)
    for negative in f.negatives:
        rc, stderr, _ = run(a, case, with_keys(meta, negative, case, tensors), tensors)
        fault = refusal_fault(rc, stderr, negative[0][0])
        if fault:
            faults.append("with " + ", ".join(f"{k} = {v}" for k, _, v in negative) + ": " + fault)
    for variant in f.variants:
        fault = variant_fault(f, case, logits, with_keys(meta, variant, case, tensors), tensors, a)
        if fault:
            faults.append("with " + ", ".join(f"{k} = {v}" for k, _, v in variant) + ": " + fault)
    return faults


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--dir", default=".")
    p.add_argument("--list", action="store_true")
    p.add_argument("--name", default="")
    p.add_argument("--sample", type=int, help="so many files of each group, others each day")
    p.add_argument("groups", nargs="*")
    a = p.parse_args()
    files = parse(DATA)
    if a.list:
        print("\n".join(dict.fromkeys(f.group() for f in files)))
        return 0
    chosen = [f for f in files if (not a.groups or f.group() in a.groups) and a.name in f.name]
    if not chosen:
        raise SystemExit("no file is chosen")
    os.makedirs(a.dir, exist_ok=True)
    failed = 0
    chosen = today.sample(f"files of {', '.join(a.groups)}", chosen, a.sample)
    for f in chosen:
        try:
            faults = check_file(f, a)
        except (Wrong, KeyError, ValueError) as e:
            faults = [f"published.txt: {e!r}"]
        failed += bool(faults)
        print(f"{f.arch:9} {f.name:60} {'FAILED' if faults else 'ok'}", *faults, sep="\n    ")
    print(f"{len(chosen)} files, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
