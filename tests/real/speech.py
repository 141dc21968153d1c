#!/usr/bin/env python3
"""The word error of llm-transcribe on recorded speech whose texts are known, beside other programs that run the same weights.

    speech.py --models FOLDER --bin FOLDER [--sounds FOLDER] [--python PROGRAM] [--seconds N] [--beams N] [--peers NAME,..] [--all]

FOLDER of --models has models of Whisper in folders of CTranslate2 (whisper-*-ct2), each of which may have a whisper.pt beside model.bin for openai-whisper, and a ggml.bin for
whisper.cpp. The speech is that of Debian's packages asterisk-core-sounds-{en,es,fr,it,ru} and -wav, whose prompts are put one after the other, with pauses, in an order that a seed gives, and of
pocketsphinx-testdata. --sounds: an unpacked copy, in place of /. Peers are run by --python, which has openai-whisper, faster-whisper or pywhispercpp; those that it lacks are left out, with the reason.
--all: 150 s of each language, greedy and with five beams; else 25 s, greedy. Exit code: 0; 1: more words are wrong than openai-whisper's (of the same weights, by more than chance: 1 % of the words); 77:
there is no model, or no speech.
"""
import argparse
import glob
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
import wave

LANGUAGES = {"en": "en_US_f_Allison", "es": "es_MX_f_Allison", "fr": "fr_CA_f_June", "it": "it_IT_m_Carlo", "ru": "ru_RU_f_IvrvoiceRU"}
PEERS = ("openai-whisper", "faster-whisper", "whisper.cpp")
# What a peer's process runs: argv: name, model, beams, language, a sound; it prints the text of each as a line of JSON.
PEER = r"""
import json, sys, time, warnings
warnings.filterwarnings("ignore")
name, model, beams = sys.argv[1], sys.argv[2], int(sys.argv[3])
if name == "openai-whisper":
    import torch, whisper
    torch.set_num_threads(2)
    m = whisper.load_model(model, device="cpu")
    def text(sound, language):
        import numpy, wave
        with wave.open(sound) as f:
            x = numpy.frombuffer(f.readframes(f.getnframes()), "<i2").astype(numpy.float32) / 32768
        return m.transcribe(x, language=language, fp16=False, temperature=0, **({"beam_size": beams} if beams > 1 else {}))["text"]
elif name == "faster-whisper":
    from faster_whisper import WhisperModel
    m = WhisperModel(model, device="cpu", compute_type="float32", cpu_threads=2)
    def text(sound, language):
        return "".join(s.text for s in m.transcribe(sound, language=language, beam_size=beams, temperature=0)[0])
else:
    from pywhispercpp.model import Model
    how = {"params_sampling_strategy": 1} if beams > 1 else {"params_sampling_strategy": 0}
    m = Model(model, n_threads=2, print_progress=False, print_realtime=False, redirect_whispercpp_logs_to=None, **how)
    def text(sound, language):
        return " ".join(s.text for s in m.transcribe(sound, language=language, temperature_inc=0.0))
for language, sound in zip(sys.argv[4::2], sys.argv[5::2]):
    begin = time.time()
    print("\n" + json.dumps([text(sound, language), time.time() - begin]), flush=True)
"""


# --- speech with known texts ------------------------------------------------------------------------


def prompts(root, language):
    """(path, text) of each prompt of a language that says something."""
    where = f"{root}/usr/share/doc/asterisk-core-sounds-{language}/core-sounds-{language}.txt.gz"
    found = []
    if os.path.exists(where):
        with gzip.open(where, "rt", encoding="utf-8", errors="replace") as f:
            for line in f:
                name, _, text = line.strip().partition(":")
                path = f"{root}/usr/share/asterisk/sounds/{LANGUAGES[language]}/{name}.wav"
                if os.path.exists(path) and re.search(r"\w{3}.*\w{3}", text) and not re.search(r"[\[\](){}<>\d]", text):
                    found.append((path, text.strip()))
    return sorted(found)


def samples(path):
    with wave.open(path) as f:
        return f.getframerate(), f.readframes(f.getnframes())


