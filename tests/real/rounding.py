#!/usr/bin/env python3
"""How much products lose that round their inputs to 8 bits, beside llama.cpp: a quantized file against its own numbers as f16, for which each program is
compared with itself. Weights are the same numbers in both files, so that what differs is rounding alone.

    rounding.py --models FOLDER --bin FOLDER --llama FOLDER --text FILE --work FOLDER [--types Q4_1,Q4_0,..] [--chunks 64]

--models has SmolLM2-135M-Instruct.Q4_1.gguf. Results are kept in WORK/rounding.jsonl, and the same command goes on after an interruption. Exit code 1: the
divergence, or the spread of the probabilities' change, is larger here by more than twice the error of the measurement."""
import argparse
import json
import os
import re
import subprocess
import sys

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def call(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def ours(a, base, f16, file):
    tool = os.path.join(a.bin, "llm-perplexity")
    call(tool, "-m", f16, "-f", a.text, "--chunks", str(a.chunks), "--kl-divergence-base", base, "-t", str(a.threads), "-q")
    x = json.loads(call(tool, "-m", file, "--kl-divergence-base", base, "--kl-divergence", "-o", "json", "-t", str(a.threads), "-q"))
    return {"kld": x["kld"]["mean"], "kld_error": x["kld"]["mean_error"], "rms": 100 * x["rms_delta_p"], "rms_error": 100 * x["rms_delta_p_error"], "top": 100 * x["same_top_p"]}


def theirs(a, base, f16, file):
    tool = os.path.join(a.llama, "llama-perplexity")
    call(tool, "-m", f16, "-f", a.text, "--chunks", str(a.chunks), "--kl-divergence-base", base, "-t", str(a.threads))
    text = call(tool, "-m", file, "--kl-divergence-base", base, "--kl-divergence", "-t", str(a.threads))

    def pair(name):
        found = re.search(name + r"\s*:\s*(-?[\d.]+)\s*(?:±|\+/-)\s*([\d.]+)", text)
        return [float(x) for x in found.groups()]

    (kld, kld_error), (rms, rms_error), (top, _) = pair("Mean\\s+KLD"), pair("RMS Δp"), pair("Same top p")
    return {"kld": kld, "kld_error": kld_error, "rms": rms, "rms_error": rms_error, "top": top}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("models", "bin", "llama", "text", "work"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--types", type=lambda s: s.upper().split(","), default="Q4_1,Q4_0,Q5_0,Q5_1,Q8_0,IQ4_NL,Q4_K_M".split(","))
    p.add_argument("--chunks", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    source, results = os.path.join(a.models, MODEL), os.path.join(a.work, "rounding.jsonl")
    if not os.path.exists(source):
        print(f"skipped: {a.models} has no {MODEL}")
        return 0
    os.makedirs(a.work, exist_ok=True)
    rows = []
    if os.path.exists(results):
        with open(results, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
    quantize = [os.path.join(a.bin, "llm-quantize"), "-q", "--allow-requantize"]
    bad = 0
    print("| type | divergence | llama.cpp | RMS of the probabilities' change, % | llama.cpp | same best token, % | llama.cpp |\n|---|---|---|---|---|---|---|")
    for t in a.types:
        row = next((r for r in rows if r["type"] == t and r["chunks"] == a.chunks), None)
        if not row:
            file, f16, base = (os.path.join(a.work, f"rounding.{end}") for end in ("gguf", "f16.gguf", "kld"))
            if t == "Q4_1":
                file = source
            else:
                call(*quantize, source, file, t)
            call(*quantize, "--pure", file, f16, "F16")
            row = {"type": t, "chunks": a.chunks, "ours": ours(a, base, f16, file), "theirs": theirs(a, base, f16, file)}
            os.remove(base)
            with open(results, "a", encoding="utf-8") as f:
                f.write(json.dumps(row) + "\n")
        x, y = row["ours"], row["theirs"]
        lost = [n for n in ("kld", "rms") if x[n] - y[n] > 2 * max(x[n + "_error"], y[n + "_error"])]
        bad += bool(lost)
        print(f"| {t} | {x['kld']:.5f} ± {x['kld_error']:.5f} | {y['kld']:.5f} ± {y['kld_error']:.5f} | {x['rms']:.3f} ± {x['rms_error']:.3f} | {y['rms']:.3f} ± {y['rms_error']:.3f} | {x['top']:.2f} | {y['top']:.2f} |{' LOSES' if lost else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
