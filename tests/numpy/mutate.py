#!/usr/bin/env python3
"""Mutations of descriptors, the built-in ones or those of ./archs: with one dimension, one operand, one line changed or
deleted, a descriptor must be refused, or give logits that differ visibly, on one at least of the nano models of its families.

    mutate.py --cli LLM_CLI --dir FOLDER DESCRIPTOR.arch .. [--every N] [--at-least PERCENT] [--names N] [--verbose]

--every N: one mutant of N. --at-least PERCENT: that are to be found (98). --names N: how many others replace a name (4).

Prints how many were refused, how many differ, and every one that passes unnoticed. Exit code 1 if those are too many, or if
the engine ends in any other way than by success or an error. The `convert` section is left out: no logits depend on it.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

import numpy as np

import check
import gguf
import nano
import sighted
import today

VISIBLE = 1e-3  # the logits' standard deviation is between 1 and 2
HERE = os.path.dirname(os.path.abspath(__file__))
TOKEN = re.compile(r'\s+|"[^"]*"|(?<![\w\])])\.[a-z_][\w.]*|\d+\.?\d*(?:e-?\d+)?|[A-Za-z_]\w*|\?\?|\*\*|==|!=|<=|>=|.')
WORDS = set("if elif else and or not in true false none has return require arch language layer def op keep ignore bias from stage prefix".split())
ALIKE = [["rms_norm", "layer_norm"], ["rope_half", "rope_pair"], ["silu", "gelu", "relu", "sigmoid", "softplus", "gelu_quick"],
         ["softmax", "normalised", "sigmoid"], ["attention", "attend"], ["sqrt", "abs"], ["l2", "flat"], ["heads", "split"],
         ["linear", "max"], ["repeat", "reshape"], ["softcap", "max"], ["exp", "tanh"]]
OPERATORS = {"+": ["-", "*"], "-": ["+"], "*": ["+", "/"], "/": ["*"], "%": ["*"], "==": ["!="], "!=": ["=="], "<": ["<=", ">"],
             ">": [">=", "<"], "<=": ["<"], ">=": [">"], "and": ["or"], "or": ["and"], "**": ["*"]}
OPEN, CLOSE = "([", ")]"


def tokens_of(line):
    return TOKEN.findall(line)


def is_name(t):
    return re.match(r"[A-Za-z_]\w*$", t) is not None and t not in WORDS


def is_operand(t):
    return is_name(t) or t[0] in '."' and len(t) > 1 or t[0].isdigit() or t in ("none", "true", "false")


def closing(tokens, i):
    """The place of the bracket that closes the one at i, or None."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j] in OPEN) - (tokens[j] in CLOSE)
        if depth == 0:
            return j
    return None


def atom_after(tokens, i):
    """The end of the operand that begins at or after i: a name or a bracket and the brackets that follow at once."""
    while i < len(tokens) and tokens[i].isspace():
        i += 1
    if i >= len(tokens) or not (is_operand(tokens[i]) or tokens[i] in OPEN):
        return None
    if tokens[i] not in OPEN:
        i += 1
    while i < len(tokens) and tokens[i] in OPEN:
        end = closing(tokens, i)
        if end is None:
            return None
        i = end + 1
    return i


def atom_before(tokens, i):
    """The start of the operand that ends before i."""
    i -= 1
    while i >= 0 and tokens[i].isspace():
        i -= 1
    depth = 0
    while i >= 0:
        if tokens[i] in CLOSE:
            depth += 1
        elif tokens[i] in OPEN:
            depth -= 1
            if depth == 0 and not (i > 0 and is_operand(tokens[i - 1])):
                return i
        elif depth == 0:
            return i if is_operand(tokens[i]) else None
        if depth < 0:
            return None
        i -= 1
    return None


class Descriptor:
    def __init__(self, path):
        with open(path) as f:
            text = f.read().split("\nconvert ")[0]
        self.lines = [re.sub(r"\s*#.*", "", line) for line in text.splitlines()]
        body = "\n".join(self.lines)
        self.families = [f.strip(' "') for f in re.search(r"(?m)^arch (.*)", body).group(1).split(",")]
        self.keys = sorted(set(t for line in self.lines for t in tokens_of(line) if t[0] == "." and len(t) > 1))
        self.dims, self.names = [], []
        for line in self.lines:
            d = re.match(r" *(\w+) +\[(.*?)\]", line)
            if d:
                self.dims += [x.strip() for x in d.group(2).split(",")]
                self.names.append(d.group(1))
            d = re.match(r" *([\w, ]+?) += ", line)
            if d:
                self.names += [x.strip() for x in d.group(1).split(",")]
        self.dims = sorted(set(self.dims))
        self.names = list(dict.fromkeys(self.names))

    def declared_before(self, n):
        out = []
        for line in self.lines[:n]:
            d = re.match(r" *([\w, ]+?) +(\[|= )", line)
            out += [x.strip() for x in d.group(1).split(",")] if d else []
        return [x for x in dict.fromkeys(out) if is_name(x)]


