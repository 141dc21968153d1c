#!/usr/bin/env python3
"""The program llm-server on its built-in model: options, errors, keys, admin endpoints, signals. program.py LLM-SERVER CASE."""
import asyncio
import base64
import gzip
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from http_layer import PATIENCE, check, read_reply, request
from running import Gone, Server, exchange

BINARY = sys.argv[1]
SMALL = ["-c", "512", "-np", "2", "-t", "1"]
RERANK = b'{"query": "a", "documents": ["b"]}'
CHAT = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8, "temperature": 0}


def run(*options, stdin=""):
    return subprocess.run([BINARY, *options], capture_output=True, text=True, input=stdin, timeout=PATIENCE)


def fails(code, words, *options):
    r = run(*options)
    lines = r.stderr.strip().splitlines()
    check(r.returncode == code and words in r.stderr and len(lines) == 1 and not r.stdout, f"{options}: {r}")


def read(server, path, status=200, **more):
    got, headers, body = server.get(path, **more)
    check(got == status, f"{path}: {got} {body[:300]}")
    return json.loads(body)


def post(server, path, body, status=200, **more):
    got, headers, text = server.post(path, body, **more)
    check(got == status, f"{path} {body}: {got} {text[:300]}")
    return json.loads(text)


def raw(server, data):
    """Sends bytes as they are and reads a reply."""
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.settimeout(PATIENCE)
        s.sendall(data)
        return read_reply(s.makefile("rb"))


# --- cases -----------------------------------------------------------------------------------------


def options():
    """Wrong options, and those of other servers: one line, exit code 1 or 2."""
    r = run("--help")
    check(r.returncode == 0 and "--api-key" in r.stdout and max(map(len, r.stdout.splitlines())) <= 80, "--help")
    fails(2, "unknown flag '--prot'; did you mean '--port'?", "--prot", "1")
    fails(2, "out of range", "--port", "65536")
    fails(2, "--max-body: 4096 is out of range, 1 to 1024 MiB is allowed", "--max-body", "4096")
    fails(2, "--cors", "--cors", "example.org")
    fails(2, "--cors", "--cors", "https://example.org/page")
    fails(2, "cannot be used together", "--no-repack", "--repack-cache")
    fails(2, "at least 2 tokens", "-c", "1")
    fails(2, "cannot be used together", "--chat-template", "chatml", "--chat-template-file", "/dev/null")
    fails(2, "needs --lookup or --draft", "--draft-max", "3")
    fails(2, "reverse proxy", "--ssl-key-file", "x")
    fails(2, "-hf USER/REPO", "-dr", "a/b")
    fails(2, "requests say it", "--grammar", "x")
    fails(2, "--open and --no-webui cannot be used together", "--open", "--no-webui")
    fails(2, "--open: browsers cannot show the page of a socket", "--open", "--host", "/x.sock")
    fails(2, "builtin:stories", "-m", "builtin:none")
    fails(2, "not in the vocabulary", "-l", "99999999+1", "--port", "0")
    fails(1, "No such file", "-m", "/no/such.gguf")
    fails(1, "No such file", "--api-key-file", "/no/such")
    fails(1, "not known", "--host", "no.such.host.invalid")
    fails(1, "not an address of this machine", "--host", "192.0.2.1", "--port", "0")
    fails(1, "--host ./x.sock: the path of a socket must begin with '/'", "--host", "./x.sock")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        fails(1, "is in use by another program; --port", "--port", str(s.getsockname()[1]))
    with tempfile.TemporaryDirectory() as folder:
        bad = folder + "/bad.gguf"
        with open(bad, "wb") as f:
            f.write(b"no model")
        fails(1, "bad.gguf", "-m", bad, "--port", "0")
        empty = folder + "/keys"
        with open(empty, "w") as f:
            f.write("\n# a comment\n  \n")
        fails(2, "no key", "--api-key-file", empty)
        fails(1, "--log-file", "--log-file", folder + "/none/log", "--port", "0")


