#!/usr/bin/env python3
"""Models that read a text and write another, as users of llm-cli run them: a small Marian, as a folder with its tokenizer.

reads_text.py TOOLS    TOOLS: the folder of the programs"""
import json
import math
import re
import sys

import marian_folder
from checks import TMP, check, finish, path, put, runner
from encoder_file import read_npy
from marian_folder import N, N_FF, PAD
from sentencepiece import LANGUAGES, SPACE, TOKENS, language_tokens

run = runner(sys.argv[1], cwd=TMP.name)
both = runner(sys.argv[1], cwd=TMP.name, both=True)

def cli(*args, **more):
    return run("llm-cli", "-m", "marian.gguf", *args, **more)


def answers():
    """What is written for a text is what each step's logits say, of the tokens that its pieces have."""
    read = json.loads(run("llm-tokenize", "-m", "marian.gguf", "--ids", "-p", "banana b"))
    said = json.loads(cli("-p", "banana b", "-n", "6", "--temp", "0", "--json-output"))
    ids, written = said["ids"], [PAD]
    for token in ids:
        cli("--encode-tokens", ",".join(map(str, read)), "--tokens", ",".join(map(str, written)), "-n", "0", "--logits", "l.npy")
        rows = read_npy(path("l.npy"))[2]
        check(len(rows) == len(written), f"{len(rows)} rows for {written}")
        check(rows[-1].index(max(rows[-1])) == token, f"{token} after {written} is not the likeliest", rows[-1])
        check(all(row[PAD] == float("-inf") for row in rows), "padding could be written", rows)
        written.append(token)
    check(ids and PAD not in ids, "no answer", ids)
    check(said["text"] == run("llm-tokenize", "-m", "marian.gguf", "--decode", ",".join(map(str, [t for t in ids if t]))).lstrip("\n"), "another text", said)
    # the prompt is the text to read: of the answer one token runs
    cli("-p", "banana b", "-n", "0", "--logits", "l.npy")
    check(len(read_npy(path("l.npy"))[2]) == 1, "rows of a text that is read")
    first = json.loads(cli("-p", "banana b", "-n", "3", "--temp", "2", "-s", "1", "--json-output", "--override-kv", "marian.forced_bos_token_id=int:5"))
    check(first["ids"][0] == 5, "another first token", first["ids"])


def beginnings():
    """The space that the tokenizer puts before a text is not in an answer, but in one that goes on where the decoder's tokens end."""
    def forced(token, *flags):
        return cli("-p", "banana b", "-n", "1", *flags, "--override-kv", f"marian.forced_bos_token_id=int:{token}")

    word, space = TOKENS.index(f"{SPACE}ban"), TOKENS.index(SPACE)
    for token, text in ((word, "ban"), (space, "")):
        said = json.loads(forced(token, "--json-output"))
        check((said["ids"], said["text"]) == ([token], text), "another text", said)
        check(run("llm-tokenize", "-m", "marian.gguf", "--decode", str(token)).rstrip("\n") == text, "--decode gives another text")
        check(forced(token).rstrip("\n") == text, f"not '{text}' is printed")
    check(forced(word, "--stop", "an").rstrip("\n") == "b", "--stop within the first word")
    check(forced(word, "--stop", " b").rstrip("\n") == "ban", "--stop finds the space")
    talk = json.loads(forced(word, "-cnv", "--chat-template", "{{ messages[-1].content }}", "--json-output"))
    check(talk["text"] == "ban", "a conversation has another text", talk)
    after = json.loads(cli("--encode-tokens", "3", "--tokens", f"{PAD},{word}", "-n", "1", "-l", f"{word}+1000", "--json-output"))
    check((after["ids"], after["text"]) == ([word], " ban"), "a space within a text is lost", after)


def refused():
    """A draft has nothing to guess from; contexts whose tables alone would fill memory."""
    cli("-p", "a", "-n", "2", "--draft", "marian.gguf", code=1, has="--draft: models that read a text and write another are not guessed for by a model")
    check(cli("-p", "banana", "-n", "8", "--temp", "0", "--lookup") == cli("-p", "banana", "-n", "8", "--temp", "0"), "--lookup")
    put("t.txt", b"banana " * 200)
    run("llm-imatrix", "-m", "marian.gguf", "-f", "t.txt", "-o", "i.gguf", code=1, has="the model reads a text and writes another")
    run("llm-arch", "doctor", "marian.gguf", "--text", "t.txt", code=1, has="the model reads a text and writes another, so no reading")
    _, said = both("llm-cli", "-m", "marian.gguf", "-p", "banana b", "-n", "2")
    check(re.search(r"prompt .* 5 tokens", said), "the text's tokens are counted", said)


