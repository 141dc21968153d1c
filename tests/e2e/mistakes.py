#!/usr/bin/env python3
"""mistakes.py TOOLS [--write]: makes the mistakes of docs/mistakes.md, and compares the messages and exit codes with the page's. In a message,
`..` stands for any text. Those of jobs of mpirun are made where there is Open MPI. --write puts the messages and codes of today into rows that differ. TOOLS: the folder of the programs."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import eye_file
import speech_file

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PAGE = os.path.join(ROOT, "docs/mistakes.md")
ROW = re.compile(r"^\| ``(.+?)`` \| (?:``(.*?)``)? \| (\d*) \|$")


def make_files(folder):
    """The files that the page's commands name."""
    def put(name, data):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
    with open(os.path.join(ROOT, "models/builtin/stories.gguf"), "rb") as f:
        model = f.read()
    key = b"general.architecture" + struct.pack("<IQ", 8, 5)
    put("model.gguf", model)
    put("models/model.gguf", model)
    put("truncated.gguf", model[:300000])
    count = b"llama.block_count" + struct.pack("<I", 4)
    at = model.index(count) + len(count)
    put("damaged.gguf", model[:at] + struct.pack("<I", 4259844) + model[at + 4:])
    put("utf16.txt", "Once upon a time\n".encode("utf-16"))
    put("page.gguf", b"<html><body>404: not found</body></html>")
    put("pointer.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    put("empty.gguf", b"")
    put("old.gguf", model[:4] + struct.pack("<I", 1) + model[8:])
    put("vocabulary.gguf", model[:8] + struct.pack("<Q", 0) + model[16:])
    put("unknown.gguf", model.replace(key + b"llama", key + b"novel"))
    put("rotated.gguf", model.replace(b"general.name", b"acme.rotated"))
    put("hf/config.json", b'{"architectures": ["LlamaForCausalLM"]}')
    put("hf/model.safetensors", struct.pack("<Q", 2) + b"{}")
    put("loose/model.safetensors", struct.pack("<Q", 2) + b"{}")
    put("pytorch_model.bin", b"PK\3\4" + bytes(22) + struct.pack("<HH", 16, 0) + b"archive/data.pkl")
    put("stories.bin", struct.pack("<7i", 64, 172, 5, 8, 4, 512, 512) + bytes(1000))
    put("cut.dat", struct.pack("<ii19sii", 1, 19, b"blk.0.attn_q.weight", 1, 288) + bytes(100))
    put("story.txt", b"Once upon a time\n")
    put("chats.jsonl", b"".join(b'{"messages": [{"role": "user", "content": "What is %d?"}, {"role": "assistant", "content": "A number."}]}\n' % i for i in range(40)))
    put("broken.jsonl", b'{"text": "Once"}\n{"text": "upon"\n')
    put("other.jsonl", b'{"txt": "Once"}\n')
    put("pairs.jsonl", b'{"prompt": "Once", "chosen": " upon", "rejected": " 7"}\n')
    put("table.csv", b"question,answer\nWho?,Tom\n")
    put("table.parquet", b"PAR1" + bytes(100))
    put("stopped.gguf.train", b"x")
    eye_file.llava(os.path.join(folder, "mmproj.gguf"), 128)
    eye_file.llava(os.path.join(folder, "mmproj-other.gguf"), 96)
    speech_file.speech(os.path.join(folder, "speech.gguf"))
    put("cat.ppm", eye_file.ppm((255, 0, 0)))
    put("cut.ppm", eye_file.ppm((255, 0, 0))[:100])
    put("cat.gif", b"GIF89a" + bytes(20))
    put("cat.heic", b"\0\0\0\x18ftypheic" + bytes(20))
    put("talk.pcm", b"\1\0\2\0" * 1000)
    put("talk.wav", b"RIFF" + struct.pack("<I4s4sIHHIIHH4sI", 36 + 3200, b"WAVE", b"fmt ", 16, 1, 1, 16000, 32000, 2, 16, b"data", 3200) + bytes(3200))
    with open(os.path.join(ROOT, "models/archs/llama.arch"), "rb") as f:
        put("typo.arch", f.read().replace(b"rms_norm(", b"rmsnorm(", 1))


# What lets mpirun start two processes here: as root, on one processor, and where processes may not read each other's memory.
ANYWHERE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def has_open_mpi():
    mpirun = shutil.which("mpirun")
    return mpirun and b"Open MPI" in subprocess.run([mpirun, "--version"], capture_output=True, check=False).stdout


def is_possible(command, message, tools):
    """Whether the mistake can be made here: the program is there, and what it needs."""
    words = command.split()
    if "mpirun" not in words:
        return os.access(os.path.join(tools, words[0]), os.X_OK)
    tool = next(w for w in words if w.startswith("llm-"))
    ok = os.access(os.path.join(tools, tool), os.X_OK) and os.path.exists(os.path.join(tools, "../lib/libggl-mpi.so")) and has_open_mpi()
    return ok and (os.geteuid() == 0 or "as root" not in message)


def settings(command, message):
    """The variables for a job of mpirun. What that itself says, it says to those who have set nothing, but for root, to whom it says first what root
    has to set."""
    if "mpirun" not in command.split() or "as root" in message:
        return {}
    return ANYWHERE if message.startswith("llm-") else {k: v for k, v in ANYWHERE.items() if "ROOT" in k}


def run(command, folder, tools, more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LLAMA_ARG_", "GGL_", "OMPI_"))}
    env["PATH"] = tools + ":" + env["PATH"]
    env.update(more)
    if "mpirun" in command.split(): # MPI itself leaves memory behind
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    r = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    return r.returncode, r.stderr.decode("utf-8", "replace").splitlines()


def matches(message, lines):
    pattern = ".*".join(re.escape(part) for part in message.split(".."))
    return any(re.fullmatch(pattern, line) for line in lines)


def main():
    write = "--write" in sys.argv
    tools = os.path.abspath([a for a in sys.argv[1:] if a != "--write"][0])
    folder = tempfile.mkdtemp()
    failed = n = 0
    page = []
    try:
        make_files(folder)
        with open(PAGE, encoding="utf-8") as f:
            text = f.read().splitlines()
        for line in text:
            row = ROW.match(line)
            if row and is_possible(row.group(1), row.group(2) or "", tools):
                n += 1
                tool = next(w for w in row.group(1).split() if w.startswith("llm-"))
                code, lines = run(row.group(1), folder, tools, settings(row.group(1), row.group(2) or ""))
                good = matches(row.group(2) or "", lines) and row.group(3) == str(code) and code in (1, 2)
                if not good and write:
                    own = [x for x in lines if x.startswith(tool) and ": note: " not in x] or lines
                    line = f"| ``{row.group(1)}`` | ``{own[-1] if own else ''}`` | {code} |"
                elif not good:
                    failed = 1
                    print(f"FAILED: {row.group(1)}\n  exit code {code}, page: {row.group(3)}\n  page: {row.group(2)}\n  now:  " + "\n        ".join(lines))
            page.append(line)
    finally:
        shutil.rmtree(folder)
    if write:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write("\n".join(page) + "\n")
    print(f"{n} mistakes")
    return failed or n < 20


sys.exit(main())
