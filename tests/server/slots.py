#!/usr/bin/env python3
"""Saved slots of llm-server: POST /slots/N?action=save, restore, erase. slots.py LLM-SERVER CASE."""
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import time

from http_layer import PATIENCE, check, request
from running import Server

BINARY = sys.argv[1]
SMALL = ["-np", "2", "-t", "1"]
STORY = "Once upon a time, there was a little girl named Lily. She liked to play outside in the sun."


def post(server, path, body, status=200):
    got, _, text = server.post(path, body)
    check(got == status, f"{path} {body}: {got} {text[:300]}")
    return json.loads(text)


def tell(server, prompt=STORY, slot=-1, n=24, **more):
    return post(server, "/completion", dict(more, prompt=prompt, id_slot=slot, n_predict=n, temperature=0, ignore_eos=True))


def use(server, slot, action, name=None, status=200):
    return post(server, f"/slots/{slot}?action={action}", {} if name is None else {"filename": name}, status)


def says(server, words, slot, action, name=None, status=400):
    e = use(server, slot, action, name, status)["error"]["message"]
    check(words in e, f"{slot} {action} {name}: {e}")


def slots(server):
    return json.loads(server.get("/slots")[2])


def start(folder, *more, model="builtin:stories", context=512):
    return Server([BINARY, *SMALL, "-m", model, "-c", str(context), "--slot-save-path", folder, *more])


# --- cases -----------------------------------------------------------------------------------------


def save():
    """A slot that was saved gives the same text after a restart, and its tokens need not run."""
    with tempfile.TemporaryDirectory() as folder:
        with start(folder) as s:
            first = tell(s, slot=1)
            check(first["id_slot"] == 1 and first["timings"]["cache_n"] == 0, first)
            n = slots(s)[1]["n_past"]
            r = use(s, 1, "save", "a story.bin")
            check(r["id_slot"] == 1 and r["filename"] == "a story.bin" and r["n_saved"] == n == first["timings"]["prompt_n"] + 23, r)
            check(r["n_written"] == os.path.getsize(folder + "/a story.bin") and r["timings"]["save_ms"] >= 0, r)
            check(use(s, 1, "save", "a story.bin") | {"timings": 0} == r | {"timings": 0}, "a file may be replaced")
            check(s.stop() == 0, "stopped")
        with start(folder) as s:
            r = use(s, 0, "restore", "a story.bin")
            check(r["id_slot"] == 0 and r["filename"] == "a story.bin" and r["n_restored"] == n and r["timings"]["restore_ms"] >= 0, r)
            check(r["n_read"] == os.path.getsize(folder + "/a story.bin") and slots(s)[0]["n_past"] == n, r)
            again = tell(s)
            check(again["content"] == first["content"] and again["timings"]["prompt_n"] == 1, again["timings"])
            check(again["timings"]["cache_n"] == first["timings"]["prompt_n"] - 1, again["timings"])
            longer = STORY + first["content"]
            check(tell(s, longer)["timings"]["cache_n"] > first["timings"]["prompt_n"], "the answer is kept, too")
        with Server([BINARY, *SMALL]) as s:
            for action in ("save", "restore", "erase"):
                says(s, "--slot-save-path", 0, action, "x", 501)


def erase():
    """An erased slot has no tokens, and gives none to others."""
    with tempfile.TemporaryDirectory() as folder, start(folder) as s:
        n = tell(s, slot=1)["timings"]["prompt_n"]
        kept = slots(s)[1]["n_past"]
        check(use(s, 1, "erase") == {"id_slot": 1, "n_erased": kept} and kept > n, kept)
        check(slots(s)[1]["use"] == "empty" and use(s, 1, "erase")["n_erased"] == 0, slots(s)[1])
        check(s.request("POST", "/slots/1?action=erase")[0] == 200, "no body")
        check(tell(s, slot=1)["timings"]["prompt_n"] == n, "all runs again")
        says(s, "slot 0 is empty", 0, "save", "x")
        check(os.listdir(folder) == [], "nothing was written")


