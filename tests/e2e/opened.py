"""llm-server and the Python package with a Hugging Face folder and with a checkpoint of llama2.c: the answers are those of the GGUF file that
llm-convert makes of them, and their name and size are sensible. The C library is tested in tests/models/library_folder.c.

opened.py TOOLS MODEL SOURCE [LIBRARY]    TOOLS: the folder of the programs; MODEL: tests/data/stories-qwen3.gguf; SOURCE: the repository;
LIBRARY: libllm.so for the Python package, which is skipped without it"""
import json
import os
import subprocess
import sys

TOOLS, MODEL, SOURCE, *LIBRARY = map(os.path.abspath, sys.argv[1:])
sys.path += [SOURCE + "/tests/server"]

from checkpoint_model import make_weights, tokenizer_bin, version_1, version_2
from checks import check, finish, path, put
from hf_folder import make_folder
from running import Server


def make_models():
    """Returns (what is opened, the file made of it, the name that it should have)."""
    weights = make_weights()
    make_folder(MODEL, path("Small-Stories-1.5"))
    put("tokenizer.bin", tokenizer_bin())
    put("tiny.bin", version_1(weights, False))
    put("tiny8.bin", version_2(weights, True))
    models = [("Small-Stories-1.5", "folder.gguf", "Small-Stories-1.5"), ("tiny.bin", "bin.gguf", "tiny"), ("tiny8.bin", "bin8.gguf", "tiny8")]
    for source, file, _ in models:
        subprocess.run([TOOLS + "/llm-convert", path(source), "-o", path(file)], check=True, capture_output=True)
    return models


# --- the server -----------------------------------------------------------------------------------------------------------------

COMPLETION = {"prompt": "a a", "n_predict": 12, "temperature": 0, "n_probs": 3, "ignore_eos": True, "seed": 1}
CHAT = {"messages": [{"role": "user", "content": "Once upon a time"}], "max_tokens": 8, "temperature": 0, "seed": 1}


def without(value, *names):
    """A JSON value without members of these names, which differ between runs."""
    if isinstance(value, dict):
        return {k: without(v, *names) for k, v in value.items() if k not in names}
    return [without(v, *names) for v in value] if isinstance(value, list) else value


def ask(model, *options):
    """What a server with this model answers."""
    def read(reply):
        check(reply[0] == 200, f"{model}: status {reply[0]}", reply[2])
        return json.loads(reply[2])

    with Server([TOOLS + "/llm-server", "-m", model, "-c", "48", "-np", "1", "-t", "2", *options]) as s:
        got = {"completion": read(s.post("/completion", COMPLETION)), "models": read(s.get("/v1/models")), "tags": read(s.get("/api/tags")),
               "show": read(s.post("/api/show", {"model": read(s.get("/v1/models"))["data"][0]["id"]})), "props": read(s.get("/props"))}
        if got["props"]["chat_template"]:
            got["chat"] = read(s.post("/v1/chat/completions", CHAT))
        return got


def test_server(source, file, name):
    a, b = ask(path(source)), ask(path(file))
    fixed = ("timings", "model", "id", "created", "generation_settings")
    for what in ("completion", "chat"):
        check(without(a.get(what), *fixed) == without(b.get(what), *fixed), f"{source}: another answer than the file's: {what}", (a.get(what), b.get(what)))
    check(len(a["completion"]["content"]) > 3, source + ": no text", a["completion"])
    models, tags = a["models"]["data"][0], a["tags"]["models"][0]
    check(models["id"] == tags["name"] == tags["model"] == name, source + ": the name", (models["id"], tags["name"]))
    check(without(models["meta"], "name") == without(b["models"]["data"][0]["meta"], "name"), source + ": other facts", (models, b["models"]))
    check(tags["size"] == b["tags"]["models"][0]["size"] > 80000, source + ": another size", (tags, b["tags"]))
    check(tags["details"] == b["tags"]["models"][0]["details"] and tags["digest"] == b["tags"]["models"][0]["digest"], source + ": other details", tags)
    check(a["show"]["model_info"] == b["show"]["model_info"], source + ": other keys")
    check(a["props"]["model_path"] == path(source), source + ": its path", a["props"]["model_path"])
    check(without(a["props"], "model_path", "model_alias") == without(b["props"], "model_path", "model_alias"), source + ": other properties")


def test_names():
    """A folder by '.', by a trailing slash, and in the cache of Hugging Face's programs; and --type."""
    snapshot = path("models--Org--Tiny-2B/snapshots/0123456789abcdef0123456789abcdef01234567")
    os.makedirs(os.path.dirname(snapshot))
    os.symlink(path("Small-Stories-1.5"), snapshot)
    here = os.getcwd()
    os.chdir(path("Small-Stories-1.5"))
    names = [ask(model)["models"]["data"][0]["id"] for model in (".", "../Small-Stories-1.5/", snapshot)]
    os.chdir(here)
    check(names == ["Small-Stories-1.5", "Small-Stories-1.5", "Tiny-2B"], "names of folders", names)
    details = ask(path("Small-Stories-1.5"), "--type", "q8_0")["tags"]["models"][0]
    check(details["details"]["quantization_level"] == "Q8_0", "--type in /api/tags", details)


# --- Python ---------------------------------------------------------------------------------------------------------------------

PYTHON = """
import json, sys
from ggml_lite import Model
with Model(sys.argv[1], n_ctx=48) as m:
    print(json.dumps([m.generate("a a", max_tokens=12, temperature=0, ignore_end=True), m.tokenize("a a"), m.n_vocab, m.name]))
"""


def test_python(source, file):
    env = dict(os.environ, GGML_LITE_LIBRARY=LIBRARY[0], PYTHONPATH=SOURCE + "/python/src", PYTHONDONTWRITEBYTECODE="1")
    said = [subprocess.run([sys.executable, "-c", PYTHON, path(name)], env=env, capture_output=True, text=True) for name in (source, file)]
    check(all(r.returncode == 0 for r in said), "Python with " + source, [r.stderr for r in said])
    check(said[0].stdout == said[1].stdout and len(said[0].stdout) > 20, f"Python: {source} and its file differ", [r.stdout for r in said])


for model in make_models():
    test_server(*model)
    if LIBRARY:
        test_python(*model[:2])
test_names()
sys.exit(finish())
