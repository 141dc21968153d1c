#!/usr/bin/env python3
"""A model that finds speech: seeded random weights in each form in which it is published (safetensors, ONNX), converted and opened directly. The probabilities must be within
1e-5 of a forward pass in float64, and the parts that have speech those that the published rules give for them. Files that are damaged are refused with a line.

    voice.py --cli LLM_CLI --dir FOLDER VOICE

VOICE is the program test-voice. Exit code 0, 1.
"""
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys

import numpy as np

ARCHITECTURE = "silero-vad"
RATE, CHUNK, PAST = 16000, 512, 64
LAYERS = ((129, 128, 1), (128, 64, 2), (64, 64, 2), (64, 128, 1))
SAFE = {"stft": "stft_conv.weight", "hh": "lstm_cell.weight_hh", "ih": "lstm_cell.weight_ih", "hh_b": "lstm_cell.bias_hh", "ih_b": "lstm_cell.bias_ih", "out": "final_conv.weight", "out_b": "final_conv.bias"}
EXPORT = {"stft": "stft.forward_basis_buffer", "hh": "decoder.rnn.weight_hh", "ih": "decoder.rnn.weight_ih", "hh_b": "decoder.rnn.bias_hh", "ih_b": "decoder.rnn.bias_ih",
          "out": "decoder.decoder.2.weight", "out_b": "decoder.decoder.2.bias"}


def weights(g):
    put = lambda *shape, by=1.0: (g.standard_normal(shape) * by).astype(np.float32)
    k, n = np.arange(256), np.arange(129)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * k / 256)
    wave = 2 * np.pi * np.outer(n, k) / 256
    w = {"stft": np.concatenate([np.cos(wave) * window, -np.sin(wave) * window])[:, None].astype(np.float32)}
    for i, (n_in, n_out, _) in enumerate(LAYERS):
        w[f"conv{i}"], w[f"conv{i}_b"] = put(n_out, n_in, 3, by=1.2 / np.sqrt(n_in)), put(n_out, by=0.2)
    w |= {"ih": put(512, 128, by=0.3), "hh": put(512, 128, by=0.1), "ih_b": put(512, by=0.2), "hh_b": put(512, by=0.2), "out": put(1, 128, 1, by=0.8), "out_b": put(1, by=0.2)}
    return w


