#!/usr/bin/env python3
"""Compiles plans (llm-arch compile) with the runtime for small boards, runs them, and compares all logits with those of the CPU, bit by bit.

    compare.py ROOT PLANS CC WORK toys [N]             made-up models of all built-in descriptors, N variants of each
    compare.py ROOT PLANS CC WORK files WHAT..         models: what plans.c says

PLANS is the program test-small-plans; WORK is a folder to write to."""
import concurrent.futures
import os
import re
import shutil
import struct
import subprocess
import sys

import boards


def call(*command, **how):
    done = subprocess.run(command, capture_output=True, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def same(got, want):
    """Equal bits; all NaNs are equal."""
    return got == want or ((got & 0x7fffffff) > 0x7f800000 and (want & 0x7fffffff) > 0x7f800000)


def write_if_other(path, text):
    if not os.path.exists(path) or open(path).read() != text:
        with open(path, "w") as f:
            f.write(text)


def build(root, work, plans, cc, cflags, extra=(), ldflags=()):
    """Compiles the runtime, the plans and run_plans.c; returns the program."""
    out = os.path.join(work, "out")
    jobs = os.cpu_count() or 1
    runtime = "-O2 " + " ".join(cflags)
    call("make", "-f", f"{root}/small/small.mk", f"OUT={out}", f"CC={cc}", f"AR={cc.removesuffix('gcc') if cc.endswith('-gcc') else ''}ar",
         f"CFLAGS={runtime}", f"-j{jobs}", "runtime")
    ram = max(int(re.search(r"_RAM (\d+)", open(f"{work}/{name}.h").read()).group(1)) for name in plans)
    lines = [f"#ifndef MOST_RAM\n#define MOST_RAM {ram}\n#endif"] + [f"PLAN({name}, {', '.join(map(str, token))})" for name, token in plans.items()]
    write_if_other(f"{work}/plans.h", "\n".join(lines) + "\n")
    common = [cc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections", f"-I{root}/small", f"-I{work}", f"-I{root}/ggml-lite/include", f"-I{root}/models", *cflags]
    sources = [f"{work}/{name}.c" for name in plans] + [f"{root}/tests/small/run_plans.c", *extra]
    objects = [os.path.join(out, os.path.basename(s) + ".o") for s in sources]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda so: call(*common, "-O0" if so[0].startswith(work) else "-O1", "-c", so[0], "-o", so[1]), zip(sources, objects)))
    program = os.path.join(out, "program")
    call(cc, *cflags, *objects, f"{out}/libsmall.a", "-Wl,--gc-sections", *ldflags, "-lm", "-o", program)
    return program


def compare(work, plans, text):
    """Compares what a program printed with the files NAME.bits; returns how many logits there are."""
    lines, total, faults = iter(text.splitlines()), 0, []
    for name, token in plans.items():
        if next(lines, None) != name:
            sys.exit(f"{name} did not run")
        want = open(f"{work}/{name}.bits", "rb").read()
        want = struct.unpack(f"<{len(want) // 4}I", want)
        n = len(want) // len(token)
        for i in range(len(token)):
            line = next(lines, "").strip()
            got = [int(line[k:k + 8], 16) for k in range(0, len(line), 8)]
            if len(got) != n:
                sys.exit(f"{name}, token {i}: {len(got)} logits, not {n}")
            wrong = [k for k in range(n) if not same(got[k], want[i * n + k])]
            if wrong and not any(fault.startswith(name + ",") for fault in faults):
                k = wrong[0]
                faults.append(f"{name}, token {i}: logit {k} is {got[k]:08x}, but {want[i * n + k]:08x} on the CPU")
        total += len(want)
        if os.path.exists(f"{work}/{name}.words"):
            for k, line in enumerate(open(f"{work}/{name}.words")):
                if next(lines, "").strip() != line.strip() and not faults:
                    faults.append(f"{name}: other tokens of text {k // 4} (flags {k % 4}) than {line}")
    if faults:
        sys.exit("\n".join(faults))
    return f"{len(plans)} plans, {total} logits: all bits are equal" + "".join(f"; {line}" for line in lines)


def main(arguments):
    root, program, cc, work, *what = arguments
    return check(root, program, cc, work, what)


def check(root, program, cc, work, what, board=None, ram=None):
    """Writes the plans, compiles and runs them, here or on an emulated board with so many bytes of RAM. Returns the exit code."""
    run, cflags, extra, ldflags = call, [], [], []
    if board:
        found = boards.find(board, root)
        if isinstance(found, str):
            print(f"skipped: {found}")
            return 77
        cc, cflags, extra, ldflags, run = found
        ldflags = ldflags + ([f"-Wl,--defsym=board_ram={ram}"] if ram else [])
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    work = os.path.abspath(work)
    said = call(program, work, *what)
    plans = {}
    for line in open(f"{work}/list"):
        name, *token = line.split()
        plans[name] = [int(t) for t in token]
    if not plans:
        sys.exit(f"there are no plans:\n{said}")
    try:
        said += compare(work, plans, run(build(root, work, plans, cc, cflags, extra, ldflags)))
    except SystemExit as e:
        raise SystemExit(f"{said}\n{e}")
    print(said)
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
