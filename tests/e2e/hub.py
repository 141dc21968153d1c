"""-hf, -mu and their companions, against a hub on this machine. hub.py FOLDER-OF-THE-TOOLS MODEL [EXAMPLE] [TEST..]"""
import os
import re
import shutil
import signal
import struct
import subprocess
import sys

import eye_file
import mock_hub
import terminals
from checks import TMP, check
from hub_run import BIN, CLI, DATA, ENV, EXAMPLE, HUB, MODEL, OTHER, ROOT, TEXT, begin, cached, holds, main, parts, ranges, run, stalls, together, wait_for
from mock_hub import File


def test_choice():
    """Which file is meant."""
    small = {p: File(DATA) for p in ("a-Q8_0.gguf", "a-Q4_K_M.gguf", "a-Q4_K.gguf", "mmproj-a-Q4_K_M.gguf", "README.md", "q2/a-q2_k.gguf")}
    HUB.add("user/choice", small)
    want = run("-m", MODEL)[0]
    for wish, path in (("", "a-Q4_K_M.gguf"), (":latest", "a-Q4_K_M.gguf"), (":q8_0", "a-Q8_0.gguf"), (":Q4_K", "a-Q4_K.gguf"), (":Q2_K", "q2/a-q2_k.gguf")):
        HUB.take_log()
        out, _ = run("-hf", "user/choice" + wish, "--no-mmproj")
        check(out == want, f"user/choice{wish}: the text", out)
        check(holds("user/choice", path, DATA), f"user/choice{wish} is {path}", os.listdir(os.path.join(ROOT, "hub/user/choice")))
        n = len(ranges(HUB.take_log()))
        check(n == (wish != ":latest"), f"user/choice{wish}: {n} downloads")
    check(sorted(os.listdir(os.path.join(ROOT, "hub/user/choice"))) == sorted(
        ["a-Q8_0.gguf", "a-Q8_0.gguf.version", "a-Q4_K_M.gguf", "a-Q4_K_M.gguf.version", "a-Q4_K.gguf", "a-Q4_K.gguf.version", "q2"]), "only these files")
    run("-hf", "user/choice", "-hff", "A-q8_0.gguf", "--no-mmproj")
    run("-hf", HUB.url + "/user/choice:Q8_0", "--no-mmproj")
    run("-hf", "https://huggingface.co/user/choice", "--offline", "--no-mmproj")
    run("-hf", "user/choice:Q5_K_M", code=1, has=["user/choice has no file with quantization Q5_K_M; its GGUF files are", "a-Q8_0.gguf", "q2/a-q2_k.gguf", "MB"], lacks=["README"])
    run("-hf", "user/choice", "-hff", "b.gguf", code=1, has=["user/choice has no file b.gguf; ", "a-Q4_K.gguf"])
    HUB.add("user/none", {"model.safetensors": File(b"x"), "mmproj.gguf": File(b"x")})
    run("-hf", "user/none", code=1, has=["user/none has no model of text", "mmproj.gguf"])
    HUB.add("user/empty", {"model.safetensors": File(b"x")})
    run("-hf", "user/empty", code=1, has=["user/empty has no GGUF file", "no Hugging Face folder (config.json with safetensors)"])
    HUB.add("user/two", {"a-Q4_K_M.gguf": File(DATA), "UD-a-Q4_K_M.gguf": File(OTHER)})
    run("-hf", "user/two", has=["note: user/two has 2 files with this quantization; a-Q4_K_M.gguf is used"])
    HUB.add("user/eight", {"z.gguf": File(DATA), "b-Q8_0.gguf": File(DATA), "c.gguf": File(DATA)})
    run("-hf", "user/eight", has=["b-Q8_0.gguf"])
    HUB.add("user/first", {"z.gguf": File(DATA), "c.gguf": File(DATA)})
    run("-hf", "user/first", has=["downloading c.gguf"])


def test_eye():
    """The eye of a repository comes with its model, and one that is of no use is left out."""
    red, eye = TMP.name + "/red.ppm", TMP.name + "/eye.gguf"
    with open(red, "wb") as f:
        f.write(eye_file.ppm((255, 0, 0)))
    eye_file.llava(eye, 128)
    with open(eye, "rb") as f:
        bytes_of_eye = f.read()
    HUB.add("user/sees", {"a-Q4_K_M.gguf": File(DATA), "mmproj-a-F16.gguf": File(bytes_of_eye), "mmproj-a-F32.gguf": File(b"x")})
    HUB.take_log()
    want, _ = run("-m", MODEL, "--mmproj", eye, "--image", red)
    got, _ = run("-hf", "user/sees", "--image", red)
    check(got == want != "" and len(ranges(HUB.take_log())) == 2, "a model with its eye", got)
    check(holds("user/sees", "mmproj-a-F16.gguf", bytes_of_eye) and not os.path.exists(cached("user/sees", "mmproj-a-F32.gguf")), "the eye of f16")
    check(run("-hf", "user/sees", "--image", red)[0] == want and not ranges(HUB.take_log()), "nothing is downloaded again")
    check(run("-hf", "user/sees", "--image", red, "--offline")[0] == want, "offline")
    run("-hf", "user/sees", "--image", red, "--no-mmproj", code=2, has=["--image needs the model's eye"])
    run("-hf", "user/sees", "--image", red, "--mmproj", eye)
    HUB.add("user/useless", {"a-Q4_K_M.gguf": File(DATA), "mmproj-a-F16.gguf": File(OTHER)})
    run("-hf", "user/useless", has=["the model sees no pictures", "makes no rows of pictures"])


