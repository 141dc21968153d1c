#!/usr/bin/env python3
"""Layers and models that guess ahead, as users of llm-cli and llm-bench have them: the same text as without, and messages where there are none.

guesses.py TOOLS    TOOLS: the folder of the programs"""
import json
import random
import struct
import sys

import gguf_file
from checks import TMP, check, finish, path, put, runner

run, run_both = runner(sys.argv[1], cwd=TMP.name), runner(sys.argv[1], cwd=TMP.name, both=True)
DIM, LAYERS, CONTEXT = 32, 2, 128
TOKENS = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581" + w for w in "the a fox cat dog sat ran on mat".split()]
DESCRIPTOR = """arch foretelling
language 2
n_embd = .embedding_length
n_head = .attention.head_count
def block(x):
  attn_q [n_embd, n_embd]
  attn_k [n_embd, n_embd]
  attn_v [n_embd, n_embd]
  h = rms(x, 1e-6)
  return x + attention(heads(linear(h, attn_q), n_head), heads(linear(h, attn_k), n_head), heads(linear(h, attn_v), n_head)) * 0.2
token_embd [n_embd, n_vocab]
output [n_embd, n_vocab]
x = token_embd[token]
layer l < .block_count: x = block(x)
x = rms(x, 1e-6)
logits = linear(x, output)
"""
GUESSES = """n_layer = .block_count
stage draft over x(ahead = 1) "blk.{n_layer}.":
  return rms(block(token_embd[token] + x * 0.1), 1e-6)
guess = linear(draft, output)
"""


# For another model: from rows of its layers and its token embedding, and from what its attention stores, guesses in one place.
HEAD = """arch foretelling
language 2
n_embd = .embedding_length
ignore .block_count, .attention.head_count, "blk.*"
token_embd [n_embd, n_vocab]
input taken [2*n_embd] from layers([0, 1])
a, b = split(taken, n_embd, n_embd)
y = a + b
stage draft over y(ahead = 1, from = 1):
  h = heads(token_embd[token] + y * 0.1, 4)
  return rms(token_embd[token] + y * 0.1 + attention(h, h, h) * 0.2, 1e-6)
output [n_embd, n_vocab]
guess = linear(draft, output)
"""
STAYS = """arch foretelling
language 2
n_embd = .embedding_length
ignore .block_count, .attention.head_count, "blk.*"
output [n_embd, n_vocab]
input taken [3*n_embd] from layers(["state", "all"])
y, k, v = split(taken, n_embd, n_embd, n_embd)
stage draft over y(ahead = 1, from = 1, stay = 1):
  embd [n_embd, n_vocab] from "target:token_embd.weight"
  q = heads(embd[token] + y, 4)
  return rms(embd[token] + y * 0.1 + flat(attend(q, cache(heads(k, 4), heads(v, 4)))) * 0.2, 1e-6)
guess = linear(draft, output)
"""
BLOCK = """arch foretelling
language 2
n_embd = .embedding_length
ignore .block_count, .attention.head_count, "blk.*"
token_embd [n_embd, n_vocab]
input taken [2*n_embd] from layers([1, 2])
a, b = split(taken, n_embd, n_embd)
y = a + b
freq, mag = rope_scaled(n_embd / 4, 10000)
stage draft over y(ahead = 1, from = 1, block c < 5):
  h = heads(where(c, token_embd[token], y), 4)
  h = rope_half(h, freq, mag)
  return rms(token_embd[token] + attention(h, h, h), 1e-6)
output [n_embd, n_vocab]
guess = linear(draft, output)
"""
# One guess after the other, the first one in the newest token's place, from the best tokens of each; places mix with those before them.
TURN = BLOCK.replace("block c < 5)", "block c < 5, first = 0)").replace("  h = rope_half(h", "  h = heads(sum(recent(flat(h), 3), dim = 1), 4)\n  h = rope_half(h").replace(
    "guess = linear(draft, output)", """row, s = split(in_turn(concat(draft, linear(draft, output))), n_embd, n_vocab)
best  = topk(s, 6)
fit   = s[best] + reshape(sum(token_embd[best] * (token_embd[guess_before()] * row)), 6)
guess = fit
guess_token = best
if .chance ?? false: guess_chance = amax(softmax(fit))""")


