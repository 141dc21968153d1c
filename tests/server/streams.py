#!/usr/bin/env python3
"""Streams of llm-server that are resumed: X-Conversation-Id, /v1/stream, /v1/streams/lookup. streams.py LLM-SERVER CASE."""
import asyncio
import json
import os
import socket
import struct
import sys
import threading
import time
import urllib.parse

from http_layer import PATIENCE, check, request
from running import Gone, Server, exchange

BINARY = sys.argv[1]
SMALL = ["-m", "builtin:stories", "-np", "2", "-t", "1"]
ID = "conv::org/model:Q8_0"


def body(n=40, **more):
    return dict(more, prompt="Once upon a time", max_tokens=n, temperature=0, stream=True, ignore_eos=True)


def path(id=ID, start=None):
    return "/v1/stream?conv_id=" + urllib.parse.quote(id, safe="") + ("" if start is None else f"&from={start}")


def begin(s, id=ID, n=40, **more):
    """Sends a request for a stream; returns its connection after the first bytes of the answer."""
    c = socket.create_connection(("127.0.0.1", s.port))
    c.settimeout(PATIENCE)
    c.sendall(request("POST", "/v1/completions", json.dumps(body(n)).encode(), ["Host: localhost", "Content-Type: application/json", "X-Conversation-Id: " + id]))
    check(b"200" in c.recv(100), "the stream has begun")
    return c


def lookup(s, *ids):
    status, _, text = s.post("/v1/streams/lookup", {"conversation_ids": list(ids)})
    check(status == 200, text)
    return json.loads(text)


def text_of(data):
    lines = [x[6:] for x in data.decode().split("\n\n") if x.startswith("data: {")]
    return "".join(c.get("text", "") for x in lines for c in json.loads(x).get("choices", []))


def idle(s):
    """Waits until no sequence runs."""
    while any(x["is_processing"] for x in json.loads(s.get("/slots")[2])):
        time.sleep(0.02)


# --- cases -----------------------------------------------------------------------------------------


def replay():
    """A stream that has ended is read again from any byte; others of the id take its place; an end removes it."""
    with Server([BINARY, *SMALL]) as s:
        status, headers, whole = s.post("/v1/completions", body(), headers={"X-Conversation-Id": ID})
        check(status == 200 and whole.endswith(b"data: [DONE]\n\n"), whole[-100:])
        for start in (None, 0, 1, 100, len(whole) - 1, len(whole)):
            status, headers, again = s.get(path(start=start))
            check(status == 200 and headers["Content-Type"] == "text/event-stream" and again == whole[start or 0:], f"{start}: {status} {again[:100]}")
        check(s.get("/stream?conv_id=" + urllib.parse.quote(ID, safe="") + "&from=3")[2] == whole[3:], "without /v1")
        one = lookup(s, ID)
        check(one == lookup(s, "conv") and len(one) == 1, one)
        one = one[0]
        check(one["conversation_id"] == ID and one["is_done"] and one["total_bytes"] == len(whole) and 0 < one["started_at"] <= one["completed_at"], one)
        check(lookup(s, "con", "", "other") == [] == lookup(s), "other ids")
        for start, words in ((len(whole) + 1, "begin again"), ("x", "from"), ("-1", "from"), ("9" * 30, "from"), ("1e3", "from")):
            status, _, text = s.get(path(start=start))
            check(status == 400 and words in json.loads(text)["error"]["message"], f"{start}: {status} {text}")
        check(s.get("/v1/stream")[0] == 400 == s.request("DELETE", "/v1/stream?conv_id=")[0], "no id")
        check(s.get(path("other"))[0] == 404 and s.request("DELETE", path("other"))[0] == 204, "an id that is not known")
        for bad in (b"", b"[]", b"{}", b'{"conversation_ids": "a"}', json.dumps({"conversation_ids": ["a"] * 101}).encode()):
            check(s.request("POST", "/v1/streams/lookup", bad)[0] == 400, bad)
        check(s.post("/v1/completions", body(5), headers={"X-Conversation-Id": ID})[2] == s.get(path())[2] != whole, "the next stream")
        s.post("/v1/completions", dict(body(5), stream=False), headers={"X-Conversation-Id": "plain"})
        s.post("/v1/completions", body(5), headers={"X-Conversation-Id": "x" * 257})
        s.post("/v1/completions", dict(body(5), top_p=-1), headers={"X-Conversation-Id": "wrong"})
        check(lookup(s, "plain", "x" * 257, "wrong") == [], "these are not kept")
        check(s.request("DELETE", path())[0] == 204 and s.get(path())[0] == 404 and lookup(s, ID) == [], "the end")
    with Server([BINARY, *SMALL, "--resume-time", "0"]) as s:
        s.post("/v1/completions", body(5), headers={"X-Conversation-Id": ID})
        check(s.get(path())[0] == 404, "--resume-time 0")


