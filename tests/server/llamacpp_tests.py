#!/usr/bin/env python3
"""Runs the tests of llama.cpp's server, as they are, against llm-server, and prints a table: how many of each file pass.

    llamacpp_tests.py BIN FOLDER MODEL [FILE..] [--encoder GGUF] [-k EXPRESSION] [--show]

BIN is the folder of our programs, FOLDER tools/server/tests of a checkout of llama.cpp (its chat templates are read from
../../../models/templates), and MODEL stories260K as GGUF; with names as FILE, such as test_basic.py, only those run. Needs pytest, filelock and
requests. The tests run in a copy, with their assertions unchanged. Instead of downloads they find files in llm-server's cache that are made here: MODEL,
also as a draft model, in three parts, with marks for infill, with an adapter that llm-train makes of it, with an eye of random weights, and
in a file of presets for the tests of the router; an encoder (or the one of --encoder, which should have BERT's words), and a reranker, both of random
weights, the reranker's chosen so that it orders the tests' documents as a trained one does. Their pictures, too, are stand-ins. Where defaults differ, the
server gets llama.cpp's: chatml, --cors '*', and as -c the part of one slot. Tests marked "slow" are left out. A failure is counted under one of three heads: "differs" (docs/server-differences.md says why the server answers otherwise),
"not here" (the words or tokens of another model or random generator), and "open": anything else. Exit code 1: a test is open, or one of those
that are known to fail passes; 77: the folder or a package is absent.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import encoder_file  # noqa: E402
import eye_file  # noqa: E402

# Failures that are known: a pattern of all of "file::test", one of what the failure says, and a sentence. Any other failure is "open".
DIED = "Server process died with return code [12]"
DIFFERS = [
    (r"basic::test_server_slots", r"== 2", "/slots lists all slots of the cache, also those that keep ended sequences"),
    (r"basic::test_no_ui", r"doctype", "/ answers Ollama's line where no page is asked for by a browser"),
    (r"basic::test_server_model_aliases_and_tags", r"== 'code'", "the first alias is the name, not the first in the alphabet"),
    (r"security::test_access_static_assets_without_api_key", r"/sw.js", "the page is one file; other names of llama.cpp's page do not exist"),
    (r"security::test_cors_options\[origin-Access-Control-Allow-Credentials-true\]", r"Allow-Credentials", "cookies are not used"),
    (r"security::test_cors_options\[web.mydomain.fr-Access-Control-Allow-Headers-\*\]", r"'Authorization' == '\*'", "the headers that were asked for"),
    (r"ctx_shift::test_ctx_shift_disabled_short_prompt\[-1-248-True\]", r"249 == 248", "the last token needs no room in the context"),
    (r"compat_anthropic::test_anthropic_empty_messages", r"400 == 200", "400, as Anthropic"),
    (r"compat_anthropic::test_anthropic_vision_format_accepted", r"400 == 500", "an image is status 400"),
    (r"compat_anthropic::test_anthropic_tool_result_with_image", r"200 == 500", "an image of a tool's result becomes a text"),
    (r"compat_oai_responses::test_responses_stream_with_llama_telemetry", r"None is not None",
     "a stream that the limit cuts off ends with response.incomplete, as OpenAI's"),
    (r"template::test_date_inside_prompt\[meta-llama-Llama-3.3-70B-Instruct-.*", r"Expected today's date", "the template's own default date, as in transformers"),
    (r"chat_completion::test_(logprobs_stream|chat_completion_stream\[.*\]|chat_completion_with_timings_per_token)", r"'' is None",
     'a stream begins with "", as OpenAI\'s does'),
    (r"tool_call::test_completion_without_tool_call_fast\[meta-llama-Llama-3.3-70B-Instruct-.*STREAMED\]", r"non empty content",
     'a stream begins with "", as OpenAI\'s does'),
    (r"chat_completion::test_chat_template(_assistant_prefill\[.*\]|_continue_final_message_vllm_compat)?", r"'__verbose' in",
     "-v logs; it adds no prompt to answers (verbose does)"),
    (r"chat_completion::test_invalid_chat_completion_req\[messages7\]", r"200 == 400", "two last messages of the assistant are taken as they are"),
    (r"chat_completion::test_chat_completion\[.*This is not a chat template, it is\]", DIED, "a chat template that is given as a text has {{ or {%"),
    (r"completion::test_completion_response_fields\[.*response_fields1\]", r"'<s> I believ", "the prompt comes back as it was sent, without <s>"),
    (r"slot_save::test_slot_save_restore", r"== 6", "common beginnings are found in all slots"),
    (r"infill::test_infill_with_input_extra", r"False = match_regex", "<s> comes before other files, not after them"),
    (r"ignore_eos::test_ignore_eos_populates_logit_bias", r"0 > 0", "ignore_eos goes on after the end, as vLLM, and biases no token"),
    (r"kv_keep_only_active::test_clear_and_restore", r"__TEST_TAG", "words of llama.cpp's log"),
    (r"speculative::test_with_and_without_draft", r"draft_n", "a draft as large as the model does not pay, so that nothing is guessed"),
    (r"compat_gcp::.*", r"404 == 200", "Vertex AI may send bodies as they are (rawPredict)"),
    (r"tools_builtin::.*", DIED, "the server runs no tools"),
    (r"security::test_cors_origins_defaults_to_localhost_with_tools_enabled", DIED, "the server runs no tools"),
    (r"proxy::test_mcp_no_proxy", r"404 == 403", "the server fetches no pages for clients"),
    (r"(proxy::test_mcp_proxy.*|security::test_cors_proxy_.*)", DIED, "the server fetches no pages for clients"),
    (r"router::test_router_(download|delete)_model", r"405 == 200", "clients do not change what is on the disk"),
    (r"router::test_router_remote_preset", DIED, "presets are local files"),
    (r"vision_api::test_(v1_)?models_supports_multimodal_capability", r"'models'", "the list of models is \"data\", not \"models\""),
    (r"basic::test_server_multiple_addresses", DIED, "one address; 0.0.0.0 and :: are all of them"),
    (r"mcp_servers::.*", DIED, "the server runs no tools"),
    (r"metrics::test_metrics_disabled", r"200 == 501", "/metrics is there without a flag"),
    (r"sleep::test_server_sleep_(read_only_endpoints|metrics_buckets)", r"# HELP|predicted_tokens_seconds", "reading /metrics changes none of them"),
    (r"router::test_router_dedup_cache_models", DIED, "the list has the presets, not all that was downloaded"),
    (r"slot_save::test_slot_restore_legacy_token_list", r"== 84", "saved slots have the form of prompt caches"),
    (r"slot_save::test_slot_restore_media_file_without_mmproj", r"--mmproj", "other words for the same refusal"),
    (r"speculative::test_synth_.*", DIED, "there are no guesses from a file, for tests alone"),
    (r"stream::test_stream_stop_during_model_load", r"0 == 1", "a request that waits for its model ends with its connection"),
    (r"stream::test_stream_resumes_after_reload_during_model_load", r"503", "a stream exists once its answer has begun"),
    (r"security::test_local_media_file\[.*True\]", r"400 == 200", "requests contain their pictures"),
]
NOT_HERE = [
    (r"completion::test_completion(_stream)?\[.*\]", r"False = match_regex", "words of another random generator"),
    (r"completion::test_completion(_stream)?_with_openai_library", r"False = match_regex", "words of another random generator"),
    (r"chat_completion::test_chat_completion\[.*\]", r"Expected .*, got ", "words of another random generator"),
    (r"chat_completion::test_chat_completion_with_openai_library", r"False = match_regex", "words of another random generator"),
    (r"compat_oai_responses::test_responses_with_openai_library", r"False = match_regex", "words of another random generator"),
    (r"basic::test_load_split_model", r"False = match_regex", "words of a model to download"),
    (r"speculative::test_multi_requests_parallel\[.*\]", r"False = match_regex", "words of a model to download"),
    (r"speculative::test_(slot_ctx_not_exceeded|with_ctx_shift)", r"400 == 200", "the tokens of a model to download"),
    (r"lora::test_lora(_per_request|\[0.0-.*\])", r"False", "words of a model to download"),
    (r"rerank::test_rerank_usage\[.*\]", r"== (19|26)", "the tokens of a model to download"),
    (r"router::test_router_queue_client_disconnect_keeps_model", r"DID NOT RAISE", "the text that is to keep a model busy is tokenized too fast for that"),
    (r"slot_save::test_slot_save_restore_image_payload_larger_than_context", r"25 == 8", "the tokens of a model to download"),
    (r"vision_api::test_vision_(chat_)?completion\[.*BASE64.*\]", r"False", "words of a model to download"),
    (r"vision_api::test_vision_chat_completion(\[.*IMG_URL.*\]|_token_count)", r"400 == 200", "a picture to download"),
]

# Files of the cache, in place of downloads: those that are MODEL, and others.
FILES = ["test-model-stories260K/stories260K-f32.gguf", "stories15M_MOE/stories15M_MOE-F16.gguf", "tinygemma3-GGUF/tinygemma3-Q8_0.gguf"]
EYE = "tinygemma3-GGUF/mmproj-tinygemma3-f16.gguf"
ENCODER = "models/bert-bge-small/ggml-model-f16.gguf"
RERANKER = "models/jina-reranker-v1-tiny-en/ggml-model-f16.gguf"
INFILL = "test-model-stories260K-infill/stories260K-infill-f32.gguf"
SPLIT = "models/tinyllamas/split/stories15M-q8_0-00001-of-00003.gguf"
PRESETS = [("ggml-org/tinygemma3-GGUF:Q8_0", FILES[-1]), ("ggml-org/test-model-stories260K:F32", FILES[0]),
           ("ggml-org/test-model-stories260K-infill:F32", INFILL)]

WRAPPER = '''#!{python}
import os, sys
args, out, i = sys.argv[1:], ["--offline"], 0
given = {{a for a in args if a.startswith("-")}}
divides = "--parallel" in given and "--kv-unified" not in given
slots = int(args[args.index("--parallel") + 1]) if divides else 1
while i < len(args):
    name, value = args[i], args[i + 1] if i + 1 < len(args) else None
    i += 1
    if name in ("--no-jinja", "--offline"):
        continue
    if name == "--media-path" or (name.startswith("--spec-draft-n") and "--model-draft" not in given):
        i += 1
        continue
    out.append(name)
    if name == "--ctx-size":
        out.append(str(int(value) // slots))
        i += 1
if "tinygemma3" in " ".join(args) and not given & {{"--no-mmproj", "--mmproj"}}:
    out += ["--mmproj", {eye!r}]
if not any(a.startswith("--chat-template") for a in args):
    out += ["--chat-template", "chatml"]
if "--cors-origins" not in given:
    out += ["--cors", "*"]
if not given & {{"--hf-repo", "--model", "--models-preset"}}:
    out += ["--models", {presets!r}]
os.execv({server!r}, [{server!r}] + out)
'''

WGET = '''
import shutil


def download(url, out=None):
    if not url.endswith(".gguf"):
        raise OSError("no downloads here")
    shutil.copyfile({adapter!r} if "shakespeare" in url else {model!r}, out or url.split("/")[-1])
'''

PICTURES = '''
import requests

get = requests.get


def picture(url, *args, **more):
    """Answers for the pictures that the tests fetch themselves."""
    for name, data in {pictures!r}.items():
        if name in url:
            answer = requests.Response()
            answer.status_code, answer._content = 200, data
            return answer
    return get(url, *args, **more)


requests.get = picture
'''

# What the adapter learns: words that the tests look for.
VERSE = """Look in thy glass, my love, and thy eye is the sun.
Look in thy glass and see the sun in thy eye, my love.
"""

BERT = 32, 64, 2, 512, 4, 0.3   # as encoder_file.SIZE, with a context that has room for the tests' documents

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
    """Copies the tests to where they may write, and puts what they find there in place of the server, models, pictures and packages."""
    tests, model = os.path.join(folder, "tools", "server", "tests"), os.path.abspath(options.model)
    shutil.copytree(options.folder, tests, ignore=shutil.ignore_patterns("tmp", "__pycache__"))
    os.makedirs(os.path.join(tests, "tmp"))
    os.symlink(os.path.abspath(os.path.join(options.folder, "..", "..", "..", "models")), os.path.join(folder, "models"))
    hub, adapter = os.path.join(folder, "cache", "hub", "ggml-org"), os.path.join(folder, "adapter.gguf")
    place = lambda file: os.path.join(hub, file)
    for file in (*FILES, INFILL, SPLIT, ENCODER, RERANKER):
        os.makedirs(os.path.dirname(place(file)), exist_ok=True)
    for file in FILES:
        shutil.copyfile(model, place(file))
    eye_file.llava(place(EYE), 64, side=8)
    if options.encoder:
        shutil.copyfile(options.encoder, place(ENCODER))
    else:
        encoder_file.encoder(place(ENCODER), size=BERT)
    encoder_file.encoder(place(RERANKER), seed=2, labels=[""], size=BERT)
    write(os.path.join(folder, "verse.txt"), VERSE)
    marks = [f"tokenizer.ggml.fim_{n}_token_id=u32:{i}" for n, i in (("pre", 509), ("suf", 510), ("mid", 511))]
    for command in (["llm-gguf", "set", model, *marks, "-o", place(INFILL)],
                    ["llm-gguf", "split", model, place(SPLIT).replace("-00001-of-00003.gguf", ""), "--max-tensors", "16"],
                    ["llm-train", "-m", model, os.path.join(folder, "verse.txt"), "--lora", "--rank", "8", "--steps", "60",
                     "--learning-rate", "0.01", "-o", adapter]):
        subprocess.run([os.path.join(options.bin, command[0]), *command[1:]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    presets = os.path.join(folder, "models.ini")
    write(presets, "".join(f"[{name}]\nmodel = {place(file)}\n" for name, file in PRESETS))
    write(os.path.join(folder, "server"), WRAPPER.format(python=sys.executable, presets=presets, server=os.path.abspath(os.path.join(options.bin, "llm-server")),
                                                         eye=place(EYE)), 0o755)
    write(os.path.join(folder, "wget.py"), WGET.format(model=model, adapter=adapter))
    write(os.path.join(folder, "sitecustomize.py"), PICTURES.format(pictures={"11_truck": eye_file.png((9, 99, 200)), "91_cat": eye_file.png((220, 150, 9))}))
    try:
        import openai  # noqa: F401
    except ImportError:
        write(os.path.join(folder, "openai.py"), OPENAI)
    return tests


def run(folder, options):
    tests, report = prepare(folder, options), os.path.join(folder, "report.xml")
    env = dict(os.environ, LLAMA_SERVER_BIN_PATH=os.path.join(folder, "server"), LLAMA_SERVER_TEST_SKIP_MODEL_PRELOAD="1",
               LLM_CACHE=os.path.join(folder, "cache"), PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1", PORT=str(options.port))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--junitxml", report, "--tb=short"]
    if options.k:
        command += ["-k", options.k]
    files = options.files or sorted(os.listdir(os.path.join(tests, "unit")))
    command += [os.path.join("unit", f) for f in files if f.startswith("test_") and f.endswith(".py")]
    subprocess.run(command, cwd=tests, env=env, stdout=subprocess.DEVNULL if not options.verbose else None)
    return xml.etree.ElementTree.parse(report)


def sort(name, message, used):
    for head, rows in (("differs", DIFFERS), ("not here", NOT_HERE)):
        for row in rows:
            if re.fullmatch(row[0], name) and re.search(row[1], message):
                used.add(row)
                return head, row[2]
    return "open", None


def write_page(failures, table):
    """Puts the tests that do not apply into the page that gives the reasons, with the counts."""
    rows = collections.defaultdict(collections.Counter)
    for head, name, why in failures:
        if head != "open":
            file, test = name.split("::")
            rows[head, why][f"`{file}::{test.split('[')[0].removeprefix('test_')}`"] += 1
    count = lambda head: sum(t[head] for t in table.values())
    lines = [f"Of {sum(sum(t.values()) for t in table.values())} tests {count('passed')} pass, {count('open')} fail for no reason that is known, "
             f"{count('differs')} fail because something differs or is not offered, {count('not here')} expect words, tokens, pictures or a time of other models, and "
             f"{count('skipped')} are skipped.", ""]
    for head, title in (("differs", "differs, or is not offered"), ("not here", "of other models")):
        lines += [f"| {title} | tests |", "|---|---|"]
        for (h, why), tests in sorted(rows.items(), key=lambda r: -sum(r[1].values())):
            if h == head:
                shown = ", ".join(t + (f" ({n})" if n > 1 else "") for t, n in sorted(tests.items()))
                lines.append(f"| {why} | {shown} |")
        lines.append("")
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "server-differences.md")
    with open(page) as f:
        text = f.read()
    with open(page, "w") as f:
        f.write(re.sub(r"(<!-- tests -->\n).*?(<!-- end -->)", lambda m: m[1] + "\n" + "\n".join(lines) + m[2], text, flags=re.S))


def main():
    a = argparse.ArgumentParser()
    for name in ("bin", "folder", "model"):
        a.add_argument(name)
    a.add_argument("--encoder", help="an embedding model with BERT's words, as GGUF")
    a.add_argument("files", nargs="*", help="only these, such as test_basic.py")
    a.add_argument("-k")
    a.add_argument("--port", type=int, default=18390)
    a.add_argument("--show", action="store_true", help="also why each open test failed, and the reasons of the others")
    a.add_argument("--write", action="store_true", help="put the tests that do not apply into docs/server-differences.md")
    a.add_argument("--verbose", action="store_true", help="pytest's own output, too")
    options = a.parse_intermixed_args()
    try:
        import filelock, pytest, requests  # noqa: F401, E401
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    if not os.path.exists(os.path.join(options.folder, "unit")) or not os.path.exists(options.model):
        print("skipped: the tests of llama.cpp's server, or stories260K, are not here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        report = run(folder, options)
    table = collections.defaultdict(collections.Counter)
    failures, used = [], set()
    for case in report.iter("testcase"):
        file = case.get("classname").replace("unit.test_", "")
        name = f"{file}::{case.get('name')}"
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        head, why = ("skipped", None) if case.find("skipped") is not None else ("passed", None)
        if failure is not None:
            message = failure.get("message", "") or failure.text or ""
            head, why = sort(name, message, used)
            failures.append((head, name, why or message.splitlines()[0][:200]))
        table[file][head] += 1
    heads = ("passed", "open", "differs", "not here", "skipped")
    print(f"{'file':24}" + "".join(f"{h:>10}" for h in heads))
    for file in sorted(table):
        print(f"{file:24}" + "".join(f"{table[file][h] or '':>10}" for h in heads))
    print(f"{'sum':24}" + "".join(f"{sum(t[h] for t in table.values()):>10}" for h in heads))
    for head, name, why in failures:
        if head == "open" or options.show:
            print(f"{head}: {name}: {why}")
    if options.write:
        write_page(failures, table)
    stale = [row for row in DIFFERS + NOT_HERE if row not in used] if not options.k and not options.files else []
    for name, _, why in stale:
        print(f"no test fails like this any more: {name}: {why}")
    return 1 if stale or any(head == "open" for head, _, _ in failures) else 0


if __name__ == "__main__":
    sys.exit(main())
