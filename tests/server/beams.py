#!/usr/bin/env python3
"""Searches of beams by llm-server: the text is that of llm-cli --beams, other requests go on beside it, and it gives back all that it had.
beams.py LLM-SERVER CASE LLM-CLI."""
import json
import socket
import subprocess
import sys
import threading
import time

from http_layer import check
from running import Server

BINARY, CLI = sys.argv[1], sys.argv[3]
STORY = "Once upon a time"


def start(*more):
    return Server([BINARY, "-m", "builtin:stories", "-t", "1", "-c", "1024", "-np", "4", *more])


def ask(s, path, body, status=200):
    got, _, text = s.post(path, body)
    check(got == status, f"{path} {body}: {got} {text[:300]}")
    return json.loads(text)


def refused(s, body, words, path="/v1/completions", status=400):
    message = ask(s, path, {"prompt": STORY, **body}, status)["error"]["message"]
    check(words in message, f"{body}: {message}")


def alone(prompt, n, *flags):
    """What llm_generate writes, in ids and text."""
    out = subprocess.run([CLI, "-m", "builtin:stories", "-p", prompt, "-n", str(n), "-c", "1024", "--json-output", *flags], check=True, capture_output=True, text=True).stdout
    said = json.loads(out)
    return said["text"], said["finish"]


def texts():
    """All APIs, all names of the options."""
    want = {}
    for beams, flags in ((2, ()), (4, ()), (3, ("--length-penalty", "-1")), (3, ("--length-penalty", "2", "--early-stopping"))):
        want[beams, flags] = alone(STORY, 300, "--beams", str(beams), *flags)[0]
    check(len(set(want.values())) >= 3, want)
    with start() as s:
        plain = {"prompt": STORY, "n_predict": 300}
        for (beams, flags), text in want.items():
            more = {"length_penalty": float(flags[1])} if flags else {}
            more.update({"early_stopping": True} if len(flags) > 2 else {})
            for names in ({"num_beams": beams}, {"use_beam_search": True, "beam_width": beams}):
                r = ask(s, "/completion", {**plain, **names, **more})
                check(r["content"] == text, (names, r["content"], text))
                r = ask(s, "/v1/completions", {"prompt": STORY, "max_tokens": 300, **names, **more})
                check([c["text"] for c in r["choices"]] == [text], (names, r, text))
        # a text that ends by itself, one that a stop text ends, a stream
        text, finish = alone(STORY, 400, "--beams", "3")
        check(finish == "stop", finish)
        r = ask(s, "/v1/completions", {"prompt": STORY, "max_tokens": 400, "num_beams": 3})["choices"][0]
        check(r["text"] == text and r["finish_reason"] == "stop", (r, text))
        r = ask(s, "/v1/completions", {"prompt": STORY, "max_tokens": 400, "num_beams": 3, "stop": "."})["choices"][0]
        check(r["text"] == text[:text.index(".")], r)
        lines = s.post("/v1/completions", {"prompt": STORY, "max_tokens": 400, "num_beams": 3, "stream": True})[2].decode().split("\n\n")
        check("".join(json.loads(x[6:])["choices"][0]["text"] for x in lines if x.startswith("data: {")) == text, lines[:3])
        # the best texts of one search: vLLM's n
        best = ask(s, "/v1/completions", {"prompt": [STORY, "One day"], "max_tokens": 400, "use_beam_search": True, "n": 3})
        choices = [c["text"] for c in best["choices"]]
        check(len(set(choices)) == 6 and choices[0] == text and choices[3] == alone("One day", 400, "--beams", "3")[0], choices)
        used = best["usage"]
        check(used["prompt_tokens"] == 5 + 3 and used["completion_tokens"] > 6 * 30, used)
        two = ask(s, "/v1/completions", {"prompt": STORY, "max_tokens": 400, "num_beams": 3, "n": 2})["choices"]
        check([c["text"] for c in two] == choices[:2] and [c["index"] for c in two] == [0, 1], two)
        none = ask(s, "/v1/completions", {"prompt": STORY, "max_tokens": 0, "num_beams": 3, "n": 2})["choices"]
        check([c["text"] for c in none] == ["", ""], none)
        check(ask(s, "/completion", {**plain, "num_beams": 1, "temperature": 0})["content"] == ask(s, "/completion", {**plain, "temperature": 0})["content"], "one beam is none")
    with Server([BINARY, "-m", "builtin:chat", "-t", "1", "-np", "4", "-c", "1024"]) as s:
        talk = {"messages": [{"role": "user", "content": "Tell me a story"}], "max_tokens": 24}
        prompt = ask(s, "/apply-template", talk)["prompt"]
        want = ask(s, "/completion", {"prompt": prompt, "n_predict": 24, "num_beams": 4})["content"]
        r = ask(s, "/v1/chat/completions", {**talk, "num_beams": 4})["choices"][0]["message"]["content"]
        check(r.strip() == want.strip() and r, (r, want))


def beside():
    """Requests that run at the same time have their texts; a stream beside a search gets a token in each of its steps."""
    with start() as s:
        asks = [{"prompt": p, "n_predict": 60, "seed": k, "temperature": 0.8, **({"num_beams": 2 + k % 3} if k % 3 != 1 else {})}
                for k, p in enumerate([STORY, "One day", "The boy", "Mia", STORY, STORY, "A dog", "The boy", "Mia"])]
        want = [ask(s, "/completion", a)["content"] for a in asks]
        got = [None] * len(asks)

        def run(k):
            got[k] = ask(s, "/completion", asks[k])["content"]

        threads = [threading.Thread(target=run, args=(k,)) for k in range(len(asks))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        check(got == want, [(a, g, w) for a, g, w in zip(asks, got, want) if g != w])


def limits():
    """What is refused; and what a search holds when its client hangs up, or its time is over."""
    with start() as s:
        refused(s, {"num_beams": 5}, "5 beams need as many sequences (--parallel), but there are 4")
        refused(s, {"num_beams": 65}, "must be from 1 to 64")
        refused(s, {"use_beam_search": True, "n": 6}, "6 beams need as many sequences")
        refused(s, {"num_beams": 2, "n": 3}, "a search of 2 beams gives as many texts at most, and not 3")
        refused(s, {"num_beams": 2.5}, "must be an integer")
        refused(s, {"num_beams": 2, "length_penalty": "x"}, "must be a number")
        refused(s, {"num_beams": 2, "logprobs": 1}, "a search of beams (num_beams) and log-probabilities (logprobs) cannot be used together")  # e2e.job_rules has the others
        # four beams have all slots; whoever comes later waits until the client of the search has gone
        body = {"prompt": STORY, "n_predict": 900, "num_beams": 4, "ignore_eos": True, "length_penalty": 0}
        gone = socket.create_connection(("127.0.0.1", s.port))
        data = json.dumps(body)
        gone.sendall(f"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n{data}".encode())
        until(s, lambda slots: sum(x["is_processing"] for x in slots) == 4)
        gone.close()
        check(ask(s, "/completion", {"prompt": "One day", "n_predict": 5})["tokens_predicted"] == 5, "after a search whose client has gone")
        until(s, lambda slots: not any(x["is_processing"] for x in slots))
        # at the end of its time it gives what it has
        r = ask(s, "/completion", {**body, "t_max_predict_ms": 60})
        check(len(r["content"]) < 3000, r["content"])


def until(s, fits):
    for _ in range(1000):
        if fits(json.loads(s.get("/slots")[2])):
            return
        time.sleep(0.01)
    check(False, s.get("/slots")[2])


{"texts": texts, "beside": beside, "limits": limits}[sys.argv[2]]()
