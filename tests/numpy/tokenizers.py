#!/usr/bin/env python3
"""Each kind of tokenizer against a second implementation: short, slow, and written from the kinds' descriptions alone.

    tokenizers.py --tokenize LLM_TOKENIZE --dir FOLDER [--seed N] [--rounds N]

Small vocabularies are made here, and random texts: words of the vocabulary's own, accents, CJK, emoji with joiners, controls, runs of
spaces, scripts that no vocabulary has, invalid UTF-8, NUL. Exit code 0, 1.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import unicodedata

import gguf
from gguf import Typed

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
SPACE = "\u2581"

# --- texts

WORDS = ("the cat and dog sat on a mat don't Hello HELLO world naïve café Über straße über élan Ünïcödé 1234 2024 3.14 "
         "der Hund ist größer als die Katze это кошка 日本語の文章 中文分词 東京都 한국어 สวัสดี นะ ﬁne ﬂow Ａｂｃ １２３ ™ Ⅷ İstanbul ŒUVRE "
         "x=y+1; foo_bar(baz) [brackets] {a:b} \"quoted\" 'single' a.b,c!d?e <s> </s> [CLS] [SEP] <unk>").split()
ODD = ["😀", "👩\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "e\u0301", "a\u0308\u0323", "\u0345", "\u0000", "\u0001", "\u001f", "\u007f", "\u0085",
       "\u00a0", "\u00ad", "\u200b", "\u200d", "\u2028", "\u3000", "\ufeff", "\ufffd", "\ue000", "\t", "\n", "\r\n", "\x0b", "\x0c",
       "  ", "     ", "            ", SPACE, SPACE + SPACE, "ᚠᚢ", "𐌰𐌱", "नमस्ते", "\U00020000", "\U0002b920", "\U0002f800", "豈",
       "가각", "\u1e9b\u0323", "\u212b", "\u2126", "\u037e", "\u0387", "\u1fef", "$", "`", "^", "~", "|", "+", "‘’", "。", "!!", "\\", "\\x41"]


def random_text(rng):
    out = b""
    for _ in range(rng.randrange(12)):
        kind = rng.randrange(10)
        if kind < 4:
            word = rng.choice(WORDS)
            i = rng.randrange(len(word))
            out += word[i if rng.randrange(3) == 0 else 0:].encode()
        elif kind < 7:
            out += rng.choice(ODD).encode()
        elif kind == 7:
            c = rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x10000), rng.randrange(0x110000)])
            if 0xD800 <= c < 0xE000 or unicodedata.category(chr(c)) == "Cn":  # newer Unicode may know more than this Python
                c = 0x20
            out += chr(c).encode()
        elif kind == 8 and rng.randrange(2):
            out += bytes(rng.choice([0xFF, 0x80, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xF5, rng.randrange(256)]) for _ in range(rng.randrange(1, 4)))
        out += b" " * rng.choice([0, 1, 1, 1, 2])
    return out


def characters(data):
    """The characters of bytes, each as bytes; what is no UTF-8, byte by byte."""
    out, i = [], 0
    while i < len(data):
        for n in (1, 2, 3, 4):
            try:
                data[i:i + n].decode()
                break
            except UnicodeDecodeError:
                pass
        else:
            n = 1
        out.append(data[i:i + n])
        i += n
    return out


def split_specials(data, specials):
    """(text, None) and (spelling, id) in turns: from left to right, the longest special token that begins there."""
    parts, start, i = [], 0, 0
    while i < len(data):
        best = max((s for s in specials if data.startswith(s, i)), key=len, default=None)
        if best is None:
            i += 1
            continue
        if i > start:
            parts.append((data[start:i], None))
        parts.append((best, specials[best]))
        i = start = i + len(best)
    if start < len(data):
        parts.append((data[start:], None))
    return parts


class Vocabulary:
    def __init__(self, model, **keys):
        self.model, self.keys = model, keys
        self.pieces, self.types, self.scores = [], [], []

    def add(self, piece, kind=NORMAL, score=0.0):
        if piece in self.pieces:
            return
        self.pieces.append(piece)
        self.types.append(kind)
        self.scores.append(struct.unpack("f", struct.pack("f", score))[0])

    def add_bytes(self):
        for b in range(256):
            self.add(f"<0x{b:02X}>", BYTE)

    def write(self, path):
        meta = {"tokenizer.ggml.model": self.model, "tokenizer.ggml.tokens": self.pieces,
                "tokenizer.ggml.token_type": Typed(gguf.ARRAY, self.types, gguf.I32),
                "tokenizer.ggml.scores": Typed(gguf.ARRAY, self.scores, gguf.F32)}
        meta.update({f"tokenizer.ggml.{k}": v for k, v in self.keys.items()})
        gguf.write(path, meta, {})

    def specials(self):
        kinds = (USER, CONTROL, UNKNOWN)
        return {p.encode(): i for i, (p, k) in reversed(list(enumerate(zip(self.pieces, self.types)))) if k in kinds and p}

    def ids(self, *kinds):
        return {p.encode(): i for i, (p, k) in reversed(list(enumerate(zip(self.pieces, self.types)))) if k in kinds and p}

    def byte_ids(self):
        return {b: self.pieces.index(f"<0x{b:02X}>") for b in range(256) if f"<0x{b:02X}>" in self.pieces}

    def encode(self, data):
        out = []
        for part, token in split_specials(data, self.specials()):
            out += [token] if token is not None else self.encode_stretch(part)
        return out

    def encode_stretch(self, data):
        raise NotImplementedError

    def decode(self, ids):
        raise NotImplementedError


def substrings(rng, words, n):
    """n random stretches of the words."""
    out = []
    for _ in range(n):
        word = rng.choice(words)
        i = rng.randrange(len(word))
        out.append(word[i:i + rng.randrange(1, 6)])
    return out


# --- RWKV World

class Rwkv(Vocabulary):
    def __init__(self, rng):
        super().__init__("rwkv")
        self.add("<s>", CONTROL)
        for b in range(256):
            self.add(repr(bytes([b]))[2:-1])
        for s in substrings(rng, WORDS + ODD, 400):
            data = s.encode()
            cut = data[rng.randrange(2):len(data) - rng.randrange(2)]  # tokens may be parts of characters
            self.add(repr(cut or data)[2:-1])
        self.add("[PAD0]", UNUSED)
        self.tokens = {}
        for i, (p, k) in enumerate(zip(self.pieces, self.types)):
            if k == NORMAL:
                self.tokens.setdefault(eval("b'''" + p.replace("'", "\\'").replace("\\\\'", "\\'") + "'''"), i)

    def encode_stretch(self, data):
        out = []
        while data:
            n = max(n for n in range(1, len(data) + 1) if data[:n] in self.tokens)
            out.append(self.tokens[data[:n]])
            data = data[n:]
        return out

    def decode(self, ids):
        spelled = {i: t for t, i in self.tokens.items()}
        return b"".join(spelled.get(i, b"") for i in ids)


# --- unigram

def charsmap(replacements):
    """SentencePiece's blob: a trie as a double array (each unit by trying), and the replacements."""
    texts, place = b"", {}
    for text in replacements.values():
        if text not in place:
            place[text] = len(texts)
            texts += text + b"\0"
    trie = {}
    for key, text in replacements.items():
        node = trie
        for b in key:
            node = node.setdefault(b, {})
        node["value"] = place[text]
    units = {0: 0}

    def lay(node, unit):
        labels = [0 if b == "value" else b for b in node]
        for offset in range(1, 1 << 21):
            at = [unit ^ offset ^ b for b in labels]
            if not any(i in units for i in at):
                break
        for i in at:
            units[i] = 0
        units[unit] |= offset << 2 | 1 << 9 if offset % 256 == 0 else offset << 10
        units[unit] |= ("value" in node) << 8
        for b, child in node.items():
            if b == "value":
                units[unit ^ offset] = 1 << 31 | child
            else:
                units[unit ^ offset ^ b] = b
                lay(child, unit ^ offset ^ b)

    lay(trie, 0)
    data = struct.pack(f"<{max(units) + 1}I", *(units.get(i, 0xFF) for i in range(max(units) + 1)))
    return struct.pack("<I", len(data)) + data + texts


