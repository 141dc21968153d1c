"""The progress of the tools on a terminal, and none elsewhere; the context that fits into memory. progress.py BIN-FOLDER SOURCE-FOLDER"""
import os, re, signal, subprocess, sys, tempfile

import terminals
from checks import check, finish

BIN, SOURCE = sys.argv[1], sys.argv[2]
TMP = tempfile.mkdtemp()
MODEL = SOURCE + "/models/builtin/stories.gguf"
os.environ["GGL_PROGRESS_DELAY"] = "0"  # each change is drawn at once
os.environ["TERM"] = "xterm"


def on_terminal(tool, *args, env={}, columns=80, until=None):
    """Runs a tool on a terminal, to its end or until it has written something; returns its exit code and what it wrote."""
    return terminals.run(BIN + "/" + tool, *args, env={**os.environ, **env}, columns=columns, stop=until)


def shown(text):
    """The lines of a terminal after a text with \\r and \\033[K, and all that it showed meanwhile."""
    lines, meanwhile, at = [""], [], 0
    for part in re.split(r"(\r\n|\n|\r|\x1b\[K)", text):
        if part in ("\r\n", "\n"):
            lines.append("")
            at = 0
        elif part == "\r":
            meanwhile.append(lines[-1])
            at = 0
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:at]
        else:
            lines[-1] = lines[-1][:at] + part + lines[-1][at + len(part) :]
            at += len(part)
    return lines, meanwhile


def shows(pattern, *args, code=0):
    got, seen = on_terminal(*args)
    lines, meanwhile = shown(seen)
    name = " ".join(os.path.basename(a) for a in args[:4])
    check(got == code, "%s: exit code %d" % (name, got), seen)
    check(any(re.search(pattern, m) for m in meanwhile), "%s: no progress '%s'" % (name, pattern), seen)
    check(not any(re.search(pattern, l) for l in lines), "%s: progress stays" % name, lines)
    return lines


def tmp(name):
    return TMP + "/" + name


TEXT = tmp("text")
with open(TEXT, "w") as f:
    f.write("Once upon a time there was a little girl. " * 60)
with open(tmp("lines"), "w") as f:
    f.write('"Once upon a time"\n' * 20)
with open(tmp("schema.json"), "w") as f:
    f.write('{"schema": {"type": "integer"}, "tests": [{"data": 1, "valid": true}]}')

IDS = ",".join(["5"] * 200)
# weights are prepared before the first token if a file is to keep them
shows(r"^loading weights \d+ %", "llm-cli", "-m", MODEL, "--tokens", IDS, "-n", "1", "--repack-cache=" + tmp("repacked"))
shows(r"^prompt \d+ %, \d+ of 200 tokens", "llm-cli", "-m", MODEL, "--tokens", IDS, "-n", "1", "-ub", "16")
cache = ["--prompt-cache", tmp("cache")]
shows(r"writing .*cache", "llm-cli", "-m", MODEL, "--tokens", IDS, "-n", "1", *cache)
shows(r"prompt: reading .*cache", "llm-cli", "-m", MODEL, "--tokens", IDS, "-n", "1", *cache)
shows(r"^quantizing \d+ %, .* of ", "llm-quantize", "--allow-requantize", MODEL, tmp("q.gguf"), "q4_0")
lines = shows(r"^perplexity \d+ %, \d of \d chunks", "llm-perplexity", "-m", MODEL, "-f", TEXT, "-c", "64", "--chunks", "3")
check(any(re.match(r"\[1\][\d.]+,\[2\][\d.]+,\[3\]", l) for l in lines), "llm-perplexity: its values are not whole", lines)
shows(r"^importance \d+ %, \d of \d chunks", "llm-imatrix", "-m", MODEL, "-f", TEXT, "-c", "64", "--chunks", "3", "--no-ppl", "-o", tmp("i.gguf"))
shows(r"^measuring \d+ %, \d of 2 tests: pp8 \d+ %, \d of 2 runs", "llm-bench", "-m", MODEL, "-p", "8", "-n", "2", "-r", "2", "--no-limits")
lines = shows(r"^measuring \d+ %, \d+ of \d+ measurements", "llm-bench", "ops", "--kernel", "EXP", "--seconds", "0.0001", "--no-limits")
check(any(re.search(r"\d+ measurements? of 0.0001 s \(--seconds\), about \d+ s in all", l) for l in lines), "ops does not say how long it takes", lines)
shows(r"^cpu: tanh", "llm-bench", "conform", "--backend", "cpu", "--op", "tanh", "--quick")
shows(r"^writing .* \d+ %", "llm-bench", "make", "llama-3.2-1b", "q4_0", tmp("made.gguf"), "--layers", "1", "--vocab", "512")
shows(r"^comparing \d+ %, \d+ of \d+ nodes", "llm-arch", "verify", MODEL, "-n", "2")
shows(r"^checking llama.arch \d+ %, \d+ of \d+ made-up models", "llm-arch", "check", "llama")
shows(r"\d+ of \d+ readings", "llm-arch", "doctor", MODEL, "--text", TEXT, "-n", "16")
shows(r"^tokenizing", "llm-tokenize", "-m", MODEL, "-f", TEXT)
shows(r"1 schemas", "llm-grammar", "--bench", tmp("schema.json"))

