"""Starts llm-server for a test, and speaks HTTP with it: over asyncio, so that many clients are cheap, and by hand, so
that connections can be cut anywhere.

    with Server([binary, "-m", model]) as s:
        status, headers, body = s.get("/health")
"""
import asyncio
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request


class Server:
    """A running llm-server on a free port of the loopback interface."""

    def __init__(self, command, env=None, ready=120):
        self.command = list(command) + ["--port", "0"]
        self.env = dict(os.environ, **(env or {}))
        self.ready = ready
        self.lines = []

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=self.env, text=True, errors="replace")
        self.port = None
        found = threading.Event()

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                at = re.search(r"http://[^ :]+:(\d+)", line)
                if at and not self.port:
                    self.port = int(at.group(1))
                    found.set()
            found.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        found.wait(self.ready)
        if not self.port:
            self.process.kill()
            raise SystemExit("the server did not start:\n" + "".join(self.lines)[-3000:])
        end = time.monotonic() + self.ready
        while self.get("/health")[0] != 200:
            if time.monotonic() > end or self.process.poll() is not None:
                self.process.kill()
                raise SystemExit("the server did not become ready:\n" + "".join(self.lines)[-3000:])
            time.sleep(0.05)
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, seconds=60):
        """Ends the server as a service manager does; returns its exit code, or None if it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        self.reader.join(5)
        return code

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def request(self, method, path, body=None, headers=None, seconds=120):
        """Returns (status, headers, bytes); status 0: no answer."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        q = urllib.request.Request(self.url(path), data=data, method=method,
                                   headers={"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(q, timeout=seconds) as r:
                return r.status, r.headers, r.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()
        except (urllib.error.URLError, OSError):
            return 0, {}, b""

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def memory(self):
        """Resident bytes now."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024

    def files(self):
        """Open descriptors now."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Gone(Exception):
    """The client hung up on purpose."""


async def exchange(port, method, path, body, cut=None, headers=()):
    """Sends a request on a connection of its own and returns (status, headers, body), the body without its chunks. cut: after
    how many bytes of the answer the client hangs up; negative: after so many bytes of the request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", "Content-Type: application/json",
                 f"Content-Length: {len(data)}", *headers]
        message = "\r\n".join(lines).encode() + b"\r\n\r\n" + data
        if cut is not None and cut < 0:
            writer.write(message[:min(-cut, len(message) - 1)])
            await writer.drain()
            raise Gone
        writer.write(message)
        await writer.drain()
        got = bytearray()
        while True:
            piece = await reader.read(65536)
            if not piece:
                break
            got += piece
            if cut is not None and len(got) >= cut:
                raise Gone
    finally:
        writer.close()
        try:
            await writer.wait_closed()
        except OSError:
            pass
    head, _, rest = bytes(got).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    status = int(lines[0].split()[1]) if lines[0].startswith("HTTP/1.1 ") else 0
    if fields.get("transfer-encoding") == "chunked":
        rest = unchunk(rest)
    return status, fields, rest


def unchunk(data):
    """Returns the body of a chunked message; an incomplete one is an error."""
    out, at = bytearray(), 0
    while True:
        end = data.index(b"\r\n", at)
        n = int(data[at:end], 16)
        if n == 0:
            return bytes(out)
        if end + 2 + n + 2 > len(data):
            raise ValueError("the stream ends within a chunk")
        out += data[end + 2:end + 2 + n]
        at = end + 2 + n + 2


def events(body):
    """Yields the JSON objects of a stream of server-sent events, which must end with [DONE]."""
    ended = False
    for block in body.decode().split("\n\n"):
        data = "\n".join(line[5:].lstrip(" ") for line in block.split("\n") if line.startswith("data:"))
        if not data:
            continue
        if ended:
            raise ValueError("an event follows [DONE]")
        if data == "[DONE]":
            ended = True
        else:
            yield json.loads(data)
    if not ended:
        raise ValueError("the stream ends without [DONE]")
