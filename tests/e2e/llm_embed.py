#!/usr/bin/env python3
"""llm-embed as users run it: vectors and scores of texts, prompts, rankings, arrays that are completed after an interruption, mistakes.

llm_embed.py TOOLS MODEL    TOOLS: the folder of the programs; MODEL: models/builtin/stories.gguf"""
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import unicodedata

from checks import TMP, check, finish, path, put, runner
import eye_file
import gguf_file
from encoder_file import CONTEXT, DIM, encoder, read_npy, table

TOOLS, STORIES = sys.argv[1:3]
TOOL = os.path.join(os.path.abspath(TOOLS), "llm-embed")
run_tool = runner(TOOLS, cwd=TMP.name)
LINES = ["the fox sleeps", "a cat", "", "the king eats a big cake in the garden.", "dog", "the queen runs on the small house and a cat sits in the pond"]
CLS, SEP = 2, 3


def run(*args, code=0, has="", text=b""):
    return run_tool("llm-embed", *args, code=code, has=has, text=text)


def array(*args, text=b""):
    """The rows of the array that a run writes."""
    run(*args, "-o", "out.npy", text=text)
    rows = read_npy(path("out.npy"))[2]
    os.remove(path("out.npy"))
    return rows


def objects(*args, text=b"", code=0, has=""):
    return [json.loads(line) for line in run(*args, text=text, code=code, has=has).splitlines()]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def near(a, b, most=1e-5):
    return len(a) == len(b) and all(abs(x - y) <= most for x, y in zip(a, b))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def ids_of(model, text):
    return json.loads(run_tool("llm-tokenize", "-m", model, "--ids", "-p", text))


