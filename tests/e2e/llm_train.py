#!/usr/bin/env python3
"""llm-train as users run it, on good days and bad ones. llm_train.py LLM-TRAIN LLM-CLI PART"""
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

import encoder_file
import svg_check
import terminals
from checks import TMP, check, finish, path, put

TRAIN, CLI = (os.path.abspath(p) for p in sys.argv[1:3])
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/builtin/stories-chat.gguf")
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("LLAMA_ARG_", "LLM_"))}
ENV.update(TERM="xterm", GGL_PROGRESS_DELAY="0")
WHO, WHAT = ["Tom", "Lily", "Ben", "Anna"], ["ball", "dog", "hat"]


def chat(i, more=""):
    talk = [{"role": "user", "content": f"Who is {WHO[i % 4]}?"}, {"role": "assistant", "content": f"{WHO[i % 4]} likes the {WHAT[i % 3]}.{more}"}]
    return json.dumps({"messages": talk}) + "\n"


CHATS = "".join(chat(i) for i in range(40))
PAIRS = "".join(json.dumps({"prompt": f"Once upon a time {i}", "chosen": ", there was a dog.", "rejected": " 7 7 7"}) + "\n" for i in range(40))
STORY = "".join(f"Lily saw {i} red birds in the tree, and she was very happy.\n\n" for i in range(60))
for name, text in (("chats.jsonl", CHATS), ("pairs.jsonl", PAIRS), ("story.txt", STORY)):
    put(name, text.encode())
ADAPTER = ["-m", "builtin:chat", "--lora", "chats.jsonl"]


def train(*args, code=0, has="", said="", before=None):
    """Runs llm-train in the folder of the test; returns what it wrote to standard output and to standard error.
    has: words of standard error; said: words of standard output."""
    r = subprocess.run([TRAIN, *args], capture_output=True, stdin=subprocess.DEVNULL, cwd=TMP.name, env=ENV, check=False, timeout=600, preexec_fn=before)
    out, err = r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace")
    what = " ".join(map(str, args))
    check(r.returncode == code, f"{what}: exit code {r.returncode}, not {code}", out + err)
    check(has in err, f"{what}: no '{has}'", err)
    check(said in out, f"{what}: no '{said}'", out)
    return out, err