def model(name, text, layers, parts=("token_embd", "output"), more=(), first=0):
    """Writes a small model with random weights, whose descriptor is in the file, with the weights of so many layers, or of those from `first` on."""
    rng, tensors = random.Random(7), []
    for tensor, shape in [(part, (DIM, len(TOKENS))) for part in parts] + [
            (f"blk.{l}.attn_{part}", (DIM, DIM)) for l in range(layers) for part in "qkv"]:
        n = shape[0] * shape[1]
        data = struct.pack(f"<{n}f", *(rng.gauss(0, 0.4) for _ in range(n)))
        if not tensor.startswith("blk.") or int(tensor.split(".")[1]) >= first:
            tensors.append((tensor + ".weight", "f32", list(shape), data))
    keys = [("general.architecture", "string", "foretelling"), ("general.descriptor", "string", text), ("foretelling.context_length", "u32", CONTEXT),
            ("foretelling.embedding_length", "u32", DIM), ("foretelling.block_count", "u32", LAYERS), ("foretelling.attention.head_count", "u32", 4),
            ("tokenizer.ggml.model", "string", "llama"), ("tokenizer.ggml.tokens", "string", TOKENS),
            ("tokenizer.ggml.scores", "f32", [-float(i) for i in range(len(TOKENS))]),
            ("tokenizer.ggml.token_type", "i32", [2, 3, 3] + [6] * 256 + [1] * (len(TOKENS) - 259)),
            ("tokenizer.ggml.bos_token_id", "u32", 1), ("tokenizer.ggml.eos_token_id", "u32", 2), ("tokenizer.ggml.unknown_token_id", "u32", 0), *more]
    changed = {key[1:]: (key[1:], *rest) for key, *rest in more if key.startswith("!")}
    put(name, gguf_file.gguf([changed.get(k[0], k) for k in keys if not k[0].startswith("!")], tensors))


def cli(*args, file="g.gguf", **more):
    return run("llm-cli", "-m", file, "-p", "the fox", "--ignore-eos", *args, **more)


model("g.gguf", DESCRIPTOR + GUESSES, LAYERS + 1)
for name, ahead in (("row", "1"), ("apart", "i + 1")):
    model(name + ".gguf", DESCRIPTOR + GUESSES.replace("ahead = 1", f"ahead = {ahead}, layer i < 3").replace("{n_layer}", "{n_layer + i}"), LAYERS + 3)
model("none.gguf", DESCRIPTOR, LAYERS)
model("head.gguf", HEAD, 0, ("output",))
model("stays.gguf", STAYS, 0, ("output",))
model("block.gguf", BLOCK, 0, ("output",), [("tokenizer.ggml.mask_token_id", "u32", 7)])
model("turn.gguf", TURN, 0, ("output",), [("tokenizer.ggml.mask_token_id", "u32", 7)])
model("chance.gguf", TURN, 0, ("output",), [("tokenizer.ggml.mask_token_id", "u32", 7), ("foretelling.chance", "bool", True)])
# A model, and the layers that guess for it in a file of their own, with all of its keys.
APART = DESCRIPTOR + "if (.nextn_predict_layers ?? 0) > 0:\n" + "".join("  " + line + "\n" for line in GUESSES.splitlines())
NEXTN = [("foretelling.nextn_predict_layers", "u32", 1)]
model("both.gguf", APART, LAYERS + 1, more=NEXTN)
model("lone.gguf", APART, LAYERS)
model("mtp.gguf", APART, LAYERS + 1, more=NEXTN, first=LAYERS)
model("maskless.gguf", BLOCK, 0, ("output",))
model("cut.gguf", DESCRIPTOR + GUESSES, LAYERS)