def pick(options, n, seed):
    """n of the options, the same on every machine."""
    return [options[(seed * 7 + i * 5) % len(options)] for i in range(min(n, len(options)))]


def mutations_of_line(d, n):
    """(kind, new line or None) for line n."""
    line = d.lines[n]
    yield "line", None
    if line.startswith(("arch", "language")):
        return
    declaration = re.match(r"( *)(\w+)( +)\[(.*?)\](.*)$", line)
    if declaration:
        indent, name, space, shape, rest = declaration.groups()
        dims = [x.strip() for x in shape.split(",")]

        def with_dims(changed):
            return f"{indent}{name}{space}[{', '.join(changed)}]{rest}"

        for i, dim in enumerate(dims):
            others = [x for x in d.dims if x != dim]
            for other in others + [f"{dim} + 1", f"2*({dim})"]:
                yield "dimension", with_dims(dims[:i] + [other] + dims[i + 1 :])
            yield "dimension", with_dims(dims[:i] + dims[i + 1 :])
        yield "dimension", with_dims(dims[::-1])
        if "bias?" in rest:
            yield "operand", line.replace("bias?", "bias")
            yield "operand", line.replace("bias?", "")
        elif "bias" in rest and "from" not in rest:
            yield "operand", line.replace(" bias", " ")
            yield "operand", line.replace(" bias", " bias?")  # allows more: told from a model that lacks one
        elif rest.strip() == "?":
            yield "operand", line.replace("?", "")
        if "from" not in rest:
            yield "operand", f"{indent}{name}x{space}[{shape}]{rest}"
    tokens = tokens_of(line)
    before = d.declared_before(n)
    equals = tokens.index("=") if "=" in tokens and not declaration else -1

    def put(i, j, *new):
        return "".join(tokens[:i] + list(new) + tokens[j:])

    bracket = tokens.index("]") if declaration else -1  # the dimensions are done
    for i, t in enumerate(tokens):
        if i <= bracket:
            continue
        called = i + 1 < len(tokens) and tokens[i + 1] == "("
        if t in OPERATORS:
            for other in OPERATORS[t]:
                yield "operand", put(i, i + 1, other)
        if t in OPERATORS or t == "??":
            after, start = atom_after(tokens, i + 1), atom_before(tokens, i)
            if after is not None:
                yield "operand", put(i, after)
            if start is not None:
                yield "operand", put(start, i + 1)
        if t == "not":
            yield "operand", put(i, i + 1)
        elif re.match(r"\d", t):
            for other in (f"{float(t) + 1:g}", f"{2 * float(t) + 1:g}") if float(t) < 100 else (f"{2 * float(t)}",):
                yield "operand", put(i, i + 1, other)
        elif t[0] == "." and len(t) > 1:
            for other in pick([k for k in d.keys if k != t], 3, n + i):
                yield "operand", put(i, i + 1, other)
            yield "operand", put(i, i + 1, t + "x")
        elif t[0] == '"' and len(t) > 2:
            yield "operand", put(i, i + 1, t[:-1] + 'x"')
        elif t == "none":
            yield "operand", put(i, i + 1, "3")
        elif is_name(t) and i > equals and called:
            for group in ALIKE:
                for other in group if t in group else []:
                    if other != t:
                        yield "operand", put(i, i + 1, other)
        elif is_name(t) and i > equals and not (i + 2 < len(tokens) and tokens[i + 2] == "=" and tokens[i + 1] == " "):
            for other in pick([x for x in before if x != t], d.n_names, n + i):
                yield "operand", put(i, i + 1, other)
        if t == "(" and i > 0 and is_name(tokens[i - 1]) and not line.lstrip().startswith(("def", "op")):
            end = closing(tokens, i)
            if end is None:  # goes on in the next line
                continue
            commas, depth = [i], 0
            for j in range(i + 1, end):
                depth += (tokens[j] in OPEN) - (tokens[j] in CLOSE)
                if tokens[j] == "," and depth == 0:
                    commas.append(j)
            commas.append(end)
            parts = ["".join(tokens[a + 1 : b]).strip() for a, b in zip(commas, commas[1:])]
            for k in range(len(parts)):
                yield "operand", put(i + 1, end, ", ".join(parts[:k] + parts[k + 1 :]))
                if k + 1 < len(parts):
                    yield "operand", put(i + 1, end, ", ".join(parts[:k] + [parts[k + 1], parts[k]] + parts[k + 2 :]))


