#!/usr/bin/env python3
"""Judges the instances of the JSON-Schema-Test-Suite with llm-grammar, and prints a table of its keywords.

    tests/e2e/schema_suite.py LLM_GRAMMAR FOLDER [DRAFT]...

FOLDER is a clone of the suite; without it, nothing is tested (exit code 77). An instance is accepted if one of
the two texts that json.dumps writes fits, with and without ensure_ascii. It is an error if an invalid instance is
accepted, or a valid one is not, but for what docs/json-schema.md says of formats and of spellings."""
import collections
import json
import os
import subprocess
import sys
import tempfile

DRAFTS = ["draft4", "draft7", "draft2019-09", "draft2020-12"]
NAMES = {"draft4": "http://json-schema.org/draft-04/schema#", "draft7": "http://json-schema.org/draft-07/schema#",
         "draft2019-09": "https://json-schema.org/draft/2019-09/schema"}

# Files and tests that expect something else than docs/json-schema.md promises: formats are enforced, annotations of
# contents are not, names in Punycode are not looked into, characters that are permitted only beside others are left out, numbers that are restricted to integers have no
# fraction, and unknown vocabularies are read like known ones.
DOCUMENTED = [("format", ""), ("optional/content", ""), ("content", ""), ("optional/format/hostname", ""), ("optional/format/idn-hostname", ""),
              ("vocabulary", ""), ("type", "a float with zero fractional part is an integer"), ("const", "float"), ("enum", "float"),
              ("const", "with -2.0 matches"), ("const", "1.0"), ("enum", "1.0"), ("enum", "0.0"),
              ("optional/float-overflow", "")]


class Number(str):
    """A number with a fraction or an exponent, as it was written."""


def dumps(value, ascii_only):
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = (json.dumps(k, ensure_ascii=ascii_only) + ": " + dumps(v, ascii_only) for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dumps(v, ascii_only) for v in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def files(folder, draft):
    top = os.path.join(folder, "tests", draft)
    for place, _, names in sorted(os.walk(top)):
        for name in sorted(names):
            if name.endswith(".json"):
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as f:
                    yield os.path.relpath(path, top)[:-5], json.load(f, parse_float=Number)


def judge(tool, case, draft, work):
    """For each test: True, False, or None if the schema is refused; and why."""
    schema = case["schema"]
    if draft in NAMES and isinstance(schema, dict) and "$schema" not in schema:
        schema = {"$schema": NAMES[draft], **schema}
    paths = []
    with open(os.path.join(work, "schema"), "w", encoding="utf-8") as f:
        f.write(dumps(schema, True))
    for i, test in enumerate(case["tests"]):
        for ascii_only in (True, False):
            paths.append(os.path.join(work, f"{i}.{int(ascii_only)}"))
            with open(paths[-1], "w", encoding="utf-8", errors="surrogatepass") as f:
                f.write(dumps(test["data"], ascii_only))
    run = subprocess.run([tool, "--json-schema", os.path.join(work, "schema")] + paths, capture_output=True, text=True,
                         errors="replace", timeout=120)
    if run.returncode == 2:
        return [None] * len(case["tests"]), run.stderr.strip()
    if run.returncode not in (0, 1):
        sys.exit(f"{case['description']}: exit code {run.returncode}: {run.stderr}")
    accepted = {line[:-len(": accepted")] for line in run.stdout.splitlines() if line.endswith(": accepted")}
    return [paths[2 * i] in accepted or paths[2 * i + 1] in accepted for i in range(len(case["tests"]))], ""


def is_documented(keyword, case, test):
    return any(keyword == k and (t in case or t in test) for k, t in DOCUMENTED)


def run_draft(tool, folder, draft, verbose):
    rows = collections.OrderedDict()
    faults = []
    with tempfile.TemporaryDirectory() as work:
        for keyword, cases in files(folder, draft):
            row = rows.setdefault(keyword, [0, 0, 0, 0, 0])
            for case in cases:
                answers, why = judge(tool, case, draft, work)
                if why and verbose:
                    print(f"refused: {keyword}: {case['description']}: {why.split('schema: ')[-1]}")
                for test, answer in zip(case["tests"], answers):
                    row[0] += 1
                    row[2 if answer is None else 1 if answer == test["valid"] else 3 if answer else 4] += 1
                    if answer is not None and answer != test["valid"] and not is_documented(
                            keyword, case["description"], test["description"]):
                        faults.append(f"{draft}: {keyword}: {case['description']}: {test['description']}: "
                                      + ("accepted" if answer else "not accepted"))
    print(f"\n{draft}\n| keyword | tests | right | refused | accepts invalid | rejects valid |\n|---|---|---|---|---|---|")
    for keyword, row in rows.items():
        if row[0] != row[1]:
            print(f"| {keyword} | " + " | ".join(map(str, row)) + " |")
    print("| all | " + " | ".join(str(sum(r[i] for r in rows.values())) for i in range(5)) + " |")
    print("| required | " + " | ".join(
        str(sum(r[i] for k, r in rows.items() if not k.startswith("optional"))) for i in range(5)) + " |")
    return faults


def main():
    args = [a for a in sys.argv[1:] if a != "-v"]
    if len(args) < 2 or not os.path.isdir(os.path.join(args[1], "tests", "draft2020-12")):
        print("SKIP: there is no folder of the JSON-Schema-Test-Suite")
        return 77
    faults = []
    for draft in args[2:] or DRAFTS:
        faults += run_draft(args[0], args[1], draft, "-v" in sys.argv)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
