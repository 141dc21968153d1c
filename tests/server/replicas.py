#!/usr/bin/env python3
"""Replicas of llm-server behind HAProxy and nginx, with the configurations of the folder deploy. replicas.py LLM-SERVER CASE DEPLOY."""
import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from http_layer import PATIENCE, check
from running import Server, events

BINARY, DEPLOY = sys.argv[1], sys.argv[3]
SMALL = ["-m", "builtin:stories", "-c", "4096", "-t", "1"]
TWO = [*SMALL, "-np", "2"]
TALE = "Once upon a time, there was a little girl named Lily. She liked to play outside in the sun. "


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def program(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return path or skip(f"{name} is not installed (Debian: {package})")


def until(holds, what):
    end = time.monotonic() + PATIENCE
    while not holds():
        check(time.monotonic() < end, f"{what}: this did not come")
        time.sleep(0.005)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ready(server):
    status, _, body = server.get("/ready")
    return status, json.loads(body)["status"] if body else ""


def metric(server, name):
    text = server.get("/metrics")[2].decode()
    at = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
    check(at, f"{name} is not among the metrics")
    return float(at.group(1))


# --- balancers -------------------------------------------------------------------------------------


class Balancer:
    """A balancer in front of these replicas; it has a port, and request() as they do."""

    def __init__(self, folder, replicas):
        self.port = free_port()
        self.command, self.env = self.configure(folder, [f"127.0.0.1:{s.port}" for s in replicas])

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: self.process.poll() is not None or Server.request(self, "GET", "/ready")[0] == 200, "the balancer")
        check(self.process.poll() is None, f"the balancer ended: {self.process.stdout.read() if self.process.poll() else ''}")
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)

    url = Server.url
    get = Server.get
    post = Server.post
    request = Server.request


class HAProxy(Balancer):
    def configure(self, folder, replicas):
        binary, path = program("haproxy", "haproxy"), os.path.join(DEPLOY, "haproxy")
        env = {"LLM_LISTEN": f"127.0.0.1:{self.port}", **{f"LLM_REPLICA{i + 1}": a for i, a in enumerate(replicas)}}
        return [binary, "-db", "-f", path + ".cfg", "-f", path + "-three.cfg"], env


