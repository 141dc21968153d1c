#!/usr/bin/env python3
"""Rerankers that judge with "yes" or "no" (Qwen3-Reranker): the score of the file that llm-convert makes of a causal model's folder is the
softmax over these two of the logits of the same folder converted as a model that writes; and its keys are those of published files.

    reranker.py --cli LLM_CLI --dir FOLDER --convert LLM_CONVERT --embed LLM_EMBED

Exit code 0, 1."""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

import gguf
from folders import CLASSES, TOKENS, Weights, run, write_safetensors

YES, NO = 9, 4
faults = []


def check(ok, *what):
    if not ok:
        faults.append(what)
        print("FAILED:", *what)


def made(class_name):
    """config.json and the tensors of a class's model, as ./folders.py makes it."""
    config, fill, *_ = CLASSES[class_name]
    c, w = {**config, "rope": {}}, Weights(len(class_name))
    fill(c, w)
    return {"architectures": [class_name], **{k: v for k, v in c.items() if k not in ("kind", "how", "d", "theta", "rope", "partial", "layout", "write",
                                                                                     "type", "like")}, "rope_theta": 10000.0}, dict(w)


def logits(a, model, out):
    run(a.cli, "-m", model, "--tokens", ",".join(map(str, TOKENS)), "-n", "0", "-t", "1", "-ctk", "f32", "-ctv", "f32", "--logits", out)
    return np.load(out)


def write(folder, config, stored, **more):
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), stored)
    for name, content in (("config.json", {**config, **more}), ("vocab.json", {"a": 0, "no": NO, "yes": YES})):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(content, f)


def scores(a, model):
    out = subprocess.run([a.embed, "-m", model, "--tokens", ",".join(map(str, TOKENS))], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    line = json.loads(out.stdout) if out.returncode == 0 else {"error": out.stderr}
    return line.get("scores", line.get("score", line))


def main():
    parser = argparse.ArgumentParser()
    for name in ("--cli", "--dir", "--convert", "--embed"):
        parser.add_argument(name, required=True)
    a = parser.parse_args()
    said = lambda *words: subprocess.run([a.convert, *words, "--no-tokenizer"], capture_output=True, text=True)
    for tied in (False, True):
        config, stored = made("Qwen3ForCausalLM")
        stored = {k: v for k, v in stored.items() if not (tied and k == "lm_head.weight")}
        if not tied and "lm_head.weight" not in stored:
            stored["lm_head.weight"] = np.random.default_rng(3).normal(size=stored["model.embed_tokens.weight"].shape).astype(np.float32)
        folder = os.path.join(a.dir, f"Made-Reranker-{tied}")
        write(folder, config, stored, tie_word_embeddings=tied)
        done = said(folder, "-o", folder + ".gguf", "--type", "f32")
        check(done.returncode == 0 and "made a reranker" in done.stderr, done.stderr)
        keys, tensors = gguf.read(folder + ".gguf")[:2]
        check(keys["qwen3.pooling_type"] == 4 and keys["qwen3.classifier.output_labels"] == ["yes", "no"], keys)
        check("{query}" in keys["tokenizer.chat_template.rerank"] and keys["tokenizer.chat_template.rerank"].endswith("<think>\n\n</think>\n\n"), keys)
        check("cls.output.weight" in tensors and "output.weight" not in tensors, sorted(tensors))
        plain = folder + "-plain.gguf"
        done = said(folder, "-o", plain, "--type", "f32", "--no-reranker")
        check(done.returncode == 0 and "qwen3.pooling_type" not in gguf.read(plain)[0], done.stderr)
        last = logits(a, plain, folder + ".npy")[-1].astype(float)
        both = np.exp(last[[YES, NO]] - last[[YES, NO]].max())
        want, got = both / both.sum(), scores(a, folder + ".gguf")
        numbers = np.array([x["score"] if isinstance(x, dict) else x for x in got], float) if isinstance(got, list) else np.array([np.nan])
        check(np.abs(np.sort(numbers) - np.sort(want)).max() < 1e-6 if len(numbers) == 2 else abs(numbers[0] - want[0]) < 1e-6, got, want)
        print(f"tied {tied}: {want[0]:.6f}, {got}")
        # of another name it writes, unless a reranker is asked for
        other = os.path.join(a.dir, f"other-{tied}")
        write(other, config, stored, tie_word_embeddings=tied)
        check(said(other, "-o", other + ".gguf").returncode == 0 and "cls.output.weight" not in gguf.read(other + ".gguf")[1], "another name")
        done = said(other, "-o", other + ".gguf", "--reranker", "--type", "f32")
        with open(other + ".gguf", "rb") as one, open(folder + ".gguf", "rb") as two:
            check(done.returncode == 0 and len(one.read()) - len(two.read()) < 64, "--reranker", done.stderr)
        os.unlink(os.path.join(other, "vocab.json"))
        done = said(other, "-o", other + ".gguf", "--reranker")
        check(done.returncode == 1 and 'the tokens "yes" and "no"' in done.stderr, done.stderr)
    config, stored = made("LlamaForCausalLM")
    folder = os.path.join(a.dir, "llama-reranker")
    write(folder, config, stored)
    check(said(folder, "-o", folder + ".gguf").returncode == 0, "a class that makes no rerankers")
    check("makes no rerankers" in said(folder, "-o", folder + ".gguf", "--reranker").stderr, "--reranker of a class that makes none")
    print("ok" if not faults else f"{len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