def classifiers():
    """{arch}.classifier.pooling_type and .activation: the row that a classifier's head reads, and what it does to it; computed again here."""
    acts = {"tanh": math.tanh, "silu": lambda x: x / (1 + math.exp(-x)), "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2}
    _, tensors = gguf_file.read_gguf(path("r.gguf"))
    numbers = {name: struct.unpack_from(f"<{math.prod(shape)}f", data) for name, (_, shape, data) in tensors.items() if name.startswith("cls.")}
    rows = {kind: array("-m", "r.gguf", "-p", "a cat", "--pooling", pooling, "--no-normalize")[0] for kind, pooling in ((1, "mean"), (2, "cls"))}

    def layer(name, x):
        w, b = numbers[name + ".weight"], numbers[name + ".bias"]
        return [sum(a * c for a, c in zip(w[i * len(x):], x)) + b[i] for i in range(len(b))]

    def made(name, keys):
        encoder(path(name), 2, ["LABEL_0"], keys)
        return name

    for kind, act in ((1, None), (2, None), (None, "tanh"), (None, "silu"), (None, "gelu"), (1, "gelu")):
        keys = [("bert.classifier.pooling_type", "u32", kind)] * (kind is not None) + [("bert.classifier.activation", "string", act)] * (act is not None)
        want = layer("cls.output", [acts[act or "tanh"](x) for x in layer("cls", rows[kind or 2])])
        got = array("-m", made("head.gguf", keys), "-p", "a cat", "--pooling", "rank")[0]
        check(near(got, want, 1e-4), f"a head with {kind}, {act}", [got, want])
    for key, kind, value, has in (("pooling_type", "u32", 3, "bert.classifier.pooling_type = 3"), ("pooling_type", "u32", 0, "the row that the classifier's head reads"),
                                  ("activation", "string", "sigmoid", "an unknown activation of the classifier's head"), ("activation", "string", "gelu_new", "gelu_new"),
                                  ("temperature", "f32", 2.0, "bert.classifier.temperature = 2")):
        made("odd-head.gguf", [(f"bert.classifier.{key}", kind, value)])
        run("-m", "odd-head.gguf", "-p", "a cat", "--pooling", "rank", code=1, has=has)


def lines(some):
    return "".join(line + "\n" for line in some).encode()


def test_pooling():
    for model in ("e.gguf", STORIES):
        say = ["-m", model, "-ctk", "f32", "-ctv", "f32", "--tokens", "2,7,9,30,11"]
        rows = array(*say, "--pooling", "none")
        check(len(rows) == 5, "a row for each token", len(rows))
        plain = {pool: array(*say, "--pooling", pool, "--no-normalize") for pool in ("mean", "cls", "last")}
        check(near(plain["mean"][0], [sum(c) / 5 for c in zip(*rows)]), "mean")
        check(plain["cls"] == rows[:1] and plain["last"] == rows[-1:], "cls and last are rows")
        check(array(*say, "--no-normalize") == plain["mean"], "the default is the mean")
        unit = array(*say)[0]
        length = math.sqrt(dot(plain["mean"][0], plain["mean"][0]))
        check(near(unit, [x / length for x in plain["mean"][0]]) and abs(dot(unit, unit) - 1) < 1e-5, "length 1")
        cut = array(*say, "--dimensions", "8")[0]
        length = math.sqrt(dot(unit[:8], unit[:8]))
        check(near(cut, [x / length for x in unit[:8]]), "--dimensions cuts, then normalizes", [cut, unit])
    got = objects("-m", "e.gguf", "--tokens", "2,7", "--tokens", "9", "--pooling", "none")
    check([len(o["embedding"]) for o in got] == [2, 1] and len(got[0]["embedding"][0]) == DIM, "lists of vectors")
    run_tool("llm-gguf", "set", "e.gguf", "bert.pooling_type=3", "-o", "last.gguf")
    check(array("-m", "last.gguf", "--tokens", "2,7,9", "--no-normalize") == array("-m", "e.gguf", "--tokens", "2,7,9", "--pooling", "last", "--no-normalize"),
          "the pooling of the file")


def test_texts():
    put("lines.txt", lines(LINES))
    want = array("-m", "e.gguf", "-f", "lines.txt")
    check(len(want) == len(LINES), "a row for each line", len(want))
    for k, line in enumerate(LINES):
        check(array("-m", "e.gguf", "-p", line) == want[k:k + 1], "a line has the bits that it has alone", line)
        check(array("-m", "e.gguf", "--tokens", ",".join(map(str, ids_of("e.gguf", line)))) == want[k:k + 1], "its tokens", line)
    many = [LINES[i * 7 % 6] + " a" * (i % 13) for i in range(300)]
    check(array("-m", "e.gguf", "-f", "-", text=lines(many)) == [array("-m", "e.gguf", "-p", x)[0] if i < 30 else y for i, (x, y) in enumerate(
        zip(many, array("-m", "e.gguf", "-f", "-", "-t", "1", "-c", "40", text=lines(many))))], "any mixture of lengths, threads and contexts")
    check(array("-m", "e.gguf", text=lines(LINES)) == want, "standard input")
    check(array("-m", "e.gguf", text=lines(LINES).replace(b"\n", b"\r\n")) == want, "line ends of DOS")
    check(array("-m", "e.gguf", text=lines(LINES)[:-1]) == want, "no end of the last line")
    got = objects("-m", "e.gguf", *(word for line in LINES for word in ("-p", line)))
    check([o["index"] for o in got] == list(range(6)) and [[f32(x) for x in o["embedding"]] for o in got] == want, "lines of JSON have the same bits")
    run("-m", "e.gguf", "-f", "lines.txt", "-o", "out.jsonl")
    with open(path("out.jsonl"), encoding="utf-8") as f:
        check([json.loads(line) for line in f] == got, "-o FILE")
    causal = array("-m", STORIES, "-f", "-", text=lines(many[:40]))
    check(causal == [array("-m", STORIES, "-p", x)[0] for x in many[:6]] + causal[6:], "a causal model: a line has the bits that it has alone")
    named = run_tool("llm-embed", "-p", "a fox", text=b"")
    check(named == run("-m", "builtin:stories", "-p", "a fox"), "the built-in model is the default")


COPIES = ["--split", "copies", "--device", "cpu,cpu1,cpu2", "-t", "1"]


def test_copies():
    """Several copies of the model write the bytes that one writes, in the same order, and report the same mistakes."""
    many = lines([LINES[i * 7 % 6] + " a" * (i % 13) for i in range(700)])
    reranker = ["-m", "r.gguf", "--rerank", "a cat"]
    for args in (["-m", "e.gguf"], ["-m", "e.gguf", "-ub", "64", "--pooling", "none"], ["-m", "e.gguf", "--query", "a fox", "--query", "dog"], reranker,
                 ["-m", "c.gguf"]):
        check(run(*args, "-f", "-", *COPIES, text=many) == run(*args, "-f", "-", text=many), "copies", args)
    rows = array("-m", "e.gguf", "-f", "-", text=many)
    check(array("-m", "e.gguf", "-f", "-", *COPIES, text=many) == rows, "an array")
    run("-m", "e.gguf", "-p", "a cat", *COPIES, has="llm-embed: copies on cpu,cpu1,cpu2")
    long = lines(["a cat"] * 200 + ["a " * (CONTEXT + 1)] + ["dog"])
    want = run("-m", "e.gguf", "-f", "-", text=long, code=1, has="line 201 has ")
    check(len(want.splitlines()) == 200 and run("-m", "e.gguf", "-f", "-", *COPIES, text=long, code=1, has="line 201 has ") == want, "a line that is too long")
    plan = run("-m", "e.gguf", "--plan", *COPIES, has="")
    check("split        copies on cpu,cpu1,cpu2\n" in plan and all(f"copy {k + 1} of 3, on {name}\n" in plan for k, name in enumerate(("cpu", "cpu1", "cpu2"))),
          "--plan", plan)
    for more, words in ((["-ngl", "1"], "--split copies and -ngl cannot be used together"), (["--trace", "t.json"], "a timeline"),
                        (["--plan=x"], "--plan=x is not known")):
        run("-m", "e.gguf", "-p", "a cat", *COPIES, *more, code=2, has=words)
    run("-m", "e.gguf", "-p", "a cat", "--split", "copies", has="--split copies has no effect: --device names no devices")
    for tool in ("llm-cli", "llm-bench"):
        run_tool(tool, "-m", STORIES, "-p", "1", "-n", "1", *COPIES[:4], code=2, has="--split copies is for many inputs at once", text=b"")
    run("a cat", code=2, has="unexpected argument 'a cat'; did you mean -p 'a cat'?")


def test_is_lazy():
    """Lines come out before all have come in."""
    with subprocess.Popen([TOOL, "-m", path("e.gguf"), "-q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        p.stdin.write(lines(["a cat"] * 5000))
        p.stdin.flush()
        check(json.loads(p.stdout.readline())["index"] == 0, "the first line")
        p.stdin.close()
        check(len(p.stdout.readlines()) == 4999 and p.wait() == 0, "the others")


def test_prompts():
    query, passage = "the fox ", "a cat "
    keys = [("sentence_transformers.prompt.query", "string", query), ("sentence_transformers.prompt.passage", "string", passage)]
    encoder(path("p.gguf"), keys=keys)
    encoder(path("d.gguf"), keys=keys + [("sentence_transformers.default_prompt", "string", "passage")])
    plain, with_query, with_passage = (array("-m", "e.gguf", "-p", before + "sleeps") for before in ("", query, passage))
    one = ["-p", "sleeps"]
    check(array("-m", "p.gguf", *one) == plain, "no default prompt")
    check(array("-m", "d.gguf", *one) == with_passage, "the default prompt")
    check(array("-m", "p.gguf", *one, "--prompt-name", "query") == with_query, "--prompt-name")
    check(array("-m", "p.gguf", *one, "--document") == with_passage, "--document")
    check(array("-m", "e.gguf", *one, "--document") == plain, "a model without prompts")
    ranked = objects("-m", "p.gguf", *one, "--query", "sleeps")
    check(len(ranked) == 1 and abs(ranked[0]["score"] - dot(with_query[0], with_passage[0])) < 1e-6, "--query has a prompt of its own", ranked)
    run("-m", "p.gguf", *one, "--prompt-name", "mine", code=1, has="--prompt-name: the model has no prompt 'mine'; its prompts are query, passage")
    run("-m", "e.gguf", *one, "--prompt-name", "mine", code=1, has="the model has no prompt 'mine': its file has no keys sentence_transformers.prompt.*")
    run("-m", "e.gguf", *one, "--task", "mine", code=1, has="there is no adapter for the task 'mine' (--lora opens some)")
    check(array("-m", "e.gguf", *one, "--prompt-name", "query") == plain, "every model has queries")
    encoder(path("bad.gguf"), keys=[("sentence_transformers.default_prompt", "string", "gone")])
    run("-m", "bad.gguf", *one, code=1, has="there is no key sentence_transformers.prompt.gone")


def test_rankings():
    rows = array("-m", "e.gguf", "-f", "lines.txt")
    queries = ["a dog", "the garden"]
    vectors = [array("-m", "e.gguf", "-p", q)[0] for q in queries]
    say = ["-m", "e.gguf", "-f", "lines.txt", "--query", queries[0], "--query", queries[1]]
    got = objects(*say)
    for k, vector in enumerate(vectors):
        want = sorted(((-f32(dot(vector, row)), i) for i, row in enumerate(rows)))
        mine = [o for o in got if o["query"] == k]
        check([o["index"] for o in mine] == [i for _, i in want], "best first", mine)
        check(near([o["score"] for o in mine], [-s for s, _ in want], 1e-6), "similarities")
        check([o["text"] for o in mine] == [LINES[i] for _, i in want], "texts")
        check([o for o in objects(*say, "--top", "2") if o["query"] == k] == mine[:2], "--top")
    check(near(sum(array(*say), []), [dot(v, r) for r in rows for v in vectors], 1e-6), "an array has a column for each query")
    table = run(*say, "--format", "table", "--top", "1").splitlines()
    check(table[0] == queries[0] and table[2].split()[1] == str(got[0]["index"] + 1), "a table", table)


def test_tokens_of_queries():
    """With the pooling none: for each vector of the query the nearest one of the line, summed."""
    def cosine(a, b):
        return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))
    queries = ["a quick fox", "dog"]
    none = ["-m", "e.gguf", "--pooling", "none"]
    texts, asked = ([array(*none, "-p", x) for x in some] for some in (LINES, queries))
    for how, flags in ((cosine, []), (dot, ["--no-normalize"])):
        want = [sum(max(how(a, b) for b in text) for a in q) for text in texts for q in asked]
        got = array(*none, *flags, "-f", "-", "--query", queries[0], "--query", queries[1], text=lines(LINES))
        error = [abs(x - w) / max(1, abs(w)) for x, w in zip(sum(got, []), want)]  # the array's numbers are f32
        check(len(got) == len(LINES) and len(error) == len(want) and max(error) < 1e-6, "MaxSim", [got, want])
    first = objects(*none, "-f", "-", "--query", queries[1], "--top", "1", text=lines(LINES))[0]
    scores = [sum(max(cosine(a, b) for b in text) for a in asked[1]) for text in texts]
    check(abs(first["score"] - max(scores)) < 1e-5 and abs(scores[first["index"]] - max(scores)) < 1e-5, "the best line", [first, scores])


def by_tokens(seed, labels, pairs, second):
    """The scores of lists of tokens whose types are those of a second text from that position on."""
    encoder(path("moved.gguf"), seed, labels, second=second)
    return array("-m", "moved.gguf", *(word for ids in pairs for word in ("--tokens", ",".join(map(str, ids)))))


def test_scores():
    for model, seed, labels in (("r.gguf", 2, ["LABEL_0"]), ("c.gguf", 3, ["good", "bad", "neither"])):
        query = ids_of(model, "a dog")
        pairs = [query + ids_of(model, line)[1:] for line in LINES]
        say = ["-m", model, "-f", "lines.txt", "--rerank", "a dog"]
        want = array(*say)
        check(len(want[0]) == len(labels), "a column for each label", want)
        moved = by_tokens(seed, labels, pairs, len(query))
        check(all(near(a, b, 1e-4) for a, b in zip(want, moved)), "--rerank: scores of the pairs, whose second text has types of its own", [want, moved])
        check(not all(near(a, b, 1e-2) for a, b in zip(want, by_tokens(seed, labels, pairs, CONTEXT))), "types change scores")
        if len(labels) > 1:
            run(*say, code=1, has="--rerank: the model is a classifier with 3 labels (good, bad, neither), none of which says how well a text answers a query; as vectors")
            continue
        got = objects(*say)
        check([o["index"] for o in got] == sorted(range(6), key=lambda i: -want[i][0]), "best first", got)
        check([f32(o["score"]) for o in got] == sorted((w[0] for w in want), reverse=True), "scores")
        check(objects(*say, "--top", "2") == got[:2], "--top")
    encoder(path("yes.gguf"), 3, ["yes", "no"])
    got, want = objects("-m", "yes.gguf", "-f", "lines.txt", "--rerank", "a dog"), array("-m", "yes.gguf", "-f", "lines.txt", "--rerank", "a dog")
    check([o["index"] for o in got] == sorted(range(6), key=lambda i: -want[i][0]), "two labels, of which the first ranks", got)
    encoder(path("many.gguf"), 3, [f"a label with a long name {i}" for i in range(40)])
    run("-m", "many.gguf", "-p", "a", "--rerank", "b", code=1, has="with 40 labels (a label with a long name 0, a label with a long name 1, a label with a long name 2, ..), none")
    got = objects("-m", "c.gguf", "-p", "a cat")
    check([s["label"] for s in got[0]["scores"]] == ["good", "bad", "neither"], "names of labels", got)
    check(near([s["score"] for s in got[0]["scores"]], array("-m", "c.gguf", "-p", "a cat")[0], 1e-6), "scores of labels")
    check(list(objects("-m", "r.gguf", "-p", "a cat")[0]) == ["index", "score"], "one score")
    table = run("-m", "c.gguf", "-f", "lines.txt", "--format", "table").splitlines()
    check(table[0].split() == ["good", "bad", "neither"] and len(table) == 7, "a table of scores", table)
    check(len(array("-m", "r.gguf", "-p", "a cat", "--pooling", "mean")[0]) == DIM, "vectors of a reranker, if they are asked for")
    classifiers()
    form = "the {query} on {document} and {query}."
    encoder(path("parts.gguf"), 2, ["LABEL_0"], [("tokenizer.ggl.pair", "i32", [SEP, -2, CLS, -1]), ("tokenizer.ggl.pair_types", "i32", [1, 0, 1, 1])])
    parts = [SEP] + ids_of("r.gguf", "a dog")[1:-1] + [CLS] + ids_of("r.gguf", "small cat")[1:-1]
    got = array("-m", "parts.gguf", "-p", "a dog", "--rerank", "small cat")[0]
    encoder(path("no-types.gguf"), 2, ["LABEL_0"], [("tokenizer.ggl.pair", "i32", [SEP, -2, CLS, -1])])
    check(array("-m", "no-types.gguf", "-p", "a dog", "--rerank", "small cat")[0] == array("-m", "r.gguf", "--tokens", ",".join(map(str, parts)))[0]
          and not near(got, array("-m", "no-types.gguf", "-p", "a dog", "--rerank", "small cat")[0], 1e-3), "pairs as tokenizer.ggl.pair says")
    encoder(path("wrong.gguf"), 2, ["LABEL_0"], [("tokenizer.ggl.pair", "i32", [-2, -1]), ("tokenizer.ggl.pair_types", "i32", [1, 7])])
    run("-m", "wrong.gguf", "-p", "a", "--rerank", "b", code=1, has="wrong.gguf: key tokenizer.ggl.pair_types has the type 7; the model knows the types 0 to 1")
    check(len(array("-m", "wrong.gguf", "-p", "a", "--pooling", "mean")[0]) == DIM, "vectors, which have no pairs")
    encoder(path("form.gguf"), 2, ["LABEL_0"], [("tokenizer.chat_template.rerank", "string", form)])
    text = "the a {document} on small cat and a {document}."
    check(array("-m", "form.gguf", "-p", "small cat", "--rerank", "a {document}")
          == array("-m", "r.gguf", "--tokens", ",".join(map(str, ids_of("r.gguf", text)[1:-1]))), "the file's own form of pairs")


def width(s):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in s)