def probabilities(w, x):
    w = {name: v.astype(np.float64) for name, v in w.items()}
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    h, c, past, out = np.zeros(128), np.zeros(128), np.zeros(PAST), []
    x = np.concatenate([x, np.zeros(-len(x) % CHUNK)])
    for at in range(0, len(x), CHUNK):
        row = np.concatenate([past, x[at : at + CHUNK]])
        past = row[-PAST:]
        row = np.concatenate([row, row[-2 : -2 - 64 : -1]])
        y = w["stft"][:, 0] @ np.stack([row[128 * i : 128 * i + 256] for i in range(4)], 1)
        y = np.sqrt(y[:129] ** 2 + y[129:] ** 2)
        for i, (_, _, every) in enumerate(LAYERS):
            y = np.pad(y, ((0, 0), (1, 1)))
            y = np.stack([sum(w[f"conv{i}"][:, :, k] @ y[:, j + k] for k in range(3)) for j in range(0, y.shape[1] - 2, every)], 1)
            y = np.maximum(y + w[f"conv{i}_b"][:, None], 0)
        i, f, g, o = np.split(w["ih"] @ y.ravel() + w["ih_b"] + w["hh"] @ h + w["hh_b"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(sigmoid(w["out"][0, :, 0] @ np.maximum(h, 0) + w["out_b"][0]))
    return np.array(out)


def spans(p, n, threshold, speech, silence, most, pad):
    """The parts of n samples that have speech, by the published rules (silero-vad 6.2.3), as a machine with two states: begins, list of pauses."""
    ms = RATE / 1000
    most = (RATE * most if most else np.inf) - CHUNK - 2 * pad * ms
    found, begin, quiet, pauses = [], None, None, []
    for k, x in enumerate(p):
        now = k * CHUNK
        if x >= threshold and quiet is not None:
            if now - quiet > 98 * ms:
                pauses.append((quiet, now - quiet))
            quiet = None
        if x >= threshold and begin is None:
            begin = now
            continue
        if begin is not None and now - begin > most:
            if not pauses:
                found.append([begin, now])
                begin = quiet = None
                continue
            at, long = max(pauses, key=lambda pause: pause[1])
            found.append([begin, at])
            begin, quiet, pauses = at + long, None, []
        if x < max(threshold - 0.15, 0.01) and begin is not None:
            quiet = now if quiet is None else quiet
            if now - quiet >= silence * ms:
                if quiet - begin > speech * ms:
                    found.append([begin, quiet])
                begin, quiet, pauses = None, None, []
    if begin is not None and n - begin > speech * ms:
        found.append([begin, n])
    for a, b in zip(found, [*found[1:], None]):
        if a is found[0]:
            a[0] = int(max(0, a[0] - pad * ms))
        gap = b[0] - a[1] if b else np.inf
        a[1] = a[1] + gap // 2 if gap < 2 * pad * ms else int(min(n, a[1] + pad * ms))
        if b:
            b[0] = int(max(0, b[0] - (gap // 2 if gap < 2 * pad * ms else pad * ms)))
    return found


# --- files


def names(w, form):
    def name(key):
        if key.startswith("conv"):
            i, end = int(key[4]), "bias" if key.endswith("_b") else "weight"
            return f"conv{i + 1}.{end}" if form == "safetensors" else f"encoder.{i}.reparam_conv.{end}"
        return (SAFE if form == "safetensors" else EXPORT)[key]
    return {name(key): x for key, x in w.items()}


def operator(w, parts):
    """Names as of files whose cell is ONNX's operator LSTM, whose gates are in another order: i, o, f, g. parts: where the names of the first layer, the others and the output begin."""
    turned = {k: w[k].reshape(4, 128, -1)[[0, 3, 1, 2]].reshape(1, 512, -1) for k in ("ih", "hh", "ih_b", "hh_b")}
    both = np.concatenate([turned["ih_b"], turned["hh_b"]], 1).reshape(1, 1024)
    named = {parts[0] + "forward_basis_buffer": w["stft"], parts[2] + "weight": w["out"], parts[2] + "bias": w["out_b"], "onnx::LSTM_209": turned["ih"], "onnx::LSTM_210": turned["hh"], "onnx::LSTM_211": both}
    return named | {f"{parts[1]}{k[4]}.{'bias' if k.endswith('_b') else 'weight'}": x for k, x in w.items() if k.startswith("conv")}


def safetensors(tensors):
    head, at = {}, 0
    for name, x in tensors.items():
        head[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in tensors.values())


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    return varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value


def onnx_tensor(name, x):
    return b"".join(field(1, d) for d in x.shape) + field(2, 1) + field(8, name.encode()) + field(9, x.tobytes())


def onnx(tensors, nested, prefix="model."):
    """Initializers, or constants in a branch of a node, beside those of a branch that is not read."""
    shape = field(5, field(1, 2) + field(2, 7) + field(8, b"shape") + field(9, bytes(16)))
    if not nested:
        graph = b"".join(field(5, onnx_tensor(prefix + name, x)) for name, x in tensors.items()) + shape
    else:
        node = lambda name, x: field(1, field(2, name.encode()) + field(4, b"Constant") + field(5, field(1, b"value") + field(5, onnx_tensor("", x)) + field(20, 4)))
        branch = b"".join(node("If_0_then_branch__Inline_0__" + name, x) for name, x in tensors.items())
        other = node("If_0_else_branch__Inline_0__encoder.0.weight", np.ones((2, 3), np.float32))
        graph = field(1, field(4, b"If") + field(5, field(6, branch)) + field(5, field(6, other))) + shape
    return field(1, 8) + field(7, graph)


def write_wav(path, x):
    data = np.round(x * 32767).astype("<i2").tobytes()
    with open(path, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16) + b"data" + struct.pack("<I", len(data)) + data)


# --- a model that hears loudness


def loudness():
    """Speech is what is loud: each layer adds up what it reads, and the cell forgets."""
    w = weights(np.random.default_rng(1))
    for i, (n_in, n_out, _) in enumerate(LAYERS):
        w[f"conv{i}"], w[f"conv{i}_b"] = np.full((n_out, n_in, 3), 1 / (3 * n_in), np.float32), np.zeros(n_out, np.float32)
    gates = np.repeat(np.float32([9, -9, 0, 9]), 128)
    return w | {"ih": np.repeat(np.float32([0, 0, 1, 0]), 128)[:, None] * np.full((1, 128), 0.2, np.float32), "hh": np.zeros((512, 128), np.float32), "ih_b": gates, "hh_b": 0 * gates,
                "out": np.full((1, 128, 1), 0.3, np.float32), "out_b": np.float32([-2])}


def read_wav(path):
    with open(path, "rb") as f:
        data = f.read()
    return np.frombuffer(data[data.index(b"data") + 8 :], "<i2").astype(float) / 32767


def check_speech(tell, run, put, at, a):
    """llm-transcribe of the parts that have speech writes what it writes of these parts, one after the other, at the times of the whole."""
    model, tool = put("loud.safetensors", safetensors(names(loudness(), "safetensors"))), os.path.join(os.path.dirname(a.cli), "llm-transcribe")
    words = read_wav(os.path.join(os.path.dirname(__file__), "..", "..", "examples", "words.wav"))
    quiet = lambda seconds: np.zeros(int(seconds * RATE))
    x = np.concatenate([quiet(7), words, quiet(3.3), words[: len(words) // 2], quiet(12), words, quiet(1)])
    write_wav(at("talk.wav"), x)
    lines = run(a.voice, model, at("talk.wav"), "0.5", "250", "400", "0", "30").stdout.split("\n")
    parts = [[int(v) for v in s.split()] for s in lines if " " in s]
    heard, places = [], []  # where each part lies in what is heard
    for k, (first, end) in enumerate(parts):
        end = min(end + int(0.1 * RATE), parts[k + 1][0]) if k + 1 < len(parts) else end
        places.append((sum(map(len, heard)) / RATE, first / RATE, (end - first) / RATE))
        heard += [x[first:end], quiet(0.1) if k + 1 < len(parts) else []]
    write_wav(at("heard.wav"), np.concatenate(heard))

    def place(word):  # in the part of its middle
        k = next((k for k, (begin, _, n) in enumerate(places[:-1]) if (word["start"] + word["end"]) / 2 < begin + n), len(places) - 1)
        begin, first, n = places[k]
        return [first + min(max(word[side] - begin, 0), n) for side in ("start", "end")]

    words_of = ["-m", "builtin:words", "--word-timestamps", "--format", "json", "-bs", "1", "-tpi", "0"]
    options = ["--vad", "-vm", model, "--vad-min-silence-duration-ms", "400"]
    own = json.loads(run(tool, *words_of, at("heard.wav")).stdout)
    whole = run(tool, *words_of, *options, at("talk.wav"))
    got = json.loads(whole.stdout)
    tell("speech alone: the same text", own["text"] == got["text"] and len(got["text"]) > 20 and len(parts) > 2, f"{len(parts)} parts: {got['text']!r}, {own['text']!r} {whole.stderr[:0]}")
    off = []  # of words, and of segments, which begin and end with their words
    for p, q in zip(own["segments"], got["segments"]):
        pairs = [t for w, v in zip(p["words"], q["words"]) for t in zip(place(w), (v["start"], v["end"]))]
        off += [abs(t - u) for t, u in [*pairs, (place(p["words"][0])[0], q["start"]), (place(p["words"][-1])[1], q["end"])]]
    tell("   at the times of the whole", max(off) < 0.011 and abs(got["duration"] - len(x) / RATE) < 0.01, f"{len(off)} times, {max(off):.3f}")
    with open(at("talk.wav"), "rb") as f:
        piped = subprocess.run([tool, *words_of, *options, "-"], input=f.read(), capture_output=True)
    tell("   through a pipe", piped.returncode == 0 and json.loads(piped.stdout) == got, piped.stderr.decode()[:200])
    part = json.loads(run(tool, *words_of, *options, "--offset", "10", "--duration", "8", at("talk.wav")).stdout)
    tell("   a part of it", all(10 <= p["start"] < p["end"] <= 18.01 for p in part["segments"]) and part["text"] and part["text"] in got["text"], str(part["text"]))
    write_wav(at("quiet.wav"), quiet(5))
    none = json.loads(run(tool, *words_of, *options, at("quiet.wav")).stdout)
    tell("   of silence", none["segments"] == [] and none["text"] == "" and none["duration"] == 5, str(none))
    os.mkdir(at("folder"))  # a model of another kind, of which no more is looked at than its class
    put("folder/config.json", b'{"architectures": ["WhisperForConditionalGeneration"]}')
    put("folder/model.safetensors", safetensors({"a": np.zeros(4, np.float32)}))
    for options, said in ((["--vad"], "--vad needs a model that finds speech"), (["-vm", at("none.gguf")], "none.gguf"), (["-vm", model, "-vt", "2"], "2"),
                          (["-vm", "builtin:words"], "llm-transcribe: --vad-model: builtin:words: it finds no speech in sound: there is no key whisper.audio.chunk_length; give a model such as Silero VAD"),
                          (["-vm", at("folder")], f"llm-transcribe: --vad-model: {at('folder')}: it finds no speech in sound: it is a model of another kind; give a model such as Silero VAD")):
        done = subprocess.run([tool, *words_of, *options, at("quiet.wav")], capture_output=True, text=True)
        tell("   " + " ".join(options)[-30:], done.returncode in (1, 2) and said in done.stderr, done.stderr.strip()[-300:])


# --- the tests


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("voice")
    a = p.parse_args()
    folder, failed = os.path.join(a.dir, f"voice-{os.getpid()}"), 0
    os.mkdir(folder)
    at = lambda name: os.path.join(folder, name)

    def run(*words):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if "runtime error" in done.stderr or done.returncode not in (0, 1):
            raise RuntimeError(f"{words}: exit code {done.returncode}: {done.stderr}")
        return done

    def put(name, data):
        with open(at(name), "wb") as f:
            f.write(data)
        return at(name)

    def tell(what, ok, why=""):
        nonlocal failed
        failed += not ok
        print(f"{what:44} {'ok' if ok else 'FAILED'} {why}")

    convert = os.path.join(os.path.dirname(a.cli), "llm-convert")
    try:
        g = np.random.default_rng(5)
        w = weights(g)
        n = 30 * RATE + 77
        loud = np.repeat(g.choice([0.0, 0.002, 0.3], 61, p=[0.4, 0.2, 0.4]), RATE // 2)[:n]
        x = np.round(np.clip(g.standard_normal(len(loud)) * loud, -0.9, 0.9) * 32767) / 32768
        write_wav(at("s.wav"), x * 32768 / 32767)
        want = probabilities(w, x)
        forms = {"v.safetensors": safetensors(names(w, "safetensors")), "v.onnx": onnx(names(w, "onnx"), False), "both.onnx": onnx(names(w, "onnx"), True),
                 "half.onnx": onnx(names(w, "onnx"), False, ""), "openvino.onnx": onnx(names(w, "onnx"), False, "F0::If_0_then_branch__Inline_0__"),
                 "ifless.onnx": onnx({**{"model." + name: x for name, x in names(w, "onnx").items()}, "val_7": np.zeros(258, np.float32), "val_7_2": np.zeros(130, np.float32)}, False, ""),
                 "sequence.onnx": onnx(operator(w, ("stft.", "encoder.", "output.")), False, ""),
                 "v6.onnx": onnx(operator(w, ("encoder.feature_extractor.", "encoder.conv_layers.", "decoder.conv1d.")), False, "")}
        files = [put(name, data) for name, data in forms.items()]
        made = run(convert, files[0], "-o", at("v.gguf"))
        tell("converted", made.returncode == 0 and f"architecture {ARCHITECTURE}," in made.stderr, made.stderr.strip())
        middle = float(np.median(want))
        for k, path in enumerate([at("v.gguf"), *files]):
            rules = [(middle, 250, 100, 0, 30), (middle, 0, 500, 4, 100), (middle + 0.01, 100, 60, 2.5, 0), (0.01, 250, 100, 3, 400)][k % 4]
            done = run(a.voice, path, at("s.wav"), *map(str, rules))
            lines = done.stdout.split("\n")[:-1]
            got = np.array([float(s) for s in lines if " " not in s])
            found = [[int(v) for v in s.split()] for s in lines if " " in s]
            off = np.abs(got - want).max() if len(got) == len(want) else np.inf
            tell(os.path.basename(path), off <= 1e-5, f"{off:.1e}, {got.min():.2f} to {got.max():.2f} {done.stderr}" if len(got) else done.stderr)
            also = spans(got, len(x), np.float32(rules[0]), *rules[1:])
            tell(f"   {len(found)} parts by {rules[1:]}", found == also and len(found) > 1, "" if found == also else f"{found}\n{also}")
        check_speech(tell, run, put, at, a)
        data = forms["v.onnx"]
        bad = [("short.onnx", data[:-9], "truncated or damaged"), ("none.onnx", field(1, 8) + field(7, b""), "no model that is read from such a file"),
               ("size.onnx", onnx({**names(w, "onnx"), "encoder.0.reparam_conv.bias": np.zeros(127, np.float32)}, False), "[127]"),
               ("deep.onnx", field(1, 8) + field(7, deep(40)), "more than 16 graphs"),
               ("varint.onnx", b"\x08" + b"\xff" * 20, "truncated or damaged"),
               ("far.onnx", data + field(7, field(5, onnx_tensor("model.far", np.ones(3, np.float32)) + field(14, 1))), "in a file beside it")]
        for name, bytes_, words in bad:
            said = run(convert, put(name, bytes_), "-o", at("bad.gguf"))
            tell(name, said.returncode == 1 and words in said.stderr and name in said.stderr, said.stderr.strip()[:300])
        said = run(a.voice, "builtin:words", at("s.wav"), "0.5", "250", "100", "0", "30")
        tell("another model", said.returncode == 1 and "finds no speech in sound" in said.stderr, said.stderr.strip())
        said = run(a.voice, at("v.gguf"), at("s.wav"), "1.5", "250", "100", "0", "30")
        tell("a threshold of 1.5", said.returncode == 1 and "vad_threshold must be 0 to 1, but is 1.5" in said.stderr, said.stderr.strip())
    finally:
        shutil.rmtree(folder)
    return int(failed > 0)


def deep(n):
    graph = b""
    for _ in range(n):
        graph = field(1, field(2, b"y") + field(5, field(6, graph)))
    return graph


if __name__ == "__main__":
    sys.exit(main())