# a signal that ends the tool erases the line
code, seen = on_terminal("llm-arch", "verify", MODEL, until=b"nodes")
check(code == -signal.SIGINT and not any("nodes" in l for l in shown(seen)[0]), "llm-arch: a signal leaves progress, or exit code %d" % code, seen)

# the server loads in a thread
if os.path.exists(BIN + "/llm-server"):
    code, seen = on_terminal("llm-server", "-m", MODEL, "--port", "0", until=b"answers at once")
    lines, meanwhile = shown(seen)
    check(code in (0, 130) and any(re.search(r"^loading .*: weights \d+ %", m) for m in meanwhile), "llm-server: no progress, or exit code %d" % code, seen)
    check(not any("weights" in l for l in lines), "llm-server: progress stays", lines)

# tables fit 100 columns
for args in (
    ["-m", MODEL, "-p", "8", "-n", "2", "-r", "2", "-t", "1,2", "-b", "64,128", "-ub", "8,16", "-ctk", "f16,q8_0"],
    ["ops", "--shape", "256x32", "--columns", "6", "--seconds", "0.0001"],
    ["conform", "--backend", "cpu", "--op", "linear"],
):
    if args[0] == "conform":
        args += ["--quick"]
    out = subprocess.run([BIN + "/llm-bench", *args], capture_output=True, text=True, env=dict(os.environ, GGL_BRIEF_LIMITS="1"))
    widest = max(out.stdout.splitlines(), key=len)
    check(out.returncode == 0 and len(widest) <= 100, "llm-bench %s: a line has %d columns" % (args[0], len(widest)), widest + out.stderr)

# narrow terminals cut the line; dumb ones and pipes get none
code, seen = on_terminal("llm-cli", "-m", MODEL, "--tokens", IDS, "-n", "1", columns=20)
check(max(len(m) for m in shown(seen)[1]) < 20, "the line is longer than the terminal", seen)
code, seen = on_terminal("llm-cli", "-m", MODEL, "--tokens", IDS, "-n", "1", env={"TERM": "dumb"})
check("\x1b[K" not in seen and "loading" not in seen, "progress on a dumb terminal", seen)
out = subprocess.run([BIN + "/llm-cli", "-m", MODEL, "--tokens", IDS, "-n", "1"], capture_output=True, text=True)
check(out.returncode == 0 and "\r" not in out.stderr and "loading" not in out.stderr, "progress in a pipe", out.stderr)

# the context that fits into memory; the model has one of 131072 tokens, 2 KiB each
made, small = tmp("made.gguf"), str(200 << 20)


def context(*args, memory=small):
    out = subprocess.run(
        [BIN + "/llm-cli", "-m", made, "--tokens", "1", "--plan", *args], capture_output=True, text=True, env=dict(os.environ, GGL_MEMORY_LEFT=memory)
    )
    found = re.search(r"context +(\d+)", out.stdout)
    check(out.returncode == 0 and found, "llm-cli --plan", out.stderr)
    return int(found.group(1)) if found else 0, out.stderr


n, note = context()
check(256 <= n < 131072 and n % 256 == 0, "the context does not fit: %d" % n, note)
check("the KV cache of 131072 tokens takes " in note and "the context is %d tokens (-c N" % n in note and "-ctk q8_0" in note, "no note on the context", note)
half, _ = context("-ctk", "q8_0", "-ctv", "q8_0")
check(half > 1.5 * n, "q8_0 gives %d tokens, f16 %d" % (half, n))
drafted, _ = context("--draft", made)
check(drafted < n, "the draft's cache is not counted: %d tokens, without it %d" % (drafted, n))
n, note = context("-c", "131072")
check(n == 131072 and "would fit" in note, "-c was changed to %d, or there is no note" % n, note)
out = subprocess.run([BIN + "/llm-cli", "-m", made, "--tokens", "1", "-c", "999999999", "-n", "1"], capture_output=True, text=True)
check(("do not fit" in out.stderr) != (" available; " in out.stderr), "a context beyond all memory: a note and an error, or neither", out.stderr)
n, note = context(memory="1000")
check(n == 2048 and "needs more memory" in note and "-ctk" not in note, "without memory the context is %d tokens" % n, note)
n, note = context(memory=str(1 << 40))
check(n == 131072 and "KV cache" not in note, "with enough memory: %d" % n, note)
subprocess.run(["rm", "-r", TMP])
sys.exit(finish())