def saved():
    """A text that was read comes from the file; another one is read, and replaces it."""
    long = "banana ban anana b a " * 3
    args = ("-n", "12", "--temp", "1.5", "-s", "3", "--ignore-eos")
    want, other = cli("-p", long, *args), cli("-p", "a banana", *args)
    for file, more in (("p.cache", ()), ("a.cache", ("--prompt-cache-all",))):
        n = 0
        for text, answer, hit in ((long, want, False), (long, want, True), ("a banana", other, False), (long, want, False), (long, want, True)):
            out, said = both("llm-cli", "-m", "marian.gguf", "-p", text, *args, "--prompt-cache", file, *more)
            check(out == answer, f"{file}: another text", (out, answer))
            check(("from cache" in said) == hit, f"{file}: run {n}", said)
            n += 1
    # the answer goes on, from the file that has all of it
    read = run("llm-tokenize", "-m", "marian.gguf", "--ids", "-p", long).strip().strip("[]")
    first = ",".join(map(str, [PAD] + json.loads(cli("-p", long, *args, "--json-output"))["ids"]))
    cont = ("--encode-tokens", read, "--tokens", first, "-n", "8", "--temp", "0", "--ignore-eos")
    out, said = both("llm-cli", "-m", "marian.gguf", *cont, "--prompt-cache", "a.cache")
    check(out == cli(*cont), "an answer that goes on", out)
    check("from cache" in said, "an answer that is in the file runs again", said)


def languages():
    """mBART's text names its language, and its answer begins with the one that --answer-begin names."""
    for name, codes, config, text in (("mbart50", LANGUAGES, {"tokenizer_class": "MBart50Tokenizer"}, "en_XX banana b"),
                                      ("mbart25", LANGUAGES[:25], {}, "banana b</s>en_XX")):
        folder = marian_folder.write_languages(path(name), codes, config)
        tokens = language_tokens(codes)
        read = run("llm-tokenize", "-m", folder, "--ids", "-p", text).strip().strip("[]").replace(" ", "")
        args = ("-m", folder, "-p", text, "-n", "6", "--temp", "0", "--ignore-eos")
        answers = set()
        for language in ("fr_XX", "de_DE", "fr_XX ban"):
            said = json.loads(run("llm-cli", *args, "--answer-begin", language, "--json-output"))
            written = [2, *(tokens.index(t) for t in language.replace(" ", f" {SPACE}").split(" "))]
            for token in said["ids"]:
                run("llm-cli", "-m", folder, "--encode-tokens", read, "--tokens", ",".join(map(str, written)), "-n", "0", "--logits", "l.npy")
                row = read_npy(path("l.npy"))[2][-1]
                check(row.index(max(row)) == token, f"{name}, {language}: {token} after {written} is not the likeliest", row)
                written.append(token)
            check(len(said["ids"]) == 6, f"{name}: no answer", said)
            check(run("llm-cli", *args, "--answer-begin", language).rstrip("\n") == said["text"], f"{name}: another text", said)
            answers.add(tuple(said["ids"]))
        check(len(answers) > 1, f"{name}: languages do not matter", answers)
        # as the key of files with one language
        key = f"mbart.forced_bos_token_id=int:{tokens.index('fr_XX')}"
        forced = json.loads(run("llm-cli", *args[:4], "-n", "7", *args[6:], "--override-kv", key, "--json-output"))["ids"]
        own = json.loads(run("llm-cli", *args, "--answer-begin", "fr_XX", "--json-output"))["ids"]
        check(forced == [tokens.index("fr_XX"), *own], f"{name}: other tokens with the key", (forced, own))
        run("llm-cli", *args[:6], "--answer-begin", "fr_XX", "--beams", "3")
    cached = ("--answer-begin", "fr_XX", "--prompt-cache", "m.cache")
    first, (again, said) = run("llm-cli", *args, *cached), both("llm-cli", *args, *cached)
    check(first == again and "from cache" in said, "a text that was read is not in the file", said)
    run("llm-cli", "-m", "builtin:stories", "-p", "a", "--answer-begin", "b", code=2, has="--answer-begin is for models that read a text and write another")
    run("llm-cli", "-m", folder, "--tokens", "1", "--answer-begin", "b", code=2, has="--answer-begin needs the text to read from -p or -f")
    run("llm-cli", "-m", folder, "-i", "--answer-begin", "b", code=2, has="--answer-begin is for a text, not for a conversation")
    run("llm-cli", *args, "--answer-begin", "ban " * 40, code=1, has="the prompt has 41 tokens, but the context only 32")


