#!/usr/bin/env python3
"""What the shared libraries export, and which tier each symbol has. An installed header names its tier in its first comment
("Tier: stable" or "Tier: versioned"); headers in a folder `internal` are not installed, and nothing in them has a tier. What they, and other private headers,
mark with GGL_INTERNAL_API is exported by libllm.so for libllm-train.so of the same version, and library/private.txt lists it: just what that needs.

    exports.py ROOT LIBLLM LIBLLM_TRAIN           compares the headers, the symbols of the libraries and the lists; exit code 0: they agree
    exports.py ROOT LIBLLM LIBLLM_TRAIN --write   writes exports.txt and private.txt again
    exports.py --test                             shows that faults are found"""
import glob
import os
import re
import subprocess
import sys

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exports.txt")
PRIVATE = "library/private.txt"
MOST = 165  # symbols that the libraries may promise
MOST_PRIVATE = 139  # symbols that libllm-train.so may need besides
FEWEST = 60
TIERS = ("stable", "versioned")


def tier_of(text):
    """The tier that a header's first comment names; None: it names none."""
    found = re.search(r"^ \* Tier: (\w+)\b", text.split("*/")[0], re.M)
    return found.group(1) if found and found.group(1) in TIERS else None


def calls(text, mark="GGL_API"):
    """The functions that a header declares with this mark."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.findall(r"\b" + mark + r"\b[^;(]*?\b(\w+)\s*\(", re.sub(r"^#.*$", "", text, flags=re.M))


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


def compare_private(marked, exported, needed, listed):
    """Names: marked with GGL_INTERNAL_API, exported by libllm.so as private, needed of these by libllm-train.so, and listed. Returns the faults."""
    faults = [f"{name} is marked GGL_INTERNAL_API, but libllm-train.so does not need it: remove the mark" for name in sorted(marked - needed)]
    faults += [f"{name} is in private.txt, but no header marks it with GGL_INTERNAL_API" for name in sorted(listed - marked)]
    faults += [f"{name} is private, but libllm.so does not export it so" for name in sorted(needed - exported)]
    if listed != needed:
        faults.append("private.txt differs from what libllm-train.so needs: exports.py ROOT LIBLLM LIBLLM_TRAIN --write\n  " + " ".join(sorted(listed ^ needed)))
    if len(needed) > MOST_PRIVATE:
        faults.append(f"libllm-train.so needs {len(needed)} private symbols; at most {MOST_PRIVATE} may be: let libllm have a call for what several do")
    return faults


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


def write(path, lines):
    with open(path, encoding="utf-8") as file:
        comment = file.readline()
    with open(path, "w", encoding="utf-8") as file:
        file.writelines([comment, *(line + "\n" for line in lines)])


def symbols(library, *options):
    """{name: version} of a shared library's dynamic symbols."""
    lines = subprocess.run(["nm", "-D", *options, library], check=True, capture_output=True, text=True).stdout.splitlines()
    found = [line.split()[-2:] for line in lines]
    return {name.partition("@")[0]: name.rpartition("@")[2] for kind, name in found if kind != "A"}


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
    assert calls("GGL_API void ggl_a(void);\nGGL_INTERNAL_API GGL_NODISCARD int\nggl_b(int n);", "GGL_INTERNAL_API") == ["ggl_b"]
    assert not compare_private({"a"}, {"a"}, {"a"}, {"a"})
    assert len(compare_private({"a", "b"}, {"a"}, {"a"}, {"a"})) == 1 and len(compare_private({"a"}, set(), {"a"}, {"a"})) == 1
    assert len(compare_private({"a"}, {"a"}, {"a"}, set())) == 1 and len(compare_private(set(), {"a"}, {"a"}, {"a"})) == 1
    assert len(compare_private(set(many), set(many), set(many), set(many))) == 1


def main():
    if sys.argv[1:] == ["--test"]:
        self_test()
        return 0
    root, library, train = sys.argv[1:4]
    headers = {}
    for path in glob.glob(os.path.join(root, "*/**/*.h"), recursive=True):
        name = os.path.relpath(path, root)
        if not name.startswith(("build", "tests", "examples")):
            with open(path, encoding="utf-8") as file:
                headers[name] = file.read()
    declared, faults = read_headers({name: text for name, text in headers.items() if "/include/" in name})
    marked = {call for text in headers.values() for call in calls(text, "GGL_INTERNAL_API")}
    exported, trains = symbols(library, "--defined-only"), symbols(train, "--defined-only")
    private = {name for name, version in exported.items() if "PRIVATE" in version}
    needed = {name for name, version in symbols(train, "--undefined-only").items() if "PRIVATE" in version}
    if sys.argv[4:] == ["--write"]:
        write(LIST, [f"{name} {tier}" for name, tier in sorted(declared.items(), key=lambda s: (s[1], s[0]))])
        write(os.path.join(root, PRIVATE), sorted(needed))
    faults += compare(declared, exported.keys() - private | trains.keys(), dict(rows(LIST)))
    faults += compare_private(marked, private, needed, {name for name, in rows(os.path.join(root, PRIVATE))})
    ours = set(calls("".join(text for name, text in headers.items() if name.startswith("train/include/"))))
    faults += [f"{name} is exported by the wrong library" for name in sorted((exported.keys() & ours) | (trains.keys() - ours))]
    if len(exported) < FEWEST:
        faults.append(f"only {len(exported)} symbols were found in {library}")
    counts = ", ".join(f"{list(declared.values()).count(tier)} {tier}" for tier in TIERS)
    print("\n".join(faults) or f"{len(declared)} symbols: {counts}, {len(trains)} of them of libllm-train.so, which needs {len(needed)} private ones")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
