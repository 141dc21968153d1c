#!/usr/bin/env python3
"""Eyes and ears of folders whose rows in ./senses.txt transformers made (../real/sense_rows.py): small towers with weights from seeds, read from their folders and
from the files that llm-convert makes of them. Rows must agree within 2e-4 of the range, in float32, and between folder and file to the last bit; what stands around them in
a text shows in the logits of a small text model.

    late_senses.py --cli LLM_CLI --embed LLM_EMBED --convert LLM_CONVERT --dir FOLDER [NAME ..]

Exit code 0, 1.
"""
import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import wave

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 2e-4
IN_PIECES = "hunyuan-vl-text", "hy-v4-vl-text", "cogvlm-text"  # texts that are also run in pieces, which end within pictures


# --- seeds


def weights(shapes):
    """Numbers for tensors by their names: matrices, norms about 1, biases, tables, limits of products."""
    out = {}
    for name, shape in shapes.items():
        g = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"))
        x = g.normal(size=shape)
        if name.endswith(("put_min", "put_max")):
            x = (-1 if name.endswith("min") else 1) * (1.5 + np.abs(x))
        elif name.endswith("running_var"):
            x = 0.5 + np.abs(x)
        elif len(shape) == 1 and name.endswith(("weight", "scale")):
            x = 1 + 0.3 * x
        elif len(shape) <= 1:
            x = 0.3 * x
        elif not re.search("embedding_table|position|pos_emb", name):
            x = x / np.sqrt(np.prod(shape[1:]))
        else:
            x = 0.5 * x
        out[name] = np.asarray(x, np.float32)
    return out


def kind_of(kind, size):
    """The kind and the size of a medium; of a model that sees and hears, its kind stands before its size."""
    return (size[0], size[1:]) if kind == "both" else (kind, size)


def pictures_of(size):
    """Of the sizes of pictures one after the other, or that of a sound: those of the pictures."""
    return [size[i : i + 2] for i in range(0, len(size) - 1, 2)]


def medium(kind, size):
    """A picture of bytes, or samples of a sound."""
    g = np.random.default_rng(size)
    if kind == "sound":
        t = np.arange(size[0])
        x = 0.3 * np.sin(t * 0.05) * np.sin(t * 0.0007) + 0.01 * g.normal(size=size[0])
        return (np.round(x * 32768) / 32768).astype(np.float32)
    width, height = size
    y, x = np.mgrid[:height, :width]
    a = 128 + 60 * np.sin(x / 5 + y / 9)[..., None] * np.array([1, 0.5, -1]) + 50 * g.normal(size=(height, width, 3)) + 40 * (x > width / 2)[..., None]
    return np.clip(a, 0, 255).astype(np.uint8)


