#!/usr/bin/env python3
"""Texts by diffusion as users of llm-cli write them: the same text for the same seed, what such a text cannot have, and what measures none.

diffusion.py TOOLS    TOOLS: the folder of the programs"""
import os
import random
import struct
import sys

import gguf_file
from checks import TMP, check, finish, path, put, runner

run = runner(sys.argv[1], cwd=TMP.name)
DIM, FF, LAYERS, CONTEXT, MASK = 32, 64, 2, 64, 3
TOKENS = ["<unk>", "<s>", "</s>", "<mask>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581" + w for w in "the a fox cat dog sat ran on mat".split()]


def dream():
    """Writes a small Dream with random weights, whose tokens are bytes and a few words."""
    rng, tensors = random.Random(7), []

    def add(name, *shape, centre=0.0):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors.append((name + ".weight", "f32", list(shape), struct.pack(f"<{n}f", *(rng.gauss(centre, 0.3) for _ in range(n)))))

    for name in ("token_embd", "output"):
        add(name, DIM, len(TOKENS))
    add("output_norm", DIM, centre=1.0)
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}", DIM, DIM)
        for name, shape in (("ffn_gate", (DIM, FF)), ("ffn_up", (DIM, FF)), ("ffn_down", (FF, DIM))):
            add(f"blk.{layer}.{name}", *shape)
        for name in ("attn_norm", "ffn_norm"):
            add(f"blk.{layer}.{name}", DIM, centre=1.0)
    keys = [("general.architecture", "string", "dream"), ("dream.context_length", "u32", CONTEXT), ("dream.embedding_length", "u32", DIM),
            ("dream.block_count", "u32", LAYERS), ("dream.feed_forward_length", "u32", FF), ("dream.attention.head_count", "u32", 4),
            ("dream.attention.layer_norm_rms_epsilon", "f32", 1e-6), ("dream.attention.causal", "bool", False),
            ("diffusion.shift_logits", "bool", True), ("tokenizer.ggml.model", "string", "llama"),
            ("tokenizer.ggml.tokens", "string", TOKENS), ("tokenizer.ggml.scores", "f32", [-float(i) for i in range(len(TOKENS))]),
            ("tokenizer.ggml.token_type", "i32", [2, 3, 3, 3] + [6] * 256 + [1] * (len(TOKENS) - 260)),
            ("tokenizer.ggml.bos_token_id", "u32", 1), ("tokenizer.ggml.eos_token_id", "u32", 2),
            ("tokenizer.ggml.unknown_token_id", "u32", 0), ("tokenizer.ggml.mask_token_id", "u32", MASK)]
    put("d.gguf", gguf_file.gguf(keys, tensors))


def cli(*args, **more):
    return run("llm-cli", "-m", "d.gguf", "-p", "the fox", *args, **more)


def writes():
    check(cli("-n", "12", "-s", "5") == cli("-n", "12", "-s", "5", "-t", "2"), "one seed, one text")
    check(cli("-n", "12", "-s", "5", "--temp", "2") != cli("-n", "12", "-s", "6", "--temp", "2"), "another seed, another text")
    check(cli("-n", "12", "--temp", "0", "-s", "1") == cli("-n", "12", "--temp", "0", "-s", "2"), "without temperature nothing is drawn")
    check(cli("-n", "12", "-s", "5", "--diffusion-steps", "3") != "", "three steps")
    cli("-n", "8", "-s", "1", "--override-kv", "diffusion.shift_logits=bool:false")
    cli("-n", "0", "--logits", "l.npy")
    cli("-n", "100", code=1, has="context is 64")


def refuses():
    fits = "this model writes by diffusion, all of a text at once after one prompt, where %s cannot be used"
    for args, name in ((("--grammar", 'root ::= "a"'), "a grammar or schema"), (("--json",), "a grammar or schema"), (("--json-output",), "--json-output"),
                       (("--logits", "x.npy"), "--logits without -n 0"), (("--prompt-cache", "x.bin"), "--prompt-cache"), (("--lookup",), "--lookup"),
                       (("--stop", "x"), "--stop"), (("-r", "x"), "--stop"), (("-l", "5+1"), "--logit-bias"), (("--ignore-eos",), "--ignore-eos"), (("-i",), "-i")):
        cli("-n", "8", *args, code=2, has=fits % name)
    cli("-n", "8", "--encode-tokens", "5", code=2, has="--encode-tokens is for models that read a text and write another")
    cli("-n", "8", "--min-p", "0.2", has="--min-p has no effect")
    put("long.txt", b"the fox sat on the mat. " * 60)
    run("llm-perplexity", "-m", "d.gguf", "-f", "long.txt", "-c", "16", code=1, has="each token of this model sees those after it, too")
    said = run("llm-imatrix", "-m", "d.gguf", "-f", "long.txt", "-c", "16", "--chunks", "2", "-o", "i.gguf")
    check("PPL" not in said and os.path.exists(path("i.gguf")), "a perplexity of tokens that see those after them", said)


dream()
writes()
refuses()
sys.exit(finish())
