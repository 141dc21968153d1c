#!/usr/bin/env python3
"""What `llm-arch init` writes of the nano models, completed by a graph that reads each weight once, and the rotation, is a
descriptor of the model: it parses, its names and shapes are right, and it has no name that nothing reads.

    begun.py --arch LLM_ARCH --dir FOLDER [--shared FOLDER] [--check N] [--sample N] [--only NAME]

--shared: also the *.gguf.xz in that folder, which may be missing. --check: of N families, by GGL_TEST_SEED or the day, the first model
passes `llm-arch check`, too. --sample: each N-th model, others on each day.
"""
import argparse
import lzma
import os
import random
import re
import subprocess
import sys
import time
import zlib

import numpy as np

import eye_kinds
import gguf
import nano


def number(name, n_dims):
    """An expression for all numbers of a weight and its bias, as one number."""
    if n_dims == 1:
        return f"sum({name})"
    if n_dims == 4:
        n = "*".join(f"size({name}, {d})" for d in range(3))
        return f"sum(flat(linear(iota({n}), reshape({name}, {n}, size({name}, 3)))))"
    ones = f"iota(size({name}))" if n_dims == 2 else f"reshape(iota(size({name})*size({name}, 2)), size({name}), size({name}, 2))"
    return f"sum(flat(linear({ones}, {name})))"


def reading(line):
    """The lines that read what a line declares."""
    found = re.match(r"( *)(\w+) \[([^\]]*)\](.*?)(#|$)", line)
    if not found:
        rotation = re.match(r"( *)freq, mag = ", line)
        return [f"{rotation[1]}turn = 0.001 * sum(freq) * mag"] if rotation else []
    indent, name, dims, options, _ = found.groups()
    n_dims = len(dims.split(","))
    reads = [f"x = x + 0.001 * {number(name, n_dims)}"]
    if n_dims == 1 and " bias" in options:
        reads.append(f"x = x + 0.001 * sum({name}.bias)" + (f" if has({name}.bias) else x" if "bias?" in options else ""))
    elif "?" in options.replace("??", "").replace("bias?", ""):
        reads = [f"x = x + 0.001 * {number(name, n_dims)} if has({name}) else x"]
    return [indent + r for r in reads]


def complete(text):
    """The text with a graph. What is declared before x is read after it, of each stage."""
    out, early, begun = [], [], False
    normed = "(x, output_norm, eps)" in text
    taken = r"\b(token_embd|output|patch_embd)\b" if "reshape(patch_embd" in text else r"\b(token_embd|output)\b"
    for line in text.splitlines():
        starts = re.match(r"( *)(# )?x = ", line)
        begun = (begun or starts is not None) and not re.match(r"stage |prefix ", line)
        more = reading(line)
        out.append(re.sub(r"^# (x = |logits = )", r"\1", line))
        turned = [m for m in more if "turn =" in m]
        if turned:
            out.extend(turned)
            more = [re.match(" *", turned[0])[0] + "x = x + turn"]
        if begun:
            out.extend(more)
        else:
            early += [m for m in more if not re.search(taken, m) and not (normed and "(output_norm)" in m)]
        if starts:
            out.extend(starts[1] + m.strip() for m in early)
            early = []
    return "\n".join(out) + "\n"


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:2])}: {done.stderr.strip()}")
    return done.stdout


def look(tool, folder, name, model, check):
    begun, whole = (os.path.join(folder, f"begun-{name}{end}.arch") for end in ("", "-whole"))
    text = run(tool, "init", "-", model)
    with open(begun, "w") as f:
        f.write(text)
    with open(whole, "w") as f:
        f.write(complete(text))
    if "\n# logits" not in text and "\n# x = " not in text and "\n# layer l < 0:" not in text: # only the layers are left open, and this is what is reported
        done = subprocess.run([tool, "graph", begun, model, "--ignore-key", "*"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0 or not re.search("does not reach (the logits|an output)|are not read|is not read", done.stderr):
            raise RuntimeError(f"of its own: {done.stderr.strip()}")
    run(tool, "graph", whole, model, "--ignore-key", "*")
    if check:
        run(tool, "check", whole)
    os.remove(begun)
    os.remove(whole)


def seed():
    return int(os.environ.get("GGL_TEST_SEED") or time.time() // 86400)


def chosen(n):
    """n of the families."""
    print(f"samples are chosen by GGL_TEST_SEED={seed()}")
    families = sorted({c.arch for c in nano.CASES.values()})
    return set(random.Random(seed()).sample(families, min(n, len(families))))


def models(folder, shared):
    """Name, file, the family if it is its first model."""
    families = set()
    for name, case in nano.CASES.items():
        if case.descriptor and not case.embedded:
            continue
        if case.output == "guess" and case.keys.get("nextn_predict_layers", 1) > 1:  # lists of its keys end before the layers that guess
            continue
        if (case.output or "").startswith("guess") and not {"token_embd.weight", "output.weight"} & case.tensors.keys():  # it reads those of another model
            continue
        model = os.path.join(folder, f"begun-{name}.gguf")
        gguf.write(model, case.meta(), case.tensors)
        yield name, model, case.arch if case.arch not in families else None
        families.add(case.arch)
        os.remove(model)
    for name, eye in eye_kinds.KINDS.items():
        made = eye(np.random.default_rng(seed()))
        model = os.path.join(folder, f"begun-eye-{name}.gguf")
        gguf.write(model, made.meta, made.w)
        yield f"eye {name}", model, None
        os.remove(model)
    for name in sorted(os.listdir(shared)) if shared and os.path.isdir(shared) else []:
        if name.endswith(".gguf.xz"):
            model = os.path.join(folder, "begun-" + name[:-3])
            with lzma.open(os.path.join(shared, name)) as f, open(model, "wb") as out:
                out.write(f.read())
            yield name[:-8] + " (shared)", model, None
            os.remove(model)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--arch", required=True)
    p.add_argument("--cli")
    p.add_argument("--dir", default=".")
    p.add_argument("--shared")
    p.add_argument("--check", type=int, default=0)
    p.add_argument("--sample", type=int)
    p.add_argument("--only")
    a = p.parse_args()
    nano.load_all()
    checked = chosen(a.check)
    n = failed = 0
    for name, model, family in models(a.dir, a.shared):
        if a.only and name != a.only:
            continue
        if a.sample and zlib.crc32(name.encode()) % a.sample != seed() % a.sample:
            continue
        n += 1
        try:
            look(a.arch, a.dir, re.sub(r"\W", "-", name), model, family in checked)
        except RuntimeError as e:
            failed += 1
            print(f"FAILED {name}: {e}")
    print(f"{n} models, {failed} failed")
    return 1 if failed or n < (1 if a.only else 100 // (a.sample or 1)) else 0


if __name__ == "__main__":
    sys.exit(main())
