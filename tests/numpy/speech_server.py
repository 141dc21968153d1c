#!/usr/bin/env python3
"""llm-server with a model that hears, beside llm-transcribe, whose texts transcribe.py compares with numpy's.

    speech_server.py --server LLM_SERVER --transcribe LLM_TRANSCRIBE --builtin FOLDER --dir FOLDER CASE

No case asserts a time; those that wait give up after some minutes.
"""
import argparse
import base64
import json
import math
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import folders_speech
import gguf
import transcribe
import voice
from running import Server

PATH = "/v1/audio/transcriptions"
PATIENCE = 240


def check(ok, what):
    if not ok:
        raise AssertionError(what)


def check_end(server):
    code = server.stop()
    check(code == 0, f"exit code {code}: " + "".join(server.lines[-40:]))


def form(sound, fields, boundary="XyZ"):
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields]
    if sound is not None:
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'.encode() + sound + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


def post(s, path, sound, fields=(), **more):
    """Returns (status, headers, text)."""
    fields = [*(fields.items() if isinstance(fields, dict) else fields), *more.items()]
    status, headers, body = s.post(path, form(sound, fields), headers={"Content-Type": "multipart/form-data; boundary=XyZ"}, seconds=PATIENCE)
    return status, headers, body.decode()


def text_of(s, path, sound, fields=(), **more):
    status, _, body = post(s, path, sound, fields, **more)
    check(status == 200, f"{path} {fields} {more}: {status} {body[:300]}")
    return body


def refused(s, path, sound, words, want=400, fields=(), **more):
    status, _, body = post(s, path, sound, fields, **more)
    check(status == want and words in body, f"{path} {fields} {more}: {status} {body[:300]}, not {want} with {words}")
    return json.loads(body)["error"]


def until(what, holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        check(time.monotonic() < end, f"never: {what}")
        time.sleep(0.02)


def slots(s):
    return json.loads(s.get("/slots")[2])


def metric(s, name):
    return next(float(line.split()[-1]) for line in s.get("/metrics")[2].decode().splitlines() if line.startswith(name + " "))


def endless():
    """A sound of some hours, which takes many minutes if nobody stops it."""
    data = os.urandom(12 << 20)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 1000, 1000, 1, 8) + b"data" + struct.pack("<I", len(data)) + data


def silence(n=0):
    return b"RIFF" + struct.pack("<I", 36 + 2 * n) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + b"data" + struct.pack("<I", 2 * n) + bytes(2 * n)


