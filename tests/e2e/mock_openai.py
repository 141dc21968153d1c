"""A server that speaks as much of OpenAI's API as `llm-bench serve` uses, and misbehaves as it is told: the first part of a URL's path
names the manner (http://127.0.0.1:PORT/full/v1/completions). For tests; standard library only."""
import http.server
import json
import threading
import time

PER_WORD, FIXED, PER_MESSAGE = 2, 3, 5  # tokens of a prompt


def prompt_words(body):
    """The words of a request, and how many messages they are in (0: no chat)."""
    if "messages" in body:
        return [w for m in body["messages"] for w in m["content"].split()], len(body["messages"])
    return body["prompt"].split(), 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def send_json(self, code, value, **headers):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        for k, v in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(k.replace("_", "-"), v)
        self.end_headers()
        self.wfile.write(data)

    def manner_and_path(self):
        manner, _, rest = self.path.lstrip("/").partition("/")
        return manner, "/" + rest

    def do_GET(self):
        manner, path = self.manner_and_path()
        if manner == "key" and self.headers.get("Authorization") != "Bearer sesame":
            return self.send_json(401, {"error": {"message": "wrong key"}})
        if path != "/v1/models" or manner == "nomodels":
            return self.send_json(404, {"error": "no such path"})
        lists = {"emptylist": {"data": []}, "oddlist": b"<html>\x1b[31m"}
        return self.send_json(200, lists.get(manner, {"object": "list", "data": [{"id": "mock-\x1b[1m" + manner}, {"id": "other"}]}))

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, manner, value):
        text = value if isinstance(value, str) else json.dumps(value)
        if manner != "split":
            return self.chunk(f"data: {text}\n\n".encode())
        data = f": a comment\r\nevent: x\r\ndata:{text}\r\n\r\n".encode()
        for i in range(0, len(data), 7):
            self.chunk(data[i:i + 7])
        return None

    def piece(self, chat, text, reason=None, first=False):
        if chat:
            delta = {"role": "assistant", "content": None} if first else {"content": text} if reason is None else {}
            return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": None}
        return {"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": reason}], "usage": None}

    def do_POST(self):
        server = self.server
        manner, path = self.manner_and_path()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests.append((manner, path, body))
            server.running += 1
            server.most = max(server.most, server.running)
            server.came.notify_all()
        try:
            self.answer(manner, path, body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with server.lock:
                server.running -= 1

    def refusal(self, manner, path, body, measured):
        if path not in ("/v1/completions", "/v1/chat/completions"):
            return 404, {"error": "no such path"}
        if manner == "noeos" and "ignore_eos" in body:
            return 400, {"error": {"message": "unknown field ignore_eos"}}
        if manner == "full" and measured and body["seed"] % 2:
            return 429, {"error": {"message": "queue is full"}}
        if manner == "html" and measured:
            return 502, b"<html>\x1b[31mBad gateway\n<p>more"
        return None

    def answer(self, manner, path, body):
        measured = body["max_tokens"] > 1  # not one of the questions that come before
        refused = self.refusal(manner, path, body, measured)
        if refused:
            return self.send_json(*refused, Retry_After="1")
        words, n_messages = prompt_words(body)
        with self.server.lock:
            kept = max((common(words, w) for w in self.server.prompts), default=0)
            self.server.prompts.append(words)
        usage = {"prompt_tokens": PER_WORD * len(words) + FIXED + PER_MESSAGE * n_messages, "completion_tokens": body["max_tokens"],
                 "prompt_tokens_details": {"cached_tokens": PER_WORD * kept}}
        if manner == "hang" and measured:
            time.sleep(20)
        if manner.startswith("meet") and measured:  # answers only when so many have asked at once
            with self.server.lock:
                self.server.came.wait_for(lambda: self.server.most >= int(manner[4:]), timeout=60)
        if manner == "nostream" and measured:
            return self.send_json(200, {"choices": [{"text": "all at once"}], "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.pieces(manner, body, n_messages > 0, usage, measured):
            self.chunk(b"")
        else:
            self.close_connection = True
        return None

    def pieces(self, manner, body, chat, usage, measured):
        """Sends the answer; False: the connection is to break."""
        n = body["max_tokens"]
        if chat:
            self.event(manner, self.piece(chat, None, first=True))
        if manner == "short" and measured:
            n = usage["completion_tokens"] = n // 2
        step = 2 if manner == "merge" and measured else 1
        for i in range(0, n, step):
            if measured and i == 3:
                if manner == "break":
                    return False
                if manner == "quiet":
                    return True
                if manner == "error":
                    self.event(manner, {"error": {"message": "out of \x1b[31mmemory"}})
                    return True
                odd = {"badjson": '{"choices": [', "noobject": "[1]", "nochoices": '{"id": 1}', "nul": '{"choices": "\x01"}'}.get(manner)
                if odd:
                    self.event(manner, odd)
            if manner == "endless" and measured:
                for _ in range(40):
                    self.chunk(b"data: " + b"x" * (1 << 20))
            self.event(manner, self.piece(chat, f" w\u00e9{i}" * step))
        self.event(manner, self.piece(chat, "", "length"))
        if manner != "nousage":
            self.event(manner, {"choices": [], "usage": usage})
        self.event(manner, "[DONE]")
        if manner == "more" and measured:
            self.event(manner, self.piece(chat, "x"))
        return True


def common(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


class Mock(http.server.ThreadingHTTPServer):
    """A server on a free port of this machine. `requests`: all so far; `most`: how many ran at once."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.came = threading.Condition(self.lock)
        self.running = 0
        self.forget()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A client that breaks off is no error here."""

    def forget(self):
        self.requests, self.prompts, self.most = [], [], 0

    def url(self, manner="ok"):
        return f"http://127.0.0.1:{self.server_address[1]}/{manner}"