class Unigram(Vocabulary):
    def __init__(self, rng, with_bytes, prefix, merge, mapped):
        super().__init__("t5", add_space_prefix=prefix, remove_extra_whitespaces=merge, add_eos_token=False)
        self.prefix, self.merge = prefix, merge
        self.map = {}
        if mapped:
            for c in [chr(c) for c in range(1, 0x300)] + list("ＡＢＣＤａｂｃ１２３ﬁﬂ™Ⅷ\u3000\u2028\u00a0\u212b") + ["e\u0301", "a\u0308", "U\u0308"]:
                to = "" if c < " " and c not in "\t\n\r" or c == "\x7f" else " " if c.isspace() else unicodedata.normalize("NFKC", c)
                if to != c:
                    self.map[c.encode()] = to.encode()
            self.keys["precompiled_charsmap"] = Typed(gguf.ARRAY, list(charsmap(self.map)), 0)
        self.add("<pad>", CONTROL)
        self.add("</s>", CONTROL)
        self.add("<unk>", UNKNOWN)
        if with_bytes:
            self.add_bytes()
        words = [SPACE + w for w in WORDS] + [SPACE.join(WORDS[:3])] + ODD
        for s in substrings(rng, words, 500):
            self.add(s.replace("\0", ""), NORMAL, -rng.randrange(1, 30) / 2)
        self.add("<extra>", USER, 0.0)
        self.add("unused", UNUSED, 5.0)

    def normalized(self, data):
        out, i = [], 0
        while i < len(data):
            n = max((n for n in range(1, 8) if data[i:i + n] in self.map), default=0)
            if n:
                out += characters(self.map[data[i:i + n]])
            else:
                c = characters(data[i:])[0]
                n = len(c)
                out.append(b"\xef\xbf\xbd" if n == 1 and c[0] >= 0x80 else c)
            i += n
        if self.merge:
            text = b"".join(out)
            while b"  " in text:
                text = text.replace(b"  ", b" ")
            out = characters(text.strip(b" "))
        if out and self.prefix:
            out = [b" "] + out
        return [SPACE.encode() if c == b" " else c for c in out]

    def encode_stretch(self, data):
        chars = self.normalized(data)
        ids = {**self.ids(NORMAL), **self.ids(USER)}
        score = {p: 0.0 if self.types[i] == USER else self.scores[i] for p, i in ids.items()}
        unknown = min(score.values()) - 10
        best = [(0.0, None, None)] + [None] * len(chars)
        for begin in range(len(chars)):
            for end in range(begin + 1, len(chars) + 1):
                piece = b"".join(chars[begin:end])
                if piece not in score and (end > begin + 1):
                    continue
                total = best[begin][0] + score.get(piece, unknown)
                if best[end] is None or total > best[end][0]:
                    best[end] = (total, begin, ids.get(piece))
        way, at = [], len(chars)
        while at > 0:
            way.insert(0, (best[at][2], chars[best[at][1]:at]))
            at = best[at][1]
        out, byte, before = [], self.byte_ids(), False
        for token, cs in way:
            unknown = token is None and not byte
            if token is not None:
                out.append(token)
            elif byte:
                out += [byte[b] for b in cs[0]]
            elif not before:
                out.append(2)
            before = unknown
        return out

    def decode(self, ids):
        out = b""
        for i in ids:
            kind, piece = self.types[i], self.pieces[i]
            out += bytes([int(piece[3:5], 16)]) if kind == BYTE else b"" if kind in (CONTROL, UNKNOWN) else \
                piece.encode() if kind == USER else piece.replace(SPACE, " ").encode()
        texts = [i for i in ids if self.types[i] != CONTROL]
        if texts and self.prefix and self.types[texts[0]] == NORMAL and self.pieces[texts[0]].startswith(SPACE):
            out = out[1:]
        return out


