#!/usr/bin/env python3
"""Whatever the seed, and at a temperature at which the model writes nonsense: what llm-cli generates by --json is JSON, what it generates
by --json-schema fits the schema, and it ends within -n.

    constrained.py LLM_CLI [--seeds N] [--schemas N] [--first SEED]"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import schemas as made_up


class Huge(Exception):
    """A number that Python can't hold."""


def number(text):
    if "e" in text.lower() and abs(int(text.lower().split("e")[1])) > 2000:
        raise Huge
    return Fraction(text)


def run(a, *args):
    command = [a.cli, "-p", "Once upon a time", "--temp", "2", "--no-display-prompt", "-t", "1", *args]
    r = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return r.returncode, r.stdout, r.stderr.decode(errors="replace"), " ".join(command)


def check_json(a, seed):
    n = 1 + seed % 90
    code, out, err, command = run(a, "--json", "-n", str(n), "-s", str(seed))
    if code != 0:
        return f"{command}: exit code {code}: {err}"
    try:
        text = out.decode("utf-8")
        json.loads(text, parse_float=str, parse_int=str)
    except ValueError as e:
        return f"{command}: {out}: {e}"
    return f"{command}: {out}: white space is more than it needs" if has_much_space(text) else ""


def has_much_space(text):
    """True if there is white space other than one space after a comma or a colon."""
    return re.search(r"\s", re.sub(r"([,:]) ", r"\1", re.sub(r'"(\\.|[^"\\])*"', "s", text.rstrip("\n")))) is not None


def check_notes(a):
    """A name that is no keyword is noted, also if the schema is read for a model."""
    for schema in ('{"minimun": 3, "type": "null"}', '{"type": "null", "minimun": 3}'):
        code, out, err, command = run(a, "--json-schema", schema, "-n", "5")
        if code != 0 or out.strip() != b"null" or "note: --json-schema: #/minimun: not a keyword" not in err:
            return f"{command}: exit code {code}: {out} {err}"
    return ""


def check_schema(a, seed, folder):
    """Returns (fault, kind of result)."""
    r = made_up.Random(seed)
    s = made_up.root_schema(r)
    path = os.path.join(folder, f"{seed}.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(made_up.text(s))
    code, out, err, command = run(a, "--json-schema", path, "-n", "450", "-s", str(seed))
    if code == 2 and not out:
        return "", "refused"
    if code == 1 and "shortest ending" in err:
        return "", "too long for -n"
    if code != 0:
        return f"{command}\n{made_up.text(s)}\nexit code {code}: {err}", ""
    known = made_up.plain(s)
    try:
        v = json.loads(out.decode("utf-8"), parse_float=number)
    except Huge:
        return "", "numbers too large to check"
    except ValueError as e:
        return f"{command}\n{made_up.text(s)}\n{out}: {e}", ""
    os.remove(path)
    return ("" if made_up.valid(known, known, v) else f"{command}\n{made_up.text(s)}\n{out} is not valid"), "fit"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("cli")
    p.add_argument("--seeds", type=int, default=150)
    p.add_argument("--schemas", type=int, default=100)
    p.add_argument("--first", type=int, default=1)
    a = p.parse_args()
    kinds, faults = {}, []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        seeds = range(a.first, a.first + a.seeds)
        faults += filter(None, [check_notes(a)])
        faults += filter(None, pool.map(lambda k: check_json(a, k), seeds))
        for fault, kind in pool.map(lambda k: check_schema(a, k, folder), range(a.first, a.first + a.schemas)):
            kinds[kind] = kinds.get(kind, 0) + 1
            if fault:
                faults.append(fault)
    print(f"{a.seeds} texts of --json; schemas: {kinds}")
    for fault in faults[:3]:
        print(fault)
    if faults:
        sys.exit(f"{len(faults)} faults")
    if a.schemas >= 50 and kinds.get("fit", 0) < a.schemas / 2:
        sys.exit("too little is checked")


main()