def test_tables():
    texts = ["a cat", "the fox \x1b[31m\tsleeps", "\u732b" * 40, "the small old house in the garden and the big red one", "n\u0303"] * 6
    got = run("-m", "e.gguf", "--format", "table", text=lines(texts)).splitlines()
    check(max(map(width, got)) <= 80 and "\x1b" not in "".join(got), "80 columns", max(got, key=width))
    numbers = [float(x) for line in got for x in re.findall(r"-?\d\.\d\d\d", line)]
    check(len(numbers) == len(texts) ** 2 and all(-1.001 <= x <= 1.001 for x in numbers), "all similarities", len(numbers))
    check(re.match(r" +1 +a cat +1\.000", got[1]), "the first row", got[1])
    got = run("-m", "e.gguf", "--query", texts[2], text=lines(texts), *["--format", "table"]).splitlines()
    check(max(map(width, got)) <= 80, "80 columns of a ranking", max(got, key=width))
    run("-m", "e.gguf", "--format", "table", text=lines(["a"] * 501), code=1, has="shows 500 texts at most")


def test_truncate():
    long = "the cat sleeps " * 30
    n = len(ids_of("e.gguf", long))
    run("-m", "e.gguf", code=1, has=f"stdin, line 2 has {n} tokens, but the longest text has {CONTEXT} (the context, -c N): --truncate cuts it",
        text=lines(["a cat", long]))
    ids = ids_of("e.gguf", long)[:CONTEXT - 1] + [SEP]
    check(array("-m", "e.gguf", "--truncate", text=lines([long])) == array("-m", "e.gguf", "--tokens", ",".join(map(str, ids))), "--truncate keeps the end")
    check(array("-m", "e.gguf", "--truncate", "-c", "10", "-p", long) == array("-m", "e.gguf", "--tokens", ",".join(map(str, ids[:9] + [SEP]))), "-c")
    pair = ([CLS] + ids_of("r.gguf", "a dog")[1:] + ids_of("r.gguf", long)[1:])[:CONTEXT - 1] + [SEP]
    check(near(array("-m", "r.gguf", "--truncate", "-p", long, "--rerank", "a dog")[0],
               by_tokens(2, ["LABEL_0"], [pair], len(ids_of("r.gguf", "a dog")))[0], 1e-4), "--truncate of a pair")
    run("-m", "r.gguf", "--truncate", "-p", "a cat", "--rerank", "a dog " * 40, code=1, has="no document fits beside it")
    run("-m", "r.gguf", "-p", long, "--rerank", "a dog", code=1, has="tokens with the query, but the longest text has")


