#!/usr/bin/env python3
"""llm-server with models that see texts whole: embedders and rerankers, and those that read a text and write another.
encoders.py LLM-SERVER CASE."""
import asyncio
import base64
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import dream_file
import encoder_file
import marian_folder
from sentencepiece import SPACE, TOKENS
from http_layer import check
from running import Gone, Server, exchange

BINARY = sys.argv[1]
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/builtin")
QUERY = "a fox in the garden"


def post(server, path, body, status=200):
    got, _, text = server.post(path, body)
    check(got == status, f"{path} {str(body)[:200]}: {got} {text[:300]}")
    return json.loads(text)


def refused(server, path, body, status, *words):
    text = json.dumps(post(server, path, body, status))
    check(all(w in text for w in words), f"{path}: {text[:300]}")


def some_texts(n, seed=1):
    """Of 1 to 40 words; the longest fill a context of 48."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(encoder_file.WORDS) for _ in range(rng.randrange(1, 41))) for _ in range(n)]


def vectors(server, texts, **more):
    answer = post(server, "/v1/embeddings", {"input": texts, **more})
    check([x["index"] for x in answer["data"]] == list(range(len(answer["data"]))), "index")
    return [x["embedding"] for x in answer["data"]]


def unit(v):
    return [x / math.sqrt(sum(y * y for y in v)) for x in v]


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-5 for x, y in zip(a, b))


def run_all(server, requests):
    async def many():
        return await asyncio.gather(*(exchange(server.port, "POST", path, body) for path, body in requests))
    answers = asyncio.run(many())
    check(all(status == 200 for status, _, _ in answers), [a[::2] for a in answers if a[0] != 200][:3])
    return [json.loads(body) for _, _, body in answers]


# --- cases -----------------------------------------------------------------------------------------


def embed(folder):
    """Vectors in all APIs: of one request, of many at once, and alone they have the same bits."""
    model = encoder_file.encoder(os.path.join(folder, "embed.gguf"))
    with Server([BINARY, "-m", model, "-t", "1"]) as s:
        check(any("vectors of texts of at most 48 tokens" in x for x in s.lines), s.lines)
        texts = some_texts(150)
        got = vectors(s, texts)
        check(all(len(v) == 32 and abs(sum(x * x for x in v) - 1) < 1e-5 for v in got), "length")
        check([vectors(s, t)[0] for t in texts[:20]] == got[:20], "alone")
        parts = run_all(s, [("/v1/embeddings", {"input": texts[i:i + 1 + i % 5]}) for i in range(60)])
        check(all([x["embedding"] for x in a["data"]] == got[i:i + 1 + i % 5] for i, a in enumerate(parts)), "beside others")
        ids = [post(s, "/tokenize", {"content": t, "add_special": True})["tokens"] for t in texts[:3]]
        answer = post(s, "/v1/embeddings", {"input": ids, "model": "any"})
        check([x["embedding"] for x in answer["data"]] == got[:3] and answer["usage"]["prompt_tokens"] == sum(map(len, ids)), "tokens")
        check(ids[0][0] == 2 and ids[0][-1] == 3, "[CLS] and [SEP]")
        coded = vectors(s, texts[:3], encoding_format="base64", dimensions=5)
        check(all(near(struct.unpack("<5f", base64.b64decode(a)), unit(b[:5])) for a, b in zip(coded, got)), "base64, dimensions")
        check(post(s, "/api/embed", {"input": texts})["embeddings"] == got, "/api/embed")
        check(near(post(s, "/api/embed", {"input": texts[0], "dimensions": 4})["embeddings"][0], unit(got[0][:4])), "Ollama's dimensions")
        check(post(s, "/api/embeddings", {"prompt": texts[1]})["embedding"] == got[1], "/api/embeddings")
        check(post(s, "/embedding", {"content": texts[:2]}) == [{"index": i, "embedding": [got[i]]} for i in range(2)], "/embedding")
        check(post(s, "/embed", {"inputs": texts[0]}) == [got[0]] and post(s, "/embed", {"inputs": texts}) == got, "/embed")
        plain = post(s, "/embed", {"inputs": texts[0], "normalize": False})[0]
        check(near(unit(plain), got[0]) and not near(plain, got[0]), "normalize")
        long = "fox " * 60
        refused(s, "/v1/embeddings", {"input": ["a", long]}, 400, "input[1]", "62 tokens", "48 tokens", "truncate")
        refused(s, "/embed", {"inputs": long}, 400, "62 tokens", "inputs")
        check(post(s, "/embed", {"inputs": long, "truncate": True}) == vectors(s, "fox " * 46) and
              post(s, "/api/embed", {"input": long, "truncate": True})["embeddings"] == vectors(s, "fox " * 46) ==
              post(s, "/api/embed", {"input": long})["embeddings"], "truncate")
        refused(s, "/api/embed", {"input": long, "truncate": False}, 400, "too large")
        cut = vectors(s, "fox " * 46)
        check(vectors(s, ["a", long, "a fox"], truncate=True) == vectors(s, "a") + cut + vectors(s, "a fox"), "/v1/embeddings: truncate")
        check([x["embedding"] for x in post(s, "/embedding", {"input": [long], "truncate": True})] == [[cut[0]]], "/embedding: truncate")
        spelled, text = "a [SEP] fox", {"parse_special": False}
        ids = post(s, "/tokenize", {"content": spelled, "add_special": True, "parse_special": True})["tokens"]
        check(ids[2] == 3 and vectors(s, spelled) == vectors(s, [ids]) != vectors(s, spelled, **text), "special tokens in texts")
        check(post(s, "/embed", {"inputs": spelled, **text}) == vectors(s, spelled, **text) == post(s, "/api/embed", {"input": spelled, **text})["embeddings"] ==
              post(s, "/embedding", {"input": spelled, **text})[0]["embedding"], "parse_special")
        refused(s, "/v1/embeddings", {"input": "a", "parse_special": 1}, 400, "parse_special")
        check(post(s, "/api/embed", {"input": []})["embeddings"] == [], "Ollama's empty list")
        refused(s, "/api/embeddings", {"prompt": long}, 400, "too large")
        refused(s, "/embed", {"inputs": long, "truncate": True, "truncation_direction": "Left"}, 400, "Right")
        for name, value in (("dimensions", 0), ("dimensions", 33), ("dimensions", "x"), ("input", []), ("input", [[["a"]]]), ("input", {}),
                            ("input", [1.5]), ("input", [None]), ("input", ["a"] * 5000), ("input", [99999])):
            refused(s, "/v1/embeddings", {"input": "a", name: value}, 400, name if name == "dimensions" else "")
        check(len(vectors(s, "")[0]) == 32, "an empty text has its two special tokens")
    shorter = encoder_file.encoder(os.path.join(folder, "shorter.gguf"), keys=[("sentence_transformers.max_seq_length", "u32", 20),
                                                                                  ("sentence_transformers.prompt.mine", "string", "a dog "),
                                                                                  ("sentence_transformers.default_prompt", "string", "mine")])
    with Server([BINARY, "-m", shorter, "-t", "1"]) as s:  # where sentence-transformers cuts, with the prompt that it uses unless another is named
        refused(s, "/v1/embeddings", {"input": long}, 400, "64 tokens", "20 tokens", "max_seq_length of the model's settings")
        mine = vectors(s, long, truncate=True)
    with Server([BINARY, "-m", shorter, "-t", "1", "-c", "48"]) as s:  # a context that is asked for counts
        check(vectors(s, "fox " * 16) == mine and "62 tokens" not in str(vectors(s, "fox " * 40)), "max_seq_length")
    cut = encoder_file.encoder(os.path.join(folder, "cut.gguf"), keys=[("sentence_transformers.truncate_dim", "u32", 5)])
    with Server([BINARY, "-m", cut, "-t", "1"]) as s:
        few = [unit(v[:5]) for v in got[:3]]
        check(all(map(near, vectors(s, texts[:3]), few)) and all(map(near, post(s, "/embed", {"inputs": texts[:3]}), few)), "truncate_dim")
        check(all(near(x["embedding"][0], v) for x, v in zip(post(s, "/embedding", {"content": texts[:3]}), few)), "truncate_dim of /embedding")
        check(near(post(s, "/api/embed", {"input": texts[0]})["embeddings"][0], few[0]) and
              near(post(s, "/api/embed", {"input": texts[0], "dimensions": 0})["embeddings"][0], got[0]), "truncate_dim of /api/embed; 0: all numbers")
        check(near(vectors(s, texts[0], dimensions=32)[0], got[0]) and near(vectors(s, texts[0], dimensions=7)[0], unit(got[0][:7])), "dimensions beside it")
        refused(s, "/v1/embeddings", {"input": "a", "dimensions": 33}, 400, "1 to 32")
    table = encoder_file.table(os.path.join(folder, "table.gguf"))
    with Server([BINARY, "-m", table, "-t", "1"]) as s:  # a text without tokens
        none = [0] * 32
        check(vectors(s, "") == [none] and vectors(s, ["", "a fox", "%%", "", ""])[::2] == [none] * 3, "empty texts")
        check(vectors(s, [""] * 300 + ["a fox"])[300] == vectors(s, "a fox")[0] != none, "many empty texts")
        check(post(s, "/api/embed", {"input": ["", "a"]})["embeddings"][0] == none == post(s, "/embed", {"inputs": ""})[0], "empty texts of other APIs")
        check(post(s, "/embedding", {"content": ["", "a fox"]})[0]["embedding"] == [none], "empty texts of /embedding")
    with Server([BINARY, "-m", table, "-t", "1", "--pooling", "none"]) as s:
        refused(s, "/embedding", {"content": ["a fox", ""]}, 400, "content[1]")
    own = [f"--pooling={p}" for p in ("cls", "last", "none")]
    with Server([BINARY, "-m", model, "-t", "1", own[2]]) as s:
        rows = post(s, "/embedding", {"input": texts[:9]})
        mean = [unit([sum(c) for c in zip(*x["embedding"])]) for x in rows]
        check(all(near(a, b) for a, b in zip(mean, got)), "mean")
        refused(s, "/v1/embeddings", {"input": "a"}, 400, "--pooling none")
    for flag, at in ((own[0], 0), (own[1], -1)): # one token is wanted, and the whole text runs
        with Server([BINARY, "-m", model, "-t", "1", flag]) as s:
            check(all(near(v, unit(x["embedding"][at])) for v, x in zip(vectors(s, texts[:9]), rows)), flag)


def rerank(folder):
    """Scores in all forms, sorted; each pair alone has the same bits."""
    model = encoder_file.encoder(os.path.join(folder, "rank.gguf"), seed=2, labels=[""])
    with Server([BINARY, "-m", model, "-t", "1"]) as s:
        check(any("scores of texts" in x for x in s.lines), s.lines)
        texts = [" ".join(t.split()[:30]) for t in some_texts(100, 2)]
        answer = post(s, "/v1/rerank", {"query": QUERY, "documents": texts, "model": "any"})
        score = {x["index"]: x["relevance_score"] for x in answer["results"]}
        check(answer["model"] == "any" and answer["object"] == "list" and set(score) == set(range(100)), answer)
        check(list(score.values()) == sorted(score.values(), reverse=True) and len(set(score.values())) > 90, "sorted")
        check(all(x.keys() == {"index", "relevance_score"} for x in answer["results"]), "members")
        alone = lambda t: post(s, "/rerank", {"query": QUERY, "documents": [t]})
        check(all(alone(texts[i])["results"][0]["relevance_score"] == score[i] for i in range(10)), "alone")
        check(answer["usage"]["total_tokens"] == sum(alone(t)["usage"]["total_tokens"] for t in texts), "usage")
        n = [len(post(s, "/tokenize", {"content": t, "add_special": True})["tokens"]) for t in (QUERY, texts[0])]
        check(alone(texts[0])["usage"] == {"prompt_tokens": sum(n) - 1, "total_tokens": sum(n) - 1}, "[CLS] query [SEP] text [SEP]")
        for path in ("/rerank", "/reranking", "/v1/reranking", "/v2/rerank"):
            check(post(s, path, {"query": QUERY, "documents": texts})["results"] == answer["results"], path)
        some = post(s, "/v1/rerank", {"query": QUERY, "documents": [{"text": t} for t in texts], "top_n": 3, "return_documents": True})["results"]
        check([x["index"] for x in some] == list(score)[:3] and all(x["document"] == {"text": texts[x["index"]]} for x in some), some)
        check(len(post(s, "/v1/rerank", {"query": QUERY, "documents": texts, "top_n": 1000})["results"]) == 100, "top_n")
        tei = post(s, "/rerank", {"query": QUERY, "texts": texts, "return_text": True})
        check([x["index"] for x in tei] == list(score) and all(x["text"] == texts[x["index"]] for x in tei), "texts")
        check(all(abs(x["score"] - 1 / (1 + math.exp(-score[x["index"]]))) < 1e-6 for x in tei), "sigmoid")
        raw = post(s, "/rerank", {"query": QUERY, "texts": texts, "raw_scores": True})
        check({x["index"]: x["score"] for x in raw} == score and raw[0].keys() == {"index", "score"}, "raw_scores")
        many = run_all(s, [("/v1/rerank", {"query": QUERY, "documents": texts[i:i + 9]}) for i in range(40)])
        check(all({x["index"] + i: x["relevance_score"] for x in a["results"]} == {k: score[k] for k in range(i, i + 9)} for i, a in enumerate(many)), "others")
        same = post(s, "/v1/rerank", {"query": QUERY, "documents": ["a fox"] * 5})["results"]
        check([x["index"] for x in same] == list(range(5)), "equal scores keep their order")
        for body, *words in (({"documents": ["a"]}, "query"), ({"query": "a"}, "documents"), ({"query": "a", "documents": []}, "documents"),
                             ({"query": "", "documents": ["a"]}, "query"), ({"query": ["a"], "documents": ["a"]}, "query"),
                             ({"query": "a", "documents": "b"}, "list"), ({"query": "a", "documents": ["b", ["c"]]}, "documents[1]"),
                             ({"query": "a", "documents": [{"image": "c"}]}, "documents[0]"), ({"query": "a", "texts": [3]}, "texts[0]"),
                             ({"query": "a", "documents": ["b"], "texts": ["b"]}, "two forms"), ({"query": "a", "documents": ["b"], "top_n": 0}, "top_n"),
                             ({"query": "a", "documents": ["b"], "top_n": -1}, "top_n"), ({"query": "a", "documents": ["b"] * 10000}, "10000", "4096"),
                             ({"query": "a", "documents": ["b", "fox " * 60]}, "documents[1]", "64 tokens", "48 tokens")):
            refused(s, "/v1/rerank", body, 400, *words)
        encoder_file.encoder(os.path.join(folder, "moved.gguf"), seed=2, labels=[""], second=n[0])
        parts = [("tokenizer.ggl.pair", "i32", [-2, -1, 3]), ("tokenizer.ggl.pair_types", "i32", [1, 0, 1])]
        encoder_file.encoder(os.path.join(folder, "parts.gguf"), seed=2, labels=[""], keys=parts)
        for name, n_added, same in (("moved", 3, True), ("parts", 1, False)):  # the types of the second text are in the positions; a pair of its own
            with Server([BINARY, "-m", os.path.join(folder, name + ".gguf"), "-t", "1"]) as other:
                seen = post(other, "/v1/rerank", {"query": QUERY, "documents": texts[:9]})
                far = max(abs(x["relevance_score"] - score[x["index"]]) for x in seen["results"])
                check((far < 1e-4) == same, f"{name}: {far}")
                one = post(other, "/v1/rerank", {"query": QUERY, "documents": texts[:1]})["usage"]["total_tokens"]
                check(one == sum(n) - 4 + n_added, f"{name}: {one} tokens")
        long = post(s, "/rerank", {"query": "a", "texts": ["fox " * 60], "truncate": True, "raw_scores": True})
        check(long == post(s, "/rerank", {"query": "a", "texts": ["fox " * 44], "raw_scores": True}), "truncate")


def causal(folder):
    """A model that writes ranks by the last token, and writes no more: here its scores are the probabilities of tokens."""
    with open(os.path.join(MODELS, "../archs/llama.arch")) as f:
        text = f.read()
    own = os.path.join(folder, "own.arch")
    with open(own, "w") as f:
        f.write(text.replace("\nconvert", "\nscore = softmax(logits)\nconvert", 1))
    with Server([BINARY, "-m", "builtin:chat", "--arch", own, "--reranking", "-c", "256", "-t", "1"]) as s:
        texts = [t[:100] for t in some_texts(30)]
        answer = post(s, "/v1/rerank", {"query": QUERY, "documents": texts})
        score = {x["index"]: x["relevance_score"] for x in answer["results"]}
        check(len(set(score.values())) > 20, "scores")
        many = run_all(s, [("/v1/rerank", {"query": QUERY, "documents": texts[i:i + 3]}) for i in range(20)])
        check(all({x["index"] + i: x["relevance_score"] for x in a["results"]} == {k: score[k] for k in range(i, i + 3)} for i, a in enumerate(many)), "others")
        refused(s, "/v1/rerank", {"query": "a", "documents": ["fox " * 300]}, 400, "256 tokens")
        refused(s, "/v1/completions", {"prompt": "a"}, 501, "/v1/rerank")
        refused(s, "/v1/embeddings", {"input": "a"}, 501, "/v1/rerank")
        end = post(s, "/tokenize", {"content": json.loads(s.get("/props")[2])["eos_token"]})["tokens"]
        ids = [post(s, "/tokenize", {"content": t, "add_special": True})["tokens"] for t in (QUERY, texts[0])]
    with Server([BINARY, "-m", "builtin:chat", "-c", "256", "-t", "1", "-ctk", "f32", "-ctv", "f32"]) as s: # token 0 after the pair, which is forced to be drawn
        body = {"prompt": ids[0] + end + ids[1][1:], "n_predict": 1, "n_probs": 1, "temperature": 0, "logit_bias": [[0, 1000]]}
        drawn = post(s, "/completion", body)["completion_probabilities"][0]
    check(len(end) == 1 and drawn["id"] == 0 and abs(math.log(score[0]) - drawn["logprob"]) < 1e-3, f"{score[0]}, {drawn}")


def unlike(folder):
    """What a model cannot do gets a sentence; everything that looks at the server works."""
    files = {"vectors": encoder_file.encoder(os.path.join(folder, "embed.gguf")),
             "scores": encoder_file.encoder(os.path.join(folder, "rank.gguf"), labels=[""])}
    chat = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2}
    writing = (("/v1/chat/completions", chat), ("/v1/completions", {"prompt": "a"}), ("/completion", {"prompt": "a"}), ("/api/generate", {"prompt": "a"}),
               ("/api/chat", chat), ("/v1/messages", dict(chat, max_tokens=2)), ("/v1/responses", {"input": "a"}))
    for what, model in files.items():
        with Server([BINARY, "-m", model, "-t", "1", "-c", "4096"]) as s:
            check(any("at most 48 tokens, fewer than -c 4096" in x for x in s.lines), s.lines)
            path = "/v1/embeddings" if what == "vectors" else "/v1/rerank"
            for other, body in writing:
                refused(s, other, body, 501, path, "writes no texts")
            if what == "vectors":
                refused(s, "/v1/rerank", {"query": "a", "documents": ["b"]}, 501, path, "ranks no documents")
            else:
                refused(s, "/v1/embeddings", {"input": "a"}, 501, path, "gives no embeddings")
                refused(s, "/embed", {"inputs": "a", "dimensions": 3}, 501, path)
            for look in ("/health", "/props", "/v1/models", "/api/tags", "/api/ps", "/slots"):
                check(s.get(look)[0] == 200, look)
            check(s.get("/")[0] == 200 and b"llm" in s.get("/metrics")[2], "the page, metrics")
            shown = post(s, "/api/show", {"model": json.loads(s.get("/v1/models")[2])["data"][0]["id"]})["capabilities"]
            check(shown == (["embedding"] if what == "vectors" else []), shown)
            slots = json.loads(s.get("/slots")[2])
            check(len(slots) == 64 and all(x["use"] == "empty" for x in slots), "slots are empty after a text")
            check(s.stop() == 0, "exit code")
    r = subprocess.run([BINARY, "-m", files["vectors"], "--reranking", "--port", "0"], capture_output=True, text=True, timeout=60)
    check(r.returncode == 1 and "score" in r.stderr, r)
    with Server([BINARY, "-m", files["scores"], "-t", "1", "--pooling", "mean"]) as s: # the states of a reranker are vectors, too
        check(len(vectors(s, "a fox")[0]) == 32, "--pooling mean")


def several(folder):
    """One server chats, embeds and ranks, with three models; clients that leave do no harm."""
    encoder_file.encoder(os.path.join(folder, "embed.gguf"))
    encoder_file.encoder(os.path.join(folder, "rank.gguf"), seed=2, labels=[""])
    os.symlink(os.path.abspath(os.path.join(MODELS, "stories-chat.gguf")), os.path.join(folder, "chat.gguf"))
    with Server([BINARY, "--models", folder, "-t", "1", "-c", "512"]) as s:
        show = {name: post(s, "/api/show", {"model": name})["capabilities"] for name in ("embed", "rank", "chat")}
        check(show["embed"] == ["embedding"] and show["rank"] == [] and "completion" in show["chat"], show)
        texts = some_texts(40)
        requests = [("/v1/embeddings", {"model": "embed", "input": texts[:20]}), ("/v1/rerank", {"model": "rank", "query": "a fox", "documents": texts[:4]}),
                    ("/v1/chat/completions", {"model": "chat", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8, "temperature": 0})]
        requests[1][1]["documents"] = [" ".join(t.split()[:30]) for t in texts[:4]]
        for path, body, other in (("/v1/embeddings", {"model": "chat", "input": "a"}, "embed"), ("/v1/rerank", {"model": "embed", "query": "a", "documents": ["b"]}, "rank"),
                                  ("/v1/completions", {"model": "rank", "prompt": "a"}, "chat")):
            refused(s, path, body, 501, f"but {other} of this server can")
        tags = {m["name"]: m["capabilities"] for m in json.loads(s.get("/api/tags")[2])["models"]}
        check(tags == show, tags)
        first = run_all(s, requests)
        check(len(first[0]["data"]) == 20 and len(first[1]["results"]) == 4 and first[2]["choices"][0]["message"]["content"], first)

        async def leave():
            async def one(cut):
                path, body = requests[cut % 2]
                try:
                    await exchange(s.port, "POST", path, body, cut=-cut * 40 if cut % 3 else cut)
                except (Gone, OSError, ValueError):
                    pass
            await asyncio.gather(*(one(i) for i in range(1, 60)))
        asyncio.run(leave())
        again = run_all(s, requests * 4)
        check(all(again[i]["data"] == first[0]["data"] and again[i + 1]["results"] == first[1]["results"] for i in range(0, 12, 3)), "again")
        refused(s, "/v1/embeddings", {"model": "rank", "input": "a"}, 501, "/v1/rerank")
        refused(s, "/v1/rerank", {"model": "chat", "query": "a", "documents": ["b"]}, 501, "the model ranks no documents, but rank of this server can do that")
        check(s.stop() == 0, "exit code")


def classifier(folder):
    """A model with several labels, none of which says how well a document answers: its first score ranks nothing, and no other model's refusal names it."""
    file = encoder_file.encoder(os.path.join(folder, "a-classes.gguf"), seed=3, labels=["contradiction", "entailment", "neutral"])
    encoder_file.encoder(os.path.join(folder, "embed.gguf"))
    ask = {"query": "a fox", "documents": ["a dog"]}
    with Server([BINARY, "--models", folder, "-t", "1", "-c", "48"]) as s:
        refused(s, "/v1/rerank", {"model": "embed", **ask}, 501, "this server gives embeddings (/v1/embeddings), and ranks no documents")
        why = "ranks no documents; the model is a classifier with 3 labels (contradiction, entailment, neutral), none of which says how well a text answers a query"
        refused(s, "/v1/rerank", {"model": "a-classes", **ask}, 501, why)
        refused(s, "/v1/rerank", {"model": "embed", **ask}, 501, "this server gives embeddings (/v1/embeddings), and ranks no documents")
        refused(s, "/v1/embeddings", {"model": "a-classes", "input": "a"}, 501, "the model has scores of labels, and gives no embeddings, but embed of this server can do that")
        encoder_file.encoder(os.path.join(folder, "rank.gguf"), seed=2, labels=[""])
    with Server([BINARY, "--models", folder, "-t", "1", "-c", "48"]) as s:
        for model in ("a-classes", "embed"):
            refused(s, "/v1/rerank", {"model": model, **ask}, 501, "but rank of this server can do that")
    r = subprocess.run([BINARY, "-m", file, "--reranking", "--port", "0"], capture_output=True, text=True, timeout=60)
    check(r.returncode == 1 and "--reranking: the model is a classifier with 3 labels (contradiction, entailment, neutral)" in r.stderr, r)


