"""Counts the wrong words of a model that hears, in sounds of voices that it has not been trained with; llm-transcribe writes them down.

    python3 check_ears.py --data DIR --transcribe LLM_TRANSCRIBE [--model words.gguf] [--count 600]

DIR has test.npz of speak.py. Half of the sounds are rows of words as a voice spoke them in one breath, the others single words with pauses; half
have noise, 10 to 30 dB below the words. Word errors are words left out, added and exchanged, by the words that were said.
"""

import argparse
import collections
import json
import os
import subprocess
import tempfile

import numpy as np

import sounds
from speak import RATE, WORDS, write_wav


def errors(said, heard):
    """The fewest words to leave out, add or exchange."""
    row = list(range(len(heard) + 1))
    for i, a in enumerate(said, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(heard, 1):
            before, row[j] = row[j], min(before + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def mix(g, voices, voice, noise, is_noisy):
    """A sound, its words, when they begin and end, and what kind of sound it is."""
    parts, words = [np.zeros(int(RATE * g.uniform(0.1, 0.9)))], []
    begin = len(parts[0]) / RATE
    if g.random() < 0.5:
        k = voices.rows[voice][g.integers(len(voices.rows[voice]))]
        words, kind = voices.text[k], "in one breath"
        parts.append(voices.sound(k))
    else:
        kind = "word by word"
        for n in range(g.integers(1, 9)):
            w = WORDS[g.integers(len(WORDS))]
            words = words + [w]
            parts += [np.zeros(int(RATE * g.uniform(0.05, 0.4)))] * (n > 0) + [voices.sound(voices.alone[voice][w])]
    end = sum(map(len, parts)) / RATE
    x = np.concatenate(parts + [np.zeros(int(RATE * g.uniform(0.2, 0.8)))]) * 10 ** g.uniform(-1, -0.1)
    if is_noisy:
        hiss = noise[g.integers(len(noise))]
        at = g.integers(0, len(hiss) - len(x))
        x = x + hiss[at:at + len(x)] * np.sqrt((x * x).mean()) * 10 ** (-g.uniform(10, 30) / 20)
    return np.clip(x, -1, 1), words, (begin, end), kind


def transcribe(args, folder, names):
    """Pieces of each sound: what llm-transcribe writes as JSON."""
    model = ["-m", args.model] if args.model else []
    subprocess.run([args.transcribe, *model, "-q", "--format", "json", "--output-dir", folder, *args.flag, *(os.path.join(folder, n + ".wav") for n in names)],
                   check=True, stderr=subprocess.DEVNULL)
    out = []
    for n in names:
        with open(os.path.join(folder, n + ".json"), encoding="utf-8") as f:
            out.append(json.load(f)["segments"])
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--transcribe", required=True)
    ap.add_argument("--model", help="default: the built-in one")
    ap.add_argument("--flag", action="append", default=[], help="of llm-transcribe, such as -bs=1; repeatable")
    ap.add_argument("--count", type=int, default=600)
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--wrong", type=int, default=0, help="print so many texts with errors")
    args = ap.parse_args()
    g = np.random.default_rng(args.seed)
    voices = sounds.Voices(os.path.join(args.data, "test.npz"))
    noise = sounds.noises(g) + [sounds.crowd(g, voices)]
    names = sorted(voices.by_program)              # as many sounds of each
    tally, times, empty = collections.defaultdict(lambda: [0, 0, 0]), [], 0
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for k in range(args.count):
            some = voices.by_program[names[k % len(names)]]
            voice = some[g.integers(len(some))]
            x, *what = mix(g, voices, voice, noise, k // len(names) % 2)
            write_wav(os.path.join(folder, f"{k}.wav"), x)
            made.append((voice, names[k % len(names)], k // len(names) % 2, *what))
        for k in range(20):                        # nothing is said
            x = noise[k % len(noise)][:RATE * 4] * 10 ** g.uniform(-4, -1.5) if k % 4 else np.zeros(RATE * 4)
            write_wav(os.path.join(folder, f"silent-{k}.wav"), x)
        heard = transcribe(args, folder, [str(k) for k in range(args.count)])
        silent = transcribe(args, folder, [f"silent-{k}" for k in range(20)])
        empty = sum(not pieces for pieces in silent)
    for (voice, name, is_noisy, words, (begin, end), kind), pieces in zip(made, heard):
        got = " ".join(p["text"] for p in pieces).split()
        e = errors(words, got)
        for key in ("all", name, "with noise" if is_noisy else "without noise", kind, *([voice] if name == "espeak" else [])):
            for i, n in enumerate((e, len(words), 1)):
                tally[key][i] += n
        if pieces:                                 # a piece alone begins with its window, whatever its first token says
            own = 0.02 * (pieces[0]["tokens"][0] - sounds.FIRST_TIME)
            times.append((abs(own - begin), abs(pieces[-1]["end"] - end)))
        if e and args.wrong > 0:
            args.wrong -= 1
            print(f"{voice}, {kind}{', noise' * is_noisy}: {' '.join(words)} -> {' '.join(got)}")
    for key, (e, n, k) in tally.items():
        print(f"{key:36} {100 * e / n:5.2f} % of {n} words wrong, in {k} sounds")
    a, b = np.median(times, 0) if times else (np.nan, np.nan)
    print(f"times: begins {a:.2f} s off in the middle, ends {b:.2f} s; {100 * np.mean([max(t) < 0.3 for t in times] or [0]):.0f} % of both within 0.3 s")
    print(f"silence and noise: {empty} of 20 without a word")


if __name__ == "__main__":
    main()