def test_modules():
    """Poolings and prompts as files of sentence-transformers say."""
    prompt, text = "a dog ", LINES[3]
    own = [("sentence_transformers.prompt.query", "string", prompt), ("sentence_transformers.include_prompt", "bool", False)]
    rows = array("-m", "e.gguf", "--pooling", "none", "-p", prompt + text)
    ways = {"max": lambda r, w: [max(c) for c in zip(*r)], "mean_sqrt_len_tokens": lambda r, w: [sum(c) / math.sqrt(len(c)) for c in zip(*r)],
            "weightedmean": lambda r, w: [dot(c, w) / sum(w) for c in zip(*r)], "mean": lambda r, w: [sum(c) / len(c) for c in zip(*r)],
            "cls": lambda r, w: r[0], "last": lambda r, w: r[-1]}
    for said in (*ways, "last+max", "cls+mean+weightedmean"):
        encoder(path("m.gguf"), keys=[*own, ("sentence_transformers.pooling", "string", said)])
        for skipped, more in ((3, ["-p", text, "--prompt-name", "query"]), (0, ["-p", prompt + text])):  # [CLS] a dog
            want = sum((ways[w](rows[skipped:], range(skipped + 1, len(rows) + 1)) for w in said.split("+")), [])
            check(near(array("-m", "m.gguf", "--no-normalize", *more)[0], want, 1e-4), said, skipped)
    for said in ("cls+median", "cls+", "+", "none", "+".join(["mean"] * 7)):
        encoder(path("m.gguf"), keys=[("sentence_transformers.pooling", "string", said)])
        run("-m", "m.gguf", "-p", "a", code=1, has="sentence_transformers.pooling is not made of at most 6 of")
    encoder(path("m.gguf"), keys=[("sentence_transformers.modules", "string", ["dense"])])
    run("-m", "m.gguf", "-p", "a", code=1, has="the tensor sentence.0.weight is missing")
    encoder(path("m.gguf"), keys=[("sentence_transformers.modules", "string", ["lstm"])])
    run("-m", "m.gguf", "-p", "a", code=1, has="'lstm' is unknown; dense, dense+, layer_norm and normalize")