def test_older():
    """Speech models in ggml's older format, by what their names have besides "ggml"; here, one without tensors."""
    n_mel, words = 1, [b"a", b"b", b"ab"]
    data = b"lmgg" + struct.pack("<11i", 3 + 1608, 4, 2, 1, 1, 4, 2, 1, 1, n_mel, 0) + struct.pack("<2i", n_mel, 201) + bytes(4 * 201)
    data += struct.pack("<i", len(words)) + b"".join(struct.pack("<i", len(w)) + w for w in words)
    HUB.add("user/speech", {name: File(data) for name in ("ggml-base.bin", "ggml-base-q5_1.bin", "ggml-base.en.bin")})
    for wish, name in ((":base-q5_1", "ggml-base-q5_1.bin"), (":base.en", "ggml-base.en.bin"), (":base", "ggml-base.bin")):
        out, _ = run("-hf", "user/speech" + wish, "--ids", "-p", "ab", tool="llm-tokenize", text=False)
        check(out.strip() == "[2]" and holds("user/speech", name, data), f"user/speech{wish} is {name}", out)


def test_list():
    out, err = run("-hf", "user/choice", "--hf-list", text=False)
    check("a-Q8_0.gguf  (in the cache)" in out and "mmproj" in out and "README" not in out and not err, "--hf-list", out + err)
    for tool in ("llm-server", "llm-bench", "llm-perplexity", "llm-tokenize"):
        if os.path.exists(os.path.join(BIN, tool)):
            check(run("-hf", "user/choice", "--hf-list", tool=tool, text=False)[0] == out, tool + " --hf-list")
    out, _ = run("-hf", "user/choice", "--hf-list", "--offline", text=False)
    check("q2/a-q2_k.gguf" in out and "mmproj" not in out, "--hf-list --offline", out)
    HUB.add("user/pages", {"x%d.gguf" % i: File(b"1234567") for i in range(7)}, page=3)
    out, _ = run("-hf", "user/pages", "--hf-list", text=False)
    check(len(out.splitlines()) == 7 and "7 bytes  x6.gguf" in out, "a list of three pages", out)


def test_cache_list():
    """--cache-list, of what was downloaded and of what somebody put there."""
    HUB.add("user/list", {"m-Q8_0.gguf": File(DATA), "m-Q4_K_M.gguf": File(DATA)})
    folder = TMP.name + "/listed"
    env = {"LLM_CACHE": folder}
    check(run("--cache-list", env=env, text=False, has=["llm-cli: 0 models, 0 bytes, in " + folder])[0] == "", "an empty cache")
    run("-hf", "user/list:Q8_0", env=env)
    run("-mu", HUB.url + "/cdn/user/list/m-Q4_K_M.gguf", env=env)

    def put(path, data=b"x"):
        path = os.path.join(os.fsencode(folder), path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)

    for path in (b"hub/a/st/config.json", b"hub/a/st/model.safetensors", b"hub/a/split/m-00001-of-00002.gguf", b"hub/a/split/m-00002-of-00002.gguf",
                 b"hub/a/half/m-00001-of-00002.gguf", b"hub/a/mark/m-00001-of-00001.gguf", b"hub/a/mark/m-00001-of-00001.gguf.unfinished",
                 b"hub/a/begun/m.gguf.12.part", b"hub/a/file", b"hub/a/.hidden/m.gguf", b"hub/b ad/re\x1b[31mpo/m.gguf", b"hub/a/\xff\xfe/m.gguf",
                 b"hub/a/in/\x1b[31m.gguf", b"hub/a/in/m.gguf.version", b"url/\x1b[31m/m.gguf", b"url/\xff/x.gguf", b"hub/c"):
        put(path)
    os.symlink("loop", folder + "/hub/a/loop")
    os.symlink(folder + "/hub", folder + "/hub/a/up")
    closed = folder + "/hub/a/closed"
    os.makedirs(closed)
    os.chmod(closed, 0)
    out, err = run("-cl", env=env, text=False, has=["loop: Too many levels of symbolic links", "begun: no model in it is complete", "is not the name of a repository"])
    for line in ("a/st  Hugging Face folder  (2 files)", "a/split  m-00001-of-00002.gguf  (2 parts)", "user/list  m-Q8_0.gguf",
                 "a/half  m-00001-of-00002.gguf  (2 parts)  (its download was interrupted)", "a/mark  m-00001-of-00001.gguf  (its download was interrupted)"):
        check(sum(row.endswith("  " + line) for row in out.splitlines()) == 1, "--cache-list: " + line, out + err)
    check(out.count("/url/") == 3 and ".hidden" not in out + err, "--cache-list: of URLs", out)
    check(os.getuid() == 0 or "closed: Permission denied" in err, "--cache-list: a folder that cannot be read", err)
    for tool in ("llm-server", "llm-bench", "llm-imatrix", "llm-perplexity", "llm-tokenize"):
        if os.path.exists(os.path.join(BIN, tool)):
            check(run("--cache-list", tool=tool, env=env, text=False)[0] == out, tool + " --cache-list")
    out, _ = run("-hf", "a/half", "--hf-list", "--offline", env=env, text=False)
    check("m-00001-of-00002.gguf  (2 parts)\n" in out, "--hf-list: half a model is not in the cache", out)
    os.chmod(closed, 0o700)
    put(b"not a folder")
    run("--cache-list", env={"LLM_CACHE": folder + "/not a folder"}, text=False, has=["Not a directory"])
    run("--cache-list", env={"HOME": "", "XDG_CACHE_HOME": ""}, text=False, code=1, has=["set LLM_CACHE, or HOME"])


