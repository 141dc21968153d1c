"""llm-cli on a terminal: how far a prompt is, Ctrl-C in it, an error after text, colours. terminal.py LLM-CLI"""
import json, os, re, signal, subprocess, sys, tempfile

import terminals
from checks import check, finish

CLI = sys.argv[1]
os.environ.pop("NO_COLOR", None)
os.environ["TERM"] = "xterm"


def Terminal(*args, **how):
    return terminals.Terminal(CLI, *args, **how)


def done_tokens(seen):
    found = re.search(rb"prompt +[0-9.]+ ms +([0-9]+) tokens", seen)
    return int(found.group(1)) if found else -1


LONG = ["--tokens", ",".join(["5"] * 1500), "-c", "2048", "-n", "0"]

# a prompt in many pieces, slow enough for a signal to come in the middle
t = Terminal(*LONG, "--device", "reference", "-ub", "16")
check(t.read_until(rb"prompt [0-9]+ %, [0-9]+ of 1500 tokens"), "a long prompt shows no progress", t.seen)
check(t.read_until(rb"\rprompt [0-9]+ %, (?!0)[0-9]+ of 1500 tokens"), "progress does not go on", t.seen)
os.kill(t.pid, signal.SIGINT)
check(t.end() == 130, "Ctrl-C in a prompt: not 130", t.seen)
n = done_tokens(t.seen)
check(0 < n < 1500 and n % 16 == 0, "after Ctrl-C the timings count %d tokens" % n, t.seen)
check(b"\r\x1b[K" in t.seen, "the progress line stays", t.seen)

# in the middle of a piece: it stops between two steps, so that none of its tokens is done
t = Terminal(*LONG, "--device", "reference", "-ub", "1499")
check(t.read_until(rb"prompt 0 %, 0 of 1500 tokens"), "a long step of a prompt shows no progress", t.seen)
os.kill(t.pid, signal.SIGINT)
check(t.end() == 130, "Ctrl-C in a piece of a prompt: not 130", t.seen)
check(done_tokens(t.seen) == 0, "Ctrl-C waits for the end of a piece", t.seen)

# the same prompt, whole
t = Terminal(*LONG, "-ub", "16")
check(t.end() == 0 and done_tokens(t.seen) == 1500, "a whole prompt is not counted", t.seen)

# an error after text begins a line
t = Terminal("-p", "Once upon", "-n", "0", "--logits", "/dev/full")
check(t.end() == 1, "--logits to a full disk: not 1", t.seen)
check(b"Once upon\x1b[0m\r\nllm-cli: --logits: " in t.seen, "an error stands in the middle of the text", t.seen)

