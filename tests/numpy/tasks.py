#!/usr/bin/env python3
"""Adapters for tasks that a model's own folder has (jina-embeddings-v3): llm-convert --task makes each, and llm-embed chooses one. The vectors
are compared with those that the forward pass of ./folders_encoders.py computes of weights into which numpy has merged the task's change.

    tasks.py --cli LLM_CLI --dir FOLDER --convert LLM_CONVERT --embed LLM_EMBED

Exit code 0, 1."""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

import folders_encoders
import gguf
from folders import TOKENS, Weights, run, write_safetensors

TASKS = ["retrieval.query", "retrieval.passage", "text-matching"]
PROMPTS = {"retrieval.query": "the query: ", "retrieval.passage": "the document: "}
RANK, ALPHA = 2, 3
LIMIT = 1e-5


def with_tasks(w, random):
    """The folder's tensors, and for each task the weights with its change, in the layout of the forward pass."""
    stored, merged = {}, [dict(w) for _ in TASKS]
    for name, x in w.items():
        if not (name.endswith(".weight") and x.ndim == 2 and "pooler" not in name):
            stored[name] = x
            continue
        stem, lookup = name[: -len("weight")] + "parametrizations.weight.", "_embeddings" in name
        a = random.normal(size=(len(TASKS), *((x.shape[0], RANK) if lookup else (RANK, x.shape[1])))).astype(np.float32) * 0.3
        b = random.normal(size=(len(TASKS), *((RANK, x.shape[1]) if lookup else (x.shape[0], RANK)))).astype(np.float32) * 0.3
        stored[stem + "original"], stored[stem + "0.lora_A"], stored[stem + "0.lora_B"] = x, a, b
        for k, whole in enumerate(merged):
            whole[name] = x + ALPHA / RANK * (a[k].astype(float) @ b[k] if lookup else b[k].astype(float) @ a[k])
    return stored, merged


def vector(rows):
    mean = rows.mean(axis=0)
    return mean / np.linalg.norm(mean)


