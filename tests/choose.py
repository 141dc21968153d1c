#!/usr/bin/env python3
"""Which tests a change can break, and which programs tests need. ./test calls it; standard library only.

    choose.py near ROOT BUILD FILE..       prints the numbers, as ctest -I reads them, of the tests that a change of these files can break (near.txt)
    choose.py targets ROOT BUILD [OPTION..]  prints the targets that the tests need which ctest would run with these options, or "all"
    choose.py share ROOT BUILD HOME LONG N M OTHER EXCEPT   prints the numbers, as ctest -I reads them, of the tests that fit HOME or that the
                                           build OTHER lacks, and of the tests of every M-th program of the others; of those
                                           that fit LONG only every N-th; other ones each day (GGL_TEST_SEED); none that fits EXCEPT.
                                           HOME, LONG and EXCEPT are regular expressions of lines such as "e2e.hub [e2e slow]"
    choose.py test ROOT BUILD/CTestTestfile.cmake   checks near.txt against the files of the repository and the tests of this build
"""
import glob
import json
import os
import re
import subprocess
import sys
import time
import zlib


def registered(build):
    """The tests of a build that is configured: {name: the words of its command}."""
    tests = {}
    for path in glob.glob(os.path.join(build, "**", "CTestTestfile.cmake"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for name, words in re.findall(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", file.read(), re.M):
                tests[name] = re.findall(r'"((?:[^"\\]|\\.)*)"', words)
    return tests


def rows(root):
    """near.txt: [(beginning of paths, expression)], the longest beginnings first."""
    with open(os.path.join(root, "tests", "near.txt"), encoding="utf-8") as file:
        table = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return sorted(((row[0], row[1]) for row in table), key=lambda row: -len(row[0]))


def row_of(path, table):
    return next((row for row in table if path == row[0] or path.startswith(row[0] + "/")), None)


def direct(path, root, tests):
    """The tests whose program or script this file is."""
    if not path.startswith("tests/"):
        return []
    base, kind = os.path.splitext(os.path.basename(path))
    whole = os.path.join(root, path)
    program = re.compile(r".*/(?:test-[a-z]+-)?" + re.escape(base) + "$")
    return [name for name, words in tests.items() if whole in words or (kind == ".c" and any(program.match(word) for word in words[:1]))]


def shortened(names, tests):
    """An expression of just these names. All tests of one program are one piece."""
    pieces, rest = set(), set(names)
    for name in names:
        head = ".".join(name.split(".")[:2]) + "."
        same = {other for other in tests if other.startswith(head)}
        if len(same) > 1 and same <= set(names):
            pieces.add("^" + re.escape(head))
            rest -= same
    return sorted(pieces | {"^" + re.escape(name) + "$" for name in rest})


def near(root, build, files):
    tests, table, pieces = registered(build), rows(root), set()
    for given in files:
        path = os.path.relpath(os.path.abspath(given), root)
        if path.startswith("..") or not os.path.exists(given):
            sys.exit(f"near: {given} is " + ("not a file of this repository" if path.startswith("..") else "not there"))
        names, row = direct(path, root, tests), row_of(path, table)
        if names:
            pieces.update(shortened(names, tests))
        elif row:
            pieces.add(row[1])
        else:
            sys.exit(f"near: no row of tests/near.txt fits {path}; run ./test quick")
    return "|".join(sorted(pieces))


def numbered(build, expression):
    """The tests whose names fit, as ctest -I reads them; an expression of many names is too long for ctest -R."""
    numbers = [str(number) for number, (line, _) in enumerate(lines(build), 1) if re.search(expression, line.split()[0])]
    return "0,0,0," + ",".join(numbers)


def chosen(build, options):
    """The tests that ctest would run with these options."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-N", *options], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^ *Test *#\d+: (\S+)", listed, re.M)


def lines(build):
    """The tests of a build, as ("name [label label]", program); the first has the number 1. For a script it is the test's name."""
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True).stdout
    commands = registered(build)
    for test in json.loads(told)["tests"]:
        labels = next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
        program = os.path.basename(commands[test["name"]][0])
        yield f'{test["name"]} [{" ".join(labels)}]', program if program.startswith("test-") else test["name"]


def share(build, home, long, n, n_guest, other, leave_out):
    """A day depends on the name alone, so that tests that come or go do not move others. Tests that are at home elsewhere come together
    with their program, so that this build compiles few of these programs."""
    day = int(os.environ.get("GGL_TEST_SEED") or time.time() // 86400)
    there = {line.split()[0] for line, _ in lines(other)}

    def has_turn(word, k, of):  # parts with numbers, such as random.graphs_3, follow each other
        base, number = re.fullmatch(r"(.*?)(\d*)", word).groups()
        return (zlib.crc32(base.encode()) + int(number or 0) + k) % of == 0

    numbers = []
    for number, (line, program) in enumerate(lines(build), 1):
        name = line.split()[0]
        is_long = re.search(long, line)
        if re.search(home, line) or name not in there:
            runs = not is_long or has_turn(name, day, n)
        else:  # a long one on each N-th turn of its program
            runs = has_turn(program, day, n_guest) and (not is_long or has_turn(name, day // n_guest, n))
        if runs and not re.search(leave_out, line):
            numbers.append(str(number))
    return "0,0,0," + ",".join(numbers)


def needed(build):
    """What tests need that name the build's folder: {name: targets} (ggl_test_needs in CMakeLists.txt)."""
    with open(os.path.join(build, "tests", "needs.txt"), encoding="utf-8") as file:
        return {line.split()[0]: line.split()[1:] for line in file if line.strip()}


def target_of(inner, known):
    """The target that makes this file of the build, or None."""
    base = os.path.basename(inner)
    library = re.sub(r"^lib|\.a$", "", base) if base.endswith(".a") else "llm-shared" if base.startswith("libllm.so") else "test-plugin-" + base.removesuffix(".so")
    return next((name for name in (base, library) if name in known), None)


def targets(build, options):
    """A word of a test's command line that lies in the build names a target. If it is none, the test needs the whole build."""
    helped = subprocess.run(["cmake", "--build", build, "--target", "help"], check=True, capture_output=True, text=True).stdout
    known = set(re.findall(r"^(?:\.\.\. )?([\w.+-]+)", helped, re.M))
    tests, needs, found = registered(build), needed(build), set()
    tools = {name for name in known if re.fullmatch(r"llm-(?!models$|builtin$|place$|layer$|shared$|hub$)[a-z-]+", name)}
    for name in chosen(build, options):
        found.update(needs.get(name, []))
        for word in tests[name]:
            if not word.startswith(build + os.sep):
                continue
            inner = os.path.relpath(word, build)
            target = target_of(inner, known)
            if inner == "bin":
                found |= tools
            elif target:
                found.add(target)
            elif not (inner.endswith((".inc", ".txt", ".cmake")) or re.fullmatch(r"tests/\w+|clients", inner)):
                return ["all"]
        if build in tests[name] and name not in needs:
            return ["all"]
    return sorted(found)


def check(root, build):
    tests, table, faults = registered(build), rows(root), []
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=False).stdout.split("\n")
    files = [path for path in listed if path]
    if not files:
        print("skipped: no list of the repository's files (git)")
        return 77
    used = set()
    for path in files:
        row = row_of(path, table)
        if row:
            used.add(row[0])
        else:
            faults.append(f"{path}: no row")
    for begin, expression in table:
        if begin not in used:
            faults.append(f"{begin}: the row of no file")
        # Every alternative of an expression that has no parentheses, or the expression as a whole.
        for piece in expression.split("|") if "(" not in expression else [expression]:
            if not any(re.search(piece, name) for name in tests):
                faults.append(f"{begin}: no test has a name like {piece}")
        for piece in re.findall(r"\(([^()]*)\)", expression):
            for word in piece.split("|"):
                if not any(re.search(word, name) for name in tests):
                    faults.append(f"{begin}: no test has '{word}' in its name")
    # The table must find what the eye finds.
    for path, name in (("models/text/pretok.c", "unit.pretok."), ("tests/unit/gguf.c", "unit.gguf."), ("tests/e2e/hub.py", "e2e.hub"),
                       ("ggml-lite/base/json.c", "unit.json.")):
        expression = near(root, build, [os.path.join(root, path)]) if os.path.exists(os.path.join(root, path)) else None
        if expression is not None and not any(re.search(expression, test) for test in tests if test.startswith(name)):
            faults.append(f"{path}: {name} is not chosen")
    # With any number of files, ctest runs just the tests that fit.
    expression = near(root, build, [os.path.join(root, path) for path in files if os.path.exists(os.path.join(root, path))])
    names = [name for name in (line.split()[0] for line, _ in lines(build)) if re.search(expression, name)]
    if chosen(build, ["-I", numbered(build, expression)]) != names:
        faults.append(f"ctest does not run the {len(names)} tests near all files")
    print("\n".join(faults) or f"{len(files)} files, {len(table)} rows, {len(tests)} tests")
    return 1 if faults else 0


def main(what, root, build, *rest):
    root, build = os.path.abspath(root), os.path.abspath(build.removesuffix("/CTestTestfile.cmake"))
    if what == "near":
        print(numbered(build, near(root, build, rest)))
    elif what == "targets":
        print("\n".join(targets(build, rest)))
    elif what == "share":
        home, long, n, n_guest, other, leave_out = rest
        print(share(build, home, long, int(n), int(n_guest), other, leave_out))
    else:
        return check(root, build)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("near", "targets", "share", "test"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