for args in (("-n", "60", "--temp", "0"), ("-n", "60", "--temp", "0", "-ub", "7", "-t", "2"), ("-n", "40", "-s", "3", "--temp", "0.7"),
             ("-n", "300", "--on-full", "shift", "--temp", "0"), ("-n", "40", "-s", "3", "--grammar", 'root ::= [a-z ]+')):
    want = cli(*args)
    for more in (("--draft",), ("--draft", "--draft-p-min", "0", "--draft-max", "5"), ("--spec-type", "draft-mtp"), ("-md",)):
        check(cli(*args, *more) == want, f"{args} {more}: another text")
    for file in ("row.gguf", "apart.gguf"):
        check(cli(*args, "--draft", "--draft-p-min", "0", file=file) == want, f"{args} {file}: another text")
    for head in ("head.gguf", "stays.gguf", "block.gguf", "turn.gguf", "chance.gguf"):
        check(cli(*args, "--draft", head, "--draft-p-min", "0", file="none.gguf") == cli(*args, file="none.gguf"), f"{args} --draft {head}: another text")
cli("-n", "60", "--temp", "0", "--draft", "--draft-p-min", "0", has="guesses")
for head in ("head.gguf", "stays.gguf", "block.gguf", "turn.gguf", "chance.gguf"):
    cli("-n", "60", "--temp", "0", "--draft", head, "--draft-p-min", "0", file="none.gguf", has="guesses")
check(cli("-n", "20", "-s", "1", "-c", "64", "--draft", "-cd", "32") == cli("-n", "20", "-s", "1", "-c", "64"), "a smaller context of the guesses")

def guessed(*args, file):
    """The text, and the line that says how many were right."""
    out, err = run_both("llm-cli", "-m", file, "-p", "the fox", "--ignore-eos", "-n", "60", "--temp", "0", "--guess-always", "--draft-p-min", "0", "-t", "1", *args)
    return out, [line.split()[:4] for line in err.splitlines() if line.startswith("guesses")]


check(guessed("--draft", "mtp.gguf", file="lone.gguf") == guessed("--draft", file="both.gguf"), "layers in a file of their own guess otherwise")
check(guessed("-md", "mtp.gguf", "--spec-type", "draft-mtp", "-b", "7", file="lone.gguf")[0] == cli("-n", "60", "--temp", "0", file="lone.gguf"), "layers in a file: the text")
model("wide.gguf", APART, LAYERS + 1, more=[*NEXTN, ("!foretelling.attention.head_count", "u32", 8)], first=LAYERS)
cli("-n", "4", "--draft", "wide.gguf", file="lone.gguf", code=1, has="layers that guess for another model: its foretelling.attention.head_count is 8, and that of lone.gguf is 4")
cli("-n", "4", "--draft", "mtp.gguf", file="both.gguf", code=1, has="both.gguf has all that mtp.gguf has: its own layers guess")
cli("-n", "4", file="mtp.gguf", code=1, has="layers that guess")
check(cli("-n", "20", "--temp", "0", "--spec-type", "draft-mtp", "--draft", "head.gguf", file="none.gguf") == cli("-n", "20", "--temp", "0", file="none.gguf"),
      "--spec-type draft-mtp and a file")
cli("-n", "20", "--temp", "0", "--draft", "head.gguf", "--spec-type", "draft-mtp", "--guess-always", file="none.gguf", has="guesses")
cli("-n", "20", "--draft", "head.gguf", "--draft", "stays.gguf", file="none.gguf", code=2, has="has only one value")
for kind in ("dflash", "dspark", "simple", "eagle3"):
    cli("-n", "20", "--temp", "0", "-md", "turn.gguf", "--spec-type", "draft-" + kind, file="none.gguf", has="guesses")
for wrong in ("foo", "draft-dflsh", "draft-eagle4", "ngram-mode", "DRAFT-", "ngram-map-k4v2"):
    cli("-n", "4", "--spec-type", wrong, code=2, has=f"'--spec-type {wrong}': its values are none, ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod, ngram-cache, draft-simple, "
        "draft-eagle3, draft-dflash, draft-dspark and draft-mtp")
