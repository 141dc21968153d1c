#!/usr/bin/env python3
"""Compiles tokenizers for small boards, and compares their tokens with those of the large engine: of random vocabularies of all kinds, and of
models that are there; for random texts.

    words.py ROOT BIN WORDS CC WORK [BOARD]    here, with sanitizers if the compiler has them; or on an emulated board

BIN has the programs; WORDS is test-small-words; WORK is a folder to write to. The environment's GGL_TEST_SEED chooses vocabularies and texts, GGL_SHARED is
a folder that may have further models."""
import concurrent.futures
import os
import random
import shutil
import struct
import subprocess
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "../numpy")]
import boards
import compare
import gguf
import tokenizers

LONG = [b"abc" * 33, b"abc" * 34, b"a" * 300, b" " * 300, b"<" * 90, b"\xff" * 40, "é".encode() * 60, "東".encode() * 40, b"the the\n\n\n\n the", b"1234567890" * 9]
LONGEST = [b"\xff" * 766, b"a" * 430, b"zq" + "\u0130".encode() * 340]  # what takes most memory of some vocabularies below
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]


class Dna(tokenizers.Vocabulary):
    """Bytes that merge, and groups of six letters."""

    def __init__(self, rng, kind):
        super().__init__("hybriddna", pre="gpt-2")
        for token in ("<dna>", "</dna>", "<oov>"):
            self.add(token, kind)
        for b in range(33, 127):
            self.add(chr(b))
        self.add("at")
        for _ in range(60):
            self.add("".join(rng.choice("ACGT") for _ in range(6)) + "\ue000")
        self.keys["merges"] = ["a t"]


class ByteBpe(tokenizers.Vocabulary):
    """Merges of bytes, with words that are tokens whatever the merges say, and tokens that absorb white space beside them."""

    def __init__(self, rng, pre):
        super().__init__("gpt2", pre=pre)
        spelled = {b: chr(b) if 33 <= b < 127 or (161 <= b and b != 173) else None for b in range(256)}
        others = [b for b in range(256) if spelled[b] is None]
        spelled.update({b: chr(256 + k) for k, b in enumerate(others)})
        for b in range(256):
            if b != 7:
                self.add(spelled[b])
        merges = []
        for s in tokenizers.substrings(rng, [" " + w for w in tokenizers.WORDS] + tokenizers.ODD, 300):
            piece = "".join(spelled[b] for b in s.encode())
            while len(piece) > 1:
                cut = rng.randrange(1, len(piece))
                if piece[:cut] in self.pieces and piece[cut:] in self.pieces:
                    merges.append(f"{piece[:cut]} {piece[cut:]}")
                    if rng.randrange(9):
                        self.add(piece)
                    break
                piece = piece[:2]
        self.add("".join(spelled[b] for b in b" the cat"))
        self.add(spelled[ord(" ")] + "mat", tokenizers.USER)
        for token in ("<|placeholder1|>", "<|user|>", "<|end|>", "</s>", "<mask>"):
            self.add(token, tokenizers.CONTROL)
        self.keys["merges"] = merges


class Spm(tokenizers.Vocabulary):
    """SentencePiece's kind with scores."""

    def __init__(self, rng, prefix, merge, with_bytes):
        super().__init__("llama", add_space_prefix=prefix, remove_extra_whitespaces=merge)
        self.add("<unk>", tokenizers.UNKNOWN)
        self.add("<s>", tokenizers.CONTROL)
        self.add("</s>", tokenizers.CONTROL)
        if with_bytes:
            self.add_bytes()
        words = [tokenizers.SPACE + w for w in tokenizers.WORDS] + [o for o in tokenizers.ODD if " " not in o]
        for s in tokenizers.substrings(rng, words, 500):
            for n in range(1, len(s) + 1):
                self.add(s[:n].replace("\0", ""), tokenizers.NORMAL, -rng.randrange(1, 60) / 2)
        self.add(tokenizers.SPACE + "dog", tokenizers.USER)
        self.add("<mask>", tokenizers.USER)


class Grows(tokenizers.Vocabulary):
    """Unigram pieces that span a whole text which is longer than what was written: bytes become U+FFFD, or a map makes more of a letter."""

    def __init__(self, pieces, mapped):
        super().__init__("t5", add_space_prefix=False, remove_extra_whitespaces=False, add_eos_token=False)
        if mapped:
            self.keys["precompiled_charsmap"] = tokenizers.Typed(gguf.ARRAY, list(tokenizers.charsmap(mapped)), 0)
        self.add("<pad>", tokenizers.CONTROL)
        self.add("</s>", tokenizers.CONTROL)
        self.add("<unk>", tokenizers.UNKNOWN)
        for k, piece in enumerate(pieces):
            self.add(piece, tokenizers.NORMAL, -1.0 - k / 2)


