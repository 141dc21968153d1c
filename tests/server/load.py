#!/usr/bin/env python3
"""Many clients at once: random arrivals, cancellations, broken connections. Every answer that is finished must be the one that
llm-cli gives alone: the same text, and log-probabilities with the same digits.

    load.py LLM-SERVER LLM-CLI MODEL [--chat MODEL] [--clients 64] [--seconds 15] [--seed 1] [-- options of the server]
    load.py ... --same          no random load: each request alone, then among 31 others, on one thread and on two
"""
import argparse
import asyncio
import collections
import json
import random
import subprocess
import sys
import time

from running import Gone, Server, events, exchange, unchunk  # noqa: F401

WORDS = "Once upon a time there was little girl named Lily who had big red ball and she liked to play in the park with her dog".split()
GREETINGS = ["Hi", "Hello, who are you?", "Tell me a story about a cat.", "What is your name?", "Thank you!", "My name is Tom."]


class Case:
    """A request in the server's words and in llm-cli's, and the answer that llm-cli gives."""

    def __init__(self, rng, chat):
        self.chat = chat
        self.prompt = rng.choice(GREETINGS) if chat else " ".join(rng.choice(WORDS) for _ in range(rng.choice([1, 4, 20, 90])))
        self.n = rng.choice([1, 3, 12, 40])
        self.seed = rng.randrange(2**31)
        self.temp = rng.choice([0, 0.7, 1.3])
        self.top_k = rng.choice([0, 5, 40])
        self.repeat = rng.choice([1, 1.2])
        self.stop = rng.choice([None, None, " the", "y."])

    def command(self, cli, model):
        c = [cli, "-m", model, "-p", self.prompt, "-n", str(self.n), "-s", str(self.seed), "--temp", str(self.temp),
             "--top-k", str(self.top_k), "--top-p", "0.95", "--min-p", "0.05", "--repeat-penalty", str(self.repeat),
             "-c", "512", "--json-output", "-t", "1"]
        if self.stop:
            c += ["--stop", self.stop]
        return c + (["-cnv", "-st"] if self.chat else [])

    def body(self, stream):
        b = {"model": "any", "max_tokens": self.n, "seed": self.seed, "temperature": self.temp, "top_k": self.top_k,
             "top_p": 0.95, "min_p": 0.05, "repeat_penalty": self.repeat, "stream": stream}
        if self.stop:
            b["stop"] = self.stop
        if self.chat:
            return dict(b, messages=[{"role": "user", "content": self.prompt}], logprobs=True)
        return dict(b, prompt=self.prompt, logprobs=0)

    @property
    def path(self):
        return "/v1/chat/completions" if self.chat else "/v1/completions"

    def expect(self, cli, model):
        out = subprocess.run(self.command(cli, model), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if out.returncode != 0:
            raise SystemExit(f"llm-cli failed: {out.stderr[-500:]}")
        record = json.loads(out.stdout)
        self.text = record["content"] if self.chat else record["text"]
        self.logprobs = record["logprobs"]

    def check(self, text, logprobs):
        """Returns what is wrong, or None."""
        if text.strip() != self.text.strip():
            return f"text {text!r} in place of {self.text!r}"
        want = self.logprobs[:len(logprobs)]
        if [f"{x:.6g}" for x in logprobs] != [f"{x:.6g}" for x in want]:
            return f"log-probabilities {logprobs} in place of {self.logprobs}"
        if len(self.logprobs) - len(logprobs) > (8 if self.stop else 1):  # the token that ends the text, or what a stop string removes
            return f"{len(logprobs)} log-probabilities in place of {len(self.logprobs)}"
        return None


def read_logprobs(lp, chat):
    if not lp:
        return []
    return [t["logprob"] for t in lp["content"]] if chat else lp["token_logprobs"]


def answer_of(case, body, stream):
    """Returns (text, log-probabilities) of an answer."""
    if not stream:
        c = json.loads(body)["choices"][0]
        return (c["message"]["content"] or "" if case.chat else c["text"]), read_logprobs(c.get("logprobs"), case.chat)
    text, probs = "", []
    for e in events(body):
        if "error" in e:
            raise ValueError(f"an error in the stream: {e}")
        for c in e["choices"]:
            text += (c["delta"].get("content") or "") if case.chat else c["text"]
            probs += read_logprobs(c.get("logprobs"), case.chat)
    return text, probs


class Load:
    def __init__(self, port, cases, seed):
        self.port, self.cases, self.rng = port, cases, random.Random(seed)
        self.counts = collections.Counter()
        self.wrong = []

    async def one(self, case, stream, cut=None):
        try:
            status, headers, body = await exchange(self.port, "POST", case.path, case.body(stream), cut)
        except Gone:
            self.counts["gone"] += 1
            return
        except ValueError as e:  # an answer that is cut off within its chunks
            self.wrong.append(f"{case.path} {case.prompt[:40]!r} stream={stream}: {e}")
            return
        if status == 429:
            self.counts["full"] += 1
            if "retry-after" not in headers:
                self.wrong.append("429 without Retry-After")
            return
        if status != 200:
            self.wrong.append(f"status {status}: {body[:300]!r}")
            return
        try:
            fault = case.check(*answer_of(case, body, stream))
        except (ValueError, KeyError) as e:
            fault = f"{type(e).__name__} {e}: {body[-300:]!r}"
        self.counts["finished"] += 1
        if fault:
            self.wrong.append(f"{case.path} {case.prompt[:40]!r} stream={stream}: {fault}")

    async def client(self, end):
        while time.monotonic() < end and len(self.wrong) < 5:
            r = self.rng.random()
            cut = None if r < 0.8 else self.rng.randrange(1, 3000) if r < 0.93 else -self.rng.randrange(1, 400)
            try:
                await self.one(self.rng.choice(self.cases), self.rng.random() < 0.6, cut)
            except OSError as e:
                self.wrong.append(f"the connection failed: {e}")
            await asyncio.sleep(self.rng.expovariate(20))

    async def run(self, n, seconds):
        end = time.monotonic() + seconds
        await asyncio.gather(*(self.client(end) for _ in range(n)))

    async def together(self, n):
        """Each request among n - 1 others."""
        for i, case in enumerate(self.cases):
            await self.one(case, i % 2 == 0)
            others = [self.one(self.cases[(i + k) % len(self.cases)], k % 2 == 0) for k in range(n)]
            await asyncio.gather(*others)


def idle(server):
    """Waits until no request runs. Returns what is wrong, or None."""
    for _ in range(200):
        slots = json.loads(server.get("/slots")[2])
        if not any(s["is_processing"] for s in slots):
            return None
        time.sleep(0.1)
    return "slots are still busy 20 seconds after the last request"


def finish(server, load, a, what):
    fault = idle(server)
    files, memory = server.files(), server.memory() >> 20
    code = server.stop()
    if code != 0:
        fault = f"exit code {code} after SIGTERM: {''.join(server.lines)[-2000:]}"
    print(f"{what}: {dict(load.counts)}, {files} descriptors, {memory} MiB at the end")
    for w in load.wrong[:5] + ([fault] if fault else []):
        print("wrong:", w)
    if load.wrong:
        print("".join(server.lines)[-2000:])
    if load.counts["finished"] == 0:
        print("wrong: nothing was finished")
        return 1
    return 1 if load.wrong or fault else 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("server"), ap.add_argument("cli"), ap.add_argument("model")
    ap.add_argument("--chat", default="builtin:chat")
    ap.add_argument("--clients", type=int, default=64)
    ap.add_argument("--seconds", type=float, default=15)
    ap.add_argument("--cases", type=int, default=40)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--same", action="store_true")
    ap.add_argument("rest", nargs="*")
    a = ap.parse_args()
    rng = random.Random(a.seed)
    bad = 0
    for chat, model in ((False, a.model), (True, a.chat)):
        cases = [Case(rng, chat) for _ in range(a.cases // (2 if a.same else 1))]
        for c in cases:
            c.expect(a.cli, model)
        for threads in (("1", "2") if a.same else ("2",)):
            command = [a.server, "-m", model, "-t", threads, "-np", "32" if a.same else "16", "-c", "8192", "--queue", "128", *a.rest]
            with Server(command) as s:
                load = Load(s.port, cases, a.seed)
                try:
                    asyncio.run(load.together(32) if a.same else load.run(a.clients, a.seconds / 2))
                    bad |= finish(s, load, a, f"{model.split('/')[-1]}, {threads} threads")
                except Exception:
                    print("".join(s.lines)[-2000:])
                    raise
    return bad


if __name__ == "__main__":
    sys.exit(main())