def limited(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def start(*args):
    return subprocess.Popen([TRAIN, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=TMP.name, env=ENV)


def read(name):
    with open(path(name), "rb") as f:
        return f.read()


def there(name):
    return os.path.exists(path(name))


def temporary():
    return [f for f in os.listdir(TMP.name) if ".tmp-" in f]


def says(*args):
    r = subprocess.run([CLI, *args], capture_output=True, stdin=subprocess.DEVNULL, cwd=TMP.name, check=False, timeout=600)
    check(r.returncode == 0, f"llm-cli {args}", r.stderr)
    return r.stdout.decode()


def no_number(text):
    raise ValueError(f"{text} is no JSON")


def log(name):
    """The lines of a log: there is one for each step, and all numbers are finite."""
    with open(path(name), encoding="utf-8") as f:
        lines = [json.loads(line, parse_constant=no_number) for line in f]
    check([line["step"] for line in lines] == list(range(1, len(lines) + 1)), f"{name}: steps", lines)
    for line in lines:
        check(all(isinstance(x, (int, float)) and math.isfinite(x) for x in line.values()), f"{name}: numbers", line)
        check({"step", "tokens", "epoch", "loss", "rate", "norm", "seconds", "tokens_per_second"} <= set(line), f"{name}: members", line)
    return lines


def drawn(name):
    try:
        svg_check.check(path(name))
    except (svg_check.Problem, svg_check.ET.ParseError) as e:
        check(False, f"{name}: {e}")


# --- what it does -----------------------------------------------------------------------------------------------------------


def learns():
    """An adapter, a model, preferences, a teacher; plans, logs, charts and samples; the same bytes for any number of threads."""
    style = [*ADAPTER, "-lr", "4e-3", "--epochs", "6"]
    out, err = train(*style, "-o", "style.gguf", "--log", "style.jsonl", "--svg", "style.svg", "--sample", "Who is Ben?", "--sample-tokens", "9", "-t", "2",
                     said="sample     Who is Ben?\n Ben likes the ", has="wrote style.gguf")
    lines = log("style.jsonl")
    check(len(lines) == 29 and "step 29/29" in out and lines[-1]["loss"] < 0.2 * lines[0]["loss"] and "valid_loss" in lines[-1], "an adapter", out)
    check(lines[-1]["tokens"] > lines[0]["tokens"] > 0 and "accuracy" not in lines[0], "the log of an adapter", lines)
    drawn("style.svg")
    check("likes the" in says("-m", "builtin:chat", "--lora", "style.gguf", "-cnv", "-st", "-p", "Who is Ben?", "-n", "9", "--temp", "0"), "llm-cli --lora")
    check("likes the" not in says("-m", "builtin:chat", "-cnv", "-st", "-p", "Who is Ben?", "-n", "9", "--temp", "0"), "llm-cli without --lora")
    for threads in ("1", "3"):
        out, err = train(*style, "-o", "other.gguf", "-t", threads, "-q")
        check(out == err == "" and read("other.gguf") == read("style.gguf"), f"-t {threads} -q", out + err)

    put("model.gguf", open(MODEL, "rb").read())
    whole = ["-m", "model.gguf", "chats.jsonl", "-lr", "1e-3", "--steps", "6"]
    train(*whole, "-o", "whole.gguf", "--log", "whole.jsonl", said="weights; with gradients")
    check(log("whole.jsonl")[-1]["loss"] < 0.5 * log("whole.jsonl")[0]["loss"], "a model")
    check(len(read("whole.gguf")) == len(read("model.gguf")) != 0 and read("whole.gguf") != read("model.gguf"), "the size of a model")
    out, _ = train(*whole, "-o", "bits.gguf", "--optimizer-bits", "8", "--log", "bits.jsonl")
    check(re.search(r"remembers 1[12]\.\d MB\n", out), "--optimizer-bits 8", out)
    check(abs(log("bits.jsonl")[-1]["loss"] - log("whole.jsonl")[-1]["loss"]) < 0.05, "8 bits learn otherwise")
    train(*whole, "-o", "whole32.gguf", "--f32", "-t", "1")
    check(len(read("whole32.gguf")) > 2 * len(read("whole.gguf")), "--f32")
    train(*whole, "-o", "other.gguf", "-t", "3")
    check(read("whole.gguf") == read("other.gguf"), "a model by 3 threads")
    says("-m", "whole.gguf", "-p", "Once", "-n", "4")

    out, _ = train("-m", "builtin:stories", "--lora", "pairs.jsonl", "-lr", "2e-3", "--steps", "6", "-o", "better.gguf", "--log", "better.jsonl", said="38 pairs")
    lines = log("better.jsonl")
    check(lines[0]["accuracy"] == 0 and lines[-1]["accuracy"] == 1 and "right 100 %" in out, "preferences", lines)
    train("-m", "whole.gguf", "chats.jsonl", "--teacher", "builtin:chat", "-lr", "1e-3", "--steps", "8", "--log", "taught.jsonl", "-o", "taught.gguf")
    lines = log("taught.jsonl")
    check(lines[-1]["valid_loss"] < lines[0]["valid_loss"], "a teacher", lines)
    recorded()
    lengths()
    train("-m", "builtin:stories", "--lora", "story.txt", "--separator", "\n\n", "-c", "64", "-b", "512", "--steps", "2", "-o", "text.gguf", said="from       text: 57 sequences")
    train("-m", "builtin:stories", "--adapter", "text.gguf", "story.txt", "-c", "64", "-b", "512", "--steps", "2", "-o", "text2.gguf", said="tensors of the adapter")

    more = ["add-tokens", "builtin:stories", "--special", "<|user|>", "--special", "<|end|>"]
    out, _ = train(*more, "-o", "more.gguf", has="wrote more.gguf")
    check(out == '  2048  "<|user|>"\n  2049  "<|end|>"\n', "add-tokens", out)
    train("-m", "more.gguf", "story.txt", "-c", "64", "-b", "512", "--steps", "1", "-o", "text3.gguf")

    before = sorted(os.listdir(TMP.name))
    out, _ = train(*ADAPTER, "--plan", said="learns     186880 numbers of 70 tensors of the adapter")
    check("step 1" not in out and sorted(os.listdir(TMP.name)) == before, "--plan", out)
    train(*ADAPTER, "--plan", "-q", said="learns  ")
    out, _ = train(*ADAPTER, "--minutes", "0.02", "-o", "timed.gguf", "--svg", "timed.svg")
    check(re.search(r"\nstep \d+/\d+ [^\n]*tokens/s\n$", out), "--minutes", out)
    drawn("timed.svg")
    check(not temporary() and not [f for f in os.listdir(TMP.name) if f.endswith(".train")], "files are left", os.listdir(TMP.name))


def lengths():
    """An adapter with magnitudes (DoRA) begins as one without: it changes nothing; then it learns, goes on, and is used."""
    sized = [*ADAPTER, "--dora", "--rank", "8", "-lr", "4e-3", "--epochs", "6"]
    train(*sized, "-o", "sized.gguf", "--log", "sized.jsonl", "-t", "2", said=" numbers of 105 tensors of the adapter")
    lines = log("sized.jsonl")
    check(lines[0]["loss"] == log("style.jsonl")[0]["loss"] and lines[-1]["loss"] < 0.6 * lines[0]["loss"], "magnitudes", lines)
    train(*sized, "-o", "other.gguf", "-t", "1", "-q")
    check(read("other.gguf") == read("sized.gguf"), "magnitudes by one thread")
    train("-m", "builtin:chat", "--adapter", "sized.gguf", "chats.jsonl", "--steps", "2", "-o", "sized2.gguf", "--log", "sized2.jsonl", said="105 tensors of the adapter")
    check(log("sized2.jsonl")[0]["loss"] < lines[0]["loss"] and len(read("sized2.gguf")) == len(read("sized.gguf")), "magnitudes go on", log("sized2.jsonl"))
    ways = [says("-m", "builtin:chat", "--lora", f"sized.gguf:{scale}", "-cnv", "-st", "-p", "Who is Ben?", "-n", "9", "--temp", "0") for scale in (1, 0)]
    check("likes the" in ways[0] and "likes the" not in ways[1], "llm-cli --lora with magnitudes", ways)


def recorded():
    """What a teacher says is written once, and teaches without the teacher: all of its tokens as the teacher itself, the likeliest ones nearly so."""
    taught = ["-m", "whole.gguf", "chats.jsonl", "-lr", "1e-3", "--steps", "8", "--teacher-temp", "1.5"]
    train(*taught, "--teacher", "builtin:chat", "--log", "live.jsonl", "-o", "x.gguf")
    out, _ = train(*taught, "--teacher", "builtin:chat", "--record", "all.probs", "--record-top", "100000", "--log", "all.jsonl", "-o", "y.gguf",
                   has="what the teacher says is in all.probs")
    _, err = train("-m", "whole.gguf", "chats.jsonl", "--teacher", "builtin:chat", "--record", "some.probs", "--teacher-temp", "1.5", has="what the teacher says is in some.probs")
    check("step" not in err and read("some.probs") and len(read("some.probs")) < len(read("all.probs")) / 10, "--record alone", err)
    train(*taught, "--teacher", "some.probs", "--log", "some.jsonl", "-o", "z.gguf")
    live, whole, some = (log(name) for name in ("live.jsonl", "all.jsonl", "some.jsonl"))
    for k in (0, 7):
        check(abs(live[k]["loss"] - whole[k]["loss"]) < 5e-3 * live[k]["loss"], "a teacher that was recorded", (live[k], whole[k]))
    check(some[7]["valid_loss"] < 0.75 * some[0]["valid_loss"], "a teacher of 32 tokens", some)
    # it goes on with the file, also after an interruption, and does not write it again
    was = os.stat(path("all.probs")).st_mtime_ns
    train(*taught, "--teacher", "builtin:chat", "--record", "all.probs", "-o", "w.gguf")
    check(os.stat(path("all.probs")).st_mtime_ns == was and read("w.gguf") == read("y.gguf"), "a file that is there")
    # what cannot be
    train(*taught, "--record", "n.probs", "-o", "n.gguf", code=2, has="--record writes what a teacher says: it needs --teacher")
    train(*taught[:1], "whole.gguf", "story.txt", "--teacher", "some.probs", "--teacher-temp", "1.5", "-o", "n.gguf", code=1, has="some.probs has no probabilities of a sequence of")
    train("-m", "whole.gguf", "story.txt", "--teacher", "builtin:chat", "--record", "some.probs", "--teacher-temp", "1.5", "-o", "n.gguf", code=1, has="record another file, or remove this one")
    train("-m", "builtin:stories", "story.txt", "--teacher", "some.probs", "-o", "n.gguf", code=2, has="some.probs has the probabilities of other tokens than the model's")
    train(*taught, "--teacher", "some.probs", "--record", "n.probs", "-o", "n.gguf", code=2, has="the teacher some.probs is recorded already")
    train(*taught, "--teacher", "whole.gguf", "--record", "all.probs", "-o", "n.gguf", code=2, has="all.probs has what another teacher says")
    train(*taught, "--teacher", "builtin:chat", "--record", "all.probs", "--record-top", "4", "-o", "n.gguf", code=2, has="tokens after each, not 4")
    train(*taught[:-1], "2", "--teacher", "all.probs", "-o", "n.gguf", code=2, has="all.probs has probabilities at the temperature 1.5, and teacher_temp (--teacher-temp) is 2")
    put("more.jsonl", (CHATS + chat(3, " Yes.")).encode())
    train("-m", "whole.gguf", "more.jsonl", *taught[3:], "--teacher", "all.probs", "-o", "n.gguf", code=1, has="all.probs has no probabilities of a sequence of")
    good = read("some.probs")
    for cut in (40, len(good) // 2, len(good) - 1):
        put("cut.probs", good[:cut])
        train(*taught, "--teacher", "cut.probs", "-o", "n.gguf", code=1, has="cut.probs: ")
    numbers = random.Random(int(os.environ.get("GGL_TEST_SEED") or 1))
    for _ in range(30):   # whatever the bytes are, it says what is wrong, or learns
        bad = bytearray(good)
        for _ in range(numbers.randrange(1, 4)):
            bad[numbers.randrange(len(bad) if numbers.random() < 0.5 else 3000)] = numbers.randrange(256)
        put("bad.probs", bytes(bad))
        r = subprocess.run([TRAIN, *taught[:5], "2e-3", "--steps", "2", "--teacher", "bad.probs", "-o", "n.gguf", "-q"], capture_output=True, cwd=TMP.name, env=ENV, check=False, timeout=600)
        check(r.returncode in (0, 1, 2), "a damaged file", r.stderr)
    check(not temporary() and not there("n.probs"), "files are left", os.listdir(TMP.name))


def vectors(model, texts, *more):
    """Those that llm-embed makes."""
    put("lines.txt", "".join(t + "\n" for t in texts).encode())
    out = subprocess.run([os.path.join(os.path.dirname(TRAIN), "llm-embed"), "-m", model, "-f", "lines.txt", "-o", "v.npy", "-q", *more], capture_output=True,
                         cwd=TMP.name, env=ENV, check=False, timeout=600)
    check(out.returncode == 0, "llm-embed", out.stderr)
    return encoder_file.read_npy(path("v.npy"))[2]


def scores(model, query, texts):
    """Those that llm-embed gives: how well each text answers the query."""
    put("lines.txt", "".join(t + "\n" for t in texts).encode())
    out = subprocess.run([os.path.join(os.path.dirname(TRAIN), "llm-embed"), "-m", model, "-f", "lines.txt", "--rerank", query, "-o", "s.jsonl", "-q"],
                         capture_output=True, cwd=TMP.name, env=ENV, check=False, timeout=600)
    check(out.returncode == 0, "llm-embed --rerank", out.stderr)
    return {row["index"]: row["score"] for row in map(json.loads, read("s.jsonl").decode().splitlines())}


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def nearest(model, asked, told, *more):
    """Of how many texts the one that belongs to it is the nearest."""
    a, b = vectors(model, asked, *more), vectors(model, told, *more)
    return sum(max(range(len(b)), key=lambda k: dot(a[i], b[k])) == i for i in range(len(a)))


def belongs():
    """Texts that belong together, by an embedding model, an adapter of it, and a reranker. The loss is that of the vectors that llm-embed makes."""
    words = [w for w in encoder_file.WORDS if len(w) > 3][:12]
    n = len(words)
    asked, told = ["a " + w for w in words], [f"the {words[(i + 5) % n]} is in the {words[(i * 7 + 3) % n]}" for i in range(n)]
    rows = [{"query": a, "positive": b} for a, b in zip(asked, told)]
    put("together.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    put("ranks.jsonl", "".join(json.dumps({**row, "negative": told[(i + 1) % n], "neg": [told[(i + 4) % n]]}) + "\n" for i, row in enumerate(rows)).encode())
    put("scores.jsonl", "".join(json.dumps({"sentence1": a, "sentence2": told[k], "score": float(i == k)}) + "\n"
                                for i, a in enumerate(asked) for k in (i, (i + 1) % n)).encode())
    keys = [("sentence_transformers.prompt.query", "string", "old "), ("sentence_transformers.prompt.document", "string", "red ")]
    encoder_file.encoder(path("e.gguf"), keys=keys)
    encoder_file.encoder(path("plain.gguf"))
    encoder_file.encoder(path("r.gguf"), 2, ["LABEL_0"])

    # the loss, by other programs
    base = ["-m", "e.gguf", "together.jsonl", "--valid", "together.jsonl"]
    out, _ = train(*base, "--steps", "1", "-o", "x.gguf", "--sample", "a", code=2, has="llm-train: --sample is for what goes on with texts: this makes vectors")
    check("step " not in out and not there("x.gguf"), "a sample of vectors", out)
    train(*base, "--steps", "1", "-lr", "1e-12", "--contrast-temp", "0.2", "-o", "x.gguf", "--log", "x.jsonl", said=f"from       matches: {n} groups")
    a, b = vectors("plain.gguf", ["old " + t for t in asked]), vectors("plain.gguf", ["red " + t for t in told])
    like = [[dot(x, y) / 0.2 for y in b] for x in a]
    want = sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(like)) / n
    got = log("x.jsonl")[0]
    check(abs(got["valid_loss"] - want) < 1e-4 and abs(got["loss"] - want) < 1e-4, "the loss of vectors", (got, want))
    check(abs(got["accuracy"] - sum(max(row) == row[i] for i, row in enumerate(like)) / n) < 1e-6, "what is right", got)

    # a model, an adapter, cut vectors; the same bytes by other threads
    steps = ["--steps", "60", "-lr", "3e-3"]
    plain = ["-m", "plain.gguf", "together.jsonl", "--no-valid"]
    before = nearest("plain.gguf", asked, told)
    train(*plain, *steps, "-o", "learned.gguf", said="right 100 %")
    check(before < n // 2 and nearest("learned.gguf", asked, told) == n, "an embedding model", before)
    train(*plain, *steps, "-t", "3", "-ub", "512", "-o", "again.gguf", "-q")
    check(read("again.gguf") == read("learned.gguf"), "an embedding model by 3 threads")
    train(*plain, "--steps", "60", "-lr", "1e-2", "--lora", "-o", "lora.gguf")
    check(nearest("plain.gguf", asked, told, "--lora", "lora.gguf") == n, "an adapter of an embedding model")
    train(*plain, *steps, "--dims", "8", "--dims", "32", "-o", "cut.gguf")
    check(nearest("cut.gguf", asked, told, "--dimensions", "8") == n, "cut vectors")
    # a step is compared whole, whatever its parts
    train(*plain, "--steps", "4", "-o", "whole.gguf", "--log", "whole.jsonl", "-lr", "3e-3")
    train(*plain, "--steps", "4", "--parts", "12", "-o", "parts.gguf", "--log", "parts.jsonl", "-lr", "3e-3")
    for a, b in zip(log("whole.jsonl"), log("parts.jsonl")):
        check(abs(a["loss"] - b["loss"]) < 1e-4 * a["loss"] and abs(a["norm"] - b["norm"]) < 1e-3 * a["norm"], "parts of a step", (a, b))
    # no step has a query alone
    train("-m", "plain.gguf", "together.jsonl", "--no-valid", "--sequences", "11", "--steps", "2", "-o", "x.gguf", "--log", "x.jsonl", said="step 2/2")
    check(all(line["norm"] > 0 for line in log("x.jsonl")), "a query alone", log("x.jsonl"))
    # columns that others have in such files
    put("columns.jsonl", (json.dumps({"query": "a cat", "pos": ["the dog"], "neg": ["the fox"], "pos_scores": [0.9], "neg_scores": [0.1], "negative_id": "doc17"}) + "\n").encode())
    train("-m", "plain.gguf", "columns.jsonl", "--plan", said="from       matches: 1 group, ")
    # another list of dimensions is another training
    run = start("-m", "plain.gguf", "together.jsonl", "--no-valid", "--steps", "100000", "--dims", "8", "-o", "dims.gguf")
    wait_for(run, "step 1/100000 ")
    end(run, signal.SIGINT, 130)
    train("-m", "plain.gguf", "together.jsonl", "--no-valid", "--steps", "100000", "-o", "dims.gguf", "--resume", code=1, has="this training began with dim 1 (--dims) = 8, and now there is none")
    os.remove(path("dims.gguf.train"))
    train("-m", "plain.gguf", "scores.jsonl", "--no-valid", *steps, "-o", "scored.gguf", said=f"from       scores: {2 * n} pairs")
    a, b = vectors("scored.gguf", asked), vectors("scored.gguf", told)
    check(min(dot(a[i], b[i]) for i in range(n)) > max(dot(a[i], b[(i + 1) % n]) for i in range(n)), "the order of scores")
    # a model of texts becomes one of vectors
    train("-m", "builtin:stories", "together.jsonl", "--pooling", "last", "--steps", "2", "-o", "story.gguf", said="matches")
    # rerankers: the loss is that of the scores that llm-embed gives
    train("-m", "r.gguf", "ranks.jsonl", "--valid", "ranks.jsonl", "--steps", "1", "-lr", "1e-12", "-o", "x.gguf", "--log", "x.jsonl")
    seen = [scores("r.gguf", asked[i], [told[(i + k) % n] for k in (0, 1, 4)]) for i in range(n)]
    want = sum(math.log(sum(map(math.exp, row.values()))) - row[0] for row in seen) / n
    check(abs(log("x.jsonl")[0]["valid_loss"] - want) < 1e-4 * want, "the loss of scores", (log("x.jsonl")[0], want))
    for data in ("ranks.jsonl", "scores.jsonl"):
        train("-m", "r.gguf", data, "--no-valid", *steps, "-o", "ranks.gguf")
        right = 0
        for i in range(n):
            got = scores("ranks.gguf", asked[i], [told[i], told[(i + 1) % n]])
            right += got[0] > got[1]
        check(right == n, "a reranker of " + data, right)
    # what is of no use
    train("-m", "plain.gguf", "together.jsonl", "--no-valid", "--steps", "60", "-lr", "100", "-o", "y.gguf", has="is no better than that of guessing")
    put("one.jsonl", (json.dumps({"query": asked[0], "positive": told[0]}) + "\n").encode())
    put("same.jsonl", "".join(json.dumps({"query": "a", "positive": "b"}) + "\n" for _ in range(n)).encode())
    train("-m", "plain.gguf", "same.jsonl", "--no-valid", "--steps", "1", "-o", "y.gguf", has="the first step learned nothing")
    # what cannot be
    for args, words in (
        (["-m", "plain.gguf", "together.jsonl", "--valid", "scores.jsonl"], "scores.jsonl: what it learns is measured by the same kind of data"),
        (["-m", "plain.gguf", "together.jsonl", "--sequences", "1", "--valid-share", "0.5"], "there is nothing to compare with"),
        (["-m", "plain.gguf", "one.jsonl"], "in one.jsonl: there is nothing to compare with"),
        (["-m", "plain.gguf", "story.txt"], "the model gives no logits, so it learns nothing from texts and conversations"),
        (["-m", "builtin:stories", "together.jsonl", "--teacher", "builtin:chat"], "these have a loss of their own, and no teacher"),
        (["-m", "plain.gguf", "chats.jsonl"], "a conversation needs a chat template"),
    ):
        train(*args, "-o", "y.gguf", code=1 + any(a in args for a in ("--teacher", "--valid", "--sequences", "one.jsonl")), has=words)
    train(*base, "--dims", "x", "-o", "y.gguf", code=2, has="--dims x: a number of dimensions is needed")


def guesses():
    """A layer that guesses ahead is added to a model, and learns; the text is the same with it. What cannot be."""
    arch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/ahead.arch")
    new = ["new", arch, "--from", "builtin:stories", "-o", "ahead.gguf"]
    sizes = ["--set", ".block_count=6", "--set", ".nextn_predict_layers=1"]
    train(*new, *sizes, has="wrote ahead.gguf")
    train(*new, *sizes, "--tokenizer", "builtin:stories", code=2, has="--from MODEL has its tokenizer")
    train("new", "llama", "--from", "builtin:stories", "-o", "x.gguf", code=2, has="nothing is to be added")
    learn = ["-m", "ahead.gguf", "--draft", "story.txt", "--separator", "\n\n", "-c", "64", "-b", "256", "--steps", "40", "-lr", "1e-2", "--optimizer", "muon"]
    out, _ = train(*learn, "-o", "out.gguf", "--log", "draft.jsonl", said="of 12 weights")
    lines = log("draft.jsonl")
    measured = [line["valid_accuracy"] for line in lines if "valid_accuracy" in line]
    check(measured[-1] > measured[0] + 0.3 and "accuracy" not in lines[0] and f"({100 * measured[-1]:.0f} %)" in out, "guesses that are right", measured)
    for threads in ("1", "3"):
        train(*learn, "-o", "other.gguf", "-t", threads, "-q")
        check(read("other.gguf") == read("out.gguf"), f"a layer that guesses, by {threads} threads")
    # the text is that of the model, and guesses are used
    for temp in ("0", "0.9"):
        args = ["-p", "Lily saw 7 red birds in the tree", "-n", "40", "--temp", temp, "--seed", "5", "--ignore-eos"]
        plain = says("-m", "builtin:stories", *args)
        check(says("-m", "out.gguf", *args) == plain, "the model is another one")
        r = subprocess.run([CLI, "-m", "out.gguf", *args, "--draft", "--draft-p-min", "0", "--guess-always"], capture_output=True, stdin=subprocess.DEVNULL, cwd=TMP.name, env=ENV, check=False)
        right = re.search(rb"guesses +(\d+) tokens +(\d+) right", r.stderr)
        check(r.stdout.decode() == plain and right and int(right[1]) > 20, "the text with guesses", r.stdout + r.stderr)
    # it goes on with the same bytes
    run = start(*learn, "-o", "half.gguf", "--save-every", "3")
    wait_for(run, "step 3/40")
    end(run, signal.SIGINT, 130, -signal.SIGINT, 0)
    train(*learn, "-o", "half.gguf", "--save-every", "3", "--resume")
    check(read("half.gguf") == read("out.gguf"), "a layer that guesses goes on with other bytes")
    # parts, chains of other lengths, the text itself, conversations
    train(*learn[:-6], "--steps", "2", "--parts", "2", "--draft-depth", "3", "--teacher-share", "0.5", "-o", "y.gguf", said="step 2/2")
    # a model that guesses for another one
    eagle = ["block_count=1", "embedding_length=128", "feed_forward_length=64", "attention.head_count=4", "attention.layer_norm_rms_epsilon=1e-5",
             "context_length=512", "target_layers=[1,3,5]", "target_hidden_size=128"]
    new = ["new", "eagle3", "--tokenizer", "builtin:stories", "-o", "eagle.gguf", *[a for key in eagle for a in ("--set", "." + key)]]
    train(*new)  # it scores by the model's output, which is not in its file, and stays as it is
    check(b"target:" not in read("eagle.gguf"), "a new draft's file has tensors of the model")
    train("-m", "builtin:stories", "-md", "eagle.gguf", *learn[3:-6], "--steps", "2", "-o", "learned.gguf", said="of 13 weights")
    train(*new, "--with", "output.weight")
    other = ["-m", "builtin:stories", "-md", "eagle.gguf", *learn[3:]]
    train(*other, "-o", "learned.gguf", "--log", "eagle.jsonl", said="of 14 weights")
    lines = log("eagle.jsonl")
    check(lines[-1]["valid_loss"] < 0.8 * lines[0]["loss"] and lines[-1]["valid_accuracy"] > 0.2, "a model that guesses for another one", lines)
    r = subprocess.run([CLI, "-m", "builtin:stories", *args, "--draft", "learned.gguf", "--draft-p-min", "0", "--guess-always"], capture_output=True, stdin=subprocess.DEVNULL, cwd=TMP.name, env=ENV, check=False)
    check(r.stdout.decode() == plain and b" right" in r.stderr, "the text with guesses of another model", r.stdout + r.stderr)
    for args, words in (
        (["-m", "builtin:stories", "-md", "ahead.gguf", "story.txt"], "does not guess for another one"),
        (["-m", "builtin:stories", "--draft", "story.txt"], "no layers that guess"),
        (["-m", "ahead.gguf", "--draft", "--lora", "story.txt"], "not with --lora"),
        (["-m", "ahead.gguf", "--draft", "--teacher", "builtin:stories", "story.txt"], "not with --lora, --adapter or --teacher"),
        (["-m", "ahead.gguf", "--draft-depth", "2", "story.txt"], "it needs --draft"),
        (["-m", "ahead.gguf", "--draft", "--draft-depth", "17", "story.txt"], "--draft-depth"),
        (["-m", "ahead.gguf", "--draft", "pairs.jsonl"], "layers that guess (draft) learn from texts and conversations"),
        (["-m", "ahead.gguf", "--draft", "--learn", "token_embd*", "story.txt"], "fits the name of no weight that can learn"),
    ):
        train(*args, "-o", "z.gguf", code=1 + (not re.search("no layers|fits|another one", words)), has=words)
    check(not there("z.gguf"), "a mistake writes a file")


def shown():
    """What it prints to a pipe and on terminals; charts of few steps, of many, and with any title."""
    args = [*ADAPTER, "-o", "a.gguf", "-lr", "4e-3", "--sample", "Who is Ben?"]
    out, err = train(*args)
    check("\r" not in out + err and "\x1b" not in out + err and "training" not in err, "in a pipe", out, err)
    lines = out.splitlines()
    steps = [line for line in lines if line.startswith("step ")]
    check(len(steps) == 15 and all(re.fullmatch(r"step \d+/15  epoch [\d.]+  loss [\d.]+  valid [\d.]+  rate \S+  norm [\d.]+  \d+ tokens/s(  .* left)?", s) for s in steps),
          "steps in a pipe", steps)
    for columns in (80, 50):
        code, seen = terminals.run(TRAIN, *args, env=ENV, cwd=TMP.name, columns=columns)
        check(code == 0, "on a terminal", seen)
        check(re.search(r"\rtraining \d+ %, \d+ of 15 steps", seen), "no progress on a terminal", seen)
        rows = re.sub(r"\r[^\r\n]*\x1b\[K|\x1b\[K", "", seen.replace("\r\n", "\n")).replace("\r", "").splitlines()
        check(max(map(len, rows)) <= columns, f"a line is wider than {columns} columns", max(rows, key=len))
        check(not any("training" in row for row in rows), "progress stays", rows)
        parts = [row[5:].split("  ") for a, row in zip(rows, rows[1:]) if row.startswith("     ") and (a.startswith("step ") or a.startswith("     "))
                 and not row.startswith(" " * 6)]
        field = r"(epoch|loss|valid|rate|norm) [-+e.\d]+|\d+ tokens/s|\d+ s left"
        check(len(parts) > 10 and all(re.fullmatch(field, p) for part in parts for p in part), "steps are broken where they should not be", parts)
        check(any(row.startswith(" " * 11) for row in rows), "facts are not broken", rows)
    # one of a thing
    put("one.jsonl", chat(1).encode())
    out, _ = train("-m", "builtin:chat", "--lora", "one.jsonl", "-o", "a.gguf", "--matrix", "blk.0.attn_q.weight", "--valid", "one.jsonl", "--steps", "1")
    check(re.search(r"from       answers: 1 sequence, \d+ tokens, of which \d+ count\nmeasures   1 sequence, \d+ tokens\n", out), "one sequence", out)
    # long errors are broken at spaces, but not what is quoted, and not in a pipe
    for columns in (80, 60):
        code, seen = terminals.run(TRAIN, *args, "--adapter", "b.gguf", "--chat-template", "no such template", env=ENV, cwd=TMP.name, columns=columns)
        rows = seen.splitlines()
        check(code == 2 and len(rows) > 1 and max(map(len, rows)) <= columns and all(row.startswith("    ") for row in rows[1:]), "an error is not broken", seen)
        check(" ".join(row.strip() for row in rows) == train(*args, "--adapter", "b.gguf", code=2)[1].strip(), "an error on a terminal", seen)
    for columns in range(60, 90):
        seen = terminals.run(TRAIN, *ADAPTER, "-o", "no such folder of mine/a.gguf", "--schedule", "a word with spaces", env=ENV, cwd=TMP.name, columns=columns)[1]
        check("'a word with spaces'" in seen, f"what is quoted is broken at {columns} columns", seen)
    for columns in range(40, 60):
        seen = terminals.run(TRAIN, *ADAPTER, "-o", "no such folder of mine/a.gguf", env=ENV, cwd=TMP.name, columns=columns)[1]
        check("no such folder of mine/a.gguf:" in seen, f"a path is broken at {columns} columns", seen)
    # a model with fewer positions than samples usually have tokens
    sizes = ["context_length=64", "embedding_length=16", "attention.head_count=2", "block_count=1", "feed_forward_length=16", "attention.layer_norm_epsilon=1e-5"]
    train("new", "gpt2", "--tokenizer", "builtin:stories", "-o", "gpt2.gguf", "--set", "general.note=mine", "--init", "*norm*.weight=1", *[a for key in sizes for a in ("--set", "." + key)])
    out, err = train("-m", "gpt2.gguf", "story.txt", "-o", "a.gguf", "-c", "32", "--steps", "1", "--sample", "Lily", "--sample-tokens", "9", said="sample     Lily\n")
    check("warning" not in err, "a sample of a model with few positions", err)
    # a tokenizer that has bytes and nothing else, and a model without a length of its context
    own = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    letters = [chr(b) for b in own] + [chr(256 + i) for i in range(256 - len(own))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    put("bytes.json", json.dumps({"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
                                  "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(letters)}, "merges": []}}).encode())
    sizes = ["embedding_length=16", "attention.head_count=2", "block_count=1", "feed_forward_length=16", "attention.layer_norm_rms_epsilon=1e-5"]
    train("new", "llama", "--tokenizer", "bytes.json", "-o", "bytes.gguf", *[a for key in sizes for a in ("--set", "." + key)], has="--set .context_length=N")
    # a model of a user's own descriptor, which the command that is printed needs, too; its gate is a single number, which is compared once
    put("own.arch", b"arch zebra\nlanguage 2\ntoken_embd [.embedding_length, n_vocab]\ngate [1]\nlogits = linear(token_embd[token] * gate, token_embd)\n")
    train("new", "own.arch", "--tokenizer", "bytes.json", "-o", "own.gguf", "--set", ".embedding_length=16", has="`llm-train -m 'own.gguf' --arch 'own.arch' FILE.. -o OUT` lets it learn")
    train("-m", "own.gguf", "--arch", "own.arch", "story.txt", "-o", "own2.gguf", "-c", "32", "--steps", "1")
    arch = os.path.join(os.path.dirname(TRAIN), "llm-arch")
    if os.path.exists(arch):
        r = subprocess.run([arch, "verify", "own.gguf", "--arch", "own.arch", "--gradients", "--numbers", "12", "--worst", "20"], capture_output=True, cwd=TMP.name, env=ENV, check=False)
        out = r.stdout.decode()
        check("12 gradients of 2 weights" in out and out.count("gate.weight[0]") == 1 and out.count("token_embd.weight[") == 11, "a number is compared once", out)
    train("-m", "bytes.gguf", "story.txt", "-o", "b.gguf", "-c", "32", "--steps", "1", "--resume", has="the tokenizer has no token that ends texts")
    train("-m", "bytes.gguf", "story.txt", "-o", "c.gguf", "-c", "32", "--steps", "1", "--resume", has="--resume: there is no c.gguf.train")
    code, seen = terminals.run(TRAIN, *args, "-q", env=ENV, cwd=TMP.name)
    check(code == 0 and seen.startswith("sample ") and "\x1b" not in seen, "-q on a terminal", seen)
    # charts
    train(*ADAPTER, "-o", "a.gguf", "--steps", "1", "--no-valid", "--svg", "one.svg")
    drawn("one.svg")
    name = "<a & b> 'ünï' \"q\" " + "long " * 20 + ".gguf"
    train(*ADAPTER, "-o", name, "--steps", "3", "--svg", "title.svg")
    drawn("title.svg")
    put("few.jsonl", "".join(chat(i) for i in range(3)).encode())
    train("-m", "builtin:chat", "--lora", "few.jsonl", "-o", "a.gguf", "--matrix", "blk.0.attn_q.weight", "--rank", "1", "--sequences", "1",
          "--steps", "330", "--svg", "many.svg", "--valid", "few.jsonl", "--valid-every", "100", "-q")
    drawn("many.svg")
    train("-m", "builtin:chat", "chats.jsonl", "-o", "a.gguf", "-lr", "50", "--warmup", "-1", "--max-norm", "-1", "--steps", "400", "--svg", "lost.svg", code=1)
    drawn("lost.svg")


# --- bad days ---------------------------------------------------------------------------------------------------------------


def mistakes():
    """Each is found before a step, and names what is wrong; no file is made or changed. More of them are in docs/mistakes.md, which ./mistakes.py
    makes, and in training_mistakes.c, train_data_wrong.c and contrast.c of ../train."""
    put("cut.gguf", open(MODEL, "rb").read()[:300000])
    put("model.gguf", open(MODEL, "rb").read())
    put("random", random.Random(1).randbytes(5000))
    put("data.train", CHATS.encode())
    put("table.tsv", b"question\tanswer\nWho is Tom?\tA dog.\n")
    put("really.csv", CHATS.encode())
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/archs/llama.arch"), encoding="utf-8") as f:
        arch = f.read().replace("\nignore ", "\nrequire (.expert_gating_func ?? 0) == 0\nzz = (.expert_gating_func * 2) if .block_count > 50 else 1\nignore ", 1)
    put("absent.arch", arch.replace("given(token_embd[token])", "given(token_embd[token]) * zz").encode())
    os.makedirs(path("folder"))
    put("dir.gguf.train/x", b"")
    here = {f: os.path.isfile(path(f)) and read(f) for f in os.listdir(TMP.name)}
    chats, adapter = ["-m", "builtin:chat", "--lora"], [*ADAPTER, "-o", "out.gguf"]
    new = ["new", "llama", "--tokenizer", "builtin:stories", "-o", "out.gguf"]
    sizes = [a for key in ("embedding_length=64", "attention.head_count=4", "block_count=1", "feed_forward_length=64", "attention.layer_norm_rms_epsilon=1e-5")
             for a in ("--set", "." + key)]
    cases = [  # arguments, exit code, words
        ([*adapter, "--bogus"], 2, "unknown flag '--bogus'"),
        ([*adapter, "--leaning-rate", "1"], 2, "did you mean '--learning-rate'"),
        ([*adapter, "-lr", "x"], 2, "-lr: 'x' is not a number"),
        ([*adapter, "-lr", "nan"], 2, "-lr"),
        ([*adapter, "--steps", "5", "--minutes", "1"], 2, "only one can be given"),
        (["-m", "modl.gguf", "chats.jsonl", "-o", "out.gguf"], 1, "modl.gguf"),
        (["-m", "builtin:chatt", "chats.jsonl", "-o", "out.gguf"], 1, "builtin:chat"),
        (["add-token", "builtin:stories", "-o", "out.gguf"], 2, "there is no command 'add-token', and no file of that name; did you mean 'add-tokens'?"),
        (["add-tokens", "builtin:stories", "-o", "out.gguf"], 2, "--special TOKEN is missing"),
        (["add-tokens", "--special", "<a>", "-o", "out.gguf"], 2, "one MODEL is needed"),
        (["add-tokens", "builtin:stories", "--special", "<a>"], 2, "-o OUT is missing"),
        (["add-tokens", "modl.gguf", "--special", "<a>", "-o", "out.gguf"], 1, "modl.gguf: No such file"),
        ([*new, *sizes, "--set", "general.nmae=x"], 2, "no program reads the key general.nmae; did you mean general.name?"),
        ([*new, *sizes, "--set", "tokenizer.ggml.bos_tokn_id=1"], 2, "no program reads the key tokenizer.ggml.bos_tokn_id; did you mean tokenizer.ggml.bos_token_id?"),
        ([*new, *sizes[:4], *sizes[6:], "--set", ".block_count=x"], 2, "'.block_count=x': llama.arch reads a number here, not a text"),
        ([*new, *sizes, "--set", ".rope.scaling.type=5"], 2, "'.rope.scaling.type=5': llama.arch reads a text here, not a number"),
        ([*new, *sizes[:-2]], 2, "the new model lacks a key that llama.arch needs: .attention.layer_norm_rms_epsilon. "),
        ([*new, *sizes, "--set", ".atention.head_count_kv=2"], 2, "reads no key .atention.head_count_kv; did you mean .attention.head_count_kv?"),
        (["new", "absent.arch", *new[2:], *sizes[:4], "--set", ".block_count=60"], 2, "the new model lacks "),  # a key whose 0 says that it is absent
        (["new", "qwen3moe", *new[2:]], 2, "lacks keys that qwen3.arch needs: "),
        (["new", "qwen3mo", *new[2:]], 2, "did you mean 'qwen3moe'?"),
        (["new", "eagle3", "-o", "out.gguf", "--tokenizer", "builtin:stories"], 2, ".target_layers, .target_hidden_size"),
        ([*new, *sizes, "--set", ".pooling_type=9"], 2, "pooling_type is 9 (known are 0 to 4: none, mean, cls, last, rank)"),
        ([*new, *sizes, "--set", "llama.block_count=3"], 2, "'.block_count=1' and 'llama.block_count=3' are the same key: leave one of them out"),
        ([*new, *sizes[:-2], "--set", ".attention.layer_norm_rms_epsilon=0"], 2, "is 0, but more than 0 and at most 0.1 is expected: "),
        (["-m", "builtin:chat", "chats.jsonl", "-o", "out.gguf", "--qat", "q4_9"], 2, "as q4_0, q8_0, q4_k and q6_k are; did you mean 'q4_0'?"),
        (["-m", "builtin:chat", "chats.jsonl", "--learn", "bkl.*", "-o", "out.gguf"], 1, "'bkl.*'"),
        (["-m", "cut.gguf", "chats.jsonl", "-o", "out.gguf"], 1, "cut.gguf: the file is truncated"),
        ([*chats, "random", "-o", "out.gguf"], 1, "random:1: "),
        ([*chats, "folder", "-o", "out.gguf"], 1, "folder"),
        ([*chats, "table.tsv", "-o", "out.gguf"], 1, "pandas.read_table(FILE)"),
        ([*adapter, "--no-valid", "--valid-max", "9"], 2, "--no-valid leaves nothing to measure"),
        ([*adapter, "--valid-max", "-2"], 2, "--valid-max"),
        ([*adapter, "--adapter", "model.gguf"], 2, "only one of the two"),
        (["-m", "builtin:chat", "--adapter", "model.gguf", "chats.jsonl", "-o", "out.gguf"], 1, "model.gguf"),
        # where it would write
        ([*ADAPTER, "-o", "folder"], 1, "is a directory"),
        ([*ADAPTER, "-o", ""], 2, "empty"),
        ([*ADAPTER, "-o", "-"], 2, "write ./- for a file of that name"),
        ([*ADAPTER, "-o", "chats.jsonl"], 2, "chats.jsonl is also the file of FILE"),
        (["-m", "builtin:chat", "data.train", "-o", "data"], 2, "data.train is also the file of FILE"),
        ([*ADAPTER, "-o", "dir.gguf"], 1, "dir.gguf.train: is a directory"),
        ([*adapter, "--svg", "out.gguf"], 2, "are the same file"),
        ([*adapter, "--log", "out.gguf.train"], 2, "are the same file"),
        ([*adapter, "--log", "chats.jsonl"], 2, "is also the file of FILE"),
        ([*adapter, "--log", "none/log"], 1, "none/log"),
        ([*adapter, "--svg", "none/a.svg"], 1, "none/a.svg"),
    ]
    for args, code, words in cases:
        out, err = train(*args, code=code, has=words)
        check("step " not in out and re.match("llm-train( add-tokens| new)?: ", err) and err.count("\n") == 1, f"{args}: more than an error", out + err)
    now = {f: os.path.isfile(path(f)) and read(f) for f in os.listdir(TMP.name)}
    check(now == here, "files were made or changed", sorted(set(now) ^ set(here)))
    train(*chats, "really.csv", "-o", "really.gguf", "--steps", "1")
    train(*ADAPTER, "-o", "valid.gguf", "--steps", "1", "--valid", "story.txt", "--valid-max", "100", has="tokens to measure the loss on, ")
    # what is found out later
    train("-m", "builtin:chat", "chats.jsonl", "-o", "lost.gguf", "-lr", "50", "--warmup", "-1", "--max-norm", "-1", "--steps", "400", "--save-every", "10",
          code=1, has="; lost.gguf has what was learned until the last checkpoint")
    check(there("lost.gguf") and there("lost.gguf.train"), "a training that diverged leaves no checkpoint")
    train(*ADAPTER, "-o", "/dev/full", "--steps", "2", code=1, has="/dev/full: cannot be written: No space left on device")
    train(*ADAPTER, "-o", "/dev/null", "--steps", "2", "--save-every", "1")
    check(not os.path.exists("/dev/null.train") and not os.path.exists("/dev/full.train"), "a device has a state beside it")
    train(*ADAPTER, "-o", "full.gguf", "--steps", "2", "--svg", "/dev/full", code=1, has="/dev/full: cannot be written")
    # a disk without room for a checkpoint: the last one stays, and the training can go on from it
    # many steps, so that it has not ended when the signal comes; and nothing is measured: a measurement that is cancelled is made up for after --resume,
    # and a checkpoint of the same step is then written again
    args = [*ADAPTER, "-o", "room.gguf", "-lr", "4e-3", "--steps", "40", "--no-valid"]
    train(*args)
    whole = read("room.gguf")
    stop = start(*args, "--save-every", "1", "--sample", "Who is Ben?")
    wait_for(stop, "sample ", 2)
    end(stop, signal.SIGINT, 130)
    before = read("room.gguf"), read("room.gguf.train")
    train(*args, "--save-every", "1", "--resume", code=1, has="room.gguf.train: cannot be written: File too large", before=limited(1 << 20))
    # the adapter, which has room, is one step further; the state is the last one that had room
    check(read("room.gguf.train") == before[1] and read("room.gguf") not in (whole, before[0]) and len(read("room.gguf")) == len(whole) and not temporary(),
          "a full disk loses the last checkpoint", os.listdir(TMP.name))
    train(*args, "--resume", has="goes on after step")
    check(read("room.gguf") == whole and not there("room.gguf.train"), "after a full disk it does not go on with the same bytes")
    full_disk(args)


def full_disk(args):
    """A disk that has room for one state, but not for the next one beside it: known before the first step, or found out on the way."""
    os.makedirs(path("disk"))
    disk = args[: args.index("-o") + 1] + ["disk/room.gguf"] + args[args.index("-o") + 2:]
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "none", path("disk")], capture_output=True, check=False).returncode != 0:
        print("note: no small disk can be made here; a limited size of files was tested")
        return
    try:
        out, _ = train(*disk, "--save-every", "1", code=1, has="disk/room.gguf and disk/room.gguf.train would take 5.27 ")
        check("step 1" not in out and not os.listdir(path("disk")), "a disk that is too small", os.listdir(path("disk")))
        # the room goes to others while it learns
        subprocess.run(["mount", "-o", "remount,size=20m", path("disk")], check=True)
        run = start(*disk, "--save-every", "1", "--sample", "Who is Ben?")
        wait_for(run, "sample ", 2) # the state of the step before is there
        run.send_signal(signal.SIGSTOP)
        try:
            with open(path("disk/other"), "wb") as f:
                for _ in range(20 << 8):
                    f.write(bytes(4096))
                    f.flush()
        except OSError:
            pass
        run.send_signal(signal.SIGCONT)
        _, err = run.communicate(timeout=600)
        check(run.returncode == 1 and b"No space left on device" in err, "a full disk", run.returncode, err)
        check("room.gguf" in os.listdir(path("disk")) and not [f for f in os.listdir(path("disk")) if ".tmp-" in f or ".lock" in f], "a full disk", os.listdir(path("disk")))
        os.remove(path("disk/other"))
        check(there("disk/room.gguf.train"), "a full disk loses the state", os.listdir(path("disk")))
        train(*disk, "--resume", "--save-every", "1", has="goes on after step")
        check(read("disk/room.gguf") == read("room.gguf") and os.listdir(path("disk")) == ["room.gguf"], "after a full disk", os.listdir(path("disk")))
    finally:
        subprocess.run(["umount", path("disk")], check=False)


# --- interruptions ----------------------------------------------------------------------------------------------------------


def wait_for(run, words, times=1):
    """Waits until the run has printed so many lines with the words."""
    for line in run.stdout:
        times -= words.encode() in line
        if times == 0:
            return
    check(False, f"it ended before '{words}'", run.stderr.read())


def end(run, number, *codes):
    """Sends a signal, and returns what was printed from then on."""
    run.send_signal(number)
    out, err = (b.decode(errors="replace") for b in run.communicate(timeout=600))
    check(run.returncode in codes, f"signal {number}: exit code {run.returncode}, not {codes}", out + err)
    return out, err


def killed():
    """Killed at random moments, and gone on with: the bytes of one that was not, and no files pile up."""
    seed = int(os.environ.get("GGL_TEST_SEED") or time.time() // 86400)
    print(f"moments are chosen by GGL_TEST_SEED={seed}")
    numbers = random.Random(seed)
    args = [*ADAPTER, "-lr", "4e-3", "--steps", "24", "-t", "1", "-q"]
    train(*args, "-o", "whole.gguf")
    whole, n_killed, n_ended, steps = read("whole.gguf"), 0, 0, set()
    began = time.monotonic()
    train(*args, "-o", "out.gguf", "--save-every", "1")
    takes = time.monotonic() - began
    while n_killed < 20 or there("out.gguf.train"):
        run = start(*args, "-o", "out.gguf", "--save-every", "1", "--resume", "--log", "log")
        try:
            run.communicate(timeout=numbers.uniform(0, takes / 4) if n_killed < 20 else None)
            check(run.returncode == 0, "--resume fails", run.stderr)
            n_ended += 1
            check(read("out.gguf") == whole and not there("out.gguf.train"), "what was killed ends with other bytes", n_killed)
            check(len(log("log")) == 24, "the log of what was killed")
        except subprocess.TimeoutExpired:
            run.kill()
            out, err = run.communicate()
            check(run.returncode in (0, -signal.SIGKILL) and not err, "before it was killed", (run.returncode, err))
            n_killed += 1
        left = temporary()
        check(len(left) <= 2, "temporary files pile up", left)
    if n_ended == 0:
        train(*args, "-o", "out.gguf", "--resume")
        check(read("out.gguf") == whole, "what was killed ends with other bytes")
    check(not temporary(), "temporary files are left", temporary())
    # two at once: the second one is refused, and the first one ends as if it had been alone
    args.remove("-q")
    long = [*args[: args.index("--steps")], *args[args.index("--steps") + 2:], "--steps", "100000", "--save-every", "1"]
    first = start(*long, "-o", "both.gguf")
    wait_for(first, "step 2/100000")
    train(*args, "-o", "both.gguf", "--seed", "7", code=1, has="llm-train: both.gguf is being written by another process, which has the lock both.gguf.lock")
    end(first, signal.SIGINT, 130)
    check(there("both.gguf.train") and not there("both.gguf.lock"), "two at once", os.listdir(TMP.name))
    # a lock that a killed process has left is none
    first = start(*long, "-o", "lock.gguf")
    wait_for(first, "step 2/100000")
    first.kill()
    first.communicate()
    check(there("lock.gguf.lock"), "the lock of a killed process", os.listdir(TMP.name))
    os.remove(path("lock.gguf.train"))
    train(*args, "-o", "lock.gguf")
    check(read("lock.gguf") == whole and not there("lock.gguf.lock"), "after a killed process", os.listdir(TMP.name))


def interrupted():
    """Signals, and what is asked for afterwards."""
    args = [*ADAPTER, "-lr", "4e-3", "--steps", "40", "--valid-every", "1", "-t", "1"]
    train(*args, "-o", "whole.gguf")
    whole = read("whole.gguf")
    out = [*args, "-o", "out.gguf", "--log", "log"]
    run = start(*out)
    wait_for(run, "step 5/40 ")
    _, err = end(run, signal.SIGINT, 130)
    check("interrupted: the same command with --resume goes on from out.gguf.train" in err, "SIGINT", err)
    check(there("out.gguf") and there("out.gguf.train") and not temporary(), "SIGINT leaves", os.listdir(TMP.name))
    steps, state = len(log("log")), read("out.gguf.train")
    check(5 <= steps < 40, "the log at SIGINT", steps)
    # it is not lost
    _, err = train(*out, code=2, has="out.gguf.train is there: an interrupted training has left it. --resume goes on with it")
    check(len(log("log")) == steps and read("out.gguf.train") == state, "a second run loses the first one's log or state")
    train(*out, "--plan", said="learns")
    # with other options, files and models
    changed = [
        (["-lr", "3e-3"], "rate (-lr) = 0.004, and now it is 0.003"), (["--seed", "5"], "seed (-s) = 0, and now it is 5"), (["--rank", "8"], "rank (--rank) = 16, and now it is 8"),
        (["--alpha", "8"], "alpha (--alpha) = 32, and now it is 8"), (["--dora"], "dora (--dora) = 0, and now it is 1"), (["--schedule", "linear"], "schedule (--schedule) = cosine, and now it is linear"),
        (["--steps", "41"], "n_steps (--steps or --epochs) = 40, and now it is 41"), (["-b", "64"], "n_batch (-b) = 2048, and now it is 64"), (["--sequences", "4"], "n_seq (--sequences) = 8, and now it is 4"),
        (["--optimizer-bits", "8"], "optimizer_bits (--optimizer-bits) = 32, and now it is 8"), (["--bf16"], "bf16 (--bf16) = 0, and now it is 1"), (["-ub", "64"], "n_ubatch (-ub) = 512, and now it is 64"), (["--warmup", "9"], "n_warmup (--warmup) = 0, and now it is 9"), (["--decay", "0.1"], "decay (--decay) = 0, and now it is 0.1"),
        (["--max-norm", "2"], "max_norm (--max-norm) = 1, and now it is 2"), (["--beta1", "0.8"], "beta1 (--beta1) = 0"), (["--beta2", "0.99"], "beta2 (--beta2) = 0"), (["--eps", "1e-6"], "eps (--eps) = 0"),
        (["--lr-end", "0.1"], "rate_end (--lr-end) = 0, and now it is 0.1"), (["--no-valid"], "valid_share (--valid-share or --no-valid) = 0, and now it is -1"), (["--valid-share", "0.5"], "valid_share (--valid-share or --no-valid) = 0, and now it is 0.5"),
        (["--valid", "story.txt"], "other texts"), (["-c", "12"], "another context (n_ctx, -c)"), (["--all-tokens"], "choice of what counts"), (["--teacher", "builtin:chat"], "this training began without a teacher"),
        (["--matrix", "*attn_q*"], "other weights"), (["--learn", "*.lora_a"], "other weights"),
    ]
    for more, words in changed:
        command = [a for a in out if more[0] != "--steps" or a not in ("--steps", "40")]
        if more[0] == "-lr":
            command = [a for a in out if a not in ("-lr", "4e-3")]
        _, err = train(*command, *more, "--resume", code=1, has=words)
        check("out.gguf.train: " in err, "the message does not name the file", err)
    train(*[a for a in out if a != "--lora"], "--resume", code=1, has="lora (--lora) = 1, and now it is 0")
    # what the usual rate follows from is named, not the rate
    usual = [a for a in out if a not in ("-lr", "4e-3")]
    train(*usual, "--optimizer", "sgd", "--resume", code=1, has="optimizer (--optimizer) = adamw, and now it is sgd")
    train(*[a for a in usual if a != "--lora"], "--resume", code=1, has="lora (--lora) = 1, and now it is 0")
    train(*out, "--rslora", "--resume", code=1, has="rs (--rslora) = 0, and now it is 1")
    train(*out, "--valid-max", "9", "--resume", code=1, has="valid_max (--valid-max) = 0, and now it is 9")
    with open(os.path.join(os.path.dirname(MODEL), "../archs/llama.arch"), "rb") as f:
        put("own.arch", f.read() + b"# mine\n")
    train(*out, "--arch", "own.arch", "--resume", code=1, has="this training began with another descriptor: it can only go on with the same")
    put("changed.gguf", open(MODEL, "rb").read())
    train("-m", "changed.gguf", "chats.jsonl", "-o", "learned.gguf", "--steps", "1", "-lr", "1e-3")
    train(*[a if a != "builtin:chat" else "learned.gguf" for a in out], "--resume", code=1, has="this training began with another model")
    put("chats.jsonl", (CHATS + chat(1)).encode())
    train(*out, "--resume", code=1, has="this training began with other texts than the files have now")
    put("chats.jsonl", CHATS.encode())
    for cut in (0, 100, len(state) // 2, len(state) - 1):
        put("out.gguf.train", state[:cut])
        train(*out, "--resume", code=1, has="out.gguf.train: ")
        train(*out, "--resume", code=1, has="; no training can go on from it: remove it to begin again")
    put("out.gguf.train", state)
    check(len(log("log")) == steps, "a run that cannot go on loses the log")
    # it goes on with the same bytes
    train(*out, "--resume", "--svg", "out.svg", has=f"goes on after step {steps}\n")
    check(read("out.gguf") == whole and not there("out.gguf.train"), "it goes on with other bytes")
    check(len(log("log")) == 40 and all("valid_loss" in line for line in log("log")), "the log of a training that went on")
    drawn("out.svg")
    # a model copied elsewhere is the same one; other threads, and where it writes, do not matter
    run = start(*out, "-q")
    time.sleep(0.2)
    end(run, signal.SIGTERM, 143, -signal.SIGTERM, 0)
    other = [a if a != "builtin:chat" else "changed.gguf" for a in out]
    other[other.index("-t") + 1] = "2"
    train(*other, "--save-every", "7", "--resume")
    check(read("out.gguf") == whole, "SIGTERM: it goes on with other bytes")
    # at any moment, also before the first step
    numbers = random.Random(int(os.environ.get("GGL_TEST_SEED") or 1))
    for i in range(8):
        run = start(*out, "--resume")
        time.sleep(0.02 * i * numbers.random())
        end(run, signal.SIGINT, 130, -signal.SIGINT, 0)
        check(not temporary(), "SIGINT leaves temporary files", temporary())
    train(*out, "--resume")
    check(read("out.gguf") == whole, "SIGINT at any moment: other bytes")
    # data that is changed while it learns does not matter: it was read before
    run = start(*out)
    wait_for(run, "step 2/40 ")
    put("chats.jsonl", b"x")
    _, err = run.communicate(timeout=600)
    check(run.returncode == 0 and read("out.gguf") == whole, "data that changes while it learns", err)


PARTS = {part.__name__: part for part in (learns, belongs, guesses, shown, mistakes, killed, interrupted)}
PARTS[sys.argv[3]]()
sys.exit(finish())