def test_empty_texts():
    """Texts without tokens: of a table of vectors they have a vector of zeros, and what modules make of it."""
    table(path("t.gguf"))
    rows = array("-m", "t.gguf", text=b"a fox\n\n%%\nthe cat\n")
    check(rows[1:3] == [[0.0] * DIM] * 2 and rows[::3] == array("-m", "t.gguf", "-p", "a fox", "-p", "the cat"), "blank lines, unknown words", rows)
    check(array("-m", "t.gguf", "-p", "") == rows[1:2] == array("-m", "t.gguf", "--json-lines", "--no-normalize", text=b'""\n'), "an empty text")
    check(array("-m", "t.gguf", text=b"\n" * 700) == rows[1:2] * 700, "only blank lines")
    check(array("-m", "t.gguf", "--pooling", "max", text=b"\n") == rows[1:2], "another pooling")
    run("-m", "t.gguf", "--pooling", "none", code=1, text=b"a fox\n\n", has="stdin, line 2 has no tokens: it is empty")
    table(path("td.gguf"), [("dense", {"weight": (DIM, 5), "bias": (5,)})], [("sentence_transformers.activations", "string", ["tanh"])])
    got = array("-m", "td.gguf", "--no-normalize", text=b"\n\n")
    check(got[0] == got[1] and any(got[0]) and len(got[0]) == 5, "the bias alone", got)


