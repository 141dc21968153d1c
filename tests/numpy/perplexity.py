#!/usr/bin/env python3
"""llm-perplexity's numbers, counted again in float64 from the logits that llm-cli dumps.

    perplexity.py --cli LLM_CLI --dir FOLDER BIN_FOLDER MODEL TEXT..

Chunks, their first token, which positions count, means and errors are written here from what docs/tools.md says; the file of
log-probabilities is read as tools/llm-perplexity/logits_file.h pictures it. Exit code 0, 1.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

N_CTX = 32
FIRST = N_CTX // 2
failed = False


def same(what, got, want, off=1e-6):
    global failed
    ok = abs(got - want) <= off * max(1.0, abs(want))
    print(f"{what:28} {got:14.9f} {want:14.9f} {'ok' if ok else 'FAILED'}")
    failed |= not ok


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def log_softmax(x):
    x = x.astype(np.float64)
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def chunk_logits(cli, model, chunk, folder):
    out = os.path.join(folder, "logits.npy")
    run(cli, "-m", model, "--tokens", ",".join(map(str, chunk)), "-n", "0", "-c", str(N_CTX), "--logits", out)
    return np.load(out)


def scored(cli, model, chunks, bos, folder):
    """Log-probabilities of all scored positions [n, n_vocab], and the tokens that came [n]."""
    rows, came = [], []
    for chunk in chunks:
        logits = chunk_logits(cli, model, [bos] + chunk[1:], folder)
        rows.append(log_softmax(logits[FIRST:N_CTX - 1]))
        came += chunk[FIRST + 1:]
    return np.concatenate(rows), np.array(came)


def mean_error(x):
    return x.mean(), np.sqrt(((x * x).mean() - x.mean() ** 2) / (len(x) - 1))


def read_saved(path):
    data = open(path, "rb").read()
    assert data[:8] == b"_logits_"
    n_ctx, n_vocab, n_chunk = np.frombuffer(data, "<i4", 3, 8)
    tokens = np.frombuffer(data, "<i4", n_chunk * n_ctx, 20)
    size = 4 + n_vocab + n_vocab % 2
    rows = np.frombuffer(data, "<u2", offset=20 + tokens.nbytes).reshape(-1, size)
    head = np.ascontiguousarray(rows[:, :4]).view("<f4").astype(np.float64)
    return n_ctx, n_chunk, tokens, head[:, :1] * rows[:, 4:4 + n_vocab] + head[:, 1:2]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--dir", default=".")
    p.add_argument("bin")
    p.add_argument("model")
    p.add_argument("texts", nargs="+")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        text, saved, coarse = (os.path.join(folder, name) for name in ("text.txt", "base.kld", "q4_0.gguf"))
        with open(text, "w") as f:
            f.write("".join(open(name).read() for name in a.texts).rstrip("\n"))
        ids = [int(x) for x in re.findall(r"\d+", run(f"{a.bin}/llm-tokenize", "-m", a.model, "--ids", "--no-parse-special",
                                                      "-f", text))]
        bos = ids[0]
        chunks = [ids[i:i + N_CTX] for i in range(0, len(ids) - N_CTX + 1, N_CTX)]
        run(f"{a.bin}/llm-quantize", "--allow-requantize", "--pure", a.model, coarse, "Q4_0")
        tool = [f"{a.bin}/llm-perplexity", "-o", "json", "--kl-divergence-base", saved, "-c", str(N_CTX)]
        got = json.loads(run(*tool, "-m", a.model, "-f", text))

        base, came = scored(a.cli, a.model, chunks, bos, folder)
        nll = -base[np.arange(len(came)), came]
        mean, error = mean_error(nll)
        same("chunks", got["n_chunk"], len(chunks))
        same("positions", got["n_scored"], len(nll))
        same("perplexity", got["ppl"], np.exp(mean))
        same("its error", got["ppl_error"], np.exp(mean) * error)
        same("after the first chunk", got["running"][0], np.exp(nll[:N_CTX - 1 - FIRST].mean()))

        n_ctx, n_chunk, tokens, codes = read_saved(saved)
        same("saved context", n_ctx, N_CTX)
        same("saved chunks", n_chunk, len(chunks))
        same("saved tokens differ", (tokens != np.array(chunks).ravel()).sum(), 0)
        reach = np.maximum(base.min(axis=1), base.max(axis=1) - 16)[:, None]
        same("saved log-probabilities", np.abs(codes - np.maximum(base, reach)).max() * 1e3, 0, 0.2)  # half of 16 / 65535

        got = json.loads(run(*tool, "-m", coarse, "--kl-divergence"))
        other, _ = scored(a.cli, coarse, chunks, bos, folder)
        at = np.arange(len(came))
        q, b = -other[at, came], -codes[at, came]
        kld = np.where(codes > -16, np.exp(codes) * (codes - other), 0).sum(axis=1)
        p_diff = np.exp(-q) - np.exp(-b)
        (mean_q, error_q), (mean_b, error_b) = mean_error(q), mean_error(b)
        cov = ((q * b).mean() - mean_q * mean_b) / (len(q) - 1)
        rms, (square, square_error) = np.sqrt((p_diff ** 2).mean()), mean_error(p_diff ** 2)
        top = (codes.argmax(axis=1) == other.argmax(axis=1)).mean()
        same("perplexity of q4_0", got["ppl"], np.exp(mean_q))
        same("perplexity of the base", got["ppl_base"], np.exp(mean_b))
        same("ln of their ratio", got["ln_ppl_ratio"], mean_q - mean_b)
        same("its error", got["ln_ppl_ratio_error"], np.sqrt(error_q ** 2 + error_b ** 2 - 2 * cov))
        same("correlation", got["correlation"], cov / error_q / error_b)
        same("mean KLD", got["kld"]["mean"], mean_error(kld)[0])
        same("its error", got["kld"]["mean_error"], mean_error(kld)[1])
        for name, fraction in (("max", 1), ("q99.9", .999), ("q95", .95), ("median", .5), ("q1", .01), ("min", 0)):
            same(f"KLD {name}", got["kld"][name], np.quantile(kld, fraction))
            same(f"delta p {name}", got["delta_p"][name], np.quantile(p_diff, fraction))
        same("mean delta p", got["delta_p"]["mean"], p_diff.mean())
        same("RMS delta p", got["rms_delta_p"], rms)
        same("its error", got["rms_delta_p_error"], 0.5 / rms * square_error)
        same("same top p", got["same_top_p"], top)
        same("its error", got["same_top_p_error"], np.sqrt(top * (1 - top) / (len(q) - 1)))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
