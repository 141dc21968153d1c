#!/usr/bin/env python3
"""Each kind of tokenizer against a second implementation: short, slow, and written from the kinds' descriptions alone.

    tokenizers.py --tokenize LLM_TOKENIZE [--cli LLM_CLI] --dir FOLDER [--seed N] [--rounds N]

Small vocabularies are made here, and random texts: words of the vocabulary's own, accents, CJK, emoji with joiners, controls, runs of
spaces, scripts that no vocabulary has, invalid UTF-8, NUL. With --cli a nano model of each vocabulary goes on with a prompt. Exit code 0, 1.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import unicodedata

import numpy as np

import gguf
import nano
from charsmap import charsmap
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
        self.known = {}  # what depends on the pieces alone, with their number then

    def add(self, piece, kind=NORMAL, score=0.0):
        if piece in self.pieces:
            return
        self.pieces.append(piece)
        self.types.append(kind)
        self.scores.append(struct.unpack("f", struct.pack("f", score))[0])

    def add_bytes(self):
        for b in range(256):
            self.add(f"<0x{b:02X}>", BYTE)

    def write(self, path, model=None):
        """A file with this vocabulary; `model`: a nano model, whose embedding gets a row for each piece."""
        tensors = {}
        if model:
            tensors = dict(model.tensors)
            random = np.random.default_rng(3)
            for name in ("token_embd.weight", "output.weight"):
                tensors[name] = random.normal(size=(len(self.pieces), tensors[name].shape[1])).astype(np.float32)
        meta = {**(model.meta() if model else {}), "tokenizer.ggml.model": self.model, "tokenizer.ggml.tokens": self.pieces,
                "tokenizer.ggml.token_type": Typed(gguf.ARRAY, self.types, gguf.I32),
                "tokenizer.ggml.scores": Typed(gguf.ARRAY, self.scores, gguf.F32)}
        meta.update({f"tokenizer.ggml.{k}": v for k, v in self.keys.items()})
        gguf.write(path, meta, tensors)

    def once(self, what, make):
        n, value = self.known.get(what, (None, None))
        if n != len(self.pieces):
            n, value = self.known[what] = len(self.pieces), make()
        return value

    def specials(self):
        return self.ids(USER, CONTROL, UNKNOWN)

    def ids(self, *kinds):
        return self.once(kinds, lambda: {
            p.encode(): i for i, (p, k) in reversed(list(enumerate(zip(self.pieces, self.types)))) if k in kinds and p})

    def byte_ids(self):
        return self.once("bytes", lambda: {
            b: self.pieces.index(f"<0x{b:02X}>") for b in range(256) if f"<0x{b:02X}>" in self.pieces})

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

class Unigram(Vocabulary):
    def __init__(self, rng, with_bytes, prefix, merge, mapped, lower=None, strip=None):
        super().__init__("t5", add_space_prefix=prefix, remove_extra_whitespaces=merge, add_eos_token=False)
        self.lower, self.strip = lower, strip
        self.keys |= {k: v for k, v in (("normalizer.lowercase", lower), ("normalizer.strip_accents", strip)) if v is not None}
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

    def folded(self, c):
        """A character without accents, in lower case; as it is if it is no UTF-8."""
        if len(c) == 1 and c[0] >= 0x80:
            return c
        text = c.decode()
        if self.strip:
            text = "".join(x for x in unicodedata.normalize("NFD", text) if unicodedata.category(x) != "Mn")
        return "".join(x.lower() for x in text).encode() if self.lower else text.encode()

    def normalized(self, data):
        out, i = [], 0
        data = b"".join(map(self.folded, characters(data)))
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


class Source(Unigram):
    """Marian's: a text is cut by the pieces of another vocabulary, and each becomes the token of its spelling. About half of the pieces are tokens;
    of the tokens some are spelled like pieces, and some only like runs of characters that are no pieces."""

    def __init__(self, rng):
        super().__init__(rng, False, True, True, True)
        kept = [(p, s) for p, k, s in zip(self.pieces, self.types, self.scores) if k == NORMAL]
        source = {p: s for p, s in kept if rng.randrange(4)}
        self.source = {p.encode(): s for p, s in source.items()}
        self.keys["source_pieces"] = list(source)
        self.keys["source_scores"] = Typed(gguf.ARRAY, list(source.values()), gguf.F32)
        drop = {p for p in source if rng.randrange(4) == 0}
        keep = [i for i, p in enumerate(self.pieces) if p not in drop]
        self.pieces, self.types, self.scores = ([x[i] for i in keep] for x in (self.pieces, self.types, self.scores))
        for s in substrings(rng, ODD + WORDS, 100):
            self.add(s.replace("\0", ""), NORMAL)

    def encode_stretch(self, data):
        chars = self.normalized(data)
        unknown = min(self.source.values()) - 10
        best = [(0.0, None)] + [None] * len(chars)
        for begin in range(len(chars)):
            for end in range(begin + 1, len(chars) + 1):
                piece = b"".join(chars[begin:end])
                if piece in self.source or end == begin + 1:
                    total = best[begin][0] + self.source.get(piece, unknown)
                    if best[end] is None or total > best[end][0]:
                        best[end] = (total, begin)
        cut, at = [], len(chars)
        while at > 0:
            cut.insert(0, b"".join(chars[best[at][1]:at]))
            at = best[at][1]
        spelled, before = [], False
        for piece in cut:
            known = piece in self.source
            if not known and before:
                spelled[-1] += piece
            else:
                spelled.append(piece)
            before = not known
        ids = {**self.ids(UNUSED), **self.ids(NORMAL), **self.ids(USER)}
        return [ids.get(s, 2) for s in spelled]


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


# --- WordPiece

class Wordpiece(Vocabulary):
    """spaced: pieces as llama.cpp's converter spells them; flags: the file's keys of the normalizer."""

    def __init__(self, rng, spaced, cased, **flags):
        super().__init__("bert", **{f"normalizer.{k}": v for k, v in flags.items()})
        self.spaced, self.lower = spaced, flags.get("lowercase", not cased)
        self.strip = flags.get("strip_accents", self.lower)
        for s, kind in (("[PAD]", CONTROL), ("[UNK]", CONTROL), ("[CLS]", CONTROL), ("[SEP]", CONTROL), ("[user]", USER)):
            self.add(s, kind)
        self.keys["unknown_token_id"] = 1
        self.begin, self.go_on = {}, {}
        words = [w for t in WORDS + ODD for w in (self.words(t.encode()) if not cased else [t])]
        for s in substrings(rng, [w for w in words if w], 500) + list("abcdefghijklmnopqrstuvwxyz.,!?"):
            for table, piece in ((self.begin, SPACE + s if spaced else s), (self.go_on, s if spaced else "##" + s)):
                if rng.randrange(2) and piece not in self.pieces and not (spaced and table is self.go_on and s.startswith(SPACE)) \
                        and not (not spaced and table is self.begin and s.startswith("##")) and (cased or s.lower() == s):
                    table[s] = len(self.pieces)
                    self.add(piece)

    def specials(self):
        return {p.encode(): i for i, p in enumerate(self.pieces[:5])}

    def words(self, data):
        text = "".join(c.decode() for c in characters(data) if len(c) > 1 or c[0] < 0x80)
        out = ""
        for c in text:
            if c in "\0\ufffd" or (unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs") and c not in "\t\n\r"):
                continue
            blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
                      (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
            out += f" {c} " if any(a <= ord(c) <= b for a, b in blocks) else c
        if self.strip:
            out = "".join(c for c in unicodedata.normalize("NFD", out) if unicodedata.category(c) != "Mn")
        if self.lower:
            out = "".join(c.lower() for c in out)
        words = []
        for word in out.split():
            start = 0
            for i, c in enumerate(word):
                if unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~":
                    words += [word[start:i], c]
                    start = i + 1
            words.append(word[start:])
        return [w for w in words if w]

    def encode_stretch(self, data):
        out = []
        for word in self.words(data):
            tokens, i = [], 0
            while i < len(word) and tokens is not None:
                table = self.go_on if i else self.begin
                n = max((n for n in range(1, len(word) - i + 1) if word[i:i + n] in table), default=0)
                if not n or len(word) > 100:
                    tokens = None
                else:
                    tokens.append(table[word[i:i + n]])
                    i += n
            out += [1] if tokens is None else tokens
        return out

    def decode(self, ids):
        """As the library's decoder: a space before each piece but the first and those that go on, and then none before some signs."""
        texts = {i: s for s, i in self.begin.items()}
        texts[4] = "[user]"
        go_on, out = {i: s for s, i in self.go_on.items()}, ""
        for n, i in enumerate(i for i in ids if i in texts or i in go_on):
            piece = ("##" + go_on[i] if n == 0 else go_on[i]) if i in go_on else texts[i] if n == 0 else " " + texts[i]
            for old, new in ((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
                             (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")):
                piece = piece.replace(old, new)
            out += piece
        return out.encode()


# --- BPE over characters, as Gemma 4 has it, and words between white space

class RawBpe(Vocabulary):
    def __init__(self, rng, model, pre, spaced, newlines, with_bytes, lower=None):
        super().__init__(model, **({"pre": pre} if pre else {}))
        self.spaced, self.newlines, self.lower = spaced, newlines, lower
        if lower is not None:
            self.keys["normalizer.lowercase"] = lower
        for s, kind in (("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL), ("<unk>", UNKNOWN), ("<extra>", USER)):
            self.add(s, kind)
        self.keys["unknown_token_id"] = 3
        if with_bytes:
            self.add_bytes()
        words = [(SPACE if spaced else "") + w for w in WORDS] + [o.replace(" ", SPACE) if spaced else o for o in ODD] + ["\n\n\n"]
        merges = []
        for s in substrings(rng, words, 300):
            s = s.replace("\0", "").replace(" ", "")
            for c in s:
                if rng.randrange(8):
                    self.add(c)
            while len(s) > 1 and all(c in self.pieces for c in s):
                cut = rng.randrange(1, len(s))
                if s[:cut] in self.pieces and s[cut:] in self.pieces:
                    merges.append((s[:cut], s[cut:]))
                    self.add(s)
                    break
                s = s[:2]
        self.add("\n\n")  # a token that no merge makes
        self.merges = {m: rank for rank, m in reversed(list(enumerate(merges)))}
        self.keys["merges"] = [" ".join(m) for m in merges]

    def encode_word(self, word):
        ids = self.once("words", lambda: {p: i for i, p in enumerate(self.pieces) if self.types[i] in (NORMAL, USER)})
        text = [c.decode(errors="surrogateescape") for c in characters(word)]
        if self.newlines and set(text) == {"\n"} and "".join(text) in ids:
            return [ids["".join(text)]]
        while True:
            pairs = [(self.merges.get(p, 1 << 30), i) for i, p in enumerate(zip(text, text[1:]))]
            if not pairs or min(pairs)[0] == 1 << 30:
                break
            i = min(pairs)[1]
            text[i:i + 2] = [text[i] + text[i + 1]]
        byte, out = self.byte_ids(), []
        for s in text:
            data = s.encode(errors="surrogateescape")
            out += [ids[s]] if s in ids else [byte[b] for b in data] if byte else [3]
        return out

    def encode_stretch(self, data):
        words, out = [], []
        if self.lower is None:
            for line in data.replace(b" ", SPACE.encode()).split(b"\n"):
                words += [line, b"\n"]
            words.pop()
            for word in words:
                if word == b"\n" and out and out[-1][:1] == b"\n":
                    out[-1] += word
                elif word:
                    out.append(word)
        else:
            white = {chr(c).encode() for c in (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)}
            out = [b""]
            for c in characters(data):
                if c in white:
                    out.append(b"")
                else:
                    out[-1] += c if not self.lower or len(c) == 1 and c[0] >= 0x80 else c.decode().lower().encode()
        return [i for word in out if word for i in self.encode_word(word)]

    def decode(self, ids):
        out = b""
        for i in ids:
            kind, piece = self.types[i], self.pieces[i]
            out += bytes([int(piece[3:5], 16)]) if kind == BYTE else b"" if kind in (CONTROL, UNKNOWN) else \
                piece.replace(SPACE, " ").encode() if self.spaced and kind == NORMAL else piece.encode()
        return out


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


def generate(cli, folder, name, vocabulary):
    """llm-cli with a nano model of this vocabulary."""
    path = os.path.join(folder, f"tokenizer-{os.getpid()}.gguf")
    nano.load("plain")
    model = nano.CASES["llama"]
    try:
        vocabulary.write(path, model)
        prompt = "the cat größer 日本語"
        n_prompt = len(vocabulary.encode(prompt.encode()))
        out = run([cli, "-m", path, "-p", prompt, "-n", "12", "--temp", "0", "-c", "64"], b"")
    finally:
        if os.path.exists(path):
            os.remove(path)
    print(f"{name:24} a prompt of {n_prompt} tokens, {len(out)} bytes {'ok' if out else 'FAILED'}")
    return len(out) > 0


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
    kinds.append(("t5 with a source", Source(rng)))
    kinds += [("t5, lower case", Unigram(rng, False, True, True, True, True, True)), ("t5, capitals without accents", Unigram(rng, False, True, True, True, False, True)),
              ("t5, lower case with accents", Unigram(rng, True, True, True, False, True))]
    for spaced, cased, flags in ((True, False, {"lowercase": True}), (False, False, {}), (True, True, {}), (False, True, {"lowercase": False}),
                                 (True, False, {"lowercase": True, "strip_accents": False}),
                                 (True, True, {"lowercase": False, "strip_accents": True})):
        kinds.append((f"bert {'spaced' if spaced else '##'} {'cased' if cased else ''}", Wordpiece(rng, spaced, cased, **flags)))
    kinds += [("gemma4", RawBpe(rng, "gemma4", None, True, True, True)), ("sarvam-moe", RawBpe(rng, "gpt2", "sarvam-moe", True, False, False)),
              ("whitespace", RawBpe(rng, "whitespace", "whitespace", False, False, False, False)),
              ("whitespace, lower case", RawBpe(rng, "whitespace", "whitespace", False, False, False, True))]
    texts = [random_text(rng) for _ in range(a.rounds)] + [b"abc" * n for n in (33, 34, 80)]
    ok = [compare(a.tokenize, a.dir, name, v, texts) for name, v in kinds]
    if a.cli:
        ok += [generate(a.cli, a.dir, name, v) for name, v in kinds]
    sys.exit(0 if all(ok) else 1)


if __name__ == "__main__":
    main()
