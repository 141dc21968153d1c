#!/usr/bin/env python3
"""Answers a question from paragraphs: searches their vectors, lets a reranker order what was found, and gives the best to a chat model.

    ask.py [--server URL] [--top N] [--rerank MODEL] PARAGRAPHS VECTORS QUESTION

VECTORS is what `llm-embed -f PARAGRAPHS --document -o VECTORS` has written. The server is an llm-server with the models `embedder` and
`chat`, and MODEL if there is a reranker. Needs numpy. docs/retrieval.md explains it."""
import argparse
import json
import urllib.request

import numpy


def post(a, path, **body):
    request = urllib.request.Request(a.server + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def search(vectors, query, top):
    """The indices of the largest products, the largest first."""
    scores = vectors @ query
    best = numpy.argpartition(-scores, min(top, len(scores) - 1))[:top]
    return best[numpy.argsort(-scores[best])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", default="http://127.0.0.1:8080")
    parser.add_argument("--top", type=int, default=5, help="paragraphs to find")
    parser.add_argument("--rerank", metavar="MODEL")
    parser.add_argument("--prompt", default="", help="what the embedder expects before a query, such as 'query: '")
    for name in ("paragraphs", "vectors", "question"):
        parser.add_argument(name)
    a = parser.parse_args()

    with open(a.paragraphs, encoding="utf-8") as file:
        paragraphs = file.read().splitlines()
    vectors = numpy.load(a.vectors, mmap_mode="r")
    if len(vectors) != len(paragraphs):
        parser.error(f"{a.vectors} has {len(vectors)} rows for {len(paragraphs)} paragraphs")

    query = post(a, "/v1/embeddings", model="embedder", input=a.prompt + a.question)["data"][0]["embedding"]
    found = search(vectors, numpy.array(query, numpy.float32), a.top)
    if a.rerank:
        results = post(a, "/v1/rerank", model=a.rerank, query=a.question, documents=[paragraphs[k] for k in found])["results"]
        found = [found[r["index"]] for r in results]
    for k in found:
        print(f"line {k + 1}: {paragraphs[k][:70]}..")

    # The built-in chat model was trained on questions after a story. Others want one message: the paragraphs, then the question.
    messages = [{"role": "user", "content": "Tell me a story."}, {"role": "assistant", "content": paragraphs[found[0]]},
                {"role": "user", "content": a.question}]
    print(post(a, "/v1/chat/completions", model="chat", messages=messages, temperature=0, max_tokens=200)["choices"][0]["message"]["content"])


if __name__ == "__main__":
    main()
