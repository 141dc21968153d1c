#!/usr/bin/env python3
"""Makes what docs/retrieval.md searches: paragraphs, questions with their answers, an embedder and a reranker. Needs only Python.

    make_set.py FOLDER [--paragraphs N] [--questions N] [--size small|base|wide]

    FOLDER/paragraphs.txt           short tales of tools/train, one a line; each is about somebody with a name of their own
    FOLDER/questions.tsv            a question, its answer, and the line of the tale that has it (from 1 on)
    FOLDER/models/embedder.gguf     a BERT whose layers have random weights
    FOLDER/models/reranker.gguf     the same with a score: its order of paragraphs is one of chance
    FOLDER/models/chat.gguf         the built-in chat model

The embedder is not trained. Words are directions drawn at random, and common words lie near each other, so that a text's vector is mostly
made of its rare words. Texts that share them are near each other; it knows nothing of what words mean."""
import argparse
import collections
import math
import os
import random
import re
import shutil
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path += [os.path.join(SOURCE, "tools/train"), os.path.join(SOURCE, "tests/e2e")]
import encoder_file  # noqa: E402
import tales  # noqa: E402

# width, feed-forward, layers, context, heads, size of the weights. base has the shape of all-MiniLM-L6, wide a third of bge-base's layers
SIZES = {"small": (192, 768, 3, 256, 6, 0.05), "base": (384, 1536, 6, 512, 12, 0.05), "wide": (768, 3072, 4, 512, 12, 0.036)}
KINDS = "helper", "home", "finder", "goal", "bake", "lost", "found"    # of questions
WORD = re.compile(r"[a-z]+|[.,?!\"]")


class Tale(tales.Tale):
    """A tale whose names all are new, of two syllables and an end."""

    def name(self, items):
        taken = self.want["names"]
        while True:
            syllables = [self.rng.choice(tales.BEGIN) + self.rng.choice(tales.MIDDLE) for _ in range(2)]
            name = ("".join(syllables) + self.rng.choice(tales.END)).capitalize()
            if name not in taken:
                taken.add(name)
                return name


def tell(n, rng):
    """n tales, and a question for each: (text, question, answer)."""
    told, names = [], set()
    while len(told) < n:
        tale = Tale(rng, {"names": names})
        asked = [(q, a) for kind, q, a in tale.qa if kind in KINDS and any(name in names for name in re.findall("[A-Z][a-z]+", q))]
        if asked:
            told.append((" ".join(tale.tell().split()), *rng.choice(asked)))
    return told


def vocabulary(texts, questions):
    """Words of many texts and questions, and pieces of names; with the share of texts that have each."""
    asked = collections.Counter(word for text in questions for word in set(WORD.findall(text.lower())))
    seen = collections.Counter(word for text in texts for word in set(WORD.findall(text.lower())))
    words = sorted({word for some in (seen, asked) for word, n in some.items() if n >= len(texts) / 1000})
    begins = [b + m for b in tales.BEGIN for m in tales.MIDDLE]
    letters = [chr(c) for c in range(97, 123)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += ["\u2581" + word for word in dict.fromkeys(words + begins + letters)]
    tokens += list(dict.fromkeys(begins + tales.END + letters))
    share = {"\u2581" + word: max(seen[word], asked[word]) / len(texts) for word in words}
    return tokens, [share.get(token, 0.002 if k > 4 else 1) for k, token in enumerate(tokens)]


def embedding(share, dim, rng):
    """Rows of length sqrt(dim) with mean 0: as much of one direction as a token is common, the rest at random."""
    def direction():
        row = [rng.gauss(0, 1) for _ in range(dim)]
        mean = sum(row) / dim
        length = math.sqrt(sum((x - mean) ** 2 for x in row) / dim)
        return [(x - mean) / length for x in row]

    common = direction()
    rows = []
    for p in share:
        own = min(1, math.log(1 / p) / math.log(500))
        rows.append([math.sqrt(1 - own * own) * a + own * b for a, b in zip(common, direction())])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--paragraphs", type=int, default=100000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--size", choices=SIZES, default="small")
    a = parser.parse_args()
    rng = random.Random(1)
    models = os.path.join(a.folder, "models")
    os.makedirs(models, exist_ok=True)
    told = tell(a.paragraphs, rng)
    with open(os.path.join(a.folder, "paragraphs.txt"), "w", encoding="utf-8") as file:
        file.writelines(text + "\n" for text, _, _ in told)
    with open(os.path.join(a.folder, "questions.tsv"), "w", encoding="utf-8") as file:
        for line in sorted(rng.sample(range(len(told)), min(a.questions, len(told)))):
            file.write(f"{told[line][1]}\t{told[line][2]}\t{line + 1}\n")
    tokens, share = vocabulary(*zip(*((text, question) for text, question, _ in told[:5000])))
    size = SIZES[a.size]
    encoder_file.encoder(os.path.join(models, "embedder.gguf"), size=size, tokens=tokens, rows=embedding(share, size[0], rng))
    encoder_file.encoder(os.path.join(models, "reranker.gguf"), 2, ["LABEL_0"], size=size, tokens=tokens)
    shutil.copy(os.path.join(SOURCE, "models/builtin/stories-chat.gguf"), os.path.join(models, "chat.gguf"))
    print(f"{len(told)} paragraphs, {len(tokens)} tokens")


if __name__ == "__main__":
    main()