def letters(n):
    """A text of so many letters."""
    return bytes(97 + (7 * i + i // 5) % 26 for i in range(n))


PATTERN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def tekken(words, version="v13"):
    """A tokenizer of mistral_common: special tokens, of which None has no name, and bytes."""
    n = len(words)
    return {"config": {"pattern": PATTERN, "default_vocab_size": n + 256, "default_num_special_tokens": n, "num_vocab_tokens": 256, "version": version},
            "special_tokens": [{"rank": i, "token_str": x, "is_control": True} for i, x in enumerate(words) if x],
            "vocab": [{"rank": i, "token_bytes": base64.b64encode(bytes([i])).decode(), "token_str": None} for i in range(256)]}


TEKKEN = tekken(("<s>", "[STREAMING_PAD]"))


# --- lists of tensors, with {} for the numbers that count up


def packed(shapes):
    """Names whose last differing number is 0 .. n - 1 become one, with n."""
    out = []
    for name, shape in shapes.items():
        pattern = re.sub(r"(?<=\.)\d+(?=\.)", "{}", name, count=1)
        if out and pattern != name and any(p == pattern and s == shape for p, s, _ in out):
            next(x for x in out if x[0] == pattern and x[1] == shape)[2].append(int(re.search(r"(?<=\.)\d+(?=\.)", name).group()))
        else:
            out.append([pattern, shape, [int(m.group())] if (m := re.search(r"(?<=\.)\d+(?=\.)", name)) else []])
    return out


def unpacked(patterns):
    out = {}
    for pattern, shape, numbers in patterns:
        for n in numbers or [None]:
            out[pattern if n is None else pattern.replace("{}", str(n), 1)] = shape
    return out


def words_of(words):
    """The tokens behind those of bytes."""
    return list(words)


# --- the check


def off(got, want):
    return np.abs(got - want).max() / np.ptp(want) if got.shape == want.shape else np.inf


class Check:
    def __init__(self, embed, convert, cli, server, folder):
        self.embed, self.convert, self.cli, self.server, self.failed = embed, convert, cli, server, 0
        self.at = lambda name: os.path.join(folder, f"late-senses-{os.getpid()}.{name}")

    def tell(self, name, ok, what=""):
        self.failed += not ok
        print(f"{name:72} {'ok' if ok else 'FAILED'} {what}".rstrip())

    def run(self, tool, *words):
        done = subprocess.run([tool, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace")
        if done.returncode or "runtime error" in done.stderr:
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def write_folder(self, line, beside=True):
        from folders import write_safetensors
        folder = self.at("folder")
        os.makedirs(folder, exist_ok=True)
        for file, content in (("config.json", line["config"]), ("preprocessor_config.json", line["processor"])):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                json.dump(content, f)
        for name, part in line.get("folders", {}).items():
            os.makedirs(os.path.join(folder, name), exist_ok=True)
            with open(os.path.join(folder, name, "config.json"), "w", encoding="utf-8") as f:
                json.dump(part["config"], f)
            write_safetensors(os.path.join(folder, name, "model.safetensors"), weights(unpacked(part["shapes"])))
        write_safetensors(os.path.join(folder, "model.safetensors"), weights(unpacked(line["shapes"])) | ({"model.language_model.norm.weight": np.zeros(5, np.float32)} if beside else {}))
        return folder

    def write_medium(self, kind, size, nth=0, rate=16000):
        x = medium(kind, size)
        if kind == "picture":
            path = self.at(f"{nth}.ppm")
            with open(path, "wb") as f:
                f.write(b"P6 %d %d 255\n" % (x.shape[1], x.shape[0]) + x.tobytes())
            return path
        path = self.at("wav")
        with wave.open(path, "wb") as w:
            w.setparams((1, 2, rate, 0, "NONE", ""))
            w.writeframes(np.round(x * 32768).clip(-32768, 32767).astype("<i2").tobytes())
        return path

    def write_text(self, line):
        import eye_kinds
        import eye_texts
        import gguf
        import types
        eye_texts.WORDS.clear()
        for layout in line["layouts"]:
            for word in layout:
                if isinstance(word, str):
                    for one in re.findall(r"<[^<>]+>|\[[A-Z_]+\]", word):
                        eye_kinds.word(one)
        text = eye_texts.Llama(np.random.default_rng(7), types.SimpleNamespace(n_text=line["n_row"] if line["kind"] != "whole" else 16, n_deep=0, fit_text=lambda text: None))
        gguf.write(self.at("text"), text.meta, text.w)
        return text

    def seen(self, tower, kind, path, what="rows"):
        flag = "--image" if kind == "picture" else "--audio"
        self.run(self.embed, "-m", self.at("text"), "--mmproj", tower, flag, path, "--dump", what, "-o", self.at("npy"), "-c", "4096")
        return np.load(self.at("npy"))

    def whole(self, line):
        import eye_folders
        want = np.frombuffer(base64.b64decode(line["rows"]), "<f4").reshape(-1, line["n_row"]).astype(float)
        folder, first = self.write_folder(line, False), 0
        with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
            json.dump(eye_folders.tokenizer_of(self.write_text(line)), f)
        for size, layout in zip(line["media"], line["layouts"]):
            n = 4 + sum(isinstance(x, str) for x in layout)
            flags = [x for k, of in enumerate(pictures_of(size)) for x in ("--image", self.write_medium("picture", of, k))] or ["--audio", self.write_medium("sound", size)]
            self.run(self.cli, "-m", folder, "--mmproj", folder, *flags, "-p", f"ab{'<__media__>' * (len(flags) // 2)}cd", "-n", "0", "-ctk", "f32",
                     "-ctv", "f32", "--logits", self.at("npy"))
            is_text = np.concatenate([[True, True], *(np.full(1 if isinstance(x, str) else x, isinstance(x, str)) for x in layout), [True, True]])
            got = np.load(self.at("npy"))[:, : line["n_row"]]
            got = got[is_text] if len(got) == len(is_text) else got
            far = off(got, want[first : first + n])
            self.tell(f"{line['name']}: a text with {' x '.join(map(str, size))}", far <= LIMIT, f"{far:.0e}" if len(got) == n else f"{got.shape}, not {n} tokens")
            first += n
            for size in (3, 7) if line["name"] in IN_PIECES else ():
                whole = np.load(self.at("npy"))
                self.run(self.cli, "-m", folder, "--mmproj", folder, *flags, "-p", f"ab{'<__media__>' * (len(flags) // 2)}cd", "-n", "0", "-ctk", "f32",
                         "-ctv", "f32", "-b", str(size), "-ub", str(size), "--logits", self.at("npy"))
                self.tell(f"{line['name']}: the same bits in pieces of {size}", np.array_equal(whole.view(np.uint32), np.load(self.at("npy")).view(np.uint32)))
        if line["name"] == "kimi-k2.5-text":
            self.as_published(line, folder, flags)
        if line["name"] == "hunyuan-vl-text":
            self.hostile_parts(line["name"], folder)
        shutil.rmtree(folder)

    def as_published(self, line, folder, flags):
        """The same folder with a configuration as that of Kimi K2.5 is published: names of its own, and a text part that says its own class."""
        c, want = line["config"], np.load(self.at("npy"))
        vision = {"patch_size": c["vision_config"]["patch_size"], "pos_emb_type": "divided_fixed", "init_pos_emb_height": 5, "init_pos_emb_width": 5, "init_pos_emb_time": 4, "merge_kernel_size": [2, 2],
                  "merge_type": "sd2_tpool", "mm_hidden_size": 24, "mm_projector_type": "patchmerger", "model_type": "", "projector_hidden_act": "gelu", "projector_ln_eps": 1e-05,
                  "text_hidden_size": 16, "video_attn_type": "spatial_temporal", "vt_hidden_size": 24, "vt_intermediate_size": 40, "vt_num_attention_heads": 3, "vt_num_hidden_layers": 3}
        published = {"architectures": ["KimiK25ForConditionalGeneration"], "ignore_index": -100, "media_placeholder_token_id": 3, "model_type": "kimi_k25", "tie_word_embeddings": False,
                     "use_unified_vision_chunk": True, "video_placeholder": "<|kimi_k25_video_placeholder|>", "vision_config": vision,
                     "text_config": {**c["text_config"], "architectures": ["DeepseekV3ForCausalLM"], "aux_loss_alpha": 0.001, "ep_size": 1, "moe_layer_freq": 1, "scoring_func": "sigmoid",
                                     "seq_aux": True, "topk_method": "noaux_tc", "num_nextn_predict_layers": 0, "pretraining_tp": 1}}
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(published, f)
        self.run(self.cli, "-m", folder, "--mmproj", folder, *flags, "-p", f"ab{'<__media__>' * (len(flags) // 2)}cd", "-n", "0", "-ctk", "f32", "-ctv", "f32", "--logits", self.at("npy"))
        self.tell(f"{line['name']}: the same scores of a folder as published", np.array_equal(want, np.load(self.at("npy"))))

    def hostile_parts(self, name, folder):
        """Parts of the rotation that are more than it, or no sizes, are refused, as one number, too."""
        import gguf
        self.run(self.convert, folder, "-o", self.at("own"))
        meta, tensors = gguf.read(self.at("own"))
        meta = {k: gguf.Typed(gguf.ARRAY, [], gguf.STRING) if v == [] else v for k, v in meta.items()}
        for parts, ok in ((1, True), (2, False), (10**9, False), (-1, False), (0.5, False), ([1, 1, 1, 1], True), ([2, 1, 1, 1], False), ([10**9, 0, 0, 0], False)):
            gguf.write(self.at("parts"), meta | {"hunyuan_vl.rope.dimension_sections": parts}, tensors)
            done = subprocess.run([self.cli, "-m", self.at("parts"), "-p", "ab", "-n", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
            self.tell(f"{name}: parts {parts}", done.returncode == (0 if ok else 1) and (ok or re.search("parts of a rotation that|four parts of one size", done.stderr) is not None), "" if ok else done.stderr.strip()[:200])

    def added(self, line):
        """A model to whose tokens rows are added: its rows, the scores of a text with as many tokens, all at once and one after the other, and where it ends to write."""
        numbers = lambda x, n: np.frombuffer(base64.b64decode(x), "<f4").reshape(-1, n).astype(float)  # noqa: E731
        rows, scores = numbers(line["rows"], line["n_row"]), numbers(line["scores"], 64)
        name, folder, file, own, first = line["name"], self.write_folder(line, False), self.at("file"), self.at("own"), 0
        for change, words in ((lambda x: x.pop("special_tokens"), "it has no special_tokens"), (lambda x: x["config"].update(pattern="a+"), "its pattern, which cuts"),
                              (lambda x: x["vocab"].pop(7), "but vocab has"), (lambda x: x["vocab"][7].update(rank=1000), "no token has the rank 7"),
                              (lambda x: x["config"].update(pattern=x["config"]["pattern"] + "\0|a"), "its pattern, which cuts"), (lambda x: x["vocab"][7].update(token_bytes="*"), "vocab[7]: its token_bytes are not base64"),
                              (lambda x: x["special_tokens"][1].update(rank=0), "special_tokens[1] needs a token_str, and a rank of its own below 2")):
            damaged = json.loads(json.dumps(TEKKEN))
            change(damaged)
            with open(os.path.join(folder, "tekken.json"), "w", encoding="utf-8") as f:
                json.dump(damaged, f)
            done = subprocess.run([self.convert, folder, "-o", own], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.tell(f"{name}: tekken.json: {words}", done.returncode == 1 and words in done.stderr and "tekken.json" in done.stderr, done.stderr.strip())
        with open(os.path.join(folder, "tekken.json"), "w", encoding="utf-8") as f:
            json.dump(TEKKEN, f)
        self.run(self.convert, folder, "-o", own, "--mmproj", file)
        for size, n in zip(line["media"], line["counts"]):
            path, want = self.write_medium("sound", size), scores[first : first + n]
            for model, tower in ((folder, folder), (own, file)):
                self.run(self.embed, "-m", model, "--mmproj", tower, "--audio", path, "--dump", "rows", "-o", self.at("npy"))
                got, far = np.load(self.at("npy")), off(np.load(self.at("npy")), rows[first : first + n])
                self.tell(f"{name}: rows of {size[0]} samples", far <= LIMIT, f"{far:.0e}" if len(got) == n else f"{got.shape}, not {n} rows")
            for at_once in "512", "1", "7":
                self.run(self.cli, "-m", own, "--mmproj", file, "--audio", path, "-p", "<__media__>" + letters(n - 39).decode(), "-n", "0", "-ctk", "f32", "-ctv", "f32", "-ub", at_once,
                         "--logits", self.at("npy"))
                got = np.load(self.at("npy"))[:, :64]
                far = off(got, want)
                self.tell(f"{name}: scores, {at_once} at once", far <= LIMIT, f"{far:.0e}" if len(got) == n else f"{got.shape}, not {n} tokens")
            done = subprocess.run([self.cli, "-m", own, "--mmproj", file, "--audio", path, "-p", "<__media__>", "--temp", "0", "--ignore-eos"], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="backslashreplace")
            self.tell(f"{name}: it writes as long as there are rows", re.search(rf"\b{n - 40} tokens", done.stderr) is not None, done.stderr)
            for what, words, said in (("more text than sound", ("-p", "<__media__>" + letters(n - 38).decode(), "-n", "5"), f"the text has {n + 1} tokens, but the sound has rows for {n}"),
                                      ("a context without room", ("-p", "<__media__>", "-c", "48"), "the shortest sound takes 50 tokens, and the context has 48"),
                                      ("room for the shortest", ("-p", "<__media__>", "-c", "50"), "the sound has more than 0.08 seconds, the most")):
                done = subprocess.run([self.cli, "-m", own, "--mmproj", file, "--audio", path, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace")
                self.tell(f"{name}: {what}", done.returncode in (1, 2) and said in done.stderr, done.stderr.strip())
            first += n
        done = subprocess.run([self.cli, "-m", own, "--mmproj", file, "--audio", path, "-p", "a<__media__>", "-n", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.served(name, own, file, path, ("", "a"), (39, None))
        self.tell(f"{name}: nothing before a sound", done.returncode == 1 and "a sound begins the text" in done.stderr, done.stderr.strip())
        self.agrees(name, folder, file, line)
        strange = self.write_folder({**line, "config": {**line["config"], "audio_config": {**line["config"]["audio_config"], "activation_function": "strange"}}}, False)
        done = subprocess.run([self.cli, "-m", strange, "-p", "ab", "-n", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace")
        self.tell(f"{name}: an ear that is left out", done.returncode == 0 and "the model hears no sounds: " in done.stderr and "pictures" not in done.stderr, done.stderr.strip())
        done = subprocess.run([self.cli, "-m", strange, "-p", "ab", "-n", "1", "--audio", path], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace")
        last = done.stderr.splitlines()[-1] if done.stderr else ""
        self.tell(f"{name}: the error of one that is left out", done.returncode == 1 and "the model hears no sounds: " in last and "activation" in last, done.stderr.strip())
        shutil.rmtree(folder)

    def served(self, name, model, tower, path, texts, counts):
        """llm-server lays out a picture or sound behind each text as llm-cli does; a count of None: it is refused."""
        if not self.server:
            return
        sys.path.insert(0, os.path.join(HERE, "../server"))
        from running import Server
        with open(path, "rb") as f:
            medium = base64.b64encode(f.read()).decode()
        with Server([self.server, "-m", model, "--mmproj", tower, "-c", "512", "-np", "1"]) as server:
            for text, n in zip(texts, counts):
                body = {"prompt": {"prompt_string": text + "<__media__>", "multimodal_data": [medium]}, "n_predict": 1, "cache_prompt": False}
                status, _, answer = server.post("/completion", body)
                got = json.loads(answer).get("tokens_evaluated") if status == 200 else None
                self.tell(f"{name}: llm-server, behind {text!r}", got == n and status in (200, 400), f"{status}: {got}, not {n}")

    def rows(self, line):
        if line["kind"] == "added":
            self.added(line)
            return
        if line["kind"] == "whole":
            self.whole(line)
            return
        from eye_kinds import Seen
        from eye_texts import tokens_of
        name, kind = line["name"], line["kind"]
        want = np.frombuffer(base64.b64decode(line["rows"]), "<f4").reshape(-1, line["n_row"]).astype(float)
        text, folder = self.write_text(line), self.write_folder(line)
        file = self.at("file")
        if self.convert:
            self.run(self.convert, folder, "--mmproj", file)
        first, limit, shown, prompt, flags, media = 0, line.get("limit", LIMIT), [*tokens_of("ab")], "ab", [], kind
        for size, layout in zip(line["media"], line["layouts"]):
            kind, size = kind_of(media, size)
            path = self.write_medium(kind, size, rate=line.get("rate", 16000))
            n = sum(x for x in layout if not isinstance(x, str))
            got = self.seen(folder, kind, path)
            far = off(got, want[first : first + n])
            self.tell(f"{name}: rows of {' x '.join(map(str, size))}", far <= limit, f"{far:.0e}" if got.shape[0] == n else f"{got.shape}, not {n} rows")
            if self.convert:
                same = np.array_equal(got.view(np.uint32), self.seen(file, kind, path).view(np.uint32))
                self.tell(f"{name}: the same rows of its file", same)
            if self.cli:
                parts, at = [*tokens_of("ab")], first
                if "fill" in line:  # a row of the model's own, as often as it takes until the rows behind their first begin at a multiple
                    own, each = line["fill"]
                    lead = -(len(parts) + 1) % each
                    parts += [Seen(np.repeat(weights(unpacked(line["shapes"]))[own][None].astype(float), lead, 0), [(0, i) for i in range(lead)])] * (lead > 0)
                for x in layout:
                    parts += tokens_of(x) if isinstance(x, str) else [Seen(want[at : at + x], [(0, i) for i in range(x)])]
                    at += 0 if isinstance(x, str) else x
                flag = "--image" if kind == "picture" else "--audio"
                shown, prompt, flags = shown + parts[2:] + tokens_of("cd"), prompt + "<__media__>cd", flags + [flag, path]
                self.run(self.cli, "-m", self.at("text"), "--mmproj", folder, flag, path, "-p", "ab<__media__>cd", "-n", "0", "-ctk", "f32", "-ctv", "f32", "-c", "4096",
                         "--logits", self.at("npy"))
                got, all_ = np.load(self.at("npy")), text.logits(parts + tokens_of("cd"))
                far = off(got, all_)
                self.tell(f"{name}: the text around it", far <= 5 * limit, f"{far:.0e}" if got.shape == all_.shape else f"{got.shape}, not {all_.shape}")
            first += n
        if self.cli and "twin" in line:
            self.in_twin(line, folder, want)
            self.both_parts(line)
        if self.cli and media == "both":
            for tower in folder, file:
                self.run(self.cli, "-m", self.at("text"), "--mmproj", tower, *flags, "-p", prompt, "-n", "0", "-ctk", "f32", "-ctv", "f32", "-c", "4096", "--logits", self.at("npy"))
                got, all_ = np.load(self.at("npy")), text.logits(shown)
                far = off(got, all_)
                self.tell(f"{name}: a picture and a sound in one text", far <= 5 * limit, f"{far:.0e}" if got.shape == all_.shape else f"{got.shape}, not {all_.shape}")
        if self.convert and media == "both":
            self.half_known(name, file, line)
        if self.convert and name == "glm5.3":
            self.first_names(name, file, line)
        if self.convert and name == "reka-edge":
            self.as_counted(name, file, line)
            self.alone(name, folder)
        if self.convert and media == "sound":
            self.agrees(name, folder, file, line)
        if self.convert and name == "voxtral":
            self.lacking(line)
        if self.convert and name == "mimo-v2.5-ear":
            self.hostile_codes(name, file, line)
            self.beside_an_eye(name, file, line)
        if self.convert and name == "glm-asr":
            self.ends(name, file, line)
            self.named(name, file, line, "clip:glma")
        if self.convert:
            self.others(line)
        shutil.rmtree(folder)

    def sections(self):
        """Each conversion of an eye has the rules of all: `others` tries some of them. Finds the classes whose eyes obey the size of a processor's file."""
        archs, self.sized = os.path.join(HERE, "../../models/archs"), {}
        for name in sorted(os.listdir(archs)):
            with open(os.path.join(archs, name), encoding="utf-8") as f:
                _, *sections = re.split("^convert ", f.read(), flags=re.M)
            for section in sections if name.startswith("clip-") else ():
                for rule in re.findall(r"use eye_(side|edges)\b", section):
                    self.sized |= {of: rule for of in re.findall(r"\w+", section.split(":")[0].split(" if ")[0])}
                if ".vision.image_mean" in section and "use eye_rules" not in section:
                    self.tell(f"{name}: {section.split(':')[0]}", False, "lacks 'use eye_rules'")

    def others(self, line):
        """What a folder says that an eye or ear does not compute is refused, by its name."""
        wanted, sees = [], line["kind"] == "picture"
        if sees:
            wrong = [("do_resize", False), ("rescale_factor", 0.5), ("do_rescale", False)] + [("do_normalize", False)] * bool(line["processor"].get("image_mean", [0.5])[0])
            rule = self.sized.get(line["config"]["architectures"][0])
            wrong += [("size", x) for x in (7, {"height": 7, "width": 7})] if rule else []
            wanted = [({key: x}, {}, f"preprocessor_config.json: {key}{'.height = 7' if isinstance(x, dict) else f' = {json.dumps(x)}'}") for key, x in wrong]
            wanted += [({"size": {"longest_edge": 32}}, {}, "preprocessor_config.json: size.longest_edge = 32: ")] * (rule == "side")
            if "max_height" in (line["processor"].get("size") or {}):
                wanted += [({"size": {"max_height": 7, "max_width": 7}}, {}, "preprocessor_config.json: size.max_height = 7")]
            side = line["config"].get("vision_config", {}).get("image_size")
            if rule == "side":
                folder = self.write_folder({**line, "processor": {**line["processor"], "size": side[0] if isinstance(side, list) else side}})
                self.run(self.convert, folder, "--mmproj", self.at("sized"))
        for tower in ("vision_config", "audio_config"):
            rope = (line["config"].get(tower) or {}).get("rope_parameters")
            if rope:
                wanted.append(({}, {tower: {**line["config"][tower], "rope_parameters": {**rope, "rope_type": "yarn", "factor": 2.0}}}, "rotation"))
                wanted.append(({}, {tower: {**line["config"][tower], "rope_parameters": {**rope, "factor": 2.0}}}, "rope_parameters.factor"))
        for processor, config, word in wanted:
            folder = self.write_folder({**line, "processor": {**line["processor"], **processor}, "config": {**line["config"], **config}})
            done = subprocess.run([self.convert, folder, "--mmproj", self.at("refused")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode != 1 or word not in done.stderr or (processor and "; accepted: " not in done.stderr):
                self.tell(f"{line['name']}: another {word}", False, done.stderr.strip() or "converted")
        self.tell(f"{line['name']}: {len(wanted)} that are refused", True)

    def in_twin(self, line, folder, rows):
        """In a text of the family's own model, whose rows see each other from the first one to the last one."""
        import gguf
        import nano
        from eye_texts import byte_names, tokens_of
        nano.load_family(line["twin"])
        twin, (own, each), at = sys.modules[line["twin"]], line["fill"], 0
        case = twin.model("late-senses", 77, [0, 4, 8, 0], {"context_length": 512, "attention.indexer.top_k": 5}, hashed=2, n_embd=line["n_row"], n_vocab=256, sees=True)
        gguf.write(self.at("twin"), case.meta() | {
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": byte_names(), "tokenizer.ggml.token_type": [1] * 256,
            "tokenizer.ggml.merges": gguf.Typed(gguf.ARRAY, [], gguf.STRING), "tokenizer.ggml.add_bos_token": False}, case.tensors)
        fill, table = weights(unpacked(line["shapes"]))[own].astype(float), case.tensors["token_embd.weight"].astype(float)
        texts, counts = ("ab", "abc", "a", "abcdefgh"), []
        for (size, (n,)), before in zip(zip(line["media"], line["layouts"]), texts):
            shown, at = rows[at : at + n], at + n
            lead = -(len(before) + 1) % each
            seen = twin.Seen([], [], [])
            seen.tokens = [*tokens_of(before), *[0] * (lead + n), *tokens_of("cdefg")]
            begin = len(before) + lead
            for t in range(len(seen.tokens)):
                inside = begin <= t < begin + n
                seen.is_row.append(len(before) <= t < begin + n)
                seen.first.append(begin if inside else t)
                seen.end.append(begin + n if inside else t + 1)
            x = np.concatenate([table[tokens_of(before)], np.repeat(fill[None], lead, 0), shown, table[tokens_of("cdefg")]])
            path, counts = self.write_medium("picture", size), counts + [len(before) + lead + n]
            self.run(self.cli, "-m", self.at("twin"), "--mmproj", folder, "--image", path, "-p", before + "<__media__>cdefg", "-n", "0", "-ctk", "f32",
                     "-ctv", "f32", "--logits", self.at("npy"))
            want, got = twin.with_pictures(case, x, seen), np.load(self.at("npy"))
            far = off(np.where(np.isnan(got), want, got), want) if got.shape == want.shape else np.inf
            self.tell(f"{line['name']}: a text of its own family with {' x '.join(map(str, size))}", far <= LIMIT and not np.isnan(got[begin + n - 1 :]).any(), f"{far:.0e} {got.shape}")
        self.served(line["name"], self.at("twin"), folder, path, texts[-1:], counts[-1:])

    def both_parts(self, line):
        """A folder as published, of a text model and its eye: its two files see what it sees."""
        import eye_folders
        import folders_deepseek4 as published
        from folders import Weights, write_safetensors
        from eye_texts import byte_names
        published.WIDE, published.N_VOCAB = line["n_row"], 256
        config = {**published.CONFIG, **line["config"], "hidden_size": line["n_row"], "vocab_size": 256, "rope_theta": 300.0}
        del config["theta"]
        folder, w = self.write_folder(line, False), Weights(5)
        published.weights(config, w)
        for l in range(config["num_hidden_layers"]):
            w.vector(f"layers.{l}.ffn.gate.bias_vl", config["n_routed_experts"])
        write_safetensors(os.path.join(folder, "model.safetensors"), weights(unpacked(line["shapes"])) | {k: v if v.dtype == np.int64 else v.astype(np.float32) for k, v in w.items()})
        tokens = type("Tokens", (), {"meta": {"tokenizer.ggml.tokens": byte_names()}})
        for file, content in (("config.json", config), ("tokenizer.json", eye_folders.tokenizer_of(tokens))):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                json.dump(content, f)
        self.run(self.convert, folder, "-o", self.at("whole"), "--mmproj", self.at("file"))
        path, found = self.write_medium("picture", line["media"][0]), []
        for words in (("-m", folder), ("-m", self.at("whole"), "--mmproj", self.at("file"))):
            self.run(self.cli, *words, "--image", path, "-p", "ab<__media__>cd", "-n", "0", "-t", "1", "--logits", self.at("npy"))
            found.append(np.load(self.at("npy")))
        same = found[0].shape == found[1].shape and np.array_equal(found[0].view(np.uint32), found[1].view(np.uint32))
        self.tell(f"{line['name']}: a folder that sees, and its two files", same and np.ptp(found[0][-1]) > 0, f"{found[0].shape}")

    def first_names(self, name, file, line):
        """A file of those that came first, with another name of the projector and of the clamp; one without a clamp, or of nothing, is refused."""
        import gguf
        meta, tensors = gguf.read(file)
        clamp, path = meta.pop("clip.vision.swiglu_clamp"), self.write_medium("picture", line["media"][0])
        gguf.write(self.at("first"), meta | {"clip.projector_type": "glm5next", "clip.vision.swiglu_limit": clamp}, tensors)
        self.tell(f"{name}: the same rows of a file with the first names", np.array_equal(self.seen(file, "picture", path), self.seen(self.at("first"), "picture", path)))
        for keys, words in (({}, "swiglu_clamp is missing"), ({"clip.vision.swiglu_clamp": gguf.Typed(gguf.F32, 0.0)}, "gates that are clamped at 0")):
            gguf.write(self.at("first"), meta | keys, tensors)
            done = subprocess.run([self.embed, "-m", self.at("text"), "--mmproj", self.at("first"), "--image", path, "--dump", "rows", "-o", self.at("npy")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.tell(f"{name}: {words}", done.returncode == 1 and words in done.stderr, done.stderr.strip())

    def as_counted(self, name, file, line):
        """A file that does not say how many blocks a part has, and how wide they are, as llama.cpp's converter makes it."""
        import gguf
        meta, tensors = gguf.read(file)
        gguf.write(self.at("counted"), {k: v for k, v in meta.items() if ".stage_" not in k}, tensors)
        path = self.write_medium("picture", line["media"][0])
        same = np.array_equal(self.seen(file, "picture", path), self.seen(self.at("counted"), "picture", path))
        self.tell(f"{name}: the same rows of a file without its own keys", same)

    def alone(self, name, folder):
        """A folder whose text model is not known says how its eye is opened."""
        for words in ([self.cli, "-m", folder, "-p", "a"], [self.convert, folder, "-o", self.at("own")]):
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.tell(f"{name}: {os.path.basename(words[0])} says how its eye is opened", done.returncode == 1 and f"--mmproj {folder})" in done.stderr, done.stderr.strip())

    def ends(self, name, file, line):
        """A file as llama.cpp 0.5.0 makes it of the first folders: rows of its own stand before and after those of each window, and heads have what is turned as neighbours."""
        import gguf
        meta, tensors = gguf.read(file)
        n_head = meta["clip.audio.attention.head_count"]
        for turned in [x for x in tensors if ".attn_q." in x or ".attn_k." in x]:
            head = tensors[turned].reshape(n_head, -1, *tensors[turned].shape[1:])
            half = head.shape[1] // 2
            order = [*np.arange(half).reshape(2, -1).T.ravel(), *range(half, 2 * half)]
            tensors[turned] = np.ascontiguousarray(head[:, order].reshape(tensors[turned].shape))
        own = [np.arange(line["n_row"], dtype=np.float32) * f for f in (1, -2)]
        gguf.write(self.at("ends"), meta, tensors | {"v.boi": own[0], "v.eoi": own[1]})
        for size, layout in zip(line["media"], line["layouts"]):
            path, want, at = self.write_medium("sound", size), [], 0
            rows = self.seen(file, "sound", path)
            for n in (x for x in layout if not isinstance(x, str)):
                want += [own[0][None], rows[at : at + n], own[1][None]]
                at += n
            got = self.seen(self.at("ends"), "sound", path)
            self.tell(f"{name}: rows of the model's own around {size[0]} samples", off(got, np.concatenate(want)) <= 1e-6, f"{got.shape}")

    def agrees(self, name, folder, file, line):
        """A processor's file that says of sound what the ear does not do is refused, with the field and both values, in either form; what agrees is not."""
        rate = line.get("rate", 16000)
        said = {"sampling_rate": (rate, 8000)}
        said |= {} if name == "gemma4ua" else {"hop_length": (rate // 100, 128), "fft_length" if name.startswith("gemma4a") else "n_fft": (None, 800)}
        said |= {"chunk_length": (30, 20)} if name in ("audio-flamingo3", "music-flamingo", "glm-asr", "meralion") else {}
        fills = {"dither": (0.0, 0.01), "padding_value": (0.0, 0.5)}
        whisper = {"feature_extractor_type": ("WhisperFeatureExtractor", "ASTFeatureExtractor"), "padding_side": ("right", "left")} | fills
        own = dict.fromkeys(("voxtral", "audio-flamingo3", "music-flamingo", "glm-asr"), whisper) | dict.fromkeys(("qwen2.5o", "meralion"), fills)
        own["qwen3a"] = {"feature_extractor_type": ("Qwen3ASRFeatureExtractor", "ASTFeatureExtractor"), "dither": (0.0, 0.01), "min_length": (8000, 100), "n_window": (25, None),
                         "padding_side": ("left", None), "chunk_length": (10, None)}
        own["voxtral"] = whisper | {"chunk_length": (10, None), "do_normalize": (True, None)}  # None: no value has an effect
        said |= own.get(name, {})
        for form, path in ((lambda x: x, ""), (lambda x: {"feature_extractor": x}, "feature_extractor.")):
            for field, (right, wrong) in said.items():
                for value in (right, wrong):
                    if value is None:
                        continue
                    with open(os.path.join(folder, "preprocessor_config.json"), "w", encoding="utf-8") as f:
                        json.dump(form(line["processor"] | {field: value}), f)
                    done = subprocess.run([self.convert, folder, "--mmproj", file + ".other"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
                    ok = done.returncode == 0 if value == right else (
                        done.returncode == 1 and f"preprocessor_config.json: {path}{field} = {json.dumps(value)}: " in done.stderr and "; accepted: " in done.stderr
                        and (right is None or "; accepted: " + json.dumps(right).replace(".0", "") in done.stderr) and (field in own.get(name, {}) or " sound with " in done.stderr))
                    self.tell(f"{name}: a processor's {field} of {value}", ok, "" if ok else done.stderr.strip())

    def lacking(self, line):
        """Of a folder that lacks a tensor, no value is blamed; of one that lacks a whole layer, the one that says how many there are."""
        for part, value in (("layers.1.fc1.weight", None), ("layers.1.", "config.json: audio_config.num_hidden_layers = 2: ")):
            folder = self.write_folder({**line, "shapes": [[name, shape, []] for name, shape in unpacked(line["shapes"]).items() if part not in name]})
            done = subprocess.run([self.convert, folder, "--mmproj", self.at("refused")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            ok = done.returncode == 1 and "nothing in the folder is the source of a.blk.1." in done.stderr and (value in done.stderr if value else " = " not in done.stderr)
            self.tell(f"{line['name']}: without {part}", ok, "" if ok else done.stderr.strip())

    def beside_an_eye(self, name, file, line):
        """A folder with an eye, too: both are in one file, and each makes its own rows. Without the folder within it that the ear needs, it sees."""
        from folders import write_safetensors
        eye = next(x for x in lines() if x["name"] == "mimo-v2.5")
        path, picture = self.write_medium("sound", line["media"][0], rate=line["rate"]), self.write_medium("picture", eye["media"][0])
        folder = self.write_folder({**line, "config": {**line["config"], **eye["config"], "audio_config": line["config"]["audio_config"]}, "processor": eye["processor"],
                                    "shapes": [*line["shapes"], *eye["shapes"]]}, False)
        heard = self.seen(file, "sound", path)
        self.run(self.convert, folder, "--mmproj", self.at("both"))
        for tower in folder, self.at("both"):
            same = np.array_equal(heard, self.seen(tower, "sound", path))
            far = off(self.seen(tower, "picture", picture), np.frombuffer(base64.b64decode(eye["rows"]), "<f4").reshape(-1, eye["n_row"])[: eye["layouts"][0][1]].astype(float))
            self.tell(f"{name}: an eye and an ear of {'a folder' if tower == folder else 'a file'}", same and far <= LIMIT, f"{far:.0e}")
        own, within = line["folders"]["audio_tokenizer"]["config"], os.path.join(folder, "audio_tokenizer")

        def refused(file, text, *said):
            os.makedirs(within, exist_ok=True)
            with open(os.path.join(within, file), "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run([self.convert, folder, "--mmproj", self.at("both")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            ok = done.returncode == 1 and all(x in done.stderr for x in said)
            self.tell(f"{name}: audio_tokenizer, {said[-1]}", ok, "" if ok else done.stderr.strip())

        for key, x in (("avg_pooler", 3), ("encoder_causal", False), ("encoder_skip_layer_id", 2), ("nfft", 1024), ("num_quantizers", 5), ("swa_per_block", 0), ("rope_theta", 1000), ("fmax", 8000)):
            refused("config.json", json.dumps(own | {key: x}), f"{within}/config.json: ", f" {key} = {json.dumps(x)}")
        refused("config.json", json.dumps({key: x for key, x in own.items() if key != "stride_size"}), "config.modules.audio_tokenizer.stride_size is missing in audio_tokenizer/config.json")
        refused("config.json", json.dumps(own | {"d_model": 25}), f"{folder}/config.json: audio_config.input_local_dim = 24, {within}/config.json: d_model = 25: ")
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            outer = json.load(f)
        refused("../config.json", json.dumps(outer | {"modules": {}}), f"{folder}/config.json has a value 'modules', ")
        refused("../config.json", json.dumps(outer), "audio_config.input_local_dim = 24")
        shutil.rmtree(within)
        missing = "audio_tokenizer/config.json: no such file: the folder audio_tokenizer of the model"
        for tool, words, code, said in ((self.convert, (folder, "--mmproj", self.at("both")), 1, missing),
                                        (self.embed, ("-m", self.at("text"), "--mmproj", folder, "--image", picture, "--dump", "rows", "-o", self.at("npy")), 0, "hears no sounds: " + folder + "/" + missing)):
            done = subprocess.run([tool, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            ok = done.returncode == code and said in done.stderr
            self.tell(f"{name}: {os.path.basename(tool)} of a folder without audio_tokenizer", ok, "" if ok else done.stderr.strip())
        refused("config.json", "[]", "config.json: an object is expected")
        refused("config.json", "{", "audio_tokenizer/config.json")
        missing = f"llm-convert: {within}: there is no model.safetensors and no model.safetensors.index.json; the model needs the weights of this folder, too: download them"
        refused("config.json", json.dumps(own), missing)
        refused("model.safetensors", "{", f"{within}/model.safetensors")
        os.remove(os.path.join(within, "model.safetensors"))
        tensors = weights(unpacked(line["folders"]["audio_tokenizer"]["shapes"]))
        write_safetensors(os.path.join(within, "model.safetensors"), {name: w for name, w in tensors.items() if name != "encoder.conv1.weight"})
        refused("config.json", json.dumps(own), "; it comes from encoder.conv1.weight of the folder audio_tokenizer ")
        os.remove(os.path.join(within, "model.safetensors"))
        names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
        for k, part in enumerate(names):
            write_safetensors(os.path.join(within, part), {name: w for i, (name, w) in enumerate(tensors.items()) if i % 2 == k})
        index = json.dumps({"weight_map": {name: names[i % 2] for i, name in enumerate(tensors)}})
        with open(os.path.join(within, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
            f.write(index)
        self.tell(f"{name}: audio_tokenizer in two files", np.array_equal(heard, self.seen(folder, "sound", path)))
        os.remove(os.path.join(within, names[1]))
        refused("model.safetensors.index.json", index, f"llm-convert: {within}/{names[1]}: no such file, but model.safetensors.index.json names it: download it")
        os.remove(os.path.join(within, "model.safetensors.index.json"))
        refused("config.json", json.dumps(own), f"llm-convert: {within}: {names[1]} is missing: the folder has 1 of the 2 parts in their names; the model needs")

    def hostile_codes(self, name, file, line):
        """Codebooks, groups and windows that do not fit, from the file's keys or its tensors, are refused, with the key or the tensor."""
        import gguf
        meta, tensors = gguf.read(file)
        cut = lambda tensor, *at: {tensor: tensors[tensor][at].copy()}  # noqa: E731
        path, most = self.write_medium("sound", line["media"][0], rate=line["rate"]), slice(None)
        for what, keys, changed, words in (
                ("three of four codebooks", {"rvq.codebook_size": [20, 20, 12]}, {}, "rvq.codebook_size does not say how long each"),
                ("a codebook of more rows than the table", {"rvq.codebook_size": [20, 21, 12, 7]}, {}, "a codebook of no rows, or of more than the tables have"),
                ("a codebook of 2 thousand million rows", {"rvq.codebook_size": [20, 2 * 10**9, 12, 7]}, {}, "a codebook of no rows, or of more than the tables have"),
                ("a codebook of no rows", {"rvq.codebook_size": [20, 0, 12, 7]}, {}, "a codebook of no rows, or of more than the tables have"),
                ("a codebook of -1 rows", {"rvq.codebook_size": [20, 20, 12, -1]}, {}, "a codebook of no rows, or of more than the tables have"),
                ("no codebooks", {"rvq.num_quantizers": 0}, {}, "rvq.codebook_size does not say how long each"),
                ("a million codebooks", {"rvq.num_quantizers": 10**6}, {}, "rvq.codebook_size does not say how long each"),
                ("a table of three codebooks", {}, cut("a.rvq.codebook.weight", slice(3)), "a.rvq.codebook.weight is [24, 20, 3]"),
                ("a table of shorter codebooks", {}, cut("a.rvq.codebook.weight", most, slice(19)), "a codebook of no rows, or of more than the tables have"),
                ("fewer embeddings than codes", {}, cut("mm.a.code_embd.weight", most, slice(11)), "a codebook of no rows, or of more than the tables have"),
                ("embeddings of another size", {}, cut("mm.a.code_embd.weight", most, most, slice(23)), "mm.a.code_embd.weight is [23, 28, 4]"),
                ("groups of no rows", {"local_group_size": 0}, {}, "groups without rows"),
                ("groups of -4 rows", {"local_group_size": -4}, {}, "groups without rows"),
                ("groups of other rows than the projection's", {"local_group_size": 5}, {}, "mm.a.mlp.1.weight is [96, 20]"),
                ("groups of 2 million rows", {"local_group_size": 2 * 10**6}, {}, "local_group_size"),
                ("windows of three of four layers", {"wa_pattern_mode": [0, -1, 0]}, {}, "wa_pattern_mode"),
                ("an unknown window", {"wa_pattern_mode": [0, -1, 0, 1]}, {}, "wa_pattern_mode is -1 or 0"),
                ("a window of no rows", {"window_size": 0}, {}, "a window without earlier rows"),
                ("two layers", {"block_count": 2, "wa_pattern_mode": [0, -1]}, {}, "an encoder without a third layer")):
            keys = meta | {"clip.audio." + k: v for k, v in keys.items()}
            gguf.write(self.at("hostile"), {k: gguf.Typed(gguf.ARRAY, v, gguf.I32) if isinstance(v, list) else v for k, v in keys.items()}, tensors | changed)
            done = subprocess.run([self.embed, "-m", self.at("text"), "--mmproj", self.at("hostile"), "--audio", path, "--dump", "rows", "-o", self.at("npy")],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace", timeout=100)
            self.tell(f"{name}: {what}", done.returncode == 1 and words in done.stderr and "hostile" in done.stderr, f"{done.returncode}: {done.stderr.strip()[:600]}" * (words not in done.stderr))

    def named(self, name, file, line, family):
        """What is said of a text without the ear's marks names the file's own family, and not another one of its descriptor."""
        self.write_text(line | {"layouts": []})
        done = subprocess.run([self.cli, "-m", self.at("text"), "--mmproj", file, "--audio", self.write_medium("sound", line["media"][0]), "-p", "ab<__media__>", "-n", "0"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.tell(f"{name}: its family in notes", done.returncode == 0 and f"note: the ear is one of {family}, whose" in done.stderr, done.stderr.strip())

    def half_known(self, name, file, line):
        """Of a file with an eye and an ear of which one is of a kind that nobody knows, the other one is used."""
        import gguf
        meta, tensors = gguf.read(file)
        for tower, says, (kind, *size) in (("audio", "the model hears no sounds", line["media"][0]), ("vision", "the model sees no pictures", line["media"][1])):
            gguf.write(self.at("half"), meta | {f"clip.{tower}.projector_type": "future"}, tensors)
            path, flag = self.write_medium(kind, size), "--image" if kind == "picture" else "--audio"
            whole = self.seen(file, kind, path)
            same = np.array_equal(whole, self.seen(self.at("half"), kind, path))
            done = subprocess.run([self.embed, "-m", self.at("text"), "--mmproj", self.at("half"), flag, path, "--dump", "rows", "-o", self.at("npy")],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.tell(f"{name}: an unknown kind of {tower}", same and says in done.stderr and "clip:future" in done.stderr, done.stderr.strip() if says not in done.stderr else "")


def lines():
    with open(os.path.join(HERE, "senses.txt"), encoding="utf-8") as f:
        for text in f:
            yield json.loads(text)


def main():
    p = argparse.ArgumentParser()
    for name in ("cli", "embed", "convert", "dir"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--server")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    check = Check(a.embed, a.convert, a.cli, a.server, a.dir)
    try:
        check.sections()
        for line in lines():
            if not a.names or line["name"] in a.names:
                check.rows(line)
    finally:
        for file in os.listdir(a.dir):
            if file.startswith(f"late-senses-{os.getpid()}."):
                path = os.path.join(a.dir, file)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    return int(check.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