def put_together(to, parts, seconds, g):
    """Writes prompts one after the other, until there are so many seconds, and returns their texts."""
    data, texts, rate = b"", [], 0
    for path, text in g.sample(parts, len(parts)):
        rate, sound = samples(path)
        if len(data) > 2 * rate * seconds:
            break
        data += sound + bytes(2 * g.randrange(rate // 5, rate))
        texts.append(text)
    with wave.open(to, "wb") as f:
        f.setnchannels(1), f.setsampwidth(2), f.setframerate(16000)
        f.writeframes(twice(data) if rate == 8000 else data)
    return " ".join(texts), len(data) / 2 / rate


def twice(data):
    """Samples at twice the rate, by a filter of 63 taps, so that all programs get the same ones."""
    import numpy as np
    x = np.zeros(len(data))
    x[::2] = np.frombuffer(data, "<i2")
    k = np.arange(-31, 32)
    taps = np.sinc(k / 2) * np.hamming(63)
    return np.clip(np.round(np.convolve(x, taps, "same")), -32768, 32767).astype("<i2").tobytes()


def read(root):
    """(path, text) of sentences of a book, read aloud."""
    folder = f"{root}/usr/share/pocketsphinx/test/data/librivox"
    found = []
    for path in sorted(glob.glob(folder + "/*.transcription")) + sorted(glob.glob(folder + "/transcription")):
        with open(path, encoding="utf-8") as f:
            for line in f:
                said = re.fullmatch(r"(?:<s>)?(.*?)(?:</s>)?\s*\((.*)\)", line.strip())
                if said and os.path.exists(f"{folder}/{said.group(2)}.wav"):
                    found.append((f"{folder}/{said.group(2)}.wav", said.group(1).strip()))
    return found


# --- words ------------------------------------------------------------------------------------------


def words(text):
    text = unicodedata.normalize("NFKC", text.lower()).replace("ё", "е")
    return re.sub(r"[^\w\s']|_", " ", text).replace("'", " ").split()


def wrong(said, got):
    """Words that must be put, left out or changed (Levenshtein)."""
    row = list(range(len(got) + 1))
    for i, a in enumerate(said):
        last, row[0] = row[0], i + 1
        for j, b in enumerate(got):
            last, row[j + 1] = row[j + 1], min(last + (a != b), row[j] + 1, row[j + 1] + 1)
    return row[-1]


# --- programs ---------------------------------------------------------------------------------------


def ours(program, model, beams, sounds):
    out = []
    for language, sound in sounds:
        begin = time.time()
        done = subprocess.run([program, "-q", "-m", model, "-t", "2", "-l", language, "-bs", str(beams), "-tpi", "0", "--format", "json", sound], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        out.append((json.loads(done.stdout)["text"], time.time() - begin))
    return out


def peer(python, name, model, beams, sounds):
    """Texts and seconds; or why there are none."""
    done = subprocess.run([python, "-I", "-c", PEER, name, model, str(beams), *[x for s in sounds for x in s]], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.split("\n") if line.startswith("[") and line.endswith("]")]
    return lines if done.returncode == 0 and len(lines) == len(sounds) else (done.stderr.strip().split("\n") or ["?"])[-1][:200]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True)
    p.add_argument("--bin", required=True)
    p.add_argument("--sounds", default="")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--seconds", type=int, default=0)
    p.add_argument("--beams", type=int, default=0)
    p.add_argument("--peers", default=",".join(PEERS))
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    models = sorted(glob.glob(os.path.join(a.models, "whisper-*-ct2")))
    seconds, program = a.seconds or (150 if a.all else 25), os.path.join(a.bin, "llm-transcribe")
    if not models:
        print(f"skipped: there is no whisper-*-ct2 in {a.models}")
        return 77
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        speech = []
        for language in LANGUAGES:
            found = prompts(a.sounds, language)
            if not found:
                print(f"# {language}: no prompts (asterisk-core-sounds-{language} and its -wav)")
                continue
            sound = os.path.join(folder, language + ".wav")
            text, n = put_together(sound, found, seconds, random.Random(language))
            speech.append((language, language, sound, words(text), n))
        for k, (sound, text) in enumerate(read(a.sounds)):
            rate, data = samples(sound)
            speech.append((f"book {k + 1}", "en", sound, words(text), len(data) / 2 / rate))
        if not speech:
            print("skipped: there is no speech")
            return 77
        print(f"# {sum(n for *_, n in speech):.0f} s of speech, {sum(len(w) for *_, w, _ in speech)} words")
        print("| model, beams | program | " + " | ".join(LANGUAGES) + " | book | all | seconds |\n| --- | --- | " + "--- | " * (len(LANGUAGES) + 3))
        for model in models:
            name = os.path.basename(model)[8:-4]
            with open(os.path.join(model, "config.json"), encoding="utf-8") as f:
                is_english = json.load(f)["lang_ids"][0] == 50258
            mine = [s for s in speech if s[1] == "en" or not is_english]
            for beams in (a.beams,) if a.beams else (1, 5) if a.all else (1,):
                sounds, errors = [(s[1], s[2]) for s in mine], {}
                for who in ("llm-transcribe", *a.peers.split(",")):
                    of = {"openai-whisper": "whisper.pt", "whisper.cpp": "ggml.bin"}.get(who)
                    path = os.path.join(model, of) if of else model
                    if not os.path.exists(path):
                        print(f"# {name}, {who}: there is no {path}")
                        continue
                    got = ours(program, path, beams, sounds) if who == "llm-transcribe" else peer(a.python, who, path, beams, sounds)
                    if isinstance(got, str):
                        print(f"# {name}, {who}: {got}")
                        continue
                    count = [wrong(s[3], words(text)) for s, (text, _) in zip(mine, got)]
                    share = lambda holds: "{:.1f}".format(100 * sum(c for s, c in zip(mine, count) if holds(s)) / n) if (n := sum(len(s[3]) for s in mine if holds(s))) else ""
                    columns = [share(lambda s, l=l: s[0] == l) for l in LANGUAGES] + [share(lambda s: s[0].startswith("book")), share(lambda s: True)]
                    errors[who] = sum(count)
                    print(f"| {name}, {beams} | {who} | " + " | ".join(columns) + f" | {sum(t for _, t in got):.0f} |", flush=True)
                limit = errors.get("openai-whisper", 10**9) + 0.01 * sum(len(s[3]) for s in mine)
                if errors["llm-transcribe"] > limit:
                    bad += 1
                    print(f"# {name}, {beams}: {errors['llm-transcribe']} wrong words, openai-whisper has {errors['openai-whisper']}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
