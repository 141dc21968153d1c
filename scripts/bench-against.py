#!/usr/bin/env python3
"""Runs llm-bench and other programs with the same command line in turns, and prints one table of ratios.

    scripts/bench-against.py --bench build/release/bin/llm-bench --peer other=PATH -m model.gguf -t 1,2 -p 512 -n 128 -r 10

A peer is any program that takes `-m MODEL -p N -n N -t N -r 1 -o json` (and -d N, if depths are given) and prints a JSON list
with avg_ts or samples_ts. In each round every program runs each test once, forwards in one round and backwards in the next, so
that other work of the machine affects all of them; the ratio of a round compares runs that followed each other. It downloads
and builds nothing. Exit code: 0, 1 (llm-bench itself failed), 2 (usage)."""
import argparse
import json
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys


class Refused(Exception):
    """A program could not run a test; the text says why."""


def numbers(text):
    """'1,2,4' as a list of whole numbers, none of them negative."""
    values = [int(x) for x in text.split(",")]
    if min(values) < 0:
        raise ValueError
    return values


def named(text):
    """'NAME=VALUE' as a pair."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=..")
    return name, value


def run_once(program, args, test, timeout):
    """Tokens per second of one run of one test."""
    command = [program, "-m", test["model"], "-p", str(test["n_prompt"]), "-n", str(test["n_gen"]), "-t", str(test["n_threads"]),
               "-r", "1", "-o", "json"] + (["-d", str(test["n_depth"])] if test["n_depth"] else []) + args
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        raise Refused(f"took longer than {timeout:g} s") from None
    except OSError as error:
        raise Refused(f"{program}: {error.strerror}") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise Refused(f"exit code {done.returncode}: {lines[-1].strip() if lines else 'no message'}")
    try:
        rows = [row for row in json.loads(done.stdout)
                if row["n_prompt"] == test["n_prompt"] and row["n_gen"] == test["n_gen"]]
        speed = float(rows[0]["samples_ts"][0] if rows[0].get("samples_ts") else rows[0]["avg_ts"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise Refused("its output is no JSON list with this test") from None
    if not (speed > 0 and math.isfinite(speed)):
        raise Refused(f"says {speed} tokens per second")
    return speed


def measure(programs, tests, rounds, timeout, progress):
    """samples[test][program]: a number for each round, or a text with the reason why there is none."""
    samples = [{name: [] for name in programs} for _ in tests]
    for k in range(rounds):
        for i, test in enumerate(tests):
            for name in list(programs) if k % 2 == 0 else reversed(list(programs)):
                if isinstance(samples[i][name], str):
                    continue
                if progress:
                    print(f"round {k + 1} of {rounds}: {test_text(test)}, {name}", file=sys.stderr)
                try:
                    samples[i][name].append(run_once(*programs[name], test, timeout))
                except Refused as reason:
                    samples[i][name] = str(reason)
    return samples


def test_text(test):
    kind = f"pp{test['n_prompt']}" if test["n_prompt"] else f"tg{test['n_gen']}"
    return kind + (f" @ d{test['n_depth']}" if test["n_depth"] else "")


def spread(values):
    """Median, least, most."""
    return statistics.median(values), min(values), max(values)


def table(programs, tests, samples):
    peers = [name for name in programs if name != "ours"]
    head = ["model", "test", "threads", "ours t/s"] + [h for name in peers for h in (f"{name} t/s", f"ours / {name}")]
    rows = [head, ["---"] * len(head)]
    notes = []
    for test, sample in zip(tests, samples):
        row = [os.path.basename(test["model"]), test_text(test), str(test["n_threads"])]
        ours = sample["ours"]
        for name in programs:
            values = sample[name]
            if isinstance(values, str):
                row += ["refuses"] + ([] if name == "ours" else [""])
                notes.append(f"{name} refuses {row[0]}, {row[1]}: {values}")
                continue
            row.append("%.2f (%.2f .. %.2f)" % spread(values))
            if name != "ours":
                ratios = [] if isinstance(ours, str) else [a / b for a, b in zip(ours, values)]
                row.append("%.3f (%.3f .. %.3f)" % spread(ratios) if ratios else "")
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return "\n".join(lines + ([""] + notes if notes else []) + ["", "medians (least .. most); ratios are of each round"])


def results(tests, samples, name, alternation):
    """As llm-bench's own JSON, for --compare."""
    rows = []
    for test, sample in zip(tests, samples):
        if isinstance(sample[name], str):
            continue
        base = os.path.basename(test["model"])
        tokens = test["n_prompt"] + test["n_gen"]
        rows.append(dict(test, model_filename=base, model_type=base, type_k="", type_v="", n_batch=0, n_ubatch=0,
                         alternation=alternation, avg_ts=statistics.mean(sample[name]), samples_ts=sample[name],
                         samples_ns=[round(tokens / x * 1e9) for x in sample[name]]))
    return rows