def beams():
    """The text that a search of beams finds is that of a search written here, over the model's own logits (transformers' BeamSearchScorer)."""
    seen = {}

    def after(read, written):
        key = read, tuple(written)
        if key not in seen:
            cli("--encode-tokens", read, "--tokens", ",".join(map(str, written)), "-n", "0", "--logits", "l.npy")
            row = read_npy(path("l.npy"))[2][-1]
            total = math.log(sum(math.exp(x - max(row)) for x in row)) + max(row)
            seen[key] = [x - total for x in row]
        return seen[key]

    def search(read, n, penalty, early, most, ends=(0,)):
        held, kept = [(0.0, [PAD])], []
        for length in range(1, most + 1):
            found = sorted(((score + p, ids, token) for score, ids in held for token, p in enumerate(after(read, ids)) if p > float("-inf")), key=lambda x: -x[0])[:(1 + len(ends)) * n]
            held = []
            for rank, (score, ids, token) in enumerate(found):
                if token in ends and rank < n:
                    kept = sorted(kept + [(score / length ** penalty, ids[1:])], key=lambda x: -x[0])[:n]
                elif token not in ends:
                    held.append((score, ids + [token]))
                if len(held) == n:
                    break
            if len(kept) == n and (early or kept[-1][0] >= found[0][0] / length ** penalty):
                return kept[0][1]
        return max(kept + [(score / most ** penalty, ids[1:]) for score, ids in held], key=lambda x: x[0])[1]

    found = set()
    for text in ("banana b", "a ban"):
        read = run("llm-tokenize", "-m", "marian.gguf", "--ids", "-p", text).strip().strip("[]").replace(" ", "")
        for n, penalty, early, most in ((2, 1, False, 6), (4, 1, False, 5), (3, 0, False, 6), (3, 2.5, True, 6)):
            want = search(read, n, penalty, early, most)
            flags = ["--beams", str(n), "-n", str(most), *(["--length-penalty", str(penalty)] if penalty != 1 else []), *(["--early-stopping"] if early else [])]
            for threads in "1", "2":
                got = json.loads(cli("-p", text, *flags, "-t", threads, "--json-output"))["ids"]
                check([t for t in got if t] == want, f"{text}, {flags}", (got, want))
            found.add(tuple(want))
    check(len(found) > 2, "searches that find the same", found)
    # several tokens that end a text: those that the best texts begin with, and others
    read = run("llm-tokenize", "-m", "marian.gguf", "--ids", "-p", "banana b").strip().strip("[]").replace(" ", "")
    firsts = sorted({t for ids in found for t in ids[1:3]})
    for n in (2, 3):
        for eot, eom in zip(firsts, firsts[1:] + [5]):
            want = search(read, n, 1, False, 6, (0, eot, eom))
            got = json.loads(cli("--encode-tokens", read, "--tokens", str(PAD), "--beams", str(n), "-n", "6", "--json-output", "--override-kv",
                                 f"tokenizer.ggml.eot_token_id=int:{eot}", "--override-kv", f"tokenizer.ggml.eom_token_id=int:{eom}"))["ids"]
            check([t for t in got if t not in (0, eot, eom)] == want, f"{n} beams, which {eot} and {eom} end", (got, want))
    # a model that continues its prompt
    texts = {n: run("llm-cli", "-m", "builtin:stories", "-p", "Once upon a time", "--beams", n, "-n", "20") for n in "124"}
    check(len(set(texts.values())) > 1 and all(t.startswith("Once upon a time") for t in texts.values()), "beams of a causal model", texts)
    times = json.loads(run("llm-cli", "-m", "builtin:stories", "-p", "Once", "--beams", "4", "-n", "100", "--json-output"))["timings"]
    check(times["prompt_ms"] < times["generation_ms"], "the prompt's time is not that of the search after it", times)
    check(cli("-p", "banana b", "--beams", "1", "-n", "5", "--temp", "0") == cli("-p", "banana b", "-n", "5", "--temp", "0"), "one beam")
    cli("-p", "a", "--beams", "3", "-cnv", code=2, has="a search of beams (--beams) and a conversation (-cnv) cannot be used together")
    cli("-p", "a", "--early-stopping", code=2, has="--early-stopping needs --beams")
    cli("-p", "a", "--beams", "3", "--draft", code=2, has="a search of beams (--beams) and guesses of a draft (--draft) cannot be used together")


def speed():
    """llm-bench measures what is read, what is written, and both."""
    rows = [json.loads(line) for line in run("llm-bench", "-m", "marian.gguf", "-p", "8", "-n", "4", "-pg", "8,4", "-d", "0,6", "-r", "1", "--no-limits",
                                             "-o", "jsonl", has="pp8 @ d6 is not measured: the model reads the prompt whole").splitlines()]
    check([(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows] == [(8, 0, 0), (0, 4, 0), (8, 4, 0), (0, 4, 6)], "tests", rows)
    check(all(r["type_k"] == r["type_v"] == "f32" for r in rows), "types", rows)
    # of a text nothing runs but the encoder, and the keys and values of it that the decoder reads
    read = rows[0]["gmac_per_s"] * rows[0]["avg_ns"] / 8
    check(abs(read - (6 * N * N + 2 * N * N_FF)) < 1, "multiply-adds of a token that is read", read)


if __name__ == "__main__":
    marian_folder.write(path("marian"))
    run("llm-convert", "marian", "-o", "marian.gguf")
    answers()
    beginnings()
    speed()
    saved()
    languages()
    beams()
    refused()
    sys.exit(finish())
