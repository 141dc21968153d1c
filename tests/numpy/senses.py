#!/usr/bin/env python3
"""The built-in models that see and hear, which nobody has to name: llm-cli looks at the picture of examples/ and at drawings that no training has seen,
llm-transcribe writes down the sound of examples/, also with noise, at other speeds, three times in a row, and nothing where nothing is said.

    senses.py --cli LLM_CLI --transcribe LLM_TRANSCRIBE --source FOLDER --dir FOLDER [sees] [drawings] [hears]

FOLDER is the repository. Exit code 0, 1.
"""
import argparse
import json
import os
import subprocess
import sys
import wave

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import terminals

WORDS = "seven blue lamp stop"
SHAPES = "A red circle to the left of a blue triangle."
QUESTIONS = {"How many shapes are there?": "Two shapes.", "Describe the image.": SHAPES, "Is it art?": SHAPES}


def check(good, *what):
    if not good:
        sys.exit(f"FAILED: {what}")


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **({"stdin": subprocess.DEVNULL} | more))
    check(done.returncode == 0, words, done)
    return done


def write_wav(path, x, rate=16000):
    with wave.open(path, "wb") as w:
        w.setparams((1, 2, rate, 0, "NONE", ""))
        w.writeframes(np.clip(np.round(x * 32767), -32768, 32767).astype("<i2").tobytes())


def read_wav(path):
    with wave.open(path, "rb") as w:
        check(w.getparams()[:3] == (1, 2, 16000), path, w.getparams())
        return np.frombuffer(w.readframes(w.getnframes()), "<i2") / 32768


def typed(*words, lines):
    """What a program prints on a terminal while these lines are typed."""
    code, seen = terminals.run(*words, typed="".join(line + "\n" for line in lines), env={**os.environ, "TERM": "dumb"})
    check(code == 0, seen)
    return seen.replace("\r", "")


def sees(a):
    """Without -m, a picture is for builtin:shapes, which says so; it answers what is asked, in a pipe, too, or else what is in the picture."""
    picture = os.path.join(a.source, "examples/shapes.bmp")
    alone = run(a.cli, "--image", picture)
    check(alone.stdout == SHAPES + "\n", alone)
    check("note: no model is named (-m), so builtin:shapes looks at the picture" in alone.stderr, alone)
    for question, answer in QUESTIONS.items():
        check(run(a.cli, "--image", picture, "-p", question).stdout == answer + "\n", question)
    asked = list(QUESTIONS)[0]
    check(run(a.cli, "--image", picture, stdin=None, input=asked + "\n").stdout == QUESTIONS[asked] + "\n", "a question in a pipe")
    check(run(a.cli, "--image", picture, stdin=None, input="").stdout == SHAPES + "\n", "an empty pipe")
    named = run(a.cli, "-m", "builtin:shapes", "--image", picture, "-st", "-p", "What is in the picture?")
    check(named.stdout == SHAPES + "\n" and "no model is named" not in named.stderr, named)
    beside = run(a.cli, "-m", "builtin:shapes", "--mmproj", os.path.join(a.source, "models/builtin/shapes-eye.gguf"), "--image", picture, "-st", "-p", asked)
    check(beside.stdout == QUESTIONS[asked] + "\n", beside)
    blind = subprocess.run([a.cli, "-m", "builtin:shapes", "--no-mmproj", "--image", picture, "-p", "a"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    check(blind.returncode == 2 and "--image needs the model's eye" in blind.stderr, blind)
    talk = typed(a.cli, "--image", picture, lines=[asked, "/quit"])
    check(SHAPES in talk and QUESTIONS[asked] in talk, "on a terminal, the conversation goes on", talk)


def drawings(a):
    """At least 95 of 100 answers are right to the last letter, for drawings of the recipe that no training has seen."""
    script = os.path.join(a.source, "tools/train/check_eyes.py")
    done = subprocess.run([sys.executable, script, "--cli", a.cli, "--count", "20", "--least", "95", "--dir", a.dir], capture_output=True, text=True)
    print(done.stdout)
    check(done.returncode == 0, done)


def hears(a):
    sound = os.path.join(a.source, "examples/words.wav")
    alone = run(a.transcribe, sound)
    check(alone.stdout == WORDS + "\n", alone)
    check("note: no model is named (-m), so builtin:words listens" in alone.stderr, alone)
    check(run(a.transcribe, "-m", "builtin:words", sound).stdout == WORDS + "\n", "by its name")
    check(run(a.transcribe, "--no-timestamps", sound).stdout == WORDS + "\n", "without times")
    x = read_wav(sound)
    loud = np.flatnonzero(np.abs(x) > 0.02) / 16000
    pieces = json.loads(run(a.transcribe, "--format", "json", sound).stdout)["segments"]
    check(pieces[0]["start"] <= loud[0] and abs(pieces[-1]["end"] - loud[-1]) < 0.25, "times", pieces, loud[[0, -1]])
    words = json.loads(run(a.transcribe, "--format", "json", "--word-timestamps", sound).stdout)["segments"][0]["words"]
    check([w["word"] for w in words] == [" " + w for w in WORDS.split()] and all(w["start"] < w["end"] for w in words), words)

    path, n_right, n = os.path.join(a.dir, f"senses-{os.getpid()}.wav"), 0, 0
    def hear(y, rate=16000):
        write_wav(path, y, rate)
        return " ".join(run(a.transcribe, path).stdout.split())
    try:
        for seed in range(6):  # noise of two colours, 20 dB below the words
            g = np.random.default_rng(seed)
            hiss = g.normal(size=len(x))
            hiss = np.cumsum(hiss) - np.cumsum(np.concatenate([np.zeros(400), hiss[:-400]])) if seed % 2 else hiss
            hiss *= 0.1 * np.sqrt((x * x).mean()) / np.sqrt((hiss * hiss).mean())
            heard = hear(0.5 * x + 0.5 * hiss)
            n, n_right = n + 1, n_right + (heard == WORDS)
            print(f"noise {seed}: {heard}")
        for rate in (0.94, 1.06):
            at = np.arange(int(len(x) / rate)) * rate
            heard = hear(np.interp(at, np.arange(len(x)), x))
            n, n_right = n + 1, n_right + (heard == WORDS)
            print(f"{rate} times as fast: {heard}")
        check(n_right >= n - 1, f"{n_right} of {n} are right")
        check(hear(np.concatenate([x, x, x])) == " ".join([WORDS] * 3), "more than a window")
        check(hear(0 * x) == "", "silence")
        check(hear(np.random.default_rng(1).normal(size=64000) * 0.01) == "", "noise alone")
    finally:
        if os.path.exists(path):
            os.unlink(path)


def main():
    ap = argparse.ArgumentParser()
    for name in ("cli", "transcribe", "source", "dir"):
        ap.add_argument("--" + name, required=True)
    ap.add_argument("case", nargs="*", choices=["sees", "drawings", "hears"])
    a = ap.parse_args()
    for case in a.case:
        globals()[case](a)


main()
