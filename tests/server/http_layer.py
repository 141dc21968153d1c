#!/usr/bin/env python3
"""The HTTP layer of llm-server through raw sockets: http_layer.py PROGRAM CASE. PROGRAM is tests/server/http_server.c. No case asserts
a time; those that wait give up after a minute."""
import random
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
PATIENCE = 60


def check(ok, what):
    if not ok:
        raise AssertionError(what)


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.settimeout(PATIENCE)
        return s

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def counts(self, line="open"):
        names = ["descriptors", "handled", "open", "gone", "done", "bodies", "answers"]
        return dict(zip(names, map(int, self.say(line).split())))

    def until(self, holds, what):
        """Waits until the counts are as wanted."""
        begin = time.time()
        while not holds(self.counts()):
            check(time.time() - begin < PATIENCE, f"{what}: {self.counts()}")
            time.sleep(0.01)

    def end(self):
        check(self.say("end") == "ended", "requests are left at the end")
        check(self.process.wait(PATIENCE) == 0, f"exit code {self.process.returncode}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
        else:
            self.process.kill()


def read_line(f):
    line = f.readline()
    check(line.endswith(b"\r\n"), f"a line is not complete: {line!r}")
    return line[:-2].decode("latin-1")


def read_chunked(f):
    body = b""
    while True:
        n = int(read_line(f), 16)
        body += f.read(n)
        check(read_line(f) == "", "no line end after a chunk")
        if n == 0:
            return body


def read_reply(f, head=False):
    """Reads a reply: (status, headers, body). Status 0: the connection was closed."""
    first = f.readline()
    if not first:
        return 0, {}, b""
    status = int(first.split()[1])
    headers = {}
    while line := read_line(f):
        name, value = line.split(":", 1)
        headers[name.lower()] = value.strip()
    if status == 100:
        return read_reply(f)
    if head or status == 204:
        return status, headers, b""
    if headers.get("transfer-encoding") == "chunked":
        return status, headers, read_chunked(f)
    if "content-length" in headers:
        return status, headers, f.read(int(headers["content-length"]))
    return status, headers, f.read()


def exchange(server, data, head=False):
    """Sends bytes on a new connection and reads a reply."""
    with server.connect() as s:
        s.sendall(data)
        return read_reply(s.makefile("rb"), head)


def request(method, path, body=None, headers=()):
    lines = [f"{method} {path} HTTP/1.1", *headers]
    if not any(h.lower().startswith("host:") for h in headers):
        lines.append("Host: localhost")
    if body is not None and not any(h.lower().startswith("transfer-encoding") for h in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def chunked(body, pieces):
    data, at = b"", 0
    for n in pieces:
        data += b"%x\r\n%s\r\n" % (len(body[at:at + n]), body[at:at + n]) if body[at:at + n] else b""
        at += n
    return data + b"0\r\n\r\n"


# --- cases -----------------------------------------------------------------------------------------


def requests():
    """Requests of each kind, several on a connection, in pieces and all at once."""
    with Server() as server:
        with server.connect() as s:
            f = s.makefile("rb")
            for i in range(5):
                s.sendall(request("POST", "/echo", b"body %d" % i, ["Content-Type: application/json"]))
                status, headers, body = read_reply(f)
                check((status, body, headers["x-type"], headers["x-method"]) == (200, b"body %d" % i, "application/json", "POST"), "echo")
            s.sendall(request("GET", "/a%20b?x=1"))
            check(read_reply(f)[2] == b"/a b", "the path is decoded")
            s.sendall(request("HEAD", "/plain"))
            status, headers, _ = read_reply(f, head=True)
            check(status == 200 and headers["content-length"] == "6", "HEAD has the length, and no body")
            s.sendall(request("GET", "/after"))
            check(read_reply(f)[2] == b"/after", "after HEAD")
            # pipelined
            s.sendall(b"".join(request("POST", "/echo", b"%d" % i) for i in range(20)))
            for i in range(20):
                check(read_reply(f)[2] == b"%d" % i, f"pipelined {i}")
        with server.connect() as s:  # byte by byte
            for b in request("POST", "/echo", b"slowly"):
                s.send(bytes([b]))
            check(read_reply(s.makefile("rb"))[2] == b"slowly", "byte by byte")
        with server.connect() as s:  # a client that has nothing more to say can still read
            s.sendall(request("GET", "/half"))
            s.shutdown(socket.SHUT_WR)
            status, _, body = read_reply(s.makefile("rb"))
            check((status, body) in ((200, b"/half"), (0, b"")), f"half-closed: {status} {body}")
        many = [server.connect() for _ in range(20)]  # long answers that other threads leave to the workers
        for i, s in enumerate(many):
            s.sendall(request("POST", f"/big?n={1 + 500 * i}&later=1", b"{}"))
        for i, s in enumerate(many):
            status, _, body = read_reply(s.makefile("rb"))
            check(status == 200 and body == b"0123456789abcde\n" * (1 + 500 * i), f"written later: {status} {len(body)} bytes")
            s.close()
        check(exchange(server, b"GET /old HTTP/1.0\r\n\r\n")[2] == b"/old", "HTTP/1.0")
        check(exchange(server, request("GET", "/refused"))[0] == 401, "refused by accepts()")


def malformed():
    """Texts that are no requests: an error or a closed connection, and the server goes on."""
    texts = [
        b"\r\n\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no Host
        b"GET /x y z HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /a%00b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1x\r\n\r\na",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),  # TLS
        b"\x00" * 1000,
        b"A" * 100000,
    ]
    seed = 7
    r = random.Random(seed)
    good = request("POST", "/echo", b"{\"a\": [1, 2, 3]}", ["Content-Type: application/json"])
    for _ in range(300):  # bytes of a good request changed
        t = bytearray(good)
        for _ in range(r.randint(1, 4)):
            t[r.randrange(len(t))] = r.choice([0, 10, 13, 32, 58, 255, r.randrange(256)])
        texts.append(bytes(t))
    with Server() as server:
        for i, text in enumerate(texts):
            with server.connect() as s:
                try:
                    s.sendall(text)
                    s.shutdown(socket.SHUT_WR)
                    f = s.makefile("rb")
                    status = read_reply(f)[0]
                    check(status in (0, 200, 400, 403, 413, 414, 415, 417, 431, 501, 505), f"text {i}: {status}")
                    check(i >= 16 or i == 1 or status != 200, f"text {i} was accepted: {text[:60]!r}")
                except OSError:  # the server may have closed the connection before all was sent
                    pass
        check(exchange(server, request("GET", "/alive"))[2] == b"/alive", "alive")


def bodies():
    """Bodies of all kinds and sizes; those that are too long are refused, announced or not."""
    limit = 100000
    r = random.Random(11)
    with Server("--max-body", str(limit)) as server:
        for n in [0, 1, 1000, 65536, limit - 1, limit]:
            body = bytes(r.randrange(256) for _ in range(n))
            check(exchange(server, request("POST", "/echo", body))[2] == body, f"{n} bytes")
            pieces = []
            while sum(pieces) < n:
                pieces.append(r.randint(1, 5000))
            data = request("POST", "/echo", b"", ["Transfer-Encoding: chunked"]) + chunked(body, pieces)
            check(exchange(server, data)[2] == body, f"{n} bytes in chunks")
        body = bytes(limit + 1)
        status, _, text = exchange(server, request("POST", "/echo", body))
        check(status == 413 and b"100001 bytes" in text, f"too long: {status} {text}")
        data = request("POST", "/echo", b"", ["Transfer-Encoding: chunked"]) + chunked(body, [5000] * 21)
        check(exchange(server, data)[0] == 413, "too long in chunks")
        with server.connect() as s:  # the connection can be used again
            f = s.makefile("rb")
            s.sendall(request("POST", "/echo", body) + request("GET", "/next"))
            check(read_reply(f)[0] == 413 and read_reply(f)[2] == b"/next", "after a body that was dropped")
        with server.connect() as s:  # far too long: not even read
            s.sendall(f"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 40}\r\n\r\n".encode())
            check(read_reply(s.makefile("rb"))[0] == 413, "a terabyte")
        with server.connect() as s:  # chunks without end
            try:
                s.sendall(request("POST", "/echo", b"", ["Transfer-Encoding: chunked"]))
                for _ in range(10000):
                    s.sendall(b"1000\r\n" + bytes(4096) + b"\r\n")
                check(False, "40 MB were read")
            except (ConnectionError, BrokenPipeError):
                pass
        # a client that sends all before it reads, whatever the server says meanwhile
        for n, expected in ((3 * limit, 413), (5 * limit, 413), (15 * limit, 413)):
            check(exchange(server, request("POST", "/echo", bytes(n)))[0] == expected, f"{n} bytes of {limit}")
            data = request("POST", "/echo", b"", ["Transfer-Encoding: chunked"]) + chunked(bytes(n), [5000] * (n // 5000))
            check(exchange(server, data)[0] == expected, f"{n} bytes of {limit} in chunks")
        check(exchange(server, request("POST", "/refused", bytes(limit)))[0] == 401, "a body that nobody wants")
        # Expect: 100-continue
        with server.connect() as s:
            f = s.makefile("rb")
            s.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
            check(read_line(f) == "HTTP/1.1 100 Continue" and read_line(f) == "", "100")
            s.sendall(b"body")
            check(read_reply(f)[2] == b"body", "after 100")
        for path, n, expected in (("/echo", limit + 1, 413), ("/refused", 4, 401)):
            with server.connect() as s:
                s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {n}\r\n\r\n".encode())
                line = read_line(s.makefile("rb"))
                check(line.startswith(f"HTTP/1.1 {expected}"), f"a final status instead of 100: {line}")
        long = b"x" * 20000
        for headers in ([f"X-Long: {long.decode()}"], [f"X-{i}: {'y' * 90}" for i in range(200)]):
            check(exchange(server, request("GET", "/", headers=headers))[0] == 431, "headers too long")
        check(exchange(server, b"GET /" + b"p" * 60000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] in (414, 431), "path too long")


def memory():
    """All bodies together have an eighth of the memory: who does not fit reads 503, and bodies that stop to arrive make room."""
    most = 1 << 20
    options = ("--memory", str(8 * most), "--max-body", str(2 * most), "--max-waiting", str(8 * most), "--timeout", "1000")
    with Server(*options) as server:
        check(exchange(server, request("POST", "/echo", bytes(most)))[0] == 200, "as much as fits")
        status, _, text = exchange(server, request("POST", "/echo", bytes(most + 1)))
        check(status == 413 and b"--request-memory" in text, f"more than ever fits: {status} {text}")
        server.until(lambda c: c["bodies"] == 0, "nothing is held")
        half = [server.connect() for _ in range(20)]
        for s in half:  # the first ten fill it
            s.sendall(request("POST", "/echo", bytes(200000))[:-100000])
        server.until(lambda c: c["bodies"] >= most * 3 // 4, "bodies are held")
        check(server.counts()["bodies"] <= most, f"{server.counts()}")
        data = request("POST", "/echo", b"", ["Transfer-Encoding: chunked"]) + chunked(bytes(most // 2), [50000] * 11)
        status = 503
        begin = time.time()
        while status == 503 and time.time() - begin < PATIENCE:  # until the others are stalled
            status, headers, _ = exchange(server, request("POST", "/echo", bytes(most)))
        check(status == 200, f"the stalled ones have made room: {status}")
        server.until(lambda c: c["bodies"] == 0, "the body of a reply that has been read is freed")
        check(exchange(server, data)[0] == 200, "in chunks")
        n_refused = 0
        for s in half:
            s.sendall(bytes(100000))
            n_refused += read_reply(s.makefile("rb"))[0] == 503
            s.close()
        check(n_refused == 20, f"{n_refused} of the stalled bodies were refused")
        server.until(lambda c: c["bodies"] == 0 and c["open"] == 0, "nothing is held")
        slow = [server.connect() for _ in range(30)]
        for s in slow:  # streams that nobody reads have half of it
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(request("POST", "/stream?n=100000&size=1000", b""))
        server.until(lambda c: c["gone"] > 0, "a writer is told")
        check(server.counts()["answers"] <= 4 * most + 30 * 1010, f"{server.counts()}")  # and a piece of each, if it is alone
        check(exchange(server, request("POST", "/echo", b"others"))[2] == b"others", "others are served")
        for s in slow:
            s.close()
        server.until(lambda c: c["answers"] == 0 and c["open"] == 0, "nothing is held at the end")
        n_gone = server.counts()["gone"]
        with server.connect() as s:  # a buffer grows by half: what it would take counts, not what waits in it
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(request("POST", "/stream?n=1000&size=100000&ms=30", b""))

            def is_gone(c):
                check(c["answers"] <= 4 * most, f"{c}")
                return c["gone"] > n_gone

            server.until(is_gone, "the writer is told")


def slow():
    """Clients that send or read too slowly are closed, and others served meanwhile."""
    with Server("--timeout", "1", "--max-waiting", "100000") as server:
        stuck = []
        for data in (b"", b"POST /echo HTTP/1.1\r\n", request("POST", "/echo", b"")[:-2], b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc"):
            stuck.append(server.connect())
            stuck[-1].sendall(data)
        check(exchange(server, request("GET", "/alive"))[2] == b"/alive", "alive")
        for s in stuck:
            try:
                while s.recv(1000):  # perhaps with an error before the end
                    pass
            except ConnectionError:
                pass
        # a byte now and then does not keep a connection
        with server.connect() as s:
            s.settimeout(0.1)
            closed = False
            for b in request("POST", "/echo", b"x" * 5000):
                try:
                    s.send(bytes([b]))
                    closed = s.recv(100) == b""
                except socket.timeout:
                    pass
                except ConnectionError:
                    closed = True
                if closed:
                    break
            check(closed, "a slow sender is closed")
        # a reader that does not read: the stream's writer learns of it
        gone = server.counts()["gone"]
        with server.connect() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(request("POST", "/stream?n=100000&size=1000", b""))
            server.until(lambda c: c["gone"] == gone + 1, "the writer is told")
        # a whole reply that nobody reads
        with server.connect() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            before = server.counts()["done"]
            s.sendall(request("GET", "/big?n=1000000"))
            server.until(lambda c: c["done"] == before + 1, "a reply of 16 MB is dropped")


def gone():
    """Clients that go are noticed while the handler works, also those that only close one half."""
    with Server() as server:
        for i in range(30):
            with server.connect() as s:
                s.sendall(request("POST", "/hang", b"{}"))
                server.until(lambda c: c["open"] == 1, "handled")
                if i % 3 == 1:
                    s.shutdown(socket.SHUT_WR)
                    server.until(lambda c: c["gone"] == i + 1, "half-closed")
                if i % 3 == 2:  # with bytes of a next request
                    s.sendall(b"GET / HTTP")
            server.until(lambda c: c["gone"] == i + 1 and c["open"] == 0, f"client {i} has gone")
        for _ in range(5):  # the handler asks who it was; the sanitizers see whether that is still there
            handled = server.counts()["handled"]
            with server.connect() as s:
                s.sendall(request("POST", "/client?ms=100", b"{}"))
                server.until(lambda c: c["handled"] == handled + 1, "handled")
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            server.until(lambda c: c["open"] == 0, "the handler has ended")


def queries():
    """Queries with more parameters than there is memory for, and request lines of all sizes: each has an answer, nothing is
    left, and the server ends at once."""
    with Server("--timeout", "1000") as server:
        exchange(server, request("GET", "/warm"))
        before = server.counts()["descriptors"]
        for n in (0, 1, 99, 100, 101, 500, 1000, 1500):
            path = "/a?" + "&".join(f"k{i}={i}" for i in range(n))
            for more in ("", "Connection: close"):
                status, _, body = exchange(server, request("GET", path, headers=[more] if more else []))
                check(status == (200 if n <= 100 else 414), f"{n} parameters: {status}")
                check(status == 200 or b"%d parameters" % n in body, f"{n} parameters: {body}")
        for n in (1, 50, 100, 101):  # a long line and many parameters together
            for size in (4000, 8000, 15000, 16000, 17000, 24000):
                path = "/" + "p" * (size - 2 * n) + "?" + "&".join("a" for _ in range(n))
                status = exchange(server, request("GET", path, headers=["X: " + "y" * 8000]))[0]
                check(status in (200, 414, 431), f"{n} parameters in {size} bytes: {status}")
        server.until(lambda c: c["open"] == 0 and c["descriptors"] <= before, "nothing is left")


def streams():
    """Streams of many clients at once; each gets its own, whole and in order."""
    with Server() as server:
        jobs = []
        r = random.Random(3)
        for _ in range(40):
            n, size, ms = r.randint(0, 300), r.randint(0, 300), r.choice([0, 0, 1])
            s = server.connect()
            s.sendall(request("POST", f"/stream?n={n}&size={size}&ms={ms}", b"{}"))
            jobs.append((s, n, size))
        for s, n, size in jobs:
            status, _, body = read_reply(s.makefile("rb"))
            expected = b"".join(b"%d %s\n" % (i, b"x" * size) for i in range(n))
            check(status == 200 and body == expected, f"stream of {n} x {size}")
            s.close()
        with server.connect() as s:  # the first bytes come while the stream goes on
            s.sendall(request("POST", "/stream?n=100000&ms=10", b"{}"))
            f = s.makefile("rb")
            check(read_line(f).startswith("HTTP/1.1 200"), "status")
            while read_line(f):
                pass
            text = b""
            while text.count(b"\n") < 3:  # a chunk is what was written since the last one
                text += f.read(int(read_line(f), 16))
                check(read_line(f) == "", "no line end after a chunk")
            check(text.startswith(b"0 x\n1 x\n2 x\n"), f"the first lines: {text[:40]}")
            f.close()
        server.until(lambda c: c["open"] == 0, "the stream ends with its client")
        check(exchange(server, b"POST /stream?n=3 HTTP/1.0\r\nContent-Length: 0\r\n\r\n")[2] == b"0 x\n1 x\n2 x\n", "HTTP/1.0 without chunks")


def limits():
    """Connections of one client, and of all."""
    with Server("--per-client", "5") as server:
        held = [server.connect() for _ in range(5)]
        for s in held:
            s.sendall(request("GET", "/a"))
            check(read_reply(s.makefile("rb"))[0] == 200, "within the limit")
        with server.connect() as s:
            try:
                s.sendall(request("GET", "/a"))
                check(s.recv(10) == b"", "beyond the limit of a client")
            except ConnectionError:
                pass
        held.pop().close()
        begin = time.time()
        status = 0
        while status != 200 and time.time() - begin < PATIENCE:
            try:
                status = exchange(server, request("GET", "/a"))[0]
            except (ConnectionError, AssertionError):
                pass
        check(status == 200, "again within the limit")
        for s in held:
            s.close()
    with Server("--connections", "20") as server:
        none = server.counts()["descriptors"]
        with server.connect() as busy:  # a connection with a request stays
            busy.sendall(request("POST", "/hang", b"{}"))
            server.until(lambda c: c["open"] == 1, "a request is being answered")
            held = [server.connect() for _ in range(100)]
            for s in held:
                s.sendall(b"GET /a HTTP/1.1\r\n")  # and no more
            for i in range(100):
                check(exchange(server, request("GET", "/b"))[2] == b"/b", f"others keep nobody out: {i}")
            n_closed = 0
            for s in held:
                s.settimeout(0)
                try:
                    n_closed += s.recv(1) == b""
                except BlockingIOError:  # one of the last 20
                    pass
                except ConnectionError:
                    n_closed += 1
                s.close()
            check(n_closed >= 80, f"{n_closed} idle ones were closed")
            check(server.counts()["open"] == 1, "the one with a request is still there")
        # a connection that its client has closed counts until the server has seen that
        server.until(lambda c: c["open"] == 0 and c["descriptors"] <= none, "all have gone")
        held = [server.connect() for _ in range(20)]
        for s in held * 3:  # within the limit nobody is closed
            s.sendall(request("GET", "/a"))
            check(read_reply(s.makefile("rb"))[0] == 200, "within the limit")
        for s in held:
            s.close()


def ambiguous():
    """Headers that a proxy may read in another way: refused, and what follows on the connection is no request."""
    post, more = b"POST /echo HTTP/1.1\r\nHost: localhost\r\n", request("GET", "/more")
    closed = [
        (post + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, b"several Content-Length"),
        (post + b"Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc", 400, b"several Content-Length"),
        (post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, b"both Content-Length"),
        (post + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, b"both Content-Length"),
        (post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, b"chunked"),
        (post + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", 501, b"chunked"),
        (post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501, b"chunked"),
        (b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, b"HTTP/1.0"),
        (post + b"Host: localhost\r\n\r\n", 400, b"several Host"),
        (b"GET /echo HTTP/1.1\r\n\r\n", 400, b"no Host"),
        (b"GET /echo HTTP/1.1\r\nHost : localhost\r\n\r\n", 400, b"character"),
        (post + b"X: a\rb\r\n\r\n", 400, b"character"),
        (post + b"X: a\x01\r\n\r\n", 400, b"character"),
    ]
    with Server() as server:
        for text, expected, words in closed:
            with server.connect() as s:
                s.sendall(text + more)
                f = s.makefile("rb")
                status, headers, body = read_reply(f)
                check(status == expected and words in body and b"HTTP/1.1 4" not in body, f"{text}: {status} {body}")
                check(headers["connection"] == "close", f"{text}: {headers}")
                try:
                    check(f.read() == b"", f"{text}: more than one reply")
                except ConnectionError:
                    pass
        for header, expected in (("Content-Encoding: gzip", 415), ("Content-Encoding: identity", 200), ("Expect: foo", 417),
                                 ("Transfer-Encoding: Chunked", 200), ("X: \u00e9", 200)):
            body = b"x" if "Transfer" not in header else b""
            data = request("POST", "/echo", body, [header]) + (chunked(b"x", [1]) if "Transfer" in header else b"")
            check(exchange(server, data)[0] == expected, header)
        check(server.counts()["handled"] == 3, f"no other request was seen: {server.counts()}")
        for uri, expected in ((f"http://localhost:{server.port}/a", (200, b"/a")), ("HTTP://127.0.0.1/a/b?x=1", (200, b"/a/b")), ("http://localhost", (200, b"/"))):
            check(exchange(server, request("GET", uri))[::2] == expected, uri)
        check(exchange(server, request("GET", "http://evil.example/a"))[0] == 403, "the URI's host counts")


def guard():
    """Other web sites in a browser of this machine, and CORS."""
    def status(server, *headers, method="POST"):
        return exchange(server, request(method, "/echo", b"x" if method == "POST" else None, headers))

    with Server() as server:
        port = server.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", "localhost", f"[::1]:{port}", "LOCALHOST", f"app.localhost:{port}", "192.168.1.7:80"):
            check(status(server, f"Host: {host}")[0] == 200, f"Host: {host}")
            check(status(server, f"Host: {host}", f"Origin: http://{host}")[0] == 200, f"Origin of {host}")
        for host in (f"evil.example:{port}", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost", "[::1", ":80", "a" * 3000):
            answer = status(server, f"Host: {host}")
            check(answer[0] in (400, 403), f"Host: {host} {answer}")
        for origin in ("https://evil.example", "null", "http://localhost:1", f"https://localhost:{port}.evil.example", "file://", "x"):
            answer = status(server, f"Host: localhost:{port}", f"Origin: {origin}")
            check(answer[0] == 403 and b"--cors" in answer[2], f"Origin: {origin} {answer}")
        answer = status(server, "Origin: https://a.example", "Access-Control-Request-Method: POST", method="OPTIONS")
        check(answer[0] == 200 and b"--cors" in answer[2] and not [h for h in answer[1] if h.startswith("access-control")], f"no CORS unless asked for {answer}")
        answer = status(server, f"Host: localhost:{port}", f"Origin: http://localhost:{port}", "Access-Control-Request-Method: POST", method="OPTIONS")
        check(answer[0] in (200, 405) and "access-control-allow-origin" not in answer[1], f"its own page {answer}")
    with Server("--cors", "https://a.example", "--cors", "http://b.example:81") as server:
        answer = status(server, "Origin: https://a.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type", method="OPTIONS")
        check(answer[0] == 200 and answer[1]["access-control-allow-origin"] == "https://a.example", f"preflight {answer}")
        check(answer[1]["access-control-allow-headers"] == "authorization,content-type" and "POST" in answer[1]["access-control-allow-methods"], f"preflight {answer}")
        answer = status(server, "Origin: https://a.example")
        check(answer[0] == 200 and answer[1]["access-control-allow-origin"] == "https://a.example" and answer[1]["vary"] == "Origin", f"{answer}")
        answer = status(server, "Origin: https://c.example")
        check(answer[0] == 403 and "access-control-allow-origin" not in answer[1], f"another site {answer}")
        check(status(server, "Host: b.example:81", "Origin: http://b.example:81")[0] == 200, "a proxy's name")
        check(status(server, "Host: c.example:81")[0] == 403, "another name")
        answer = status(server, "Host: c.example:81", "Origin: https://a.example", "Access-Control-Request-Method: POST", method="OPTIONS")
        check(answer[0] == 403, f"a preflight to another name {answer}")
        check("access-control-allow-origin" not in status(server)[1], "no Origin, no CORS")
    with Server("--cors", "*") as server:
        answer = status(server, "Host: any.example", "Origin: https://any.example")
        check(answer[0] == 200 and answer[1]["access-control-allow-origin"] == "https://any.example", f"any {answer}")
    with Server("--host", "0.0.0.0") as server:  # not local: names are as the network has them
        check(status(server, "Host: box.lan", "Origin: http://box.lan")[0] == 200, "a name of the network")
        for origin in ("https://evil.example", "null", "http://box.lan:81"):
            answer = status(server, "Host: box.lan", f"Origin: {origin}")
            check(answer[0] == 403 and b"--cors" in answer[2], f"another site: {origin} {answer}")
    with Server("--host", "0.0.0.0", "--cors", "http://a.example") as server:
        check(status(server, "Host: box.lan", "Origin: http://a.example")[0] == 200, "a listed site")


def unix():
    """A Unix socket: it serves, old ones are replaced, used ones are not, and it is removed."""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/s"

        def ask(*headers):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(PATIENCE)
                s.connect(path)
                s.sendall(request("POST", "/echo", b"hello", headers))
                return read_reply(s.makefile("rb"))[2]

        with Server("--host", path):
            check(ask() == b"hello", "over a Unix socket")
            check(b"--cors" in ask("Origin: https://evil.example"), "another site over a Unix socket, by a proxy")
            second = subprocess.run([PROGRAM, "--host", path], capture_output=True, text=True)
            check(second.returncode == 1 and "in use" in second.stderr, second.stderr)
        check(subprocess.run(["test", "-e", path]).returncode == 1, "the socket is removed")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)  # nobody listens
        with Server("--host", path):
            check(ask() == b"hello", "an old socket is replaced")
        open(path, "w").close()
        for host in (path, "/" + "x" * 200, folder + "/none/s"):
            bad = subprocess.run([PROGRAM, "--host", host], capture_output=True, text=True)
            check(bad.returncode == 1 and len(bad.stderr.splitlines()) == 1, f"{host}: {bad.stderr}")
    with Server() as server:  # and of TCP
        for options, word in ((["--port", str(server.port)], "in use"), (["--host", "192.0.2.1"], "not an address of this machine"), (["--host", "no.such.host.invalid"], "not known")):
            bad = subprocess.run([PROGRAM, *options], capture_output=True, text=True)
            check(bad.returncode == 1 and word in bad.stderr, bad.stderr)


def drain():
    """Answers that are under way are finished, new requests are not begun."""
    server = Server()
    with server.connect() as old, server.connect() as running:
        old.sendall(request("GET", "/x"))
        check(read_reply(old.makefile("rb"))[0] == 200, "before")
        running.sendall(request("POST", "/stream?n=50&ms=5", b"{}"))
        f = running.makefile("rb")
        check(read_line(f).startswith("HTTP/1.1 200"), "begun")
        server.say("drain")
        old.sendall(request("GET", "/x"))
        check(read_reply(old.makefile("rb"))[0] == 503, "a request on an open connection")
        try:
            check(exchange(server, request("GET", "/x"))[0] == 0, "a new connection")
        except ConnectionError:
            pass
        while read_line(f):
            pass
        body = read_chunked(f)
        check(body.startswith(b"0 x\n") and body.endswith(b"49 x\n"), "the running answer is whole")
        server.end()


def cut():
    """10,000 connections cut at random points, in the request, the stream and the reply. Nothing is left: no descriptor, no
    reply; the sanitizers see the memory."""
    r = random.Random(99)
    with Server("--timeout", "1000") as server:
        exchange(server, request("GET", "/warm"))
        server.until(lambda c: c["open"] == 0 and c["done"] == c["handled"], "calm")
        before = server.counts()["descriptors"]
        for i in range(10000):
            path = r.choice(["/echo", "/hang", "/stream?n=50&size=300", "/stream?n=3&ms=1", "/big?n=2000", "/big?n=500&later=1", "/plain?ms=1", "/refused"])
            body = b"x" * r.choice([0, 5, 3000])
            data = request("POST", path, body)
            if r.random() < 0.1:
                data = request("POST", path, b"", ["Transfer-Encoding: chunked"]) + chunked(body, [7] * 600)
            data = data[:r.randint(0, len(data))] if r.random() < 0.5 else data * r.choice([1, 1, 2])
            s = server.connect()
            try:
                s.sendall(data)
                if r.random() < 0.3:
                    s.settimeout(0.001)
                    s.recv(r.choice([1, 100, 10000]))
            except (socket.timeout, ConnectionError):
                pass
            if r.random() < 0.5:  # a reset instead of an end
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
        check(exchange(server, request("GET", "/alive"))[2] == b"/alive", "alive")
        server.until(lambda c: c["open"] == 0 and c["descriptors"] <= before, "nothing is left")


if __name__ == "__main__":
    globals()[sys.argv[2]]()