class Chain(tokenizers.Vocabulary):
    """Merges of a word from its begin on, so that each join leaves another one in the queue; capitals become longer (U+0130 is two characters)."""

    def __init__(self):
        super().__init__("whitespace", pre="whitespace")
        self.keys |= {"normalizer.lowercase": True, "unknown_token_id": 0}
        self.add("<unk>", tokenizers.UNKNOWN)
        merges, word, dot = [], "q", "\u0307"
        for piece in ("q", "z", "i", dot):
            self.add(piece)
        words = [word]
        for k in range(700):
            merges.append(f"{word} {dot if k % 2 else 'i'}")
            word += dot if k % 2 else "i"
            words.append(word)
        self.keys["merges"] = merges + [f"z {w}" for w in words] + [f"i {dot}", f"{dot} i"]


def vocabularies(rng):
    t = tokenizers
    yield "rwkv", t.Rwkv(rng)
    yield "plamo2", t.Plamo2(rng)
    yield "dna", Dna(rng, t.NORMAL)
    yield "dna_user", Dna(rng, t.USER)
    for k, pre in enumerate(rng.sample(["gpt-2", "llama-bpe", "qwen2", "default", "tekken", "exaone-moe", "afmoe", "deepseek-llm", "superbpe", "bloom"], 3)):
        yield f"bpe{k}", ByteBpe(rng, pre)
    for k, (prefix, merge, with_bytes) in enumerate(((True, False, True), (False, True, True), (True, True, False))):
        yield f"spm{k}", Spm(rng, prefix, merge, with_bytes)
    for bits in (7, 6, 5, 0, 10, 12):
        yield f"t5_{bits}", t.Unigram(rng, bool(bits & 8), bool(bits & 4), bool(bits & 2), bool(bits & 1))
    yield "t5_lower", t.Unigram(rng, False, True, True, True, True, True)
    yield "t5_capitals", t.Unigram(rng, False, True, True, True, False, True)
    yield "t5_accents", t.Unigram(rng, True, True, True, False, True)
    for k, (spaced, cased, flags) in enumerate(((True, False, {"lowercase": True}), (False, False, {}), (True, True, {}), (False, True, {"lowercase": False}),
                                                (True, False, {"lowercase": True, "strip_accents": False}), (True, True, {"lowercase": False, "strip_accents": True}))):
        yield f"bert{k}", t.Wordpiece(rng, spaced, cased, **flags)
    yield "gemma4", t.RawBpe(rng, "gemma4", None, True, True, True)
    yield "sarvam", t.RawBpe(rng, "gpt2", "sarvam-moe", True, False, False)
    yield "white", t.RawBpe(rng, "whitespace", "whitespace", False, False, False, False)
    yield "white_lower", t.RawBpe(rng, "whitespace", "whitespace", False, False, False, True)
    yield "t5_unknown", Grows(["a", t.SPACE, "\ufffd", "\ufffd\ufffd"], None)
    yield "t5_grows", Grows(["x", t.SPACE, "y", "xy", "yx"], {b"a": b"xy" * 8})
    yield "white_chain", Chain()


def write_texts(work, texts):
    with open(f"{work}/texts", "wb") as f:
        for text in texts:
            f.write(struct.pack("<I", len(text)) + text)
    at = [0]
    for text in texts:
        at.append(at[-1] + len(text))
    data = ",".join(str(b) for text in texts for b in text)
    with open(f"{work}/texts.c", "w") as f:
        f.write(f"#include <stdint.h>\nconst unsigned char texts[] = {{{data},0}};\nconst uint32_t text_at[] = {{{','.join(map(str, at))}}};\n"
                f"const uint32_t n_texts = {len(texts)};\n")


def can_sanitize(cc):
    """True if programs with sanitizers run here."""
    program = subprocess.run([cc, *SANITIZE, "-x", "c", "-o", "/dev/null", "-"], input="int main(void) { return 0; }\n", capture_output=True, text=True)
    return program.returncode == 0


