#!/bin/sh
# The tool runner of Anthropic's Python library keeps the conversation in a thread of the server, unasked: its second request has only the result of
# the tool and the id of the answer before. A server that has no threads, and takes requests without checking the ids of results, answers without question and call. An
# error with details.error_code "thread_unsupported_request" makes the runner send everything again, without a thread.
# Seen with anthropic 2.14.0 (PyPI), asking a local server that plays the model: the lines at the end, one for each request: its messages, its thread.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install anthropic==2.14.0 2>/dev/null
cat >run.py <<'END'
import http.server
import json
import sys
import threading
from anthropic import Anthropic, beta_tool

HAS_THREADS = sys.argv[1] == "threads"


class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        thread = body.get("thread")
        print(sys.argv[1], len(body["messages"]), thread and thread["type"])
        if thread and not HAS_THREADS:
            details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
            self.send(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "no threads", "details": details}})
            return
        first = "tool_result" not in json.dumps(body["messages"])
        content = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}} if first else {"type": "text", "text": "It is 3."}
        self.send(200, {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [content],
                        "stop_reason": "tool_use" if first else "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}})

    def send(self, status, answer):
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@beta_tool
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


server = http.server.HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = Anthropic(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0)
for message in client.beta.messages.tool_runner(model="m", max_tokens=50, messages=[{"role": "user", "content": "What is 1 + 2?"}], tools=[add]):
    pass
END
py/bin/python run.py threads >got.txt
py/bin/python run.py none >>got.txt
cat got.txt
cat >want.txt <<'END'
threads 1 create
threads 1 continue
none 1 create
none 1 None
none 3 None
END
diff want.txt got.txt
