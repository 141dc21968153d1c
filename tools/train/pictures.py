"""Conversations about drawings, for llm-train --mmproj: pictures as BMP files, and who asks what about them. NumPy alone.

    python3 pictures.py --out DIR --count 20000          DIR/N.bmp, DIR/talk.jsonl, DIR/patches.jsonl
    python3 pictures.py --words FILE                     texts for the tokenizer, as JSON lines

talk.jsonl has questions and answers, and a little of the drill, so that the eye keeps what it learned. patches.jsonl teaches the eye what to look for: a drill that reads the picture aloud, patch by patch, once the shapes and once
the colours. The word of a patch stands as far behind the patch's row for all patches, so a model learns early to look there, and the eye gets an answer for each row.
"""

import argparse
import json
import os

import numpy as np

import shapes

SIDE, PATCH = 64, 8                # of the eye
ASKED = ["What is in the picture?", "What is in this picture?", "What is this?", "What do you see?", "What can you see?", "Describe the picture.",
         "Describe this image.", "Describe the image.", "What is shown?", "What does the picture show?", "What's in the image?", "What is in the image?",
         "What's this?", "Tell me what you see.", "Please describe what you see.", "describe", "what is it?", "What shapes are there?",
         "Which shapes do you see?", "Say what you see.", ""]
COUNTED = ["How many shapes are there?", "How many shapes do you see?", "How many things are in the picture?", "How many are there?",
           "Count the shapes."]
NO_PICTURE = "Show me a picture, and I will say which shapes it has."
TALK = ["Hello!", "Hello", "Hi", "Who are you?", "What can you do?", "Tell me a story.", "How are you?", "Thank you!", "Good morning", *ASKED[:-1], *COUNTED]
NOTHING = "."                      # the word of a patch without a shape


def ask(g, things):
    """A question and its answer."""
    kind = g.random()
    if kind < 0.12:
        return COUNTED[g.integers(len(COUNTED))], shapes.count(things)
    if kind < 0.4:
        own = [t.shape for t in things]
        shape = own[g.integers(len(own))] if g.random() < 0.75 else shapes.SHAPES[g.integers(len(shapes.SHAPES))]
        said = shapes.color_of(things, shape)
        if said:
            colour = "colour" if g.random() < 0.6 else "color"
            return f"{('What', 'Which')[g.integers(2)]} {colour} {('is', 'has')[g.integers(2)]} the {shape}?", said
    asked = ASKED[0] if g.random() < 0.2 else ASKED[g.integers(len(ASKED))]
    if g.random() < 0.15:          # something else: it says what it sees
        asked = " ".join("".join(chr(97 + c) for c in g.integers(0, 26, g.integers(1, 9))) for _ in range(g.integers(1, 6)))
    asked = asked.lower() if g.random() < 0.15 else asked
    return (" " + asked if g.random() < 0.1 else asked), shapes.answer(things)


def words_of_patches(things, size, width, height):
    """Which shape and which colour each patch shows most of, by the picture's place in the eye's square; NOTHING: none."""
    k = SIDE / max(width, height)
    left, top = (max(width, height) - width) / 2, (max(width, height) - height) / 2
    shown = np.zeros((SIDE, SIDE), int)
    for number, t in enumerate(things, 1):
        x, y, r = (t.x * size + left) * k, (t.y * size + top) * k, t.r * size * k
        lines, columns, a = shapes.cover(shapes.Thing(t.color, t.shape, x / SIDE, y / SIDE, r / SIDE, t.turn, t.rgb), SIDE, SIDE, SIDE)
        shown[lines, columns][a > 0.3] = number
    n = SIDE // PATCH
    patches = shown.reshape(n, PATCH, n, PATCH).transpose(0, 2, 1, 3).reshape(n * n, -1)
    kinds, colors = [], []
    for patch in patches:
        count = np.bincount(patch, minlength=len(things) + 1)
        most = 1 + int(count[1:].argmax())
        is_shown = count[1:].sum() >= 10
        kinds.append(things[most - 1].shape if is_shown else NOTHING)
        colors.append(things[most - 1].color if is_shown else NOTHING)
    return " " + " ".join(kinds), " " + " ".join(colors)


def line(path, asked, said, first=True, weight=None):
    """A line of JSON: one question about a picture, which stands before it or behind it, and its answer. path None: without a picture. weight: how much each token of
    the answer counts."""
    text, image = {"type": "text", "text": asked}, {"type": "image_url", "image_url": {"url": path}}
    content = asked if path is None else [image, text] if first else [text, image]
    answer = {"role": "assistant", "content": said} | ({} if weight is None else {"weight": weight})
    return json.dumps({"messages": [{"role": "user", "content": content}, answer]}) + "\n"


def write_words(path):
    """All that is asked and said, about as often as in talks."""
    g = np.random.default_rng(0)
    with open(path, "w", encoding="utf-8") as f:
        for k in range(4000):
            things = shapes.scene(g, 1, 1, np.full(3, 0.5))
            for text in (shapes.answer(things), ASKED[k % len(ASKED)], COUNTED[k % len(COUNTED)], shapes.count(things), TALK[k % len(TALK)], NO_PICTURE,
                         f"shapes: {' '.join(shapes.SHAPES)} . colours: {' '.join(shapes.COLORS)} .",
                         *[f"What colour is the {s}? The {s} is {c}. There is no {s}." for s in shapes.SHAPES[:1 + k % 5] for c in shapes.COLORS]):
                f.write(json.dumps({"text": text}) + "\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    ap.add_argument("--out", help="a folder")
    ap.add_argument("--count", type=int, default=20000, help="pictures")
    ap.add_argument("--questions", type=int, default=2, help="about each picture")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--words", help="a file")
    args = ap.parse_args()
    if args.words:
        write_words(args.words)
    if not args.out:
        return
    os.makedirs(args.out, exist_ok=True)
    g = np.random.default_rng(args.seed)
    with open(os.path.join(args.out, "talk.jsonl"), "w", encoding="utf-8") as talk, \
            open(os.path.join(args.out, "patches.jsonl"), "w", encoding="utf-8") as drill:
        for k in range(args.count):
            size = int(g.choice([SIDE, SIDE, SIDE, 2 * SIDE, g.integers(48, 120)]))
            b, things = shapes.draw(g, size)
            shapes.write_bmp(os.path.join(args.out, f"{k}.bmp"), b)
            kinds, colors = words_of_patches(things, size, b.shape[1], b.shape[0])
            drill.write(line(f"{k}.bmp", "shapes:", kinds))
            drill.write(line(f"{k}.bmp", "colours:", colors))
            for _ in range(args.questions):
                talk.write(line(f"{k}.bmp", *ask(g, things), first=g.random() < 0.85))
            if k % 4 == 0:
                talk.write(line(f"{k}.bmp", *(("shapes:", kinds) if k % 8 else ("colours:", colors)), weight=0.3))
            if k % 16 == 0:
                talk.write(line(None, TALK[g.integers(len(TALK))], NO_PICTURE))


if __name__ == "__main__":
    main()
