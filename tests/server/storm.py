#!/usr/bin/env python3
"""A storm: clients with requests of all kinds, most of which vanish, many within the body they send, while a worker reads it, or
in the middle of an answer; with a reset or an end. Afterwards the server is calm: no slot is busy, nothing is held, no descriptor is
left, and it ends with code 0. Its sanitizers, if it has any, see the memory and the threads meanwhile.

    storm.py LLM-SERVER [--clients 16] [--requests 25] [--seconds N] [--seed 1]

Each client sends so many requests, or as many as it can in so many seconds.
"""
import argparse
import collections
import json
import random
import re
import socket
import sys
import threading
import time

from running import Server

OPTIONS = ["-np", "8", "-c", "512", "-t", "2", "--queue", "64", "--embeddings", "--lookup", "--request-memory", "512"]
HEAD = "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
RESET = b"\1\0\0\0\0\0\0\0"
PATIENCE = 120


def body(r):
    """Returns (path, body)."""
    stream = r.random() < 0.6
    kind = r.randrange(10)
    text = " ".join(r.choice("once upon a time there was the little red dog".split()) for _ in range(r.choice([1, 5, 60])))
    more = {"max_tokens": r.choice([1, 5, 30]), "stream": stream, "seed": r.randrange(100), "ignore_eos": r.random() < 0.3}
    if kind == 0:
        return "/completion", {"prompt": [1] * r.choice([10, 300000]), "n_predict": 5, "stream": stream}
    if kind == 1:
        return "/v1/embeddings", {"input": [text] * r.randrange(1, 20)}
    if kind == 2:
        return "/tokenize", {"content": text * 300}
    if kind == 3:
        return "/v1/completions", dict(more, prompt=[text] * 3, n=r.choice([1, 4]), logprobs=5, echo=r.random() < 0.3)
    if kind == 4:
        schema = {"type": "object", "properties": {f"k{i}": {"enum": ["a", "b", i]} for i in range(r.randrange(1, 20))}, "additionalProperties": False}
        return "/completion", dict(more, prompt=text, json_schema=schema)
    if kind == 5:
        return "/v1/messages", {"messages": [{"role": "user", "content": text}], "max_tokens": 10, "stream": stream}
    if kind == 6:
        return "/api/generate", {"prompt": text, "stream": stream, "options": {"num_predict": 8}}
    if kind == 7:
        return "/v1/completions", dict(more, prompt=text, num_beams=r.randrange(1, 9))
    return "/v1/chat/completions", dict(more, messages=[{"role": "user", "content": text}], logprobs=r.random() < 0.3)


def message(r):
    """Returns a request, and where its body begins."""
    if r.random() < 0.05:
        return (HEAD.format("GET", "/props?" + "&".join(f"a{i}" for i in range(r.choice([1, 50, 2000])))) + "\r\n").encode(), 0
    path, value = body(r)
    data = json.dumps(value).encode()
    if r.random() < 0.05:
        data = bytes(r.randrange(256) for _ in range(1000))
    if r.random() < 0.1:  # in chunks
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + 5000]), data[i:i + 5000]) for i in range(0, len(data), 5000))
        head = HEAD.format("POST", path) + "Transfer-Encoding: chunked\r\n\r\n"
        return head.encode() + pieces + b"0\r\n\r\n", len(head)
    head = HEAD.format("POST", path) + f"Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data, len(head)


class Storm:
    def __init__(self, port, a):
        self.port, self.a = port, a
        self.counts = collections.Counter()
        self.end = time.monotonic() + a.seconds if a.seconds else None

    def one(self, r):
        text, begin = message(r)
        way = r.choice(["head", "body", "body", "body", "sent", "half", "read", "read", "whole", "whole"])
        if way == "head":
            text = text[:r.randrange(begin + 1)]
        elif way == "body":
            text = text[:r.randrange(begin, len(text)) + 1]
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
            s.sendall(text)
            if way in ("body", "sent"):
                time.sleep(r.choice([0, 0, 0.001, 0.01, 0.1]))
            elif way == "half":
                s.shutdown(socket.SHUT_WR)
                s.recv(10)
            elif way == "read":
                for _ in range(r.randrange(1, 4)):
                    s.recv(r.randrange(1, 3000))
            elif way == "whole":
                got = s.recv(65536)
                self.counts[got[9:12].decode("latin-1") or "closed"] += 1
            self.counts[way] += 1
            if r.random() < 0.6:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def client(self, seed):
        r = random.Random(seed)
        n = 0
        while time.monotonic() < self.end if self.end else n < self.a.requests:
            n += 1
            try:
                self.one(r)
            except OSError as e:
                self.counts[type(e).__name__] += 1

    def run(self):
        clients = [threading.Thread(target=self.client, args=(f"{self.a.seed} {i}",)) for i in range(self.a.clients)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()


def what_is_left(server, files):
    """Returns what is not as it was before, or None."""
    if server.process.poll() is not None:
        return f"the server has ended with code {server.process.returncode}"
    slots = json.loads(server.get("/slots")[2] or "[]")
    text = server.get("/metrics")[2].decode()
    held = {use: int(n) for use, n in re.findall(r'llm_request_memory_bytes{use="(\w+)"} (\d+)', text)}
    if not slots or any(s["is_processing"] for s in slots):
        return f"slots are busy: {slots}"
    if not held or any(held[use] for use in ("bodies", "requests", "answers")):
        return f"memory is held: {held}"
    if server.files() > files + 2:
        return f"{server.files()} descriptors, {files} before"
    return None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("server")
    ap.add_argument("--clients", type=int, default=16)
    ap.add_argument("--requests", type=int, default=25)
    ap.add_argument("--seconds", type=float)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    with Server([a.server, *OPTIONS]) as server:
        server.get("/slots")
        files = server.files()
        storm = Storm(server.port, a)
        storm.run()
        end = time.monotonic() + PATIENCE
        fault = what_is_left(server, files)
        while fault and time.monotonic() < end and server.process.poll() is None:
            time.sleep(0.2)
            fault = what_is_left(server, files)
        memory = server.memory() >> 20 if server.process.poll() is None else 0
        code = server.stop() if server.process.poll() is None else server.process.returncode
        reports = [line.strip() for line in server.lines if re.search("Sanitizer|runtime error|SUMMARY", line)]
        print(f"seed {a.seed}: {dict(storm.counts)}, {memory} MiB at the end, exit code {code}")
        if fault or code != 0 or reports or storm.counts["200"] == 0:
            print("wrong:", fault, reports[:5], "".join(server.lines)[-6000:])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
