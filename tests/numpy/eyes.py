#!/usr/bin/env python3
"""Models that see, beside a pass in float64 that shares no code with them: seeded eyes (mmproj files) of each kind and small text models. Compared are the
rows that an eye makes of pictures of many shapes (llm-embed --dump rows), and the logits of texts with one picture, two, and the same one twice (llm-cli
--logits), within 1e-4 of the range. Other batches and numbers of threads give the same bits, and a prompt cache the same text.

    eyes.py --cli LLM_CLI --embed LLM_EMBED --dir FOLDER [KIND ..]
    eyes.py --cli LLM_CLI --embed LLM_EMBED --dir FOLDER --golden GOLDEN

GOLDEN is a folder of models, pictures, rows and logits that another program recorded; it is no part of the repository. Exit code 0, 1; 77 without that folder.
"""
import argparse
import glob
import json
import lzma
import os
import subprocess
import sys

import numpy as np

import eye_kinds
import eye_texts
import gguf
import today

LIMIT = 1e-4


class Runner:
    def __init__(self, a, flag="--image"):
        self.a, self.failed, self.flag = a, 0, flag
        self.at = lambda name: os.path.join(a.dir, f"eyes-{os.getpid()}.{name}")

    def tell(self, name, ok, what=""):
        self.failed += not ok
        print(f"{name:72} {'ok' if ok else 'FAILED'} {what}".rstrip())

    def run(self, tool, *words):
        done = subprocess.run([tool, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace")
        if done.returncode or "runtime error" in done.stderr:
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def rows(self, text, eye, picture, what="rows", words=()):
        self.run(self.a.embed, "-m", text, "--mmproj", eye, self.flag, picture, "--dump", what, "-o", self.at("npy"), *words)
        return np.load(self.at("npy"))

    def answer(self, text, eye, pictures, prompt, *words):
        """What llm-cli writes for a prompt with pictures."""
        images = [w for p in pictures for w in (self.flag, p)]
        return self.run(self.a.cli, "-m", text, "--mmproj", eye, *images, "-p", prompt, "-ctk", "f32", "-ctv", "f32", *words)

    def logits(self, text, eye, pictures, prompt, *words):
        """Of the tokens of the text."""
        self.answer(text, eye, pictures, prompt, "-n", "0", "--logits", self.at("npy"), *(words or ("-t", "1")))
        return np.load(self.at("npy"))

    def clean(self):
        for path in glob.glob(glob.escape(self.at("")) + "*"):
            os.unlink(path)


def off(got, want):
    """In parts of the range."""
    return np.abs(got - want).max() / np.ptp(want) if got.shape == want.shape else np.inf


# --- seeded models -------------------------------------------------------------------------------


def write_picture(path, a):
    with open(path, "wb") as f:
        f.write(b"P6 %d %d 255\n" % (a.shape[1], a.shape[0]) + a.tobytes())


def shapes(g):
    """Widths and heights: tiny, wide, tall, and as they come."""
    wide, tall = int(g.integers(60, 150)), int(g.integers(60, 150))
    return [(1, 1), (int(g.integers(2, 6)), int(g.integers(2, 6))), (wide, int(g.integers(8, 30))), (int(g.integers(8, 30)), tall),
            (int(g.integers(30, 120)), int(g.integers(30, 120)))]


def with_all(text, got, want):
    """Logits with those of `want` in place of the NaNs that rows of a picture have which see later ones."""
    return np.where(np.isnan(got), want, got) if text.together and got.shape == want.shape else got


def parts_of(eye, prompt, pictures):
    """A prompt as a list of tokens and Seen."""
    out, left = [], list(pictures)
    for k, piece in enumerate(prompt.split("<__media__>")):
        if k:
            for part in eye.look(left.pop(0)):
                out += eye_texts.tokens_of(part) if isinstance(part, str) else [part]
        out += eye_texts.tokens_of(piece)
    return out


def made_pictures(r, g, eye):
    """Paths, arrays and names."""
    for k, (width, height) in enumerate(shapes(g)):
        a = g.integers(0, 256, (height, width, 3), dtype=np.uint8)
        write_picture(r.at(f"{k}.ppm"), a)
        yield r.at(f"{k}.ppm"), a, f"{width} x {height}"


def test_sizes(r, name, eye, path, a):
    """Options that say how many rows a picture becomes; what the file says of the other end gives way to them."""
    look = lambda: np.concatenate([p.rows for p in eye.look(a) if not isinstance(p, str)])
    before = eye.least, eye.most
    thin = np.arange(600 * 3 * 3, dtype=np.uint8).reshape(3, 600, 3)
    write_picture(r.at("thin.ppm"), thin)
    for most in (1, 16) if eye.unit else ():
        eye.least, eye.most = min(before[0], most * eye.unit), most * eye.unit
        want = np.concatenate([p.rows for p in eye.look(thin) if not isinstance(p, str)])
        far = off(r.rows(r.at("text"), r.at("eye"), r.at("thin.ppm"), words=("--image-max-tokens", str(most))), want)
        r.tell(f"{name}: 600 x 3 pixels, --image-max-tokens {most}", far <= LIMIT and len(want) <= most, f"{far:.0e}, {len(want)} rows")
    eye.least, eye.most = before
    for least, most in ((0, 3), (60, 0), (5, 9)):
        words = [w for flag, n in (("--image-min-tokens", least), ("--image-max-tokens", most)) if n for w in (flag, str(n))]
        if not eye.unit:
            try:
                r.rows(r.at("text"), r.at("eye"), path, words=words)
                said = ""
            except RuntimeError as error:
                said = str(error)
            r.tell(f"{name}: {' '.join(words)}", "sees all pictures in sizes of its own" in said, said)
            return
        eye.least, eye.most = (n * eye.unit or old for n, old in zip((least, most), before))
        eye.least, eye.most = (eye.least, max(eye.most, eye.least)) if least else (min(eye.least, eye.most), eye.most)
        far = off(r.rows(r.at("text"), r.at("eye"), path, words=words), look())
        r.tell(f"{name}: {' '.join(words)}", far <= LIMIT, f"{far:.0e}")
    eye.least, eye.most = before


def test_room(r, name, eye, path, a):
    """A picture with more rows than the context is refused for these, and else for the text beside it."""
    n = sum(len(p.rows) for p in eye.look(a) if not isinstance(p, str))
    for n_ctx in (n - 1, n) if n > 1 else (n,):  # -c 0 is the model's own
        try:
            r.answer(r.at("text"), r.at("eye"), [path], "abc", "-n", "1", "-c", str(n_ctx))
            said = ""
        except RuntimeError as error:
            said = str(error)
        words = f"the picture has {n} tokens, but the context only {n_ctx}: give a larger context (n_ctx, or -c N)"
        ok = (words in said) == (n_ctx < n) and said != "" and ("--image-max-tokens" in said) == (n_ctx < n and eye.unit > 0)
        r.tell(f"{name}: a picture of {n} rows, -c {n_ctx}", ok, "" if ok else said)


def test_kind(r, kinds, kind, seed, made):
    g = np.random.default_rng(seed)
    eye = kinds[kind](g)
    text = eye_texts.KINDS[eye.text](g, eye)
    gguf.write(r.at("eye"), eye.meta, eye.w)
    gguf.write(r.at("text"), text.meta, text.w)
    pictures, looked = [], []
    for path, a, name in made(r, g, eye):
        pictures.append((path, a))
        want = np.concatenate([p.rows for p in eye.look(a) if not isinstance(p, str)])
        far = off(r.rows(r.at("text"), r.at("eye"), path), want)
        looked.append(f"{far:.0e}" + ("" if far <= LIMIT else f" of {name}"))
        r.failed += not far <= LIMIT
    r.tell(f"{kind} {seed}: rows, {eye.about}", True, ", ".join(looked) + ("  FAILED" if any(" of " in x for x in looked) else ""))
    if r.flag == "--image":
        test_sizes(r, f"{kind} {seed}", eye, *pictures[-1])
        test_room(r, f"{kind} {seed}", eye, *max(pictures, key=lambda x: sum(len(p.rows) for p in eye.look(x[1]) if not isinstance(p, str))))
    few = sorted(range(len(pictures)), key=lambda k: sum(len(p.rows) for p in eye.look(pictures[k][1]) if not isinstance(p, str)))
    one, other = pictures[few[1]], pictures[few[2]]
    for name, prompt, seen in (("one", "ab<__media__>cde", [one]), ("none", "abcde", []), ("two", "a<__media__>bcd<__media__>e", [other, one]),
                               ("one twice", "<__media__><__media__>wxyz", [one, one])):
        want = text.logits(parts_of(eye, prompt, [a for _, a in seen]))
        got = r.logits(r.at("text"), r.at("eye"), [path for path, _ in seen], prompt)
        got = with_all(text, got, want)
        far = off(got, want)
        r.tell(f"{kind} {seed}: logits, {name}", far <= LIMIT, f"{far:.0e}" if got.shape == want.shape else f"{got.shape}, not {want.shape}")
    paths = [other[0], one[0]]
    prompt = "ab<__media__>cdefgh<__media__>ijk"
    same = lambda *words: r.logits(r.at("text"), r.at("eye"), paths, prompt, *words)
    whole = same("-t", "1")
    least = max(len(p.rows) for _, a in (one, other) for p in eye.look(a) if not isinstance(p, str)) if text.together else 3
    r.tell(f"{kind} {seed}: the same bits, -t 3 -ub {least}", np.array_equal(whole, same("-t", "3", "-ub", str(least)), equal_nan=True))
    write = lambda *words: r.answer(r.at("text"), r.at("eye"), paths, prompt, "-t", "2", "-n", "8", "--temp", "3", "--seed", "7", "--no-display-prompt", *words)
    plain = write()
    saved, again = (write("--prompt-cache", r.at("cache")) for _ in range(2))
    os.unlink(r.at("cache"))
    r.tell(f"{kind} {seed}: the same text with a prompt cache", plain == saved == again, repr(plain))


# --- recorded ------------------------------------------------------------------------------------


def unpack(path, to):
    with lzma.open(path) as f, open(to, "wb") as out:
        out.write(f.read())


def test_recorded(r, golden):
    """Rows and pixels are float64's; logits of the other program have its own rounding of rows."""
    for path in sorted(glob.glob(os.path.join(golden, "*.mmproj.gguf.xz"))):
        model = os.path.basename(path).split(".")[0]
        unpack(path, r.at("eye"))
        unpack(os.path.join(golden, model + ".text.gguf.xz"), r.at("text"))
        # the recorded run of this model had another epsilon than its file
        words = ("--override-kv", ".attention.layer_norm_rms_epsilon=float:1e-6") if model == "qwen2vl" else ()
        for recorded in sorted(glob.glob(os.path.join(golden, model + ".*.rows.npy"))):
            picture = os.path.basename(recorded).split(".")[1]
            if recorded.endswith(".engine-rows.npy"):
                continue
            image = os.path.join(golden, picture + ".png")
            far = off(r.rows(r.at("text"), r.at("eye"), image), np.load(recorded))
            r.tell(f"{model}, {picture}: rows", far <= LIMIT, f"{far:.1e}")
            got = r.logits(r.at("text"), r.at("eye"), [image], "USER: <__media__> What is in the picture? ASSISTANT:", "-t", "1", *words)
            want = np.load(os.path.join(golden, f"{model}.{picture}.logits.npy"))
            seen = len(got) - len(want)  # rows of the picture, of which nothing was recorded, stand behind some tokens
            far = min(off(np.delete(got, range(k, k + seen), 0), want) for k in range(len(want)))
            r.tell(f"{model}, {picture}: logits", far <= 5e-3, f"{far:.1e}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--embed", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("--golden")
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("kinds", nargs="*")
    a = p.parse_args()
    r = Runner(a)
    if a.golden is not None and not glob.glob(os.path.join(a.golden, "*.mmproj.gguf.xz")):
        print("skipped: recorded rows of pictures: not part of the repository, and found in no folder GGL_SHARED")
        return 77
    try:
        if a.golden is not None:
            test_recorded(r, a.golden)
        for kind in (a.kinds or eye_kinds.KINDS) if a.golden is None else ():
            for seed in today.sample("eyes " + kind, range(100), a.seeds):
                test_kind(r, eye_kinds.KINDS, kind, seed, made_pictures)
    finally:
        r.clean()
    return int(r.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
