"""What tests of the tools share: running one, collecting faults, and writing safetensors. Tests end with sys.exit(checks.finish())."""
import json
import os
import struct
import subprocess
import tempfile

FAULTS = []
TMP = tempfile.TemporaryDirectory()


def path(name):
    """The path of a file in a folder that is removed at the end."""
    return os.path.join(TMP.name, name)


def check(ok, what, *seen):
    if not ok:
        print("FAILED:", what, *(str(x)[-1500:] for x in seen))
        FAULTS.append(what)


def finish():
    """Returns the exit code."""
    return 1 if FAULTS else 0


def put(name, data):
    """Writes a file of that folder, and the folders above it; returns its path."""
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "wb") as f:
        f.write(data)
    return path(name)


def runner(folder, cwd=None, both=False):
    """Returns a function that runs a tool of the folder, and returns its standard output, or, if `both`, that and standard error; bytes
    that are not UTF-8 are kept, too.

    code: the exit code that it must have; has, lacks: words that must be, or must not be, on standard error; said: words that must be on
    standard output or standard error; text: standard input, bytes."""
    def run(tool, *args, code=0, has="", lacks="\0", said="", text=b""):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("LLAMA_ARG_", "GGL_", "LLM_"))}
        r = subprocess.run([os.path.join(os.path.abspath(folder), tool), *args], input=text, capture_output=True, env=env, cwd=cwd, timeout=600, check=False)
        out, err = (b.decode("utf-8", "surrogateescape") for b in (r.stdout, r.stderr))
        what = " ".join([tool, *args])
        check(r.returncode == code, f"{what}: exit code {r.returncode}, not {code}", err)
        check(has in err, f"{what}: no '{has}'", err)
        check(lacks not in err, f"{what}: '{lacks}'", err)
        check(said in out + err, f"{what}: no '{said}'", out + err)
        return (out, err) if both else out
    return run


def write_safetensors(file, tensors):
    """tensors: name -> (type, shape, bytes)."""
    head, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)


def write_json(file, value):
    with open(file, "w", encoding="utf-8") as f:
        json.dump(value, f)
