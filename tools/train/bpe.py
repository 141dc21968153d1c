"""Trains a byte-level byte-pair encoding, as used by GPT-2 and Qwen, for eyes.py.

A published pattern splits a text into words; a merge never crosses their borders. So a
corpus shrinks to a few thousand different words with their counts: each round joins the pair of neighbours that
is most frequent among them (of equals, the smaller one), and only the words that contain it are counted again.
"""

import collections

import regex

PATTERNS = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def byte_letters():
    """The letter that stands for each byte: itself if it is printable, else the next one from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


LETTERS = byte_letters()


def spell(word):
    return "".join(LETTERS[b] for b in word.encode("utf-8"))


def join(parts, pair):
    """parts with every occurrence of the pair joined, left to right."""
    out, i = [], 0
    while i < len(parts):
        two = i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair
        out.append(parts[i] + parts[i + 1] if two else parts[i])
        i += 2 if two else 1
    return out


def learn(words, count):
    """The first `count` merges. words: how often each spelled word occurs."""
    parts = {w: list(w) for w in words}
    pairs, where = collections.Counter(), collections.defaultdict(set)

    def add(word, sign):
        for pair in zip(parts[word], parts[word][1:]):
            pairs[pair] += sign * words[word]
            where[pair].add(word)

    for w in words:
        add(w, 1)
    merges = []
    while len(merges) < count:
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for w in where.pop(best):
            add(w, -1)
            parts[w] = join(parts[w], best)
            add(w, 1)
        del pairs[best]
    return merges


class Encoder:
    def __init__(self, pre, tokens, merges):
        self.pattern = regex.compile(PATTERNS[pre])
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.rank = {m: i for i, m in enumerate(merges)}
        self.known = {}

    def word(self, word):
        parts = list(spell(word))
        while True:
            best = min(zip(parts, parts[1:]), key=lambda p: self.rank.get(p, len(self.rank)), default=None)
            if best not in self.rank:
                return [self.ids[p] for p in parts]
            parts = join(parts, best)

    def encode(self, text):
        out = []
        for w in self.pattern.findall(text):
            if w not in self.known:
                self.known[w] = self.word(w)
            out += self.known[w]
        return out
