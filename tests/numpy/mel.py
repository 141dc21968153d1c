#!/usr/bin/env python3
"""Log-mel spectrograms of seeded sounds, within 1e-6 of numpy's in float64, and those that another program recorded, within 1e-5.

    mel.py --dir FOLDER MEL [GOLDEN]

MEL is the program test-mel. GOLDEN is a folder of recorded spectrograms that is no part of the repository. Exit code 0, 1; 77 if a folder is given and
is not there.
"""
import argparse
import glob
import io
import lzma
import os
import struct
import subprocess
import sys
import wave

import numpy as np

import today


def slaney(rate, n_window, n_mel):
    """Triangles by interpolation between corners."""
    steps_per_octave = np.log(2) / (np.log(6.4) / 27)
    to_hz = lambda m: np.where(m < 15, m * 200 / 3, 1000 * 2.0 ** ((m - 15) / steps_per_octave))
    top = rate / 2
    top_mel = top * 3 / 200 if top < 1000 else 15 + np.log2(top / 1000) * steps_per_octave
    corners = to_hz(np.arange(n_mel + 2) * top_mel / (n_mel + 1))
    bins = np.arange(n_window // 2 + 1) * rate / n_window
    return np.array([np.interp(bins, corners[b : b + 3], [0, 1, 0], 0, 0) / ((corners[b + 2] - corners[b]) / 2) for b in range(n_mel)])


def spectrogram(x, filters, n_window, n_step, first, n, range_):
    half = n_window // 2
    heard = (len(x) + half) // n_step + 2
    silent = np.zeros(max(first + n, heard) * n_step + 2 * n_window)
    x = np.concatenate([x, silent])
    x = np.concatenate([x[half:0:-1], x])
    window = np.hanning(n_window + 1)[:-1]
    power = lambda rows: np.abs(np.fft.rfft(np.stack([x[r * n_step : r * n_step + n_window] for r in rows]) * window)) ** 2
    logs = lambda rows: np.log10(np.maximum(power(rows) @ filters.T, 1e-10))
    largest = logs(range(heard)).max()
    return (np.maximum(logs(range(first, first + n)), largest - range_) + 4) / 4


def htk(rate, n_fft, n_mel):
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), n_mel + 2) / 2595) - 1)
    bins = np.arange(n_fft // 2 + 1) * rate / n_fft
    return np.array([np.interp(bins, corners[b : b + 3], [0, 1, 0], 0, 0) for b in range(n_mel)])


def other_spectrogram(x, filters, n_window, n_fft, n_step, first, n, range_, magnitude, natural, added, edges, symmetric, emphasis):
    """As spectrogram, with what ears have otherwise. edges: 0: mirrored before the sound, 1: on both sides, 2: silence."""
    half = n_window // 2
    x = np.concatenate([x[:1], x[1:] - emphasis * x[:-1]]) if emphasis else x
    heard = (len(x) + half) // n_step + 2
    after = x[-2 : -2 - half : -1] if edges == 1 and len(x) > 1 else np.zeros(0)
    silent = np.zeros(max(first + n, heard) * n_step + 2 * n_window)
    whole = np.concatenate([x, after, silent[len(after) :]])
    whole = np.concatenate([whole[half:0:-1] if edges < 2 else np.zeros(half), whole])
    window = np.hanning(n_window) if symmetric else np.hanning(n_window + 1)[:-1]
    power = lambda rows: np.abs(np.fft.rfft(np.stack([whole[r * n_step : r * n_step + n_window] for r in rows]) * window, n_fft)) ** (1 if magnitude else 2)
    least = 1e-10
    logs = lambda rows: (np.log if natural else np.log10)((lambda p: p + least if added else np.maximum(p, least))(power(rows) @ filters.T))
    largest = logs(range(heard)).max()
    return (np.maximum(logs(range(first, first + n)), largest - range_) + 4) / 4


class Runner:
    def __init__(self, a):
        self.a, self.failed = a, 0
        self.at = lambda name: os.path.join(a.dir, f"mel-{os.getpid()}.{name}")

    def rows(self, x, filters, rate, n_window, n_step, n_mel, range_, part, first, n, more=""):
        np.asarray(x, np.float32).tofile(self.at("in"))
        if filters is not None:
            np.asarray(filters, np.float32).tofile(self.at("filters"))
        done = subprocess.run([self.a.mel, f"{rate},{n_window},{n_step},{n_mel},{range_}{more}", "" if filters is None else self.at("filters"), self.at("in"),
                               str(part), str(first), str(n), self.at("out")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode or done.stderr:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
        return np.fromfile(self.at("out"), np.float32).reshape(n, n_mel)

    def tell(self, name, got, want, most):
        off = np.abs(got - want).max() if got.shape == want.shape else np.inf
        self.failed += not off <= most
        print(f"{name:76} {off:8.1e}  {'ok' if off <= most else 'FAILED'}")

    def clean(self):
        for path in glob.glob(glob.escape(self.at("")) + "*"):
            os.unlink(path)


SHAPES = [(16000, 400, 160, 80), (16000, 400, 160, 128), (16000, 512, 160, 64), (8000, 256, 100, 23), (44100, 1022, 441, 100), (22050, 1024, 256, 80),
          (16000, 2, 1, 1), (16000, 34, 50, 5), (1000, 50, 7, 3), (48000, 4096, 4000, 256)]
LENGTHS = [0, 1, 2, 199, 200, 201, 202, 400, 2345]


def test_seeded(r, seed):
    g = np.random.default_rng(seed)
    shapes = SHAPES[:2] + [(int(g.integers(1000, 96000)), 2 * int(g.integers(1, 400)), int(g.integers(1, 300)), int(g.integers(1, 100)))]
    shapes += [SHAPES[int(g.integers(2, len(SHAPES)))] for _ in range(2)]
    for rate, n_window, n_step, n_mel in shapes:
        length = int(g.choice(LENGTHS)) if g.integers(2) else int(g.integers(1, 60)) * n_step
        x = g.normal(size=length) * 0.1 + 0.5 * np.sin(np.arange(length) * g.uniform(0, 3))
        x = (x * (np.arange(length) < g.uniform(0, 2) * length) * 10.0 ** g.uniform(-6, 0)).astype(np.float32)
        own = None if g.integers(3) else g.uniform(0, 1, (n_mel, n_window // 2 + 1)).astype(np.float32) * (g.uniform(size=(n_mel, n_window // 2 + 1)) < 0.1)
        range_ = 8 if g.integers(3) else int(g.integers(0, 10))
        first, n = int(g.integers(0, 2)) * int(g.integers(0, 200)), int(g.integers(1, 130))
        part = int(g.integers(1, 3 * n_window))
        want = spectrogram(x.astype(float), slaney(rate, n_window, n_mel) if own is None else own.astype(float), n_window, n_step, first, n, range_)
        got = r.rows(x, own, rate, n_window, n_step, n_mel, range_, part, first, n)
        r.tell(f"{length} samples at {rate}, window {n_window}, step {n_step}, {n_mel} bands, rows {first} + {n}", got, want, 1e-6)


def test_others(r, seed):
    g = np.random.default_rng(seed)
    for edges in range(3):
        n_window, n_step, n_mel, rate = 2 * int(g.integers(2, 200)), int(g.integers(1, 200)), int(g.integers(1, 60)), int(g.integers(4000, 48000))
        n_fft = n_window + 2 * int(g.integers(0, 100))
        of_htk, magnitude, natural, added, symmetric = (int(b) for b in g.integers(0, 2, 5))
        emphasis = float(g.choice([0, 0.97]))
        length = int(g.integers(n_window, 60 * n_step + n_window))
        x = (g.normal(size=length) * 0.1 + 0.5 * np.sin(np.arange(length) * g.uniform(0, 3))).astype(np.float32)
        first, n = int(g.integers(0, 20)), int(g.integers(1, 60))
        filters = htk(rate, n_fft, n_mel) if of_htk else slaney(rate, n_fft, n_mel)
        want = other_spectrogram(x.astype(float), filters, n_window, n_fft, n_step, first, n, 8, magnitude, natural, added, edges, symmetric, emphasis)
        more = f",{n_fft},{of_htk},{magnitude},{natural},{added},{edges},{symmetric},{emphasis}"
        got = r.rows(x, None, rate, n_window, n_step, n_mel, 8, int(g.integers(1, 3 * n_window)), first, n, more)
        r.tell(f"{length} samples at {rate}, window {n_window} of {n_fft}, step {n_step}, {n_mel} bands{more}", got, want, 2e-6)


def array(path):
    with lzma.open(path) as f:
        return np.load(io.BytesIO(f.read()))


def recorded(golden):
    """The filters of a model's file, and sounds with their recorded spectrograms."""
    for path in sorted(glob.glob(os.path.join(golden, "*.mel.npy.xz"))):
        name, sound = os.path.basename(path).split(".")[:2]
        with lzma.open(os.path.join(golden, name + ".bin.xz")) as f:
            f.seek(48)
            n_mel, n_bin = struct.unpack("<2i", f.read(8))
            filters = np.frombuffer(f.read(4 * n_mel * n_bin), "<f4").reshape(n_mel, n_bin)
        samples = path.replace(".mel.", ".samples.")
        if os.path.exists(samples):
            x = array(samples)
        else:
            with wave.open(os.path.join(golden, f"speech-{sound}.wav")) as w:
                x = np.frombuffer(w.readframes(w.getnframes()), "<i2") / 32768
        yield f"{name}, {sound}", filters, x, array(path).T


def test_recorded(r, golden):
    for name, filters, x, want in recorded(golden):
        for how, own in (("its filters", filters), ("computed filters", None)):
            r.tell(f"{name}, {how}", r.rows(x, own, 16000, 400, 160, len(filters), 8, 4096, 0, len(want)), want, 1e-5)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--dir", required=True)
    p.add_argument("mel")
    p.add_argument("golden", nargs="?")
    a = p.parse_args()
    if a.golden is not None and not glob.glob(os.path.join(a.golden, "*.mel.npy.xz")):
        print("skipped: recorded spectrograms: not part of the repository, and found in no folder GGL_SHARED")
        return 77
    r = Runner(a)
    try:
        if a.golden is not None:
            test_recorded(r, a.golden)
        else:
            for seed in today.sample("sounds", range(200), 8):
                test_seeded(r, seed)
                test_others(r, seed)
    finally:
        r.clean()
    return int(r.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
