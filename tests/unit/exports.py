#!/usr/bin/env python3
"""What the shared library exports, and which tier each symbol has. An installed header names its tier in its first comment
("Tier: stable" or "Tier: versioned"); headers in a folder `internal` are not installed, and nothing in them is exported.

    exports.py ROOT LIBRARY           compares the headers, the library's symbols and exports.txt; exit code 0: they agree
    exports.py ROOT LIBRARY --write   writes exports.txt again
    exports.py --test                 shows that faults are found"""
import glob
import os
import re
import subprocess
import sys

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exports.txt")
MOST = 156  # symbols that a library may promise
FEWEST = 60
TIERS = ("stable", "versioned")


def tier_of(text):
    """The tier that a header's first comment names; None: it names none."""
    found = re.search(r"^ \* Tier: (\w+)\b", text.split("*/")[0], re.M)
    return found.group(1) if found and found.group(1) in TIERS else None


def calls(text):
    """The functions that a header declares with GGL_API."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.findall(r"\bGGL_API\b[^;(]*?\b(\w+)\s*\(", re.sub(r"^#.*$", "", text, flags=re.M))


def read_headers(headers):
    """headers: {path: text}. Returns ({symbol: tier}, faults)."""
    symbols, faults = {}, []
    for path, text in sorted(headers.items()):
        if "/internal/" in path:
            if "GGL_API" in text:
                faults.append(f"{path}: a header in internal/ exports nothing; remove GGL_API")
            if tier_of(text):
                faults.append(f"{path}: a header in internal/ has no tier")
            continue
        tier = tier_of(text)
        if tier is None:
            faults.append(f"{path}: its first comment names no tier; add \" * Tier: stable\" or \" * Tier: versioned\"")
        symbols.update({name: tier for name in calls(text)})
    return symbols, faults


def compare(declared, exported, listed):
    """declared, listed: {symbol: tier}; exported: names. Returns the faults."""
    faults = [f"{name} is exported, but no installed header declares it with GGL_API" for name in sorted(exported - declared.keys())]
    faults += [f"{name} is declared with GGL_API, but the library does not export it" for name in sorted(declared.keys() - exported)]
    if len(exported) > MOST:
        faults.append(f"{len(exported)} symbols are exported; at most {MOST} may be: declare some in a header in internal/")
    if listed != declared:
        changed = sorted({name for name, _ in listed.items() ^ declared.items()})
        faults.append("exports.txt differs from the headers: exports.py ROOT LIBRARY --write\n  " + " ".join(changed))
    return faults


def read_list():
    with open(LIST, encoding="utf-8") as file:
        return dict(line.split() for line in file if line.strip() and not line.startswith("#"))


def write_list(symbols):
    with open(LIST, "w", encoding="utf-8") as file:
        file.write("# The symbols that libllm.so exports, with their tiers (docs/library.md). exports.py --write makes this list.\n")
        file.writelines(f"{name} {tier}\n" for name, tier in sorted(symbols.items(), key=lambda s: (s[1], s[0])))


def self_test():
    head = "/* A header.\n *\n * Tier: stable. */\n"
    assert tier_of(head) == "stable" and tier_of("/* A. */ /*\n * Tier: stable */") is None and tier_of("/*\n * Tier: gold */") is None
    text = head + "#define GGL_API x(y)\nGGL_API GGL_NODISCARD ggl_status ggl_a(int n);\nGGL_API const char *ggl_b(\n    void); /* GGL_API int no(); */\n"
    assert calls(text) == ["ggl_a", "ggl_b"], calls(text)
    assert read_headers({"include/ggl/a.h": text}) == ({"ggl_a": "stable", "ggl_b": "stable"}, [])
    assert len(read_headers({"include/ggl/internal/a.h": text})[1]) == 2 and len(read_headers({"include/ggl/a.h": "/* A. */"})[1]) == 1
    one = {"ggl_a": "stable"}
    assert not compare(one, {"ggl_a"}, one)
    assert len(compare(one, {"ggl_a", "ggl_b"}, one)) == 1 and len(compare(one, set(), one)) == 1 and len(compare(one, {"ggl_a"}, {})) == 1
    many = {f"ggl_{i}": "stable" for i in range(MOST + 1)}
    assert len(compare(many, set(many), many)) == 1


def main():
    if sys.argv[1:] == ["--test"]:
        self_test()
        return 0
    root, library = sys.argv[1:3]
    headers = {}
    for path in glob.glob(os.path.join(root, "*/include/**/*.h"), recursive=True):
        with open(path, encoding="utf-8") as file:
            headers[os.path.relpath(path, root)] = file.read()
    declared, faults = read_headers(headers)
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
    exported = {line.split()[2].split("@")[0] for line in lines if line.split()[1] != "A"}
    if sys.argv[3:] == ["--write"]:
        write_list(declared)
    faults += compare(declared, exported, read_list())
    if len(exported) < FEWEST:
        faults.append(f"only {len(exported)} symbols were found in {library}")
    counts = ", ".join(f"{list(declared.values()).count(tier)} {tier}" for tier in TIERS)
    print("\n".join(faults) or f"{len(exported)} symbols: {counts}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
