"""-hf with repositories of safetensors, against a hub on this machine. hub_folder.py FOLDER-OF-THE-TOOLS MODEL [TEST..]

MODEL: tests/data/stories-qwen3.gguf, of which the folder is made here."""
import json
import os
import shutil
import struct
import sys

import mock_hub
from checks import TMP, check, write_json, write_safetensors
from hf_folder import make_folder, make_mlx_folder
from hub_run import BIN, DATA, ENV, HUB, MODEL, TEXT, begin, cached, holds, main, parts, ranges, run, stalls, wait_for
from mock_hub import File

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.append(SOURCE + "/tests/server")
from running import Server

FOLDER = TMP.name + "/Small"
make_folder(MODEL, FOLDER)
FILES = {name: open(os.path.join(FOLDER, name), "rb").read() for name in os.listdir(FOLDER)}
WEIGHTS = sorted(name for name in FILES if name.endswith(".safetensors"))
TEXTS = sorted(name for name in FILES if name not in WEIGHTS)
INDEX = "model.safetensors.index.json"
WANT = run("-m", FOLDER)[0]


def tensors(data):
    """The names of the tensors of a safetensors file."""
    return [name for name in json.loads(data[8:8 + int.from_bytes(data[:8], "little")]) if name != "__metadata__"]


def index_of(names):
    """An index for the two files of weights, under these names."""
    return json.dumps({"metadata": {}, "weight_map": {t: name for name, of in zip(names, WEIGHTS) for t in tensors(FILES[of])}}).encode()


def repo(name, *, weights=WEIGHTS, index=None, more=(), lacks=(), **manner):
    """Adds a repository with the folder: small files as Git has them, weights as large files."""
    files = {t: File(FILES[t], lfs=t == "tokenizer.json") for t in TEXTS}
    files.update({n: File(FILES[of], **manner.get(of, {})) for n, of in zip(weights, WEIGHTS)})
    if index is not None:
        files[INDEX] = File(index, lfs=False)
    files.update(more)
    return HUB.add(name, {n: f for n, f in files.items() if n not in lacks})


def in_cache(name):
    """The files of a repository's folder, without those of the download itself."""
    return sorted(n for n in os.listdir(cached(name, "")) if not n.endswith((".version", ".part")))


def test_folder():
    """A repository of safetensors is downloaded as a folder, once, and opened as -m opens it."""
    other = {n: File(b"never") for n in ("pytorch_model.bin", "consolidated.safetensors", "onnx/model.onnx", "original/consolidated.00.pth",
                                         "README.md", "sub/config.json", "sub/model.safetensors", ".hidden.safetensors")}
    repo("org/Small", index=index_of(WEIGHTS), more=other)
    out, err = run("-hf", "org/Small", has=["downloading 4 files of org/Small, ", "downloading 2 files of org/Small, 1.19 MB", "downloading " + WEIGHTS[0]])
    check(out == WANT, "the text of the folder", out)
    check(in_cache("org/Small") == sorted([*FILES, INDEX]), "these files", in_cache("org/Small"))
    check(all(holds("org/Small", n, FILES[n]) for n in FILES), "their bytes")
    HUB.take_log()
    check(run("-hf", "org/Small", lacks=["downloading", "note"])[0] == WANT, "the text of the cache")
    check(len(HUB.take_log()) == 1, "one request if the folder is current")
    check(run("-hf", "org/Small", "--offline")[0] == WANT and run("-hf", "org/Small:latest")[0] == WANT, "the text without network")
    dead = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    run("-hf", "org/Small", env=dead, has=["note: http://127.0.0.1:9: ", "The folder in the cache is used: " + cached("org/Small", "").rstrip("/")])
    check(run("-hf", "org/Small", "--type", "q4_0")[0] == run("-m", FOLDER, "--type", "q4_0")[0], "--type")
    for more in ([], ["--offline"]):
        out, err = run("-hf", "org/Small", "--hf-list", *more, text=False)
        words = [INDEX, "(Hugging Face folder, %d files)" % (6 if more else 7), "(in the cache)\n"] # consolidated.safetensors is on the hub only
        check(out.split("  ")[-3:] == words, "--hf-list", out)


def test_mlx():
    """A folder that MLX quantized."""
    folder = TMP.name + "/mlx"
    make_mlx_folder(FOLDER, folder)
    files = {n: open(os.path.join(folder, n), "rb").read() for n in os.listdir(folder)}
    HUB.add("mlx-community/Small-4bit", {n: File(data, lfs=n == "model.safetensors") for n, data in files.items()})
    out, _ = run("-hf", "mlx-community/Small-4bit")
    check(out == run("-m", folder)[0] and all(holds("mlx-community/Small-4bit", n, data) for n, data in files.items()), "a folder of MLX", out)