def goes_on():
    """The stream goes on without its client, and is read while it is written; without an id it ends with its client."""
    with Server([BINARY, *SMALL]) as s:
        want = text_of(s.post("/v1/completions", body(1500))[2])
        begin(s, n=1500).close()
        got = s.get(path())[2]
        check(text_of(got) == want and got.endswith(b"data: [DONE]\n\n"), "the whole text, after the client has gone")
        keeps = begin(s, "two", 1500)
        results = []
        readers = [threading.Thread(target=lambda: results.append(s.get(path("two"))[2])) for _ in range(3)]
        for t in readers:
            t.start()
        for t in readers:
            t.join()
        keeps.close()
        check(len(set(results)) == 1 and text_of(results[0]) == want, "several readers")
        check(s.post("/v1/completions", body(3))[0] == 200, "it still works")


def cancel():
    """DELETE ends the answer; a new stream of the id ends the old one; a client of another key finds nothing."""
    with Server([BINARY, *SMALL]) as s:
        begin(s, n=2000).close()
        check(s.request("DELETE", path())[0] == 204 and s.get(path())[0] == 404, "cancelled")
        idle(s)
        c = begin(s, n=2000)
        check(s.post("/v1/completions", body(3), headers={"X-Conversation-Id": ID})[0] == 200, "another stream")
        data = b""
        while piece := c.recv(65536):
            data += piece
            if b"cancelled" in data:
                break
        check(b"cancelled by another request" in data, data[-300:])
        check(lookup(s, ID)[0]["total_bytes"] == len(s.get(path())[2]), "the new one is there")
    with Server([BINARY, *SMALL, "--api-key", "a", "--api-key", "b"]) as s:
        a, b = ({"Authorization": "Bearer " + k} for k in "ab")
        s.post("/v1/completions", body(5), headers={"X-Conversation-Id": ID, **a})
        check(s.get(path(), headers=b)[0] == 404 and s.request("DELETE", path(), headers=b)[0] == 204, "another key")
        check(s.get(path(), headers=a)[0] == 200 and s.get(path())[0] == 401, "its own key")


