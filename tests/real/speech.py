#!/usr/bin/env python3
"""The word error of llm-transcribe on recorded speech whose texts are known, beside other programs that run the same weights.

    speech.py --models FOLDER --bin FOLDER [--sounds FOLDER] [--python PROGRAM] [--work FOLDER] [--seconds N] [--beams N,..] [--peers NAME,..] [--threads N]

FOLDER of --models has models of Whisper in folders of CTranslate2 (whisper-*-ct2). The files of openai-whisper and whisper.cpp are whisper.pt and ggml.bin in such a folder, or are made of its numbers in the
folder of --work. The speech is that of Debian's packages asterisk-core-sounds-{en,es,fr,it,ru} and -wav, whose prompts are put one after the other, with pauses, in an order that a seed gives, in sounds of
a minute, and of pocketsphinx-testdata. --sounds: an unpacked copy, in place of /. --seconds: of each language (25). --beams: 1,5. Peers are run by --python, which has openai-whisper, faster-whisper
and pywhispercpp; those that it lacks are left out, with the reason. --work keeps each text that was written, by the program's version, the weights and the sound: a run that was broken off goes on.
Exit code: 0; 1: more words are wrong than openai-whisper's (of the same weights, by more than chance: 1 % of the words); 77: there is no model, or no speech.
"""
import argparse
import glob
import gzip
import hashlib
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
OURS, TRUTH, PART = "llm-transcribe", "openai-whisper", 60
# name: its package, and its file of the weights: the name in the model's folder and the function of whisper_forms.py that makes it; None: the folder itself.
PEERS = {
    "openai-whisper": ("openai-whisper", "whisper.pt", "write_whisper_pt"),
    "faster-whisper": ("faster-whisper", None, None),
    "whisper.cpp": ("pywhispercpp", "ggml.bin", "write_whisper_cpp"),
}
# What a peer's process runs: argv: name, model, beams, threads, then language and path of each sound; it prints the text of each as a line of JSON.
PEER = r"""
import json, sys, time, warnings, wave
import numpy
warnings.filterwarnings("ignore")
name, model, beams, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if name == "openai-whisper":
    import torch, whisper
    torch.set_num_threads(threads)
    m = whisper.load_model(model, device="cpu")
    def text(x, language):
        return m.transcribe(x, language=language, fp16=False, temperature=0, **({"beam_size": beams} if beams > 1 else {}))["text"]
elif name == "faster-whisper":
    from faster_whisper import WhisperModel
    m = WhisperModel(model, device="cpu", compute_type="float32", cpu_threads=threads)
    def text(x, language):
        return "".join(s.text for s in m.transcribe(x, language=language, beam_size=beams, temperature=0)[0])
else:
    from pywhispercpp.model import Model
    how = {"params_sampling_strategy": 1, "beam_search": {"beam_size": beams, "patience": -1.0}} if beams > 1 else {}
    m = Model(model, n_threads=threads, print_progress=False, redirect_whispercpp_logs_to=None, **how)
    def text(x, language):
        return " ".join(s.text for s in m.transcribe(x, language=language, temperature_inc=0.0))
for language, sound in zip(sys.argv[5::2], sys.argv[6::2]):
    with wave.open(sound) as f:
        x = numpy.frombuffer(f.readframes(f.getnframes()), "<i2").astype(numpy.float32) / 32768
    begin = time.time()
    print("\n" + json.dumps([text(x, language), time.time() - begin]), flush=True)
"""
# Prints the versions of packages that are there.
VERSIONS = r"""
import importlib.metadata as m, json, sys
print(json.dumps({d.metadata["Name"]: d.version for d in m.distributions() if d.metadata["Name"] in sys.argv[1:]}))
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


def put_together(folder, language, prompts, seconds):
    """Writes prompts one after the other, in sounds of at most PART seconds, until there are so many seconds. Returns (path, text, seconds) of each."""
    g, made, data, texts, rate, rest = random.Random(language), [], b"", [], 0, seconds

    def write():
        nonlocal data, texts, rest
        path = os.path.join(folder, f"{language}{len(made)}.wav")
        with wave.open(path, "wb") as f:
            f.setnchannels(1), f.setsampwidth(2), f.setframerate(16000)
            f.writeframes(twice(data) if rate == 8000 else data)
        made.append((path, " ".join(texts), len(data) / 2 / rate))
        data, texts, rest = b"", [], rest - PART

    for path, text in g.sample(prompts, len(prompts)):
        rate, sound = samples(path)
        if len(data) > 2 * rate * min(rest, PART):
            write()
            if rest <= 0:
                break
        data += sound + bytes(2 * g.randrange(rate // 5, rate))
        texts.append(text)
    if data:
        write()
    return made


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


class Store:
    """Texts that were written, in a file of lines of JSON, whose last one may have been broken off."""

    def __init__(self, path):
        self.path, self.known = path, {}
        with open(path, "a+", encoding="utf-8") as f:
            f.seek(0)
            lines = f.read().split("\n")
            if lines.pop():
                f.write("\n")
        for line in lines:
            try:
                key, *got = json.loads(line)
            except ValueError:
                continue
            self.known[key] = got

    def add(self, key, text, seconds):
        self.known[key] = [text, seconds]
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps([key, text, seconds]) + "\n")


def digest(*paths):
    h = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            h.update(hashlib.file_digest(f, "sha256").digest())
    return h.hexdigest()[:16]


def ours(program, model, beams, threads, sounds):
    """Writes (text, seconds) of each sound."""
    for language, sound in sounds:
        begin = time.time()
        done = subprocess.run([program, "-q", "-m", model, "-t", str(threads), "-l", language, "-bs", str(beams), "-tpi", "0", "--format", "json", sound], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        yield json.loads(done.stdout)["text"], time.time() - begin


def peer(python, name, model, beams, threads, sounds):
    with tempfile.TemporaryFile("w+") as errors:
        run = subprocess.Popen([python, "-I", "-c", PEER, name, model, str(beams), str(threads), *[x for s in sounds for x in s]], stdout=subprocess.PIPE, stderr=errors, text=True)
        for line in run.stdout:
            if line.startswith("[") and line.endswith("]\n"):
                yield json.loads(line)
        if run.wait() != 0:
            errors.seek(0)
            raise RuntimeError((errors.read().strip().split("\n") or ["?"])[-1][:200])


def texts_of(store, who, run, sounds):
    """(text, seconds) of each sound; those that are not in the store are made. who: the program and its version, the weights and beams."""
    keys = [f"{who}/{language}/{digest(sound)}" for language, sound in sounds]
    missing = [(key, s) for key, s in zip(keys, sounds) if key not in store.known]
    for (key, _), got in zip(missing, run([s for _, s in missing]) if missing else ()):
        store.add(key, *got)
    return [store.known[key] for key in keys]


def file_of(python, work, model, name):
    """The weights as a peer reads them."""
    _, file, make = PEERS[name]
    if not file or os.path.exists(os.path.join(model, file)):
        return os.path.join(model, file or "")
    made = os.path.join(work, f"{os.path.basename(model)}-{digest(os.path.join(model, 'model.bin'))}-{file}")
    if not os.path.exists(made):
        call = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import whisper_forms; whisper_forms.{make}({model!r}, {made + '.part'!r})"
        done = subprocess.run([python, "-I", "-c", call], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().split("\n") or ["?"])[-1][:200])
        os.replace(made + ".part", made)
    return made


# --- the table --------------------------------------------------------------------------------------


def speech_of(folder, root, seconds):
    """(column, language, path, words, seconds) of each sound."""
    found = []
    for language in LANGUAGES:
        all_prompts = prompts(root, language)
        if not all_prompts:
            print(f"# {language}: no prompts (asterisk-core-sounds-{language} and its -wav)")
            continue
        found += [(language, language, path, words(text), n) for path, text, n in put_together(folder, language, all_prompts, seconds)]
    for path, text in read(root):
        rate, data = samples(path)
        found.append(("book", "en", path, words(text), len(data) / 2 / rate))
    return found


def row(speech, got):
    """Wrong words of all, and percentages of each column and of all."""
    count = [wrong(s[3], words(text)) for s, (text, _) in zip(speech, got)]
    cells = []
    for column in (*LANGUAGES, "book", None):
        at = [k for k, s in enumerate(speech) if column in (None, s[0])]
        n = sum(len(speech[k][3]) for k in at)
        cells.append(f"{100 * sum(count[k] for k in at) / n:.1f}" if n else "")
    return sum(count), cells


def compare(a, model, beams, speech, store, versions):
    """Prints the rows of a model and so many beams. Returns whether ours is no worse than openai-whisper's."""
    name, sounds, errors, texts = os.path.basename(model)[8:-4], [(s[1], s[2]) for s in speech], {}, {}
    program = os.path.join(a.bin, OURS)
    for who in (OURS, *filter(None, a.peers.split(","))):
        package = PEERS[who][0] if who != OURS else None
        if package and package not in versions:
            print(f"# {name}, {beams} beams, {who}: skipped, {a.python} has no package {package}")
            continue
        version = versions[package] if package else digest(program, *sorted(glob.glob(os.path.join(a.bin, "..", "lib", "libllm*.so"))))
        try:
            path = model if who == OURS else file_of(a.python, a.work, model, who)
            run = (lambda x: ours(program, path, beams, a.threads, x)) if who == OURS else (lambda x: peer(a.python, who, path, beams, a.threads, x))
            weights = digest(path if os.path.isfile(path) else os.path.join(path, "model.bin"))
            got = texts_of(store, f"{who}/{version}/{weights}/{beams}", run, sounds)
        except (RuntimeError, KeyError, OSError) as error:
            print(f"# {name}, {beams} beams, {who}: {error}")
            continue
        errors[who], cells = row(speech, got)
        texts[who] = [" ".join(text.split()) for text, _ in got]
        same = "" if who == OURS or OURS not in texts else f"{sum(x == y for x, y in zip(texts[who], texts[OURS]))} of {len(got)}"
        title = who if not package else f"{who} {version}" if package == who else f"{who} ({package} {version})"
        print(f"| {name} | {beams} | {title} | " + " | ".join(cells) + f" | {same} | {sum(t for _, t in got):.0f} |", flush=True)
    if a.texts and TRUTH in texts and OURS in texts:
        for s, x, y in zip(speech, texts[OURS], texts[TRUTH]):
            if x != y:
                print(f"# {s[0]}, {beams} beams: {OURS}: {x}\n#     {TRUTH}: {y}")
    if OURS not in errors:
        return False
    if TRUTH in errors and errors[OURS] > errors[TRUTH] + 0.01 * sum(len(s[3]) for s in speech):
        print(f"# {name}, {beams} beams: {errors[OURS]} wrong words, {TRUTH} has {errors[TRUTH]}")
        return False
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True)
    p.add_argument("--bin", required=True)
    p.add_argument("--sounds", default="")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--work", default="")
    p.add_argument("--seconds", type=int, default=25)
    p.add_argument("--beams", default="1,5")
    p.add_argument("--peers", default=",".join(PEERS))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--texts", action="store_true", help="print the texts that differ from openai-whisper's")
    a = p.parse_args()
    if unknown := set(a.peers.split(",")) - set(PEERS) - {""}:
        p.error(f"--peers: there is no {unknown.pop()}; there are {', '.join(PEERS)}")
    models = sorted(glob.glob(os.path.join(a.models, "whisper-*-ct2")))
    if not models:
        print(f"skipped: there is no whisper-*-ct2 in {a.models}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        a.work = a.work or folder
        os.makedirs(a.work, exist_ok=True)
        speech = speech_of(folder, a.sounds, a.seconds)
        if not speech:
            print("skipped: there is no speech")
            return 77
        done = subprocess.run([a.python, "-I", "-c", VERSIONS, *(x[0] for x in PEERS.values())], capture_output=True, text=True)
        versions = json.loads(done.stdout) if done.returncode == 0 else {}
        print(f"# {sum(s[4] for s in speech):.0f} s of speech in {len(speech)} sounds, {sum(len(s[3]) for s in speech)} words")
        print("| model | beams | program | " + " | ".join(LANGUAGES) + " | book | all | same text | seconds |\n" + "| --- " * (len(LANGUAGES) + 7) + "|")
        store, good = Store(os.path.join(a.work, "texts.jsonl")), True
        for model in models:
            with open(os.path.join(model, "tokenizer.json"), encoding="utf-8") as f:
                tokens = {t["content"]: t["id"] for t in json.load(f)["added_tokens"]}
            is_english = tokens["<|startoftranscript|>"] == 50257  # one less than where there are more languages
            for beams in map(int, a.beams.split(",")):
                good &= compare(a, model, beams, [s for s in speech if s[1] == "en" or not is_english], store, versions)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
