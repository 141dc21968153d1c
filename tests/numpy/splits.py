#!/usr/bin/env python3
"""Where each pre-tokenizer cuts texts, compared with where llama.cpp cuts them.

    splits.py --tokenize LLM_TOKENIZE --dir FOLDER [..]
    splits.py --write MODEL           the vocabulary, with which another engine can cut the same texts
    splits.py --record PRE=FILE ..    prints the groups of pre-tokenizers for which that engine wrote FILE: a line of ids for each text

The results are in ../golden/splits.txt; ../golden/README.md describes the file. The vocabulary has a token for every part of every text,
and merges that let a piece grow from its beginning to its end, so that the lengths of tokens show the cuts. Exit code 0, 1.
"""
import argparse
import json
import os
import sys

import gguf
from gguf import Typed
from tokenizers import json_line, run

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "splits.txt")
TEXTS = [
    "Hello world! It's fine.", "I'LL say they'Re we've", "x=1234567+89;y--", "  two   spaces   end  ", "a\nb\n\n\nc\r\n\r\n d", "\tif (x) {\n\t\treturn;",
    "camelCaseHTTPServer2", "naïve café ÉCOLE ß ﬁ", "Привет, мир 2024!", "日本語の文章です。", "中文分词,测试abc", "한국어 텍스트", "สวัสดีครับ", "नमस्ते दुनिया",
    "e\u0301a\u0308 o\u0323", "👩\u200d👩 😀!!", "$5.00 + 7% ^_^ ~`|", "http://a.b/c?d=e#f", "١٢٣ ½ ² Ⅷ", "a\u00a0b\u3000c \u2028d", "...\n\n--- /\n/* c */", "'s 't 'LL 'em '90",
    "<a> [B] {c} \"d\"", "1 22 333 4444 55555", "_foo__bar_ #tag @you", "don\u2019t \u201cquote\u201d", "مرحبا بالعالم", "שלום עולם",
]


def spelling(data):
    """The characters by which byte-level vocabularies write bytes: printable ones as they are, others from 256 on (OpenAI 2019)."""
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
    hidden = [b for b in range(256) if b not in shown]
    return "".join(chr(b) if b in shown else chr(256 + hidden.index(b)) for b in data)


def vocabulary():
    pieces, merges = [bytes([b]) for b in range(256)], []
    for text in TEXTS:
        data = text.encode()
        for start in range(len(data)):
            for end in range(start + 2, len(data) + 1):
                pieces.append(data[start:end])
                merges.append((data[start:end - 1], data[end - 1:end]))
    return list(dict.fromkeys(pieces)), list(dict.fromkeys(merges))


def write(path, pre, pieces, merges):
    letters = [spelling([b]) for b in range(256)]
    spell = lambda data: "".join(letters[b] for b in data)
    gguf.write(path, {
        "general.architecture": "gpt2", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [spell(p) for p in pieces] + ["<|endoftext|>"],
        "tokenizer.ggml.token_type": Typed(gguf.ARRAY, [1] * len(pieces) + [3], gguf.I32),
        "tokenizer.ggml.merges": [f"{spell(a)} {spell(b)}" for a, b in merges],
        "tokenizer.ggml.bos_token_id": len(pieces), "tokenizer.ggml.eos_token_id": len(pieces)}, {})


def lengths(ids, pieces):
    """The bytes of each token, as text."""
    return ".".join(str(len(pieces[i])) for i in ids)


def read():
    """(names of pre-tokenizers, the lengths for each text) of each group."""
    groups = []
    with open(FILE, encoding="utf-8") as f:
        for line in f:
            word, *rest = line.split() or ["#"]
            if word == "pre":
                groups.append((rest, []))
            elif not word.startswith("#"):
                groups[-1][1].extend([word, *rest])
    return groups


def record(items, pieces):
    groups = {}
    for item in items:
        pre, path = item.split("=")
        with open(path, encoding="utf-8") as f:
            cuts = tuple(lengths(map(int, line.split()), pieces) for line in f)
        assert len(cuts) == len(TEXTS), path
        groups.setdefault(cuts, []).append(pre)
    for cuts, names in groups.items():
        print("pre", *names)
        for i in range(0, len(cuts), 7):
            print("   ", *cuts[i:i + 7])


def check(a, pre, want, pieces, merges):
    path = os.path.join(a.dir, f"splits-{os.getpid()}.gguf")
    try:
        write(path, pre, pieces, merges)
        got = run([a.tokenize, "-m", path, "--json-lines", "--no-bos"], b"".join(json_line(t.encode()) for t in TEXTS)).splitlines()
    finally:
        if os.path.exists(path):
            os.unlink(path)
    wrong = 0
    for text, line, cuts in zip(TEXTS, got, want, strict=True):
        ours = lengths(json.loads(line), pieces)
        if cuts.startswith("?") and ours == cuts[1:]:
            wrong += 1
            print(f"{pre}: {text!r} is cut as by llama.cpp, which is known to depart from the model's own tokenizer there")
        elif not cuts.startswith("?") and ours != cuts:
            wrong += 1
            print(f"{pre}: {text!r} is cut into {ours} bytes, by llama.cpp into {cuts}")
    print(f"{pre:24} {len(TEXTS)} texts {'FAILED' if wrong else 'ok'}")
    return not wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tokenize")
    p.add_argument("--cli")
    p.add_argument("--dir", default=".")
    p.add_argument("--write")
    p.add_argument("--record", nargs="+")
    a = p.parse_args()
    pieces, merges = vocabulary()
    if a.write:
        write(a.write, "gpt-2", pieces, merges)
        return 0
    if a.record:
        record(a.record, pieces)
        return 0
    os.makedirs(a.dir, exist_ok=True)
    return 0 if all([check(a, pre, want, pieces, merges) for names, want in read() for pre in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
