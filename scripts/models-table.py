#!/usr/bin/env python3
"""Compares docs/models.md with the built-in descriptors: each descriptor has one row in one of the tables, whose architectures, lines, conversion
and proof are those of the descriptor and the tests. --write updates these columns; the other ones are written by hand. Exit code: 0, they agree or were written;
1, they don't; 2, wrong arguments."""
import argparse
import functools
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PAGE = os.path.join(ROOT, "docs/models.md")
COLUMNS = ["family (architectures)", "published models", "descriptor", "lines", "what is special", "tokenizer", "conversion", "proof"]
FAMILY, FILE, LINES, CONVERSION, PROOF = 0, 2, 3, 6, 7


def names(line):
    return [quoted or word for quoted, word in re.findall(r'"([^"]+)"|([\w.-]+)', line)]


def code(text):
    return ", ".join(f"`{x}`" for x in text)


class Descriptor:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".arch")]
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.lines = str(len(text.splitlines()))
        self.architectures = names(re.search(r"^arch (.*)$", text, re.M).group(1).split("#")[0])
        self.classes = [c for line in re.findall(r"^convert ([^:]*):", text, re.M) for c in names(line.split(" if ")[0])]
        self.proof = []
        twins = os.path.join(ROOT, "tests/numpy")
        here = [os.path.join(twins, f) for f in ("plain.py", "constructs.py", "families.py", "folders_speech.py", "voice.py")]
        kinds = [a.split(":")[1] for a in self.architectures if ":" in a]  # of a projector: eyes and ears
        if os.path.exists(f"{twins}/twins/{self.name}.py") or any(mentions(p, self.architectures) for p in here) or any(mentions(f"{twins}/{name}_kinds.py", kinds) for name in ("eye", "ear")):
            self.proof.append("twin")
        if any(a in goldens() for a in self.architectures):
            self.proof.append("golden")
        if any(mentions(p, self.classes) for p in [*glob.glob(f"{twins}/*folders*.py"), f"{twins}/senses.txt"]):
            self.proof.append("folder")


@functools.lru_cache
def goldens():
    """The architectures for which the repository has logits of another engine."""
    with open(f"{ROOT}/tests/golden/llama.cpp.txt", encoding="utf-8") as f:
        return {line.split()[2] for line in f if line.startswith("model ")}


def mentions(path, words):
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as f:
        text = f.read()
    return any(f'"{w}' in text for w in words)


def row_fixed(row, d):
    """The row as it should be."""
    row = list(row)
    row[LINES] = d.lines
    if d.classes:
        row[CONVERSION] = code(d.classes)
    elif not row[CONVERSION].startswith("no"):
        row[CONVERSION] = "no"
    row[PROOF] = ", ".join(d.proof) or "none yet"
    return row


def check(rows, shipped):
    files = {row[FILE].strip("`"): row for row in rows}
    faults = [f"{name} has several rows" for name in files if sum(row[FILE].strip("`") == name for row in rows) > 1]
    for name, d in shipped.items():
        row = files.pop(name, None)
        if row is None:
            faults.append(f"models/archs/{name}.arch has no row")
            continue
        if sorted(re.findall(r"`([^`]+)`", row[FAMILY])) != sorted(d.architectures):
            faults.append(f"{name}: the row names {row[FAMILY]}, the descriptor {code(d.architectures)}")
        want = row_fixed(row, d)
        faults += [f"{name}: {c} is '{a}', not '{b}'" for c, a, b in zip(COLUMNS, row, want) if a != b]
        faults += [f"{name}: nothing stands under '{c}'" for c, a in zip(COLUMNS, row) if not a]
    return faults + [f"a row for {name}, which is not shipped" for name in files]


def tables_of(lines):
    """The first and the last line of each table."""
    at = [i for i, line in enumerate(lines) if line.startswith("|")]
    firsts = [i for i in at if i - 1 not in at]
    return [(i, next(k for k in range(i, len(lines) + 1) if k not in at) - 1) for i in firsts]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--write", action="store_true", help="update the derived columns, and sort the rows")
    a = p.parse_args()
    with open(PAGE, encoding="utf-8") as f:
        lines = f.read().split("\n")
    tables = [[[c.strip() for c in lines[i].strip("|").split("|")] for i in range(first + 2, last + 1)] for first, last in tables_of(lines)]
    paths = [p for p in sorted(glob.glob(f"{ROOT}/models/archs/*.arch")) if not p.endswith("/prelude.arch")]
    shipped = {d.name: d for d in map(Descriptor, paths)}
    if a.write:
        tables = [[row_fixed(r, shipped[r[FILE].strip("`")]) if r[FILE].strip("`") in shipped else r for r in rows] for rows in tables]
        for rows, (first, last) in reversed(list(zip(tables, tables_of(lines)))):
            rows.sort(key=lambda r: r[0].lower())
            lines[first : last + 1] = ["| " + " | ".join(r) + " |" for r in [COLUMNS, ["---"] * len(COLUMNS)] + rows]
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    rows = [row for table in tables for row in table]
    faults = check(rows, shipped)
    print("\n".join(faults) if faults else f"docs/models.md: {len(rows)} families, as built in")
    if faults:
        print("scripts/models-table.py --write updates the derived columns; the others are written by hand")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