# --- PLaMo 2

class Plamo2(Vocabulary):
    def __init__(self, rng):
        super().__init__("plamo2")
        for s, kind in (("<|plamo:unk|>", UNKNOWN), ("<|plamo:bos|>", CONTROL), ("<|plamo:eos|>", CONTROL), ("<|plamo:pad|>", CONTROL)):
            self.add(s, kind)
        self.add_bytes()
        for s in substrings(rng, WORDS + ODD, 500):
            self.add(s, NORMAL, -rng.randrange(1, 40) / 2 if rng.randrange(20) else -1500.0)
        self.add("[PAD1]", UNUSED, -1000.0)

    def encode_stretch(self, data):
        chars, ids, byte = characters(data), self.ids(NORMAL), self.byte_ids()
        cost = [0] + [None] * len(chars)  # of the last n characters
        way = [None] * (len(chars) + 1)
        for begin in range(len(chars) - 1, -1, -1):
            n = len(chars) - begin
            for end in range(len(chars), begin, -1):
                i = ids.get(b"".join(chars[begin:end]))
                if i is None:
                    continue
                total = cost[len(chars) - end] - round(self.scores[i] * 1e4)
                if round(self.scores[i] * 1e4) > -20000000 and (cost[n] is None or total < cost[n]):
                    cost[n], way[n] = total, (end, [i])
            total = cost[n - 1] + 10000000
            if cost[n] is None or total < cost[n]:
                cost[n], way[n] = total, (begin + 1, [byte[b] for b in chars[begin]])
        out, at = [], 0
        while at < len(chars):
            at, tokens = way[len(chars) - at]
            out += tokens
        return out

    def decode(self, ids):
        return b"".join(bytes([int(self.pieces[i][3:5], 16)]) if self.types[i] == BYTE else
                        b"" if self.types[i] in (CONTROL, UNKNOWN) else self.pieces[i].encode() for i in ids)