def mutants(d):
    """(kind, line number, old line, new line, text), each text once. What is the same by definition is no mutant: a dimension
    n_head*d of a descriptor that says d = n_embd / n_head."""
    same = any(re.match(r"d += n_embd / n_head$", line) for line in d.lines)

    def key_of(text):
        text = "".join(text.split())
        return text.replace("n_head*d", "n_embd") if same else text

    seen = {key_of("\n".join(d.lines))}
    for n, line in enumerate(d.lines):
        if not line.strip():
            continue
        for kind, new in mutations_of_line(d, n):
            lines = d.lines[:n] + ([] if new is None else [new]) + d.lines[n + 1 :]
            text = "\n".join(lines) + "\n"
            key = key_of(text)
            if key not in seen:
                seen.add(key)
                yield kind, n + 1, line, new, text


class Engine:
    def __init__(self, cli, folder, name, cases):
        self.cli, self.base, self.cases, self.golden = cli, os.path.join(folder, "mutate-" + name), cases, {}
        self.files = [self.base + ".arch", self.base + ".npy"]
        for c in cases:
            model = self.model_of(c)
            self.files += c.write(model) if isinstance(c, sighted.Sighted) else check.write(model, c)

    def model_of(self, case):
        return f"{self.base}-{case.name}.gguf"

    def run(self, text, case):
        """The logits, or None if refused; the message."""
        with open(self.base + ".arch", "w") as f:
            f.write(text)
        words = self.cli, self.model_of(case), self.base + ".npy"
        command = case.command(*words) if isinstance(case, sighted.Sighted) else check.command_of(*words[:2], case, words[2])
        done = subprocess.run(command + ["--arch", self.base + ".arch"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode not in (0, 1, 2) or "Sanitizer" in done.stderr or "runtime error:" in done.stderr:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
        return (np.load(self.base + ".npy"), "") if done.returncode == 0 else (None, done.stderr)

    def judge(self, text):
        """'refused', 'differs' or 'unnoticed' and why: over all models, until one tells."""
        for case in list(self.cases):
            logits, message = self.run(text, case)
            if logits is None:
                return "refused", message
            if case.name not in self.golden:
                self.golden[case.name] = case.outputs()
            with np.errstate(invalid="ignore"):
                if not self.golden[case.name].distance(logits) <= VISIBLE:
                    self.cases.remove(case)  # it may well tell the next mutant too
                    self.cases.insert(0, case)
                    return "differs", case.name
        return "unnoticed", ""

    def remove(self):
        for path in self.files:
            if os.path.exists(path):
                os.unlink(path)


def mutate(path, a):
    """0: as many of its mutants are found as must be; 1."""
    d = Descriptor(path)
    d.n_names = a.names
    name = os.path.basename(path)[: -len(".arch")]
    shipped = os.path.isfile(os.path.join(HERE, "../../models/archs", name + ".arch"))
    names = nano.load_family(name) if shipped and name in nano.FAMILIES else nano.load_others()
    cases = [c for c in map(nano.CASES.get, names) if c.arch in [f.split(":")[0] for f in d.families] and c.descriptor == (None if shipped else name)]
    cases += sighted.cases_of(d.families) if shipped else []
    if not cases:
        print(f"no nano model of {', '.join(d.families)}: add one to plain.py or a file to twins")
        return 1
    engine = Engine(a.cli, a.dir, name, cases)
    counts, by_kind, crashes = collections.Counter(), collections.Counter(), 0
    untouched = engine.judge("\n".join(d.lines) + "\n")
    if untouched[0] != "unnoticed":
        print(f"{name}: the descriptor itself is {untouched}")
        return 1
    some = today.sample(f"mutants of {name}", list(mutants(d))[:: a.every], a.sample)
    for kind, n, old, new, text in some:
        try:
            verdict, why = engine.judge(text)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            verdict, why, crashes = "crashed", str(e), crashes + 1
        counts[verdict] += 1
        by_kind[kind, verdict in ("refused", "differs")] += 1
        if verdict in ("unnoticed", "crashed") or a.verbose:
            print(f"{verdict}: {name}.arch:{n}: {old.strip()}  ->  {'(deleted)' if new is None else new.strip()}  {why}".rstrip())
    engine.remove()
    total = sum(counts.values())
    found = counts["refused"] + counts["differs"]
    parts = ", ".join(f"{k} {by_kind[k, True]}/{by_kind[k, True] + by_kind[k, False]}" for k in ("line", "dimension", "operand"))
    print(f"{name}: {total} mutants, {counts['refused']} refused, {counts['differs']} differ, {counts['unnoticed']} unnoticed: "
          f"{100 * found / total:.1f}% found ({parts})")
    return 0 if 100 * found >= a.at_least * total and not crashes else 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", default=".")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--sample", type=int, help="so many mutants, chosen by GGL_TEST_SEED or else the day")
    p.add_argument("--at-least", type=float, default=98)
    p.add_argument("--names", type=int, default=4)
    p.add_argument("--verbose", action="store_true")
    p.add_argument("descriptors", nargs="+")
    a = p.parse_args()
    return max([mutate(path, a) for path in a.descriptors])


if __name__ == "__main__":
    sys.exit(main())