def check_refused(binaries, work, rng):
    """A tokenizer that no board can have is named, with the reason, and the plan has none."""
    tokenizers.Source(rng).write(f"{work}/source.gguf")
    sizes = {"block_count": 1, "embedding_length": 32, "feed_forward_length": 32, "attention.head_count": 2, "attention.layer_norm_rms_epsilon": 0.00001, "context_length": 64}
    compare.call(f"{binaries}/llm-train", "new", "llama", "--tokenizer", f"{work}/source.gguf", *(word for k, v in sizes.items() for word in ("--set", f".{k}={v}")),
                 "-o", f"{work}/refused.gguf")
    done = subprocess.run([f"{binaries}/llm-arch", "compile", f"{work}/refused.gguf", "-o", f"{work}/refused.c"], capture_output=True, text=True)
    for want in ("refused.gguf: tokenizer.ggml.source_pieces is there", "tokenize elsewhere (llm-tokenize)"):
        if done.returncode != 0 or want not in done.stderr:
            sys.exit(f"llm-arch compile does not say '{want}': {done.returncode}, {done.stderr}")
    if "WORK" in open(f"{work}/refused.h").read():
        sys.exit("the header of a plan without a tokenizer has memory for one")


def main(root, binaries, words, cc, work, board=None):
    cflags, extra, ldflags, run = [], [], [], compare.call
    if board:
        found = boards.find(board, root)
        if isinstance(found, str):
            print(f"skipped: {found}")
            return 77
        cc, cflags, extra, ldflags, run = found
    else:
        cflags = ["-DGGL_COUNT_STEPS"] + (SANITIZE if can_sanitize(cc) else [])
    seed = int(os.environ.get("GGL_TEST_SEED", time.time() // 86400))
    print(f"seed {seed}, flags {' '.join(cflags)}")
    rng = random.Random(seed)
    work = os.path.abspath(work)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(f"{work}/models")
    texts = [tokenizers.random_text(rng) for _ in range(60 if board else 300)] + LONG
    texts += [b"".join(rng.choice(texts) + rng.choice([b" ", b"", b"</s> ", b" <mask>", b"\n<|user|>\n ", b"<dna>acgtACGTacgtNNa</dna>", b"<dna>ACG"]) for _ in range(4)) for _ in range(40)]
    texts += [] if board else LONGEST
    write_texts(work, texts)
    models = {}
    for name, vocabulary in vocabularies(rng):
        models[name] = f"{work}/models/{name}.gguf"
        vocabulary.write(models[name])
    if not board:
        check_refused(binaries, work, rng)
        models |= {"stories": f"{root}/models/builtin/stories.gguf", "stories_gpt2": f"{root}/tests/data/stories-gpt2.gguf"}
        shared = os.path.join(os.environ.get("GGL_SHARED", ""), "tokenizers/ggml-vocab-phi-3.gguf")
        models |= {"phi3": shared} if os.path.exists(shared) else {}
    said = compare.call(words, work, f"{work}/texts", *(f"{name}={path}" for name, path in models.items()))
    print(said.strip())
    if "none:" in said:
        sys.exit("a tokenizer cannot be on a board")
    with open(f"{work}/words.h", "w") as f:
        f.write("".join(f"WORDS({name})\n" for name in models))
    jobs, out = os.cpu_count() or 1, f"{work}/out"
    compare.call("make", "-f", f"{root}/small/small.mk", f"OUT={out}", f"CC={cc}", f"AR={cc.removesuffix('gcc') if cc.endswith('-gcc') else ''}ar",
                 f"CFLAGS=-O1 {' '.join(cflags)}", f"-j{jobs}", "words")
    flags = [cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections", f"-I{root}/small", f"-I{root}/tests/small", f"-I{work}",
             f"-I{root}/ggml-lite/include", f"-I{root}/models", *cflags]
    sources = [*(f"{work}/{name}.c" for name in models), f"{work}/texts.c", f"{root}/tests/small/run_words.c", *extra]
    objects = [os.path.join(out, os.path.basename(s) + ".o") for s in sources]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda so: compare.call(*flags, "-O1" if "run_words" in so[0] else "-O0", "-c", so[0], "-o", so[1]), zip(sources, objects)))
    compare.call(cc, *cflags, *objects, f"{out}/libwords.a", "-Wl,--gc-sections", *ldflags, "-lm", "-o", f"{out}/program")
    printed = run(f"{out}/program")
    print(printed.strip())
    if "failures: 0" not in printed:
        return 1
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
