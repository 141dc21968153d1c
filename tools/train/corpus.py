"""Builds the training text: stories of the simulator (plots.py) mixed with real prose.

Writes into --out, as llm-train reads them, {"text": ..} in a line:
    train.jsonl        stories and passages, in random order
    drills.jsonl       rows of three words each, "b a a c b a ..": the only way to predict them is to repeat what came before. Stories need the
                       same for names, but too seldom: a small model learns everything else first, and copies wrong names for long
    valid-world.jsonl  stories of numbers never used in training
    valid-prose.jsonl  passages of real prose never used in training
and the last two as .txt, with an empty line between two, for llm-perplexity.

The prose is old and often hard. A model of a million parameters gains nothing from a sentence it cannot
follow, so a passage is kept only if its sentences are short and nearly all its words are common in fairy
tales; then it is repeated until it makes up --prose of the characters.
"""

import argparse
import collections
import json
import lzma
import os
import random
import re

import plots

HERE = os.path.dirname(os.path.abspath(__file__))
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
SHORT = 25                     # words per sentence, mean over a paragraph
KNOWN = 0.95                   # share of the words that must be among the common ones
COMMON = 5000                  # how many words count as common
PASSAGE = 150                  # words after which a passage is complete
DRILL = 48                     # words of a drill


def read(path):
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        return f.read()


def clean(par):
    """One paragraph with plain typography, or None if it is not prose."""
    par = re.sub(r"\s+", " ", par).strip()
    par = par.replace("--", ", ").replace("_", "").replace(" ,", ",").replace(";", ",")
    par = re.sub(r",(?: *,)+", ",", par)
    par = re.sub(r",(?=[A-Za-z])", ", ", par)
    if not par.isascii() or re.search(r"[0-9\[\]{}<>|*/\\=+~^#@&%()]|[A-Z]{3,}|\.\.|CHAPTER", par):
        return None
    return par if re.search(r"[.!?]\"?$", par) and par.count('"') % 2 == 0 else None


def passages(text, common):
    """Runs of neighbouring simple paragraphs, joined to passages of about PASSAGE words."""
    out, run, words = [], [], 0

    def flush():
        nonlocal run, words
        if words >= 40:
            out.append("\n".join(run))
        run, words = [], 0

    for par in text.split("\n"):
        par = clean(par)
        ws = WORD.findall(par.lower()) if par else []
        sentences = len(re.findall(r"[.!?]", par)) if par else 0
        simple = ws and len(ws) <= SHORT * sentences and sum(w in common for w in ws) >= KNOWN * len(ws)
        if not simple or len(ws) > 2 * PASSAGE:
            flush()
            continue
        run.append(par)
        words += len(ws)
        if words >= PASSAGE:
            flush()
    flush()
    return out


def drills(texts, count, rng):
    counts = collections.Counter(w for t in texts for w in re.findall("[A-Za-z]+", t))
    words = sorted(w for w, n in counts.items() if n >= max(1, len(texts) // 600))
    few = (rng.sample(words, 3) for _ in range(count))
    return [" ".join(rng.choice(three) for _ in range(DRILL)) for three in few]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--text", default=os.path.join(HERE, "../../../shared/text"), help="folder with the prose")
    ap.add_argument("--out", required=True, help="working folder, outside the repository")
    ap.add_argument("--stories", type=int, default=130000)
    ap.add_argument("--drills", type=int, default=6000)
    ap.add_argument("--prose", type=float, default=0.08, help="share of the characters")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    rng = random.Random(args.seed)

    fairy = read(os.path.join(args.text, "fairytaleqa-stories.txt"))
    classics = read(os.path.join(args.text, "children-classics.txt.xz"))
    counts = collections.Counter(WORD.findall(fairy.lower()))
    common = {w for w, _ in counts.most_common(COMMON)}
    stories = [plots.tell(args.seed, n) for n in range(args.stories)]
    common |= {w for s in stories[:2000] for w in WORD.findall(s.lower())}

    prose = passages(fairy, common) + passages(classics, common)
    rng.shuffle(prose)
    held = max(1, len(prose) // 40)
    valid_prose, prose = prose[:held], prose[held:]
    if not prose:
        raise SystemExit(f"{args.text}: too few passages are simple enough")
    have = sum(map(len, stories))
    want = have * args.prose / (1 - args.prose)
    mixed, size = list(stories), 0
    while size < want:
        for p in prose:
            if size >= want:
                break
            mixed.append(p)
            size += len(p)
    rng.shuffle(mixed)
    valid_world = [plots.tell(args.seed, args.stories + n) for n in range(500)]

    practice = drills(mixed[:6000], args.drills, rng)

    for name, items in (("train", mixed), ("drills", practice), ("valid-world", valid_world), ("valid-prose", valid_prose)):
        path = os.path.join(args.out, name)
        with open(path + ".jsonl", "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"text": text}) + "\n" for text in items)
        if name.startswith("valid"):
            with open(path + ".txt", "w", encoding="utf-8") as f:
                f.write("\n\n".join(items) + "\n")
    print(f"simulator: {len(stories)} stories, {have / 1e6:.1f} M characters")
    print(f"prose: {len(prose)} passages, {sum(map(len, prose)) / 1e6:.1f} M characters, "
          f"used {size / max(1, sum(map(len, prose))):.1f} times")


if __name__ == "__main__":
    main()