def tasks(folder):
    """Adapters for tasks, one for each text of a batch, and prompts that the model's file has."""
    model = encoder_file.encoder(os.path.join(folder, "embed.gguf"), keys=[("sentence_transformers.prompt.clustering", "string", "a cat ")])
    names = {"retrieval.query": "the fox ", "retrieval.passage": "a dog ", "separation": ""}
    files = [encoder_file.adapter(os.path.join(folder, f"{k}.gguf"), t, p, k) for k, (t, p) in enumerate(names.items())]
    texts = some_texts(12)
    alone = {}
    for file, task in zip(files, names):
        with Server([BINARY, "-m", model, "-t", "1", "--lora", file]) as s:
            alone[task] = vectors(s, texts)  # which get its prompt
    with Server([BINARY, "-m", model, "-t", "1"]) as s:
        alone[None] = vectors(s, texts)
        check(vectors(s, texts[0], prompt_name="clustering") == vectors(s, "a cat " + texts[0]), "prompt_name")
        refused(s, "/v1/embeddings", {"input": "a fox", "task": "separation"}, 400, "no adapter", "--lora")
    with Server([BINARY, "-m", model, "-t", "2", "--lora", ",".join(files)]) as s:
        check(vectors(s, texts) == alone[None], "without a task")
        for task in names:
            check(vectors(s, texts, task=task) == alone[task] != alone[None], task)
        check(post(s, "/embed", {"inputs": texts, "prompt_name": "query"}) == alone["retrieval.query"], "/embed")
        check(post(s, "/embed", {"inputs": texts, "prompt_name": ""}) == alone[None], "no prompt")
        jobs = [(task, texts[i]) for i in range(12) for task in names]
        got = run_all(s, [("/v1/embeddings", {"input": t, "task": task}) for task, t in jobs])
        check([a["data"][0]["embedding"] for a in got] == [alone[task][texts.index(t)] for task, t in jobs], "beside others")
        refused(s, "/v1/embeddings", {"input": "a fox", "task": "classification"}, 400, "no adapter")
        refused(s, "/embed", {"inputs": "a fox", "prompt_name": "mine"}, 400, "mine", "clustering")
        refused(s, "/v1/embeddings", {"input": "a fox", "task": 3}, 400, "task")


