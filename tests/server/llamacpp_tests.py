#!/usr/bin/env python3
"""Runs the tests of llama.cpp's server, as they are, against llm-server, and prints a table: how many of each file pass.

    llamacpp_tests.py LLM-SERVER LLM-GGUF FOLDER MODEL [-k EXPRESSION] [--show]

FOLDER is tools/server/tests of a checkout of llama.cpp (its chat templates are read from ../../../models/templates), and MODEL is
stories260K as GGUF. Needs pytest and requests. Assertions are not changed. Instead of downloads, all tests get MODEL; those that
need another one are among the features below. Tests marked "slow" are left out. A failure is counted under one of three heads:
"differs" (docs/compatibility.md says why the server answers otherwise), "not here" (a feature, a model or a random generator's
words that this server does not have), and "open": anything else. Exit code 1: a test is open; 77: the folder or a package is absent.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

# Failures that are known: a pattern of "file::test", and a sentence.
DIFFERS = [
    (r"basic::test_server_(props|slots)$", "the context is shared by all slots, not divided; /slots is always there"),
    (r"chat_completion::test_context_size_exceeded", "the context is shared by all slots, not divided: n_ctx is all of it"),
    (r"basic::test_no_ui", "/ answers Ollama's line where no page is asked for by a browser"),
    (r"basic::test_server_model_aliases_and_tags", "the first alias is the name, not the first in the alphabet"),
    (r"security::test_access_public_endpoint\[/models", "/models needs the key"),
    (r"security::test_access_static_assets", "the page is one file; other names of llama.cpp's page do not exist"),
    (r"security::test_cors_options", "pages of other sites get 403, unless --cors names them"),
    (r"ctx_shift::", "a full context ends the answer; the context is shared by all slots"),
    (r"compat_anthropic::test_anthropic_(missing_messages|empty_messages|streaming_content_block|.*image|vision_format)", "400, as Anthropic"),
    (r"compat_oai_responses::test_responses_stream_with_llama", "a stream that the limit cuts off ends with response.incomplete, as OpenAI's"),
    (r"template::test_date_inside_prompt\[.*Llama-3\.3", "the template's own default date, as in transformers"),
    (r"chat_completion::test_(logprobs_stream|chat_completion_stream|chat_completion_with_timings)", 'a stream begins with "", as OpenAI\'s does'),
    (r"tool_call::test_completion_without_tool_call_fast\[.*STREAMED", 'a stream begins with "", as OpenAI\'s does'),
    (r"chat_completion::test_chat_template(_assistant_prefill|_continue_final_message_vllm|$)", "-v logs; it adds no prompt to answers (verbose does)"),
    (r"chat_completion::test_invalid_chat_completion_req\[messages7", "two last messages of the assistant are taken as they are"),
    (r"chat_completion::test_chat_completion\[.*This is not a chat template", "--chat-template is a name or a file, not a text"),
    (r"^completion::test_completion_response_fields", "the prompt comes back as it was sent, without <s>"),
    (r"slot_save::test_slot_save_restore", "common beginnings are found in all slots"),
    (r"slot_save::test_slot_restore_", "llama.cpp's own form of files, and words of its messages"),
    (r"infill::test_infill_with_input_extra", "<s> comes before other files, not after them"),
]
NOT_HERE = [
    (r"slot_save::.*multimodal|slot_save::.*image|slot_save::.*mm_", "images"),
    (r"^(speculative|lora|rerank|sleep|compat_gcp|proxy|stream|router|tools_builtin|mcp_servers|vision_api)::",
     "the feature, or a model to download"),
    (r"basic::test_load_split_model", "a download"),
    (r"compat_anthropic::test_anthropic_vision_base64", "a download"),
    (r"security::test_(local_media|cors_proxy|cors_origins)", "media files, a proxy, or a server without a model"),
    (r"^completion::test_completion(_stream)?(_with_openai_library)?(\[|$)", "words of another random generator"),
    (r"chat_completion::test_chat_completion(\[|_with_openai_library)", "words of another random generator"),
    (r"embedding::test_embedding_usage", "the tokens of a model to download"),
    (r"kv_keep_only_active::", "words of llama.cpp's log"),
    (r"ignore_eos::", "words of llama.cpp's log"),
    (r"compat_oai_responses::test_responses_(with|stream_with)_openai_library", "words of another random generator"),
]

WRAPPER = '''#!{python}
import os, sys
args, out, i = sys.argv[1:], [], 0
has_template = any(a.startswith("--chat-template") for a in args)
while i < len(args):
    a = args[i]
    if a in ("--hf-repo", "--hf-file"):
        if a == "--hf-repo":
            out += ["-m", {infill!r} if "infill" in args[i + 1] else {model!r}]
        i += 2
        continue
    if a not in ("--offline", "--no-slots", "--no-jinja"):
        out.append(a)
    i += 1
if not has_template:
    out += ["--chat-template", "chatml"]
os.execv({server!r}, [{server!r}] + out)
'''

OPENAI = '''
import json
import requests


class Thing:
    """A JSON value whose members are attributes; None where there is no such member."""

    def __init__(self, members):
        self.members = members

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "output_text" and name not in self.members:
            return "".join(c["text"] for o in self.members["output"] for c in o.get("content", []))
        return wrap(self.members.get(name))


def wrap(value):
    if isinstance(value, dict):
        return Thing(value)
    return [wrap(v) for v in value] if isinstance(value, list) else value


class Resource:
    def __init__(self, client, path):
        self.client, self.path = client, path

    def create(self, **body):
        extra = body.pop("extra_body", {})
        r = requests.post(self.client.url + self.path, json={**body, **extra}, stream=body.get("stream", False),
                          headers={"Authorization": "Bearer " + self.client.key})
        r.raise_for_status()
        return self.events(r) if body.get("stream") else wrap(r.json())

    def events(self, reply):
        for line in reply.iter_lines():
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                yield wrap(json.loads(line[6:]))


class OpenAI:
    def __init__(self, api_key, base_url):
        self.key, self.url = api_key, base_url
        self.chat = type("Chat", (), {"completions": Resource(self, "/chat/completions")})
        self.completions, self.embeddings, self.responses = (Resource(self, "/" + p) for p in ("completions", "embeddings", "responses"))
'''


def write(path, text, mode=0o644):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def prepare(folder, options):
    """Writes what the tests find in place of the server and of packages that may be absent."""
    infill = os.path.join(folder, "infill.gguf")
    marks = [f"tokenizer.ggml.fim_{n}_token_id=u32:{i}" for n, i in (("pre", 509), ("suf", 510), ("mid", 511))]
    subprocess.run([options.gguf, "set", options.model, *marks, "-o", infill], check=True, stdout=subprocess.DEVNULL)
    write(os.path.join(folder, "server"), WRAPPER.format(python=sys.executable, infill=infill, model=os.path.abspath(options.model),
                                                        server=os.path.abspath(options.server)), 0o755)
    for name, text in (("openai", OPENAI), ("wget", "def download(url, out=None):\n    raise OSError('no downloads here')\n")):
        try:
            __import__(name)
        except ImportError:
            write(os.path.join(folder, name + ".py"), text)


def run(folder, options):
    report = os.path.join(folder, "report.xml")
    env = dict(os.environ, LLAMA_SERVER_BIN_PATH=os.path.join(folder, "server"), LLAMA_SERVER_TEST_SKIP_MODEL_PRELOAD="1",
               PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1", PORT=str(options.port))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--junitxml", report, "--tb=short"]
    if options.k:
        command += ["-k", options.k]
    files = options.files or sorted(os.listdir(os.path.join(options.folder, "unit")))
    command += [os.path.join("unit", f) for f in files if f.startswith("test_") and f.endswith(".py")]
    subprocess.run(command, cwd=options.folder, env=env, stdout=subprocess.DEVNULL if not options.verbose else None)
    return xml.etree.ElementTree.parse(report)


def sort(name):
    for head, rows in (("differs", DIFFERS), ("not here", NOT_HERE)):
        for pattern, why in rows:
            if re.search(pattern, name):
                return head, why
    return "open", None


def main():
    a = argparse.ArgumentParser()
    for name in ("server", "gguf", "folder", "model"):
        a.add_argument(name)
    a.add_argument("files", nargs="*", help="only these, such as test_basic.py")
    a.add_argument("-k")
    a.add_argument("--port", type=int, default=18390)
    a.add_argument("--show", action="store_true", help="also why each open test failed, and the reasons of the others")
    a.add_argument("--verbose", action="store_true", help="pytest's own output, too")
    options = a.parse_args()
    try:
        import pytest, requests  # noqa: F401, E401
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    if not os.path.exists(os.path.join(options.folder, "unit")) or not os.path.exists(options.model):
        print("skipped: the tests of llama.cpp's server, or stories260K, are not here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, options)
        report = run(folder, options)
    table = collections.defaultdict(collections.Counter)
    failures = []
    for case in report.iter("testcase"):
        file = case.get("classname").replace("unit.test_", "")
        name = f"{file}::{case.get('name')}"
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        head, why = ("skipped", None) if case.find("skipped") is not None else ("passed", None)
        if failure is not None:
            head, why = sort(name)
            failures.append((head, name, why or failure.get("message", "").splitlines()[0][:200]))
        table[file][head] += 1
    heads = ("passed", "open", "differs", "not here", "skipped")
    print(f"{'file':24}" + "".join(f"{h:>10}" for h in heads))
    for file in sorted(table):
        print(f"{file:24}" + "".join(f"{table[file][h] or '':>10}" for h in heads))
    print(f"{'sum':24}" + "".join(f"{sum(t[h] for t in table.values()):>10}" for h in heads))
    for head, name, why in failures:
        if head == "open" or options.show:
            print(f"{head}: {name}: {why}")
    return 1 if any(head == "open" for head, _, _ in failures) else 0


if __name__ == "__main__":
    sys.exit(main())
