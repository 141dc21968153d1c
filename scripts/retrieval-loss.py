#!/usr/bin/env python3
"""Measures what each type of weights costs in retrieval, for an embedding model and texts, as a Markdown table. Needs numpy.

    scripts/retrieval-loss.py [--bin build/release/bin] [--top N] MODEL PARAGRAPHS QUESTIONS TYPE ..

MODEL is quantized to each TYPE (a type or a mix of llm-quantize), and ranks the lines of PARAGRAPHS for each question, as MODEL itself does.
QUESTIONS has a question a line, and may have tabs after it: an answer, and the line of the right paragraph (from 1 on). Columns:

    bytes           of the file
    cosine          of a paragraph's vector with MODEL's, the mean and the smallest
    top 1, top N    how many of the paragraphs that MODEL ranks so high the other ranks so high, too
    tau             Kendall's, of the order of MODEL's best 100 paragraphs: 1: the same, 0: no relation
    right           questions whose right paragraph is the first, and among the first N

Parameters of a matrix whose rows are not whole blocks of a type get another type, which `llm-quantize -v` names."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip().split("\n")[-1])


def tau(a, b):
    """Kendall's tau of two lists of scores, over all pairs."""
    upper = numpy.triu_indices(len(a), 1)
    return float(numpy.mean(numpy.sign(a[:, None] - a[None])[upper] * numpy.sign(b[:, None] - b[None])[upper]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/release/bin"))
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("-t", "--threads", default="0")
    parser.add_argument("model")
    parser.add_argument("paragraphs")
    parser.add_argument("questions")
    parser.add_argument("types", nargs="+", metavar="TYPE")
    a = parser.parse_args()
    with open(a.questions, encoding="utf-8") as file:
        asked = [line.rstrip("\n").split("\t") for line in file]
    right = numpy.array([int(row[2]) - 1 for row in asked]) if all(len(row) == 3 for row in asked) else None

    with tempfile.TemporaryDirectory() as folder:
        questions, model, out = (os.path.join(folder, name) for name in ("questions.txt", "model.gguf", "out.npy"))
        with open(questions, "w", encoding="utf-8") as file:
            file.writelines(row[0] + "\n" for row in asked)

        def vectors(path):
            """(paragraphs', questions')"""
            both = []
            for text, flags in (a.paragraphs, ["--document"]), (questions, ["--prompt-name", "query"]):
                threads = ["-t", a.threads] if a.threads != "0" else []
                run(os.path.join(a.bin, "llm-embed"), "-m", path, "-f", text, *flags, *threads, "-o", out)
                both.append(numpy.load(out).astype(numpy.float64))
            return both

        base, asked_base = vectors(a.model)
        truth = asked_base @ base.T
        order = numpy.argsort(-truth, axis=1, kind="stable")

        def found(order):
            rank = numpy.argmax(order == right[:, None], axis=1)
            return f"{100 * numpy.mean(rank < 1):.1f} % / {100 * numpy.mean(rank < a.top):.1f} %"

        print(f"{len(asked)} questions, {len(base)} paragraphs\n")
        print(f"| type | bytes | cosine, mean / least | top 1 | top {a.top} | tau |" + (f" right, 1 / {a.top} |" if right is not None else ""))
        print("|---|---|---|---|---|---|" + ("---|" if right is not None else ""))
        print(f"| unquantized | {os.path.getsize(a.model)} | | | | |" + (f" {found(order)} |" if right is not None else ""), flush=True)
        for name in a.types:
            run(os.path.join(a.bin, "llm-quantize"), a.model, model, name)
            rows, queries = vectors(model)
            scores = queries @ rows.T
            theirs = numpy.argsort(-scores, axis=1, kind="stable")
            cosines = (rows * base).sum(1) / numpy.linalg.norm(rows, axis=1) / numpy.linalg.norm(base, axis=1)
            same = [numpy.mean([len(set(x[:n]) & set(y[:n])) / n for x, y in zip(order, theirs)]) for n in (1, a.top)]
            taus = numpy.mean([tau(truth[k][order[k, :100]], scores[k][order[k, :100]]) for k in range(len(asked))])
            print(f"| {name} | {os.path.getsize(model)} | {cosines.mean():.5f} / {cosines.min():.5f} | {100 * same[0]:.1f} % | {100 * same[1]:.1f} % | "
                  f"{taus:.3f} |" + (f" {found(theirs)} |" if right is not None else ""), flush=True)


if __name__ == "__main__":
    main()
