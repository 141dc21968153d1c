#!/usr/bin/env python3
"""The recipes of the built-in models and of their siblings in tests/data, a thousandth of their size: they run to the end, what they make has the keys and tensors of
the files that are shipped, and the programs take it. recipes.py SOURCE TOOLS PART, with PART stories, siblings, chat, eyes or ears (these two need NumPy)"""
import json
import lzma
import os
import random
import subprocess
import sys

from checks import TMP, check, finish, path, put

SOURCE, TOOLS, PART = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
WHO = ["the old king", "a poor woodcutter", "the youngest son", "a clever fox", "the good queen"]
DID = ["went into the forest", "asked for a cup of water", "found a golden key", "sat down by the fire", "walked along the river"]
RNG = random.Random(1)


def paragraph():
    """Stands for the prose."""
    said = "".join(f"Then {RNG.choice(WHO)} {RNG.choice(DID)}, and {RNG.choice(WHO)} {RNG.choice(DID)}. " for _ in range(6))
    return said + RNG.choice(['"Where do you come from?"', "“Where do you come from?”"]) + f" said {RNG.choice(WHO)}."


def run(*args, code=0):
    env = {**os.environ, "BIN": TOOLS, "TEXT": path("text"), "PART": "1000", "THREADS": "2", "PYTHON": sys.executable, "LEAST": "0"}
    r = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, check=False)
    check(r.returncode == code, f"{' '.join(args)}: exit code {r.returncode}", r.stdout, r.stderr)
    return r.stdout


def facts(file):
    shown = json.loads(run(os.path.join(TOOLS, "llm-gguf"), "show", "--json", file))
    keys = {k["key"]: (k["type"], k.get("value")) for k in shown["keys"]}
    return keys, {t["name"]: (t["shape"], t["type"]) for t in shown["tensors"]}


def same_form(made, shipped, types=True):
    """The same keys, but for those of which no reader needs to be told, and the same tensors. What the training decides, such as the tokens, differs."""
    implied = {"general.alignment", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.add_bos_token", "tokenizer.ggml.eot_token_id"}
    (a, x), (b, y) = facts(made), facts(shipped)
    check(set(a) ^ set(b) <= implied, f"{made}: the keys", sorted(set(a) ^ set(b)))
    for k in sorted(set(a) & set(b)):
        check(a[k] == b[k] or (k.startswith("tokenizer.") and a[k][0] == b[k][0] and k != "tokenizer.chat_template"), f"{made}: {k}", a[k], b[k])
    if not types:
        x, y = ({name: shape for name, (shape, _) in t.items()} for t in (x, y))
    check(x == y, f"{made}: the tensors", sorted(set(map(str, x.items())) ^ set(map(str, y.items()))))


def says(model, *args):
    return run(os.path.join(TOOLS, "llm-cli"), "-m", model, "--temp", "0", "-n", "4", *args)


def voices(file, names):
    """Stands for the synthesizers: a word is a row of tones."""
    import numpy as np
    words = "zero one two three four five six seven eight nine yes no up down left right stop go start open close on off red green blue yellow black lamp music".split()
    t = np.arange(3200) / 16000
    said, text, voice, begin = [], [], [], [0]
    for k, name in enumerate(names):
        for row in [[w] for w in words] + [words[:3], words[5:9]]:
            x = np.concatenate([np.sin(2 * np.pi * (200 + 20 * k + 60 * words.index(w)) * t) for w in row])
            said.append((9000 * x).astype(np.int16))
            text.append(" ".join(row))
            voice.append(name)
            begin.append(begin[-1] + len(x))
    np.savez(file, samples=np.concatenate(said), begin=np.array(begin), text=np.array(text), voice=np.array(voice))


prose = "\n".join(paragraph() for _ in range(120))
put("text/fairytaleqa-stories.txt", prose.encode())
put("text/children-classics.txt.xz", lzma.compress(prose.encode()))
RECIPE = os.path.join(SOURCE, "tools/train")
if PART == "stories":
    out = run(os.path.join(RECIPE, "train.sh"), path("work"))
    check("valid-world.txt: " in out and "valid-prose.txt: " in out, "what was measured", out)
    same_form(path("work/stories.gguf"), os.path.join(SOURCE, "models/builtin/stories.gguf"))
    check(says(path("work/stories.gguf"), "-p", "Once") != "", "llm-cli")
    before = os.stat(path("work/4.gguf")).st_mtime_ns
    run(os.path.join(RECIPE, "train.sh"), path("work"))
    check(os.stat(path("work/4.gguf")).st_mtime_ns == before, "what is done is done again")
elif PART == "siblings":
    run(os.path.join(RECIPE, "siblings.sh"), path("work"), "bert", code=2)
    run(os.path.join(RECIPE, "siblings.sh"), path("work"))
    for family in ("gpt2", "qwen2", "qwen3"):
        same_form(path(f"work/stories-{family}.gguf"), os.path.join(SOURCE, f"tests/data/stories-{family}.gguf"))
elif PART == "eyes":
    out = run(os.path.join(RECIPE, "train-eyes.sh"), path("work"))
    check("all descriptions" in out, "what was measured", out)
    same_form(path("work/shapes.gguf"), os.path.join(SOURCE, "models/builtin/shapes.gguf"))
    same_form(path("work/shapes-eye.gguf"), os.path.join(SOURCE, "models/builtin/shapes-eye.gguf"), types=False)
elif PART == "ears":
    os.makedirs(path("work"))
    voices(path("work/train.npz"), ["espeak:a:1:50", "flite:awb:1:0"])
    voices(path("work/test.npz"), ["espeak:b:1:50", "flite:rms:1:0"])
    out = run(os.path.join(RECIPE, "train-ears.sh"), path("work"))
    check("words wrong" in out, "what was measured", out)
    same_form(path("work/words.gguf"), os.path.join(SOURCE, "models/builtin/words.gguf"), types=False)
else:
    run(os.path.join(RECIPE, "train-chat.sh"), path("work"))
    same_form(path("work/stories-chat.gguf"), os.path.join(SOURCE, "models/builtin/stories-chat.gguf"))
    check(says(path("work/stories-chat.gguf"), "-cnv", "-st", "-p", "Hello!") != "", "llm-cli with a conversation")
TMP.cleanup()
sys.exit(finish())
