"""What the tests of -hf share: the hub, the tools, and the checks. SCRIPT FOLDER-OF-THE-TOOLS MODEL [EXAMPLE] [TEST..]"""
import os
import resource
import shutil
import subprocess
import sys
import threading
import time

import mock_hub
from checks import TMP, check, finish

BIN, MODEL, *REST = sys.argv[1:]
EXAMPLE = next((word for word in REST if os.sep in word), None)  # the program of examples/generate.c
ONLY = [word for word in REST if os.sep not in word]
CLI = os.path.join(BIN, "llm-cli")
with open(MODEL, "rb") as file:
    DATA = file.read()
OTHER = DATA + b"\0" * 64  # also a model: what follows the tensors does not count
TEXT = ["-p", "Once upon a time", "-n", "8", "--temp", "0", "-t", "1", "-no-cnv"]
HUB = mock_hub.start()
ENV = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and k not in ("HF_TOKEN", "MODEL_ENDPOINT", "LLM_CACHE")}
ENV.update(HF_ENDPOINT=HUB.url + "/", HOME=TMP.name, XDG_CACHE_HOME=TMP.name + "/cache", TERM="xterm")
ROOT = TMP.name + "/cache/ggml-lite"


def run(*args, tool="llm-cli", env=None, code=0, has=(), lacks=(), text=True, what=None, limit=None):
    """Runs a tool; returns (standard output, standard error). limit: the most bytes of a file."""
    p = subprocess.run([os.path.join(BIN, tool), *args, *(TEXT if text else [])], env=dict(ENV, **(env or {})), stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=120,
                       preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
    out, err = p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
    what = what or " ".join(args)
    check(p.returncode == code, f"{what}: exit code {p.returncode}, not {code}", out + err)
    for words in has:
        check(words in err + out, f"{what}: no '{words}'", out + err)
    for words in lacks:
        check(words not in err + out, f"{what}: '{words}'", out + err)
    check("\x1b" not in err + out, f"{what}: an escape sequence", repr(err))
    return out, err


def together(*functions):
    """Calls functions at the same time."""
    threads = [threading.Thread(target=f) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def cached(name, path, of=None):
    return os.path.join(of or ROOT, "hub", name, path)


def holds(name, path, data, of=None):
    try:
        with open(cached(name, path, of), "rb") as f:
            return f.read() == data
    except OSError:
        return False


def parts(name):
    folder = os.path.join(ROOT, "hub", name)
    return sorted(os.path.join(at, f) for at, _, names in os.walk(folder) for f in names if f.endswith(".part"))


def stalls(name, path, n):
    """True if the part of this file has so many bytes, of a server that sends no more of it for now."""
    return [os.path.getsize(p) for p in parts(name) if p.startswith(cached(name, path) + ".")] == [n]


def ranges(log):
    return [r.headers.get("Range") for r in log if r.path.startswith("/cdn/")]


def begin(*args, tool="llm-cli", text=True):
    return subprocess.Popen([os.path.join(BIN, tool), *args, *(TEXT if text else [])], env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(condition, what):
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    check(False, what + " does not come")
    return False


def main(tests):
    """Runs the functions whose names begin with test_, in their order. Returns an exit code."""
    if not shutil.which("curl"):
        print("skipped: curl is not installed")
        return 77
    for name, test in list(tests.items()):
        if name.startswith("test_") and (not ONLY or name in ONLY):
            test()
    HUB.stop()
    return finish()
