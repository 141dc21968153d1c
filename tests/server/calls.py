#!/usr/bin/env python3
"""Answers with calls of tools and reasoning in all APIs of llm-server, as they are and as streams, and in llm-cli: calls.py LLM-SERVER CASE LLM-CLI."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from http_layer import check
from parrot_file import parrot
from running import Server, events

BINARY = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory()
SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}, "n": {"type": "integer"}}}
TALK = [{"role": "user", "content": "Hi"}]
QWEN = "<tool_call> <function= <think> </think>"
HERMES = "<tool_call> <think> </think>"
BASH = '<tool_call>{"name": "Bash", "arguments": {}}</tool_call>'


def post(s, path, body):
    status, _, data = s.post(path, body)
    check(status == 200, f"{path} {status}: {data[:300]}")
    return data


def join(parts):
    """Pieces of one kind that follow each other, unless they begin anew, are one."""
    out = []
    for kind, text, begins in parts:
        if out and out[-1][0] == kind and not begins:
            out[-1][1] += text
        else:
            out.append([kind, text])
    return [(kind, text) for kind, text in out if text or kind not in ("text", "thinking")]


def chat(s, stream, tools, more):
    own = [{"type": "function", "function": {"name": n, "description": "d", "parameters": SCHEMA}} for n in tools]
    body = {"messages": TALK, "temperature": 0, "stream": stream, **({"tools": own} if own else {}), **more}
    data = post(s, "/v1/chat/completions", body)
    if not stream:
        c = json.loads(data)["choices"][0]
        m = c["message"]
        calls = [(x["function"]["name"], x["function"]["arguments"]) for x in m.get("tool_calls", [])]
        lp = [x["token"] for x in (c["logprobs"] or {}).get("content", [])]
        return {"text": m["content"] or "", "thinking": m.get("reasoning_content") or "", "calls": calls, "end": c["finish_reason"], "tokens": lp}
    got = {"text": "", "thinking": "", "calls": [], "end": None, "tokens": []}
    for event in events(data):
        for c in event["choices"]:
            got["text"] += c["delta"].get("content") or ""
            got["thinking"] += c["delta"].get("reasoning_content") or ""
            got["end"] = c["finish_reason"] or got["end"]
            got["tokens"] += [x["token"] for x in (c["logprobs"] or {}).get("content", [])]
            for x in c["delta"].get("tool_calls", []):
                if x["index"] == len(got["calls"]):
                    got["calls"].append(("", ""))
                name, arguments = got["calls"][x["index"]]
                got["calls"][x["index"]] = (name + x["function"].get("name", ""), arguments + x["function"]["arguments"])
    return got


def messages(s, stream, tools, more):
    body = {"max_tokens": 2000, "messages": TALK, "temperature": 0, "stream": stream,
            **({"tools": [{"name": n, "description": "d", "input_schema": SCHEMA} for n in tools]} if tools else {}), **more}
    data = post(s, "/v1/messages", body)
    if not stream:
        m = json.loads(data)
        parts = [(b["type"], b.get("text", b.get("thinking", "")) if b["type"] != "tool_use" else (b["name"], json.dumps(b["input"])), True)
                 for b in m["content"]]
        return {"parts": join(parts), "end": m["stop_reason"]}
    parts, end = [], None
    for line in data.decode().split("\n"):
        event = json.loads(line[6:]) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            parts.append([event["content_block"]["type"], event["content_block"].get("name"), ""])
        elif event.get("type") == "content_block_delta":
            d = event["delta"]
            parts[-1][2] += d.get("text", "") + d.get("thinking", "") + d.get("partial_json", "")
        elif event.get("type") == "message_delta":
            end = event["delta"]["stop_reason"]
    return {"parts": join([(k, text if k != "tool_use" else (name, json.dumps(json.loads(text or "{}"))), True) for k, name, text in parts]),
            "end": end}


def responses(s, stream, tools, more):
    body = {"input": "Hi", "temperature": 0, "stream": stream,
            **({"tools": [{"type": "function", "name": n, "description": "d", "parameters": SCHEMA} for n in tools]} if tools else {}), **more}
    data = post(s, "/v1/responses", body)
    if stream:
        last = [line for line in data.decode().split("\n") if line.startswith("data: ")][-1]
        r = json.loads(last[6:])["response"]
    else:
        r = json.loads(data)
    parts = []
    for item in r["output"]:
        if item["type"] == "function_call":
            parts.append(("function_call", (item["name"], item["arguments"]), True))
        else:
            parts.append((item["type"], "".join(c["text"] for c in item["content"]), True))
    return {"parts": join(parts), "end": r["status"]}


def ollama(s, stream, tools, more):
    own = [{"type": "function", "function": {"name": n, "description": "d", "parameters": SCHEMA}} for n in tools]
    data = post(s, "/api/chat", {"messages": TALK, "options": {"temperature": 0}, "stream": stream, **({"tools": own} if own else {}), **more})
    got = {"text": "", "thinking": "", "calls": [], "end": None}
    for line in data.decode().strip().split("\n"):
        m = json.loads(line)
        got["text"] += m["message"].get("content") or ""
        got["thinking"] += m["message"].get("thinking") or ""
        got["calls"] += [(c["function"]["name"], json.dumps(c["function"]["arguments"])) for c in m["message"].get("tool_calls", [])]
        got["end"] = m.get("done_reason")
    return got


APIS = {"chat": chat, "messages": messages, "responses": responses, "ollama": ollama}


def both(s, api, tools=("Read", "Bash"), **more):
    """The answer, which is the same in both forms."""
    plain, stream = APIS[api](s, False, tools, more), APIS[api](s, True, tools, more)
    check(plain == stream, f"{api}: {plain}\nas a stream: {stream}")
    for name, arguments in plain.get("calls", []) + [text for kind, text in plain.get("parts", []) if kind in ("tool_use", "function_call")]:
        check(isinstance(json.loads(arguments), dict), f"{api}: {name} {arguments}")
    return plain


def speaks(answer, marks=HERMES, **how):
    path = os.path.join(FOLDER.name, "parrot.gguf")
    parrot(path, answer, marks, **how)
    return Server([BINARY, "-m", path, "-t", "1"])


def chats(*options):
    """What llm-cli prints with the model that was written last."""
    return subprocess.run([sys.argv[3], "-m", os.path.join(FOLDER.name, "parrot.gguf"), "-st", "-p", "Hi", "--temp", "0", "-t", "1", *options],
                          capture_output=True, text=True, check=True).stdout


def mistakes():
    """A call with a small mistake is a call, and text that is no call is text, in all APIs and both forms."""
    begin, end = "<tool_call>\n<function=Read>\n<parameter=file_path>\n", "\n</function>\n</tool_call>"
    call = [("Read", '{"file_path":"/a.md"}')]
    rows = [(QWEN, begin + "/a.md\n</parameter>\n</parameter>" + end, call), (QWEN, begin + "/a.md\n</parameter>\n</tool_call>", call),
            (QWEN, begin + "/a.md" + end, call),
            (HERMES, '<tool_call>{"name": "Read", "arguments": {"file_path": "a\nb"}}</tool_call>', [("Read", '{"file_path":"a\\nb"}')]),
            (HERMES, '<tool_call>{"name": "Read", "arguments": {"file_path": "a"}</tool_call>', [("Read", '{"file_path":"a"}')]),
            (HERMES, '<tool_call>{"name": "Read", "arguments": [1]}</tool_call>', [])]
    for marks, answer, calls in rows:
        with speaks(answer, marks) as s:
            got = both(s, "chat")
            check(got["calls"] == calls and got["text"] == ("" if calls else answer), f"{answer}: {got}")
            check(got["end"] == ("tool_calls" if calls else "stop"), got)
            for api in ("messages", "responses", "ollama"):
                both(s, api)


def order():
    """Texts and calls keep their order; texts that become one have a line break between them."""
    with speaks(f"One.\n{BASH}\nTwo.\n\n{BASH}Three. ") as s:
        got = both(s, "chat")
        check(got["text"] == "One.\nTwo.\nThree. " and len(got["calls"]) == 2, got)
        got = both(s, "messages")["parts"]
        check([k for k, _ in got] == ["text", "tool_use", "text", "tool_use", "text"], got)
        got = both(s, "responses")["parts"]
        check([k for k, _ in got] == ["message", "function_call", "message", "function_call", "message"], got)
        check(both(s, "ollama")["text"] == "One.\nTwo.\nThree. ", "ollama")
        one = both(s, "chat", parallel_tool_calls=False)
        check(one["text"] == "One." and len(one["calls"]) == 1 and one["end"] == "tool_calls", one)
        one = both(s, "messages", tool_choice={"type": "auto", "disable_parallel_tool_use": True})
        check([k for k, _ in one["parts"]] == ["text", "tool_use"] and one["end"] == "tool_use", one)
        check(len(both(s, "responses", parallel_tool_calls=False)["parts"]) == 2, "responses")
        stopped = both(s, "chat", stop=["</tool_call>"])
        check(len(stopped["calls"]) == 1 and stopped["end"] == "tool_calls", stopped)
        check(both(s, "messages", stop_sequences=["</tool_call>"])["end"] == "tool_use", "messages")
        text = both(s, "chat", tools=())
        check(text["text"] == f"One.\n{BASH}\nTwo.\n\n{BASH}Three. ", text)
    with speaks('<tool_call>{"name": "Read", "arguments": {"file_path": "a STOP b"}}</tool_call>') as s:
        stopped = both(s, "chat", stop=["STOP"])
        check(stopped["calls"] == [("Read", '{"file_path":"a "}')] and stopped["end"] == "stop", stopped)
    with speaks("    return x\n\n", "") as s:
        for api in ("chat", "ollama"):
            check(both(s, api, tools=())["text"] == "    return x\n\n", api)
        check(both(s, "messages", tools=())["parts"] == [("text", "    return x\n\n")], "messages")
        check(both(s, "responses", tools=())["parts"] == [("message", "    return x\n\n")], "responses")
        check(chats() == "    return x\n\n", "llm-cli")


def thoughts():
    """Reasoning that is cut by its budget, or comes before an answer in a given form."""
    answer = "First I think about it for a while, and more follows here.</think>Hello there."
    with speaks(answer, HERMES, begun="<think>\n") as s:
        for n in (1, 5, 12):
            got = both(s, "chat", tools=(), thinking_budget_tokens=n)
            check("</think>" not in got["text"] and got["text"] == "Hello there." and got["thinking"].endswith("here."), got)
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {"answer": {"type": "string"}},
                                                                             "required": ["answer"], "additionalProperties": False}}}
    with speaks('17-6 is 11, plus 6.</think>{"answer": "17"}', HERMES, begun="<think>\n") as s:
        for tools in ((), ("Bash",)):
            got = both(s, "chat", tools=tools, response_format=schema)
            check(got["thinking"] == "17-6 is 11, plus 6." and json.loads(got["text"]) == {"answer": "17"}, got)
        check(chats("--reasoning", "hide", "--json-schema", json.dumps(schema["json_schema"]["schema"])) == '{"answer": "17"}\n', "llm-cli")
        check(chats("--reasoning", "hide", "--reasoning-budget", "3") == '{"answer": "17"}\n', "llm-cli: a budget")
    with speaks("Hm.</think>yes", HERMES, begun="<think>\n") as s:
        for grammar in ('root ::= "yes" | "no"', 'root ::= [^<]* "</think>" ("yes" | "no")'):
            got = both(s, "chat", tools=(), grammar=grammar)
            check(got["thinking"] == "Hm." and got["text"] == "yes", got)
    with speaks('<think>Hm.</think>{"answer": "<think>"}', HERMES) as s:
        got = both(s, "chat", tools=(), response_format=schema)
        check(got["thinking"] == "Hm." and json.loads(got["text"]) == {"answer": "<think>"}, got)
        got = both(s, "chat", tools=(), grammar='root ::= "<think>" [^<]* "</think>" [^<]* "<think>" [^x]*')
        check(got["thinking"] == "Hm." and got["text"] == '{"answer": "<think>"}', got)
    with speaks(BASH) as s:
        got = both(s, "chat", tools=("Bash",), tool_choice="required", logprobs=True)
        check(len(got["tokens"]) > 5, got)


if __name__ == "__main__":
    globals()[sys.argv[2]]()