def test_truncate_dim():
    """Vectors have as many numbers as the file says, unless others are asked for."""
    full = array("-m", "e.gguf", "-p", "a fox", "--no-normalize")[0]
    for said in (5, DIM, DIM + 9):
        encoder(path("d.gguf"), keys=[("sentence_transformers.truncate_dim", "u32", said)])
        n = min(said, DIM)
        check(array("-m", "d.gguf", "-p", "a fox", "--no-normalize") == [full[:n]], "truncate_dim", said)
        check(array("-m", "d.gguf", "-p", "a fox") == array("-m", "e.gguf", "-p", "a fox", "--dimensions", str(n)), "truncate_dim, then length 1", said)
        check(array("-m", "d.gguf", "-p", "a fox", "--dimensions", "9", "--no-normalize") == [full[:9]], "--dimensions beside it", said)
        check(len(array("-m", "d.gguf", "-p", "a fox", "--pooling", "none")[0]) == DIM, "vectors of tokens are whole")
    encoder(path("d.gguf"), keys=[("sentence_transformers.truncate_dim", "u32", 0)])
    run("-m", "d.gguf", "-p", "a", code=1, has="key sentence_transformers.truncate_dim is 0, but 1 or more is expected")
    encoder(path("d.gguf"), 2, ["LABEL_0"], [("sentence_transformers.truncate_dim", "u32", 5)])
    check(array("-m", "d.gguf", "-p", "a fox") == array("-m", "r.gguf", "-p", "a fox"), "scores are not cut")


def test_json_lines():
    texts = ["a cat", "a\ndog", "", "the fox [SEP]"]
    said = "".join(json.dumps({"text": t, "id": k} if k % 2 else t) + "\n" for k, t in enumerate(texts)).encode()
    want = array("-m", "e.gguf", *(word for t in texts for word in ("-p", t)))
    check(array("-m", "e.gguf", "--json-lines", text=said) == want, "--json-lines")
    check(array("-m", "e.gguf", "-p", texts[3]) == array("-m", "e.gguf", "--tokens", ",".join(map(str, [*ids_of("e.gguf", "the fox")[:-1], SEP, SEP]))), "special tokens")
    check(array("-m", "e.gguf", "-p", texts[3], "--no-parse-special") != array("-m", "e.gguf", "-p", texts[3]), "--no-parse-special")
    run("-m", "e.gguf", "--json-lines", code=1, has="stdin, line 2", text=b'"a"\n"a\n')
    run("-m", "e.gguf", "--json-lines", code=1, has='line 1: a JSON string is expected, or an object with the string "text"', text=b'{"texts": "a"}\n')
    run("-m", "e.gguf", "--json-lines", "-p", "a", code=2, has="--json-lines is for -f FILE and standard input")


