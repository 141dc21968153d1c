#!/usr/bin/env python3
"""Models on boards have the logits of the CPU, bit by bit, and its tokens.

    models.py ROOT BIN PLANS CC WORK here          compiled for this system: the models of tests/data, built-in ones, and a small one with weights of
                                                   each type that plans can have; of these types, other ones each day
    models.py ROOT BIN PLANS CC WORK board NAME    on an emulated board: a model of 260 thousand parameters in 64 KB of RAM, and the built-in chat model

BIN has the programs, PLANS is test-small-plans, WORK a folder to write to."""
import os
import random
import shutil
import subprocess
import sys
import time

import compare

ALWAYS = ["f32", "f16:f32", "q8_0:q8_0", "q4_0:q4_0", "q4_k:bf16"]
OTHERS = ["bf16", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "tq1_0", "tq2_0", "mxfp4"]


def new_model(binaries, path, tokenizer, **sizes):
    """Makes a model of a family with random weights."""
    keys = {"block_count": 1, "attention.layer_norm_rms_epsilon": 0.00001, "context_length": 512, **sizes}
    sets = [word for key, value in keys.items() for word in ("--set", f".{key.replace('__', '.')}={value}")]
    compare.call(f"{binaries}/llm-train", "new", "llama", "--tokenizer", tokenizer, *sets, "--sigma", "0.1", "-o", path)


def check_story(root, binaries, cc, work):
    """A compiled model writes what llm-cli writes: the best tokens, and drawn ones."""
    for flags, macros in (("--temp 0", "-DTEMPERATURE=0"), ("--temp 0.8 --top-k 30 --samplers top_k;temperature --seed 7", "-DTEMPERATURE=0.8 -DTOP_K=30 -DSEED=7")):
        shutil.rmtree(work, ignore_errors=True)
        got = compare.call("make", "-s", "-f", f"{root}/small/small.mk", "BOARD=host", f"OUT={work}", f"LLM_ARCH={binaries}/llm-arch", f"CC={cc}", f"CFLAGS=-O1 {macros}", "run")
        got = got[got.index("Once"):]
        want = compare.call(f"{binaries}/llm-cli", "-m", "builtin:stories", "-p", "Once upon a time", "-n", "40", "-q", *flags.split(), stdin=subprocess.DEVNULL)
        if got.strip() != want.strip():
            sys.exit(f"{flags}: the compiled model writes\n{got}\nand llm-cli\n{want}")
    shutil.rmtree(work)


def main(root, binaries, plans, cc, work, where, board=None):
    work = os.path.abspath(work)
    models = work + "-models"
    shutil.rmtree(models, ignore_errors=True)
    os.makedirs(models)
    data = f"{root}/tests/data"
    if where == "here":
        new_model(binaries, f"{models}/nano.gguf", "builtin:stories", embedding_length=256, feed_forward_length=512, attention__head_count=4, attention__head_count_kv=2)
        seed = int(os.environ.get("GGL_TEST_SEED", time.time() // 86400))
        print(f"types are chosen by GGL_TEST_SEED={seed}")
        compare.call(f"{binaries}/llm-tokenize", "train", f"{data}/calibration.txt", "--vocab-size", "700", "--model", "unigram", "-o", f"{models}/unigram.gguf")
        new_model(binaries, f"{models}/unigram-model.gguf", f"{models}/unigram.gguf", embedding_length=32, feed_forward_length=32, attention__head_count=2)
        check_story(root, binaries, cc, work)
        types = ALWAYS + random.Random(seed).sample(OTHERS, 3)
        code = compare.check(root, plans, cc, work, ["files", "=builtin:chat", ":q8_0=builtin:stories", f"={data}/stories-gpt2.gguf", f"=" + f"{data}/stories-qwen2.gguf",
                             f"={data}/stories-qwen3.gguf", f"={models}/unigram-model.gguf"] + [f"{t}={models}/nano.gguf" for t in types])
    else:
        # as many parameters as the smallest model of llama2.c: 512 tokens, 5 layers of 64 numbers
        compare.call(f"{binaries}/llm-tokenize", "train", f"{data}/calibration.txt", "--vocab-size", "512", "--model", "spm", "-o", f"{models}/words.gguf")
        new_model(binaries, f"{models}/small.gguf", f"{models}/words.gguf", block_count=5, embedding_length=64, feed_forward_length=172,
                  attention__head_count=8, attention__head_count_kv=4)
        code = compare.check(root, plans, cc, work, ["files", f"={models}/small.gguf"], board, 65536)
        # whole blocks in all rows, and an odd number of rows, which the kernels for DSP instructions take in pairs
        compare.call(f"{binaries}/llm-tokenize", "train", f"{data}/calibration.txt", "--vocab-size", "511", "--model", "spm", "-o", f"{models}/odd.gguf")
        new_model(binaries, f"{models}/blocks.gguf", f"{models}/odd.gguf", embedding_length=64, feed_forward_length=96, attention__head_count=2)
        what = ["=builtin:chat"] + [f"{t}={models}/blocks.gguf" for t in ("q8_0:q8_0", "q4_0:q4_0")]
        code = code or compare.check(root, plans, cc, work, ["files", *what], board)
    shutil.rmtree(models)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