# free text in a table is broken where the terminal ends, and in a pipe it is not
t = Terminal("--plan=nodes", columns=80)
check(t.end() == 0, "--plan: not 0", t.seen)
details = [line for line in t.seen.decode().splitlines() if line.startswith(" ")]
check(details and max(map(len, details)) <= 80, "--plan is wider than the terminal", t.seen)
piped = subprocess.run([CLI, "--plan=nodes"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.splitlines()
check(max(map(len, piped)) > 80 and len(piped) < len(t.seen.splitlines()), "--plan in a pipe is broken into lines", piped)

# so are notes, at spaces
wide = ["-m", os.path.join(os.path.dirname(__file__), "../../models/builtin/stories.gguf"), "-p", "Once upon", "-n", "1", "--device", "none", "--repack-cache=/none/of/these/folders/is/there"]
t = Terminal(*wide, columns=60)
check(t.end() == 0, "a note: not 0", t.seen)
notes = t.seen.decode().partition("llm-cli: note: ")[2].partition("\r\n\r\n")[0].splitlines()
check(len(notes) > 1, "there is no long note", t.seen)
check(all(len(n) <= 60 or " " not in n.strip() for n in notes[1:]) and notes[1].startswith("    "), "a note is wider than the terminal", t.seen)
piped = subprocess.run([CLI, *wide], stdin=subprocess.DEVNULL, capture_output=True, text=True).stderr
check(any(n.startswith("llm-cli: note: ") and len(n) > 80 for n in piped.splitlines()), "a note in a pipe is broken", piped)

# and an error, in which neither a flag and its value nor "key = value" come apart, at any width
for columns in range(40, 100):
    for layers, whole in ("4", "--ignore-tensor 'blk.4.*'"), ("7", "llama.block_count = 7"):
        t = Terminal("--override-kv", "llama.block_count=int:" + layers, columns=columns)
        check(t.end() == 1, "a wrong block_count: not 1", t.seen)
        check(any(whole in line for line in t.seen.decode().split("\r\n")), f"{whole} is broken at {columns} columns", t.seen)

# a message that is typed before the first prompt appears is sent, too
t = Terminal("-m", "builtin:chat", "-cnv", "-n", "5")
t.type(b"Hi\r")
check(t.read_until(rb"> "), "no conversation begins", t.seen)
while t.more(0.8):
    pass
check(b"ended after 5 tokens" in t.seen, "a message typed early is not sent", t.seen)
os.kill(t.pid, signal.SIGKILL)
t.end()

# weights are repacked after the first token; in a conversation, while nothing is typed
with tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, "trace.json")

    def spans(*args):
        subprocess.run([CLI, "-p", "Once upon", "--trace", trace, *args], stdin=subprocess.DEVNULL, capture_output=True)
        return [e["name"] for e in json.load(open(trace))]

    first = [name for name in spans("-n", "1") if name in ("repack", "run")]
    later = spans("-n", "40")
    check("run" in first and "repack" not in first, "weights are repacked before the first token", first)
    if "repack" in later:  # these instruction sets have a layout of their own
        t = Terminal("-m", "builtin:chat", "-cnv", "--trace", trace)
        check(t.read_until(rb"> "), "no conversation begins", t.seen)
        while t.more(0.8):
            pass
        t.type(b"\x04")
        check(t.end() == 0, "Ctrl-D at the first message: not 0", t.seen)
        names = [e["name"] for e in json.load(open(trace))]
        check("repack" in names and "run" not in names, "a conversation repacks nothing while it waits", names)

# the prompt has a colour on a terminal, unless NO_COLOR, TERM or --color say otherwise
SHORT = ["-p", "Once upon", "-n", "0"]
PLAIN, COLORED = b"Once upon\r\n", b"\x1b[33mOnce upon\x1b[0m\r\n"
for name, value, args, expected in [
    ("TERM", "xterm", [], COLORED),
    ("TERM", "dumb", [], PLAIN),
    ("NO_COLOR", "1", [], PLAIN),
    ("NO_COLOR", "", [], COLORED),
    ("NO_COLOR", "1", ["--color", "always"], COLORED),
    ("NO_COLOR", "1", ["--color"], PLAIN),
    ("TERM", "xterm", ["--color", "never"], PLAIN),
    ("TERM", "xterm", ["--color=off"], PLAIN),
    ("TERM", "dumb", ["--color", "on"], COLORED),
]:
    os.environ.pop("NO_COLOR", None)
    os.environ["TERM"] = "xterm"
    os.environ[name] = value
    t = Terminal(*SHORT, *args)
    check(t.end() == 0 and t.seen.startswith(expected), "%s=%s %s: colours" % (name, value, args), t.seen)

# --help is as wide as the terminal, from 40 to 100 columns; COLUMNS counts only where the terminal has no size
os.environ["COLUMNS"] = "44"
for columns, least, most in [(0, 40, 44), (60, 55, 60), (90, 85, 90), (250, 95, 100)]:
    t = Terminal("--help", "machine", columns=columns)
    check(t.end() == 0, "--help on a terminal", t.seen)
    widest = max(map(len, t.seen.decode().splitlines()))
    check(least <= widest <= most, f"--help on a terminal of {columns} columns has {widest}")
sys.exit(finish())
