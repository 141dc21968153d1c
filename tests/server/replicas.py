#!/usr/bin/env python3
"""Replicas of llm-server behind HAProxy and nginx, with the configurations of the folder deploy. replicas.py LLM-SERVER CASE DEPLOY."""
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
        binary, path = program("haproxy", "haproxy"), os.path.join(DEPLOY, "haproxy.cfg")
        env = {"LLM_LISTEN": f"127.0.0.1:{self.port}", **{f"LLM_REPLICA{i + 1}": a for i, a in enumerate(replicas)}}
        return [binary, "-db", "-f", path], env


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
    if status != 200 or (not whole and not b.get("stream")):
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
    """Under load, one replica drains and ends, and another one is killed: no answer is wrong, and none is lost but streams that the killed
    one had begun."""
    program(balancer.__name__.lower(), balancer.__name__.lower())
    right = right_answers()
    with cluster(balancer, "--drain", "2", "--grace", "60") as (b, replicas), Load(b.port, right) as load:
        load.more(60)
        check(all(metric(s, "llm_requests_total") > 5 for s in replicas), "all replicas get requests")
        check(replicas[0].stop(PATIENCE) == 0, "the replica ends by itself")
        check(not load.cut, f"{len(load.cut)} streams were cut when a replica drained")
        load.more(60)
        victim = replicas[1]
        # streams run there, and requests wait
        until(lambda: metric(victim, "llamacpp:requests_processing") == 2 and metric(victim, "llamacpp:requests_deferred") > 0,
              "a moment at which requests wait")
        victim.process.kill()
        load.more(60)
    check(not load.faults, load.faults[:3])
    print(f"{load.n} requests, {len(load.cut)} streams cut")
    check(len(load.cut) <= 2, f"{len(load.cut)} streams were cut, but only 2 sequences ran on the replica that was killed")


def haproxy():
    ends_and_dies(HAProxy)


def nginx():
    ends_and_dies(Nginx)


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
        lines = []
        for _ in range(3):  # without keys all come from one client, which may fill half of the queue: one place
            c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
            c.request("POST", "/completion", json.dumps(long), {"Content-Type": "application/json"})
            lines.append(c)
        until(lambda: ready(s) == (503, "full"), "GET /ready says that the queue is full")
        for c in lines:
            c.close()
        until(lambda: ready(s) == (200, "ready"), "it is ready again")


def begin():
    """A stream's status line comes with its first token: what waits when the server ends gets a status that lets a balancer retry. A sign of
    life begins it earlier."""
    long = {"prompt": TALE, "max_tokens": 4000, "temperature": 0, "ignore_eos": True, "stream": True}
    with Server([BINARY, *TWO, "--grace", "0"]) as s:
        streams = []
        for _ in range(3):
            c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
            c.request("POST", "/v1/completions", json.dumps(long), {"Content-Type": "application/json"})
            streams.append(c)
            until(lambda: metric(s, "llamacpp:requests_processing") + metric(s, "llamacpp:requests_deferred") == len(streams), "it came")
        s.process.send_signal(signal.SIGTERM)
        check([c.getresponse().status for c in streams] == [200, 200, 503], "the last one had not begun")
    with Server([BINARY, *SMALL, "--grace", "0", "-np", "1", "--sse-ping-interval", "1"]) as s:
        c = [http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE) for _ in range(2)]
        for k in c:
            k.request("POST", "/v1/completions", json.dumps(long), {"Content-Type": "application/json"})
        check(all(k.getresponse().status == 200 for k in c), "both begin")


CASES = {f.__name__: f for f in (haproxy, nginx, drain, begin)}
CASES[sys.argv[2]]()