# --- the comparison

def json_line(data):
    """Bytes as a JSON string; those that are no UTF-8 stay as they are."""
    return b'"' + b"".join(b"\\u%04x" % c if c < 0x20 or c in b'"\\' else bytes([c]) for c in data) + b'"\n'


def run(command, data):
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.decode().strip()}")
    return done.stdout


def compare(tool, folder, name, vocabulary, texts):
    path = os.path.join(folder, f"tokenizer-{os.getpid()}.gguf")
    try:
        vocabulary.write(path)
        got = run([tool, "-m", path, "--json-lines", "--no-bos"], b"".join(map(json_line, texts))).splitlines()
        assert len(got) == len(texts)
        wrong, n_tokens = 0, 0
        for k, (text, line) in enumerate(zip(texts, got)):
            want = vocabulary.encode(text)
            n_tokens += len(want)
            if json.loads(line) != want:
                wrong += 1
                if wrong <= 3:
                    print(f"{name}: {text!r}\n  gives    {line.decode()}\n  expected {want}")
            elif k % 50 == 0:
                back = run([tool, "-m", path, "--decode", "-"], line)
                if back != vocabulary.decode(want):
                    wrong += 1
                    print(f"{name}: {want} decodes to\n  {back!r}, expected\n  {vocabulary.decode(want)!r}")
    finally:
        if os.path.exists(path):
            os.remove(path)
    print(f"{name:24} {len(texts)} texts, {n_tokens} tokens, {wrong} wrong {'FAILED' if wrong or not n_tokens else 'ok'}")
    return not wrong and n_tokens > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokenize", required=True)
    parser.add_argument("--cli")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("GGL_TEST_SEED", 1)))
    parser.add_argument("--rounds", type=int, default=1500)
    a = parser.parse_args()
    print(f"seed {a.seed}")
    rng = random.Random(a.seed)
    kinds = [("rwkv", Rwkv(rng)), ("plamo2", Plamo2(rng))]
    for bits in (7, 6, 5, 0, 10, 12):
        kinds.append((f"t5 {bits:04b}", Unigram(rng, bool(bits & 8), bool(bits & 4), bool(bits & 2), bool(bits & 1))))
    texts = [random_text(rng) for _ in range(a.rounds)]
    ok = [compare(a.tokenize, a.dir, name, v, texts) for name, v in kinds]
    sys.exit(0 if all(ok) else 1)


if __name__ == "__main__":
    main()