def limits():
    """Streams are forgotten after their time, and answers without a reader end; memory is bounded."""
    with Server([BINARY, *SMALL, "-c", "200000", "--resume-time", "1"]) as s:
        s.post("/v1/completions", body(5), headers={"X-Conversation-Id": ID})
        while s.get(path())[0] == 200:
            time.sleep(0.1)
        check(s.get(path())[0] == 404, "forgotten")
        for n, ignored in ((256, None), (257, "X-Conversation-Id")):
            status, headers, _ = s.post("/v1/completions", body(1), headers={"X-Conversation-Id": "i" * n})
            check(status == 200 and headers.get("X-Ignored-Fields") == ignored, f"{n}: {status} {headers}")
        begin(s, "alone", 100000).close()
        idle(s)
        while lookup(s, "alone"):
            time.sleep(0.1)
    # The name of the model makes each event long, so that few tokens fill the memory of streams.
    with Server([BINARY, *SMALL, "--request-memory", "16", "--alias", "m" * 20000]) as s:
        for i in range(20):  # 140 KiB each
            status, _, text = s.post("/v1/completions", body(6), headers={"X-Conversation-Id": f"many::{i}"})
            check(status == 200 and text.endswith(b"data: [DONE]\n\n"), f"{i}: {status}")
        kept = lookup(s, "many")
        check(0 < len(kept) < 20 and kept[0]["conversation_id"] == "many::19", f"{len(kept)} are kept")
        check(s.get(path("many::19"))[0] == 200 and s.get(path("many::0"))[0] == 404, "the oldest go first")
        held = dict(x.rsplit(" ", 1) for x in s.get("/metrics")[2].decode().splitlines() if x[0] != "#")
        check(0 < float(held['llm_request_memory_bytes{use="streams"}']) <= 2 << 20, held)
        for i in range(20):
            s.request("DELETE", path(f"many::{i}"))
        held = dict(x.rsplit(" ", 1) for x in s.get("/metrics")[2].decode().splitlines() if x[0] != "#")
        check(held['llm_request_memory_bytes{use="streams"}'] == "0", held)


def storm():
    """Clients that come and go while streams of few ids begin, are read and are cancelled."""
    async def client(s, seed):
        for i in range(12):
            k = (seed * 31 + i * 17) % 97
            id = f"storm{k % 3}"
            try:
                if k % 4 < 2:
                    await exchange(s.port, "POST", "/v1/completions", body(20 + k), cut=None if k % 5 else 200 + k * 9, headers=[f"X-Conversation-Id: {id}"])
                elif k % 4 == 2:
                    status, _, _ = await exchange(s.port, "GET", path(id, k * 5), None, cut=None if k % 3 else 300)
                    check(status in (200, 400, 404), status)
                else:
                    status, _, _ = await exchange(s.port, "DELETE", path(id), None)
                    check(status == 204, status)
            except (Gone, ValueError):
                pass

    async def all(s):
        await asyncio.gather(*(client(s, i) for i in range(16)))

    with Server([BINARY, *SMALL, "--request-memory", "32"]) as s:
        asyncio.run(all(s))
        for i in range(3):
            s.request("DELETE", path(f"storm{i}"))
        idle(s)
        check(s.post("/v1/completions", body(5), headers={"X-Conversation-Id": ID})[2] == s.get(path())[2], "it still works")
        check(s.stop() == 0, "stopped")


# What is answered without a model's work, and what is wrong with a request.
AT_ONCE = ("GET /v1/stream?from=1", "GET /v1/stream?conv_id=&from=1", "GET /v1/stream?conv_id=none&from=x", "DELETE /v1/stream", "POST /v1/streams/lookup",
           "GET /slots?fail_on_no_slot=1", "GET /health", "GET /props?model=none", "GET /v1/models/none", "POST /slots/0?action=save", "POST /slots/99?action=erase",
           "POST /models/load", "POST /lora-adapters", "POST /tokenize", "POST /v1/messages", "POST /api/show", "GET /metrics", "GET /none")


def reset_at_once():
    """A client that resets the connection right after its request: nothing of the request is read when its answer has ended."""
    with Server([BINARY, *SMALL, "--slot-save-path", "."], env=dict(os.environ, MALLOC_PERTURB_="165")) as s:
        for _ in range(60):
            for what in AT_ONCE:
                c = socket.create_connection(("127.0.0.1", s.port))
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                c.sendall(request(*what.split(" "), b"", ["Host: localhost", "Content-Type: application/json"]))
                c.close()
        check(s.get("/health")[0] == 200, "it still works")
        check(s.stop() == 0, "stopped")


if __name__ == "__main__":
    globals()[sys.argv[2]]()
    print("ok")