def test_tools():
    """The other tools open the folder, too."""
    same = lambda tool, *args: check(run("-hf", "org/Small", *args, tool=tool, text=False)[0] == run("-m", FOLDER, *args, tool=tool, text=False)[0], tool)
    same("llm-tokenize", "--ids", "-p", "Once")
    with open(TMP.name + "/text", "w", encoding="utf-8") as f:
        f.write("Once upon a time there was a cat. " * 20)
    same("llm-perplexity", "-f", TMP.name + "/text", "-c", "32", "-t", "1")
    run("-hf", "org/Small", "-p", "8", "-n", "0", "-r", "1", "--no-limits", "--no-warmup", "-t", "1", tool="llm-bench", text=False, has=["pp8"])
    run("-hf", "org/Small", "-f", TMP.name + "/text", "-c", "32", "-t", "1", "-o", TMP.name + "/im.gguf", tool="llm-imatrix", text=False)
    run("-m", FOLDER, "-hfd", "org/Small", "--draft-max", "4", has=["guesses"])
    if os.path.exists(os.path.join(BIN, "llm-server")):
        with Server([os.path.join(BIN, "llm-server"), "-hf", "org/Small", "-c", "64", "-t", "1"], env=ENV) as s:
            models = json.loads(s.get("/v1/models")[2])
            said = json.loads(s.post("/completion", {"prompt": TEXT[1], "n_predict": 8, "temperature": 0})[2])["content"]
        check(models["data"][0]["id"] == "Small" and WANT.strip().endswith(said.strip()), "llm-server -hf", (models, said))


def test_choice():
    """GGUF files come first; a file of the folder names the folder."""
    repo("org/both", more={"b-Q4_K_M.gguf": File(DATA), "mmproj.gguf": File(b"x")})
    run("-hf", "org/both", "--no-mmproj", has=["downloading b-Q4_K_M.gguf"], lacks=["safetensors"])
    check(in_cache("org/both") == ["b-Q4_K_M.gguf"], "only the GGUF file", in_cache("org/both"))
    out, _ = run("-hf", "org/both", "--hf-list", text=False)
    check([line.split()[2] for line in out.splitlines()] == ["b-Q4_K_M.gguf", "mmproj.gguf", WEIGHTS[0]], "--hf-list of both", out)
    for name in ("config.json", WEIGHTS[1]):
        check(run("-hf", "org/both", "-hff", name)[0] == WANT, "-hff " + name)
    run("-hf", "org/both", "-hff", "onnx/model.onnx", code=1, has=["has no file onnx/model.onnx; its GGUF files are", "Hugging Face folder"])
    run("-hf", "org/Small:Q4_K_M", code=1, has=["org/Small has no GGUF file, and so none with quantization Q4_K_M; org/Small without it is the safetensors, which can be quantized while they are loaded"])
    HUB.add("org/pickle", {"config.json": File(b"{}"), "pytorch_model.bin": File(b"x"), "sub/model.safetensors": File(b"x")})
    for more in ([], ["--hf-list"]):
        run("-hf", "org/pickle", *more, text=False, code=1, has=["org/pickle has its weights only as PyTorch pickles (pytorch_model.bin)", "look for a repository"])
    HUB.add("org/bare", {"model.safetensors": File(b"x")})
    run("-hf", "org/bare", code=1, has=["org/bare has no GGUF file, and no Hugging Face folder (config.json with safetensors)"])
    check(not os.path.exists(cached("org/pickle", "")) and not os.path.exists(cached("org/bare", "")), "nothing was downloaded")
    repo("org/noindex")
    check(run("-hf", "org/noindex")[0] == WANT, "parts without an index")
    repo("org/lacks", lacks=[WEIGHTS[1]])
    run("-hf", "org/lacks", code=1, has=["org/lacks lacks " + WEIGHTS[1] + ", part 2 of 2"], lacks=["downloading " + WEIGHTS[0]])
    repo("org/named", weights=["a.safetensors", "b.safetensors"])
    run("-hf", "org/named", code=1, has=["org/named has a config.json and safetensors, but no model.safetensors and no " + INDEX])