def place():
    """id_slot is where a sequence runs, with what other slots have computed."""
    with tempfile.TemporaryDirectory() as folder, start(folder) as s:
        one = tell(s, slot=1)
        check([x["use"] for x in slots(s)[:3]] == ["empty", "kept", "empty"], slots(s)[:3])
        two = tell(s, slot=2)
        check(two["content"] == one["content"] and two["id_slot"] == 2 and two["timings"]["prompt_n"] == 1, two)
        check([x["use"] for x in slots(s)[:3]] == ["empty", "kept", "kept"], slots(s)[:3])
        other = tell(s, "A dog", slot=2)
        check(other["id_slot"] == 2 and slots(s)[2]["n_past"] < slots(s)[1]["n_past"], "the slot was overwritten")
        n = len(slots(s))
        check(f"slots 0 to {n - 1}" in post(s, "/completion", {"prompt": "a", "id_slot": n}, 400)["error"]["message"], n)
        lines = s.post("/completion", {"prompt": "a", "id_slot": 1, "n_predict": 3, "stream": True})[2].decode().split("\n\n")
        check(all(json.loads(x[6:])["id_slot"] == 1 for x in lines if x.startswith("data: {")), lines)


def names():
    """Names that lead out of the folder, and slots and actions that do not exist."""
    with tempfile.TemporaryDirectory() as outer:
        folder = outer + "/inner"
        os.mkdir(folder)
        with start(folder) as s:
            tell(s, slot=0)
            for name in ("", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", ".hidden", "a\u0000b", "a\nb", "\u007f", "c:x"):
                says(s, "without a folder", 0, "save", name)
                says(s, "without a folder", 0, "restore", name)
            says(s, "at most 200", 0, "save", "x" * 201)
            use(s, 0, "save", "x" * 200)
            use(s, 0, "save", "caf\u00e9 \U0001f600")
            says(s, "\"filename\" is missing", 0, "save")
            for body in (b"", b"{", b"[]", b'{"filename": 1}', b'{"filename": "\xff"}'):
                got, _, text = s.request("POST", "/slots/0?action=save", body)
                check(got == 400 and json.loads(text)["error"]["message"], f"{body}: {got} {text}")
            for slot in ("x", "-1", "99999", "0x0", "0/1", "00000000000000000000", "4294967296"):
                says(s, "there is no slot", slot, "save", "x")
            for action in ("", "Save", "load", "delete"):
                says(s, "save, restore or erase", 0, action, "x")
            check(b"?action=" in s.post("/slots/0", {})[2], "no action")
            check(s.get("/slots/0")[0] == 405, "GET")
            says(s, "there is no such file", 0, "restore", "none")
            os.mkdir(folder + "/a folder")
            os.mkfifo(folder + "/a pipe")
            for action in ("save", "restore"):
                says(s, "\"a folder\" is a folder in the folder of --slot-save-path, not a file", 0, action, "a folder")
                says(s, "\"a pipe\" is a device or a pipe", 0, action, "a pipe")
        check(os.listdir(outer) == ["inner"] and len(os.listdir(folder)) == 4, os.listdir(folder))


def files():
    """Files that are damaged, of another kind or model are refused in words; the slot keeps what it has."""
    with tempfile.TemporaryDirectory() as folder:
        with start(folder) as s:
            one = tell(s, slot=0)
            n = use(s, 0, "save", "good")["n_saved"]
            with open(folder + "/good", "rb") as f:
                good = f.read()
            bad = {"empty": b"", "cut": good[:16], "half": good[:len(good) // 2], "short": good[:-1], "long": good + b"x", "text": b"no cache\n" * 20,
                   "version": good[:8] + struct.pack("=I", 99) + good[12:], "size": good[:24] + b"\xff" * 8 + good[32:]}
            for i in range(40, len(good), max(1, len(good) // 40)):
                bad[f"byte{i}"] = good[:i] + bytes([good[i] ^ 0x10]) + good[i + 1:]
            for name, data in bad.items():
                with open(folder + "/" + name, "wb") as f:
                    f.write(data)
                got, _, text = s.post("/slots/0?action=restore", {"filename": name})
                # between its parts a file has unused bytes
                check(got == 400 and name in json.loads(text)["error"]["message"] or got == 200 and name.startswith("byte"), f"{name}: {got} {text}")
                check(slots(s)[0]["n_past"] == n, f"{name}: the slot has lost its tokens")
                check(tell(s)["content"] == one["content"], name)
            says(s, "is not a prompt cache", 0, "save", "text")
            with open(folder + "/text", "rb") as f:
                check(f.read() == bad["text"], "a file of another kind was overwritten")
            use(s, 0, "save", "half")  # a damaged one may be replaced
        with start(folder, "-ctk", "q8_0", "-ctv", "q8_0") as s:
            tell(s, slot=0)
            says(s, "types", 0, "restore", "good")
            check(slots(s)[0]["n_past"] > 0, "the slot has lost its tokens")
        with start(folder, model="builtin:chat") as s:
            says(s, "another model", 0, "restore", "good")
            tell(s, slot=0)
            says(s, "belongs to the model", 0, "save", "good")
        with start(folder, context=32) as s:
            says(s, "context", 0, "restore", "good")
        with start(folder, "--request-memory", "16", context=8192) as s:
            tell(s, [5] * 6600, slot=0, n=1)
            says(s, "--request-memory", 0, "save", "large")
            check(not os.path.exists(folder + "/large"), "a file was left")


def room():
    """A restored slot takes the pages of kept sequences, not of those that run."""
    with tempfile.TemporaryDirectory() as folder, start(folder, context=256) as s:
        tell(s, slot=0, n=60)
        n = use(s, 0, "save", "x")["n_saved"]
        use(s, 0, "erase")
        for i, word in enumerate(("dog", "cat", "bird", "fish")):
            tell(s, word * 8, slot=1 + i, n=30)
        check(use(s, 0, "restore", "x")["n_restored"] == n, "room is made")
        check(tell(s, n=1)["timings"]["prompt_n"] == 1, "the restored one is used")
        done = threading.Event()

        def run():
            tell(s, "A long story", slot=3, n=200)
            done.set()
        t = threading.Thread(target=run)
        t.start()
        busy = 0
        while not done.is_set():
            got, _, text = s.post("/slots/3?action=erase", {})
            busy += got == 503
            check(got == 200 or got == 503 and "try again" in json.loads(text)["error"]["message"], text)
            if not slots(s)[3]["is_processing"]:
                continue
            s.post("/slots/0?action=restore", {"filename": "x"})
        t.join()
        check(len(slots(s)) > 3, busy)


def full():
    """?fail_on_no_slot=1 is an error while as many answers are written as -np allows, as in llama.cpp."""
    N = 100000

    def status(query="?fail_on_no_slot=1"):
        got, _, text = s.get("/slots" + query)
        return got, json.loads(text)

    def run():
        c = socket.create_connection(("127.0.0.1", s.port))
        c.settimeout(PATIENCE)
        body = json.dumps({"prompt": "Once", "n_predict": N, "ignore_eos": True, "stream": True}).encode()
        c.sendall(request("POST", "/completion", body, ["Host: localhost", "Content-Type: application/json"]))
        check(b"200" in c.recv(100), "a stream has begun")
        return c

    with tempfile.TemporaryDirectory() as folder, start(folder, "--sleep-idle-seconds", "1", context=100000) as s:
        clients = []
        for _ in range(2):
            got, slots = status()
            runs = [x["next_token"][0] for x in slots if x["is_processing"]]
            check(got == 200 and len(runs) == len(clients), slots)
            check(all(x["n_remain"] + x["n_decoded"] == N and x["n_decoded"] > 0 for x in runs), f"of {N} tokens: {runs}")
            clients.append(run())
        want = {"error": {"code": 503, "message": "no slot available", "type": "unavailable_error"}}
        check(status() == (503, want), status())
        for query in ("", "?fail_on_no_slot="):
            check(status(query)[0] == 200, query)
        for c in clients:
            c.close()
        end = time.monotonic() + PATIENCE
        while status() != (200, []):  # it is unloaded, and a request would load it
            check(time.monotonic() < end, status())
            time.sleep(0.05)


if __name__ == "__main__":
    globals()[sys.argv[2]]()
    print("ok")