class Nginx(Balancer):
    def configure(self, folder, replicas):
        binary = program("nginx", "nginx")
        with open(os.path.join(DEPLOY, "nginx.conf")) as f:
            text = f.read()
        for i, a in enumerate(replicas):
            text, n = re.subn(rf"server 127\.0\.0\.1:808{i + 1}\b", f"server {a}", text)
            check(n == 1, "nginx.conf names three replicas")
        text, n = re.subn(r"listen 8080;", f"listen 127.0.0.1:{self.port};", text)
        check(n == 1, "nginx.conf names its port")
        paths = "".join(f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w") as f:
            f.write(f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;\n"
                    f"events {{}}\nhttp {{\naccess_log off;\n{paths}{text}\n}}\n")
        test = subprocess.run([binary, "-t", "-p", folder, "-c", path, "-e", folder + "/errors"], capture_output=True, text=True)
        check(test.returncode == 0, test.stderr)
        return [binary, "-p", folder, "-c", path, "-e", folder + "/errors"], {}


@contextlib.contextmanager
def cluster(balancer, *more, n=3):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        replicas = [stack.enter_context(Server([BINARY, *TWO, *more])) for _ in range(n)]
        yield stack.enter_context(balancer(folder, replicas)), replicas


# --- load ------------------------------------------------------------------------------------------


def body(i):
    """The i-th of the requests: short and long answers, streams and others, two APIs."""
    prompt = TALE[:20 + 9 * (i % 8)] + f"Then {i % 5} birds"
    if i % 3 == 0:
        return "/v1/completions", {"prompt": prompt, "max_tokens": 60 + 40 * (i % 4), "temperature": 0, "stream": True}
    return "/completion", {"prompt": prompt, "n_predict": 60 + 40 * (i % 4), "temperature": 0, "ignore_eos": i % 2 == 0}


def ask(port, i):
    """Returns (status, text, whether the answer is whole); status 0: nothing of it came."""
    path, b = body(i)
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    got, status = b"", 0
    try:
        c.request("POST", path, json.dumps(b), {"Content-Type": "application/json"})
        r = c.getresponse()
        status = r.status
        while piece := r.read1():
            got += piece
        whole = r.length in (None, 0)
    except (http.client.HTTPException, OSError):
        whole = False
    finally:
        c.close()
    if status == 200 and not whole and not b.get("stream"):
        return status, "", False
    if status != 200:
        return status, got.decode(errors="replace"), whole
    if not b.get("stream"):
        return status, json.loads(got)["content"], True
    if not got.endswith(b"data: [DONE]\n\n"):
        got, whole = got[:got.rfind(b"\n\n") + 2] + b"data: [DONE]\n\n", False
    return status, "".join(e["choices"][0]["text"] for e in events(got) if e.get("choices")), whole


class Load:
    """Clients that send requests one after the other until told to stop, and what they got."""

    def __init__(self, port, right, n_clients=12):
        self.port, self.right, self.n, self.ends = port, right, 0, False
        self.faults, self.cut, self.lock = [], [], threading.Lock()
        self.clients = [threading.Thread(target=self.run, args=(k,)) for k in range(n_clients)]

    def run(self, k):
        i = k
        while not self.ends:
            status, text, whole = ask(self.port, i % len(self.right))
            right = self.right[i % len(self.right)]
            with self.lock:
                self.n += 1
                if status == 200 and not whole and right.startswith(text):
                    self.cut.append(i)
                elif status != 200 or text != right:
                    self.faults.append(f"request {i}: status {status}, {text[:200]!r}, not {right[:200]!r}")
            i += 1

    def __enter__(self):
        for t in self.clients:
            t.start()
        return self

    def more(self, n):
        """Waits until n more requests were answered."""
        goal = self.n + n
        until(lambda: self.n >= goal or self.faults, f"{n} more answers")
        check(not self.faults, self.faults[:3])

    def __exit__(self, *exc):
        self.ends = True
        for t in self.clients:
            t.join()


def right_answers(n=40):
    with Server([BINARY, *TWO]) as s:
        got = [ask(s.port, i) for i in range(n)]
    check(all(status == 200 and whole and text for status, text, whole in got), got)
    return [text for _, text, _ in got]


# --- cases -----------------------------------------------------------------------------------------


def ends_and_dies(balancer):
    """Under load, one replica drains and ends, and another one is killed: no answer is wrong, and none is lost but those that the killed
    one had begun."""
    program(balancer.__name__.lower(), balancer.__name__.lower())
    right = right_answers()
    with cluster(balancer, "--drain", "1", "--grace", "60") as (b, replicas), Load(b.port, right) as load:
        load.more(40)
        check(all(metric(s, "llm_sequences_total") > 0 for s in replicas), "all replicas get requests")
        check(replicas[0].stop(PATIENCE) == 0, "the replica ends by itself")
        check(not load.cut, f"{len(load.cut)} streams were cut when a replica drained")
        load.more(40)
        victim = replicas[1]
        # streams run there, and requests wait
        until(lambda: metric(victim, "llamacpp:requests_processing") == 2 and metric(victim, "llamacpp:requests_deferred") > 0,
              "a moment at which requests wait")
        victim.process.kill()
        load.more(40)
    check(not load.faults, load.faults[:3])
    print(f"{load.n} requests, {len(load.cut)} answers cut")
    # 2 sequences ran on the replica that was killed; the last bytes of 2 others may have been on their way
    check(len(load.cut) <= 4, f"{len(load.cut)} answers were cut, more than the replica that was killed had begun")


def haproxy():
    ends_and_dies(HAProxy)


def nginx():
    ends_and_dies(Nginx)


def send_all(server, path, body, n):
    """Sends the same request n times, each once the one before runs or waits. Returns the connections."""
    connections = []
    for _ in range(n):
        c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        c.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        connections.append(c)
        until(lambda: metric(server, "llamacpp:requests_processing") + metric(server, "llamacpp:requests_deferred") == len(connections),
              "it came")
    return connections


def drain():
    """Readiness is apart from health. After SIGTERM a server with --drain says that it is not ready, and still answers; its connections
    end; then it takes nothing any more, and ends."""
    with Server([BINARY, *TWO, "--drain", "600", "--grace", "60", "--api-key", "k"]) as s:
        check(ready(s) == (200, "ready"), "needs no key")
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        tell = ("POST", "/completion", json.dumps({"prompt": TALE, "n_predict": 4}),
                {"Content-Type": "application/json", "Authorization": "Bearer k"})
        c.request(*tell)
        r = c.getresponse()
        check(r.status == 200 and r.read() and not r.will_close, "a connection goes on")
        s.process.send_signal(signal.SIGTERM)
        until(lambda: ready(s) == (503, "draining"), "GET /ready says 503")
        check(s.get("/health")[0] == 200, "it is healthy")
        c.request(*tell)
        r = c.getresponse()
        check(r.status == 200 and r.will_close and json.loads(r.read())["content"], "it answers, and ends the connection")
        s.process.send_signal(signal.SIGTERM)
        check(s.process.wait(PATIENCE) == -signal.SIGTERM, "a second signal ends it at once")
    with Server([BINARY, *TWO, "--drain", "1", "--grace", "0"]) as s:
        check(s.stop() == 0 and any("--drain" in line for line in s.lines), "a drain ends by itself")
    with Server([BINARY, *TWO, "--queue", "2", "--grace", "0"]) as s:
        long = {"prompt": TALE, "n_predict": 100000, "temperature": 0, "ignore_eos": True, "stream": True}
        lines = send_all(s, "/completion", long, 3)  # without keys all are one client, which may fill half of the queue: one place
        until(lambda: ready(s) == (503, "full"), "GET /ready says that the queue is full")
        check(metric(s, "llm_load") == 1.5 and metric(s, "llm_places") == 2 and metric(s, "llm_queue_limit") == 2, "the load")
        check(metric(s, "llm_ready") == 0 and metric(s, "llm_tokens_per_second") > 0 < metric(s, "llm_prompt_tokens_per_second"), "rates")
        for c in lines:
            c.close()
        until(lambda: ready(s) == (200, "ready"), "it is ready again")


def begin():
    """A stream's status line comes with its first token: what waits when the server ends gets a status that lets a balancer retry. A sign of
    life begins it earlier."""
    long = {"prompt": TALE, "max_tokens": 4000, "temperature": 0, "ignore_eos": True, "stream": True}
    with Server([BINARY, *TWO, "--grace", "0"]) as s:
        streams = send_all(s, "/v1/completions", long, 3)
        s.process.send_signal(signal.SIGTERM)
        check([c.getresponse().status for c in streams] == [200, 200, 503], "the last one had not begun")
    with Server([BINARY, *SMALL, "--grace", "0", "-np", "1", "--sse-ping-interval", "1"]) as s:
        streams = send_all(s, "/v1/completions", long, 2)
        check(all(c.getresponse().status == 200 for c in streams), "both begin")


def talk(*turns):
    return {"messages": [{"role": "user" if i % 2 == 0 else "assistant", "content": t} for i, t in enumerate(turns)],
            "max_tokens": 8, "temperature": 0}


def prefix():
    """X-Prefix is the same for all requests of a conversation, in each API, and other ones differ. POST /prefix says it beforehand."""
    with open(os.path.join(DEPLOY, "../examples/shapes.bmp"), "rb") as f:
        picture = base64.b64encode(f.read()).decode()
    with Server([BINARY, "-m", "builtin:shapes", "-c", "2048", "-np", "2", "-t", "1"]) as s:
        def of(path, body):
            status, headers, got = s.post(path, body)
            check(status == 200, got)
            ahead = s.post(f"/prefix?path={path}", body)
            check(ahead[0] == 200 and ahead[1]["X-Prefix"] == headers["X-Prefix"] == json.loads(ahead[2])["prefix"], ahead)
            check(re.fullmatch("[0-9a-f]{16}", headers["X-Prefix"]), headers["X-Prefix"])
            return headers["X-Prefix"]

        chat = "/v1/chat/completions"
        first = of(chat, talk("Hello!"))
        check(of(chat, talk("Hello!", "Hi.", "How are you?")) == first == of(chat, dict(talk("Hello!"), temperature=1, seed=3)), "a conversation")
        check(of(chat, talk("Hello?")) != first, "another one")
        system = talk("Hello!")
        system["messages"].insert(0, {"role": "system", "content": "Be short."})
        check(of(chat, system) != first, "the system prompt counts")
        stream = s.post(chat, dict(talk("Hello!"), stream=True))
        check(stream[1]["X-Prefix"] == first, "a stream has it, too")
        check(s.post("/prefix", talk("Hello!"))[1]["X-Prefix"] == first, "chats are the default")
        sees = talk([{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:image/bmp;base64," + picture}}])
        check(of(chat, sees) == of(chat, sees) != first, "a picture's mark does not count")
        check(of("/v1/messages", talk("Hello!")) == of("/v1/messages", talk("Hello!", "Hi.", "And?")), "Anthropic's")
        check(of("/api/chat", dict(talk("Hello!"), options={"num_predict": 4})), "Ollama's")
        text = "A long tale. " * 30
        a, b = (of("/completion", {"prompt": text + more, "n_predict": 2}) for more in ("", "It goes on."))
        check(a == b != of("/completion", {"prompt": "Another" + text, "n_predict": 2}), "a text's beginning")
        check(of("/completion", {"prompt": [5, 6, 7], "n_predict": 2}) != of("/completion", {"prompt": [5, 6, 8], "n_predict": 2}), "ids")
        for path, status in (("/tokenize", 400), ("/nothing", 400)):
            check(s.post(f"/prefix?path={path}", {})[0] == status, path)
        check(s.post("/prefix", b"{")[0] == 400 and s.get("/prefix")[0] == 405, "bad requests")


def sticky():
    """Both balancers give the requests with one X-Prefix to one replica, and those of many conversations to all."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        replicas = [stack.enter_context(Server([BINARY, *TWO])) for _ in range(3)]

        def counts():
            return [metric(s, "llm_sequences_total") for s in replicas]

        def send(b, n):
            """Sends n requests of one conversation; returns how many each replica got, in order of size."""
            before = counts()
            for i in range(n):
                status, _, _ = b.post("/completion", {"prompt": TALE * 4 + "And " * i, "n_predict": 4}, headers={"X-Prefix": "0123456789abcdef"})
                check(status == 200, status)
                time.sleep(0.02)  # so that on a loaded machine, too, HAProxy has counted the one that has ended
            return sorted(a - b for a, b in zip(counts(), before))

        for kind in (HAProxy, Nginx):
            with kind(folder, replicas) as b:
                # HAProxy gives a request to the next replica if it thinks that the right one is busy (hash-balance-factor), or not there yet:
                # a request may still count that has just ended. Without the header, 15 of 18 would be at one replica once in 100,000 times
                got = send(b, 18)
                check(got[2] >= 15 and sum(got) == 18, (kind, got))
                before = counts()
                for i in range(60):
                    check(b.post("/completion", {"prompt": TALE, "n_predict": 1}, headers={"X-Prefix": f"{i:x}"})[0] == 200, i)
                check(all(a > b for a, b in zip(counts(), before)), (kind, before, counts()))


def ask_chat(server, system, user, **more):
    body = {"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}], "max_tokens": 24, "temperature": 0, **more}
    status, _, got = server.post("/v1/chat/completions", body)
    check(status == 200, got)
    r = json.loads(got)
    return r["choices"][0]["message"]["content"], r["usage"]["prompt_tokens_details"]["cached_tokens"]


def shared():
    """A system prompt is computed once for all replicas that share a folder, also when all of them save it at once. The answers are those without it."""
    small = ["-c", "4096", "-np", "2", "-t", "1"]
    system, users = TALE * 12, [f"Tell me of {n} birds." for n in ("two", "three", "four", "five", "six", "seven")]
    with Server([BINARY, *small]) as s:
        right = [ask_chat(s, system, u, cache_prompt=False)[0] for u in users]
        check("llm_prompts_saved_total" not in s.get("/metrics")[2].decode(), "nothing is shared without the flag")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        replicas = [stack.enter_context(Server([BINARY, *small, "--prompt-cache-dir", folder])) for _ in range(3)]
        text, n_cached = ask_chat(replicas[0], system, users[0])
        check(text == right[0] and n_cached == 0, (text, n_cached))
        until(lambda: metric(replicas[0], "llm_prompts_saved_total") == 1, "the first conversation saves the system prompt")
        names = os.listdir(folder)
        check(len(names) == 1 and names[0].endswith(".prompt"), names)
        for i, s in enumerate(replicas[1:], 1):
            text, n_cached = ask_chat(s, system, users[i])
            check(text == right[i] and n_cached >= 128, (i, text, n_cached))
            check(metric(s, "llm_prompts_loaded_total") == 1 and metric(s, "llm_prompt_tokens_loaded_total") == n_cached, "it was loaded")
        others = [f"{TALE * 12} And {k}." for k in ("a dog", "a cat", "a cow")]  # shared but for the end: two conversations tell that
        clients = [threading.Thread(target=lambda s=s, k=k, u=u: got.append((k, u, ask_chat(s, others[k], users[u])[0])))
                   for s in replicas for k in range(3) for u in range(2)]
        got = []
        for t in clients:
            t.start()
        for t in clients:
            t.join()
        check(len(got) == len(clients), got)
        for k, u, text in got:
            check(all(text == t for j, v, t in got if (j, v) == (k, u)), "all replicas give one answer")
        check(all(metric(s, "llm_prompts_failed_total") == 0 for s in replicas), "no file failed")
        for s in replicas:
            check(s.stop() == 0, "a replica ends")
        check(all(n.endswith(".prompt") for n in os.listdir(folder)), os.listdir(folder))
        with Server([BINARY, *small]) as s:
            check(all(ask_chat(s, others[k], users[u])[0] == text for k, u, text in got), "the answers without a folder")
    with tempfile.TemporaryDirectory() as folder, Server([BINARY, *small, "--prompt-cache-dir", folder, "--prompt-cache-size", "1", "-ctk", "f32", "-ctv", "f32"]) as s:
        for u in users[:2]:
            ask_chat(s, TALE * 60, u)
        until(lambda: any("tokens that prompts share need" in line and folder in line for line in s.lines), "a folder that is too small is told of")
        check(sum("tokens that prompts share need" in line for line in s.lines) == 1 and not os.listdir(folder), s.lines)
    r = subprocess.run([BINARY, "--prompt-cache-dir", "/no/such"], capture_output=True, text=True, timeout=PATIENCE)
    check(r.returncode == 2 and "--prompt-cache-dir: /no/such is not a folder" in r.stderr, r.stderr)


CASES = {f.__name__: f for f in (haproxy, nginx, drain, begin, prefix, sticky, shared)}
CASES[sys.argv[2]]()