def test_odd_names():
    """Files are what the index names, if it stays inside of the repository's top."""
    names = ["weights 1 %41#?&.safetensors", "b\u00e9-x.safetensors"]
    repo("org/odd", weights=names, index=index_of(names))
    check(run("-hf", "org/odd")[0] == WANT, "odd names")
    check(in_cache("org/odd") == sorted([*TEXTS, INDEX, *names]), "odd names in the cache", in_cache("org/odd"))
    before = sorted(os.listdir(TMP.name))
    outside = ["../x.safetensors", "/etc/x.safetensors", "sub/x.safetensors", "a\\x.safetensors", ".x.safetensors", "\x1b[31m.safetensors",
               "config.json", "", "x" * 600, "absent.safetensors", "x\u202e.safetensors"]
    for name in outside:
        repo("org/away", weights=[WEIGHTS[0], name or "none"], index=index_of([WEIGHTS[0], name]),
             more={"../x.safetensors": File(b"x"), "/etc/x.safetensors": File(b"x"), "sub/x.safetensors": File(b"x")}, lacks=["absent.safetensors"])
        if name == "config.json":
            HUB.repos["org/away"][name] = File(FILES[name])
        run("-hf", "org/away", code=1, has=["org/away: " + INDEX + ": tensor 'model.layers.", "which is no safetensors file at the top"], lacks=[WEIGHTS[0]],
            what="an index that names " + repr(name))
    for text, words in ((b"{}", "the object 'weight_map' with tensors is missing"), (b'{"weight_map":{}}', "'weight_map'"), (b"[" * 100000, INDEX),
                        (b'{"weight_map":{"a":7}}', "tensor 'a' is in ''")):
        repo("org/away", index=text)
        run("-hf", "org/away", code=1, has=[words], lacks=[WEIGHTS[0]], what="an index of " + repr(text[:30]))
    check(sorted(os.listdir(TMP.name)) == before and in_cache("org/away") == sorted([*TEXTS, INDEX, "config.json.unfinished"]), "nothing else was written",
          in_cache("org/away"))
    own = {at + "/x-Q8_0.gguf": File(DATA) for at in ("config.json.unfinished", "merges.txt.version", WEIGHTS[0] + ".01234567.part")}
    repo("org/ours", more=own)
    check(run("-hf", "org/ours")[0] == WANT and in_cache("org/ours") == sorted(FILES), "names of the download's own files", in_cache("org/ours"))
    run("-hf", "org/ours", "-hff", "config.json.unfinished/x-Q8_0.gguf", code=1, has=["is not a safe path inside a folder"])
    repo("org/away", index=b"{}")
    HUB.repos["org/away"][INDEX].size = 101 << 20
    run("-hf", "org/away", code=1, has=[INDEX + " has more than 100 MiB"])
    repo("org/many", index=json.dumps({"weight_map": {"t0": WEIGHTS[0], "t1": WEIGHTS[1]}}).encode())
    run("-hf", "org/many", code=1, has=["downloading " + WEIGHTS[1], "weight_map: tensor 't0' is not in"])


def test_refused():
    """A model that cannot be opened is refused before its weights come; llm-tokenize gets none."""
    config = json.loads(FILES["config.json"])
    other = {"config.json": File(json.dumps({**config, "architectures": ["OtherModel"]}).encode(), lfs=False)}
    for name in ("org/bert.safetensors", "org/bert"):
        repo(name, more=other)
        run("-hf", name, code=1, has=["no built-in descriptor converts 'OtherModel', which config.json names", "--arch FILE"], lacks=["downloading model"])
    with open(os.path.join(SOURCE, "models/archs/qwen3.arch"), encoding="utf-8") as f:
        text = f.read().replace("Qwen3ForCausalLM", "OtherModel")
    with open(TMP.name + "/bert.arch", "w", encoding="utf-8") as f:
        f.write(text)
    check(run("-hf", "org/bert", "--arch", TMP.name + "/bert.arch")[0] == WANT, "a descriptor of one's own")
    repo("org/broken", more={"tokenizer.json": File(b"{")})
    run("-hf", "org/broken", code=1, has=["tokenizer.json"], lacks=["downloading model"])
    ids = ["--ids", "-p", "Once upon"]
    want = run("-m", FOLDER, *ids, tool="llm-tokenize", text=False)[0]
    pickle = {"pytorch_model.bin": File(b"x")}
    repo("org/words", lacks=WEIGHTS, more=pickle)
    for name in ("org/words", "org/ids"):
        HUB.repos[name] = HUB.repos.get(name) or repo(name)
        check(run("-hf", name, *ids, tool="llm-tokenize", text=False, lacks=["downloading model"])[0] == want, "llm-tokenize of " + name)
        check(run("-hf", name, *ids, "--offline", tool="llm-tokenize", text=False)[0] == want, "llm-tokenize of the cache")
        check(in_cache(name) == TEXTS, "only the texts", in_cache(name))
    run("-hf", "org/words", "--hf-list", tool="llm-tokenize", text=False, has=["config.json  (Hugging Face folder, 3 files)  (in the cache)"])
    run("-hf", "org/ids", "--offline", code=1, has=["org/ids has no GGUF file in the cache"])
    check(run("-hf", "org/ids")[0] == WANT and run("-hf", "org/ids", "--offline")[0] == WANT, "the weights come later")
    # weights of another version than the texts that llm-tokenize has got are not used without network
    repo("org/ids", more={"tokenizer.json": File(FILES["tokenizer.json"] + b" ")})
    run("-hf", "org/ids", *ids, tool="llm-tokenize", text=False, has=["downloading tokenizer.json"])
    run("-hf", "org/ids", "--offline", code=1, has=["is not complete"])
    check(run("-hf", "org/ids")[0] == WANT and run("-hf", "org/ids", "--offline")[0] == WANT, "a check with the hub completes it")