cli("-n", "4", "--reasoning-format", "deepsek", code=2, has="--reasoning-format: 'deepsek' is not one of")
cli("-n", "4", "--spec-type", code=2, has="its values are none, ngram-simple")
cli("-n", "4", "--spec-type", "ngram-mod,draft-mtp", code=2, has="not several at once")
cli("-n", "4", "--guess-always", code=2, has="--guess-always needs --lookup or --draft")
cli("-n", "4", file="head.gguf", code=1, has="it guesses for another one, -m MODEL --draft head.gguf")
cli("-n", "4", "--draft", "maskless.gguf", file="none.gguf", code=1, has="key tokenizer.ggml.mask_token_id is missing, but the model guesses in blocks")
cli("-n", "4", "--draft", file="none.gguf", code=1, has="--draft without a model: foretelling: the model has no layers that guess")
cli("-n", "4", file="cut.gguf", code=1, has="tensor blk.2.attn_q.weight is missing")
cli("-n", "4", "--draft", "", code=2, has="--draft: the value MODEL is empty")
cli("-n", "4", "--draft", "--lookup", code=2, has="--lookup and --draft cannot be used together")
cli("-n", "4", "--draft-max", "3", code=2, has="--draft-max needs --lookup or --draft")
cli("-n", "4", "--draft", path("missing.gguf"), code=1, has="missing.gguf")

# --- llm-bench: what they gain


def bench(*args, file="none.gguf", **more):
    """The first result of tests of one run without an unmeasured one, or what was printed if that is no JSON."""
    usual = [x for flag, value in (("-r", "1"), ("-o", "json")) if flag not in args for x in (flag, value)]
    out = run("llm-bench", "-m", file, "-t", "1", "--no-warmup", *usual, *args, **more)
    return json.loads(out)[0] if out.startswith("[") else out


put("fox.txt", b"the fox\n")
put("dog.txt", b"a dog sat on")
put("nothing.txt", b"\n")
FOX = ("-n", "60", "-f", "fox.txt")
for args, file, kind in ((("--draft", "head.gguf"), "none.gguf", "draft"), (("-md", "stays.gguf"), "none.gguf", "draft"), (("--draft", "block.gguf"), "none.gguf", "draft"),
                         (("--draft", "turn.gguf", "--spec-type", "draft-dflash"), "none.gguf", "draft"), (("--draft",), "g.gguf", "own"), (("--draft",), "row.gguf", "own"),
                         (("--draft", "mtp.gguf"), "lone.gguf", "draft"), (("--spec-type", "draft-mtp"), "g.gguf", "own"), (("--spec-type", "ngram-mod"), "none.gguf", "lookup")):
    always = args if kind == "lookup" else (*args, "--draft-p-min", "0")
    text, err = run_both("llm-cli", "-m", file, "-p", "the fox", "-n", "60", "--temp", "0", "-t", "1", "--guess-always", *always)
    line = [line.split() for line in err.splitlines() if line.startswith("guesses")][0]
    row = bench(*FOX, "--guess-always", *always, file=file)
    check(row["guesses"] == kind and row["n_texts"] == 1 and row["n_texts_differ"] == 0, f"llm-bench {args}: what was measured", row)
    check((row["n_guessed"], row["n_right"]) == (int(line[1]), int(line[3])), f"llm-bench {args}: other guesses than llm-cli's", line, row)
    check(row["n_tokens"] <= 59 and abs(row["tokens_per_step"] - row["n_tokens"] / (row["n_tokens"] - row["n_right"])) < 1e-5, f"llm-bench {args}: tokens of a step", row)
    check(abs(row["ratio"] - row["samples_ts"][0] / row["samples_plain_ts"][0]) < 1e-4, f"llm-bench {args}: the ratio", row)