def embed(a, model, *more):
    done = subprocess.run([a.embed, "-m", model, *more], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    return [np.array(json.loads(line)["embedding"]) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    for name in ("--cli", "--dir", "--convert", "--embed"):
        parser.add_argument(name, required=True)
    a = parser.parse_args()
    config, fill, _, forward = folders_encoders.CLASSES["XLMRobertaModel jina-v3"]
    c = {**config, "rope": {}}
    w = Weights(5)
    fill(c, w)
    stored, merged = with_tasks(w, np.random.default_rng(4))
    folder = os.path.join(a.dir, "tasks")
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), stored)
    own = {k: v for k, v in c.items() if k not in ("how", "rope")}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architectures": ["XLMRobertaModel"], **own, "lora_adaptations": TASKS, "lora_rank": RANK, "lora_alpha": ALPHA,
                   "lora_prompts": None, "task_instructions": PROMPTS}, f)
    model = folder + ".gguf"
    run(a.convert, folder, "-o", model)
    adapter = {}
    faults = []

    def check(ok, *what):
        if not ok:
            faults.append(what)
            print("FAILED:", *what)

    for task in TASKS:
        adapter[task] = f"{folder}-{task}.gguf"
        done = subprocess.run([a.convert, folder, "--task", task, "-o", adapter[task]], capture_output=True, text=True)
        check(done.returncode == 0 and "without a task" not in done.stdout + done.stderr, done.stdout, done.stderr)
        keys, tensors = gguf.read(adapter[task])[:2]
        check(keys["adapter.lora.task_name"] == task and keys.get("adapter.lora.prompt_prefix") == PROMPTS.get(task), task, keys)
        check(keys["adapter.lora.alpha"] == ALPHA and "token_types.weight.lora_a" in tensors and "blk.1.attn_k.weight.lora_b" in tensors, sorted(tensors))
    done = subprocess.run([a.convert, folder, "--task", "separation", "-o", model + ".none"], capture_output=True, text=True)
    check(done.returncode == 1 and "there is no task 'separation'" in done.stderr and "text-matching" in done.stderr, done.stderr)

    ids = ",".join(map(str, TOKENS))
    want = [vector(forward(c, x, 16)) for x in (w, *merged)]
    every = ["--lora", ",".join(adapter.values())]
    got = {None: embed(a, model, "--tokens", ids, *every)[0]}
    for task in TASKS:
        got[task] = embed(a, model, "--tokens", ids, "--task", task, *every)[0]
        one = embed(a, model, "--tokens", ids, "--lora", adapter[task])[0]
        check(np.array_equal(one, got[task]), task, "alone has other bits than beside others")
        several = embed(a, model, *sum((["--tokens", ids] for _ in range(5)), []), "--task", task, *every)
        check(all(np.array_equal(x, one) for x in several), task, "in a batch")
    for task, vec in zip([None, *TASKS], want):
        distance = np.abs(got[task] - vec).max()
        print(f"{task or 'no task':20} {distance:8.1e}, from the plain model {np.abs(vec - want[0]).max():6.2f}")
        check(distance <= LIMIT, task, distance)
        check(task is None or np.abs(vec - want[0]).max() > 0.01, task, "changes nothing")
    check(np.array_equal(got[None], embed(a, model, "--tokens", ids)[0]), "without a task other bits than without adapters")
    message = embed(a, model, "--tokens", ids, "--task", "separation", *every)
    check("no adapter for the task 'separation'" in str(message) and "retrieval.passage" in str(message), message)
    # magnitudes (DoRA) of one task: those of merged weights, and no other text has other bits for it
    tensors, sizes = gguf.read(adapter["text-matching"])[1], {}
    whole = {n: np.asarray(x, np.float64) for n, x in gguf.read(model)[1].items()}
    for name in [n[: -len(".lora_a")] for n in tensors if n.endswith(".lora_a")]:
        lookup = name == "token_embd.weight"
        one, two = (np.asarray(tensors[name + end], np.float64) for end in (".lora_a", ".lora_b"))
        whole[name] = whole[name] + ALPHA / RANK * (one @ two.T if lookup else two @ one)
        if name.startswith("blk.") and not lookup:
            size = np.random.default_rng(len(name)).uniform(0.5, 1.5, whole[name].shape[:-1]).astype(np.float32)
            sizes[name + ".lora_magnitude"] = size
            whole[name] *= (size / np.linalg.norm(whole[name], axis=-1))[..., None]
    meta, blocks = gguf.read_blocks(adapter["text-matching"])
    gguf.write(folder + "-sized.gguf", meta, {**blocks, **sizes})
    meta, blocks = gguf.read_blocks(model)
    gguf.write(folder + "-whole.gguf", meta, {**blocks, **{n: x.astype(np.float32) for n, x in whole.items()}})
    want, got = (embed(a, *words)[0] for words in ((folder + "-whole.gguf", "--tokens", ids), (model, "--tokens", ids, "--lora", folder + "-sized.gguf")))
    mixed = ["--lora", folder + "-sized.gguf," + adapter["retrieval.query"]]
    check(np.abs(want - got).max() <= LIMIT, "with magnitudes", np.abs(want - got).max())
    check(np.abs(want - embed(a, model, "--tokens", ids, "--lora", adapter["text-matching"])[0]).max() > 0.01, "magnitudes change nothing")
    check(np.array_equal(got, embed(a, model, "--tokens", ids, "--task", "text-matching", *mixed)[0]), "with magnitudes beside another task")
    for task, more in (("retrieval.query", ["--lora", adapter["retrieval.query"]]), (None, [])):
        words = ["--task", task] if task else []
        check(np.array_equal(embed(a, model, "--tokens", ids, *words, *mixed)[0], embed(a, model, "--tokens", ids, *more)[0]), task, "beside magnitudes")
    print("ok" if not faults else f"{len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
