#!/usr/bin/env python3
"""Measures what guessing ahead gains: llm-cli plain, with --lookup and with --draft, in turns.

    scripts/bench-guesses.py --cli build/release/bin/llm-cli [-m model.gguf] [--draft [small.gguf]] [-t 1] [-r 10] [-- FLAGS..]

--draft without a model: layers of the model itself guess. --way NAME=FLAGS adds one more way, such as --way 'two=--draft --draft-max 2'.

It continues some prompts greedily and sorts them by how much of the text repeats itself: "new" are those in which less than a fifth of all runs
of four words stood before, "repeats" those with more than half (small models often end in loops). Each round runs every way
on every prompt once, forwards in one round and backwards in the next; a ratio compares runs that followed each other. A text that
differs from the plain one is an error. Exit code: 0, 1 (a text differs, or the program fails), 2 (usage)."""
import argparse
import re
import shlex
import statistics
import subprocess
import sys

BEGINNINGS = ["Once upon a time there was a", "Lily wanted to", "The old man and his dog", "One day, a bird", "In the forest there lived"]
REPEATED = ["very", "No, no, no!", "She ran and ran.", "the cat and the dog", "I am happy", "up and down", "again", "One two three."]
MOST = 6  # prompts of a kind


def run(cli, args, prompt, n, flags):
    """(text, tokens per second, the line of guesses)"""
    command = [cli, *args, "-p", prompt, "-n", str(n), "--no-escape", "--no-display-prompt", "--ignore-eos", *flags]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    err = done.stderr.decode(errors="replace")
    speed = re.search(r"^generation .* ([0-9.]+) t/s", err, re.M)
    if done.returncode != 0 or not speed:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {err.strip()}")
    guesses = re.search(r"^guesses +([0-9]+) tokens +([0-9]+) right", err, re.M)
    return done.stdout, float(speed.group(1)), tuple(map(int, guesses.groups())) if guesses else (0, 0)


def share_repeated(text):
    """The share of runs of four words that stood before."""
    words = text.decode(errors="replace").split()
    seen, again = set(), 0
    for k in range(len(words) - 3):
        again += tuple(words[k:k + 4]) in seen
        seen.add(tuple(words[k:k + 4]))
    return again / max(1, len(words) - 3)


def sort_prompts(cli, args, n):
    """Prompts by kind."""
    kinds = {"new": [], "repeats": []}
    for prompt in BEGINNINGS + [" ".join([text] * k) for k in (5, 12, 20) for text in REPEATED]:
        share = share_repeated(run(cli, args, prompt, n, ["--temp", "0"])[0])
        if share < 0.2 or share > 0.5:
            kinds["new" if share < 0.2 else "repeats"].append(prompt)
    return {kind: prompts[:MOST] for kind, prompts in kinds.items()}


def measure(cli, args, ways, prompts, n, rounds):
    """speeds[way]: a list of all runs, in the same order for each way; totals of guesses."""
    speeds, totals = {way: [] for way in ways}, {way: [0, 0] for way in ways}
    for r in range(rounds):
        for prompt in prompts:
            texts = {}
            for way in list(ways) if r % 2 == 0 else reversed(list(ways)):
                texts[way], speed, guesses = run(cli, args, prompt, n, ["--temp", "0", *ways[way]])
                speeds[way].append(speed)
                totals[way][0] += guesses[0]
                totals[way][1] += guesses[1]
            for way, text in texts.items():
                if text != texts["plain"]:
                    sys.exit(f"{way}: another text after: {prompt[-60:]!r}")
    return speeds, totals


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("-m", "--model")
    parser.add_argument("--draft", nargs="?", const="", help="a model that guesses; without a value: the model's own layers")
    parser.add_argument("--way", action="append", default=[], metavar="NAME=FLAGS", help="one more way to run it")
    parser.add_argument("-t", "--threads", default="1")
    parser.add_argument("-n", type=int, default=200, help="tokens to generate (default 200)")
    parser.add_argument("-r", "--rounds", type=int, default=10)
    parser.add_argument("flags", nargs="*", help="further flags of llm-cli, after --")
    o = parser.parse_args()
    args = (["-m", o.model] if o.model else []) + ["-t", o.threads] + o.flags
    ways = {"plain": [], "lookup": ["--lookup"]}
    if o.draft is not None:
        ways["draft" if o.draft else "own"] = ["--draft", o.draft] if o.draft else ["--draft"]
    for way in o.way:
        name, _, flags = way.partition("=")
        ways[name] = shlex.split(flags)
    print(f"| {'text':8} | {'way':7} | {'t/s':>9} | {'ratio':>6} | {'quartiles':>14} | {'guessed':>8} | {'right':>7} |")
    print("| -------- | ------- | --------: | -----: | -------------: | -------: | ------: |")
    for kind, prompts in sort_prompts(o.cli, args, o.n).items():
        if not prompts:
            print(f"no text of the kind '{kind}'", file=sys.stderr)
            continue
        speeds, totals = measure(o.cli, args, ways, prompts, o.n, o.rounds)
        for way in ways:
            ratios = [a / b for a, b in zip(speeds[way], speeds["plain"])]
            low, mid, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            print(f"| {kind:8} | {way:7} | {statistics.median(speeds[way]):9.1f} | {mid:6.3f} | {low:5.3f} .. {high:5.3f} | "
                  f"{totals[way][0]:8} | {totals[way][1]:7} |")


if __name__ == "__main__":
    main()
