"""A hub of models on this machine, which answers as the Hugging Face Hub does and misbehaves as its repositories are told. For tests; standard
library only.

    hub = mock_hub.start()
    hub.repos["user/repo"] = {"x.gguf": mock_hub.File(b"..")}
    .. hub.url, hub.log ..
    hub.stop()"""
import collections
import hashlib
import http.server
import json
import socket
import threading
import urllib.parse

Request = collections.namedtuple("Request", "method path headers")


class File:
    def __init__(self, data, **manner):
        self.data = data
        self.sha256 = manner.pop("sha256", hashlib.sha256(data).hexdigest())
        self.oid = manner.pop("oid", hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest())  # Git's name; None: none
        self.size = manner.pop("size", len(data))  # as the list has it
        self.lfs = manner.pop("lfs", True)
        self.cuts = manner.pop("cuts", [])         # of each request in turn: the connection breaks after so many bytes
        self.ranges = manner.pop("ranges", True)   # whether requests for a part are answered
        self.to = manner.pop("to", None)           # where a request is redirected to
        self.status = manner.pop("status", None)   # of each request, after the first `good` ones
        self.good = manner.pop("good", 0)
        self.stall = manner.pop("stall", None)     # after so many bytes, wait for `go`
        self.slow = manner.pop("slow", 0)          # send it in so many pieces, a tenth of a second apart
        self.head = manner.pop("head", True)       # whether HEAD has a length
        self.etag = manner.pop("etag", '"%s"' % hashlib.md5(data).hexdigest())  # None: none
        self.after = manner.pop("after", None)     # the file that replaces this one's data at the first cut
        self.refuses = manner.pop("refuses", None) # the status of requests for a part, without Content-Range
        self.go = threading.Event()
        assert not manner, manner

    def entry(self, path):
        entry = {"type": "file", "oid": self.oid, "size": self.size, "path": path}
        if self.lfs:
            entry["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": 134}
        return entry


class Repo(dict):
    """Files by path. `answer`: instead of the list (status, bytes, headers); `token`: needed."""
    answer = token = None
    page = 1000


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, data=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        with hub.lock:
            hub.log.append(Request(self.command, self.path, dict(self.headers)))
        url = urllib.parse.urlsplit(self.path)
        parts = urllib.parse.unquote(url.path).strip("/").split("/")
        query = urllib.parse.parse_qs(url.query)
        try:
            if parts[:2] == ["api", "models"]:
                return self.list_files(hub, "/".join(parts[2:4]), parts[4:], query)
            if parts[0] == "cdn":
                return self.send_file(hub.repos["/".join(parts[1:3])]["/".join(parts[3:])])
            if parts[2:4] == ["resolve", "main"]:
                return self.resolve(hub, "/".join(parts[:2]), "/".join(parts[4:]))
            return self.send(404)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            return None

    def refused(self, hub, name):
        """Answers, as the hub does, if the repository cannot be read."""
        repo = hub.repos.get(name)
        if repo is None:
            self.send(401, b'{"error":"Invalid username or password."}', X_Error_Code="RepoNotFound")
        elif repo.token and self.headers.get("Authorization") != "Bearer " + repo.token:
            self.send(403 if "Authorization" in self.headers else 401, b"{}", X_Error_Code="GatedRepo")
        else:
            return False
        return True

    def list_files(self, hub, name, rest, query):
        if self.refused(hub, name):
            return None
        repo = hub.repos[name]
        if repo.answer:
            status, data, headers = repo.answer
            return self.send(status, data, **headers)
        if rest != ["tree", "main"] or query.get("recursive") != ["true"]:
            return self.send(404, b"{}", X_Error_Code="RevisionNotFound")
        at = int(query.get("cursor", ["0"])[0])
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "folder.gguf"}]
        entries += [f.entry(path) for path, f in repo.items()]
        link = None
        if at + repo.page < len(entries):
            link = '<%s/api/models/%s/tree/main?recursive=true&cursor=%d>; rel="next"' % (hub.url, name, at + repo.page)
        return self.send(200, json.dumps(entries[at:at + repo.page]).encode(), Content_Type="application/json", Link=link)

    def resolve(self, hub, name, path):
        if self.refused(hub, name):
            return None
        f = hub.repos[name].get(path)
        if not f:
            return self.send(404, b"", X_Error_Code="EntryNotFound")
        f.good -= 1
        if f.status and f.good < 0:
            return self.send(f.status, b"no", Retry_After="7")
        to = f.to or "/cdn/%s/%s" % (name, urllib.parse.quote(path))
        return self.send(302, b"Found. Redirecting", Location=to, X_Linked_Size=str(f.size), X_Linked_ETag='"%s"' % f.sha256)

    def send_file(self, f):
        begin, status, headers = 0, 200, {"ETag": f.etag} if f.etag else {"Last-Modified": "day " + hashlib.md5(f.data).hexdigest()}
        wanted = self.headers.get("Range")
        if wanted and f.refuses:
            return self.send(f.refuses, b"other bytes")
        if wanted and f.ranges and self.headers.get("If-Range", f.etag) == f.etag:
            begin, status = int(wanted.removeprefix("bytes=").rstrip("-")), 206
            headers["Content-Range"] = "bytes %d-%d/%d" % (begin, len(f.data) - 1, len(f.data))
        self.send_response(status)
        if f.head or self.command != "HEAD":
            headers["Content-Length"] = str(len(f.data) - begin)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        data = f.data[begin:]
        cut = f.cuts.pop(0) if f.cuts else None
        if f.stall is not None and begin < f.stall:
            self.wfile.write(data[:f.stall - begin])
            self.wfile.flush()
            f.go.wait(60)
            data = data[f.stall - begin:]
        for i in range(f.slow):
            self.wfile.write(data[i * len(data) // f.slow:(i + 1) * len(data) // f.slow])
            threading.Event().wait(0.1)
        if not f.slow:
            self.wfile.write(data[:cut])
        if cut is not None:
            self.wfile.flush()
            if f.after:
                f.data, f.etag, f.after = f.after.data, f.etag and f.after.etag, None
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # a client that went away
        pass


class Hub:
    def __init__(self):
        self.repos, self.log, self.lock = {}, [], threading.Lock()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.hub = self
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def add(self, name, files, **manner):
        repo = self.repos[name] = Repo(files)
        for key, value in manner.items():
            setattr(repo, key, value)
        return repo

    def take_log(self):
        with self.lock:
            log, self.log = self.log, []
        return log

    def stop(self):
        for repo in self.repos.values():
            for f in repo.values():
                f.go.set()
        self.server.shutdown()
        self.server.server_close()


def start():
    return Hub()