def as_json(programs, tests, samples):
    out = []
    for test, sample in zip(tests, samples):
        row = dict(test, programs={})
        for name in programs:
            values = sample[name]
            entry = {"refuses": values} if isinstance(values, str) else {"samples_ts": values, "median_ts": spread(values)[0]}
            if name != "ours" and not isinstance(values, str) and not isinstance(sample["ours"], str):
                ratios = [a / b for a, b in zip(sample["ours"], values)]
                entry["ratios"] = ratios
                entry["median_ratio"], entry["min_ratio"], entry["max_ratio"] = spread(ratios)
            row["programs"][name] = entry
        out.append(row)
    return out


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, metavar="PATH", help="llm-bench")
    parser.add_argument("--bench-args", default="", metavar="ARGS", help="more arguments for it")
    parser.add_argument("--peer", action="append", type=named, default=[], metavar="NAME=PATH", help="repeatable")
    parser.add_argument("--peer-args", action="append", type=named, default=[], metavar="NAME=ARGS", help="more arguments for a peer")
    parser.add_argument("-m", "--model", action="append", required=True, metavar="FILE", help="repeatable")
    parser.add_argument("-p", type=numbers, default=[512], metavar="N,..", help="prompts (512); 0: none")
    parser.add_argument("-n", type=numbers, default=[128], metavar="N,..", help="generation (128); 0: none")
    parser.add_argument("-d", type=numbers, default=[0], metavar="N,..", help="depths (0)")
    parser.add_argument("-t", type=numbers, default=[1], metavar="N,..", help="threads (1)")
    parser.add_argument("-r", "--rounds", type=int, default=5, metavar="N", help="(5)")
    parser.add_argument("--timeout", type=float, default=3600, metavar="SECONDS", help="of one run (3600)")
    parser.add_argument("-o", "--output", choices=["md", "json"], default="md")
    parser.add_argument("--json", metavar="FILE", help="write the json here, whatever -o is")
    parser.add_argument("--save", metavar="FOLDER", help="write NAME.json for each program, for llm-bench --compare")
    parser.add_argument("--progress", action="store_true")
    args = parser.parse_args()
    names = [name for name, _ in args.peer]
    if args.rounds < 1 or min(args.t) < 1:
        parser.error("rounds and threads must be at least 1")
    if len(set(names + ["ours"])) != len(names) + 1:
        parser.error("peers need different names, none of them 'ours'")
    for flag, path in [("--bench", args.bench)] + [("--peer " + name, path) for name, path in args.peer]:
        if not shutil.which(path):
            parser.error(f"{flag}: there is no program '{path}'")
    for name, _ in args.peer_args:
        if name not in names:
            parser.error(f"--peer-args: there is no peer '{name}'")
    return args


def main():
    args = read_arguments()
    more = {name: shlex.split(value) for name, value in args.peer_args}
    programs = {"ours": (args.bench, ["--no-limits"] + shlex.split(args.bench_args))}
    programs.update({name: (path, more.get(name, [])) for name, path in args.peer})
    kinds = [(p, 0) for p in args.p if p] + [(0, n) for n in args.n if n]
    tests = [{"model": m, "n_threads": t, "n_depth": d, "n_prompt": p, "n_gen": n}
             for m in args.model for t in args.t for d in args.d for p, n in kinds]
    if not tests:
        print("bench-against: there is nothing to measure: -p and -n are 0", file=sys.stderr)
        return 2
    samples = measure(programs, tests, args.rounds, args.timeout, args.progress)
    text = json.dumps(as_json(programs, tests, samples), indent=2)
    print(text if args.output == "json" else table(programs, tests, samples))
    try:
        if args.json:
            with open(args.json, "w", encoding="utf-8") as f:
                f.write(text + "\n")
        for name in programs if args.save else []:
            os.makedirs(args.save, exist_ok=True)
            with open(os.path.join(args.save, name + ".json"), "w", encoding="utf-8") as f:
                json.dump(results(tests, samples, name, f"{os.getpid()} {args.rounds}"), f, indent=2)
    except OSError as error:
        print(f"bench-against: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 1 if any(isinstance(sample["ours"], str) for sample in samples) else 0


if __name__ == "__main__":
    sys.exit(main())