def writes(folder):
    """An encoder and a decoder: each prompt is read, and the answer is the one that it has alone; with --embeddings, vectors."""
    model = marian_folder.write(os.path.join(folder, "marian"))
    rng = random.Random(3)
    texts = [" ".join(rng.choice(("banana", "ban", "nana", "a", "b")) for _ in range(rng.randrange(1, 7))) for _ in range(40)]

    def ask(text, i):
        return {"prompt": text, "max_tokens": 8 + i % 17, "temperature": i % 3, "seed": i, "logprobs": 2}
    requests = [("/v1/completions", ask(t, i)) for i, t in enumerate(texts)]
    with Server([BINARY, "-m", model, "-t", "2", "-np", "4", "--metrics"]) as s:
        check(any("4 answers at once, context of 32 tokens for each" in x for x in s.lines), s.lines)
        check(post(s, "/api/show", {"model": "marian"})["capabilities"] == ["completion"], "capabilities")
        together, repeated = run_all(s, requests), []
        for (path, body), answer in zip(requests, together):
            alone = post(s, path, body)
            repeated.append(alone)
            check(alone["choices"] == answer["choices"], f"beside others: {body} {answer}")
            n = len(post(s, "/tokenize", {"content": body["prompt"], "add_special": True})["tokens"])
            check(answer["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"] == n, f"{n} tokens: {answer['usage']}")
        counted = re.search(rb"^llamacpp:prompt_tokens_total (\d+)", s.get("/metrics")[2], re.M)
        cached = lambda a: a["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0)
        check(counted and int(counted[1]) == sum(a["usage"]["prompt_tokens"] - cached(a) for a in together + repeated), f"metrics: {counted}")
        check(len({a["choices"][0]["text"] for a in together}) > 20, "the answers do not depend on the texts")
        most = post(s, "/completion", {"prompt": "banana", "n_predict": 100, "ignore_eos": True})
        check(most["tokens_predicted"] == marian_folder.N_CTX and most["truncated"], most)
        # a text is read once: for all answers of a request, and for the next one
        one = ask("ban nana b", 7)
        many = post(s, "/v1/completions", {**one, "n": 3})
        n = many["usage"]["prompt_tokens"]
        check([c["text"] for c in many["choices"]][0] == post(s, "/v1/completions", one)["choices"][0]["text"], "the first of three answers")
        check(cached(post(s, "/v1/completions", one)) == n - 1, "a text that was read")
        check(post(s, "/completion", {"prompt": "ban nana b", "cache_prompt": False})["timings"]["cache_n"] == 0, "cache_prompt")
        refused(s, "/v1/completions", {"prompt": "banana " * 40}, 400, "32 tokens")
        # searches beside each other and others
        searches = [("/completion", {"prompt": t, "n_predict": 12, "num_beams": 2 + i % 3} if i % 2 else ask(t, i)) for i, t in enumerate(texts[:16])]
        for (path, body), answer in zip(searches, run_all(s, searches)):
            if "num_beams" in body:
                out = subprocess.run([sys.argv[3], "-m", model, "-p", body["prompt"], "-n", "12", "--beams", str(body["num_beams"])], capture_output=True, text=True)
                check(answer["content"].strip() == out.stdout.strip(), f"{body}: {answer['content']}, alone {out.stdout}")
        # the space that the tokenizer puts before a text begins no answer
        word = TOKENS.index(SPACE + "ban")
        begun = {"prompt": "banana", "max_tokens": 2, "logit_bias": {str(word): 1000}, "logprobs": 0}
        for more in ({}, {"stop": ["no such text"]}):
            said = post(s, "/v1/completions", {**begun, **more})["choices"][0]
            check(said["text"] == "ban ban" and said["logprobs"]["text_offset"] == [0, 3], f"a text that begins with a word: {said}")
        check(post(s, "/v1/completions", {**begun, "stop": [" ban"]})["choices"][0]["text"] == "ban", "a stop text finds the space")
        check(post(s, "/completion", {"prompt": "banana", "n_predict": 2, "logit_bias": [[word, 1000]]})["content"] == "ban ban", "llama.cpp's API")
        refused(s, "/v1/completions", {"prompt": "banana", "echo": True, "logprobs": 1}, 400, "reads the prompt")
        refused(s, "/v1/embeddings", {"input": "banana"}, 501, "--embeddings")

        async def leave():
            async def one(cut):
                try:
                    await exchange(s.port, "POST", *requests[cut % 40], cut=cut * 9)
                except (Gone, OSError, ValueError):
                    pass
            await asyncio.gather(*(one(i) for i in range(1, 40)))
        asyncio.run(leave())
        again = run_all(s, requests)
        check([a["choices"] for a in again] == [a["choices"] for a in together], "again")
        check(s.stop() == 0, "exit code")
    # a classifier reads a text with both halves: the scores of its first label, alone and beside others
    judge, texts = marian_folder.write(os.path.join(folder, "judge"), ["yes", "no"]), texts[:30]
    with Server([BINARY, "-m", judge, "-t", "2", "-np", "3", "--reranking"]) as s:
        def ranked(some):
            return {x["index"]: x["relevance_score"] for x in post(s, "/v1/rerank", {"query": "ban", "documents": some})["results"]}
        got = ranked(texts)
        check(len(set(got.values())) > 15 and all(ranked([t])[0] == got[i] for i, t in enumerate(texts)), "scores")
        by_tool = subprocess.run([os.path.join(os.path.dirname(sys.argv[3]), "llm-embed"), "-m", judge, "--rerank", "ban", *sum((["-p", t] for t in texts), [])],
                                 capture_output=True, text=True, check=False) if len(sys.argv) > 3 and os.path.exists(os.path.join(os.path.dirname(sys.argv[3]), "llm-embed")) else None
        check(not by_tool or by_tool.returncode == 0, by_tool and by_tool.stderr)
        for line in by_tool.stdout.splitlines() if by_tool else []:
            x = json.loads(line)
            check(abs(x["score"] - got[x["index"]]) < 1e-6, f"llm-embed: {x} {got[x['index']]}")
    # a slot is saved with the text, and its answer comes again without reading that
    files = ["--slot-save-path", folder]
    said = {"prompt": "nana ban a a", "n_predict": 12, "temperature": 0, "ignore_eos": True, "id_slot": 1}
    with Server([BINARY, "-m", model, "-t", "1", "-np", "2", *files]) as s:
        want = post(s, "/completion", said)
        r = post(s, "/slots/1?action=save", {"filename": "a.slot"})
        check(want["timings"]["cache_n"] == 0 and r["n_saved"] == 12 and r["n_written"] > 64 * 16 * 8, r)
        check(s.stop() == 0, "exit code")
    with Server([BINARY, "-m", model, "-t", "1", "-np", "2", *files]) as s:
        check(post(s, "/slots/0?action=restore", {"filename": "a.slot"})["n_restored"] == 12, "restored")
        got = post(s, "/completion", said)
        check(got["content"] == want["content"] and got["timings"]["cache_n"] == want["timings"]["prompt_n"] - 1, got)
        check(s.stop() == 0, "exit code")
    with Server([BINARY, "-m", model, "-t", "1", "--embeddings"]) as s:
        check(len(vectors(s, "banana")[0]) == marian_folder.N, "vectors")
        refused(s, "/v1/completions", {"prompt": "banana"}, 501, "/v1/embeddings")


def diffuses(folder):
    """A model that writes by diffusion: the text of llm-cli, in all APIs, alone and beside others; a stream gives what is settled."""
    model, rng = dream_file.write(os.path.join(folder, "dream.gguf"), has_bytes=False, context=160), random.Random(4)
    schedules = [({}, []), ({"diffusion_steps": 3}, ["--diffusion-steps", "3"]), ({"diffusion_block_length": 5}, ["--diffusion-block-length", "5"]),
                 ({"diffusion_algorithm": "entropy", "diffusion_alg_temp": 0.5}, ["--diffusion-algorithm", "entropy", "--diffusion-alg-temp", "0.5"]),
                 ({"diffusion_algorithm": 0, "diffusion_eps": 0.01}, ["--diffusion-algorithm", "origin", "--diffusion-eps", "0.01"]),
                 ({"diffusion_cfg_scale": 1.5}, ["--diffusion-cfg-scale", "1.5"])]
    bodies, flags = [], []
    for i in range(24):
        text, n, (fields, args) = " ".join(rng.choice(("the fox", "a cat", "dog")) for _ in range(1 + i % 3)), 4 + i * 7 % 23, schedules[i % 6]
        temp = i % 3
        bodies.append({"prompt": text, "max_tokens": n, "temperature": temp, "seed": i, **fields})
        flags.append(["-p", text, "-n", str(n), "--temp", str(temp), "-s", str(i), *args])
    cli = sys.argv[3]
    # llm-cli leaves out the space of a text's first word
    want = [" " + subprocess.run([cli, "-m", model, "-no-cnv", *f], capture_output=True, text=True, check=True).stdout[:-1] for f in flags]
    with Server([BINARY, "-m", model, "-t", "2", "-np", "6", "--chat-template", "chatml", "--metrics"]) as s:
        check(any("6 answers at once, context of 160 tokens for each" in x for x in s.lines), s.lines)
        check(post(s, "/api/show", {"model": "dream"})["capabilities"] == ["completion"], "capabilities")
        together = run_all(s, [("/v1/completions", b) for b in bodies])
        check([a["choices"][0]["text"] for a in together] == want, "texts of llm-cli")
        check([post(s, "/v1/completions", b)["choices"][0]["text"] for b in bodies[:8]] == want[:8], "alone")
        check(len(set(want)) > 15, "texts that do not depend on prompts and seeds")
        for a, b in zip(together, bodies):
            u = a["usage"]
            check(u["completion_tokens"] <= b["max_tokens"] and (a["choices"][0]["finish_reason"] == "length") == (u["completion_tokens"] == b["max_tokens"]), u)
        one = bodies[7]
        pieces = [json.loads(line[6:]) for line in s.post("/completion", {**one, "n_predict": one["max_tokens"], "stream": True})[2].decode().splitlines()
                  if line.startswith("data: {")]
        check("".join(x["content"] for x in pieces) == want[7] and len(pieces) > 2, pieces)
        two = post(s, "/v1/completions", {**one, "n": 2})
        check(two["choices"][0]["text"] == want[7] != two["choices"][1]["text"], "seeds of two choices")
        surest = [post(s, "/v1/completions", {**one, "temperature": 1, **x})["choices"][0]["text"] for x in ({"top_p": 0}, {"top_k": 1}, {"top_p": 1, "top_k": 0})]
        check(surest[0] == surest[1] != surest[2], surest)
        refused(s, "/v1/completions", {**one, "diffusion_steps": 1 << 20}, 400, "must be an integer from 0 to 160")
        word = want[7].split()[2]
        stopped = post(s, "/v1/completions", {**one, "stop": word})["choices"][0]
        check(stopped["text"] == want[7][:want[7].find(word)] and stopped["finish_reason"] == "stop", stopped)
        chat = {"messages": [{"role": "user", "content": "the fox"}], "temperature": 0, "max_tokens": 12}
        answer = post(s, "/v1/chat/completions", chat)["choices"][0]["message"]["content"]
        prompt = post(s, "/apply-template", {"messages": chat["messages"]})["prompt"]
        check(answer == post(s, "/completion", {"prompt": prompt, "n_predict": 12, "temperature": 0})["content"], answer)
        check(len(post(s, "/completion", {"prompt": "the fox", "ignore_eos": True, "return_tokens": True})["tokens"]) == 64, "what fits")
        check(all(x["use"] == "empty" for x in json.loads(s.get("/slots")[2])), "slots")
        refused(s, "/v1/completions", {"prompt": "the fox", "max_tokens": 158}, 400, "has room for 151")
        refused(s, "/v1/completions", {"prompt": "the fox", "max_tokens": 0}, 400, "1 or more")
        refused(s, "/v1/completions", {"prompt": "the fox", "logprobs": 1}, 400, "log-probabilities")
        refused(s, "/v1/chat/completions", {**chat, "response_format": {"type": "json_object"}}, 400, "writes by diffusion")
        refused(s, "/v1/completions", {"prompt": "the fox", "logit_bias": {"5": 1}}, 400, "a bias")
        refused(s, "/v1/completions", {"prompt": "the fox", "diffusion_algorithm": "best"}, 400, "diffusion_algorithm")
        refused(s, "/v1/completions", {"prompt": "the fox", "diffusion_eps": 1}, 400, "diffusion_eps")
        refused(s, "/v1/embeddings", {"input": "the fox"}, 501, "--embeddings")

        async def leave():
            async def one(cut):
                try:
                    await exchange(s.port, "POST", "/v1/completions", bodies[cut % 24], cut=cut * 9)
                except (Gone, OSError, ValueError):
                    pass
            await asyncio.gather(*(one(i) for i in range(1, 30)))
        asyncio.run(leave())
        check([a["choices"][0]["text"] for a in run_all(s, [("/v1/completions", b) for b in bodies])] == want, "again")
        check(s.stop() == 0, "exit code")
    with Server([BINARY, "-m", model, "-t", "1", "--diffusion-steps", "3", "--diffusion-block-length", "5"]) as s:
        said = ["-m", model, "-no-cnv", "-p", "a cat", "-n", "9", "--temp", "0", "--diffusion-steps", "3", "--diffusion-block-length", "5"]
        want = " " + subprocess.run([cli, *said], capture_output=True, text=True, check=True).stdout[:-1]
        check(post(s, "/completion", {"prompt": "a cat", "n_predict": 9, "temperature": 0})["content"] == want, "the server's schedule")
    with Server([BINARY, "-m", model, "-t", "1", "--embeddings"]) as s:
        check(len(vectors(s, "the fox")[0]) == dream_file.DIM, "vectors")
        refused(s, "/v1/completions", {"prompt": "the fox"}, 501, "/v1/embeddings")
    with Server([BINARY, "-m", "builtin:stories", "-t", "1"]) as s:
        refused(s, "/completion", {"prompt": "the fox", "diffusion_steps": 3}, 400, "diffusion_steps", "by diffusion")
        text = post(s, "/v1/completions", {"prompt": "the fox", "max_tokens": 60, "seed": 1, "response_format": {"type": "json_schema", "json_schema": {
            "name": "n", "schema": {"enum": ["fox", "dog"]}}}})["choices"][0]["text"]
        check(json.loads(text) in ("fox", "dog"), text)
        refused(s, "/v1/responses", {"input": "the fox"}, 400, "no chat template", '"param": "input"')
    r = subprocess.run([BINARY, "-m", model, "--lookup", "--port", "0"], capture_output=True, text=True, timeout=60, check=False)
    check(r.returncode == 2 and "--lookup: the model writes by diffusion" in r.stderr, r.stderr)
    r = subprocess.run([BINARY, "-m", model, "--diffusion-eps", "1", "--port", "0"], capture_output=True, text=True, timeout=60, check=False)
    check(r.returncode == 2 and "--diffusion-eps: 1 is out of range" in r.stderr, r.stderr)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[2]](temporary)