# A draft that knows: every guess is right, so that a step gives as many tokens as it guesses, and one.
row = bench("-n", "25", "-f", "fox.txt", "--draft", "none.gguf", "--draft-p-min", "0", "--draft-max", "3", "--guess-always", "-ub", "8")
check((row["n_tokens"], row["tokens_per_step"], row["share_right"], row["share_declined"]) == (24, 4, 1, 0), "a draft that knows", row)
row = bench("-n", "8,9", "-f", "fox.txt", "-f", "dog.txt", "--lookup", "-r", "2")
check(row["n_texts"] == 2 and row["n_gen"] == 8 and len(row["samples_plain_ts"]) == 2, "two texts", row)
check(bench("-n", "8", "--lookup")["n_texts"] == 4, "the texts of the program")
check("tokens_per_step" not in bench("-n", "8", "-p", "0"), "a test without guesses has columns of guesses")
table = bench("-n", "8", "--draft", "head.gguf", "-o", "md")
check("| tg8 draft " in table and "plain t/s" in table and "4 of 4 texts are the same with guesses as without" in table, "a table", table)
check(all("tokens_per_step" in bench("-n", "8", "--lookup", "-o", form) for form in ("csv", "jsonl", "sql")), "other formats")
old = bench("-n", "8", "--draft", "head.gguf", "-o", "jsonl")
put("old.json", old.encode())
check("tg8 draft" in run("llm-bench", "--compare", "old.json", "old.json"), "--compare")
put("new.json", bench("-n", "8", "--draft", "none.gguf", "-o", "jsonl").encode())
check("tg8 draft" not in run("llm-bench", "--compare", "old.json", "new.json", code=2), "--compare takes the guesses of two drafts as the same test")
table = run("llm-bench", "-m", "none.gguf", "-r", "1", "--lookup", "-f", "-", "-n", "8,9", text=b"the fox")
check("tg8 lookup" in table and "tg9 lookup" in table, "standard input for two tests", table)
for n, times in ("8,9", 0), ("8,130,131", 1):  # the model was trained on 128
    err = run_both("llm-bench", "-m", "none.gguf", "-r", "1", "--no-limits", "--lookup", "-f", "fox.txt", "-n", n)[1]
    check(err.count("the model was trained on 128 tokens at once") == times, f"-n {n}: texts beyond what the model was trained on", err)
for code, words, args in ((2, "-md and -p cannot be used together: nothing is guessed of a prompt", ("-md", "head.gguf", "-p", "8")),
                          (2, "--lookup and -pg cannot be used together", ("--lookup", "-pg", "4,4")), (2, "--lookup and -d cannot be used together: what stands before is a text", ("--lookup", "-d", "4")),
                          (2, "--lookup and --sequences cannot be used together", ("--lookup", "--sequences", "1,2")), (2, "--lookup and --profile cannot be used together", ("--lookup", "--profile")),
                          (2, "--draft guesses what is generated, and -n is 0", ("--draft", "head.gguf", "-n", "0")), (2, "-n must be at least 2", ("--lookup", "-n", "8,1")), (2, "-f is the text with which guesses are measured", ("-f", "fox.txt")),
                          (2, "--draft-max needs --lookup or --draft", ("--draft-max", "3")), (2, "--lookup and --draft cannot be used together", ("--lookup", "--draft", "head.gguf")),
                          (2, "'--spec-type foo': its values are none, ngram-simple", ("--spec-type", "foo")), (1, "-f nothing.txt: it is empty", ("--lookup", "-f", "nothing.txt")),
                          (1, "missing.txt", ("--lookup", "-f", "missing.txt")), (1, "missing.gguf", ("--draft", "missing.gguf")),
                          (1, "tg128 own: --draft without a model: foretelling: the model has no layers that guess", ("--draft",)),
                          (1, "key tokenizer.ggml.mask_token_id is missing", ("--draft", "maskless.gguf"))):
    run("llm-bench", "-m", "none.gguf", "-r", "1", *args, code=code, has=words)
sys.exit(finish())
