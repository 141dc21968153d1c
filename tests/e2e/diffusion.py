#!/usr/bin/env python3
"""Texts by diffusion as users of llm-cli write them: the same text for the same seed, what such a text cannot have, and what measures none.

diffusion.py TOOLS    TOOLS: the folder of the programs"""
import os
import sys

import dream_file
from checks import TMP, check, finish, path, put, runner

run = runner(sys.argv[1], cwd=TMP.name)


def cli(*args, **more):
    return run("llm-cli", "-m", "d.gguf", "-p", "the fox", *args, **more)


def writes():
    check(cli("-n", "12", "-s", "5") == cli("-n", "12", "-s", "5", "-t", "2"), "one seed, one text")
    check(cli("-n", "12", "-s", "5", "--temp", "2") != cli("-n", "12", "-s", "6", "--temp", "2"), "another seed, another text")
    check(cli("-n", "12", "--temp", "0", "-s", "1") == cli("-n", "12", "--temp", "0", "-s", "2"), "without temperature nothing is drawn")
    surest = {cli("-n", "12", "-s", s, "--temp", "5", *more) for s in "123" for more in (("--top-p", "0"), ("--top-k", "1"))}
    check(len(surest) == 1, "--top-p 0 is the likeliest token", surest)
    check(cli("-n", "12", "-s", "5", "--diffusion-steps", "3") != "", "three steps")
    cli("-n", "8", "-s", "1", "--override-kv", "diffusion.shift_logits=bool:false")
    cli("-n", "0", "--logits", "l.npy")
    cli("-n", "100", code=1, has="context is 64")
    whole = cli("-n", "12", "-s", "5")
    word = next(ch for ch in whole[2:] if ch.isascii() and ch.isprintable())
    check(cli("-n", "12", "-s", "5", "--stop", word) == whole[:whole.find(word)] + "\n", "a stop text is not printed", whole)
    check(cli("-n", "12", "-s", "5", "-r", word) == whole[:whole.find(word) + len(word)] + "\n", "that of -r is", whole)
    check(cli("-n", "40", "-s", "5", "--ignore-eos", "--temp", "3") != "", "a text that goes on after its end")


def refuses():
    cli("-n", "8", "--encode-tokens", "5", code=2, has="--encode-tokens is for models that read a text and write another")
    cli("-n", "8", "--min-p", "0.2", has="--min-p has no effect")
    for args in (("--diffusion-steps", "4"), ("--diffusion-algorithm", "origin"), ("--diffusion-visual",)):
        run("llm-cli", "-m", "builtin:stories", "-p", "the fox", "-n", "2", *args, code=2, has=f"{args[0]} is for models that write by diffusion")
    put("long.txt", b"the fox sat on the mat. " * 60)
    run("llm-perplexity", "-m", "d.gguf", "-f", "long.txt", "-c", "16", code=1, has="each token of this model sees those after it, too")
    run("llm-arch", "doctor", "d.gguf", "--text", "long.txt", code=1, has="each token of this model sees those after it, so no reading predicts a text better")
    said = run("llm-imatrix", "-m", "d.gguf", "-f", "long.txt", "-c", "16", "--chunks", "2", "-o", "i.gguf")
    check("PPL" not in said and os.path.exists(path("i.gguf")), "a perplexity of tokens that see those after them", said)


dream_file.write(path("d.gguf"))
writes()
refuses()
sys.exit(finish())
