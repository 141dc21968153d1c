"""Counts the right answers of a model that sees shapes, for pictures that it has not seen; llm-cli looks at them, or the Python package.

    python3 check_eyes.py --cli LLM_CLI [--model FILE --eye FILE] [--count 20]
    PYTHONPATH=python/src python3 check_eyes.py --library libllm.so [--model FILE --eye FILE] [--count 1000]

An answer is right if it is to the last letter what shapes.py says of the picture. Exit code 1: fewer than --least percent are.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

import numpy as np

import shapes


def by_program(args):
    model = ["-m", args.model, "--mmproj", args.eye] if args.model else []

    def look(path, question):
        done = subprocess.run([args.cli, *model, "--image", path, "-st", "-p", question, "--temp", "0", "-t", "1"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
        if done.returncode:
            raise SystemExit(f"exit code {done.returncode}: {done.stderr}")
        return done.stdout.strip()
    return look


def by_library(args):
    os.environ["GGML_LITE_LIBRARY"] = args.library
    from ggml_lite import Model
    model = Model(args.model or "builtin:shapes", mmproj=args.eye, n_ctx=256)

    def look(path, question):
        said = model.chat([{"role": "user", "content": [{"type": "image", "image": path}, {"type": "text", "text": question}]}], temperature=0, max_tokens=60)
        return (said if isinstance(said, str) else said.text).strip()
    return look


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    how = ap.add_mutually_exclusive_group(required=True)
    how.add_argument("--cli")
    how.add_argument("--library")
    ap.add_argument("--model", help="default: the built-in one")
    ap.add_argument("--eye")
    ap.add_argument("--count", type=int, default=20)
    ap.add_argument("--seed", type=int, default=1000001)
    ap.add_argument("--least", type=float, default=95)
    ap.add_argument("--wrong", type=int, default=5, help="print so many wrong answers")
    ap.add_argument("--dir", help="where pictures are written for a moment")
    args = ap.parse_args()
    look = by_program(args) if args.cli else by_library(args)
    tally, left = collections.defaultdict(lambda: [0, 0]), args.wrong

    def ask(path, kind, question, want):
        nonlocal left
        got = look(path, question)
        for key in (kind, "all descriptions")[:1 + (kind[0] in "123")]:
            tally[key][0] += got == want
            tally[key][1] += 1
        if got != want and left > 0:
            left -= 1
            print(f"{question} {got}   instead of: {want}")

    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        path = os.path.join(folder, "picture.ppm")
        for k in range(args.count):
            g = np.random.default_rng([args.seed, k])
            b, things = shapes.draw(g, int(g.integers(64, 200)))
            shapes.write_ppm(path, b)
            ask(path, f"{len(things)} shape{'s' * (len(things) > 1)}", "What is in the picture?", shapes.answer(things))
            if k % 4 == 0:
                ask(path, "how many", "How many shapes are there?", shapes.count(things))
            one = things[g.integers(len(things))].shape
            if k % 4 == 1 and shapes.color_of(things, one):
                ask(path, "which colour", f"What colour is the {one}?", shapes.color_of(things, one))
    for key in sorted(tally):
        right, n = tally[key]
        print(f"{key:20} {right:5} of {n:5} right: {100 * right / n:.1f} %")
    right, n = tally["all descriptions"]
    sys.exit(100 * right / n < args.least)


if __name__ == "__main__":
    main()
