#!/usr/bin/env python3
"""Every environment variable that the product reads stands between backquotes in a page of docs/ or in README.md.

    switches.py ROOT    prints each that does not; exit code 0: there is none
    switches.py --test  shows that one is found
"""
import glob
import os
import re
import sys
import tempfile

FOLDERS = ("ggml-lite", "backends", "models", "library", "train", "tools")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sources(root):
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(root, folder, "**", "*.[ch]"), recursive=True)):
            yield path


def undocumented(root):
    pages = "".join(read(p) for p in glob.glob(os.path.join(root, "docs", "*.md")) + [os.path.join(root, "README.md")])
    faults = []
    for path in sources(root):
        for name in re.findall(r'"((?:GGL|LLM)_[A-Z][A-Z0-9_]*)"', read(path)):
            if not re.search(r"`" + name + r"[`=]", pages):
                faults.append(f"{os.path.relpath(path, root)}: {name} is on no page of docs/: add it to docs/tools.md, "
                              "\"Environment variables\"")
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as root:
        for path, text in (("backends/cpu/a.c", 'getenv("GGL_SECRET"); getenv("GGL_KNOWN");'), ("docs/a.md", "`GGL_KNOWN=1`"),
                           ("README.md", "GGL_SECRET without backquotes")):
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        faults = undocumented(root)
        return 0 if len(faults) == 1 and "backends/cpu/a.c: GGL_SECRET " in faults[0] else 1


def main():
    if sys.argv[1] == "--test":
        return self_test()
    faults = undocumented(sys.argv[1])
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