def test_tools():
    """The other tools get models, too."""
    out, _ = run("-hf", "user/choice", "--ids", "-p", "Once", tool="llm-tokenize", text=False)
    check(out == run("-m", MODEL, "--ids", "-p", "Once", tool="llm-tokenize", text=False)[0], "llm-tokenize -hf", out)
    run("-hf", "user/choice", "-p", "8", "-n", "0", "-r", "1", "--no-limits", "--no-warmup", "-t", "1", tool="llm-bench", text=False, has=["pp8"])
    with open(TMP.name + "/text", "w", encoding="utf-8") as f:
        f.write("Once upon a time there was a cat. " * 20)
    run("-hf", "user/choice", "-f", TMP.name + "/text", "-c", "32", "-t", "1", tool="llm-perplexity", text=False)
    run("-hf", "user/choice", "-hfd", "user/choice:Q8_0", "--draft-max", "4", has=["guesses"])
    run("-hf", "user/choice", "-hfd", "user/absent", code=1, has=["user/absent"])
    if os.path.exists(os.path.join(BIN, "llm-server")):
        run("-hf", "user/absent", tool="llm-server", text=False, code=1, has=["user/absent", "private or gated"])


def example(model, env=None):
    p = subprocess.run([EXAMPLE, model, "Once upon a time"], env=dict(ENV, **(env or {})), capture_output=True, timeout=120, text=True)
    return p.returncode, p.stdout, p.stderr


def test_library():
    """A program of the library opens a repository as llm-cli does, and finds what was downloaded."""
    HUB.add("user/program", {"m-Q4_K_M.gguf": File(DATA), "m-Q8_0.gguf": File(OTHER)})
    want = example(MODEL)[1]
    check(len(want) > 20 and example("hf:user/program")[:2] == (0, want), "hf:user/program", example("hf:user/program"))
    check(holds("user/program", "m-Q4_K_M.gguf", DATA) and not os.path.exists(cached("user/program", "m-Q8_0.gguf")), "one file of user/program")
    check(example("hf:user/program:Q8_0")[:2] == (0, want) and holds("user/program", "m-Q8_0.gguf", OTHER), "hf:user/program:Q8_0")
    HUB.take_log()
    run("-hf", "user/program", "--offline", lacks=["downloading"])
    check(example("hf:user/program", {"HF_ENDPOINT": "http://127.0.0.1:9"})[:2] == (0, want), "the cache without a hub")
    check(not HUB.take_log(), "nobody was asked")
    for model, words in (("hf:user/absent", "user/absent does not exist, or is private or gated"), ("hf:user", "'user' is not USER/REPO"), ("hf:", "is not USER/REPO"),
                         ("hf:user/program:Q5_K", "has no file with quantization Q5_K; its GGUF files are m-Q4_K_M.gguf")):
        code, out, err = example(model)
        check(code == 1 and words in err, model, (code, out, err))