def defaults():
    """Defaults of sampling: a request, in any dialect, then an option, then the model's file, then the usual ones."""
    keys = "general.sampling.temp=float:0,general.sampling.top_k=int:7,general.sampling.penalty_repeat=float:1.25,general.sampling.sequence=str:top_k;temperature"
    asked = {"messages": [{"role": "user", "content": "Tell me a story"}]}
    ways = (("/completion", {"prompt": "Once upon a time", "n_predict": 40}, lambda x: x["content"]),
            ("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 40}, lambda x: x["choices"][0]["text"]),
            ("/v1/chat/completions", dict(asked, max_tokens=40), lambda x: x["choices"][0]["message"]["content"]),
            ("/v1/responses", {"input": "Tell me a story", "max_output_tokens": 40}, lambda x: x["output"][0]["content"][0]["text"]),
            ("/v1/messages", dict(asked, max_tokens=40), lambda x: x["content"][0]["text"]),
            ("/api/chat", dict(asked, stream=False, options={"num_predict": 40}), lambda x: x["message"]["content"]))
    seen = {}
    for options in ([], ["--temp", "1.5", "--sampling-seq", "kpt"], ["--no-file-sampling"]):
        with Server([BINARY, *SMALL, "--override-kv", keys, *options, "-s", "5"]) as s:
            p = read(s, "/props")["default_generation_settings"]["params"]
            notes = [x for x in s.lines if "the model's file sets" in x]
            shown = dict(line.split() for line in post(s, "/api/show", {"model": read(s, "/v1/models")["data"][0]["id"]})["parameters"].splitlines())
            check({name: float(shown[name]) for name in ("temperature", "top_k", "repeat_penalty", "top_p")} ==
                  {name: p[name] for name in ("temperature", "top_k", "repeat_penalty", "top_p")}, (shown, p))
            seen[options[0] if options else ""] = (p["temperature"], p["top_k"], p["repeat_penalty"], p["samplers"], notes,
                                                   [get(post(s, path, body)) for path, body, get in ways])
            for path, body, get in ways: # what a request says goes before all
                said = dict(body["options"], temperature=0) if "options" in body else None
                body = dict(body, options=said) if said else dict(body, temperature=0)
                seen.setdefault(path, []).append(get(post(s, path, body)))
    plain, option, none = seen[""], seen["--temp"], seen["--no-file-sampling"]
    check(plain[:4] == (0, 7, 1.25, ["top_k", "temperature"]) and len(plain[4]) == 1, plain)
    check("sets temperature 0, top_k 7, repeat_penalty 1.25, samplers top_k;temperature; --no-file-sampling ignores that" in plain[4][0], plain[4])
    check(option[:4] == (1.5, 7, 1.25, ["top_k", "top_p", "temperature"]) and "sets top_k 7, repeat_penalty 1.25; --no" in option[4][0], option)
    check(none[0] == 0.8 and none[1:3] == (40, 1) and len(none[3]) == 9 and none[4] == [], none)
    for k, (path, _, _) in enumerate(ways):
        check(plain[5][k] == seen[path][0] != option[5][k] and seen[path][0] != none[5][k], f"{path}: {plain[5][k]} {option[5][k]} {none[5][k]}")


def admin():
    """What the server says of itself."""
    habits = ["-cb", "--jinja", "-fa", "on", "--metrics", "--slots", "-kvu"] # flags of llama.cpp's server
    with Server([BINARY, *SMALL, *habits, "--alias", "my/model"]) as s:
        check(any(re.search(r"http://127\.0\.0\.1:\d+  model my/model, 2 answers at once, context of 512 tokens for all", x) for x in s.lines), s.lines)
        check(read(s, "/health") == {"status": "ok"} == read(s, "/v1/health"), "health")
        props = read(s, "/props")
        check(props["total_slots"] == 2 and props["model_alias"] == "my/model" and props["default_generation_settings"]["n_ctx"] == 512, props)
        check("<|user|>" in props["chat_template"] or props["chat_template"], "template")
        check(props["build_info"].startswith("b") and props["build_info"].endswith("-llm-server"), props["build_info"]) # the form of llama.cpp's
        check(props["bos_token"] == "<s>" and props["modalities"] == {"vision": False, "audio": False}, props)
        check(abs(props["default_generation_settings"]["params"]["temperature"] - 0.8) < 1e-6, props)
        models = read(s, "/v1/models")
        check(models == read(s, "/models") and models["object"] == "list" and models["data"][0]["id"] == "my/model", models)
        check(models["data"][0]["meta"]["n_ctx_train"] == 2048, models)
        check(read(s, "/v1/models/my/model") == models["data"][0], "a model by its name")
        check("this server has my/model" in read(s, "/v1/models/other", 404)["error"]["message"], "another model")
        check(read(s, "/api/version").keys() == {"version"}, "version")
        tags = read(s, "/api/tags")["models"][0]
        check(tags["name"] == "my/model" and tags["details"]["format"] == "gguf" and tags["size"] > 1e6, tags)
        check(re.fullmatch("[0-9a-f]{64}", tags["digest"]), tags)
        check(tags["capabilities"] == ["completion", "tools"] and tags["details"]["context_length"] == 2048 and tags["details"]["embedding_length"] > 0, tags)
        check(read(s, "/api/ps")["models"][0]["context_length"] == 512, "ps")
        show = post(s, "/api/show", {"model": "my/model"})
        check(show["model_info"]["general.architecture"] == "llama" and show["capabilities"] == tags["capabilities"] and show["details"] == tags["details"], show.keys())
        check(show["model_info"]["tokenizer.ggml.tokens"] is None, "lists are left out")
        post(s, "/v1/chat/completions", CHAT)
        slots = read(s, "/slots")
        check(len(slots) >= 2 and not any(x["is_processing"] for x in slots), slots)
        check(any(x["use"] == "kept" and x["n_past"] > 0 for x in slots), slots)
        _, head, text = s.get("/metrics")
        text = text.decode()
        check(abs(time.time() - int(head["process-start-time-unix"])) < 3600, head)
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        check(float(values["llamacpp:tokens_predicted_total"]) == 8 and float(values["llamacpp:prompt_tokens_total"]) > 0, values)
        check(all(float(values[f"llamacpp:{n}_total"]) == 0 for n in (
            "prompt_tokens_cached", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens", "spec_decode_num_drafts")), values)
        check(values["llm_time_to_first_token_seconds_count"] == "1" == values['llm_time_to_first_token_seconds_bucket{le="+Inf"}'], values)
        check(float(values["llm_requests_total"]) > 10 and float(values["llm_request_errors_total"]) == 0, values)
        names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        check(len(set(names)) == len(names) and all(re.fullmatch(r"llm_\w+|llamacpp:\w+", x) for x in names), names)
        # where a name has no other use than to find a model, it must be right, also if there is one model
        for path in ("/api/show", "/models/load", "/models/unload"):
            e = post(s, path, {"model": "nope"}, 404)["error"]
            check(isinstance(e, str) == (path == "/api/show") and "there is no model nope; this server has my/model" in str(e), f"{path}: {e}")
            check('"model" is missing' in str(post(s, path, {}, 400)["error"]).replace("\\", ""), f"{path} without a name")
        check(post(s, "/api/show", {"name": "my/model:latest"}) == show, "a tag")
        check(post(s, "/models/load", {"model": "my/model"}) == {"success": True}, "load")
        check(post(s, "/v1/chat/completions", dict(CHAT, model="nope", max_tokens=1))["choices"], "an answer has any name")
        check(s.request("HEAD", "/health")[0] == 200, "HEAD")
        notes = [line for line in s.lines if "note:" in line]
        check(len(notes) == 6 and all("the flag has no effect" in line for line in notes), notes)
        check(s.stop() == 0, "exit code after SIGTERM")
    with Server([BINARY, "-c", "4096", "-np", "200", "-t", "1"]) as s:
        check(any("trained on 2048 tokens" in x for x in s.lines) and any("200 sequences at once (-np) share 4096 tokens" in x for x in s.lines), s.lines)


def text():
    """/tokenize, /detokenize and /apply-template agree with each other."""
    with Server([BINARY, *SMALL]) as s:
        for content in ("Hello, world", "", "caf\u00e9 \U0001f600 <s>", "a\u0000b"):
            ids = post(s, "/tokenize", {"content": content})["tokens"]
            back = post(s, "/detokenize", {"tokens": ids})["content"]
            check(back.lstrip(" ") == content.lstrip(" "), f"{content!r}: {ids} {back!r}")
            pieces = post(s, "/tokenize", {"content": content, "with_pieces": True})["tokens"]
            check([p["id"] for p in pieces] == ids, pieces)
            data = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"]) for p in pieces)
            check(data.decode().lstrip(" ") == content.lstrip(" "), pieces)
        check(post(s, "/tokenize", {"content": "a", "add_special": True})["tokens"][0] == 1, "bos")
        check(len(post(s, "/tokenize", {"content": "<s>", "parse_special": False})["tokens"]) > 1, "parse_special")
        check(post(s, "/tokenize", {"content": [5, "Hi", 7]})["tokens"][0] == 5, "a mixed list")
        prompt = post(s, "/apply-template", {"messages": CHAT["messages"]})["prompt"]
        check("Hello!" in prompt and prompt.endswith("<|assistant|>"), prompt)
        for path, body, words in (("/tokenize", {}, "content"), ("/tokenize", {"content": 1}, "content"), ("/tokenize", {"content": [-1]}, '"content[0]" must be a text or a token\'s id from 0 to '),
                                  ("/detokenize", {"tokens": [99999]}, '"tokens[0]" must be a token\'s id from 0 to '),
                                  ("/detokenize", {"tokens": ["a"]}, ', not "a"'), ("/apply-template", {}, "messages"), ("/tokenize", [], "object")):
            check(words in post(s, path, body, 400)["error"]["message"], f"{path} {body}")


def echoes():
    """The log-probabilities of an echoed prompt say where each token is in the text."""
    with Server([BINARY, *SMALL]) as s:
        for prompt, offsets in (
            ([1, 468, 480, 261, 406], [0, 3, 7, 12, 14]),  # <s>Once upon a time
            ("Once upon a time", [0, 0, 4, 9, 11]),
            ("日é x", [0, 0, 0, 0, 0, 1, 1, 2, 3]),  # characters that are split into bytes
            ("a</s>b <s>c", [0, 0, 1, 5, 6, 7, 10]),
        ):
            body = {"prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0, "ignore_eos": True}
            choice = post(s, "/v1/completions", body)["choices"][0]
            got = choice["logprobs"]["text_offset"]
            check(got[: len(offsets)] == offsets, f"{prompt}: {got}")
            check(len(choice["text"]) > got[len(offsets)] >= len(choice["text"]) - len(choice["logprobs"]["tokens"][-1]), f"{prompt}: {choice}")
            chunks = [json.loads(line[6:]) for line in s.post("/v1/completions", {**body, "stream": True})[2].decode().splitlines() if line[:7] == "data: {"]
            parts = [chunk["choices"][0]["logprobs"] for chunk in chunks]
            check(sum([part["text_offset"] for part in parts if part], []) == got, f"{prompt}: a stream")


def unknown():
    """A field that is not known is ignored, and named in a header and in the log; --strict-fields refuses it."""
    bodies = (("/v1/chat/completions", CHAT), ("/v1/completions", {"prompt": "a", "max_tokens": 1}), ("/v1/responses", {"input": "a", "max_output_tokens": 1}),
              ("/v1/messages", CHAT), ("/v1/messages/count_tokens", CHAT), ("/api/chat", {"messages": CHAT["messages"], "stream": False}),
              ("/api/generate", {"prompt": "a", "stream": False}), ("/api/show", {"model": "chat"}), ("/completion", {"prompt": "a", "n_predict": 1}),
              ("/tokenize", {"content": "a"}), ("/detokenize", {"tokens": [5]}), ("/apply-template", CHAT))
    with tempfile.TemporaryDirectory() as folder:
        if os.path.exists("/dev/full"): # as a full disk
            with Server([BINARY, *SMALL, "--log-file", "/dev/full"]) as s:
                check(all(s.get("/v1/models")[0] == 200 for _ in range(3)), "it goes on")
                s.stop()
                check(sum("log cannot be written" in x for x in s.lines) == 1, s.lines)
        with Server([BINARY, *SMALL, "-n", "4", "--log-file", folder + "/log"]) as s:
            for path, body in bodies:
                status, headers, text = s.post(path, dict(body, absent=None))
                check(status == 200 and "X-Ignored-Fields" not in headers, f"{path}: {status} {headers} {text[:200]}")
                status, headers, text = s.post(path, {**body, "tempratur\r\ne": 1})
                check(status == 200 and headers["X-Ignored-Fields"] == "tempratur??e", f"{path}: {status} {headers} {text[:200]}")
            status, headers, text = s.post("/v1/chat/completions", dict(CHAT, stream=True, provider={}))
            check(status == 200 and headers["X-Ignored-Fields"] == "provider", headers)
            check(s.stop() == 0, "stopped")
        with open(folder + "/log") as f:
            lines = [line for line in f if "ignored: " in line]
        check(len(lines) == len(bodies) + 1 and all("POST /" in x and x.endswith("ignored: tempratur??e\n") for x in lines[:-1]), lines)
    with Server([BINARY, *SMALL, "--strict-fields"]) as s:
        for path, body in bodies:
            status, _, text = s.post(path, dict(body, tempratur=1))
            check(status == 400 and b"tempratur" in text, f"{path}: {status} {text[:200]}")
        status, _, text = s.post("/v1/chat/completions", dict(CHAT, chat_template_kwargs={"enable_thinkng": False}))
        check(status == 400 and b"enable_thinkng" in text and b'"param":"chat_template_kwargs"' in text.replace(b": ", b":"), text)
    # variables that a template does not read
    with Server([BINARY, *SMALL, "-n", "4"]) as s:
        for path in ("/v1/chat/completions", "/apply-template", "/v1/chat/completions/input_tokens"):
            status, headers, text = s.post(path, dict(CHAT, chat_template_kwargs={"enable_thinkng": False, "a\r\n": 1}))
            check(status == 200 and headers.get("X-Notes", "").endswith('chat_template_kwargs sets: "enable_thinkng", "a??"'), f"{path}: {status} {headers} {text[:200]}")
            status, headers, text = s.post(path, dict(CHAT, reasoning_effort="low"))
            check(status == 200 and "chat_template_kwargs" not in headers.get("X-Notes", ""), f"{path}: {headers}")
    # tools that a template does not show
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    for template, ignored in ((["--chat-template", "chatml"], "tools"), ([], None)):
        with Server([BINARY, *SMALL, "-n", "4", *template]) as s:
            status, headers, text = s.post("/v1/chat/completions", dict(CHAT, tools=tools))
            check(status == 200 and headers.get("X-Ignored-Fields") == ignored, f"{template}: {status} {headers} {text[:200]}")
            status, headers, text = s.post("/v1/chat/completions", CHAT)
            check(status == 200 and "X-Ignored-Fields" not in headers, f"{template}: {status} {headers}")


FIRST = ("{{ raise_exception('Nothing was asked.') if messages[0].role == 'assistant' }}{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
         "<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{{ '<|assistant|>' if add_generation_prompt }}")


def said(role, content):
    return {"role": role, "content": content}


def systems():
    """System and developer messages anywhere, with a template that refuses all but one at the beginning, in all APIs."""
    system, developer, user, answer = said("system", "S"), said("developer", "D"), said("user", "U"), said("assistant", "A")
    later = [user, answer, said("system", "T"), said("user", "V")]
    items = [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "D"}]}, {"type": "message", **user}]
    few = {"max_tokens": 2}
    bodies = (("/v1/chat/completions", {"messages": [system, developer, *later], **few}), ("/v1/chat/completions", {"messages": [system, *later], "stream": True, **few}),
              ("/v1/responses", {"instructions": "S", "input": items, "max_output_tokens": 2}), ("/v1/messages", {"system": "S", "messages": later, **few}),
              ("/v1/messages", {"system": "S", "messages": [user, said("system", "T")], **few}),
              ("/v1/messages/count_tokens", {"system": "S", "messages": later}), ("/api/chat", {"messages": [system, said("system", "T"), user], "options": {"num_predict": 2}}),
              ("/apply-template", {"messages": [system, developer, *later]}), ("/v1/chat/completions/input_tokens", {"messages": [system, *later]}))
    with Server([BINARY, *SMALL, "--chat-template", FIRST]) as s:
        for path, body in bodies:
            status, headers, text = s.post(path, body)
            check(status == 200 and "because the chat template shows" in headers.get("X-Notes", ""), f"{path}: {status} {headers} {text[:200]}")
        shown = post(s, "/apply-template", bodies[-2][1])["prompt"]
        check(shown == "<|system|>S\n\nD<|end|><|user|>U<|end|><|assistant|>A<|end|><|user|>[System message]\nT\n[End of system message]\n\nV<|end|><|assistant|>", shown)
        for path in "/v1/messages", "/v1/chat/completions", "/api/chat":
            text = s.post(path, {"messages": [said("assistant", "")], **few})[2]
            check(b"messages[0] (assistant): it is empty, without content, reasoning and calls: " in text, f"{path}: {text}")
        status, headers, _ = s.post("/v1/chat/completions", dict(CHAT, messages=[system, user]))
        check(status == 200 and "X-Notes" not in headers, headers)


def deferred():
    """Tools that a search finds: the prompt before the search's result stays as it is, and they can be called from then on."""
    def tool(name, **more):
        return {"name": name, "description": "does " + name, "input_schema": {"type": "object", "properties": {"x": {"enum": ["a"]}}, "required": ["x"]}, **more}

    tools = [tool("ToolSearch"), tool("DeferredToolPlaceholder", defer_loading=True), tool("WebFetch", defer_loading=True)]
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ToolSearch", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "tool_reference", "tool_name": "WebFetch"}]}]}
    demanded = {"tool_choice": {"type": "tool", "name": "WebFetch"}}
    first, later = [said("user", "go")], [said("user", "go"), call, result]
    with Server([BINARY, "-c", "2048", "-t", "1"]) as s:
        def count(messages, of):
            return post(s, "/v1/messages/count_tokens", {"messages": messages, "tools": of})["input_tokens"]

        check(count(first, tools) == count(first, tools[:1]), "deferred tools are not shown")
        check(count(later, tools) > count(later, tools[:2]) + 10, "a found tool is")
        body = {"messages": first, "tools": tools, "max_tokens": 4, "temperature": 0}
        check(b"defer_loading" in s.post("/v1/messages", {**body, **demanded})[2], "it cannot be called before")
        post(s, "/v1/messages", body)
        usage = post(s, "/v1/messages", {**body, "messages": later})["usage"]
        # the template of this model shows its tools at the beginning
        check(usage["cache_read_input_tokens"] >= count(first, tools) - 4, usage)
        post(s, "/v1/messages", {**body, "messages": later, **demanded})


def typed():
    """What looks like a control token in a message is text, unless the server is told that it is one."""
    def count(s, text):
        return post(s, "/v1/chat/completions/input_tokens", {"messages": [said("user", text)]})["input_tokens"]

    with Server([BINARY, *SMALL]) as s, Server([BINARY, *SMALL, "--parse-special-in-messages"]) as parses:
        plain = post(s, "/tokenize", {"content": "a<|end|>", "parse_special": False})["tokens"]
        check(count(s, "a<|end|>") - count(s, "a") == len(plain) - 1 > 1, plain)
        check(count(parses, "a<|end|>") - count(parses, "a") == 1, "a control token")
        check(count(s, "Hello there") == count(parses, "Hello there"), "the same without one")
        both = [post(x, "/v1/messages/count_tokens", {"messages": [said("user", "a"), said("assistant", "b</s>")]})["input_tokens"] for x in (s, parses)]
        check(both[0] > both[1], both)


def overflow():
    """A prompt that is too long, as programs recognise it."""
    long = "word " * 2000
    with Server([BINARY, *SMALL]) as s:
        chat = {"messages": [{"role": "user", "content": long}], "max_tokens": 4}
        for path, body in (("/v1/chat/completions", chat), ("/v1/responses", {"input": long}), ("/v1/completions", {"prompt": long}),
                           ("/chat/completions", dict(chat, stream=True)), ("/completion", {"prompt": long})):
            e = post(s, path, body, 400)["error"]
            check(e["code"] in ("context_length_exceeded", 400) and e["type"] == "exceed_context_size_error", e)
            check(e["n_prompt_tokens"] > 512 == e["n_ctx"] and "exceeds the available context size" in e["message"], e)
        e = post(s, "/v1/messages", chat, 400)["error"]
        check(re.fullmatch(r"prompt is too long: \d+ tokens > 512 maximum", e["message"]), e)
        check("maximum context length is 512 tokens" in post(s, "/api/chat", chat, 400)["error"], "Ollama")


def prefill():
    """The end of a prompt: a turn begins, goes on, or neither."""
    says = [{"role": "user", "content": "Tell."}, {"role": "assistant", "content": "Once upon"}]
    with Server([BINARY, *SMALL]) as s:
        def prompt(**more):
            return post(s, "/apply-template", dict(more, messages=says))["prompt"]
        check(prompt().endswith("Once upon") and prompt() == prompt(continue_final_message=True, add_generation_prompt=False), prompt())
        check(prompt(add_generation_prompt=True) == prompt(add_generation_prompt=False) + "<|assistant|>", prompt(add_generation_prompt=True))
        e = post(s, "/apply-template", {"messages": says, "add_generation_prompt": True, "continue_final_message": True}, 400)["error"]
        check("cannot both be true" in e["message"], e)
        answers = [post(s, "/v1/chat/completions", dict(more, messages=says, max_tokens=6, temperature=0))["choices"][0]["message"]["content"]
                   for more in ({}, {"continue_final_message": True}, {"add_generation_prompt": True})]
        check(answers[0] == answers[1] != answers[2], answers)


def habits():
    """Paths, names and headers that clients of other servers expect."""
    talk = {"messages": CHAT["messages"]}
    with Server([BINARY, *SMALL, "--alias", "my/model,b,c", "--tags", "x,y", "--cors-origins", "localhost"]) as s:
        for path, body, member in (("/responses", {"input": "a", "max_output_tokens": 1}, "output"), ("/messages", CHAT, "content"),
                                   ("/chat/completions", CHAT, "choices"), ("/completions", {"prompt": "a", "n_predict": 1}, "content"),
                                   ("/v1/completions", {"prompt": "a", "max_tokens": 1}, "choices"), ("/messages/count_tokens", talk, "input_tokens")):
            check(member in post(s, path, body), path)
        n = [post(s, path, body)["input_tokens"] for path, body in (("/v1/messages/count_tokens", talk), ("/v1/chat/completions/input_tokens", talk),
             ("/chat/completions/input_tokens", talk), ("/v1/responses/input_tokens", {"input": CHAT["messages"]}), ("/responses/input_tokens", {"input": "Hello!"}))]
        check(len(set(n)) == 1 and n[0] == post(s, "/v1/chat/completions", CHAT)["usage"]["prompt_tokens"], n)
        models = read(s, "/v1/models")
        one = models["data"][0]
        check(models == read(s, "/models") and models["first_id"] == models["last_id"] == one["id"] == one["display_name"] == "my/model" and not models["has_more"], models)
        check(one["aliases"] == ["my/model", "b", "c"] and one["tags"] == ["x", "y"] and one["type"] == "model", one)
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one["created_at"]), one)
        for name in ("my/model", "b", "c"):
            check(read(s, "/v1/models/" + name) == one == read(s, "/models/" + name), name)
        check("this server has my/model" in read(s, "/v1/models/my/model,b", 404)["error"]["message"], "a list is no name")
        ids = [s.post(path, body)[1][header] for path, body, header in (("/v1/messages", CHAT, "request-id"), ("/v1/messages", {}, "request-id"),
               ("/v1/messages/none", {}, "request-id"), ("/v1/chat/completions", CHAT, "x-request-id"), ("/v1/chat/completions", {}, "x-request-id"))]
        check(len(set(ids)) == 5 and all(re.fullmatch("req_[0-9A-Za-z]{24}", x) for x in ids), ids)
        for path, body in (("/v1/messages", {}), ("/v1/messages", b"{"), ("/v1/messages/none", {}), ("/v1/messages/count_tokens", {}),
                           ("/v1/messages", b" " * (17 << 20))):
            _, headers, text = s.post(path, body)
            check(json.loads(text)["request_id"] == headers["request-id"], f"{path}: {headers} {text}")
        talk = [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Tell."}]
        short = post(s, "/v1/responses/compact", {"input": talk, "max_output_tokens": 5})
        check([x.get("role") for x in short["output"]] == ["user", "user", None] and short["object"] == "response.compaction", short)
        check(short["output"][2]["type"] == "compaction" and short["usage"]["output_tokens"] == 5, short)
        check(post(s, "/v1/responses", {"input": short["output"], "max_output_tokens": 2})["output"], "a conversation goes on after its summary")
        seen = post(s, "/v1/chat/completions", dict(CHAT, verbose=True))["__verbose"]["prompt"]
        check(seen.endswith(post(s, "/apply-template", CHAT)["prompt"]) and "__verbose" not in post(s, "/v1/chat/completions", dict(CHAT, verbose=False)), seen)
        _, _, text = s.post("/v1/responses", {"input": "a", "max_output_tokens": 2, "stream": True, "timings_per_token": True})
        events = [json.loads(x[6:]) for x in text.decode().splitlines() if x.startswith("data: {")]
        check("timings" in events[-1] and all("timings" in x for x in events if x["type"].endswith("text.delta")), events)
        version = [int(x) for x in read(s, "/api/version")["version"].split(".")]
        check(version >= [0, 13, 4], f"Codex --oss demands 0.13.4: {version}")
        for method, path in (("POST", "/api/pull"), ("POST", "/api/push"), ("POST", "/api/create"), ("POST", "/api/copy"), ("DELETE", "/api/delete")):
            status, _, body = s.request(method, path, b"{}", {"Content-Type": "application/json"})
            check(status == 501 and "one model" in json.loads(body)["error"], f"{path}: {status} {body}")
        for origin, status in (("http://localhost:3000", 200), ("https://127.0.0.1", 200), ("http://[::1]:5173", 200), ("http://localhost.evil.example", 403),
                               ("http://notlocalhost", 403), ("null", 403), ("http://evil.example", 403)):
            check(s.post("/v1/chat/completions", CHAT, headers={"Origin": origin})[0] == status, origin)
        check(post(s, "/v1/messages", {**CHAT, "thread": {"type": "create"}})["type"] == "message", "a thread")


def progress():
    """return_progress: how much of a prompt has run, from what was there already to all of it, before the first piece."""
    with Server([BINARY, "-c", "2048", "-np", "2", "-t", "1", "-ub", "32", "--max-stall", "1"]) as s:
        long = "Once upon a time there was a dog. " * 20
        bodies = (("/v1/chat/completions", {"messages": [{"role": "user", "content": long}], "max_tokens": 4}),
                  ("/v1/completions", {"prompt": long + "A", "max_tokens": 4}), ("/completion", {"prompt": long + "B", "n_predict": 4}),
                  ("/v1/responses", {"input": long + "C", "max_output_tokens": 4}))
        for path, body in bodies:
            for asks in (True, False):
                status, _, text = s.post(path, dict(body, stream=True, return_progress=asks, timings_per_token=asks, temperature=0, ignore_eos=True))
                lines = [json.loads(x[6:]) for x in text.decode().splitlines() if x.startswith("data: {")]
                told = [x["prompt_progress"] for x in lines if "prompt_progress" in x]
                if not asks:
                    check(not told, f"{path}: {told}")
                    continue
                done = [x["processed"] for x in told]
                check(len(done) > (2 if path == bodies[0][0] else 1) and done == sorted(set(done)) and done[0] == told[0]["cache"] and done[-1] == told[0]["total"] > 100, f"{path}: {told}")
                timed = [x["timings"] for x in lines if "prompt_progress" in x]
                check([x["prompt_n"] + x["cache_n"] for x in timed] == done and all(x["predicted_n"] == 0 for x in timed), timed)
                check(timed[0]["prompt_ms"] == 0 and timed[-1]["prompt_ms"] > 0, timed)
                check(all("time_ms" in x and x["total"] == told[0]["total"] for x in told), told)
                first = next(i for i, x in enumerate(lines) if "prompt_progress" in x)
                check(all("prompt_progress" in x for x in lines[first:first + len(told)]), f"{path}: news after the answer has begun")


def errors():
    """Paths, methods, media types, bodies that are wrong: a status and one sentence, in the form of the path's API."""
    with Server([BINARY, *SMALL]) as s:
        check("did you mean /v1/chat/completions" in post(s, "/v1/chat/completion", {}, 404)["error"]["message"], "near")
        check(isinstance(post(s, "/api/chatt", {}, 404)["error"], str), "Ollama's form")
        check(post(s, "/v1/messages", {}, 400)["type"] == "error", "Anthropic's form")
        check(post(s, "/v1/messages/batches", {}, 404)["type"] == "error", "Anthropic's form of a path that is not known")
        for method, path, words in (("POST", "/slots/0?action=erase", "--slot-save-path"),
                                    ("POST", "/embedding", "--embeddings")):
            status, _, body = s.request(method, path, b'{"input": "a"}' if method == "POST" else None)
            check(status == 501 and words in json.loads(body)["error"]["message"], f"{method} {path}: {status} {body}")
        # llama.cpp's own endpoints have its form
        for method, path, want in (("POST", "/completion", 400), ("POST", "/infill", 400), ("POST", "/embedding", 501), ("POST", "/embeddings", 501),
                                   ("POST", "/tokenize", 400), ("POST", "/detokenize", 400), ("POST", "/apply-template", 400), ("POST", "/rerank", 501),
                                   ("POST", "/v1/rerank", 501), ("GET", "/slots/0", 405), ("POST", "/slots/0?action=save", 501), ("POST", "/slots", 405),
                                   ("POST", "/props", 405), ("POST", "/metrics", 405), ("POST", "/health", 405), ("DELETE", "/lora-adapters", 405),
                                   ("POST", "/lora-adapters", 400), ("POST", "/models/load", 400), ("POST", "/models/unload", 400),
                                   ("GET", "/v1/stream", 400), ("POST", "/v1/streams/lookup", 400)):
            bodies = {"/embedding": b'{"input": "a"}', "/embeddings": b'{"input": "a"}', "/rerank": RERANK, "/v1/rerank": RERANK,
                      "/infill": b'{"input_prefix": "a"}'}
            status, _, body = s.request(method, path, bodies.get(path, b"{}") if method == "POST" else None)
            e = json.loads(body)["error"]
            check(status == want == e["code"] and e["type"].endswith("_error") and e.keys() == {"code", "message", "type"}, f"{method} {path}: {status} {body}")
        for method, path in (("POST", "/v1/embeddings"), ("POST", "/v1/chat/completions"), ("GET", "/v1/models/none"), ("POST", "/v1/nothing")):
            e = json.loads(s.request(method, path, b"{}" if method == "POST" else None)[2])["error"]
            check(e.keys() == {"code", "message", "param", "type"} and not isinstance(e["code"], int), f"OpenAI's form: {path}: {e}")
        status, headers, _ = s.get("/v1/chat/completions")
        check(status == 405 and headers["Allow"] == "POST", "405")
        status, headers, _ = s.post("/v1/models", {})
        check(status == 405 and headers["Allow"] == "GET, HEAD", "405 of GET")
        status, _, body = s.post("/v1/chat/completions", CHAT, headers={"Content-Type": "text/plain"})
        check(status == 415 and b"application/json" in body, "415")
        check(s.post("/v1/chat/completions", CHAT, headers={"Content-Type": "application/json; charset=utf-8"})[0] == 200, "charset")
        form = "application/x-www-form-urlencoded"
        check(s.post("/api/generate", {"prompt": "a", "stream": False, "options": {"num_predict": 1}}, headers={"Content-Type": form})[0] == 200, "curl's default")
        own = {"Origin": f"http://127.0.0.1:{s.port}"}
        check(s.post("/v1/chat/completions", CHAT, headers=own)[0] == 200, "the server's own page")
        check(s.post("/v1/chat/completions", CHAT, headers={"Content-Type": form, **own})[0] == 415, "a form of a page")
        body = json.dumps(CHAT).encode()
        for more, expected in (([], 200), ([f"Origin: http://localhost:{s.port}"], 415)):
            check(raw(s, request("POST", "/v1/chat/completions", body, [f"Host: localhost:{s.port}", *more]))[0] == expected, f"no type {more}")
        for body in (b"", b"{", b"[]", b"nul", b'{"a": 1,}', b"\xff\xfe", b'{"messages": "\xff"}', b"[" * 100000, b'{"a":' * 70 + b"1" + b"}" * 70):
            status, _, answer = s.request("POST", "/v1/chat/completions", body)
            check(status == 400 and json.loads(answer)["error"]["message"], f"{body[:20]}: {status} {answer[:100]}")
        check(s.post("/v1/chat/completions", CHAT, headers={"Origin": "https://evil.example"})[0] == 403, "another site")
        check(json.loads(s.post("/v1/chat/completions", CHAT, headers={"Host": "evil.example"})[2])["error"], "another name")
        status, _, answer = s.request("POST", "/v1/chat/completions", b" " * (17 << 20))
        check(status == 413 and b"at most 16777216 are allowed (--max-body 16, in MiB)" in answer, f"413: {status} {answer[:200]}")
        html = {"Accept": "text/html,*/*"}
        status, headers, page = s.get("/", headers=html)
        check(status == 200 and b"<html" in page and "script-src 'self'" in headers["Content-Security-Policy"], "the page")
        check(s.get("/", headers={"If-None-Match": headers["ETag"], **html})[0] == 304, "the page has not changed")
        status, headers, text = s.get("/licences.txt", headers={"Accept-Encoding": "br, gzip"})
        check(status == 200 and headers["Content-Type"].startswith("text/plain"), f"licences: {status} {headers}")
        if headers.get("Content-Encoding") == "gzip":
            text = gzip.decompress(text)
            status, _, line = s.get("/licences.txt", headers={"Accept-Encoding": "identity"})
            check(status == 406 and b"gzip" in line, f"gzip is refused: {status} {line}")
        version = subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout.splitlines()
        names = version[1].removeprefix("the page contains ")
        check(len(version) == 2 and text.startswith(b"The page of this llm-server contains: " + names.encode()), f"licences: {version} {text[:80]}")
        check(all(f"==== {name}\n".encode() in text for name in names.split(", ") if name[-1].isdigit()), "each licence")
        status, _, line = s.get("/")
        check(status == 200 and b"Ollama is running" in line and line.startswith(b"llm-server "), f"for Ollama's clients: {line}")
        check(s.request("HEAD", "/")[0] == 200 == s.request("HEAD", "/", headers=html)[0], "HEAD")
        for path in ("/../etc/passwd", "/%2e%2e/etc/passwd", "/page.js/..", "//"):
            check(s.get(path)[0] in (404, 200) and b"root:" not in s.get(path)[2], path)
    with Server([BINARY, *SMALL, "--no-webui", "--no-slots", "--chat-template", "{% for m in messages %}<{{ m.content }}>{% endfor %}"]) as s:
        check(s.get("/", headers=html)[0] == 404 and s.get("/")[0] == 200, "no page")
        check("--no-slots" in read(s, "/slots", 501)["error"]["message"], "no slots")
        prompt = json.loads(s.post("/apply-template", {"messages": [{"role": "user", "content": "Hi"}]})[2])["prompt"]
        check(prompt.endswith("<Hi>"), f"a template that is given as a text: {prompt}")


def shift():
    """--context-shift: an answer that the context does not hold is llm-cli's; grammars are not cut off."""
    more = ["-m", "builtin:stories", "-c", "24", "-t", "1"]
    body = {"prompt": "Once upon a time", "n_predict": 60, "temperature": 0, "ignore_eos": True}
    cli = os.path.join(os.path.dirname(BINARY), "llm-cli")
    r = subprocess.run([cli, *more, "-p", body["prompt"], "-n", "60", "--temp", "0", "--ignore-eos", "--context-shift", "--keep", "5", "-q"],
                       capture_output=True, text=True, stdin=subprocess.DEVNULL)
    with Server([BINARY, *more, "-np", "2", "--context-shift", "--keep", "2"]) as s:
        x = json.loads(s.post("/completion", dict(body, n_keep=4))[2])  # and the begin token
        check(body["prompt"] + x["content"] == r.stdout.rstrip("\n"), f"{x['content']} not {r.stdout}")
        check(x["truncated"] and x["tokens_predicted"] == 60 and x["stop_type"] == "limit" and x["generation_settings"]["n_keep"] == 4, x)
        check(json.loads(s.post("/completion", dict(body, n_predict=8))[2])["generation_settings"]["n_keep"] == 2, "the server's default")
        check(not json.loads(s.post("/completion", dict(body, n_predict=8))[2])["truncated"], "it fits")
        check(json.loads(s.post("/completion", dict(body, n_predict=-1))[2])["tokens_predicted"] == 24, "no answer goes on for ever")
        x = json.loads(s.post("/completion", dict(body, grammar='root ::= "a"{40} "."', ignore_eos=False))[2])
        check(x["content"] == "a" * 40 + "." and x["stop_type"] == "eos", x)
        check(s.post("/completion", dict(body, prompt="word " * 60))[0] == 400, "a prompt has to fit")
        check(s.post("/completion", dict(body, n_keep=-2))[0] == 400, "n_keep")
    with Server([BINARY, *more]) as s:
        x = json.loads(s.post("/completion", body)[2])
        check(x["truncated"] and x["tokens_predicted"] == 24 - 5 + 1, x)
    fails(2, "--keep needs --context-shift", "--keep", "3")


def greedy():
    """A temperature below 0 is 0, for flags and requests, as in llama.cpp."""
    cli, more = os.path.join(os.path.dirname(BINARY), "llm-cli"), ["-m", "builtin:stories", "-c", "128", "-t", "1"]
    texts = []
    for temp in ("0", "-1", "-0.5"):
        r = subprocess.run([cli, *more, "-p", "Once", "-n", "12", "--temp", temp, "-q", "--no-display-prompt"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        check(r.returncode == 0, r)
        texts.append(r.stdout.strip("\n"))
        with Server([BINARY, *more, "--temp", temp]) as s:
            for body in ({}, {"temperature": float(temp)}):
                texts.append(post(s, "/completion", {"prompt": "Once", "n_predict": 12, **body})["content"])
    check(len(set(texts)) == 1 and texts[0], texts)


def keys():
    """--api-key and --api-key-file."""
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as f:
        f.write("# keys\n  one  \r\n\ntwo two\n")
        f.flush()
        with Server([BINARY, *SMALL, "--api-key", "three", "--api-key-file", f.name]) as s:
            for header in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "}, {"Authorization": "Bearer on"}, {"Authorization": "Bearer onee"},
                           {"Authorization": "Basic one"}, {"x-api-key": "four"}, {"Authorization": "Bearer # keys"}):
                status, headers, body = s.post("/v1/chat/completions", CHAT, headers=header)
                check(status == 401 and headers["WWW-Authenticate"] == "Bearer" and json.loads(body)["error"], f"{header}: {status}")
                check(s.get("/props", headers=header)[0] == 401 and s.get("/nothing", headers=header)[0] == 401, f"{header}")
            for path, words in (("/v1/messages", 'send it as "x-api-key: KEY" or "Authorization: Bearer KEY"'),
                                ("/v1/chat/completions", 'send it as "Authorization: Bearer KEY"')):
                check(post(s, path, CHAT, 401)["error"]["message"].endswith(words), path)
            for header in ({"Authorization": "Bearer one"}, {"authorization": "bearer two two"}, {"x-api-key": "three"}):
                check(s.post("/v1/chat/completions", CHAT, headers=header)[0] == 200, f"{header}")
            check(s.get("/health")[0] == 200 and s.get("/")[0] == 200, "what needs no key")
            check(not any("one" in line or "three" in line for line in s.lines), "keys are not printed")


def loading():
    """The log of requests; and a server that is stopped at every moment of its start ends, without a crash."""
    with tempfile.TemporaryDirectory() as folder:
        log = folder + "/log"
        with Server([BINARY, *SMALL, "--log-file", log]) as s:
            for _ in range(3):
                s.get("/health")
            check(s.stop() == 0, "stopped")  # a request's line follows its answer: a killed server may not have written it
        with open(log) as f:
            lines = f.read().splitlines()
        check(len(lines) >= 4 and all(re.search(r"Z 127\.0\.0\.1 GET /health (200|503) \d+ bytes", x) for x in lines), lines)
    # started and stopped at once, at every moment of loading
    for i in range(12):
        p = subprocess.Popen([BINARY, *SMALL, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.004 * i)
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=PATIENCE)
        check(p.returncode in (0, -signal.SIGTERM), f"{i}: {p.returncode} {err}")  # the signal: before main knew it


def stream(s, body, path="/v1/chat/completions"):
    c = socket.create_connection(("127.0.0.1", s.port))
    c.settimeout(PATIENCE)
    c.sendall(request("POST", path, json.dumps(dict(body, stream=True)).encode(), ["Content-Type: application/json"]))
    return c, c.makefile("rb")


def left():
    """A client that leaves in the middle of a stream is logged as one that has left, and the others are not."""
    with tempfile.TemporaryDirectory() as folder:
        log = folder + "/log"
        with Server([BINARY, "-c", "100000", "-np", "2", "-t", "1", "--log-file", log]) as s:
            c, f = stream(s, dict(CHAT, max_tokens=3))
            check(any(line == b"0\r\n" for line in iter(f.readline, b"")), "a whole answer")
            c, f = stream(s, dict(CHAT, max_tokens=100000, ignore_eos=True))
            check(f.readline().startswith(b"HTTP/1.1 200"), "begun")
            f.close()
            c.close()
            until = time.monotonic() + PATIENCE
            while len(open(log, encoding="utf-8").read().splitlines()) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            check(s.stop() == 0, "exit code")
        lines = [x for x in open(log, encoding="utf-8").read().splitlines() if "/v1/chat/completions" in x]
        check([re.search(r" (\d+) \d+ bytes", x)[1] for x in lines] == ["200", "499"], lines)


def signals():
    """SIGTERM: short answers are completed, long ones end with an error event; exit code 0. Twice: at once."""
    long = dict(CHAT, max_tokens=100000, ignore_eos=True)
    with Server([BINARY, "-c", "100000", "-np", "2", "-t", "1", "--grace", "60"]) as s:
        c, f = stream(s, dict(CHAT, max_tokens=200, ignore_eos=True))
        check(f.readline().startswith(b"HTTP/1.1 200"), "begun")
        s.process.send_signal(signal.SIGTERM)
        rest = f.read()
        check(b"[DONE]" in rest and b'"finish_reason":"length"' in rest, rest[-300:])
        check(s.process.wait(PATIENCE) == 0, "exit code")
    for number in (signal.SIGTERM, signal.SIGINT):
        with Server([BINARY, "-c", "100000", "-np", "2", "-t", "1", "--grace", "0", "-l", "2051-inf"]) as s:
            anthropic = number == signal.SIGINT
            c, f = stream(s, long, "/v1/messages" if anthropic else "/v1/chat/completions")
            check(f.readline().startswith(b"HTTP/1.1 200"), "begun")
            s.process.send_signal(number)
            rest = f.read()
            ids = re.findall(rb'req_[0-9A-Za-z]{24}(?=\r\n|"})', rest)
            check(len(ids) == 1 + anthropic and len(set(ids)) == 1, f"the id in the header, and in Anthropic's event: {rest[:500]} {rest[-300:]}")
            check(b'"error"' in rest and b"[DONE]" not in rest, rest[-300:])
            check(rest.endswith(b"0\r\n\r\n"), "the stream is ended properly")
            check(s.process.wait(PATIENCE) == 0, "exit code")
    with Server([BINARY, "-c", "100000", "-np", "2", "-t", "1", "--grace", "1000"]) as s:
        c, f = stream(s, long)
        check(f.readline().startswith(b"HTTP/1.1 200"), "begun")
        s.process.send_signal(signal.SIGTERM)
        try:
            while True:  # until new connections are refused
                socket.create_connection(("127.0.0.1", s.port)).close()
                time.sleep(0.01)
        except OSError:
            pass
        check(s.process.poll() is None, "the answer has its time")
        s.process.send_signal(signal.SIGTERM)
        check(s.process.wait(PATIENCE) == -signal.SIGTERM, "the second signal")


def unix():
    """Over a Unix socket, and behind one connection many requests."""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/llm"
        p = subprocess.Popen([BINARY, *SMALL, "--host", path], stderr=subprocess.PIPE, text=True)
        check(f"unix:{path}" in p.stderr.readline(), "the start line")
        with socket.socket(socket.AF_UNIX) as c:
            c.settimeout(PATIENCE)
            c.connect(path)
            f = c.makefile("rb")
            answers = set()
            for _ in range(5):
                c.sendall(request("POST", "/v1/chat/completions", json.dumps(CHAT).encode(), ["Content-Type: application/json"]))
                status, _, body = read_reply(f)
                answers.add(json.loads(body)["choices"][0]["message"]["content"])
                check(status == 200, body)
            check(len(answers) == 1, answers)
        p.send_signal(signal.SIGTERM)
        check(p.wait(PATIENCE) == 0 and not os.path.exists(path), "removed")
        p.stderr.close()


def opens():
    """--open shows the page to the user's browser, once; a system without one is told."""
    with tempfile.TemporaryDirectory() as folder:
        browser, shown = folder + "/xdg-open", folder + "/shown"
        with open(browser, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\necho "$1" >>"{shown}"\n')
        os.chmod(browser, 0o755)
        for host, args in (("127.0.0.1", ["--open"]), ("0.0.0.0", ["--open", "--host", "0.0.0.0"]), ("", [])):
            with Server([BINARY, *SMALL, *args], env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")) as s:
                post(s, "/v1/chat/completions", CHAT)
                until = time.monotonic() + (PATIENCE if host else 0.3)
                while not os.path.exists(shown) and time.monotonic() < until:
                    time.sleep(0.01)
                time.sleep(0.1)
                lines = open(shown, encoding="utf-8").read() if os.path.exists(shown) else ""
                check(lines == (f"http://127.0.0.1:{s.port}/\n" if host else ""), f"{args}: {lines!r}")
            if host:
                os.remove(shown)
        with open(browser, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexit 3\n")  # as without a display
        with Server([BINARY, *SMALL, "--open"], env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")) as s:
            post(s, "/v1/chat/completions", CHAT)
            s.stop()
            check(any("no browser" in line and f":{s.port}/" in line for line in s.lines), s.lines)
        os.remove(browser)
        os.symlink(shutil.which("sh"), folder + "/sh")
        with Server([BINARY, *SMALL, "--open"], env=dict(os.environ, PATH=folder)) as s:
            post(s, "/v1/chat/completions", CHAT)
            s.stop()
            check(any("no browser" in line and f":{s.port}/" in line for line in s.lines), s.lines)


def descriptors():
    """Few descriptors: idle connections keep nobody out; with none for connections the server says so."""
    def limited(n):
        return ["sh", "-c", f'ulimit -n {n}; exec "$@"', "sh", BINARY, *SMALL]
    with Server(limited(64)) as s:
        check(any("ulimit -n" in line and "64" in line for line in s.lines), f"the number is said: {s.lines}")
        idle = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(100)]
        for i in range(20):
            post(s, "/v1/chat/completions", CHAT)
        for c in idle:
            c.close()
        post(s, "/v1/chat/completions", CHAT)
        check(s.stop() == 0, "exit code")
    r = subprocess.run([*limited(20), "--port", "0"], capture_output=True, text=True, timeout=PATIENCE)
    check(r.returncode == 1 and "ulimit -n" in r.stderr, f"{r}")


def memory():
    """--request-memory: who does not fit is refused with numbers, and when all is over nothing is held."""
    def held(s):
        text = s.get("/metrics")[2].decode()
        return {use: int(n) for use, n in re.findall(r'llm_request_memory_bytes{use="(\w+)"} (\d+)', text)}

    def calm(s):
        """Waits until nothing is held; the last reply is, until the server has seen that it was read."""
        end = time.monotonic() + PATIENCE
        while any(held(s)[use] > 0 for use in ("bodies", "requests", "answers")):
            check(time.monotonic() < end, f"{held(s)}")
            time.sleep(0.05)

    with Server([BINARY, *SMALL, "--request-memory", "64", "--timeout", "1000"]) as s:
        most = s.get("/metrics")[2].decode()
        check("llm_request_memory_limit_bytes 67108864" in most, most[-500:])
        calm(s)
        check(held(s)["connections"] > 0, f"{held(s)}")
        many = {"prompt": ["Once"] * 4, "n": 128, "max_tokens": 100, "n_probs": 128, "ignore_eos": True, "temperature": 1}
        text = post(s, "/v1/completions", many, status=400)["error"]["message"]
        check("512 answers" in text and "129 log-probabilities" in text and "8 MiB" in text, text)
        # the same without a limit of tokens: it grows until it is too long
        many["max_tokens"] = -1
        text = post(s, "/v1/completions", many, status=400)["error"]["message"]
        check("8 MiB" in text and "--request-memory" in text, text)
        check(len(post(s, "/v1/completions", dict(many, n=1, max_tokens=5))["choices"]) == 4, "what fits is answered")
        status, headers, body = s.post("/completion", b'{"prompt": "' + b"a" * (9 << 20) + b'"}')
        check(status == 413 and b"--request-memory" in body, f"a body that never fits: {status} {body[:300]}")
        status, headers, body = s.post("/tokenize", b'{"content": "' + b"a " * 500000 + b'"}')
        check(status == 413 and b"MiB" in body, f"a text that would take too much: {status} {body[:300]}")
        check(s.post("/tokenize", b'{"content": "' + b"a " * 100000 + b'"}')[0] == 200, "a text that fits")
        stuck = []
        for i in range(12):  # bodies of 1 MB that stop
            c = socket.create_connection(("127.0.0.1", s.port))
            c.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n" + b" " * 900000)
            stuck.append(c)
        check(post(s, "/v1/chat/completions", CHAT), "others are answered")
        check(held(s)["bodies"] <= 8 << 20, f"{held(s)}")
        for c in stuck:
            c.close()
        calm(s)
        # clients that send and leave at once: the server notices before it has read all
        for n in (300000, 2000000, 1200000, 40000) * 3:
            for i in range(3):
                with socket.create_connection(("127.0.0.1", s.port)) as c:
                    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", i == 2, 0))
                    c.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2100000\r\n\r\n" + b" " * n)
            calm(s)
        check(s.stop() == 0, "exit code")


def leaks():
    """Descriptors and memory after many requests of all kinds."""
    # the sanitizer keeps what was freed for a while; it reports what was not freed at the end
    env = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
    with Server([BINARY, *SMALL], env=env) as s:
        def round_of_requests():
            for path in ("/health", "/props", "/slots", "/metrics", "/v1/models", "/api/tags", "/nothing", "/"):
                s.get(path)
            for path, body in (("/v1/chat/completions", CHAT), ("/tokenize", {"content": "Hello"}), ("/detokenize", {"tokens": [5]}),
                               ("/apply-template", CHAT), ("/api/show", {"model": "chat"}), ("/v1/chat/completions", {"x": 1}), ("/completion", {"prompt": "a", "n_predict": 2})):
                s.post(path, body)
        for _ in range(20):
            round_of_requests()
        files, memory = s.files(), s.memory()
        for _ in range(100):
            round_of_requests()
        for _ in range(300):  # the last connections are closed a moment after their clients have gone
            if s.files() <= files:
                break
            time.sleep(0.1)
        check(s.files() <= files, f"{s.files()} descriptors, {files} before")
        check(s.memory() < memory + (16 << 20), f"{s.memory()} bytes, {memory} before")
        check(s.stop() == 0, "exit code")


def cut():
    """Connections that clients cut in the body of a request, or in a stream, are closed; no answer runs on."""
    body = dict(CHAT, max_tokens=500, ignore_eos=True, stream=True)

    async def one(port, at):
        try:
            await exchange(port, "POST", "/v1/chat/completions", body, cut=at)
        except Gone:
            pass

    async def many(port):
        await asyncio.gather(*[one(port, -200 if i % 2 else 300 + i) for i in range(100)])

    with Server([BINARY, "-c", "8192", "-np", "8", "-t", "1", "--timeout", "1000"]) as s:
        files, end = s.files(), time.monotonic() + PATIENCE
        for _ in range(5):
            asyncio.run(many(s.port))
        while s.files() > files or any(x["is_processing"] for x in read(s, "/slots")):
            check(time.monotonic() < end, f"{s.files()} descriptors, {files} before; {read(s, '/slots')}")
            time.sleep(0.05)
        check(s.stop() == 0, "exit code")


def draft():
    """A draft model is loaded once for all sequences, and changes no answer."""
    model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/builtin/stories-chat.gguf")
    asks = [dict(CHAT, seed=i, temperature=i % 2, max_tokens=20) for i in range(6)]
    with Server([BINARY, *SMALL]) as s:
        plain = [post(s, "/v1/chat/completions", body)["choices"] for body in asks]
    mapped = []
    for n in ("1", "6"):
        with Server([BINARY, "-m", model, "-c", "512", "-np", n, "-t", "1", "--draft", model]) as s:
            async def all_at_once():
                return await asyncio.gather(*(exchange(s.port, "POST", "/v1/chat/completions", body) for body in asks))

            for body, want, (status, _, answer) in zip(asks, plain, asyncio.run(all_at_once())):
                check(status == 200 and json.loads(answer)["choices"] == want, f"{body}: {answer} in place of {want}")
            guessed = re.search(r"^llm_tokens_guessed_total (\d+)$", s.get("/metrics")[2].decode(), re.M)
            check(int(guessed.group(1)) >= 0 and read(s, "/props")["default_generation_settings"]["speculative"], "speculative")
            with open(f"/proc/{s.process.pid}/maps", encoding="utf-8") as f:
                mapped.append(sum("stories-chat.gguf" in line for line in f))
    check(0 < mapped[0] == mapped[1], f"the file is mapped {mapped} times with 1 and 6 sequences")


def with_pooling(folder, value):
    """The path of a copy of a model whose key pooling_type has this value."""
    model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/builtin/stories-chat.gguf")
    with open(model, "rb") as f:
        data = f.read()
    arch = re.search(rb"general\.architecture\x08\0\0\0(.{8})(\w+)", data, re.S)
    arch = arch[2][:int.from_bytes(arch[1], "little")]
    text = lambda s: struct.pack("<Q", len(s)) + s
    keys = text(arch + b".pooling_type") + struct.pack("<II", 4, value) + text(b"general.x") + struct.pack("<I", 8)
    keys += text(b" " * (-(len(keys) + 8) % 32))  # the tensors stay aligned
    path = os.path.join(folder, f"pooling-{value}.gguf")
    with open(path, "wb") as f:
        f.write(data[:16] + struct.pack("<Q", struct.unpack("<Q", data[16:24])[0] + 2) + keys + data[24:])
    return path


def poolings():
    """pooling_type decides; a value that names no pooling of tokens is refused by name, unless --pooling chooses."""
    body = {"input": ["the cat sat on the mat"], "model": "m"}
    with tempfile.TemporaryDirectory() as folder:
        for value, words in ((0, "pooling_type is 0 (none"), (4, "pooling_type is 4 (rank"), (7, "pooling_type is 7 (")):
            fails(1, words, "-m", with_pooling(folder, value), "--embeddings", "--port", "0")
        seen = {}
        for value, more in ((1, []), (2, []), (3, []), (4, ["--pooling", "last"]), (7, ["--pooling", "mean"])):
            with Server([BINARY, "-m", with_pooling(folder, value), "-c", "256", "-t", "1", "--embeddings", *more]) as s:
                seen[value] = post(s, "/v1/embeddings", body)["data"][0]["embedding"]
        check(seen[4] == seen[3] and seen[7] == seen[1], "another pooling than --pooling says")
        check(seen[1] != seen[2] and seen[2] != seen[3] and seen[1] != seen[3], "pooling_type has no effect")
        with Server([BINARY, "-m", with_pooling(folder, 4), "-c", "256", "-t", "1"]) as s:
            check("--embeddings" in json.dumps(post(s, "/v1/embeddings", body, 501)), "without --embeddings")
            for path, body in (("/v1/rerank", {"query": "a", "documents": ["b"]}), ("/rerank", {"query": "a", "texts": ["b"]})):
                check("--reranking" in json.dumps(post(s, path, body, 501)), "a model that writes")


def embeddings():
    """Vectors in all APIs, beside chats; the same words without --embeddings."""
    texts = ["the cat sat on the mat", "a cat", "the cat sat on the mat"]
    post_json = {"input": texts, "model": "m"}

    def vectors(s, body):
        answer = post(s, "/v1/embeddings", body)
        check([x["index"] for x in answer["data"]] == list(range(len(answer["data"]))), "index")
        return [x["embedding"] for x in answer["data"]], answer["usage"]

    poolings()
    fails(2, "cannot be used together", "--reranking", "--pooling", "mean")
    fails(1, "no reranker", "--pooling", "rank", "--port", "0")
    with Server([BINARY, *SMALL, "--pooling", "last"]) as s: # --embeddings is meant
        check(len(post(s, "/v1/embeddings", {"input": "a"})["data"][0]["embedding"]) == 128, "--pooling alone")
    with Server([BINARY, *SMALL]) as s:
        for path, body in (("/v1/embeddings", post_json), ("/embeddings", post_json), ("/api/embed", {"input": "a"}), ("/api/embeddings", {"prompt": "a"}),
                           ("/v1/embeddings", dict(post_json, dimensions=3))):
            check("--embeddings" in json.dumps(post(s, path, body, 501)), path)
        plain = post(s, "/v1/chat/completions", CHAT)["choices"]
        check("embedding" not in read_capabilities(s), "capabilities")
    seen = []
    for pooling in ("mean", "last", "cls"):
        with Server([BINARY, *SMALL, "--embeddings", "--pooling", pooling]) as s:
            got, usage = vectors(s, post_json)
            seen.append(got)
            check(got[0] == got[2] and len(got[0]) == 128, pooling)
            check((got[0] == got[1]) == (pooling == "cls"), f"{pooling}: the first token is the same in all texts")
            check(all(abs(sum(x * x for x in v) - 1) < 1e-5 for v in got), f"{pooling}: length")
            check(vectors(s, dict(post_json, input=texts[1]))[0] == [got[1]], f"{pooling}: alone")
            n = [len(post(s, "/tokenize", {"content": t, "add_special": True})["tokens"]) for t in texts]
            check(usage == {"prompt_tokens": sum(n), "total_tokens": sum(n)}, f"{usage}, {n}")
            coded = vectors(s, dict(post_json, encoding_format="base64"))[0]
            check([list(struct.unpack("<128f", base64.b64decode(x))) for x in coded] == [as_floats(v) for v in got], "base64")
            check(post(s, "/api/embed", {"input": texts})["embeddings"] == got, "/api/embed")
            check(post(s, "/embedding", {"content": texts}) == [{"index": i, "embedding": [v]} for i, v in enumerate(got)], "/embedding")
            check(post(s, "/embeddings", post_json)["data"][1]["embedding"] == got[1], "/embeddings")
            objects = [{"prompt_string": texts[0]}, {"content": [{"type": "text", "text": texts[1][:5]}, {"type": "text", "text": texts[1][5:]}]}]
            check(vectors(s, dict(post_json, input=objects))[0] == got[:2], "objects")
            check(post(s, "/embeddings", {"content": objects}) == [{"index": i, "embedding": [v]} for i, v in enumerate(got[:2])], "llama.cpp's field")
            for wrong in ({"content": "a"}, {"content": [{"type": "x"}]}, {"prompt_string": "a", "content": []}, {}, [3.5], {"prompt_string": 3}):
                check("input" in post(s, "/v1/embeddings", dict(post_json, input=wrong), 400)["error"]["message"], wrong)
            check("embd_normalize" in post(s, "/embedding", {"content": "a", "embd_normalize": 0}, 400)["error"]["message"], "embd_normalize")
            plain_length = post(s, "/embedding", {"content": texts[1], "embd_normalize": -1})[0]["embedding"][0]
            check(near(unit(plain_length), got[1]) and not near(plain_length, got[1]), "as it is")
            cut = vectors(s, dict(post_json, dimensions=3))[0]
            check(all(len(a) == 3 and near(a, unit(b[:3])) for a, b in zip(cut, got)), "dimensions")
            check(post(s, "/api/embeddings", {"prompt": texts[1]})["embedding"] == got[1], "/api/embeddings")
            post(s, "/v1/embeddings", dict(post_json, dimensions=129), 400)
            check(post(s, "/v1/embeddings", dict(post_json, input=["a " * 600]), 400)["error"], "too long")
            check(post(s, "/v1/chat/completions", CHAT)["choices"] == plain, f"{pooling}: other words")
            check("embedding" in read_capabilities(s), "capabilities")
    check(seen[0][1] != seen[1][1], "pooling has no effect")
    each_token(texts, seen)
    with Server([BINARY, *SMALL, "--embeddings"]) as s: # its model says nothing of a pooling
        check(vectors(s, post_json)[0] == seen[0], "default")


def each_token(texts, pooled):
    """--pooling none: a vector for each token, as it is. The others follow from these."""
    with Server([BINARY, *SMALL, "--embeddings", "--pooling", "none"]) as s:
        answer = post(s, "/embedding", {"input": texts})
        check([x["index"] for x in answer] == [0, 1, 2] and answer == post(s, "/embeddings", {"input": texts}), "index")
        n = [len(post(s, "/tokenize", {"content": t, "add_special": True})["tokens"]) for t in texts]
        check([len(x["embedding"]) for x in answer] == n and all(len(v) == 128 for x in answer for v in x["embedding"]), n)
        check(answer[0]["embedding"] == answer[2]["embedding"] == post(s, "/embedding", {"content": texts[0]})[0]["embedding"], "alone")
        length = lambda v: sum(x * x for x in v) ** 0.5
        for k, v in enumerate(answer):
            rows = v["embedding"]
            for i, whole in enumerate(([sum(x) for x in zip(*rows)], rows[-1], rows[0])):
                check(all(abs(a / length(whole) - b) < 1e-5 for a, b in zip(whole, pooled[i][k])), f"text {k}, pooling {i}")
        check(all(abs(length(v) - 1) > 1e-3 for v in answer[0]["embedding"]), "they are not normalized")
        for path, body in (("/v1/embeddings", {"input": "a"}), ("/api/embed", {"input": "a"}), ("/api/embeddings", {"prompt": "a"})):
            check("--pooling none" in json.dumps(post(s, path, body, 400)), path)
        check("encoding_format" in post(s, "/embedding", {"input": "a", "encoding_format": "base64"}, 400)["error"]["message"], "base64")
    with Server([BINARY, *SMALL, "--embeddings", "--pooling", "none", "--request-memory", "16"]) as s:
        check("--request-memory" in post(s, "/embedding", {"input": ["a " * 400] * 4}, 400)["error"]["message"], "a large answer")


def read_capabilities(s):
    return post(s, "/api/show", {"model": read(s, "/v1/models")["data"][0]["id"]})["capabilities"]


def unit(v):
    return [x / sum(y * y for y in v) ** 0.5 for x in v]


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-5 for x, y in zip(a, b))


def as_floats(v):
    return list(struct.unpack(f"<{len(v)}f", struct.pack(f"<{len(v)}f", *v)))


if __name__ == "__main__":
    globals()[sys.argv[2]]()