class Open:
    """A request on a socket of its own, whose answer is not read yet."""

    def __init__(self, s, sound, fields=()):
        body = form(sound, fields)
        self.socket = socket.create_connection(("127.0.0.1", s.port))
        self.socket.settimeout(PATIENCE)
        self.socket.sendall(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=XyZ\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def read(self):
        got = b""
        while True:
            piece = self.socket.recv(65536)
            if not piece:
                return got.decode(errors="replace")
            got += piece

    def close(self):
        self.socket.close()


class Files:
    """A model, a sound, and what llm-transcribe makes of it."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        g = np.random.default_rng(9)
        self.model, self.wav = os.path.join(folder, "hears.gguf"), os.path.join(folder, "a.wav")
        meta, w, _ = transcribe.make_model(g)
        gguf.write(self.model, meta, w)
        transcribe.write_wav(self.wav, transcribe.make_sound(g))
        with open(self.wav, "rb") as f:
            self.sound = f.read()

    def transcribe(self, *words, of=None):
        sound = os.path.join(self.folder, of) if of else self.wav
        return subprocess.run([self.args.transcribe, "-q", "-m", self.model, *words, sound], stdout=subprocess.PIPE, check=True).stdout.decode()

    def server(self, *words):
        return Server([self.args.server, "-m", self.model, "-t", "1", *words])


# --- cases -----------------------------------------------------------------------------------------


NAMES = {"en": "english", "de": "german", "yue": "cantonese"}


def formats(x):
    """All forms of an answer, and each field that changes the text, have the words of llm-transcribe."""
    own = json.loads(x.transcribe("--format", "json"))
    whole = own["text"].removeprefix(" ")
    lines, usage = x.transcribe(), {"type": "duration", "seconds": math.ceil(own["duration"])}
    check(all(0 < p["compression_ratio"] < 20 for p in own["segments"]), own)
    check(len(own["segments"]) > 3 and whole, own)
    check([p["seek"] for p in own["segments"]] == sorted(p["seek"] for p in own["segments"]) and own["segments"][-1]["seek"] > 0, own)
    log = os.path.join(x.folder, "log")
    with x.server("-c", "32", "-np", "2", "--embeddings", "--log-file", log) as s: # which are for texts of requests
        check("writes down sounds" in "".join(s.lines), s.lines)
        for _ in range(2):
            check(text_of(s, PATH, x.sound, response_format="srt") == x.transcribe("--format", "srt"), "srt")
            check(text_of(s, PATH, x.sound, response_format="vtt") == x.transcribe("--format", "vtt"), "vtt")
        check(json.loads(text_of(s, PATH, x.sound, model="any", user="me")) == {"text": whole, "usage": usage}, "json")
        check(text_of(s, PATH, x.sound, response_format="text") == whole + "\n", "text")
        check(json.loads(text_of(s, PATH, x.sound, response_format="verbose_json")) == {**own, "text": whole, "language": NAMES[own["language"]], "usage": usage}, "verbose_json")
        damage = "the sound is damaged: it ends 50 samples before its header says"
        check(json.loads(text_of(s, PATH, x.sound[:-100], response_format="verbose_json"))["warnings"] == [damage], "a sound that is cut off")
        check(json.loads(text_of(s, PATH, x.sound[:-100]))["warnings"] == [damage], "json of a sound that is cut off")
        check(json.loads(post(s, PATH, x.sound[:-100], stream="true")[2].split("\n\n")[-2][6:])["warnings"] == [damage], "a stream of a sound that is cut off")
        with open(log) as f:
            check(f.read().count(f"POST {PATH} {damage}\n") == 3, "the log")
        kinds = [post(s, PATH, x.sound, response_format=f)[1]["Content-Type"] for f in ("json", "text", "srt", "vtt")]
        check(kinds == ["application/json", "text/plain; charset=utf-8", "application/x-subrip; charset=utf-8", "text/vtt; charset=utf-8"], kinds)
        check(post(s, PATH, x.sound, color="red")[1]["X-Ignored-Fields"] == "color", "ignored fields are named")

        status, headers, body = post(s, PATH, x.sound, stream="true")
        check(status == 200 and headers["Content-Type"] == "text/event-stream", headers)
        events = [json.loads(e[6:]) for e in body.split("\n\n") if e]
        check(events[-1] == {"type": "transcript.text.done", "text": whole}, events[-1])
        check(len(events) == len(own["segments"]) + 1 and all(e["type"] == "transcript.text.delta" for e in events[:-1]), events)
        check("".join(e["delta"] for e in events[:-1]) == whole, events)

        for path, words, fields in (("/v1/audio/translations", ["--translate"], {}), (PATH, ["-l", "de"], {"language": "de"}), (PATH, ["--prompt", "abc"], {"prompt": "abc"}),
                                    ("/inference", [], {"temperature": "0.0", "temperature_inc": "0.2"}), ("/inference", ["-tpi", "0"], {"temperature_inc": "0"}),
                                    ("/inference", ["--translate", "-bs", "2"], {"translate": "true", "beam_size": "2"}),
                                    ("/inference", ["--no-timestamps"], {"no_timestamps": "true"}), ("/inference", ["--offset", "2.5", "--duration", "1.5"], {"offset_t": "2500", "duration": "1500"})):
            want = x.transcribe(*words, "--format", "srt")
            check(text_of(s, path, x.sound, fields, response_format="srt") == want, f"{path} {fields}")
        check(x.transcribe("-l", "de") != lines and x.transcribe("--translate") != lines, "the fields change nothing")
        check(json.loads(text_of(s, "/inference", x.sound)) == {"text": lines} and text_of(s, "/inference", x.sound, response_format="text") == lines, "inference")
        check(text_of(s, "/audio/transcriptions", x.sound, response_format="text") == whole + "\n", "without /v1")
        said_words(s, x, whole)
        languages(s)
        check_end(s)
    with x.server() as s:  # without a log, standard error has the warning
        text_of(s, PATH, x.sound[:-100])
        check(s.stop() == 0 and sum("llm-server: warning: " in line and line.endswith(f"POST {PATH} {damage}\n") for line in s.lines) == 1, s.lines)


def languages(s):
    """Of a sound without words, the language is the one that was given or found; one without samples has none but a given one."""
    for sound, given, want in ((silence(), {}, [None]), (silence(), {"language": "german"}, ["german"]), (silence(48000), {}, list(NAMES.values())), (silence(48000), {"language": "yue"}, ["cantonese"])):
        got = json.loads(text_of(s, PATH, sound, {**given, "response_format": "verbose_json"}))
        check(got["language"] in want, f"{given}: {got}")


def said_words(s, x, whole):
    """Times of words are a list of their own; segments are there if they are asked for."""
    own = json.loads(x.transcribe("--format", "json", "--word-timestamps"))
    each = [{**w, "word": w["word"].strip(" ")} for p in own["segments"] for w in p.pop("words")]
    check(len(each) > 2, own)
    asks = ("timestamp_granularities[]", "word")
    got = json.loads(text_of(s, PATH, x.sound, [asks], response_format="verbose_json"))
    check(got == {**{k: own[k] for k in ("task", "duration")}, "language": NAMES[own["language"]], "usage": {"type": "duration", "seconds": math.ceil(own["duration"])}, "text": own["text"].removeprefix(" "), "words": each}, got)
    got = json.loads(text_of(s, PATH, x.sound, [asks, ("timestamp_granularities[]", "segment")], response_format="verbose_json"))
    check(got["words"] == each and got["segments"] == own["segments"], got)
    check(json.loads(text_of(s, PATH, x.sound, response_format="verbose_json"))["text"] == whole, "without words")
    silent = json.loads(text_of(s, PATH, silence(), [asks], response_format="verbose_json", language="en"))
    check(isinstance(silent["words"], list), silent)


def refusals(s, x):
    for sound, fields, words in ((None, {"model": "m"}, '\\"file\\" is missing'), (b"", {}, '\\"file\\" is empty'), (b"abc", {}, "no kind of sound"), (x.sound[:20], {}, "file: ends within"),
                                 (b"\x7fELF" + bytes(100), {}, "no kind of sound"), (x.sound, {"response_format": "x"}, "json, text, srt, vtt or verbose_json"),
                                 (x.sound, {"timestamp_granularities[]": "word"}, "need the"), (x.sound, {"timestamp_granularities[]": "letter"}, "word or segment"), (x.sound, {"temperature": "2"}, "from 0 to 1"),
                                 (x.sound, {"language": "klingon"}, "does not know the language 'klingon'; give a code or an English name: en, de, yue"), (x.sound, {"language": "d\0e"}, "without a NUL"),
                                 (x.sound, {"stream": "true", "response_format": "srt"}, "response_format"), (x.sound, [("prompt", "a"), ("prompt", "b")], "given twice"),
                                 (x.sound, [("a", "b")] * 70, "more than 64 parts"), (x.sound, {"include[]": "logprobs"}, "not supported")):
        refused(s, PATH, sound, words, fields=fields)
    check(refused(s, PATH, b"abc", "no kind")["param"] == "file", "param")
    check(refused(s, PATH, x.sound, "does not know", language="xx")["param"] == "language", "param")
    check(refused(s, "/inference", x.sound, "--vad-model", vad="true")["param"] == "vad", "vad")
    check(refused(s, PATH, x.sound, "--vad-model", vad_filter="true")["param"] == "vad_filter", "vad_filter")
    for value in ("1e300", "-1", "1.5", "nan"):
        refused(s, "/inference", x.sound, "number from 0 to 1e+09", fields=[("vad_speech_pad_ms", value)])
    refused(s, PATH, x.sound, "auto or server_vad", chunking_strategy="diarize")
    refused(s, PATH, x.sound, "chunking_strategy[treshold]", chunking_strategy='{"type": "server_vad", "treshold": 0.5}')
    refused(s, PATH, x.sound, "from 0 to 1", chunking_strategy='{"type": "server_vad", "threshold": 2}')


def voices(x):
    """With a model that finds speech, requests that ask for it get the text of speech alone, as llm-transcribe writes it; others that of all."""
    model = os.path.join(x.folder, "loud.safetensors")
    with open(model, "wb") as f:
        f.write(voice.safetensors(voice.names(voice.loudness(), "safetensors")))
    quiet, rest = bytes(2 * 16000 * 3), x.sound[44:]
    data = quiet + rest + quiet + rest[: len(rest) // 4 * 2] + quiet
    sound = x.sound[:4] + struct.pack("<I", 36 + len(data)) + x.sound[8:40] + struct.pack("<I", len(data)) + data
    with open(os.path.join(x.folder, "quiet.wav"), "wb") as f:
        f.write(sound)
    text = lambda *words: json.loads(x.transcribe("--format", "json", *words, of="quiet.wav"))["text"].removeprefix(" ")
    plain, found, other = text(), text("-vm", model), text("-vm", model, "-vsd", "2000", "-vp", "200", "-vt", "0.6")
    check(len({plain, found, other}) == 3, (plain, found, other))
    of = lambda path=PATH, **fields: text_of(s, path, sound, response_format="text", **fields).removesuffix("\n").replace("\n", " ").strip()
    strategy = {"type": "server_vad", "threshold": 0.6, "silence_duration_ms": 2000, "prefix_padding_ms": 200}
    with x.server("--vad-model", model) as s:
        check(of() == plain.strip(), "all")
        check(of(vad_filter="true") == of(chunking_strategy="auto") == found.strip(), "vad_filter")
        check(of(chunking_strategy=json.dumps(strategy)) == of(**{f"chunking_strategy[{k}]": v for k, v in strategy.items()}) == other.strip(), "chunking_strategy")
        lines = text_of(s, "/inference", sound, response_format="text", vad="true", vad_threshold="0.6", vad_min_silence_duration_ms="2000", vad_speech_pad_ms="200", vad_max_speech_duration_s="3.4e38")
        check(lines == x.transcribe("-vm", model, "-vsd", "2000", "-vp", "200", "-vt", "0.6", of="quiet.wav"), "inference")
    with x.server("--vad-model", model, "--vad") as s:
        check(of() == found.strip(), "--vad")
    done = subprocess.run([x.args.server, "-m", x.model, "-t", "1", "--port", "0", "--vad-model", x.model], capture_output=True, text=True, timeout=PATIENCE)  # another kind of model
    check(done.returncode == 1 and f"--vad-model: {x.model}: it finds no speech in sound: there is no key whisper.audio.chunk_length" in done.stderr, f"{done.returncode} {done.stderr}")
    with Server([x.args.server, "--vad-model", model, "-t", "1"]) as s:  # the built-in model, which does not hear
        check(any("--vad-model has no effect" in line for line in s.lines), s.lines)
    with x.server() as s:
        check(of(chunking_strategy="auto") == plain.strip(), "without a model that finds speech")
        ignored = lambda path, **fields: post(s, path, x.sound, **fields)[1]["X-Ignored-Fields"]
        check(ignored(PATH, chunking_strategy="auto") == "chunking_strategy" and ignored("/inference", vad_threshold="0.6", beam_size="6") == "beam_size, vad_threshold", "they are named")


def refused_(x):
    """Wrong requests get a status, and a sentence that names the field."""
    with x.server("--strict-fields", "--slot-save-path", x.folder) as s:
        refusals(s, x)
        refused(s, PATH, x.sound, "did you mean", fields={"promt": "x"})
        for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}), ("/v1/completions", {"prompt": "a"}), ("/completion", {"prompt": "a"}),
                           ("/v1/embeddings", {"input": "a"}), ("/api/generate", {"prompt": "a"}), ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1})):
            status, _, text = s.post(path, body)
            check(status == 501 and PATH.encode() in text, f"{path}: {status} {text[:200]}")
        kind = {"Content-Type": "multipart/form-data; boundary=b"}
        for body, headers, want, words in (({}, {}, 415, b"multipart/form-data"), (b"", kind, 400, b"boundary"), (b"x", {"Content-Type": "multipart/form-data"}, 400, b"boundary"),
                                           (b"--b\r\n\r\nx\r\n--b--", kind, 400, b"Content-Disposition"), (b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx", kind, 400, b"ends in part 1"),
                                           (form(x.sound, [])[:-8], {"Content-Type": "multipart/form-data; boundary=XyZ"}, 400, b"ends in part 1")):
            status, _, text = s.post(PATH, body, headers=headers)
            check(status == want and words in text, f"{body[:80] if isinstance(body, bytes) else body}: {status} {text[:200]}")
        status, _, text = s.post("/slots/0?action=save", {"filename": "a"})
        check(status == 400 and b"hears" in text, text)
        check(s.post("/v1/chat/completions", form(x.sound, []), headers=kind)[0] == 415 and s.get(PATH)[0] == 405, "kinds and methods")
        big = socket.create_connection(("127.0.0.1", s.port)) # a promise of 10 GB is refused before a byte of it comes
        big.settimeout(PATIENCE)
        big.sendall(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 10000000000\r\n\r\n".encode())
        check(b"413" in big.recv(4096), "a body of 10 GB")
        big.close()
        check(s.get("/props")[0] == 200 and json.loads(s.get("/props")[2])["modalities"]["audio"], "props")
        check(text_of(s, PATH, x.sound), "it still works")
        check_end(s)
    with open(folders_speech.DESCRIPTOR, encoding="utf-8") as f:
        plain = f.read().replace('if asked("alignment"):\n  require', "if false:\n  require").replace("  alignment = shown\n", "")
    with open(os.path.join(x.folder, "plain.arch"), "w", encoding="utf-8") as f:
        f.write(plain)
    with x.server("--arch", os.path.join(x.folder, "plain.arch")) as s: # whose attention is not shown
        error = refused(s, PATH, x.sound, "does not show when words", fields={"timestamp_granularities[]": "word", "response_format": "verbose_json"})
        check(error["param"] == "timestamp_granularities[]", error)
        check(text_of(s, PATH, x.sound), "its text")
    meta, w, _ = transcribe.make_model(np.random.default_rng(9))
    gguf.write(x.model + ".heads", meta | {"whisper.alignment_heads": gguf.Typed(gguf.ARRAY, [9, 0], gguf.I32)}, w)
    with Server([x.args.server, "-t", "1", "-m", x.model + ".heads"]) as s: # whose file names heads that it lacks
        check("there are no times of words" in "".join(s.lines) and "a layer that the decoder lacks" in "".join(s.lines), s.lines)
        refused(s, PATH, x.sound, "does not show when words", fields={"timestamp_granularities[]": "word", "response_format": "verbose_json"})
        check(text_of(s, PATH, x.sound, response_format="srt") == x.transcribe("--format", "srt"), "its text")
    with Server([x.args.server, "-t", "1", "-m", os.path.join(x.args.builtin, "stories.gguf")]) as s:
        for path in (PATH, "/v1/audio/translations", "/inference"):
            refused(s, path, x.sound, "hears nothing", want=501)


def waits(x):
    """A sound waits for those before it, and everything else is answered meanwhile; who leaves makes room."""
    long = endless()
    with x.server("--queue", "2") as s:
        check(not slots(s)[0]["is_processing"], slots(s))
        first = Open(s, long)
        until("it runs", lambda: slots(s)[0]["is_processing"])
        second = Open(s, long, [("stream", "true")])
        until("one waits", lambda: metric(s, "llamacpp:requests_deferred") == 1)
        status, headers, body = post(s, PATH, x.sound)
        check(status == 429 and headers["Retry-After"] and "half of --queue" in body, f"{status} {body}")
        check(s.get("/v1/models")[0] == 200 and s.post("/tokenize", {"content": "abc"})[0] == 200 and s.get("/health")[0] == 200, "others are answered")
        check(slots(s)[0]["is_processing"] and metric(s, "llamacpp:requests_processing") == 1, "it still runs")
        second.close() # while it waits
        until("it left", lambda: metric(s, "llamacpp:requests_deferred") == 0 and metric(s, "llm_clients_gone_total") == 1)
        check(slots(s)[0]["is_processing"], "the first one goes on")
        answers = []
        short = threading.Thread(target=lambda: answers.append(text_of(s, PATH, x.sound, response_format="srt")))
        short.start()
        until("another waits", lambda: metric(s, "llamacpp:requests_deferred") == 1)
        first.close() # while it runs: the other one has its turn
        short.join(PATIENCE)
        check(answers == [x.transcribe("--format", "srt")], answers)
        check(metric(s, "llm_clients_gone_total") == 2 and not slots(s)[0]["is_processing"], "nobody is left")
        until("no memory is held", lambda: metric(s, 'llm_request_memory_bytes{use="requests"}') == 0 and metric(s, 'llm_request_memory_bytes{use="answers"}') == 0)
        check_end(s)
    for name in "bin", "temporary":
        os.mkdir(os.path.join(x.folder, name))
    program, mark = os.path.join(x.folder, "bin", "ffmpeg"), os.path.join(x.folder, "mark")
    with open(program, "w", encoding="utf-8") as f: # gives nothing for most of a minute
        f.write(f"#!/bin/sh\nexec '{sys.executable}' -c 'import time; time.sleep(45); open(\"{mark}\", \"w\")'\n")
    os.chmod(program, 0o700)
    path = os.path.join(x.folder, "bin") + os.pathsep + os.environ["PATH"]
    with Server([x.args.server, "-m", x.model, "-t", "1"], env={"PATH": path, "TMPDIR": os.path.join(x.folder, "temporary")}) as s: # who leaves is waited for no more
        other = Open(s, b"\0\0\0\x20ftypM4A " + bytes(30))
        until("ffmpeg runs", lambda: slots(s)[0]["is_processing"] and os.listdir(os.path.join(x.folder, "temporary")))
        other.close()
        check(text_of(s, PATH, x.sound) and not os.path.exists(mark), "ffmpeg was waited for")
        check(not os.listdir(os.path.join(x.folder, "temporary")), "its file is left")
        check_end(s)
    with x.server("--queue", "100") as s: # many at once have the same answers
        texts = [None] * 12
        want = x.transcribe("--format", "srt")

        def ask(i):
            texts[i] = text_of(s, PATH, x.sound, response_format="srt")

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(texts))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        check(texts == [want] * len(texts), texts)


def ends(x):
    """The server ends while a sound runs and others wait."""
    long = endless()
    with x.server("--grace", "1") as s:
        runs = Open(s, long)
        until("it runs", lambda: slots(s)[0]["is_processing"])
        wait = [Open(s, long), Open(s, long, [("stream", "true")])]
        until("two wait", lambda: metric(s, "llamacpp:requests_deferred") == 2)
        check(s.stop(PATIENCE) == 0, "exit code")
        for o in (runs, *wait):
            text = o.read()
            check(text.startswith("HTTP/1.1 503") and "the server is ending" in text, text[:300])


def models(x):
    """One server has models for texts and for sounds, and loads each when it is asked for."""
    folder = os.path.join(x.folder, "models")
    os.makedirs(folder)
    shutil.copyfile(x.model, folder + "/hears.gguf")
    shutil.copyfile(os.path.join(x.args.builtin, "stories.gguf"), folder + "/stories.gguf")
    want = x.transcribe("--format", "srt")
    with Server([x.args.server, "--models", folder, "-c", "256", "-np", "2", "-t", "1"]) as s:
        def listed():
            return {m["id"]: m for m in json.loads(s.get("/v1/models")[2])["data"]}

        for loaded in ("unloaded", "loaded"):
            check(listed()["hears"]["architecture"] == {"input_modalities": ["audio"], "output_modalities": ["text"]}, listed())
            check("architecture" not in listed()["stories"] and listed()["hears"]["status"]["value"] == loaded, listed())
            shown = json.loads(s.post("/api/show", {"model": "hears"})[2])
            check(shown["capabilities"] == [], shown["capabilities"])
            check(text_of(s, PATH, x.sound, model="hears", response_format="srt") == want, "srt")
        status, _, body = s.post("/v1/completions", {"model": "stories", "prompt": "Once", "max_tokens": 4})
        check(status == 200, body)
        refused(s, PATH, x.sound, "hears nothing", want=501, model="stories")
        refused(s, PATH, x.sound, "hears", want=404, model="hear")
        refused(s, PATH, x.sound, "model", want=400)
        refused(s, PATH, x.sound, "given twice", fields=[("model", "hears"), ("model", "stories")])
        long = Open(s, endless(), [("model", "hears")])
        until("it runs", lambda: json.loads(s.get("/slots?model=hears")[2])[0]["is_processing"])
        status, _, body = s.post("/v1/completions", {"model": "stories", "prompt": "Once", "max_tokens": 4})
        check(status == 200, f"texts are written beside sounds: {body}")
        check(s.get("/metrics")[0] == 200, "metrics")
        long.close()
        check(text_of(s, PATH, x.sound, model="hears", response_format="srt") == want, "after one that left")
        check(s.post("/models/unload", {"model": "hears"})[0] == 200, "unload")
        until("unloaded", lambda: listed()["hears"]["status"]["value"] == "unloaded")
        check(text_of(s, PATH, x.sound, model="hears", response_format="srt") == want, "loaded again")
        check_end(s)


def late(x):
    """--max-time ends a sound that takes longer: with 504, or in a stream that has begun by an event."""
    long = endless()
    with x.server("--max-time", "5") as s:
        refused(s, PATH, long, "--max-time", want=504)
        check(text_of(s, PATH, x.sound[:8000]), "a short one is not late")


def damaged(x):
    """Forms and sounds with random damage: each gets an answer, and the server goes on."""
    r = random.Random(os.environ.get("GGL_TEST_SEED", time.strftime("%Y%m%d")))
    whole = form(x.sound[:30000], [("model", "m"), ("response_format", "verbose_json"), ("temperature", "0.2"), ("prompt", "a b")])
    with x.server() as s:
        for k in range(40):
            body = bytearray(whole)
            if r.random() < 0.5:
                del body[r.randrange(len(body)):]
            for _ in range(r.randrange(1, 6)):
                at = r.randrange(min(len(body), 700)) if body and r.random() < 0.8 else 0
                body[at:at + r.randrange(3)] = r.randbytes(r.randrange(3))
            status, _, text = s.post(PATH, bytes(body), headers={"Content-Type": "multipart/form-data; boundary=XyZ"}, seconds=PATIENCE)
            check(status in (200, 400), f"{k}: {status} {text[:200]}")
            json.loads(text)
        check(text_of(s, PATH, x.sound), "it still works")
        check_end(s)


def named(x):
    """The built-in models that hear and see are served by their names."""
    examples = os.path.join(x.args.builtin, "../../examples")
    read = lambda name: open(os.path.join(examples, name), "rb").read()
    with Server([x.args.server, "-t", "1", "-m", "builtin:words"]) as s:
        check(json.loads(text_of(s, PATH, read("words.wav")))["text"].split() == ["seven", "blue", "lamp", "stop"], "what is heard")
        check(refused(s, PATH, read("words.wav"), "knows English alone", language="de")["param"] == "language", "a language that it does not know")
    url = "data:image/bmp;base64," + base64.b64encode(read("shapes.bmp")).decode()
    with Server([x.args.server, "-t", "1", "-m", "builtin:shapes", "--temp", "0"]) as s:
        for text, want in (("What is in the picture?", "A red circle to the left of a blue triangle."), ("How many shapes are there?", "Two shapes.")):
            content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
            status, _, body = s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
            check(status == 200 and json.loads(body)["choices"][0]["message"]["content"] == want, body)


CASES = {"named": named, "formats": formats, "refused": refused_, "waits": waits, "ends": ends, "models": models, "late": late, "damaged": damaged, "voices": voices}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--server", required=True)
    p.add_argument("--transcribe", required=True)
    p.add_argument("--builtin", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("case", choices=CASES)
    a = p.parse_args()
    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        CASES[a.case](Files(a, folder))
    print("ok")


if __name__ == "__main__":
    main()
