#!/usr/bin/env python3
"""Which tests a change can break, and which programs tests need. ./test calls it; standard library only.

    choose.py near ROOT BUILD FILE..       prints the numbers, as ctest -I reads them, of the tests that a change of these files can break (near.txt)
    choose.py targets ROOT BUILD [OPTION..]  prints the targets that the tests need which ctest would run with these options, or "all"
    choose.py share ROOT BUILD PART OTHER LIST  prints the numbers, as ctest -I reads them, of the tests that the part `release`, `asan` or `tsan`
                                           runs in this build today (GGL_TEST_SEED: on that day), as their labels say (CMakeLists.txt). OTHER is
                                           the build of asan for release, else that of release. Writes into the file LIST which tests wait, and
                                           for how many days, and tells their number on stderr
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
    return numbers(number for number, (name, _, _) in enumerate(labelled(build), 1) if re.search(expression, name))


def numbers(some):
    return "0,0,0," + ",".join(map(str, some))


def chosen(build, options):
    """The tests that ctest would run with these options."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-N", *options], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^ *Test *#\d+: (\S+)", listed, re.M)


def labelled(build):
    """The tests of a build, as (name, labels, program); the first has the number 1. For a script, the program is the test's name."""
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True).stdout
    commands = registered(build)
    for test in json.loads(told)["tests"]:
        labels = next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
        program = os.path.basename(commands[test["name"]][0])
        yield test["name"], labels, program if program.startswith("test-") else test["name"]


EVERY = {"release": 16, "asan": 8, "tsan": 16}  # days in which each part runs all that it can run


def today():
    return int(os.environ.get("GGL_TEST_SEED") or time.time() // 86400)


def wait(word, part):
    """Days until the turn of a name, which depends on it alone, so that tests that come or go do not move others. Parts with numbers, such as
    random.graphs_3, follow each other. The thread sanitizer's part runs on odd days."""
    base, number = re.fullmatch(r"(.*?)(\d*)", word).groups()
    turn = zlib.crc32(base.encode()) + int(number or 0)
    return ((2 * turn + 1 if part == "tsan" else -turn) - today()) % EVERY[part]


def waits(part, tests, there):
    """For each test (name, labels, program) the days until this part runs it, or None if it never does. there: the names that the other build has.
    What is at home in the other build comes together with its program, so that this build compiles few of these programs."""
    for name, labels, program in tests:
        if "emulated" in labels or (part == "tsan" and "threads" not in labels):
            yield None
        elif part == "tsan":
            yield wait(name, part) if {"long", "long.tsan"} & set(labels) else 0
        elif part in labels or name not in there:
            yield wait(name, part) if "long" in labels else 0
        else:
            yield wait(program, part)


def share(build, part, other, left_out):
    tests, there = list(labelled(build)), {name for name, _, _ in labelled(other)}
    days = list(waits(part, tests, there))
    later = sorted((d, name) for d, (name, _, _) in zip(days, tests) if d)
    with open(left_out, "w", encoding="utf-8") as file:
        file.writelines(f"{d} {name}\n" for d, name in later)
    print(f"{part}: {days.count(0)} tests run today; {len(later)} wait for their day, at most {max(later, default=[0])[0]} days: {left_out}", file=sys.stderr)
    return numbers(number for number, d in enumerate(days, 1) if d == 0)


def needed(build):
    """What tests need that name the build's folder: {name: targets} (ggl_test_needs in CMakeLists.txt)."""
    with open(os.path.join(build, "tests", "needs.txt"), encoding="utf-8") as file:
        return {line.split()[0]: line.split()[1:] for line in file if line.strip()}


def target_of(inner, known):
    """The target that makes this file of the build, or None."""
    base = os.path.basename(inner)
    name = base
    if base.startswith(("libllm.so", "libllm-train.so")):
        name = base.partition(".")[0].removeprefix("lib") + ("-old-glibc" if "old-glibc" in inner else "-shared")
    elif base == "libllm-train.a":
        name = "llm-training"
    elif base.endswith((".a", ".so")):  # ninja takes names of files for targets, too; cmake does not
        stem = base.rpartition(".")[0]
        name = stem.removeprefix("lib") if stem.startswith("lib") else "test-plugin-" + stem
    return name if name in known else None


def targets(build, options):
    """A word of a test's command line that lies in the build names a target. If it is none, the test needs the whole build."""
    helped = subprocess.run(["cmake", "--build", build, "--target", "help"], check=True, capture_output=True, text=True).stdout
    known = set(re.findall(r"^(?:\.\.\. )?([\w.+-]+)", helped, re.M))
    tests, needs, found = registered(build), needed(build), set()
    tools = {name for name in known if re.fullmatch(r"llm-(?!models$|builtin$|place$|layer$|shared$|hub$|train-|training$|vocabulary$)[a-z-]+", name)}
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
            elif not (inner.endswith((".inc", ".txt", ".cmake")) or re.fullmatch(r"tests(/\w+)+|clients", inner)):
                return ["all"]
        if build in tests[name] and name not in needs:
            return ["all"]
    return sorted(found)


def days_faults(known):
    """Each test belongs to one part, and each part runs all that it can run in its number of days."""
    faults = [f"{name}: the labels {labels} name not one part" for name, labels, _ in known if len({"release", "asan"} & set(labels)) != 1]
    names = {name for name, _, _ in known}
    for part, there in (("release", names), ("asan", names), ("tsan", names), ("release", set())):
        can = {name for name, labels, _ in known if "emulated" not in labels and (part != "tsan" or "threads" in labels)}
        for first in (0, 20786):
            run = set()
            for day in range(first, first + EVERY[part]):
                os.environ["GGL_TEST_SEED"] = str(day)
                run |= {name for (name, _, _), d in zip(known, waits(part, known, there)) if d == 0}
            faults += [f"{name}: {part} runs it on none of its days" for name in sorted(can - run)]
    return faults


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
    names = [name for name, _, _ in labelled(build) if re.search(expression, name)]
    if chosen(build, ["-I", numbered(build, expression)]) != names:
        faults.append(f"ctest does not run the {len(names)} tests near all files")
    faults += days_faults(list(labelled(build)))
    print("\n".join(faults) or f"{len(files)} files, {len(table)} rows, {len(tests)} tests")
    return 1 if faults else 0


def main(what, root, build, *rest):
    root, build = os.path.abspath(root), os.path.abspath(build.removesuffix("/CTestTestfile.cmake"))
    if what == "near":
        print(numbered(build, near(root, build, rest)))
    elif what == "targets":
        print("\n".join(targets(build, rest)))
    elif what == "share":
        print(share(build, *rest))
    else:
        return check(root, build)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("near", "targets", "share", "test"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
