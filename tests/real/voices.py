#!/usr/bin/env python3
"""Silero VAD on recorded speech: probabilities of llm-transcribe's library beside silero-vad's own and beside float64, and the parts that have speech.

    voices.py --bin FOLDER [--sounds FOLDER] [--seconds N] [--stages]

The weights are silero_vad.onnx of the package silero-vad, which has to be installed, as have torch and numpy; with onnxruntime its ONNX file is run, too. The speech is that of speech.py: N seconds (60)
of each of three languages. Probabilities must be within 1e-5 of those that numpy computes in float64, and the parts those of get_speech_timestamps, with three settings. --stages: what the
difference of silero-vad's own comes from: PyTorch computes all in float64 but one stage. Exit code 0, 1; 77: there is no silero-vad, or no speech.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import wave

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "numpy"), HERE]
try:
    import numpy as np
    import silero_vad
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
import speech  # of this folder
import voice  # of tests/numpy: the forward pass in float64

# threshold, least speech (ms), least silence (ms), most speech (s; 0: any), pad (ms)
SETTINGS = ((0.5, 250, 100, 0, 30), (0.5, 250, 2000, 0, 400), (0.6, 100, 100, 5, 30))
STAGES = ("spectrum", "size", "conv1", "conv2", "conv3", "conv4", "cell", "output")


def names(state):
    """The weights of the package's model under the names of voice.py."""
    get = lambda name: state["_model." + name].numpy()
    w = {key: get(name) for key, name in voice.EXPORT.items()}
    for i in range(4):
        w[f"conv{i}"], w[f"conv{i}_b"] = (get(f"encoder.{i}.reparam_conv.{end}") for end in ("weight", "bias"))
    return w


def chunks(x):
    return torch.from_numpy(np.pad(x, (0, -len(x) % voice.CHUNK))).split(voice.CHUNK)


def theirs(model, x):
    model.reset_states()
    return np.array([model(c, voice.RATE).item() for c in chunks(x)])


def ours(program, model, path, setting):
    done = subprocess.run([program, model, path, *map(str, setting)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    lines = done.stdout.split("\n")[:-1]
    return np.array([float(s) for s in lines if " " not in s]), [[int(v) for v in s.split()] for s in lines if " " in s]


def parts(model, x, setting):
    threshold, least, silence, most, pad = setting
    found = silero_vad.get_speech_timestamps(torch.from_numpy(x), model, threshold=threshold, min_speech_duration_ms=least, min_silence_duration_ms=silence,
                                             max_speech_duration_s=most or float("inf"), speech_pad_ms=pad)
    return [[t["start"], t["end"]] for t in found]


def by_stages(w, x, single):
    """Probabilities that PyTorch computes in float64, but the stages of `single` in float32."""
    F, w = torch.nn.functional, {k: torch.from_numpy(v) for k, v in w.items()}
    kind = lambda stage: torch.float32 if stage in single else torch.float64
    h, c, past, out = torch.zeros(1, 128), torch.zeros(1, 128), torch.zeros(voice.PAST), []

    def conv(stage, y, name, **how):
        d = kind(stage)
        b = w.get(name + "_b")
        return F.conv1d(y.to(d), w[name].to(d), None if b is None else b.to(d), **how)

    for piece in chunks(x):
        row = torch.cat([past, piece])
        past = row[-voice.PAST :]
        y = conv("spectrum", F.pad(row[None, None], (0, 64), "reflect"), "stft", stride=128).to(kind("size"))
        y = torch.sqrt(y[:, :129] ** 2 + y[:, 129:] ** 2)
        for i, (_, _, every) in enumerate(voice.LAYERS):
            y = F.relu(conv(f"conv{i + 1}", y, f"conv{i}", stride=every, padding=1))
        d = kind("cell")
        h, c = torch._VF.lstm_cell(y[:, :, 0].to(d), (h.to(d), c.to(d)), *(w[k].to(d) for k in ("ih", "hh", "ih_b", "hh_b")))
        out.append(torch.sigmoid(conv("output", F.relu(h)[:, :, None], "out")).item())
    return np.array(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True)
    p.add_argument("--sounds", default="")
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--stages", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(1)
    model, weights = silero_vad.load_silero_vad(), os.path.join(os.path.dirname(silero_vad.__file__), "data", "silero_vad.onnx")
    w, program = names(model.state_dict()), os.path.join(a.bin, "tests", "test-voice")
    try:
        models = {"silero-vad": model, "its ONNX": silero_vad.load_silero_vad(onnx=True)}
    except ImportError:
        models = {"silero-vad": model}
    apart = lambda x, y: np.abs(x - y).max()
    n_same = n_all = seconds = worst = 0
    print("| language | pieces | of float64: ours | " + " | ".join(models) + " | ours of silero-vad's | parts that are the same |\n" + "| --- " * (len(models) + 5) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for language in ("en", "fr", "ru"):
            made = speech.put_together(folder, language, found, a.seconds) if (found := speech.prompts(a.sounds, language)) else []
            off, same, n, spread = {}, 0, 0, 0
            for path, _, length in made:
                with wave.open(path) as f:
                    x = np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float32) / 32768
                exact, got = voice.probabilities(w, x), [ours(program, weights, path, s) for s in SETTINGS]
                found_by = {"ours": got[0][0]} | {name: theirs(m, x) for name, m in models.items()}
                off = {k: max(off.get(k, 0), apart(v, exact)) for k, v in found_by.items()}
                spread, n, seconds = max(spread, apart(found_by["ours"], found_by["silero-vad"])), n + len(exact), seconds + length
                same += sum(g[1] == parts(model, x, s) for g, s in zip(got, SETTINGS))
                if a.stages:
                    alone = {s: apart(by_stages(w, x, (s,)), exact) for s in STAGES}
                    print(f"# all stages in float64: {apart(by_stages(w, x, ()), exact):.1e} of float64; all in float32: {apart(by_stages(w, x, STAGES), found_by['silero-vad']):.1e} of silero-vad's; "
                          + ", ".join(f"{s} alone {v:.1e}" for s, v in alone.items()), flush=True)
            if made:
                print(f"| {language} | {n} | " + " | ".join(f"{v:.1e}" for v in off.values()) + f" | {spread:.1e} | {same} of {len(made) * len(SETTINGS)} |", flush=True)
                n_same, n_all, worst = n_same + same, n_all + len(made) * len(SETTINGS), max(worst, off["ours"])
    if not n_all:
        print("skipped: there is no speech")
        return 77
    print(f"# {seconds:.0f} s; ours at most {worst:.1e} of float64, {n_same} of {n_all} lists of parts are the same")
    return int(worst > 1e-5 or n_same < n_all)


if __name__ == "__main__":
    sys.exit(main())
