#!/usr/bin/env python3
"""llm-train with models whose tokens read something: a small Marian reads texts, builtin:shapes sees, builtin:words hears.

train_reads.py TOOLS    TOOLS: the folder of the programs"""
import json
import math
import os
import shutil
import sys

import marian_folder
from checks import TMP, check, finish, path, put, runner
from encoder_file import read_npy
from marian_folder import PAD

run = runner(sys.argv[1], cwd=TMP.name)
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
PAIRS = [("banana b", "ban a"), ("a b", "b banana"), ("ban", "na"), ("b", "banana ban")]


def lines(*objects):
    return "".join(json.dumps(o) + "\n" for o in objects).encode()


def train(*args, **more):
    return run("llm-train", *args, **more)


def log_of(name):
    with open(path(name), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def loss_in_use(source, target):
    """The mean over the answer's tokens, by what llm-cli says of them."""
    ids = [json.loads(run("llm-tokenize", "-m", "marian.gguf", "--ids", "-p", text)) for text in (source, target)]
    run("llm-cli", "-m", "marian.gguf", "--encode-tokens", ",".join(map(str, ids[0])), "--tokens", ",".join(map(str, [PAD] + ids[1][:-1])), "-n", "0",
        "--logits", "l.npy")
    rows = read_npy(path("l.npy"))[2]
    sums = [max(r) + math.log(sum(math.exp(x - max(r)) for x in r)) - r[token] for r, token in zip(rows, ids[1])]
    return sum(sums), len(sums)


def texts():
    """The loss of the first step is that of use; what was learned is written, and an interruption changes nothing."""
    put("pairs.jsonl", lines(*({"source": s, "target": t} for s, t in PAIRS)))
    train("-m", "marian.gguf", "pairs.jsonl", "-o", "out.gguf", "--steps", "40", "-lr", "0.02", "--log", "log.jsonl", "--no-valid", said="4 sequences")
    log = log_of("log.jsonl")
    parts = [loss_in_use(s, t) for s, t in PAIRS]
    wanted = sum(p[0] for p in parts) / sum(p[1] for p in parts)
    check(abs(log[0]["loss"] - wanted) < 1e-4 * wanted, "another loss than in use", log[0], wanted)
    check(log[-1]["loss"] < 0.3 * log[0]["loss"], "nothing was learned", log[-1])
    said = json.loads(run("llm-cli", "-m", "out.gguf", "-p", "ban", "-n", "8", "--temp", "0", "--json-output"))
    check(said["text"].strip() == "na", "another answer", said)
    # the same in other words, and as one long text, which is cut
    put("other.jsonl", lines({"prompt": "ban", "completion": "na"}, {"input": "ban", "output": "na"}, {"instruction": "ban", "input": "", "output": "na"}))
    train("-m", "marian.gguf", "other.jsonl", "-o", "o.gguf", "--steps", "2", "--no-valid", said="3 sequences")
    put("long.jsonl", lines({"source": "banana " * 100, "target": "na"}))
    train("-m", "marian.gguf", "long.jsonl", "-o", "o.gguf", "--steps", "1", "--no-valid", has="1 longer than the context (line 1) was cut")


def refused():
    put("chats.jsonl", lines({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}))
    put("pref.jsonl", lines({"prompt": "a", "chosen": "b", "rejected": "a"}))
    put("text.txt", b"banana")
    marian = ["-m", "marian.gguf", "-o", "o.gguf"]
    both = "the model reads a text and writes another one"
    train(*marian, "chats.jsonl", code=1, has=f"chats.jsonl:1: {both}")
    train(*marian, "pref.jsonl", code=1, has=f"pref.jsonl:1: {both}")
    train(*marian, "text.txt", code=1, has=f"text.txt: this is a text, but {both}")
    train(*marian, "pairs.jsonl", "--mmproj", "builtin:shapes-eye", code=1, has="has no use for mmproj")
    train("-m", "builtin:shapes", "chats.jsonl", "-o", "o.gguf", "--mmproj-out", "e.gguf", code=2, has="--mmproj FILE, which is missing")
    shapes = ["-m", "builtin:shapes", "--mmproj", "builtin:shapes-eye", "talks.jsonl", "-o", "o.gguf"]
    train(*shapes, code=2, has="weights of the eye or the ear learn: mmproj_out (--mmproj-out FILE)")
    train(*shapes, "--lora", "--mmproj-out", "e.gguf", code=2, has="beside an adapter their file stays as it is")
    train(*shapes, "--lora", "--teacher", "builtin:shapes", code=1, has="talks.jsonl has pictures, sounds or texts that are read besides: a teacher")
    train(*shapes, "--mmproj-out", "o.gguf", code=2, has="o.gguf")
    # nothing can learn where no line has a picture, which is told before
    train("-m", "builtin:shapes", "--mmproj", "builtin:shapes-eye", "chats.jsonl", "-o", "o.gguf", "--lora", "--matrix", "v.blk.*", code=1,
          has="note: no line has a picture or a sound")
    train("-m", "builtin:words", "pairs.jsonl", "-o", "o.gguf", code=1, has='pairs.jsonl:1: the model writes down speech, and learns from lines with "audio"')


def pictures():
    """Paths begin in the folder of the data; both files are written, and are what llm-cli opens."""
    os.makedirs(path("data"), exist_ok=True)
    shutil.copy(os.path.join(EXAMPLES, "shapes.bmp"), path("data/shapes.bmp"))
    talk = {"image": "shapes.bmp", "conversations": [{"from": "human", "value": "<image>\nWhat is in the picture?"}, {"from": "gpt", "value": "A green ring."}]}
    put("data/talks.jsonl", lines(talk))
    shutil.copy(path("data/talks.jsonl"), path("talks.jsonl"))
    shutil.copy(path("data/shapes.bmp"), path("shapes.bmp"))
    shapes = ["-m", "builtin:shapes", "--mmproj", "builtin:shapes-eye", "data/talks.jsonl", "--no-valid"]
    train(*shapes, "-o", "out.gguf", "--mmproj-out", "eye.gguf", "--steps", "12", "-lr", "2e-3", "--sample", "Who?", has="wrote out.gguf and eye.gguf", said="sample")
    said = run("llm-cli", "-m", "out.gguf", "--mmproj", "eye.gguf", "--image", "shapes.bmp", "-p", "What is in the picture?", "--temp", "0", "-n", "12")
    check("A green ring." in said, "another answer", said)
    train(*shapes, "--lora", "-o", "style.gguf", "--steps", "20", "-lr", "8e-3", has="wrote style.gguf")
    said = run("llm-cli", "-m", "builtin:shapes", "--lora", "style.gguf", "--image", "shapes.bmp", "-p", "What is in the picture?", "--temp", "0", "-n", "12")
    check("A green ring." in said, "another answer with the adapter", said)
    train(*shapes, "--plan", said="1 sequence")
    # an adapter of the eye alone, which merges into the eye's file
    train(*shapes, "--lora", "--matrix", "v.blk.*", "--matrix", "mm.*", "-o", "seen.gguf", "--steps", "30", "-lr", "8e-3", "--sample", "Who?",
          has="wrote seen.gguf", said="sample")
    asked = ["--image", "shapes.bmp", "-p", "What is in the picture?", "--temp", "0", "-n", "12"]
    said = run("llm-cli", "-m", "builtin:shapes", "--lora", "seen.gguf", *asked)
    check("A green ring." in said, "another answer with the eye's adapter", said)
    run("llm-lora", "show", "seen.gguf", said="v.blk.2.attn_out.weight")
    eye = os.path.join(EXAMPLES, "../models/builtin/shapes-eye.gguf")
    run("llm-lora", "merge", eye, "seen.gguf", "-o", "merged-eye.gguf", "--type", "f32", said="20 of 57 tensors changed")
    said = run("llm-cli", "-m", "builtin:shapes", "--mmproj", "merged-eye.gguf", *asked)
    check("A green ring." in said, "another answer of the merged eye", said)
    text = os.path.join(EXAMPLES, "../models/builtin/shapes.gguf")
    run("llm-lora", "merge", text, "seen.gguf", "-o", "x.gguf", code=1, has="it changes no tensor of")
    run("llm-lora", "merge", eye, "style.gguf", "-o", "x.gguf", code=1, has="it changes no tensor of")
    run("llm-cli", "-m", text, "--lora", "seen.gguf", "-p", "Hi", "-n", "1", code=1, has="is missing (mmproj, or --mmproj)")
    train(*shapes, "--lora", "--matrix", "mm.*", "--matrix", "blk.0.attn_q.weight", "-o", "both.gguf", "--steps", "1", has="wrote both.gguf")
    # what is wrong with the eye's file is not said of the adapter; what was extracted from two eyes is for an eye
    put("bad.gguf", b"no model")
    run("llm-cli", "-m", text, "--mmproj", "bad.gguf", "--lora", "seen.gguf", "-p", "Hi", "-n", "1", code=1, has="bad.gguf: ", lacks="--lora")
    run("llm-lora", "extract", eye, "merged-eye.gguf", "-o", "extracted.gguf")
    said = run("llm-cli", "-m", "builtin:shapes", "--lora", "extracted.gguf", *asked)
    check("A green ring." in said, "another answer with an extracted adapter", said)
    run("llm-lora", "merge", text, "both.gguf", "-o", "text.gguf", said="2 pairs of the adapters belong to the eye or the ear, and are not merged here")
    run("llm-lora", "merge", eye, "both.gguf", "-o", "eye.gguf", said="1 pair of the adapters belongs to the text model, and is not merged here")


def speech():
    put("speech.jsonl", lines({"audio": os.path.abspath(os.path.join(EXAMPLES, "words.wav")), "text": "seven seven"}))
    train("-m", "builtin:words", "speech.jsonl", "-o", "words.gguf", "--no-valid", "--steps", "30", "-lr", "3e-3", has="wrote words.gguf")
    said = run("llm-transcribe", "-m", "words.gguf", os.path.join(EXAMPLES, "words.wav"), "--no-timestamps")
    check("seven seven" in said, "another text", said)


if __name__ == "__main__":
    marian_folder.write(path("marian"))
    run("llm-convert", "marian", "-o", "marian.gguf")
    texts()
    pictures()
    speech()
    refused()
    sys.exit(finish())
