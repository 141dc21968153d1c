"""Windows of sound for llm-train -m words.gguf: words of speak.py with pauses, rooms and noise as WAV files, and what is said in them. NumPy alone.

    python3 speech.py --voices DIR/train.npz --out DIR --count 8000         DIR/N.wav, DIR/words.jsonl, DIR/talk.jsonl

words.jsonl has a time before and behind each word, which teaches where to listen; its sounds are short. talk.jsonl has what the model is to write: phrases between
pauses with their times, or all words without times.
"""

import argparse
import json
import os

import numpy as np

import sounds
from speak import RATE, write_wav


def segments(phrases):
    """What is said, and when. []: nothing."""
    return [dict(start=round(begin / RATE, 2), end=round(end / RATE, 2), text=" ".join(words)) for words, begin, end in phrases]


def line(path, phrases, times):
    """A line of JSON. A word that the window does not have whole is not said."""
    if times or not phrases:
        return json.dumps(dict(audio=path, segments=segments(phrases))) + "\n"
    return json.dumps(dict(audio=path, text=" ".join(w for words, *_ in phrases for w in words))) + "\n"


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    ap.add_argument("--voices", required=True, help="train.npz of speak.py")
    ap.add_argument("--out", required=True, help="a folder")
    ap.add_argument("--count", type=int, default=8000, help="whole windows; there are as many short sounds")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    g = np.random.default_rng(args.seed)
    voices = sounds.Voices(args.voices)
    noise = sounds.noises(g) + [sounds.crowd(g, voices) for _ in range(3)]
    for name, seconds, most, first in (("words", 2, 3, args.count), ("talk", sounds.SECONDS, 9, 0)):
        path = os.path.join(args.out, f"{name}.jsonl")
        with open(path + ".now", "w", encoding="utf-8") as f:
            for k in range(first, first + args.count):
                scene = sounds.Scene(g, voices, noise, seconds, most)
                write_wav(os.path.join(args.out, f"{k}.wav"), scene.samples)
                f.write(line(f"{k}.wav", scene.said if name == "words" else scene.phrases, name == "words" or g.random() < 0.7))
        os.replace(path + ".now", path)            # a script that is started again knows that it is whole


if __name__ == "__main__":
    main()
