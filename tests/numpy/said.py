#!/usr/bin/env python3
"""Sounds that text models with an ear write down: small models with weights from seeds, whose answers to a request for a transcription transformers wrote into ./said.txt
(../real/said_lines.py), by llm-transcribe, llm-server and Python; and what llm-transcribe asks a model of each other family, beside a pass in numpy.

    said.py --transcribe LLM_TRANSCRIBE [--server LLM_SERVER] [--library LIBLLM] --dir FOLDER [NAME ..]

Exit code 0, 1.
"""
import argparse
import base64
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import types
import wave

import numpy as np

import ear_kinds
import eye_kinds
import eye_texts
import eyes
import gguf
import late_senses
import voice
from eye_texts import byte_names

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../server"))
from running import Server  # noqa: E402


def tokenizer(words, plain=()):
    """A tokenizer.json: bytes, and words behind them, which are control tokens unless they are plain."""
    add = [{"id": 256 + i, "content": w, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": w not in plain} for i, w in enumerate(words)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": add, "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "vocab": {name: i for i, name in enumerate(byte_names())}, "merges": []}}


class Check(late_senses.Check):
    def tell(self, name, ok, what=""):
        super().tell(name, ok, "" if ok else what)

    def __init__(self, a):
        super().__init__(None, None, None, a.server, a.dir)
        self.transcribe, self.library = a.transcribe, a.library

    def write_model(self, line):
        folder = self.write_folder(line, False)
        files = {"tekken.json": late_senses.tekken(line["tekken"])} if line.get("tekken") else {
            "tokenizer.json": tokenizer(line["words"], line.get("plain", ())), "tokenizer_config.json": {"chat_template": line["template"]},
            "generation_config.json": {"eos_token_id": line["end"]}}
        for name, content in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                json.dump(content, f)
        return folder

    def json_of(self, *words):
        return json.loads(self.run(self.transcribe, "--format", "json", *words))

    def line(self, line):
        folder = self.write_model(line)
        for ask in line["asks"]:
            path, want = self.write_medium("sound", ask["size"]), ask["ids"]
            flags = [x for flag in ("language", "prompt") if flag in ask for x in ("--" + flag, ask[flag])] + ["--translate"] * (ask.get("task") == "translate")
            got = [i for s in self.json_of("-m", folder, *flags, path)["segments"] for i in s["tokens"]]
            self.tell(f"{line['name']}: {ask['size'][0]} samples {' '.join(flags)}".rstrip(), (got if ask["ended"] else got[: len(want)]) == want, "" if got[: len(want)] == want else f"{got}, not {want}")
            self.same_elsewhere(line["name"], ("-m", folder), path, ask)
        shutil.rmtree(folder)

    def same_elsewhere(self, name, model, path, ask):
        """llm-server and Python write what llm-transcribe writes."""
        flags = [x for flag in ("language", "prompt") if flag in ask for x in ("--" + flag, ask[flag])] + ["--translate"] * (ask.get("task") == "translate")
        want = [(s["text"], s["tokens"]) for s in self.json_of(*model, *flags, path)["segments"]]
        if self.server:
            where = "/v1/audio/" + ("translations" if ask.get("task") == "translate" else "transcriptions")
            fields = {"response_format": "verbose_json"} | {f: ask[f] for f in ("language", "prompt") if f in ask}
            with Server([self.server, *model, "-np", "2"]) as server:
                got = self.posted(server, where, path, fields)
                self.tell(f"{name}: llm-server", [(s["text"], s["tokens"]) for s in got["segments"]] == want, f"{got}, not {want}")
        if self.library:
            more = {"mmproj": model[3]} if len(model) > 2 else {}
            how = {f: ask[f] for f in ("language", "prompt") if f in ask} | ({"translate": True} if ask.get("task") == "translate" else {})
            done = self.python(model[1], path, json.dumps(more), json.dumps(how))
            got = [tuple(p) for p in json.loads(done.stdout)] if done.returncode == 0 else done.stderr
            self.tell(f"{name}: Python", got == want, f"{got}, not {want}")

    def python(self, *words):
        """Runs a program: of a model, a sound, and how it is opened and written down as JSON."""
        code = ("import json, sys, ggml_lite\nm = ggml_lite.Model(sys.argv[1], **json.loads(sys.argv[3]))\n"
                "print(json.dumps([[p.text, list(p.tokens)] for p in m.transcribe(sys.argv[2], **json.loads(sys.argv[4]))]))")
        env = dict(os.environ, PYTHONPATH=os.path.join(HERE, "../../python/src"), GGML_LITE_LIBRARY=self.library)
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=env)

    def left_out(self):
        """An ear that came with its folder and is refused: what needs it repeats why."""
        line = next(x for x in lines() if x["name"] == "voxtral-realtime")
        folder = self.write_model({**line, "config": {**line["config"], "audio_config": {**line["config"]["audio_config"], "activation_function": "strange"}}})
        path, why = self.write_medium("sound", [9234]), "an activation that is not Voxtral Realtime's"
        for sounds in (path,), (path, path):
            done = subprocess.run([self.transcribe, "-m", folder, *sounds], capture_output=True, text=True)
            last = done.stderr.splitlines()[-1]
            self.tell(f"left out: llm-transcribe, {len(sounds)} sounds", done.returncode == 1 and "hears no sounds: " in last and why in last, done.stderr)
        if self.server:
            with open(path, "rb") as f:
                sound = base64.b64encode(f.read()).decode()
            chat = {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}}]}]}
            with Server([self.server, "-m", folder]) as server:
                for status, text in self.form(server, "/v1/audio/transcriptions", path, {}), (lambda got: (got[0], got[2]))(server.post("/v1/chat/completions", chat)):
                    message = json.loads(text)["error"]["message"]
                    self.tell(f"left out: llm-server, {status}", status in (400, 501) and "the model hears no sounds: " in message and why in message, text)
        for more, said in ((({}), "the model hears no sounds: "), ({"mmproj": ""}, "opened without an ear")) if self.library else ():
            done = self.python(folder, path, json.dumps(more), "{}")
            last = done.stderr.splitlines()[-1]
            self.tell(f"left out: Python, {more}", done.returncode == 1 and said in last and (why in last) == (not more), done.stderr)
        shutil.rmtree(folder)

    # --- sounds that come piece by piece

    def live(self):
        """A model that writes while it hears: the same tokens, to the last bit of their probability, however a sound is cut into pieces, and in several parts; what is given is always whole characters."""
        line = next(x for x in lines() if x["name"] == "voxtral-realtime")
        folder = self.write_model(line)
        for size in [x["size"] for x in line["asks"]]:
            self.live_pieces(folder, late_senses.medium("sound", size), {}, (1, 79, 80 * 160, size[0]), next(x for x in line["asks"] if x["size"] == size)["ids"])
        long = late_senses.medium("sound", [700000])
        long[np.arange(len(long)) // 9000 % 3 == 1] = 0
        for n_ctx in 120, 256:  # parts of 6.4 and 16 seconds
            self.live_pieces(folder, long, {"n_ctx": n_ctx}, (12345, len(long)), None)
        self.live_pipe(folder, long)
        if self.server:
            self.live_server(folder)
        self.live_refused(folder)
        shutil.rmtree(folder)

    def live_pieces(self, folder, x, more, sizes, ids):
        code = (
            "import array, json, sys, ggml_lite\n"
            "m = ggml_lite.Model(sys.argv[1], **json.loads(sys.argv[2]))\n"
            "x = array.array('f', open(sys.argv[3], 'rb').read())\n"
            "row = lambda p: [p.text, list(p.tokens), p.logprob, p.start, p.end, p.compression_ratio]\n"
            "for t in 0, 1:\n"
            "    said = []\n"
            "    print(json.dumps([[row(p) for p in m.transcribe(sys.argv[3], raw='f32le', temperature=t, seed=3, said=said.append)], ''.join(said)]))\n"
            "    for n in json.loads(sys.argv[4]):\n"
            "        got = []\n"
            "        texts = list(m.stream_speech((x[i : i + n] for i in range(0, len(x), n)), temperature=t, seed=3, each=got.append))\n"
            "        print(json.dumps([[row(p) for p in got], ''.join(texts), len(texts)]))\n"
            "    sys.stdout.flush()\n")
        if not self.library:
            return
        path = self.at("f32")
        x.astype("<f4").tofile(path)
        env = dict(os.environ, PYTHONPATH=os.path.join(HERE, "../../python/src"), GGML_LITE_LIBRARY=self.library)
        done = subprocess.run([sys.executable, "-c", code, folder, json.dumps(more), path, json.dumps(sizes)], capture_output=True, text=True, env=env)
        got = [json.loads(one) for one in done.stdout.splitlines()]
        name = f"live: {len(x)} samples {more}"
        if not self.told(name, done.returncode == 0 and len(got) == 2 * (1 + len(sizes)), done.stderr):
            return
        for k, t in (0, 0), (1 + len(sizes), 1):
            whole, text = got[k][:2]
            self.tell(f"{name}, temperature {t}: what is said is the pieces", text == "".join(p[0] for p in whole), f"{text!r}, {whole}")
            if ids is not None and t == 0:
                self.tell(f"{name}: transformers", whole[0][1] == ids, whole)
            if more:
                self.tell(f"{name}: several parts", len(whole) > 2, len(whole))
            for n, (pieces, told, n_texts) in zip(sizes, got[k + 1 : k + 1 + len(sizes)]):
                self.tell(f"{name}, temperature {t}: pieces of {n}", pieces == whole and told == text and (n_texts > 2 or n == len(x) or len(x) < 20000), f"{pieces}, {told!r}, {n_texts}, not {whole}")

    def told(self, name, ok, what):
        self.tell(name, ok, what)
        return ok

    def live_pipe(self, folder, x):
        """llm-transcribe writes what was said before the pipe gives more."""
        path = self.at("f32")
        x.astype("<f4").tofile(path)
        words = self.transcribe, "-m", folder, "-tp", "1", "--raw", "f32le"
        want = subprocess.run([*words, path], capture_output=True).stdout
        with subprocess.Popen([*words, "--live", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            sound = x.astype("<f4").tobytes()
            run.stdin.write(sound[:100001])  # in the middle of a sample
            run.stdin.flush()
            early = os.read(run.stdout.fileno(), 1)  # waits until something is there
            rest, told = run.communicate(sound[100001:])
        self.tell("live: a pipe", run.returncode == 0 and early + rest == want, f"{told}: {early + rest!r}, not {want!r}")
        for sound, said in (x.astype("<f4").tobytes()[:40003], b"the sound is damaged: it ends in the middle of a sample"), (b"", b"so short that there is nothing to write down"), (bytes(60000), b""):
            done = subprocess.run([*words, "--live", "-"], input=sound, capture_output=True)
            with open(path, "wb") as f:
                f.write(sound)
            want = subprocess.run([*words, path], capture_output=True).stdout
            self.tell(f"live: {len(sound)} bytes", done.returncode == 0 and said in done.stderr and done.stdout == want, f"{done.stderr}: {done.stdout!r}, not {want!r}")

    def live_server(self, folder):
        """What a stream gets while the text is written, of two parts, is the text; tokens that come at once may be one event."""
        path = self.wav(late_senses.medium("sound", [320000]))
        with Server([self.server, "-m", folder, "-np", "2", "-c", "256"]) as server:
            where = "/v1/audio/transcriptions"
            for temperature in "0", "1":
                fields = {"response_format": "json", "temperature": temperature}
                whole = self.posted(server, where, path, fields)
                status, text = self.form(server, where, path, fields | {"stream": "true"})
                events = [json.loads(x[6:]) for x in text.decode().split("\n\n") if x.startswith("data: ")]
                deltas = [x["delta"] for x in events if x.get("type") == "transcript.text.delta"]
                ok = status == 200 and "".join(deltas) == whole.get("text") == events[-1].get("text")
                self.tell(f"live: llm-server, temperature {temperature}: a stream", ok and len(deltas) >= 2, f"{status}: {text}, not {whole}")

    def live_refused(self, folder):
        line = next(x for x in lines() if x["name"] == "voxtral")
        path, other = self.write_medium("sound", [9234]), folder + "-whole"
        os.rename(folder, other)
        whole = self.write_model(line)
        for words, code, said in ((("-m", whole), 1, "llm-transcribe: the ear needs a sound as a whole, or a part of it, because its rows do not stand beside the words, one for each: write it down without live (--live)"),
                                  (("-m", "builtin:words"), 2, "hears windows as a whole, and writes them down one after the other, also of a pipe: leave out --live"),
                                  (("-m", other, "--format", "json"), 2, "--live writes text as it comes: leave out --format json, or --live"),
                                  (("-m", other, "-o", self.at("srt")), 2, "is no text: leave out --live"),
                                  (("-m", other, "-vm", "x"), 2, "--live and --vad-model cannot be used together")):
            done = subprocess.run([self.transcribe, *words, "--live", path], capture_output=True, text=True)
            self.tell(f"live: {words[-1][-12:]} is refused", done.returncode == code and said in done.stderr, done.stderr)
        code = ("import json, sys, ggml_lite\n"
                "def why(call):\n"
                "    try:\n"
                "        call()\n"
                "    except (ggml_lite.Error, TypeError) as e:\n"
                "        return str(e)\n"
                "whole, live = (ggml_lite.Model(x) for x in sys.argv[1:3])\n"
                "said = [why(lambda: list(whole.stream_speech([[0.0]]))), why(lambda: list(ggml_lite.Model('builtin:words').stream_speech([[0.0]]))), why(lambda: list(live.stream_speech([[0.0, float('nan')]]))),\n"
                "        why(lambda: list(live.stream_speech([b'ab']))), why(lambda: live.transcribe(sys.argv[3], live=True, vad_model='x'))]\n"
                "got = []\n"
                "with live.stream_speech([[0.1] * 30000] * 3, each=got.append) as texts:\n"
                "    next(texts)\n"
                "again = list(live.stream_speech([[0.0] * 100, [], [0.0] * 7]))\n"
                "import os, threading\n"  # ended between two pieces, with a text that has begun
                "def feed():\n"
                "    with open(sys.argv[4], 'wb', buffering=0) as f:\n"
                "        f.write(bytes(4 * 70000))\n"
                "        begun.wait(60)\n"
                "        live.cancel()\n"
                "        f.write(bytes(4))\n"
                "begun = threading.Event()\n"
                "feeder = threading.Thread(target=feed)\n"
                "os.mkfifo(sys.argv[4])\n"
                "feeder.start()\n"
                "stopped = why(lambda: live.transcribe(sys.argv[4], raw='f32le', live=True, said=lambda text: begun.set()))\n"
                "feeder.join()\n"
                "inside, lib, handle = [], live._lib, live._handle\n"
                "def call(piece):\n"
                "    inside.extend([why(lambda: lib.llm_live_begin(handle, None, None)), why(lambda: lib.llm_live_hear(handle, None, 0)), why(lambda: lib.llm_live_end(handle))])\n"
                "called = ''.join(live.stream_speech([[0.0] * 107], each=call))\n"
                "print(json.dumps([said, len(got), ''.join(again), list(live.stream_speech([])), [list(p.tokens) for p in live.transcribe(sys.argv[3])], stopped, ''.join(live.stream_speech([[0.0] * 107])), inside, called]))\n")
        if self.library:
            env = dict(os.environ, PYTHONPATH=os.path.join(HERE, "../../python/src"), GGML_LITE_LIBRARY=self.library)
            done = subprocess.run([sys.executable, "-c", code, whole, other, path, self.at("fifo")], capture_output=True, text=True, env=env)
            if self.told("live: Python goes on after failures", done.returncode == 0, done.stderr):
                said, n, again, none, tokens, stopped, after, inside, called = json.loads(done.stdout)
                wanted = ["a callback of a sound cannot begin another one", *["a callback of a sound cannot go on with it"] * 2]
                self.tell("live: a callback begins another sound", len(inside) == 3 and all(x and y in x for x, y in zip(inside, wanted)) and called == again, f"{inside}: {called!r}, not {again!r}")
                self.tell("live: ended between two pieces", stopped is not None and "stopped" in stopped and after == again, f"{stopped}: {after!r}, not {again!r}")
                wanted = "needs a sound as a whole", "hears windows of 5 seconds as a whole", "sample 1 is no finite number", "32-bit floats", "cannot be searched for speech"
                for why, want in zip(said, wanted):
                    self.tell(f"live: {want}", why is not None and want in why, why)
                self.tell("live: a stream that is closed, a short one and an empty one", n == 0 and again != "" and none == [] and len(tokens) == 1, done.stdout)
        shutil.rmtree(whole)
        os.rename(other, folder)

    def named_template(self, kind, flags, path, want):
        """A text model without a chat template takes one by a flag, as its text or its file, and one such as Whisper has no use for it."""
        with open(self.at("jinja"), "w", encoding="utf-8") as f:
            f.write(DEFAULT)
        model = "-m", self.at("text"), "--mmproj", self.at("ear")
        for named in ("--chat-template", DEFAULT), ("--chat-template", self.at("jinja")), ("--chat-template-file", self.at("jinja")):
            got = [i for s in self.json_of(*model, *flags, *named, path)["segments"] for i in s["tokens"]][:8]
            self.tell(f"{kind}: {' '.join(flags)} {named[0]} {named[1][:9]}", got == want, f"{got}, not {want}")
        for words, code, said in ((*model, "--chat-template", "none-such"), 1, "there is no chat template 'none-such'"), (("-m", "builtin:words", "--chat-template", "chatml"), 2, "is not asked in a conversation"):
            done = subprocess.run([self.transcribe, *words, path], capture_output=True, text=True)
            self.tell(f"refused: {' '.join(words[-2:])}", done.returncode == code and said in done.stderr, done.stderr)

    def forms(self, model, path):
        """What the server's forms ask for, and what it answers chats meanwhile."""
        whole = self.json_of(*model, path)
        with Server([self.server, *model, "-np", "2"]) as server:
            for fields, want in (({"timestamp_granularities[]": "word", "response_format": "verbose_json"}, (400, "does not show when words are said, as one such as Whisper does")),
                                 ({"prompt": "Tool"}, (400, "takes no prompt")), ({"language": "xx"}, (400, "is not known")), ({"stream": "true"}, (200, "transcript.text.done")),
                                 ({"response_format": "vtt"}, (200, "WEBVTT")), ({"response_format": "srt"}, (200, "00:00:00,000 -->"))):
                status, text = self.form(server, "/v1/audio/transcriptions", path, fields)
                self.tell(f"llm-server: {fields}", (status, want[1] in text.decode()) == (want[0], True), f"{status}: {text}")
                if status == 400 and len(fields) == 1:
                    self.tell(f"llm-server: {fields} is at fault", json.loads(text)["error"]["param"] in fields, text)
            with open(self.at("noise"), "wb") as f:
                f.write(b"noise" * 20)
            status, text = self.form(server, "/v1/audio/transcriptions", self.at("noise"), {})
            self.tell("llm-server: no sound", status == 400 and json.loads(text)["error"]["param"] == "file" and b"no kind of sound that is known here; ffmpeg may know other kinds" in text, text)
            status, text = self.form(server, "/inference", path, {})
            self.tell("llm-server: /inference", status == 200 and json.loads(text)["text"].strip() == whole["text"].strip(), text)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                sounds = [pool.submit(self.posted, server, "/v1/audio/transcriptions", path, {"response_format": "verbose_json"}) for _ in range(3)]
                texts = [pool.submit(server.post, "/completion", {"prompt": "ab", "n_predict": 40}) for _ in range(5)]
                same = all([s["tokens"] for s in x.result()["segments"]] == [s["tokens"] for s in whole["segments"]] for x in sounds)
                self.tell("llm-server: sounds beside texts", same and all(x.result()[0] == 200 for x in texts))

    def beside_the_gone(self, model, path):
        """Clients that leave while their prompts are read end no sound that is written down beside these."""
        body = json.dumps({"prompt": "ab " * 20000, "n_predict": 1}).encode()
        got = []
        with Server([self.server, *model, "-np", "2", "-c", "65536"]) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            def wait_for(n):
                while sum(slot["is_processing"] for slot in json.loads(server.get("/slots")[2])) != n:
                    time.sleep(0.01)
            for _ in range(4):
                wait_for(0)
                with socket.create_connection(("127.0.0.1", server.port)) as client:
                    client.sendall(b"POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                    wait_for(1)
                    sound = pool.submit(self.form, server, "/v1/audio/transcriptions", path, {})
                    wait_for(2)
                got.append(sound.result()[0])
        self.tell("llm-server: a sound beside texts whose clients leave", got == [200] * 4, got)

    def in_time(self, model):
        """The time for an answer also ends what finds speech, which would go on long after it."""
        w = voice.weights(np.random.default_rng(5))
        with open(self.at("safetensors"), "wb") as f:
            f.write(voice.safetensors(voice.names(w, "safetensors")))
        path = self.at("wav")
        with wave.open(path, "wb") as f:
            f.setparams((1, 1, 1000, 0, "NONE", ""))
            f.writeframes(bytes([128]) * 1000 * 3600)
        with Server([self.server, *model, "--vad-model", self.at("safetensors"), "--max-time", "1"]) as server:
            status, text = self.form(server, "/v1/audio/transcriptions", path, {"vad_filter": "true"})
        self.tell("llm-server: an hour of silence in a second", status == 504, f"{status}: {text}")

    def posted(self, server, where, path, fields):
        status, text = self.form(server, where, path, fields)
        return json.loads(text) if status == 200 else {"segments": [], "status": status, "error": text}

    @staticmethod
    def form(server, where, path, fields):
        with open(path, "rb") as f:
            sound = f.read()
        body = b"".join(f'--X\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items())
        body += b'--X\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + sound + b"\r\n--X--\r\n"
        status, _, text = server.request("POST", where, body, {"Content-Type": "multipart/form-data; boundary=X"})
        return status, text

    # --- beside a pass in numpy

    def ear(self, kind, words, template, prompt):
        """A made-up ear of a family and its text model; prompt: the text around a sound, of a language and words to expect."""
        g = np.random.default_rng(4)
        eye_texts.WORDS.clear()
        ear = ear_kinds.FILES[kind](g)
        for one in words:
            eye_kinds.word(one)
        text = eye_texts.Llama(g, ear)
        gguf.write(self.at("text"), text.meta | ({"tokenizer.chat_template": template} if template else {}), text.w)
        gguf.write(self.at("ear"), ear.meta, ear.w)
        for more in ({}, {"language": "de"}, {"prompt": "Tool"}, {"task": "translate"}):
            x = sound(9000)
            path, asked = self.wav(x), prompt(more)
            flags = [x for flag in ("language", "prompt") if flag in more for x in ("--" + flag, more[flag])] + ["--translate"] * ("task" in more)
            if asked is None:
                done = subprocess.run([self.transcribe, "-m", self.at("text"), "--mmproj", self.at("ear"), *flags, path], capture_output=True, text=True)
                said = "the model takes no prompt" if "prompt" in more else "the model is asked in a conversation to write down what is said: the file has no chat template"
                self.tell(f"{kind}: {' '.join(flags)} is refused", done.returncode == 1 and done.stderr.startswith("llm-transcribe: " + said), done.stderr)
                if "task" in more:
                    self.named_template(kind, flags, path, self.greedy(text, ear, plain_prompt(more), x))
                continue
            got = [i for s in self.json_of("-m", self.at("text"), "--mmproj", self.at("ear"), *flags, path)["segments"] for i in s["tokens"]][:8]
            want = self.greedy(text, ear, asked, x)
            self.tell(f"{kind}: {' '.join(flags) or 'a sound'}", got == want, f"{got}, not {want}")
        model = "-m", self.at("text"), "--mmproj", self.at("ear")
        self.same_elsewhere(kind, model, path, {"language": "de"})
        if self.server and not template:
            self.forms(model, path)
            self.beside_the_gone(model, self.wav(sound(480000)))
            self.in_time(model)

    @staticmethod
    def greedy(text, ear, prompt, x, n=8):
        parts, out = eyes.parts_of(ear, prompt, [x]), []
        while len(out) < n:
            out.append(int(text.logits(parts + out)[-1].argmax()))
        return out

    def wav(self, x):
        path = self.at("wav")
        with wave.open(path, "wb") as w:
            w.setparams((1, 2, 16000, 0, "NONE", ""))
            w.writeframes(np.round(x * 32768).clip(-32768, 32767).astype("<i2").tobytes())
        return path

    def parts(self):
        """A sound that is longer than fits is cut where it is quiet, and each part is a piece with its times."""
        g = np.random.default_rng(4)
        eye_texts.WORDS.clear()
        ear = ear_kinds.Voxtral(g)
        for one in ("[TRANSCRIBE]", "[INST]", "[/INST]"):
            eye_kinds.word(one)
        text = eye_texts.Llama(g, ear)
        gguf.write(self.at("text"), text.meta, text.w)
        gguf.write(self.at("ear"), ear.meta, ear.w)
        each = 2 * ear.n_pos * 160, -(-ear.n_pos // 4)  # samples of a window, and its rows
        most = 128 // each[1] * each[0]
        x = sound(most + most // 2)
        quiet = most - 16000, most - 14000  # near the end of the first part
        x[quiet[0] : quiet[1]] = 0
        model = ("-m", self.at("text"), "--mmproj", self.at("ear"), "-c", "256")
        got = self.json_of(*model, self.wav(x))["segments"]
        ok = len(got) == 2 and got[0]["start"] == 0 and abs(got[1]["end"] - len(x) / 16000) < 0.01 and got[0]["end"] == got[1]["start"] and \
            quiet[0] / 16000 < got[0]["end"] < quiet[1] / 16000
        self.tell("a sound in two parts, cut where it is quiet", ok, f"{[(s['start'], s['end']) for s in got]}, {np.array(quiet) / 16000}")
        if ok:
            at = cut(x, most)
            for k, part in enumerate((x[:at], x[at:])):
                want = self.greedy(text, ear, "[INST]<__media__>[/INST][TRANSCRIBE]", part)
                self.tell(f"its part {k + 1}", got[k]["tokens"][:8] == want, f"{got[k]['tokens'][:8]}, not {want}")
        done = subprocess.run([self.transcribe, *model, "--format", "json", self.wav(x)], capture_output=True, text=True, errors="replace")
        cut_off = json.loads(done.stdout).get("warnings", [])
        self.tell("a warning of each part that is cut", len(cut_off) == 2 and all("warning: " + one in done.stderr and "fill the context of 256 tokens: open the model with more (n_ctx, or -c)" in one for one in cut_off), f"{cut_off}, {done.stderr}")
        done = subprocess.run([self.transcribe, *model[:4], self.wav(x[:8000])], capture_output=True, text=True, errors="replace")
        self.tell("a warning of a text without an end", "the text of what is said from 0.0 to 0.5 s is cut after 120 tokens, more than anybody says in that time" in done.stderr, done.stderr)
        if self.server:
            with Server([self.server, *model, "-np", "1"]) as server:
                told = self.posted(server, "/v1/audio/transcriptions", self.wav(x), {"response_format": "json"})
                self.tell("llm-server: a warning of each part", told.get("warnings") == cut_off, told)
        srt = self.run(self.transcribe, *model, "--format", "srt", self.wav(x))
        self.tell("subtitles", srt.count("-->") == 2, srt)
        later = self.json_of(*model, "--offset", "1", "--duration", "2", self.wav(x))["segments"]
        self.tell("an offset and a duration", [(s["start"], s["end"]) for s in later] == [(1, 3)] and later[0]["tokens"][:8] == self.greedy(text, ear, "[INST]<__media__>[/INST][TRANSCRIBE]", x[16000:48000]), later)
        for words, code, said in (((), 0, "so short that there is nothing to write down"), (("--offset", "1"), 2, "the sound ends before 1 seconds")):
            done = subprocess.run([self.transcribe, *model, *words, self.wav(x[:0])], capture_output=True, text=True)
            self.tell(f"no samples {' '.join(words)}".rstrip(), done.returncode == code and said in done.stderr, done.stderr)
        self.speech_alone(model, x, text, ear)
        self.idle_pipe(model, x)
        self.own_section(model, ear.meta, ear.w, self.wav(x[:8000]))
        gguf.write(self.at("ear"), ear.meta, ear.w)
        for words, said in ((("--offset", "1000"), "the sound ends before 1000 seconds"), (("-c", "8"), "the shortest sound takes"), (("-l", "xx"), "llm-transcribe: the language 'xx' is not known"),
                            (("-m", "builtin:words", "-l", "xx"), "llm-transcribe: the model "),
                            (("--word-timestamps", "--format", "json"), "needs a model such as Whisper"), (("--dump", "mel", "-o", self.at("npy")), "is for models such as Whisper"),
                            (("-m", "builtin:words", "--mmproj", self.at("ear")), "hears by itself: leave out --mmproj"), (("-m", "builtin:words", "-c", "9"), "hears by itself: leave out -c"), (("-m", "builtin:shapes", "-mm", "builtin:shapes-eye"), "makes no rows of sounds")):
            done = subprocess.run([self.transcribe, *model[: 0 if "-m" in words else 4 if "-c" in words else 6], *words, self.wav(x)], capture_output=True, text=True)
            self.tell(f"refused: {' '.join(words[:2])}", done.returncode in (1, 2) and said in done.stderr, done.stderr)

    def speech_alone(self, model, x, text, ear):
        """With a model that finds speech, what it finds is heard as one sound, and the times are those of the whole one."""
        w = voice.weights(np.random.default_rng(5))
        with open(self.at("safetensors"), "wb") as f:
            f.write(voice.safetensors(voice.names(w, "safetensors")))
        x = np.where(np.arange(len(x)) // 32000 % 2 == 0, x, 0)
        p = voice.probabilities(w, x)
        rules = float(np.median(p)), 250, 100, 0, 30
        found = voice.spans(p, len(x), np.float32(rules[0]), *rules[1:])
        words = *model[:4], "-vm", self.at("safetensors"), "-vt", str(rules[0])
        got = self.json_of(*words, self.wav(x))["segments"]
        told = subprocess.run([self.transcribe, *words, self.wav(x)], capture_output=True, text=True, errors="replace").stderr
        self.tell("a note of speech alone", f"speech was found in {len(found)} parts of " in told, told)
        heard = []
        for k, (start, end) in enumerate(found):
            end = min(end + 1600, found[k + 1][0]) if k + 1 < len(found) else end
            heard.append(np.concatenate([x[start:end], np.zeros(1600 if k + 1 < len(found) else 0)]))
        want = self.greedy(text, ear, "[INST]<__media__>[/INST][TRANSCRIBE]", np.concatenate(heard))
        ok = len(found) > 1 and len(got) == 1 and abs(got[0]["start"] - found[0][0] / 16000) < 0.01 and abs(got[0]["end"] - found[-1][1] / 16000) < 0.01
        self.tell("speech alone", ok and got[0]["tokens"][:8] == want, f"{[(s['start'], s['end'], s['tokens'][:8]) for s in got]}, not {want}, {np.array(found) / 16000}")

    def idle_pipe(self, model, x):
        """A signal ends what waits for a pipe that is open, and gives nothing."""
        with open(self.wav(x), "rb") as f:
            sound = f.read()[:60000]
        vad = "-vm", self.at("safetensors")
        for words in (*model, "-"), (*model, *vad, "-"), ("-m", "builtin:words", "-"), ("-m", "builtin:words", *vad, "-"), ("-m", "builtin:words", "--raw", "s16le", "-"):
            out, to = os.pipe()
            with subprocess.Popen([self.transcribe, *words], stdin=out, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
                os.close(out)
                os.write(to, sound)
                time.sleep(1)
                run.send_signal(signal.SIGTERM)
                try:
                    run.communicate(timeout=60)
                    ended = run.returncode
                except subprocess.TimeoutExpired:
                    run.kill()
                    ended = "it waits"
            os.close(to)
            self.tell(f"a signal and an idle pipe: {' '.join(words[::2])}", ended in (-signal.SIGTERM, 128 + signal.SIGTERM), ended)

    def own_section(self, model, meta, w, path):
        """A speech section of the file's own descriptor."""
        with open(os.path.join(HERE, "../../models/archs/clip-whisper.arch"), encoding="utf-8") as f:
            begin, rest = f.read().split("# Voxtral has a task token\n")
        for section, words, said in (('prompt "{{ sound }}{{- prompt | upper -}}"', ("--prompt", "Tool"), None), ('prompt "{{ sound }}"', ("--prompt", "Tool"), "takes no prompt"),
                                     ('prompt "{{ sound }} prompt }}"', ("--prompt", "Tool"), "takes no prompt"),
                                     ('prompt "{{ sound }} of any language"', ("-l", "de"), "the model is not told the language"), ('prompt "{{ sound }}{{language_name}}"', ("-l", "de"), None),
                                     ('prompt "{{ sound }}{% if task == \'translate\' %}{{ raise_exception(\'only \' ~ task) }}{% endif %}"', ("--translate",), "llm-transcribe: only translate\n"),
                                     ('prompt "{{ sound }}{{ sound }}"', (), "the speech section shows the sound 2 times, and not once"), ('prompt "say it"', (), "the speech section shows the sound 0 times")):
            gguf.write(self.at("ear"), meta | {"general.descriptor": begin + "speech:\n  " + section + "\n\nconvert " + rest.split("convert ", 1)[1]}, w)
            done = subprocess.run([self.transcribe, *model, *words, path], capture_output=True, text=True, errors="replace")
            fine = said in done.stderr if said else done.returncode == 0 and "is not told" not in done.stderr
            self.tell(f"{section} {' '.join(words)}".rstrip(), fine, done.stderr)

    # --- answers

    def answers(self):
        """What of an answer is said, of text models that write one text, word after word."""
        for name, token, words, want in (
                ("qwen3a", "<asr_text>", ("language", " German", "<asr_text>", "Guten", " Tag "), ("Guten Tag", "german")),
                ("qwen3a", "<asr_text>", ("language", " Filipino", "<asr_text>", "Guten"), ("Guten", "filipino")),
                ("qwen3a", "<asr_text>", ("language", " None", "<asr_text>", "Guten"), ("Guten", None)),
                ("qwen3a", "<asr_text>", ("Guten", " Tag"), ("Guten Tag", None)),
                ("audio-flamingo3", "<sound>", ("The spoken content", " of the audio is", ' "Guten', " Tag.", '".'), ("Guten Tag.", None))):
            line = next(x for x in late_senses.lines() if x["name"] == name)
            folder = self.write_folder(line, False)
            self.write_chain(line["n_row"], [token], words)
            path = self.write_medium("sound", [20000])
            got = self.json_of("-m", self.at("text"), "--mmproj", folder, path)
            ok = got["text"].strip() == want[0] and got["language"] == ({"german": "de", "filipino": "fil"}.get(want[1], want[1]))
            self.tell(f"{name}: {''.join(words)}", ok, f"{got['text']!r}, {got['language']}, not {want}")
            if want[1] == "filipino":
                for language, said in ("fil", None), ("sw", "the model does not know the language Swahili"):
                    done = subprocess.run([self.transcribe, "-m", self.at("text"), "--mmproj", folder, "-l", language, path], capture_output=True, text=True)
                    self.tell(f"{name}: -l {language}", (done.returncode == 0) == (said is None) and (said or "") in done.stderr, done.stderr)
            if self.server and want[1]:
                with Server([self.server, "-m", self.at("text"), "--mmproj", folder]) as server:
                    told = self.posted(server, "/v1/audio/transcriptions", path, {"response_format": "verbose_json"})
                    self.tell(f"{name}: llm-server", (told.get("text"), told.get("language")) == want, told)
            shutil.rmtree(folder)

    def write_chain(self, n, tokens, words):
        """A text model that writes these words behind a line break, and then ends."""
        eye_texts.WORDS.clear()
        words = [*words, "<|end|>"]
        for one in (*tokens, *words):
            eye_kinds.word(one)
        g = np.random.default_rng(6)
        text = eye_texts.Llama(g, types.SimpleNamespace(n_text=n, n_deep=0, fit_text=lambda text: None))
        ids = [10] + [256 + eye_texts.WORDS.index(one) for one in words]
        for k in text.w:
            text.w[k] *= not k.endswith(("attn_output.weight", "ffn_down.weight"))
        embd = text.w["token_embd.weight"][ids[:-1]].astype(float)
        embd /= np.sqrt((embd**2).mean(1, keepdims=True))
        output = np.zeros((text.n_vocab, n))
        output[ids[1:]] = 10 * np.linalg.pinv(embd).T[: len(ids) - 1]
        text.w["output.weight"], text.w["output_norm.weight"] = output.astype(np.float32), np.ones(n, np.float32)
        plain = [one in words and not one.startswith("<") for one in eye_texts.WORDS]
        gguf.write(self.at("text"), text.meta | {
            "tokenizer.ggml.token_type": [1] * 256 + [4 if p else 3 for p in plain], "tokenizer.ggml.eos_token_id": ids[-1],
            "tokenizer.chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ '\n' }}"}, text.w)


def sound(n):
    """Noise that is nowhere as quiet as zeros."""
    g = np.random.default_rng(n)
    x = 0.2 * g.normal(size=n) * (1 + 0.5 * np.sin(np.arange(n) * 0.001))
    return np.clip(np.round(x * 32768), -32768, 32767) / 32768


def cut(x, most, rate=16000):
    """Where a sound is cut of which so many samples fit."""
    n, first = rate // 10, most - min(5 * rate, most // 2)
    energy, least, at = 0.0, 0.0, most
    for i in range(first, most):
        energy += x[i] ** 2 - (x[i - n] ** 2 if i >= first + n else 0)
        if i + 1 >= first + n and (at == most or energy <= least):
            least, at = energy, i + 1 - n // 2
    return at


DEFAULT = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>"


def plain_prompt(more):
    """What a model is asked that has no form of its own."""
    ask = "Translate what is said into English, and write nothing else." if "task" in more else "Write down what is said, and nothing else."
    ask += " The language is German." if "language" in more else ""
    return f"<|user|><__media__>{ask}" + (f" These words may be said, or came before: {more['prompt']}" if "prompt" in more else "") + "<|assistant|>"


def voxtral_prompt(more):
    return None if "prompt" in more or "task" in more else "[INST]<__media__>[/INST]" + ("lang:de" if "language" in more else "") + "[TRANSCRIBE]"


def lines():
    with open(os.path.join(HERE, "said.txt"), encoding="utf-8") as f:
        for text in f:
            yield json.loads(text)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")  # of all tests here
    for name in ("transcribe", "dir"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--server")
    p.add_argument("--library")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    check = Check(a)
    try:
        for line in lines():
            if not a.names or line["name"] in a.names:
                check.line(line)
        for name, run in (("voxtral", lambda: check.ear("voxtral", ("[TRANSCRIBE]", "[INST]", "[/INST]"), None, voxtral_prompt)),
                          ("ultravox", lambda: check.ear("ultravox", ("<|user|>", "<|assistant|>"), DEFAULT, plain_prompt)),
                          ("qwen2a", lambda: check.ear("qwen2a", ("<|user|>", "<|assistant|>"), DEFAULT, plain_prompt)), ("parts", check.parts), ("live", check.live), ("left-out", check.left_out), ("answers", check.answers)):
            if not a.names or name in a.names:
                run()
    finally:
        for file in os.listdir(a.dir):
            if file.startswith(f"late-senses-{os.getpid()}."):
                path = os.path.join(a.dir, file)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    return int(check.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
