#!/usr/bin/env python3
"""llm-server with several models (--models). router.py LLM-SERVER MODELS/builtin CASE."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from http_layer import PATIENCE, check, request
from running import Server

BINARY, BUILTIN = sys.argv[1:3]
STORIES, CHAT = (os.path.join(BUILTIN, name) for name in ("stories.gguf", "stories-chat.gguf"))
SMALL = ["-c", "512", "-np", "2", "-t", "1"]
COMPLETION = {"prompt": "Once", "max_tokens": 4, "temperature": 0}


def folder_of(*names):
    """A folder with copies of a model under these names; call its cleanup()."""
    folder = tempfile.TemporaryDirectory()
    for name in names:
        path = os.path.join(folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(STORIES, path)
    return folder


def get(s, path, status=200, **more):
    got, headers, body = s.get(path, **more)
    check(got == status, f"{path}: {got} {body[:300]}")
    return json.loads(body)


def post(s, path, body, status=200, **more):
    got, headers, text = s.post(path, body, **more)
    check(got == status, f"{path} {body}: {got} {text[:300]}")
    return json.loads(text)


def complete(s, model, status=200, **more):
    return post(s, "/v1/completions", dict(COMPLETION, model=model, **more), status)


def states(s):
    return {m["id"]: m["status"]["value"] for m in get(s, "/v1/models")["data"]}


def until(what, condition):
    for _ in range(int(PATIENCE / 0.02)):
        if condition():
            return
        time.sleep(0.02)
    check(False, f"never: {what}")


def metric(s, name, model):
    text = s.get("/metrics")[2].decode()
    for line in text.splitlines():
        if line.startswith(f'{name}{{model="{model}"}} '):
            return float(line.split()[-1])
    return None


def together(*calls):
    """Runs functions at the same time; returns their results."""
    results = [None] * len(calls)

    def run(i):
        results[i] = calls[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


class Stream:
    """A completion that runs until it is closed."""

    def __init__(self, s, model, n=400):
        body = json.dumps({"model": model, "prompt": "Once", "max_tokens": n, "ignore_eos": True, "stream": True}).encode()
        self.socket = socket.create_connection(("127.0.0.1", s.port))
        self.socket.settimeout(PATIENCE)
        self.socket.sendall(request("POST", "/v1/completions", body, ["Content-Type: application/json"]))
        self.file = self.socket.makefile("rb")
        self.first = self.file.readline()

    def is_complete(self):
        """Reads to the end of the stream."""
        return any(line.startswith(b"data: [DONE]") for line in iter(self.file.readline, b""))

    def close(self):
        self.file.close()
        self.socket.close()


# --- cases -----------------------------------------------------------------------------------------


def folder():
    """What a folder offers, under which names, in all APIs; and what it leaves out."""
    with folder_of("a.gguf", "b.gguf", "split-00001-of-00002.gguf", "split-00002-of-00002.gguf", "gone.gguf", "in/deep.gguf", "two/x.gguf", "two/y.gguf",
                   "mmproj-a.gguf", "a-draft.gguf", ".hidden.gguf", "drafty.gguf", "a.txt") as path:
        with open(path + "/bad.gguf", "w") as f:
            f.write("no model")
        with Server([BINARY, "--models", path + "/", *SMALL]) as s:
            check(any("bad.gguf" in line and "left out" in line for line in s.lines), s.lines)
            names = ["a", "b", "drafty", "in", "split", "two/x", "two/y"]
            check(sorted(states(s)) == sorted([*names, "gone"]), states(s))
            check(set(states(s).values()) == {"unloaded"}, states(s))
            check({m["name"] for m in get(s, "/api/tags")["models"]} == {*names, "gone"}, "tags")
            check(get(s, "/api/ps")["models"] == [], "nothing is loaded")
            before = get(s, "/api/tags")["models"]
            text = {name: complete(s, name)["choices"][0]["text"] for name in names}
            check(len(set(text.values())) == 1, text)
            check({m["name"] for m in get(s, "/api/ps")["models"]} == set(names), "loaded")
            check(get(s, "/api/tags")["models"] == before, "loading changes nothing of the list")
            check(get(s, "/v1/models/two/x")["status"]["value"] == "loaded", "a name with a slash")
            os.remove(path + "/gone.gguf")
            e = complete(s, "gone", 500)["error"]
            check("gone" in e["message"] and "could not be loaded" in e["message"], e)
            failed = get(s, "/v1/models/gone")["status"]
            check(failed["failed"] and failed["error"] in e["message"], failed)
            complete(s, "a")  # the server goes on
            # names
            check(complete(s, "a:latest")["model"] == "a:latest", "a tag of Ollama")
            check("did you mean drafty" in complete(s, "draftx", 404)["error"]["message"], "near")
            check("there are a, b" in complete(s, "something", 404)["error"]["message"], "unknown")
            check("names one of a, b" in post(s, "/v1/completions", COMPLETION, 400)["error"]["message"], "none")
            check("draftx" in post(s, "/api/chat", {"model": "draftx", "messages": []}, 404)["error"], "Ollama's form")
            e = post(s, "/v1/messages", {"model": "draftx", "max_tokens": 1, "messages": []}, 404)
            check(e["type"] == "error" and e["error"]["type"] == "not_found_error", e)
            # a body that cannot be read gets the answer that a server of one model gives
            for path_, body, words in [
                ("/v1/completions", b'{"model": "a", "prompt": "Once"', "request:1:32: the text ends where ',' or '}' is expected"),
                ("/v1/completions", b"hello", "request:1:1: "),
                ("/v1/completions", b"", "request:1:1: "),
                ("/v1/completions", b"[]", "a JSON object is expected, not an array"),
                ("/v1/completions", b'{"model": 5}', '"model" must be a string'),
                ("/v1/messages", b'{"model": 5}', '"model" must be a string'),
                ("/tokenize", b"{", "request:1:2: "),
            ]:
                e = post(s, path_, body, 400)["error"]
                check(words in e["message"] and e.get("param") in (None, "model" if "must" in words else None), (body, e))
            check("names one of a, b" in post(s, "/v1/completions", {"model": None}, 400)["error"]["message"], "null")
            # paths that name none, and those of a query
            check(get(s, "/props")["role"] == "router", "props of all")
            check(get(s, "/props?model=two/y")["model_path"].endswith("/two/y.gguf"), "props of one")
            get(s, "/props?model=nobody", 404)
            check(len(get(s, "/slots?model=a")) > 2, "slots")
            get(s, "/slots", 400)
            check(len(post(s, "/tokenize", {"model": "b", "content": "Once"})["tokens"]) > 0, "tokenize")
            check(s.stop() == 0, "exit code")


def load():
    """Loading on demand: once for many, by request, by time, by number and by memory."""
    with folder_of("a.gguf", "b.gguf", "c.gguf") as path:
        with Server([BINARY, "--models", path, "--models-max", "2", *SMALL]) as s:
            answers = together(*[lambda: complete(s, "a")["choices"][0]["text"] for _ in range(12)])
            check(len(set(answers)) == 1 and metric(s, "llm_model_loads_total", "a") == 1, "loaded once")
            complete(s, "b")
            complete(s, "a")
            # a request gives its model back once its answer is sent; one that still holds it would stay
            until("a and b are idle", lambda: metric(s, "llm_model_requests", "a") + metric(s, "llm_model_requests", "b") == 0)
            complete(s, "c")  # b was used least recently
            check(states(s) == {"a": "loaded", "b": "unloaded", "c": "loaded"}, states(s))
            # /models/load and unload
            check(post(s, "/models/unload", {"model": "c"})["success"], "unload")
            until("c is unloaded", lambda: states(s)["c"] == "unloaded")
            post(s, "/models/unload", {"model": "c"}, 400)
            check(post(s, "/models/load", {"model": "b"})["success"], "load")
            until("b is loaded", lambda: states(s)["b"] == "loaded")
            post(s, "/models/load", {"model": "d"}, 404)
            post(s, "/models/load", {}, 400)
            # Ollama's ways
            empty = post(s, "/api/generate", {"model": "c", "keep_alive": "1h"})
            check(empty["done_reason"] == "load" and states(s)["c"] == "loaded", empty)
            left = {m["name"]: m["expires_at"] for m in get(s, "/api/ps")["models"]}
            check(left["c"] < "9999" and left["b"].startswith("9999"), left)
            empty = post(s, "/api/generate", {"model": "c", "keep_alive": 0})
            check(empty["done_reason"] == "unload", empty)
            until("c is unloaded", lambda: states(s)["c"] == "unloaded")
            post(s, "/api/generate", {"model": "c", "prompt": "Once", "keep_alive": "1ms", "stream": False, "options": {"num_predict": 2}})
            until("c is unloaded", lambda: states(s)["c"] == "unloaded")
            post(s, "/api/generate", {"model": "b", "keep_alive": "soon"}, 400)
            # /api/show does not load
            check(post(s, "/api/show", {"model": "c"})["model_info"]["general.architecture"] == "llama", "show")
            check("temperature                    0.8\ntop_k " in post(s, "/api/show", {"model": "c"})["parameters"], "its defaults")
            check(states(s)["c"] == "unloaded", "show loads nothing")
            check(metric(s, "llm_requests_total", "c") >= 4, "counted while it is not loaded")
            check(s.stop() == 0, "exit code")
        # what does not fit beside the others: as much memory as one of them takes, and a bit
        with Server([BINARY, "--models", path, *SMALL], env={"GGL_MEMORY_LEFT": "100000"}) as s:
            complete(s, "a")
            complete(s, "b")
            check(states(s) == {"a": "unloaded", "b": "loaded", "c": "unloaded"}, states(s))
            check(any("a makes room for b (memory)" in line for line in s.lines), s.lines)
        with Server([BINARY, "--models", path, "--no-models-autoload", *SMALL]) as s:
            check("/models/load" in complete(s, "a", 400)["error"]["message"], "not by itself")
            post(s, "/models/load", {"model": "a"})
            until("a is loaded", lambda: states(s)["a"] == "loaded")
            complete(s, "a")
    # a single model that leaves, and comes again
    with tempfile.TemporaryDirectory() as saved, Server([BINARY, "-m", STORIES, "--keep-alive", "0", "--slot-save-path", saved, *SMALL]) as s:
        until("it is unloaded", lambda: states(s)["stories"] == "unloaded")
        props = get(s, "/props")
        check(props["is_sleeping"] and props["model_path"] == STORIES and props["total_slots"] == 2, props)
        check(get(s, "/slots") == [] and states(s)["stories"] == "unloaded", "looking does not load it")
        check(get(s, "/v1/models")["data"][0]["created"] > 0, "a time of its making")
        e = post(s, "/slots/0?action=save", {"filename": "x"}, 400)["error"]
        check("the slot is empty: the model is not loaded" in e["message"] and states(s)["stories"] == "unloaded", e)
        check(complete(s, "any")["choices"][0]["text"], "it is loaded again")
        until("it is unloaded", lambda: states(s)["stories"] == "unloaded")
        check(s.stop() == 0, "exit code")
    # looking at it is no use of it
    with Server([BINARY, "-m", STORIES, "--sleep-idle-seconds", "1", *SMALL]) as s:
        until("it sleeps", lambda: get(s, "/props")["is_sleeping"] and get(s, "/slots") == [])


def busy():
    """A model that answers is not unloaded; those that wait for another get it, in their order, unless they leave."""
    with folder_of("a.gguf", "b.gguf", "c.gguf") as path:
        with Server([BINARY, "--models", path, "--models-max", "1", "-c", "100000", "-np", "2", "-t", "1", "--queue", "4"]) as s:
            first = Stream(s, "a", 100000)
            check(first.first.startswith(b"HTTP/1.1 200"), first.first)
            # one client that waits and leaves changes nothing
            other = socket.create_connection(("127.0.0.1", s.port))
            other.sendall(request("POST", "/v1/completions", json.dumps(dict(COMPLETION, model="b")).encode(), ["Content-Type: application/json"]))
            until("it waits", lambda: metric(s, "llm_model_requests_waiting", "b") == 1)
            other.close()
            until("it waits no longer", lambda: metric(s, "llm_model_requests_waiting", "b") == 0)
            check(states(s)["a"] == "loaded" and states(s)["b"] == "unloaded", states(s))
            check(complete(s, "a")["choices"][0]["text"], "a goes on to answer")
            # two that wait; further ones are too many for one client
            results = []
            threads = [threading.Thread(target=lambda m=m: results.append((m, complete(s, m)))) for m in ("b", "c")]
            for m, t in zip("bc", threads):
                t.start()
                until("it waits", lambda: metric(s, "llm_model_requests_waiting", m) == 1)
            e = complete(s, "b", 503)["error"]
            check("wait for models already" in e["message"], e)
            check(states(s)["a"] == "loaded", "it answers still")
            first.close()
            for t in threads:
                t.join()
            check(sorted(m for m, _ in results) == ["b", "c"], results)  # whose thread is told first is chance; which is loaded last is not
            check(states(s) == {"a": "unloaded", "b": "unloaded", "c": "loaded"}, states(s))
            # unloading waits for the answer, too
            third = Stream(s, "c", 3000)
            post(s, "/models/unload", {"model": "c"})
            check(third.is_complete(), "the answer is complete")
            until("c is unloaded", lambda: states(s)["c"] == "unloaded")
            check(s.stop() == 0, "exit code")
    # one that is to leave, but not for the room of another, keeps no other from being loaded
    with folder_of("a.gguf", "b.gguf") as path:
        with Server([BINARY, "--models", path, "-c", "100000", "-np", "2", "-t", "1"]) as s:
            first = Stream(s, "a", 100000)
            check(post(s, "/models/unload", {"model": "a"})["success"], "unload")
            check(complete(s, "b")["choices"][0]["text"], "b is loaded meanwhile")
            check(states(s) == {"a": "unloading", "b": "loaded"}, states(s))
            first.close()
            until("a is unloaded", lambda: states(s)["a"] == "unloaded")
            check(s.stop() == 0, "exit code")
    # stopped at every moment of loading, while requests wait
    with folder_of("a.gguf", "b.gguf") as path:
        for i in range(8):
            with Server([BINARY, "--models", path, "--models-max", "1", "--grace", "0", *SMALL]) as s:
                got = []
                threads = [threading.Thread(target=lambda m=m: got.append(s.post("/v1/completions", dict(COMPLETION, model=m))[0])) for m in "abab"]
                for t in threads:
                    t.start()
                time.sleep(0.003 * i)
                check(s.stop() == 0, "exit code")
                for t in threads:
                    t.join()
                check(set(got) <= {0, 200, 503}, got)


def storm():
    """Many clients, who want other models than those that are loaded, some of whom leave."""
    with folder_of(*[f"{c}.gguf" for c in "abcd"]) as path:
        with Server([BINARY, "--models", path, "--models-max", "2", "--keep-alive", "0", "--queue", "200", *SMALL]) as s:
            def client(k):
                for i in range(8):
                    name = "abcd"[(k + i * i) % 4]
                    if (k + i) % 5 == 0:
                        Stream.close(Stream(s, name))
                    elif (k + i) % 7 == 0:
                        s.post("/models/unload", {"model": name})
                        s.get("/metrics")
                    else:
                        complete(s, name)
            together(*[lambda k=k: client(k) for k in range(12)])
            until("all are unloaded", lambda: set(states(s).values()) == {"unloaded"})
            check(s.stop() == 0, "exit code")


def looks():
    """Clients list the only model while it comes and goes: for the thread sanitizer. It keeps the time of its making."""
    with Server([BINARY, "-m", STORIES, "--keep-alive", "0", *SMALL]) as s:
        until("it is unloaded", lambda: states(s)["stories"] == "unloaded")
        ended = []

        def come_and_go():
            try:
                for _ in range(30):
                    complete(s, "any", max_tokens=1)
                    until("it is unloaded", lambda: states(s)["stories"] == "unloaded")
            finally:
                ended.append(True)
            return True

        def look():
            times = set()
            while not ended:
                times.add(get(s, "/v1/models")["data"][0]["created"] > 0)
                times.add(not get(s, "/api/tags")["models"][0]["modified_at"].startswith("1970"))
            return times

        got = together(come_and_go, *[look] * 6)
        check(got == [True] + [{True}] * 6, got)
        check(s.stop() == 0, "exit code")


def presets():
    """A file of presets: names, flags of all models and of one, aliases; errors name the line."""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/models.ini"

        def write(text):
            with open(path, "w") as f:
                f.write(text.replace("STORIES", STORIES).replace("CHAT", CHAT))

        def fails(text, *words, code=2, more=()):
            write(text)
            r = subprocess.run([BINARY, "--models", path, *more], capture_output=True, text=True)
            check(r.returncode == code and all(w in r.stderr for w in words), f"{text!r}: {r}")

        write("; presets\nversion = 1\n[*]\nctx-size = 300 ; for all\nthreads = 1\n\n[one]\nmodel = STORIES\nalias = uno, eins\ntemp = 0.25\n"
              "[two]\r\n-m = CHAT\r\nc = 200\nembeddings\nload_on_startup = true\nno-mmap = false\n[gone]\nmodel = STORIES\nctx_size=512\n")
        with Server([BINARY, "--models", path, "-np", "3", "--temp", "0.75", "-c", "100"]) as s:
            check(list(states(s)) == ["one", "two", "gone"], states(s))
            until("two is loaded", lambda: states(s)["two"] == "loaded")
            two = get(s, "/props?model=two")
            check(two["default_generation_settings"]["n_ctx"] == 200 and two["total_slots"] == 3, two)
            check(abs(two["default_generation_settings"]["params"]["temperature"] - 0.75) < 1e-6, two)
            one = get(s, "/props?model=eins")
            check(one["default_generation_settings"]["n_ctx"] == 300 and one["model_alias"] == "one", one)
            check(abs(one["default_generation_settings"]["params"]["temperature"] - 0.25) < 1e-6, one)
            check(get(s, "/v1/models/uno")["aliases"] == ["uno", "eins"], "aliases")
            check(len(post(s, "/v1/embeddings", {"model": "two", "input": "x"})["data"]) == 1, "embeddings")
            post(s, "/v1/embeddings", {"model": "one", "input": "x"}, 501)
            check(s.stop() == 0, "exit code")
        fails("[a]\nmodel = STORIES\nctx-sise = 3\n", ":3: unknown flag '--ctx-sise'; did you mean '--ctx-size'?")
        fails("[a]\nmodel = STORIES\nctx-size = many\n", ":3:", "'many' is not a whole number")
        fails("[a]\nmodel = STORIES\nport = 3\n", ":3:", "port is a flag of the server")
        fails("[a]\nmodel = STORIES\nmlock = perhaps\n", ":3:", "neither true nor false")
        fails("model = STORIES\n", ":1:", "before the first [NAME]")
        fails("[a\nmodel = STORIES\n", ":1:", "a section is [NAME]")
        fails("[ ]\n", ":1:", "no name")
        fails("[a]\nmodel = STORIES\n[a]\n", ":3:", "line 1 begins [a], too")
        fails("[a]\nmodel = STORIES\n[*]\n", ":3:", "comes first")
        fails("[a]\nctx-size = 300\n", ":1: [a]", "its file is missing")
        fails("[a]\nmodel = STORIES\nalias = b\n[b]\nmodel = STORIES\n", ":4: [b]", "two models have the name b")
        fails("[a]\nmodel = STORIES.no\n", ":1: [a]", "No such file", code=1)
        fails("[a]\nmodel = STORIES\npooling = cls\nreranking = 1\n", ":1: [a]", "cannot be used together")
        fails("[a]\nmodel = STORIES\n = 3\n", ":3:", "missing")
        fails("", "there is no model in it", code=1)
        fails("[a]\nmodel = STORIES\n", "--models names the models", more=("-m", STORIES))
        r = subprocess.run([BINARY, "--models", STORIES], capture_output=True, text=True)
        check(r.returncode == 2 and "neither a folder nor a text" in r.stderr, r)
        r = subprocess.run([BINARY, "--models-max", "3"], capture_output=True, text=True)
        check(r.returncode == 2 and "add --models" in r.stderr, r)


def beside():
    """Models of one file share its weights: each answers as if it were alone, also at the same time, and when the one that was first is unloaded."""
    with tempfile.TemporaryDirectory() as folder:
        path, file = folder + "/models.ini", folder + "/a.gguf"
        shutil.copyfile(STORIES, file)
        os.symlink(file, folder + "/link.gguf")
        with open(path, "w") as f:
            f.write(f"[chat]\nmodel = {file}\nctx-size = 300\n[embed]\nmodel = {folder}/link.gguf\npooling = mean\nctx-size = 128\n"
                    f"[other]\nmodel = {CHAT}\n[unlike]\nmodel = {file}\nno-mmap = true\n[later]\nmodel = {file}\n")

        def embed(s, **more):
            return post(s, "/v1/embeddings", {"input": "the cat sat", **more})["data"][0]["embedding"]

        def text(answer):
            return answer["choices"][0]["text"]

        with Server([BINARY, "-m", file, "--pooling", "mean", "-c", "128", "-np", "2", "-t", "1"]) as s:
            vector, words = embed(s), text(complete(s, "a"))
        with Server([BINARY, "--models", path, "-np", "2", "-t", "1"]) as s:
            def shares():
                return [line.split(": ", 1)[1].strip() for line in s.lines if "shares the weights of" in line]
            check(text(complete(s, "chat")) == words and embed(s, model="embed") == vector, "each alone")
            complete(s, "other"), complete(s, "unlike")
            check(shares() == ["embed shares the weights of chat"], shares())
            got = together(*[lambda: text(complete(s, "chat")), lambda: embed(s, model="embed")] * 4)
            check(got == [words, vector] * 4, "together")
            post(s, "/models/unload", {"model": "chat"})
            until("it is unloaded", lambda: states(s)["chat"] == "unloaded")
            check(embed(s, model="embed") == vector, "after the first one is gone")
            check(text(complete(s, "chat")) == words and shares()[1:] == ["chat shares the weights of embed"], shares())
            os.replace(shutil.copyfile(CHAT, folder + "/new"), file)
            check(complete(s, "later")["choices"] and len(shares()) == 2, "the file is another one now")
            check(embed(s, model="embed") == vector, "the others keep theirs")
            check(s.stop() == 0, "exit code")
        # weights that are read in the file's pages need room once
        with open(path, "w") as f:
            f.write(f"[*]\nno-repack = true\n[chat]\nmodel = {CHAT}\n[embed]\nmodel = {CHAT}\npooling = mean\n")
        with Server([BINARY, "--models", path, *SMALL], env={"GGL_MEMORY_LEFT": "4500000"}) as s:
            complete(s, "chat"), embed(s, model="embed")
            check(states(s) == {"chat": "loaded", "embed": "loaded"}, states(s))


def reload():
    """GET /models?reload=1 reads the folder or file again: what is new is there, what has not changed stays loaded, what is gone leaves."""
    with folder_of("a.gguf", "b.gguf", "c.gguf") as path:
        with Server([BINARY, "--models", path, "-c", "4096", "-np", "2", "-t", "1"]) as s:
            for m in "abc":
                complete(s, m)
            answer = Stream(s, "b", 800)
            shutil.copyfile(CHAT, path + "/0.gguf")
            os.remove(path + "/b.gguf")
            os.replace(shutil.copyfile(CHAT, path + "/new"), path + "/c.gguf")
            check(list(states(s)) == ["a", "b", "c"], "nothing is read again by itself")
            got = {m["id"]: m["status"]["value"] for m in get(s, "/models?reload=1")["data"]}
            check(list(got) == ["0", "a", "c"] and got["a"] == "loaded" and got["c"] == "unloaded", f"{got}")
            check("there is no model b" in complete(s, "b", 404)["error"]["message"], "b is gone")
            check(answer.is_complete(), "its answer is complete")
            until("it is unloaded", lambda: any("unloading b (changed, or no longer in --models)" in line for line in s.lines))
            for m in ("0", "c", "a"):
                complete(s, m)
            check(get(s, "/v1/models?reload=0")["data"] == get(s, "/v1/models?reload=1")["data"], "nothing has changed")
            # a model that is cut is left out; a folder may be empty, and be filled again
            with open(STORIES, "rb") as f, open(path + "/cut.gguf", "wb") as to:
                to.write(f.read()[:-1000])
            check([m["id"] for m in get(s, "/models?reload=1")["data"]] == ["0", "a", "c"], "a model that is cut")
            until("a note names it", lambda: any("left out" in line and "cut.gguf" in line for line in s.lines))
            aside = tempfile.mkdtemp()
            for name in os.listdir(path):
                shutil.move(path + "/" + name, aside)
            got = get(s, "/models?reload=1")
            check(got["data"] == [] and got["first_id"] is None, got)
            check("there are no models yet" in complete(s, "a", 404)["error"]["message"], "no models")
            for name in os.listdir(aside):
                shutil.move(aside + "/" + name, path)
            os.rmdir(aside)
            check([m["id"] for m in get(s, "/models?reload=1")["data"]] == ["0", "a", "c"], "they are back")
            complete(s, "a")
            shutil.rmtree(path)
            e = get(s, "/models?reload=1", 500)["error"]
            check(path in e["message"] and list(states(s)) == ["0", "a", "c"], e)
            os.mkdir(path)
            complete(s, "a")
            check(s.stop() == 0, "exit code")
    with folder_of() as path:
        with Server([BINARY, "--models", path, *SMALL]) as s:
            check(get(s, "/v1/models")["data"] == [], "no models")
            until("a line says so", lambda: any("no models yet" in line for line in s.lines))
            shutil.copyfile(STORIES, path + "/a.gguf")
            get(s, "/models?reload=1")
            check(complete(s, "a")["choices"], "a model that came later")
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/models.ini"

        def write(text):
            with open(path, "w") as f:
                f.write(text.replace("STORIES", STORIES).replace("CHAT", CHAT))

        write("[a]\nmodel = STORIES\nalias = first\n[b]\nmodel = STORIES\n")
        with Server([BINARY, "--models", path, *SMALL]) as s:
            complete(s, "a"), complete(s, "b")
            write("[b]\nmodel = STORIES\n[a]\nmodel = STORIES\ntemp = 0.5\nalias = second\n[c]\nmodel = CHAT\nload-on-startup = true\n")
            check([m["id"] for m in get(s, "/models?reload=1")["data"]] == ["b", "a", "c"], "the order of the file")
            until("c is loaded", lambda: states(s)["c"] == "loaded")
            check(states(s)["b"] == "loaded" and states(s)["a"] == "unloaded", states(s))
            check(abs(get(s, "/props?model=second")["default_generation_settings"]["params"]["temperature"] - 0.5) < 1e-6, "its new flags")
            complete(s, "first", 404)
            write("[b]\nmodel = STORIES\nctx-sise = 3\n")
            e = get(s, "/models?reload=1", 500)["error"]
            check(path + ":3: unknown flag '--ctx-sise'" in e["message"], e)
            check(list(states(s)) == ["b", "a", "c"], "and nothing has changed")
            # at any moment
            def client(k):
                for i in range(6):
                    write(f"[b]\nmodel = STORIES\n[x{(k + i) % 3}]\nmodel = CHAT\n") if k == 0 else None
                    s.get("/models?reload=1") if k < 2 else s.post("/v1/completions", dict(COMPLETION, model=("b", f"x{i % 3}")[k % 2]))
            together(*[lambda k=k: client(k) for k in range(6)])
            check("b" in states(s) and complete(s, "b")["choices"], "b stays")
            check(s.stop() == 0, "exit code")
        # a request that waits for a model gets it, if there is still one of its name
        write("[a]\nmodel = STORIES\n[b]\nmodel = STORIES\n[c]\nmodel = STORIES\n")
        with Server([BINARY, "--models", path, "--models-max", "1", "-c", "100000", "-np", "2", "-t", "1"]) as s:
            first, results = Stream(s, "a", 100000), {}
            threads = [threading.Thread(target=lambda m=m: results.update({m: s.post("/v1/completions", dict(COMPLETION, model=m))})) for m in "bc"]
            for m, t in zip("bc", threads):
                t.start()
                until("it waits", lambda: metric(s, "llm_model_requests_waiting", m) == 1)
            write("[a]\nmodel = STORIES\n[b]\nmodel = STORIES\ntemp = 0.5\n")
            get(s, "/models?reload=1")
            check(metric(s, "llm_model_requests_waiting", "b") == 1, "it waits still")
            first.close()
            for t in threads:
                t.join()
            check(results["b"][0] == 200, results["b"])
            check(results["c"][0] == 404 and b"not in --models any more" in results["c"][2], results["c"])
    with Server([BINARY, "-m", STORIES, *SMALL]) as s:
        check("--models" in get(s, "/models?reload=1", 400)["error"]["message"], "one model")


if __name__ == "__main__":
    {f.__name__: f for f in (folder, load, busy, storm, looks, presets, beside, reload)}[sys.argv[3]]()
