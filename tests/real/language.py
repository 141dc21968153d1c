#!/usr/bin/env python3
"""Ways to write with real models: guessed tokens, grammars, beams, saved prompts, texts longer than the window, and control vectors. What promises the text
that is written without it must write that.

    language.py --models FOLDER --bin FOLDER --work FOLDER [--llama FOLDER]

--models has SmolLM2-135M-Instruct.Q4_1.gguf and gemma-3-270m-q4_k_m.gguf; a model that is not there is skipped. --llama: llama.cpp's programs, whose
llama-perplexity measures steered models, too. Exit code 1: a fault."""
import argparse
import array
import ast
import json
import math
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from gguf_file import gguf

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
MODELS = {"SmolLM2": "SmolLM2-135M-Instruct.Q4_1.gguf", "Gemma 3": "gemma-3-270m-q4_k_m.gguf"}
PROMPT = "The history of the steam engine begins"
LIST = "apple, pear, plum, cherry, fig, grape, apple, pear, plum, cherry, fig, grape, apple, pear,"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 1, "maximum": 120}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}},
          "required": ["name", "age", "tags"], "additionalProperties": False}


class Test:
    def __init__(self, a, name, model):
        self.a, self.name, self.model, self.faults = a, name, model, 0

    def run(self, prompt, *more, n=48):
        """The JSON of an answer, drawn greedily."""
        done = subprocess.run([os.path.join(self.a.bin, "llm-cli"), "-m", self.model, "-p", prompt, "-n", str(n), "--temp", "0", "-q", "--json-output", "-t", str(self.a.threads), *more],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if done.returncode:
            self.check(False, f"llm-cli {' '.join(more)}: exit code {done.returncode}: {done.stderr[-500:]}")
            return {"text": "", "ids": []}
        return json.loads(done.stdout.strip().splitlines()[-1])

    def check(self, ok, what):
        self.faults += not ok
        print(f"{'' if ok else 'FAILED: '}{self.name}: {what}", flush=True)

    def same(self, what, prompt, *more, **how):
        plain, other = self.run(prompt, **how), self.run(prompt, *more, **how)
        self.check(plain["text"] == other["text"] != "", f"{what} writes the text that is written without" if plain["text"] == other["text"] else f"{what} writes {other['text']!r}, and without it {plain['text']!r}")
        return other

    def guesses(self):
        self.same("a draft model", PROMPT, "--draft", self.model, "--draft-max", "4", "--guess-always")
        self.same("--lookup", LIST, "--lookup", "--guess-always")
        self.same("--lookup of a text that repeats nothing", PROMPT, "--lookup", "--guess-always")

    def forms(self):
        text = self.run("Describe a person as JSON:", "-j", json.dumps(SCHEMA), n=120)["text"]
        try:
            x = json.loads(text)
            ok = set(x) == {"name", "age", "tags"} and 1 <= x["age"] <= 120 and len(x["name"]) <= 20 and len(x["tags"]) <= 3
        except ValueError:
            ok = False
        self.check(ok, f"a schema is kept: {text[:120]!r}")
        text = self.run("Is water wet?", "--grammar", 'root ::= " " ("yes" | "no") "."')["text"]
        self.check(text in (" yes.", " no."), f"a grammar is kept: {text!r}")
        self.same("a grammar that allows everything", PROMPT, "--grammar", "root ::= [\\x00-\\U0010FFFF]*")
        with_draft = self.run("Describe a person as JSON:", "-j", json.dumps(SCHEMA), "--lookup", "--guess-always", n=120)["text"]
        self.check(with_draft == self.run("Describe a person as JSON:", "-j", json.dumps(SCHEMA), n=120)["text"], "a schema with guesses writes the same")

    def score(self, answer):
        """The sum of the log-probabilities of the tokens that were written."""
        ids, file = answer["prompt_ids"] + answer["ids"], os.path.join(self.a.work, "logits.npy")
        subprocess.run([os.path.join(self.a.bin, "llm-cli"), "-m", self.model, "--tokens", ",".join(map(str, ids)), "-n", "0", "-c", "256", "--logits", file, "-q"], check=True, capture_output=True)
        total = 0.0
        with open(file, "rb") as f:
            head = f.read(10)
            n_vocab = ast.literal_eval(f.read(int.from_bytes(head[8:10], "little")).decode())["shape"][1]
            for place, id in enumerate(ids[1:]):
                row = array.array("f", f.read(4 * n_vocab))
                if place + 1 >= len(answer["prompt_ids"]):
                    most = max(row)
                    total += row[id] - most - math.log(sum(math.exp(x - most) for x in row))
        return total

    def beams(self):
        one = self.same("a search of one beam", PROMPT, "--beams", "1", n=24)
        many = self.run(PROMPT, "--beams", "4", n=24)
        again = self.run(PROMPT, "--beams", "4", n=24)
        sums = [self.score(x) for x in (many, one)]
        self.check(many["ids"] == again["ids"] != [] and (sums[0] >= sums[1] - 1e-3 or len(many["ids"]) != len(one["ids"])),
                   f"four beams find a text of the log-probability {sums[0]:.3f}, one of {sums[1]:.3f}")

    def saved(self):
        file = os.path.join(self.a.work, "prompt.cache")
        if os.path.exists(file):
            os.remove(file)
        plain = self.run(PROMPT)["text"]
        first, second = self.run(PROMPT, "--prompt-cache", file)["text"], self.run(PROMPT, "--prompt-cache", file)["text"]
        self.check(plain == first == second, "a saved prompt writes the same, the first time and again" if plain == first == second else f"a saved prompt writes {first!r} and {second!r}, and not {plain!r}")
        longer = PROMPT + " with a man who"
        self.check(self.run(longer)["text"] == self.run(longer, "--prompt-cache", file)["text"], "a longer prompt goes on from the saved one")

    def windows(self):
        full = self.run(PROMPT, "-c", "64", n=200)
        shifted = self.run(PROMPT, "-c", "64", "--on-full", "shift", "--keep", "8", "--ignore-eos", n=200)
        wide = self.run(PROMPT, "--ignore-eos", n=200)
        self.check(len(full["ids"]) < 64 and wide["text"].startswith(full["text"]), f"a text stops where its window ends, after {len(full['ids'])} tokens")
        self.check(len(shifted["ids"]) == 200 and shifted["text"].startswith(full["text"][:-8]), f"a shift goes on past the window, to {len(shifted['ids'])} tokens: ..{shifted['text'][-60:]!r}")

    def perplexity(self, program, *more):
        done = subprocess.run([program, "-m", self.model, "-f", os.path.join(ROOT, "docs/adapters.md"), "-c", "256", "--chunks", "6", "-t", str(self.a.threads), *more], capture_output=True,
                              text=True, errors="replace", stdin=subprocess.DEVNULL)
        found = re.search(r"Final estimate: PPL = ([0-9.]+)", done.stdout + done.stderr)
        return float(found[1]) if found else math.nan

    def vector(self):
        """Random directions, much shorter than the rows that they are added to."""
        shown = json.loads(subprocess.run([os.path.join(self.a.bin, "llm-gguf"), self.model, "--json"], capture_output=True, text=True, check=True).stdout)
        keys = {key["key"]: key.get("value") for key in shown["keys"]}
        arch, random_numbers = keys["general.architecture"], random.Random(1)
        n_embd, n_layer = (keys[f"{arch}.{name}"] for name in ("embedding_length", "block_count"))
        size = 0.5 if arch.startswith("gemma") else 0.25  # whose rows are longer
        rows = [(f"direction.{l}", "f32", [n_embd], struct.pack(f"<{n_embd}f", *(random_numbers.gauss(0, size) for _ in range(n_embd)))) for l in range(1, n_layer)]
        file = os.path.join(self.a.work, f"{arch}-vector.gguf")
        with open(file, "wb") as f:
            f.write(gguf([("general.architecture", "string", "controlvector"), ("controlvector.model_hint", "string", arch)], rows))
        return file

    def steering(self):
        file = self.vector()
        plain, whole, halves, nothing = (self.run(PROMPT, *more)["text"] for more in ((), ("--control-vector", file), ("--control-vector-scaled", f"{file}:0.5,{file}:0.5"),
                                                                                      ("--control-vector-scaled", f"{file}:0")))
        texts = plain == nothing and whole == halves != plain
        programs = {"here": os.path.join(self.a.bin, "llm-perplexity"), **({"in llama.cpp": os.path.join(self.a.llama, "llama-perplexity")} if self.a.llama else {})}
        ppl = {who: [self.perplexity(program, *more) for more in ((), ("--control-vector", file), ("--control-vector-scaled", file + ":-1.5", "--control-vector-layer-range", "4", "9"))]
               for who, program in programs.items()}
        ours = ppl["here"]
        near = all(abs(a / ours[0] * other[0] / b - 1) < 0.01 for other in ppl.values() for a, b in zip(ours, other)) and min(ours[1:]) > 1.02 * ours[0]  # what steering changes
        self.check(texts and near, "a control vector of random numbers: perplexity " + "; ".join(f"{who} {b:.4g} (all layers), {c:.4g} (some, scale -1.5), {a:.4g} (without)" for who, (a, b, c) in ppl.items()))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("models", "bin", "work"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--llama", default="")
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    faults = 0
    for name, file in MODELS.items():
        model = os.path.join(a.models, file)
        if not os.path.exists(model):
            print(f"skipped: {a.models} has no {file}")
            continue
        test = Test(a, name, model)
        for part in (test.guesses, test.forms, test.beams, test.saved, test.windows, test.steering):
            part()
        faults += test.faults
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