def test_interrupted():
    """A cut connection is continued; an interrupted download is refused without network, and continued with it."""
    half = len(FILES[WEIGHTS[1]]) // 2
    repo("org/cut", **{WEIGHTS[1]: {"cuts": [half]}})
    HUB.take_log()
    check(run("-hf", "org/cut", has=["trying again in 1 s"])[0] == WANT, "the text after a cut")
    check(ranges(HUB.take_log())[-2:] == [None, "bytes=%d-" % half], "a cut is continued")
    repo("org/stop", **{WEIGHTS[1]: {"cuts": [half], "good": 1, "status": 404}})
    run("-hf", "org/stop", code=1, has=["are kept", "goes on from there"])
    check([os.path.getsize(p) for p in parts("org/stop")] == [half], "the part", parts("org/stop"))
    words = "the model org/stop in the cache (%s) is not complete, because its download was interrupted; with the network, the same command continues it" % cached("org/stop", "").rstrip("/")
    run("-hf", "org/stop", "--offline", code=1, has=[words])
    run("-hf", "org/stop", env={"HF_ENDPOINT": "http://127.0.0.1:9"}, code=1, has=["http://127.0.0.1:9: ", words])
    out, _ = run("-hf", "org/stop", "--hf-list", text=False)
    check("in the cache" not in out, "--hf-list of a part of a folder", out)
    HUB.repos["org/stop"][WEIGHTS[1]].status = None
    HUB.take_log()
    check(run("-hf", "org/stop", has=["of which %d kB are there" % (half // 1000)])[0] == WANT, "the text of the continued folder")
    check(ranges(HUB.take_log()) == ["bytes=%d-" % half] and not parts("org/stop"), "only the rest is requested")
    run("-hf", "org/stop", "--offline")
    # the parts of a GGUF file, of which only the first has come
    names = ["m-0000%d-of-00002.gguf" % k for k in (1, 2)]
    HUB.add("org/parts", {names[0]: File(b"GGUF 1"), names[1]: File(b"GGUF 2")})
    run("-hf", "org/parts", code=1)
    HUB.add("org/parts", {names[0]: File(b"GGUF new"), names[1]: File(b"GGUF 3", status=404)})
    run("-hf", "org/parts", code=1, has=["status 404"])
    run("-hf", "org/parts", "--offline", code=1, has=["the model org/parts in the cache", "is not complete"])


def test_changed():
    """Another version of the repository replaces the files, and removes those that it no longer has."""
    repo("org/news")
    run("-hf", "org/news")
    tokenizer = FILES["tokenizer.json"] + b"\n"
    new = {"tokenizer.json": File(tokenizer), "chat_template.jinja": File(b"hi", lfs=False), "added_tokens.json": File(b"{}", lfs=False)}
    one = dict(zip(WEIGHTS, ["model-1.safetensors", "model-2.safetensors"]))
    repo("org/news", weights=one.values(), index=index_of(one.values()), more=new)
    check(run("-hf", "org/news", lacks=["downloading config.json"])[0] == WANT, "the text of the newer folder")
    check(in_cache("org/news") == sorted({*TEXTS, *new, INDEX, *one.values()}), "the newer files", in_cache("org/news"))
    check(holds("org/news", "tokenizer.json", tokenizer), "the newer tokenizer")
    with open(cached("org/news", "merges.txt"), "wb") as f:
        f.write(b"mine")
    repo("org/news")
    check(run("-hf", "org/news")[0] == WANT, "the text of the older folder")
    check(in_cache("org/news") == sorted([*FILES, "merges.txt"]), "what was put there by hand stays", in_cache("org/news"))
    # a file by hand of the size that the hub lists is another one by its bytes
    other = {"config.json": FILES["config.json"].replace(b"Qwen3For", b"Xwen3For"), "merges.txt": b"#version: 0.9\n"}
    own = File(b"#version: 0.2\n", lfs=False)
    for name, oid in (("org/same", own.oid), ("org/nameless", None)):
        files = repo(name, more={"merges.txt": own})
        for n in other:
            files[n].oid = oid and files[n].oid
        os.makedirs(cached(name, ""))
        for n, data in other.items():
            check(len(data) == files[n].size and data != files[n].data, "other bytes of the same size")
            with open(cached(name, n), "wb") as f:
                f.write(data)
        check(run("-hf", name, has=["downloading config.json"])[0] == WANT, "a config.json by hand is replaced")
        check(all(holds(name, n, files[n].data) for n in other), "the files of the repository")
        run("-hf", name, lacks=["downloading"])
    # a folder that was put there by hand is one that was downloaded
    shutil.copytree(FOLDER, cached("org/hand", ""))
    check(run("-hf", "org/hand", "--offline")[0] == WANT, "a folder by hand")
    repo("org/hand")
    run("-hf", "org/hand", lacks=["downloading"])


def test_modules():
    """The modules of sentence-transformers have folders of their own."""
    modules = [{"idx": i, "path": path, "type": "sentence_transformers.models." + kind}
               for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])]
    more = {"modules.json": json.dumps(modules).encode(), "1_Pooling/config.json": b'{"pooling_mode_lasttoken": true}',
            "config_sentence_transformers.json": b'{"prompts": {"query": "q: "}}'}
    repo("org/modules", more={name: File(data, lfs=False) for name, data in more.items()})
    out, _ = run("-hf", "org/modules", has=["downloading 5 files", "downloading 1_Pooling/config.json, 32 bytes"])
    check(out == WANT, "the text", out)
    check(all(holds("org/modules", n, data) for n, data in more.items()), "their bytes", in_cache("org/modules"))


def all_in_cache(name):
    """The files of a repository's folder and of those in it."""
    top = cached(name, "")
    return sorted(os.path.relpath(os.path.join(at, n), top) for at, _, names in os.walk(top) for n in names if not n.endswith((".version", ".part")))


def files_of(folder):
    return {os.path.relpath(os.path.join(at, n), folder): open(os.path.join(at, n), "rb").read() for at, _, names in os.walk(folder) for n in names}


OTHERS = {n: File(b"never") for n in ("onnx/model.safetensors", "onnx/config.json", "onnx/tokenizer.json", "original/model-00001-of-00002.safetensors", "9_Dense/config.json",
                                      "9_Dense/model.safetensors", "openvino/openvino_model.bin", "2_Dense/deeper/model.safetensors", "2_Dense/pytorch_model.bin")}


def test_within():
    """Of the folders in a repository, those that the model has come whole, and no others: those of modules.json, and those of a section's lines `folder`."""
    matrix = lambda n, rows=False: {"linear.weight": ("F32", [8, n], struct.pack("<%df" % (8 * n), *([0.01] * (8 * n)))), **({"linear.bias": ("F32", [8], bytes(32))} if rows else {})}
    wide = json.loads(FILES["config.json"])["hidden_size"]
    modules = [{"idx": i, "path": path, "type": "sentence_transformers.models." + kind}
               for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Dense", "Dense")])]
    dense = {"bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
    own = TMP.name + "/Vectors"
    shutil.copytree(FOLDER, own)
    for name, config in (("1_Pooling", {"pooling_mode": "mean"}), ("2_Dense", dense | {"in_features": wide, "out_features": 8, "bias": True}), ("3_Dense", dense | {"in_features": 8, "out_features": 8})):
        os.mkdir(os.path.join(own, name))
        write_json(os.path.join(own, name, "config.json"), config)
    write_json(own + "/modules.json", modules)
    write_json(own + "/sentence_bert_config.json", {"max_seq_length": 12})
    parts = ["weights-a.safetensors", "weights-b.safetensors"]
    for part, (tensor, numbers) in zip(parts, matrix(wide, True).items()):
        write_safetensors(f"{own}/2_Dense/{part}", {tensor: numbers})
    write_json(own + "/2_Dense/" + INDEX, {"weight_map": dict(zip(matrix(wide, True), parts))})
    write_safetensors(own + "/3_Dense/model.safetensors", matrix(8))
    files = files_of(own)
    listed = lambda: {n: File(data, lfs=n.endswith(".safetensors")) for n, data in files.items()}
    HUB.add("org/within", {**listed(), **OTHERS})
    vectors = ["-p", "Once upon a time there was a little dog and a cat"]
    embeds = os.path.exists(os.path.join(BIN, "llm-embed"))
    run("-hf", "org/within", *vectors, tool="llm-embed" if embeds else "llm-cli", text=False, has=["downloading 2_Dense/weights-b.safetensors, "], lacks=["onnx", "9_Dense"])
    check(all_in_cache("org/within") == sorted(files), "the files of the model's folders", all_in_cache("org/within"))
    check(all(holds("org/within", n, data) for n, data in files.items()), "their bytes")
    if embeds:
        for more in ([], ["--offline"]):
            check(run("-hf", "org/within", *vectors, *more, tool="llm-embed", text=False)[0] == run("-m", own, *vectors, tool="llm-embed", text=False)[0], "the vectors")
    run("-hf", "org/within", "--offline", "--hf-list", text=False, has=["(Hugging Face folder, %d files)" % len(files)])
    HUB.take_log()
    run("-hf", "org/within", lacks=["downloading"])
    check(len(HUB.take_log()) == 1, "one request if the folders are current")
    # llm-tokenize gets the small files of these folders alone
    HUB.add("org/small", {**listed(), **OTHERS})
    run("-hf", "org/small", "--ids", "-p", "Once", tool="llm-tokenize", text=False)
    check(all_in_cache("org/small") == sorted(n for n in files if not n.endswith(".safetensors")), "the small files", all_in_cache("org/small"))
    run("-hf", "org/small", "--offline", code=1, has=["org/small has no GGUF file in the cache"])
    # a version without the last module
    less = {"modules.json": File(json.dumps(modules[:3]).encode(), lfs=False)}
    HUB.add("org/within", {n: f for n, f in {**listed(), **less, **OTHERS}.items() if not n.startswith("3_Dense")})
    run("-hf", "org/within", has=["downloading modules.json"], lacks=["downloading 2_Dense"])
    check(all_in_cache("org/within") == sorted(n for n in files if not n.startswith("3_Dense")), "files of a folder that is gone", all_in_cache("org/within"))
    # what a repository lacks is said before the model's weights come
    for lacks, words in ((["3_Dense/model.safetensors"], "org/lacking has no safetensors in its folder 3_Dense, and the model needs the weights of that folder, too; pickles (.bin)"),
                         (["2_Dense/" + parts[1]], "org/lacking: 2_Dense/" + INDEX + ": tensor 'linear.bias' is in 'weights-b.safetensors', which is no safetensors file in this folder of the"),
                         (["1_Pooling/config.json"], "1_Pooling/config.json: ")):
        HUB.add("org/lacking", {n: f for n, f in listed().items() if n not in lacks})
        run("-hf", "org/lacking", code=1, has=[words], lacks=["downloading model-"])
    index = {"2_Dense/" + INDEX: File(json.dumps({"weight_map": {"linear.weight": "../model.safetensors"}}).encode(), lfs=False)}
    HUB.add("org/lacking", {**listed(), **index, "model.safetensors": File(b"x")})
    run("-hf", "org/lacking", code=1, has=["tensor 'linear.weight' is in '../model.safetensors', which is no safetensors file"], lacks=["downloading model-"])
    for path in ("..", "../..", "/etc", "onnx/..", "2_Dense/deeper", ".", "x" * 300):
        HUB.add("org/outside", {**listed(), **OTHERS, "modules.json": File(json.dumps(modules[:1] + [{"path": path, "type": "Normalize"}]).encode(), lfs=False)})
        run("-hf", "org/outside", what="a module in " + path)
        check(not [n for n in all_in_cache("org/outside") if "/" in n], "no file of a folder", all_in_cache("org/outside"))
    # the folder of a line of the section
    with open(os.path.join(SOURCE, "models/archs/qwen3.arch"), encoding="utf-8") as f:
        text = f.read().replace("  within config.text_config\n", '  within config.text_config\n  folder "extra"\n  ignore config.modules.extra, "modules.extra.*"\n')
    check('folder "extra"' in text, "a section with a folder", text[:200])
    with open(TMP.name + "/extra.arch", "w", encoding="utf-8") as f:
        f.write(text)
    more = {"extra/config.json": b"{}", "extra/model.safetensors": files["3_Dense/model.safetensors"]}
    repo("org/extra", more={**{n: File(data) for n, data in more.items()}, **OTHERS})
    check(run("-hf", "org/extra", "--arch", TMP.name + "/extra.arch", lacks=["onnx"])[0] == WANT, "a folder of the section")
    check(all_in_cache("org/extra") == sorted([*FILES, *more]), "the files of the section's folder", all_in_cache("org/extra"))
    repo("org/extra-lacks", more={"extra/config.json": File(b"{}", lfs=False)})
    run("-hf", "org/extra-lacks", "--arch", TMP.name + "/extra.arch", code=1, has=["org/extra-lacks has no safetensors in its folder extra"], lacks=["downloading model-"])


def test_table():
    """A model whose files are all in a folder, as tables of vectors have them."""
    if not os.path.exists(os.path.join(BIN, "llm-embed")):
        return
    own = TMP.name + "/Table"
    os.makedirs(own + "/0_StaticEmbedding")
    write_json(own + "/modules.json", [{"idx": 0, "path": "0_StaticEmbedding", "type": "sentence_transformers.models.StaticEmbedding"}])
    n = json.loads(FILES["config.json"])["vocab_size"]
    write_safetensors(own + "/0_StaticEmbedding/model.safetensors", {"embedding.weight": ("F32", [n, 4], struct.pack("<%df" % (4 * n), *(i % 11 - 5 for i in range(4 * n))))})
    with open(own + "/0_StaticEmbedding/tokenizer.json", "wb") as f:
        f.write(FILES["tokenizer.json"])
    files = files_of(own)
    HUB.add("org/table", {**{name: File(data) for name, data in files.items()}, **OTHERS, "0_StaticEmbedding/pytorch_model.bin": File(b"never")})
    want = run("-m", own, "-p", "Once", tool="llm-embed", text=False)[0]
    for more in ([], [], ["--offline"]):
        check(run("-hf", "org/table", "-p", "Once", *more, tool="llm-embed", text=False)[0] == want, "the vector")
    check(all_in_cache("org/table") == sorted(files), "the files", all_in_cache("org/table"))
    run("-hf", "org/table", "--hf-list", tool="llm-embed", text=False, has=["modules.json  (Hugging Face folder, "])
    run("--cache-list", text=False, has=["org/table"])


def test_names():
    """All files that a tokenizer or an embedder may have are downloaded."""
    more = {n: File(b"{}", lfs=False) for n in ("sentence_bert_config.json", "artifact.metadata", "preprocessor_config.json", "processor_config.json", "generation_config.json")}
    more |= {n: File(b"x") for n in ("tiktoken.model", "qwen.tiktoken", "tokenizer.tiktoken", "rwkv_vocab_v20230424.txt")}
    repo("org/names", more=more)
    run("-hf", "org/names")
    check(in_cache("org/names") == sorted([*FILES, *more]), "the files", in_cache("org/names"))


def test_repaired():
    """A repository whose author removes the file for which it was refused."""
    model = json.loads(FILES["tokenizer.json"])["model"]
    small = json.loads(FILES["tokenizer_config.json"])
    added = json.loads(FILES["tokenizer.json"])["added_tokens"]
    small["added_tokens_decoder"] = {str(t["id"]): {"content": t["content"], "special": True} for t in added}
    texts = {"config.json": FILES["config.json"], "tokenizer_config.json": json.dumps(small).encode(), "vocab.json": json.dumps(model["vocab"]).encode(),
             "merges.txt": "\n".join(["#version: 0.2", *(m if isinstance(m, str) else " ".join(m) for m in model["merges"])]).encode()}
    folder = TMP.name + "/words"
    os.mkdir(folder)
    for name, data in {**texts, **{n: FILES[n] for n in WEIGHTS}}.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    good = {name: File(data, lfs=False) for name, data in texts.items()}
    bad = {"tokenizer.json": File(b'{"model":{"type":"WordTree","vocab":{"[UNK]":0}}}', lfs=False)}
    ids = ["--ids", "-p", "Once upon"]
    for tool, args, text in (("llm-cli", [], True), ("llm-tokenize", ids, False)):
        name = "org/repaired-" + tool
        repo(name, more={**good, **bad})
        run("-hf", name, *args, tool=tool, text=text, code=1, has=["WordTree"])
        check("tokenizer.json" in in_cache(name), "the file that is refused", in_cache(name))
        repo(name, more=good, lacks=["tokenizer.json"])
        want = run("-m", folder, *args, tool=tool, text=text)[0]
        check(run("-hf", name, *args, tool=tool, text=text)[0] == want, tool + " of the repaired repository")
        check("tokenizer.json" not in in_cache(name), "the older file", in_cache(name))
        run("-hf", name, *args, "--offline", tool=tool, text=text)
    # llm-tokenize removes a file: the weights may then be of the earlier version
    name = "org/repaired-llm-cli"
    repo(name, more={**good, "added_tokens.json": File(b"{}", lfs=False)}, lacks=["tokenizer.json"])
    run("-hf", name)
    repo(name, more=good, lacks=["tokenizer.json"])
    run("-hf", name, *ids, tool="llm-tokenize", text=False)
    check("added_tokens.json" not in in_cache(name), "llm-tokenize removes it", in_cache(name))
    run("-hf", name, "--offline", code=1, has=["is not complete"])
    run("-hf", name)
    run("-hf", name, "--offline")


def test_together():
    """Of several processes that download a folder, the last one removes the mark."""
    ids = ["--ids", "-p", "Once upon"]
    for name, stall in (("org/first", None), ("org/second", 10)):
        mark = cached(name, "config.json.unfinished")
        files = repo(name, more={"tokenizer.json": File(FILES["tokenizer.json"], stall=stall)}, **{WEIGHTS[0]: {"stall": 100}})
        words = stall and begin("-hf", name, *ids, tool="llm-tokenize", text=False)
        if words:  # it makes the mark, and is done before the weights have come
            wait_for(lambda: stalls(name, "tokenizer.json", stall), "the part of tokenizer.json")
        whole = begin("-hf", name)
        if words:
            wait_for(lambda: b"waiting" in whole.stderr.read1(), "the second process")
            files["tokenizer.json"].go.set()
            check(words.wait() == 0, "llm-tokenize", words.stderr.read())
        wait_for(lambda: stalls(name, WEIGHTS[0], 100), "the part of the weights")
        check(os.path.exists(mark), "the mark while weights are downloaded")
        run("-hf", name, *ids, tool="llm-tokenize", text=False, lacks=["downloading"])
        check(os.path.exists(mark), "the mark after llm-tokenize")
        if words:
            files[WEIGHTS[0]].stall = None
        else:
            files[WEIGHTS[1]].status = 404
        files[WEIGHTS[0]].go.set()
        check(whole.wait() == (0 if words else 1), "llm-cli", whole.stderr.read())
        check(os.path.exists(mark) == (not words), "the mark in the end")
        run("-hf", name, "--offline", code=0 if words else 1)
        run("-hf", name, *ids, tool="llm-tokenize", text=False)
        check(os.path.exists(mark) == (not words), "llm-tokenize does not complete the weights")
        for p in (words, whole):
            if p:
                p.stdout.close()
                p.stderr.close()


def test_checks():
    wrong = "0123456789abcdef" * 4
    repo("org/hash", **{WEIGHTS[0]: {"sha256": wrong}})
    run("-hf", "org/hash", code=1, has=["wrong SHA-256", wrong, "removed"], lacks=["downloading " + WEIGHTS[1]])
    check(not parts("org/hash") and not os.path.exists(cached("org/hash", WEIGHTS[0])), "nothing is left of it")
    repo("org/blob", more={"config.json": File(FILES["config.json"], lfs=False, oid=wrong[:40])})
    run("-hf", "org/blob", code=1, has=["wrong SHA-1", "should be git-" + wrong[:40], "removed"], lacks=["downloading " + WEIGHTS[0]])
    check(not parts("org/blob") and not os.path.exists(cached("org/blob", "config.json")), "nothing is left of that one")
    size = len(FILES[WEIGHTS[0]])
    repo("org/size", **{WEIGHTS[0]: {"size": size - 10}})
    run("-hf", "org/size", code=1, has=["more than the %d bytes" % (size - 10)])
    repo("org/less", more={"config.json": File(FILES["config.json"], lfs=False, size=5)})
    run("-hf", "org/less", code=1, has=["more than the 5 bytes"])
    repo("org/huge", **{WEIGHTS[0]: {"size": 10**18}})
    run("-hf", "org/huge", code=1, has=["needs 1000000 TB", "free", "LLM_CACHE"])
    repo("org/bad", more={WEIGHTS[0]: File(FILES[WEIGHTS[0]], size=-1)})
    run("-hf", "org/bad", code=1, has=[WEIGHTS[0] + " has no valid size"])
    repo("org/away2", **{WEIGHTS[0]: {"to": "file:///etc/passwd"}})
    run("-hf", "org/away2", code=1, has=["protocol that is not allowed"], lacks=["root:"])
    second = mock_hub.start()
    second.add("x/y", {"w": File(FILES[WEIGHTS[0]])})
    repo("org/cdn", **{WEIGHTS[0]: {"to": second.url.replace("127.0.0.1", "localhost") + "/cdn/x/y/w"}}).token = "sesame"
    check(run("-hf", "org/cdn", env={"HF_TOKEN": "sesame"})[0] == WANT, "a redirect to another host")
    check(second.log and not any("Authorization" in r.headers for r in second.log), "the token and another host", second.log)
    second.stop()


sys.exit(main(globals()))
