#!/usr/bin/env python3
"""How much models lose by each type, beside llama-quantize's files of the same types. One program measures both: llm-perplexity.

    quantization.py --models FOLDER --bin FOLDER --llama FOLDER --text FILE --other-text FILE --work FOLDER

--models has the GGUF files; --bin this project's programs; --llama those of llama.cpp (llama-quantize, llama-imatrix). --text is measured, and
the importance of columns is that in --other-text, which each project collects by its own program. Each model is first made f16 (its numbers stay
the same ones), and all files are made of that. Results are kept in WORK/results.jsonl, so that the same command goes on after an interruption;
--table prints them as Markdown, and ends. Exit code 1: a file of ours is larger than llama-quantize's and no better, or loses more than --most
of its divergence."""
import argparse
import json
import os
import subprocess
import sys

MODELS = ["SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"]
PLAIN = "Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS Q3_K_L Q3_K_M Q3_K_S IQ3_M IQ3_S Q2_K TQ2_0 TQ1_0".split()
WITH = "Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS Q3_K_L Q3_K_M Q3_K_S IQ3_M IQ3_S IQ3_XS IQ3_XXS Q2_K Q2_K_S IQ2_M IQ2_S IQ2_XS IQ2_XXS IQ1_M IQ1_S".split()


def call(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Bench:
    def __init__(self, a):
        self.a = a
        self.results = os.path.join(a.work, "results.jsonl")
        self.rows = []
        if os.path.exists(self.results):
            with open(self.results, encoding="utf-8") as f:
                self.rows = [json.loads(line) for line in f if line.endswith("\n")]

    def tool(self, name):
        return os.path.join(self.a.bin, name)

    def rival(self, name):
        return os.path.join(self.a.llama, name)

    def path(self, name):
        return os.path.join(self.a.work, name)

    def made(self, name, make):
        """The file of this name, made by make(path) if it is not there."""
        path = self.path(name)
        if not os.path.exists(path):
            make(path + ".part")
            os.rename(path + ".part", path)
        return path

    def row(self, key):
        return next((r for r in self.rows if r["key"] == key), None)

    def measure(self, key, path, base, **more):
        """Adds the row of a file's divergence from the f16 model."""
        out = json.loads(call(self.tool("llm-perplexity"), "-m", path, "--kl-divergence-base", base, "--kl-divergence", "-o", "json", "-t", str(self.a.threads)))
        row = {"key": key, "bytes": os.path.getsize(path), "ppl": out["ppl"], "out": out, **more}
        self.rows.append(row)
        with open(self.results, "a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")
        print(f"{key}: {row['bytes']} bytes, {summary(row)}", flush=True)

    def model(self, file):
        a, stem = self.a, file.split(".")[0].replace("-q4_k_m", "")
        source = os.path.join(a.models, file)
        f16 = self.made(stem + ".f16.gguf", lambda p: call(self.tool("llm-quantize"), "-q", "--allow-requantize", "--pure", source, p, "F16"))
        base = self.made(stem + f".{a.chunks}.kld", lambda p: call(self.tool("llm-perplexity"), "-m", f16, "-f", a.text, "--chunks", str(a.chunks), "--kl-divergence-base", p, "-t", str(a.threads)))
        chunks = ["--chunks", str(a.other_chunks)]
        if a.plain:
            self.types(stem, f16, base, False, PLAIN, None, None)
            return
        ours = self.made(stem + ".imatrix.gguf", lambda p: call(self.tool("llm-imatrix"), "-m", f16, "-f", a.other_text, "-o", p, "--no-ppl", "-t", str(a.threads), *chunks))

        def collect(p):  # the program goes by the ending
            call(self.rival("llama-imatrix"), "-m", f16, "-f", a.other_text, "-o", p + ".gguf", "--no-ppl", "-t", str(a.threads), "-ngl", "0", *chunks)
            os.rename(p + ".gguf", p)

        theirs = self.made(stem + ".llama-imatrix.gguf", collect)
        self.types(stem, f16, base, False, PLAIN, None, None)
        self.types(stem, f16, base, True, WITH, ours, theirs)

    def types(self, stem, f16, base, with_importance, types, ours, theirs):
        a = self.a
        for t in types:
            if a.types and t not in a.types:
                continue
            key = f"{stem} {t}{' importance' if with_importance else ''}"
            for who, command in (("ours", [self.tool("llm-quantize"), "-q", "-t", str(a.threads), *(["--imatrix", ours] if with_importance else []), f16]),
                                 ("llama.cpp", [self.rival("llama-quantize"), *(["--imatrix", theirs] if with_importance else []), f16])):
                if a.who not in ("both", who) or self.row(f"{key} {who}"):
                    continue
                out = self.path("quantized.gguf")
                call(*command, out, t, *([str(a.threads)] if who == "llama.cpp" else []))
                self.measure(f"{key} {who}", out, base, model=stem, type=t, importance=with_importance, who=who)
                os.remove(out)


def kld(row):
    return row["out"]["kld"]["mean"]


def summary(row):
    return f"divergence {kld(row):.5f}, perplexity {row['ppl']:.4f}"


def table(rows, most):
    """Prints the rows, and returns those that lose."""
    bad = []
    keys = []
    for r in rows:
        k = (r["model"], r["importance"], r["type"])
        if k not in keys:
            keys.append(k)
    find = {(r["model"], r["importance"], r["type"], r["who"]): r for r in rows}
    last = None
    for k in keys:
        ours, theirs = find.get((*k, "ours")), find.get((*k, "llama.cpp"))
        if not ours or not theirs:
            continue
        if k[:2] != last:
            print(f"\n{k[0]}, {'with' if k[1] else 'without'} importance\n\n| type | bytes | llama.cpp | divergence | llama.cpp | ratio | perplexity | llama.cpp |\n|---|---|---|---|---|---|---|---|")
            last = k[:2]
        ratio = kld(ours) / kld(theirs)
        lost = ratio > most or ours["bytes"] > theirs["bytes"]
        bad += [(*k, ratio)] if lost else []
        print(f"| {k[2]} | {ours['bytes'] / 1e6:.2f} MB | {theirs['bytes'] / 1e6:.2f} MB | {kld(ours):.5f} | {kld(theirs):.5f} | {ratio:.3f}{' *' if lost else ''} | {ours['ppl']:.3f} | {theirs['ppl']:.3f} |")
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("models", "bin", "llama", "text", "other-text", "work"):
        p.add_argument(f"--{name}", required=name == "work", default="")
    p.add_argument("--chunks", type=int, default=16, help="of --text, 512 tokens each, of which the second half is measured")
    p.add_argument("--other-chunks", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--most", type=float, default=0.97, help="the largest ratio of both divergences")
    p.add_argument("--plain", action="store_true", help="without importance only")
    p.add_argument("--model", help="only the model whose file's name begins so")
    p.add_argument("--who", choices=("both", "ours", "llama.cpp"), default="both", help="whose files are made")
    p.add_argument("--types", type=lambda s: s.upper().split(","), default=[], help="only these")
    p.add_argument("--table", action="store_true")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    bench = Bench(a)
    if not a.table:
        if not all((a.models, a.bin, a.llama, a.text, a.other_text)):
            p.error("--models, --bin, --llama, --text and --other-text are needed")
        for file in MODELS:
            if a.model and not file.startswith(a.model):
                continue
            if os.path.exists(os.path.join(a.models, file)):
                bench.model(file)
            else:
                print(f"skipped: {a.models} has no {file}")
    bad = table([r for r in bench.rows if not a.types or r["type"] in a.types], a.most)
    for model, importance, type_, ratio in bad:
        print(f"LOSES: {model} {type_}{' with importance' if importance else ''}: {ratio:.3f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