def test_host_program():
    """A curl that ends at once, and a program that ignores SIGCHLD, are no trouble for the program that opens a model."""
    folder = TMP.name + "/broken"
    os.mkdir(folder)
    with open(folder + "/curl", "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec 0<&-\nexit 3\n")
    os.chmod(folder + "/curl", 0o755)
    for _ in range(20):
        code, _, err = example("hf:user/nobody", {"PATH": folder + ":" + os.environ["PATH"]})
        check(code == 1 and "user/nobody" in err, "a curl that ends at once", (code, err))
    p = subprocess.run([EXAMPLE, "hf:user/absent", "Once"], env=ENV, capture_output=True, timeout=60, text=True,
                       preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    check(p.returncode == 1 and "user/absent does not exist" in p.stderr, "SIGCHLD is ignored", (p.returncode, p.stderr))
    check(run("-m", "hf:user/program", "--offline")[0] == run("-hf", "hf:user/program", "--offline")[0], "-m hf:USER/REPO")


def test_cache():
    """A file in the cache is used as long as it is the hub's; a newer one replaces it."""
    HUB.add("user/news", {"m.gguf": File(DATA)})
    run("-hf", "user/news", has=["downloading m.gguf"])
    HUB.take_log()
    run("-hf", "user/news", lacks=["downloading", "note"])
    check(len(HUB.take_log()) == 1, "one request if the file is current")
    HUB.repos["user/news"]["m.gguf"] = File(OTHER)
    run("-hf", "user/news", has=["downloading"])
    check(holds("user/news", "m.gguf", OTHER), "the newer file")
    os.remove(cached("user/news", "m.gguf.version"))
    run("-hf", "user/news", lacks=["downloading"], what="a file that was put there by hand")
    check(os.path.exists(cached("user/news", "m.gguf.version")), "its version")
    with open(cached("user/news", "m.gguf"), "r+b") as f:
        f.write(b"GGUX")
    os.remove(cached("user/news", "m.gguf.version"))
    run("-hf", "user/news", has=["downloading"], what="a damaged file without version")
    check(holds("user/news", "m.gguf", OTHER), "is replaced")
    HUB.add("user/small", {"m.gguf": File(DATA, lfs=False)})
    run("-hf", "user/small", has=["downloading"])
    run("-hf", "user/small", lacks=["downloading"])
    own = TMP.name + "/own"
    run("-hf", "user/news", env={"LLM_CACHE": own}, has=["downloading"])
    check(holds("user/news", "m.gguf", OTHER, own), "LLM_CACHE")
    run("-hf", "user/news", env={"XDG_CACHE_HOME": "relative"}, has=["downloading"])
    check(holds("user/news", "m.gguf", OTHER, TMP.name + "/.cache/ggml-lite"), "~/.cache")
    run("-hf", "user/news", env={"XDG_CACHE_HOME": "", "HOME": ""}, code=1, has=["LLM_CACHE"])


def test_offline():
    HUB.take_log()
    run("-hf", "user/news", "--offline")
    run("-hf", "user/choice:Q8_0", "--offline")
    run("-hf", "user/choice:Q6_K", "--offline", code=1, has=["user/choice has no file with quantization Q6_K in the cache", "a-Q8_0.gguf"])
    run("-hf", "user/never", "--offline", code=1, has=["user/never is not in the cache", ROOT])
    run("-mu", HUB.url + "/never.gguf", "--offline", code=1, has=["is not in the cache"])
    run("-mu", HUB.url + "/\x1b[31m.gguf", "--offline", code=1, has=["is not in the cache"])
    check(not HUB.take_log(), "--offline asks nobody")
    dead = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    run("-hf", "user/news", env=dead, has=["note: http://127.0.0.1:9: ", "The file in the cache is used: m.gguf"])
    run("-hf", "user/never", env=dead, code=1, has=["http://127.0.0.1:9: ", "not in the cache either", "http://127.0.0.1:9/user/never/tree/main"])
    no_curl = {"PATH": TMP.name + "/nothing"}
    run("-hf", "user/news", env=no_curl, has=["curl", "is not installed", "The file in the cache is used"])
    run("-hf", "user/never", env=no_curl, code=1, has=["curl", "is not installed", HUB.url + "/user/never/tree/main", "use the path of the file"])
    run("-mu", HUB.url + "/never.gguf", env=no_curl, code=1, has=["curl", "is not installed"])
    gone = HUB.repos.pop("user/news")
    run("-hf", "user/news", has=["note: repository user/news does not exist, or is private", "The file in the cache is used"])
    HUB.repos["user/news"] = gone


def test_patience():
    """Downloads that fail after several tries: each takes seconds, so they run at the same time."""
    cut = len(DATA) // 3
    HUB.add("user/cuts", {"m.gguf": File(DATA, cuts=[cut, 0, 0, 0])})
    HUB.add("user/less", {"m.gguf": File(DATA, size=len(DATA) + 10)})
    HUB.add("user/cdn", {"m.gguf": File(DATA, to="http://127.0.0.1:9/x")})
    together(lambda: run("-hf", "user/cuts", code=1, has=["trying again in 4 s", "are kept", "goes on from there"]),
             lambda: run("-hf", "user/less", code=1, has=["ended early"]),
             lambda: run("-hf", "user/cdn", code=1, has=["127.0.0.1", "trying again in 1 s"], lacks=["status 302"]))


def test_resume():
    """What is left of user/cuts, and other downloads that were cut, are continued."""
    cut = len(DATA) // 3
    HUB.add("user/cut", {"m.gguf": File(DATA, cuts=[cut])})
    HUB.take_log()
    run("-hf", "user/cut", has=["trying again in 1 s"])
    check(ranges(HUB.take_log()) == [None, "bytes=%d-" % cut] and holds("user/cut", "m.gguf", DATA), "a cut is continued")
    check([os.path.getsize(p) for p in parts("user/cuts")] == [cut], "the part", parts("user/cuts"))
    HUB.take_log()
    run("-hf", "user/cuts")
    check(ranges(HUB.take_log()) == ["bytes=%d-" % cut] and not parts("user/cuts"), "the next run continues")
    HUB.add("user/norange", {"m.gguf": File(DATA, cuts=[cut], ranges=False)})
    run("-hf", "user/norange", has=["starting over"])
    check(holds("user/norange", "m.gguf", DATA), "a server without ranges")
    # a part of another version stays apart
    HUB.add("user/changed", {"m.gguf": File(DATA, cuts=[cut], good=1, status=404)})
    run("-hf", "user/changed", code=1, has=["are kept"])
    HUB.repos["user/changed"]["m.gguf"] = File(OTHER)
    HUB.take_log()
    run("-hf", "user/changed")
    check(ranges(HUB.take_log()) == [None] and holds("user/changed", "m.gguf", OTHER), "a part of another version")
    # a part that is too long
    HUB.add("user/long", {"m.gguf": File(DATA, cuts=[cut], good=1, status=404)})
    run("-hf", "user/long", code=1)
    HUB.repos["user/long"]["m.gguf"].status = None
    with open(parts("user/long")[0], "ab") as f:
        f.write(b"\0" * len(DATA))
    run("-hf", "user/long", has=["longer than the file"])


def test_refused_resume():
    """A partial download that the server cannot continue is begun again, not tried for ever."""
    cut = len(DATA) // 3
    for status in (206, 416):
        HUB.add("user/refuses", {"m.gguf": File(DATA, cuts=[cut], refuses=status)})
        run("-hf", "user/refuses", has=["trying again in 1 s", "starting over"], what="status %d" % status)
        check(holds("user/refuses", "m.gguf", DATA), "all bytes after status %d" % status)
        shutil.rmtree(ROOT + "/hub/user/refuses")


def test_two_versions():
    """Bytes of two versions of a URL's file are never put together."""
    cut = len(DATA) // 3
    other = DATA[:-1] + bytes([DATA[-1] ^ 1])  # as long, and also a model
    for etag in (True, False):
        manner = {} if etag else {"etag": None}
        name = "etag" if etag else "none"
        HUB.add("user/mix", {name + ".gguf": File(DATA, cuts=[cut], after=File(b"GGUX" + other[4:]), **manner)})
        out, err = run("-mu", HUB.url + "/cdn/user/mix/%s.gguf" % name, code=1, has=["trying again in 1 s"])
        found = [os.path.join(at, f) for at, _, names in os.walk(ROOT + "/url") for f in names if f.startswith(name + ".gguf")]
        for path in found:
            with open(path, "rb") as f:
                check(path.endswith(".version") or f.read() == b"GGUX" + other[4:], "a mixture of two versions: " + path, err)
        HUB.repos["user/mix"][name + ".gguf"] = File(other, **manner)
        run("-mu", HUB.url + "/cdn/user/mix/%s.gguf" % name, has=["downloading"], what="the next version of " + name)


def test_odd_cache():
    """Named pipes and links in the cache."""
    HUB.add("user/pipe", {"m.gguf": File(DATA, cuts=[100], good=1, status=404)})
    run("-hf", "user/pipe", code=1)
    part = parts("user/pipe")[0]
    HUB.repos["user/pipe"]["m.gguf"].status = None
    precious = TMP.name + "/precious"
    with open(precious, "wb") as f:
        f.write(b"precious")
    os.remove(part)
    os.symlink(precious, part)
    run("-hf", "user/pipe", code=1, has=[".part"])
    with open(precious, "rb") as f:
        check(f.read() == b"precious", "a link in place of the part")
    os.remove(part)
    run("-hf", "user/pipe")
    os.remove(cached("user/pipe", "m.gguf.version"))
    os.mkfifo(cached("user/pipe", "m.gguf.version"))
    run("-hf", "user/pipe", what="a named pipe")


def test_wrong_digest():
    bad = File(DATA, sha256="0123456789abcdef" * 4)
    HUB.add("user/wrong", {"m.gguf": bad})
    good = mock_hub.hashlib.sha256(DATA).hexdigest()
    run("-hf", "user/wrong", code=1, has=["wrong SHA-256", good, bad.sha256, "removed"])
    check(not parts("user/wrong") and not os.path.exists(cached("user/wrong", "m.gguf")), "nothing is left")
    # an older file stays when its successor is wrong
    HUB.add("user/old", {"m.gguf": File(DATA)})
    run("-hf", "user/old")
    HUB.add("user/old", {"m.gguf": bad})
    run("-hf", "user/old", code=1, has=["wrong SHA-256"])
    run("-hf", "user/old", "--offline")
    HUB.add("user/more", {"m.gguf": File(DATA, size=len(DATA) - 10)})
    run("-hf", "user/more", code=1, has=["more than the %d bytes" % (len(DATA) - 10)])


def test_errors():
    HUB.add("user/gated", {"m.gguf": File(DATA)}, token="sesame")
    run("-hf", "user/gated", code=1, has=["user/gated is open only to users who were granted access (status 401)", "a token", "HF_TOKEN"])
    run("-hf", "user/gated", "--hf-token", "other", code=1, has=["(status 403)", "the token was not accepted"], lacks=["other;"])
    run("-hf", "user/gated", env={"HF_TOKEN": "sesame"}, has=["downloading"])
    run("-hf", "user/gated", "-hft", "a\nb", code=2, has=["control characters"])
    run("-hf", "user/absent", code=1, has=["repository user/absent does not exist, or is private or gated"])
    for status, words in ((404, "repository user/odd does not exist (status 404)"), (429, "too many requests (status 429); try again in 9 seconds"),
                          (503, "the server has a problem (status 503)"), (418, "status 418")):
        HUB.add("user/odd", {}, answer=(status, b"\x1b[31m", {"Retry_After": "9"}))
        run("-hf", "user/odd", code=1, has=[words])
    for data, words in ((b"<html>", "list of files"), (b"{}", "expected a list of files, found an object"), (b"[1, null, {}]", "no GGUF file"),
                        (b'[{"type":"file","path":"m.gguf","size":-1}]', "m.gguf has no valid size"),
                        (b'[{"type":"file","path":"m.gguf","size":5,"lfs":{"oid":"../../x","size":5}}]', "no valid SHA-256: '../../x'"),
                        (b"[" * 1000, "list of files"), (b"", "list of files"), (b" " * (65 << 20), "more than 64 MiB")):
        HUB.add("user/odd", {}, answer=(200, data, {}))
        run("-hf", "user/odd", code=1, has=[words])
    HUB.add("user/odd", {}, answer=(200, b"[]", {"Link": '<http://127.0.0.1:9/more>; rel="next"'}))
    run("-hf", "user/odd", code=1, has=["another host, http://127.0.0.1:9/more"])
    HUB.add("user/odd", {}, answer=(200, b"[]", {"Link": '<%s/api/models/user/odd/tree/main?recursive=true>; rel="next"' % HUB.url}))
    run("-hf", "user/odd", code=1, has=["more than 100 pages"])
    for status, words in ((404, "does not exist (status 404)"), (429, "try again in 7 seconds")):
        HUB.add("user/file", {"m.gguf": File(DATA, status=status)})
        run("-hf", "user/file", code=1, has=["m.gguf", words])
    for to in ("file:///etc/passwd", "ftp://127.0.0.1/x"):
        HUB.add("user/away", {"m.gguf": File(DATA, to=to)})
        run("-hf", "user/away", code=1, has=["protocol that is not allowed"], lacks=["root:"])
    HUB.add("user/circle", {"m.gguf": File(DATA, to="/user/circle/resolve/main/m.gguf")})
    run("-hf", "user/circle", code=1, has=["too many redirects"])


def test_token():
    """The token goes to the hub, and nowhere else; it is not in the list of processes."""
    second = mock_hub.start()
    second.add("user/secret", {"m.gguf": File(DATA)})
    HUB.add("user/secret", {"m.gguf": File(DATA, to=second.url.replace("127.0.0.1", "localhost") + "/cdn/user/secret/m.gguf")}, token="sesame")
    run("-hf", "user/secret", "--hf-token", "sesame")
    check(second.log and not any("Authorization" in r.headers for r in second.log), "the token and another host", second.log)
    run("-mu", second.url + "/cdn/user/secret/m.gguf", "--hf-token", "sesame")
    check(not any("Authorization" in r.headers for r in second.log), "the token and a URL of another host", second.log)
    second.stop()
    run("-mu", HUB.url + "/user/gated/resolve/main/m.gguf", "--hf-token", "sesame", has=["downloading"])
    # an endpoint without a host would fit every URL
    HUB.take_log()
    for endpoint in ("http://", "https://", "http:///", "http:////", "http://:80", "http:///host", "http://a@b", "http://a?b", "http://a#b", "http://a b",
                     "http://\x1b"):
        run("-mu", HUB.url + "/x.gguf", env={"HF_ENDPOINT": endpoint, "HF_TOKEN": "sesame"}, code=2, has=["HF_ENDPOINT", "is not the URL of a server"])
    check(not HUB.take_log(), "a wrong endpoint asks nobody")


def test_hostile_names():
    names = ["../../out.gguf", "/etc/out.gguf", "a/../../../../out.gguf", "a//out.gguf", "./out.gguf", "a\\out.gguf", "a\nout.gguf", "\x1b[31m.gguf",
             "a/..gguf/../out.gguf", "x" * 300 + ".gguf", "/".join("d" * 50 for _ in range(20)) + "/out.gguf", ".gguf/.."]
    HUB.add("user/hostile", {n: File(DATA) for n in names})
    before = sorted(os.listdir(TMP.name))
    run("-hf", "user/hostile", code=1, has=["not a safe path", "user/hostile has no GGUF file"])
    check(sorted(os.listdir(TMP.name)) == before and not os.path.exists(ROOT + "/hub/user/hostile"), "nothing was written")
    HUB.add("user/half", {"../x-Q4_K_M.gguf": File(DATA), "good one %41#?.gguf": File(DATA)})
    run("-hf", "user/half", has=["downloading good one %41#?.gguf"])
    for name in ("user", "user/", "/repo", "user/..", "../..", "user/repo:", "user/re po", "user/repo/more", "a/b?c", "user/\x1b", "-x/y", ""):
        run("-hf=" + name, code=2, what="-hf=" + repr(name))
    run("-hf", "user/choice", "-hff", "../../x.gguf", code=1, has=["has no file ../../x.gguf"])


def test_options():
    run("-hf", "user/choice", "-m", MODEL, code=2, has=["-m and -hf cannot be used together"])
    run("-hf", "user/choice", "-mu", "http://x/y", code=2, has=["cannot be used together"])
    run("-hff", "x.gguf", code=2, has=["-hff needs -hf"])
    run("--hf-list", code=2, has=["--hf-list needs -hf"])
    run("-hf", "user/choice:Q8_0", "-hff", "x.gguf", code=2, has=["cannot be used together"])
    run("-hf", "user/choice", "-hfd", "user/choice", "--lookup", code=2, has=["cannot be used together"])
    run("-hf", "user/choice", env={"HF_ENDPOINT": "ftp://x"}, code=2, has=["HF_ENDPOINT", "https://"])
    run("-hf", "user/choice", env={"HF_ENDPOINT": "ftp://x", "MODEL_ENDPOINT": HUB.url})
    run("-mu", "file:///etc/passwd", code=2, has=["-mu", "https://"])
    HUB.add("user/late", {"m.gguf": File(DATA)})
    HUB.take_log()
    run("-hf", "user/late", "-o", TMP.name + "/no/such/folder", code=1, has=["-o"])
    check(not HUB.take_log(), "a path that cannot be written shows before a download")


def test_space():
    HUB.add("user/huge", {"m.gguf": File(DATA, size=10**18)})
    run("-hf", "user/huge", code=1, has=["needs 1000000 TB", "free", "LLM_CACHE"])
    check(not parts("user/huge"), "nothing was begun")
    # a disk that is full in the middle of it
    HUB.add("user/full", {"m.gguf": File(DATA)})
    run("-hf", "user/full", code=1, limit=100000, has=["File too large", "100 kB of 1.31 MB have come and are kept"])
    run("-hf", "user/full", has=["of which 100 kB are there"])
    check(holds("user/full", "m.gguf", DATA), "the rest after a full disk")


def test_split():
    names = ["big/m-Q4_K_M-0000%d-of-00003.gguf" % k for k in (1, 2, 3)]
    HUB.add("user/split", {n: File(b"GGUF part %d" % k) for k, n in enumerate(names)})
    out, _ = run("-hf", "user/split", "--hf-list", text=False)
    check(out.split() == ["33", "bytes", names[0], "(3", "parts)"], "a split model in the list", out)
    run("-hf", "user/split", code=1, has=["m-Q4_K_M-00001-of-00003.gguf"])
    check(all(holds("user/split", n, b"GGUF part %d" % k) for k, n in enumerate(names)), "all parts")
    HUB.take_log()
    run("-hf", "user/split", "-hff", "m-Q4_K_M-00002-of-00003.gguf", code=1, has=["m-Q4_K_M-00001-of-00003.gguf"])
    check(not ranges(HUB.take_log()), "another part names the model, too")
    run("-hf", "user/split", "--offline", code=1, has=["m-Q4_K_M-00001-of-00003.gguf"], lacks=["not in the cache"])
    os.remove(cached("user/split", names[1]))
    run("-hf", "user/split", "--offline", code=1, has=["cache"])
    del HUB.repos["user/split"][names[2]]
    run("-hf", "user/split", code=1, has=["lacks", "part 3 of 3"])
    HUB.add("user/parts", {"p-0000%d-of-00002.gguf" % k: File(b"GGUF part %d" % k) for k in (1, 2)})
    HUB.take_log()
    run("-mu", HUB.url + "/cdn/user/parts/p-00001-of-00002.gguf", code=1, has=["p-00001-of-00002.gguf"])
    check({r.path for r in HUB.take_log() if r.method == "GET"} == {"/cdn/user/parts/p-0000%d-of-00002.gguf" % k for k in (1, 2)}, "parts of a URL")


def test_url():
    HUB.add("user/url", {"m.gguf": File(DATA), "n.gguf": File(DATA, head=False), "x": File(DATA)})
    want = run("-m", MODEL)[0]
    for path in ("/user/url/resolve/main/m.gguf", "/cdn/user/url/m.gguf?download=true", "/cdn/user/url/x"):
        HUB.take_log()
        check(run("-mu", HUB.url + path, has=["downloading"] if "cdn" in path else [])[0] == want, "-mu " + path)
        run("-mu", HUB.url + path)
        run("-mu", HUB.url + path, "--offline")
        log = [r.method for r in HUB.take_log() if r.path.startswith("/cdn/")]
        check(log == ["HEAD", "GET", "HEAD"], "the requests of -mu " + path, log)
    run("-mu", HUB.url + "/cdn/user/url/n.gguf", code=1, has=["Content-Length"])
    HUB.take_log()
    for path in ("model.safetensors", "config.json", "pytorch_model.bin"):
        run("-mu", HUB.url + "/user/url/resolve/main/" + path, code=2, has=["-mu: " + path + " is no GGUF file", "the name of a repository, USER/REPO"])
    check(not HUB.take_log(), "-mu with a file of a folder asks nobody")
    run("-mu", HUB.url + "/nothing.gguf", code=1, has=["does not exist (status 404)"])
    bad = File(DATA, sha256="0123456789abcdef" * 4)
    HUB.add("user/url2", {"m.gguf": bad})
    run("-mu", HUB.url + "/user/url2/resolve/main/m.gguf", code=1, has=["wrong SHA-256", bad.sha256])


def test_signals():
    half = len(DATA) // 2
    f = File(DATA, stall=half)
    HUB.add("user/stall", {"m.gguf": f})
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        p = begin("-hf", "user/stall")
        wait_for(lambda: stalls("user/stall", "m.gguf", half), "half of the file")
        p.send_signal(number)
        err = p.communicate(timeout=60)[1].decode()
        check(p.returncode == code and "are kept" in err, "a signal during a download", (p.returncode, err))
        check([os.path.getsize(x) for x in parts("user/stall")] == [half], "the part after a signal")
        f.stall = half  # requests for the rest do not stall
        os.truncate(parts("user/stall")[0], half - 1 if number == signal.SIGINT else half)
    HUB.take_log()
    run("-hf", "user/stall")
    check(ranges(HUB.take_log()) == ["bytes=%d-" % half], "the rest")


def test_two_processes():
    f = File(DATA, stall=100)
    HUB.add("user/both", {"m.gguf": f})
    first = begin("-hf", "user/both")
    wait_for(lambda: stalls("user/both", "m.gguf", 100), "the first bytes")
    HUB.take_log()
    second = begin("-hf", "user/both")
    line = b""
    while b"waiting" not in line and second.poll() is None:
        line = second.stderr.readline()
    check(b"another process is downloading this file" in line, "the second process waits", line)
    f.go.set()
    texts = [p.communicate(timeout=60) for p in (first, second)]
    check(first.returncode == 0 and second.returncode == 0 and texts[0][0] == texts[1][0], "two processes", texts)
    check(not ranges(HUB.take_log()) and not parts("user/both"), "one download for both")


def test_progress():
    HUB.add("user/slow", {"a-long-name-of-a-model-Q4_K_M.gguf": File(DATA, slow=12)})
    seen = terminals.run(CLI, "-hf", "user/slow", *TEXT, env=ENV)[1].encode()
    lines = re.findall(rb"\r(\.\.[^\r]*Q4_K_M\.gguf \d+ %, [^\r]*/s(?:, \d+ s left)?)\x1b\[K", seen)
    check(len(lines) >= 2 and all(len(line) < 80 for line in lines), "progress on a terminal", seen)
    check(b"\r\x1b[K" in seen.split(b"left")[-1], "the line is erased", seen[-300:])


sys.exit(main(globals()))