def test_resume():
    many = [LINES[i * 5 % 6] + " a" * (i % 11) for i in range(5000)]
    put("many.txt", lines(many))
    say = ["-m", "e.gguf", "-f", "many.txt", "-o", "v.npy"]
    run(*say)
    with open(path("v.npy"), "rb") as f:
        want = f.read()
    whole = read_npy(path("v.npy"))
    check(whole[0] == 5000 and len(want) == 128 + 5000 * DIM * 4, "the whole array")

    def partial(rows, end=b""):
        text = want[:128].replace(b"(5000,", b"(%d," % rows).rstrip(b"\n ")
        put("v.npy", text + b" " * (127 - len(text)) + b"\n" + want[128:128 + rows * DIM * 4] + end)

    def same():
        with open(path("v.npy"), "rb") as f:
            return f.read() == want

    for rows, end in ((1, b""), (17, b"xyz"), (3000, bytes(DIM * 4 * 7)), (4999, b"")):
        partial(rows, end)
        run(*say, "--resume")
        check(same(), f"--resume after {rows} rows")
    run(*say, "--resume", has="v.npy has the rows of all 5000 texts already")
    check(same(), "--resume of a whole file")
    os.remove(path("v.npy"))
    run(*say, "--resume")
    check(same(), "--resume without a file")
    put("v.npy", b"")
    run(*say, "--resume")
    check(same(), "--resume with an empty file")

    # what does not fit is refused, and the file stays
    encoder(path("other.gguf"), 5)
    put("shifted.txt", lines(many[1:]))
    put("short.txt", lines(many[:999]))
    partial(1000)
    with open(path("v.npy"), "rb") as f:
        before = f.read()
    for args, words in ((["-m", "other.gguf", *say[2:]], "row 1 is not the vector of line 1"), ([*say, "--dimensions", "8"], "row 1 is not the vector"),
                        ([*say, "--pooling", "cls"], "row 1 is not"), (["-m", "e.gguf", "-f", "shifted.txt", "-o", "v.npy"], "row 1 is not"),
                        (["-m", "e.gguf", "-f", "short.txt", "-o", "v.npy"], "v.npy has 1000 rows, but there are only 999 texts")):
        run(*args, "--resume", code=1, has=words)
        with open(path("v.npy"), "rb") as f:
            check(f.read() == before, "the file stays", args)
    put("v.npy", before[:-1])
    run(*say, "--resume", code=1, has="fewer than its 1000 rows")
    put("v.npy", b"my diary")
    run(*say, "--resume", code=1, has="v.npy: is not a .npy file")
    with open(path("v.npy"), "rb") as f:
        check(f.read() == b"my diary", "another file stays")
    os.remove(path("v.npy"))

    # interruptions: with --resume the rows stay, without it nothing appears
    for resume in ([], ["--resume"]):
        with subprocess.Popen([TOOL, "-m", path("e.gguf"), "-o", path("v.npy"), *resume], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            p.stdin.write(lines(many[:4500]))
            p.stdin.flush()
            while not os.path.exists(path("v.npy")) if resume else not [f for f in os.listdir(TMP.name) if f.startswith("v.npy.tmp")]:
                pass
            if resume:
                run(*say, "--resume", code=1, has="another process writes it")
            p.stdin.write(lines(many[4500:]))
            p.stdin.flush()
            p.send_signal(signal.SIGINT)
            p.stdin.close()
            err = p.stderr.read().decode()
            code = p.wait()
        left = [f for f in os.listdir(TMP.name) if f.startswith("v.npy")]
        check(code in (130, 0) and (code == 0 or "interrupted" in err), "interrupted", [code, err])
        check(left == (["v.npy"] if resume or code == 0 else []), "what is left", left)
        if left and not resume:
            os.remove(path("v.npy"))
    rows, _, values = read_npy(path("v.npy")) if os.path.getsize(path("v.npy")) else (0, 0, [])
    check(values == whole[2][:rows], "the rows that are left")
    check(code == 0 or f"interrupted after {rows} text" in err, "the number of them", [rows, err])
    run(*say, "--resume")
    check(same(), "--resume after an interruption")


def test_pictures():
    """The steps of looking at a picture are arrays, and a note says which."""
    eye_file.llava(path("mmproj.gguf"), 128)
    put("red.ppm", eye_file.ppm((255, 0, 0)))
    see = ["-m", STORIES, "--mmproj", "mmproj.gguf", "--image", "red.ppm"]
    run(*see, "--dump", "rows", "-o", "seen.npy", has="note: seen.npy: 16 rows of 128 numbers")
    check(read_npy(path("seen.npy"))[:2] == (16, 128), "the rows of a picture")
    run(*see, "--dump", "pixels", "-o", "seen.npy", has="note: seen.npy: 32 lines of 32 pixels")
    run(*see, "--dump", "rows", code=2, has="--dump needs a file: -o FILE.npy")
    run(*see[2:], "--dump", "rows", "-o", "seen.npy", code=2, has="--image needs -m MODEL, the model that the eye or ear is for")
    run(*see[:-1], "red.ppm,red.ppm", "--dump", "rows", "-o", "seen.npy", code=2, has="--image: one file at a time is dumped, and red.ppm,red.ppm are several")


def test_mistakes():
    one = ["-m", "e.gguf", "-p", "a cat"]
    for args, words in (([*one, "-f", "lines.txt"], "-p, -f and --tokens cannot be used together"), ([*one, "--format", "npy"], "-o FILE.npy"),
                        ([*one, "--resume"], "--resume needs a NumPy array"), ([*one, "--pooling", "most"], "mean, last, cls, none, rank, max"),
                        ([*one, "--top", "3"], "--top is for --query and --rerank"), ([*one, "--rerank", "x", "--query", "y"], "--query is for vectors"),
                        (["-m", "r.gguf", "-p", "a", "--rerank", "x", "--no-parse-special"], "--no-parse-special is for vectors; --rerank makes scores"),
                        ([*one, "--rerank", "x", "--pooling", "mean"], "--rerank needs --pooling rank"), ([*one, "--tokens", "5"], "cannot be used together"),
                        (["-m", "e.gguf", "--tokens", "1,x"], "--tokens"), (["-m", "e.gguf", "--tokens", "1", "--document"], "taken as they are"),
                        ([*one, "--resume", "-o", "x.npy", "--pooling", "none"], "one row for each line"),
                        ([*one, "--format", "table", "--pooling", "none"], "needs one vector for each text"),
                        (["-m", "r.gguf", "-p", "a", "--query", "x"], "--query is for vectors, but the model's pooling is rank"),
                        (["-m", "r.gguf", "-p", "a", "--dimensions", "4"], "--dimensions is for vectors"),
                        ([*one, "--document", "--prompt-name", "x"], "cannot be used together"), ([*one, "-o", "e.gguf"], "e.gguf"),
                        ([*one, "-o", "v.npz"], "-o v.npz: files ending in .npz are of a format that is not written; .npy makes a NumPy array, and .jsonl"),
                        ([*one, "-o", "v.JSON"], "-o v.JSON: files ending in .json are of"), ([*one, "-o", "v.CSV"], "files ending in .csv are of")):
        run(*args, code=2, has=words)
    for args, words in ((["-m", "gone.gguf", "-p", "a"], "gone.gguf"), (["-m", "e.gguf", "-f", "gone.txt"], "gone.txt"),
                        ([*one, "--rerank", "x"], "score"), ([*one, "--pooling", "rank"], "score"), ([*one, "--dimensions", "4000"], "4000 dimensions"),
                        (["-m", "e.gguf", "--tokens", "1,100000"], "100000"), (["-m", "e.gguf", "-f", "e.gguf"], "e.gguf is a GGUF file, not a text"),
                        (["-m", "e.gguf", "-f", "-"], "stdin is empty: there is no text")):
        run(*args, code=1, has=words)
    run(*one, "-o", "v.NPY")
    check(read_npy(path("v.NPY"))[:2] == (1, DIM), "an ending in capital letters")
    r = subprocess.run([TOOL, "-m", path("e.gguf")], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    check(r.returncode == 2 and "there is no text: -p TEXT, -f FILE or standard input" in r.stderr, "no text", r.stderr)
    run("-m", "e.gguf", code=1, has="stdin, line 2 has a byte 0", text=b"a\nb\0c\n")
    run("-m", "e.gguf", has="stdin, line 2 is not UTF-8", text=b"a\nb\xff\nc\n")
    # a model whose tokenizer adds nothing to a text
    got = run("-m", os.path.join(os.path.dirname(STORIES), "../../tests/data/stories-qwen3.gguf"), code=1, text=b"a fox\n\nb\n",
              has="stdin, line 2 has no tokens: it is empty")
    check([json.loads(line)["index"] for line in got.splitlines()] == [0], "the lines before a mistake", got)
    with open("/dev/full", "w", encoding="utf-8") as full:
        r = subprocess.run([TOOL, *one[:1], path("e.gguf"), *one[2:]], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    check(r.returncode == 1 and "space" in r.stderr, "a full disk", r.stderr)
    with subprocess.Popen([TOOL, "-m", path("e.gguf"), "-f", path("many.txt")], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdout.readline()
        p.stdout.close()
        err = p.stderr.read().decode()
        check(p.wait() == 1 and err == "", "a broken pipe", err)
    check(not [f for f in os.listdir(TMP.name) if ".tmp-" in f], "temporary files")


def test_speed():
    """llm-bench measures vectors and scores of texts, several at once, and says what it cannot measure."""
    for model in "e.gguf", "r.gguf":
        out = run_tool("llm-bench", "-m", path(model), "-p", "20", "-n", "4", "--sequences", "1,3", "-r", "1", "--no-limits", "-o", "jsonl",
                       has="tg4 is not measured: the model sees a text whole")
        rows = [json.loads(line) for line in out.splitlines()]
        check([(r["n_prompt"], r["n_gen"], r["n_sequences"], r["type_k"]) for r in rows] == [(20, 0, 1, "f32"), (20, 0, 3, "f32")], "tests", rows)
        macs = [r["gmac_per_s"] * r["avg_ns"] / r["n_sequences"] for r in rows]
        check(macs[0] > 1 and abs(macs[0] - macs[1]) < 1e-3 * macs[0], "multiply-adds of a text", macs)
        check(abs(rows[1]["avg_ts"] * rows[1]["avg_ns"] / 1e9 - 60) < 0.1, "all texts count", rows)
    run_tool("llm-bench", "-m", path("e.gguf"), "-p", "0", "-n", "4", "--no-limits", code=1, has="nothing was measured")
    said = run_tool("llm-quantize", path("e.gguf"), path("q.gguf"), "Q4_K", "--dry-run")
    check("imatrix self" not in said, "what encoders cannot do is advised", said)
    rows = run_tool("llm-bench", "-p", "8", "-n", "0", "--sequences", "1,2", "-r", "1", "--no-limits", "-o", "jsonl").splitlines()
    check(len(rows) == 1, "prompts of other models run one after the other", rows)


encoder(path("e.gguf"))
encoder(path("r.gguf"), 2, ["LABEL_0"])
encoder(path("c.gguf"), 3, ["good", "bad", "neither"])
test_pooling()
test_texts()
test_copies()
test_is_lazy()
test_prompts()
test_rankings()
test_tokens_of_queries()
test_scores()
test_tables()
test_truncate()
test_json_lines()
test_modules()
test_empty_texts()
test_truncate_dim()
test_resume()
test_pictures()
test_mistakes()
test_speed()
sys.exit(finish())
