#!/usr/bin/env python3
"""Speech: llm-transcribe beside a pass in float64 that shares no code with it, for seeded models and sounds: the spectrogram, encoder and decoder, the rules
for times, greedy and with beams, languages, windows that begin where the last piece ended, what was written before, silence. The tokens and
times of all pieces are the same, log-probabilities within 1e-3.

    transcribe.py --transcribe LLM_TRANSCRIBE --dir FOLDER

Exit code 0, 1.
"""
import argparse
import codecs
import io
import json
import lzma
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import folders_speech
import gguf
import terminals
import today
from eye_texts import byte_names

RATE, N_MEL = 16000, 12
WORDS = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|yue|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>",
         "<|notimestamps|>"]
TEXTS = [" a", " the", " b", "ck", "d\u00e9", " \u201c", "\u4e2d", ", ", "..", " [", "()", "\u3002", " \u00e9\u00e9", "-c", " \"", "\uff01"]  # tokens besides single bytes
TEXTS_FIRST = 256
N_TEXTS = TEXTS_FIRST + len(TEXTS)
END, START, EN, DE, YUE, TRANSLATE, TRANSCRIBE, LM, PREV, SILENT, NO_TIMES = range(N_TEXTS, N_TEXTS + len(WORDS))
FIRST, N_TIMES = N_TEXTS + len(WORDS), 301
N_VOCAB = FIRST + N_TIMES


VOCABULARY = byte_names() + ["".join(byte_names()[b] for b in t.encode()) for t in TEXTS] + WORDS + [f"<|{k * 0.02:.2f}|>" for k in range(N_TIMES)]
SPACE = byte_names().index("\u0120")
BYTES = [bytes([b]) for b in range(256)] + [t.encode() for t in TEXTS]  # of each token that is text


# --- the model --------------------------------------------------------------------------------------


def make_model(g):
    n_head, n_enc, n_dec, n_ctx, n_sound = (int(g.integers(*x)) for x in ((1, 4), (0, 3), (1, 3), (12, 40), (50, 160)))
    n_embd = n_head * 2 * int(g.integers(4, 9))
    random = lambda *shape: (g.normal(size=shape) / math.sqrt(shape[-1])).astype(np.float32)
    w = {"token_embd.weight": (2 * g.normal(size=(N_VOCAB, n_embd)) / math.sqrt(n_embd)).astype(np.float32), "enc.conv1.weight": random(n_embd, N_MEL, 3),
         "enc.conv1.bias": random(n_embd), "enc.conv2.weight": random(n_embd, n_embd, 3), "enc.conv2.bias": random(n_embd),
         "enc.position_embd.weight": random(n_sound, n_embd), "dec.position_embd.weight": random(n_ctx, n_embd)}

    def norm(name):
        w[name + ".weight"], w[name + ".bias"] = 1 + random(n_embd), random(n_embd)

    def attention(at, kind):
        norm(f"{at}.{kind}_norm")
        for p in "qkvo":
            w[f"{at}.{kind}_{p}.weight"] = 2 * random(n_embd, n_embd)
            if p != "k":
                w[f"{at}.{kind}_{p}.bias"] = random(n_embd)

    for part, n in (("enc", n_enc), ("dec", n_dec)):
        for l in range(n):
            at = f"{part}.blk.{l}"
            attention(at, "attn")
            if part == "dec":
                attention(at, "cross_attn")
            norm(f"{at}.ffn_norm")
            for name, shape in (("up", (2 * n_embd, n_embd)), ("down", (n_embd, 2 * n_embd))):
                w[f"{at}.ffn_{name}.weight"], w[f"{at}.ffn_{name}.bias"] = random(*shape), random(shape[0])
        norm(f"{part}.output_norm")
    meta = {"general.architecture": "whisper"} | {"whisper." + k: v for k, v in {
        "embedding_length": n_embd, "feed_forward_length": 2 * n_embd, "block_count": n_enc, "decoder_block_count": n_dec, "attention.head_count": n_head,
        "context_length": n_ctx, "audio.context_length": n_sound, "audio.mel_count": N_MEL, "vocab_size": N_VOCAB, "decoder_start_token_id": START}.items()}
    meta |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": VOCABULARY,
             "tokenizer.ggml.token_type": [1] * N_TEXTS + [int(g.choice([3, 4]))] * (N_VOCAB - N_TEXTS), "tokenizer.ggml.merges": gguf.Typed(gguf.ARRAY, [], gguf.STRING), "tokenizer.ggml.eos_token_id": END}
    return meta, w, (n_embd, n_head, n_enc, n_dec, n_ctx, n_sound)


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, w, shape):
        self.w = {k: v.astype(np.float64) for k, v in w.items()}
        self.n_embd, self.n_head, self.n_enc, self.n_dec, self.n_ctx, self.n_sound = shape

    def norm(self, x, name):
        c = x - x.mean(-1, keepdims=True)
        return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0)

    def attend(self, at, kind, x, to, causal=False, shares=None):
        cut = lambda z: z.reshape(len(z), self.n_head, -1)
        q, k, v = (cut(self.linear(z, f"{at}.{kind}_{p}")) for p, z in (("q", x), ("k", to), ("v", to)))
        s = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2])
        if causal:
            s = np.where(np.arange(len(x))[:, None] >= np.arange(len(to)), s, -np.inf)
        if shares is not None:
            shares.append(softmax(s))
        return self.linear(np.einsum("hij,jhd->ihd", softmax(s), v).reshape(len(x), -1), f"{at}.{kind}_o")

    def feed(self, at, x):
        return x + self.linear(gelu(self.linear(self.norm(x, at + ".ffn_norm"), at + ".ffn_up")), at + ".ffn_down")

    def conv(self, x, name, every):
        k, n = self.w[name + ".weight"], len(x)
        p = np.vstack([np.zeros((1, x.shape[1])), x, np.zeros((1, x.shape[1]))])
        return np.array([sum(k[:, :, j] @ p[i + j] for j in range(3)) + self.w[name + ".bias"] for i in range(0, n, every)])

    def encode(self, mel):
        x = gelu(self.conv(gelu(self.conv(mel, "enc.conv1", 1)), "enc.conv2", 2)) + self.w["enc.position_embd.weight"]
        for l in range(self.n_enc):
            h = self.norm(x, f"enc.blk.{l}.attn_norm")
            x = self.feed(f"enc.blk.{l}", x + self.attend(f"enc.blk.{l}", "attn", h, h))
        return self.norm(x, "enc.output_norm")

    def decode(self, heard, ids, shares=None):
        x = self.w["token_embd.weight"][ids] + self.w["dec.position_embd.weight"][: len(ids)]
        for l in range(self.n_dec):
            at = f"dec.blk.{l}"
            h = self.norm(x, at + ".attn_norm")
            x = x + self.attend(at, "attn", h, h, True)
            x = self.feed(at, x + self.attend(at, "cross_attn", self.norm(x, at + ".cross_attn_norm"), heard, shares=shares))
        return self.norm(x, "dec.output_norm") @ self.w["token_embd.weight"].T


# --- the sound --------------------------------------------------------------------------------------


def make_sound(g):
    """Bursts of tones and noise, with pauses, as 16-bit samples."""
    parts = []
    for _ in range(int(g.integers(2, 9))):
        n = int(g.integers(800, 24000))
        t = np.arange(n) / RATE
        tone = np.sin(2 * np.pi * g.uniform(80, 5000) * t) * g.uniform(0, 1)
        parts += [g.uniform(0, 0.6) * (tone + 0.3 * g.normal(size=n)), np.zeros(int(g.integers(0, 9000)))]
    return np.clip(np.concatenate(parts) * 20000, -32768, 32767).astype("<i2")


def write_wav(path, x):
    with open(path, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", 36 + 2 * len(x)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16))
        f.write(b"data" + struct.pack("<I", 2 * len(x)) + x.tobytes())


def mel_of(hz):
    return hz * 3 / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)


def hz_of(mel):
    return mel * 200 / 3 if mel < 15 else 1000 * math.exp(math.log(6.4) * (mel - 15) / 27)


def filters():
    edge = [hz_of(m) for m in np.linspace(0, mel_of(RATE / 2), N_MEL + 2)]
    f = np.arange(201) * RATE / 400
    return np.array([2 / (c - a) * np.maximum(0, np.minimum((f - a) / (b - a), (c - f) / (c - b))) for a, b, c in zip(edge, edge[1:], edge[2:])])


def spectrogram(x, n_more):
    """Rows of the sound, and n_more of silence after it."""
    x = x.astype(np.float64) / 32768
    n = len(x) // 160
    padded = np.concatenate([x[1:201][::-1], x, np.zeros(160 * n_more + 400)])
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    power = np.array([np.abs(np.fft.rfft(padded[160 * i : 160 * i + 400] * window)) ** 2 for i in range(n + n_more)])
    rows = np.log10(np.maximum(power @ filters().T, 1e-10))
    return n, (np.maximum(rows, rows.max() - 8) + 4) / 4


# --- words ------------------------------------------------------------------------------------------

SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
BEFORE, AFTER, ENDS = "\"'\u201c\u00bf([{-", "\"'.\u3002,\uff0c!\uff01?\uff1f:\uff1a\u201d)]}\u3001", ".\u3002!\uff01?\uff1f"
codecs.register_error("each", lambda e: ("\ufffd", e.start + 1))  # U+FFFD for each byte that is no part of a character


def text_of(ids):
    return b"".join(BYTES[t] for t in ids).decode("utf-8", "each")


def way(cost):
    """The row's first column in the cheapest way through the table."""
    n, m = cost.shape
    best, came = np.full((n + 1, m + 1), np.inf), {}
    best[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            both, row, column = best[i - 1, j - 1], best[i - 1, j], best[i, j - 1]
            came[i, j] = (0, 1) if column <= min(both, row) else (1, 1) if both <= row else (1, 0)
            best[i, j] = cost[i - 1, j - 1] + best[i - came[i, j][0], j - came[i, j][1]]
    i, j, first = n, m, [0] * n
    while i > 0:
        first[i - 1] = j - 1
        i, j = i - came[i, j][0], j - came[i, j][1]
    return first


def medians(x):
    if len(x) <= 3:
        return x
    wide = np.pad(x, 3, mode="reflect")
    return np.array([np.median(wide[k : k + 7]) for k in range(len(x))])


def split(ids, spaceless):
    """Lists of tokens, each a word."""
    whole, words, some, offset = text_of(ids) + "|", [], [], 0
    for k, t in enumerate(ids):
        some.append(t)
        text = text_of(some)
        bad = text.find("\ufffd")
        if bad >= 0 and whole[offset + bad] != "\ufffd" and k + 1 < len(ids):
            continue
        offset += len(text)
        if words and not spaceless and not text.startswith(" ") and text.strip(" \t\n\r\v\f") not in SIGNS:
            words[-1] += some
        else:
            words.append(some)
        some = []
    return words


def find_words(m, heard, orders, pieces, n_rows, heads, spaceless):
    """[text, start, end, probability] of each word, in seconds of the window, a list for each piece, which is a list of tokens. No word goes on in the next piece, unlike published."""
    shares, ids = [], sum(pieces, [])
    all_ids = orders + [NO_TIMES] + ids + [END]
    logits = m.decode(heard, all_ids, shares)[len(orders) :, :END]
    p = [softmax(logits[k])[t] for k, t in enumerate(ids)]
    x = np.array([shares[l][h][:, :n_rows] for l, h in heads])
    x = x / x.sum(-1, keepdims=True)
    x = (x - x.mean(1, keepdims=True)) / np.maximum(x.std(1, keepdims=True), 1e-300)
    table = np.mean([[medians(line) for line in head] for head in x], axis=0)[len(orders) : -1]
    first, words, at = way(-table), [], 0
    for piece in pieces:
        words.append([])
        for tokens in split(piece, spaceless):
            end = at + len(tokens)
            words[-1].append([text_of(tokens), first[at] / 50, first[end] / 50, float(np.mean(p[at:end]))])
            at = end
    return words


def place_words(words, pieces, begin, limit, last_end):
    """pieces: [start, end], which get a list of words [start, end, text, probability] and new times, the words in order and none after the limit. Returns where they end."""
    flat = sum(words, [])
    lengths = [w[2] - w[1] for w in flat if w[2] != w[1]]
    usual = min(0.7, float(np.median(lengths))) if lengths else 0.0
    most = 2 * usual
    for a, b in zip(flat, flat[1:]):
        if lengths and b[2] - b[1] > most:
            if b[0] in ENDS:
                b[2] = b[1] + most
            elif a[0] in ENDS:
                b[1] = b[2] - most
    for piece, some in zip(pieces, words):
        into = len(some) - 1
        for k in range(len(some) - 2, -1, -1):
            a = some[k]
            if a[0].startswith(" ") and a[0].strip() in BEFORE:
                some[into][0], a[0] = a[0] + some[into][0], ""
            else:
                into = k
        into = 0
        for k in range(1, len(some)):
            a, b = some[into], some[k]
            if not a[0].endswith(" ") and b[0] in AFTER:
                a[0], b[0] = a[0] + b[0], ""
            else:
                into = k
        rounded = lambda t: math.floor(100 * (begin + t) + 0.5) / 100
        own = [[rounded(start), rounded(end), text, p] for text, start, end, p in some if text]
        piece.append(own)
        if not own:
            continue
        a, b = own[0], own[1] if len(own) > 1 else None
        if a[1] - last_end > 4 * usual and (a[1] - a[0] > most or (b and b[1] - a[0] > 2 * most)):
            if b and b[1] - b[0] > most:
                a[1] = b[0] = max(b[1] / 2, b[1] - most)
            a[0] = max(0, a[1] - most)
        if piece[0] < a[1] and piece[0] - 0.5 > a[0]:
            a[0] = max(0, min(a[1] - usual, piece[0]))
        z = own[-1]
        if piece[1] > z[0] and piece[1] + 0.5 < z[1]:
            z[1] = max(z[0] + usual, piece[1])
        for word in own:
            word[0] = max(last_end, min(word[0], limit))
            last_end = word[1] = max(word[0], min(word[1], limit))
        piece[0], piece[1] = a[0], z[1]
    return next((piece[2][-1][1] for piece in reversed(pieces) if piece[2]), pieces[-1][1])


# --- writing it down --------------------------------------------------------------------------------


def is_time(t):
    return t >= FIRST


def allowed(said, logits, times):
    x = logits.copy()
    x[[*range(START, FIRST)]] = -np.inf
    for c in "\"#()*+/:;<=>@[\\]^_`{|}~":
        x[byte_names().index(c)] = -np.inf
    x[SPACE] = -np.inf  # " -" and " '" begin with it, and notes of music with " " and then bytes
    for first in ("\u2669".encode()[0],):
        x[first] = -np.inf
    if not said:
        x[END] = -np.inf
    if not times:
        x[FIRST:] = -np.inf
        return x
    last, before = bool(said) and is_time(said[-1]), len(said) < 2 or is_time(said[-2])
    if last and before:
        x[FIRST:] = -np.inf
    elif last:
        x[:END] = -np.inf
    marks = [t for t in said if is_time(t)]
    if marks:
        x[FIRST : marks[-1] + (0 if last and not before else 1)] = -np.inf
    if not said:
        x[:FIRST] = -np.inf
        x[FIRST + 51 :] = -np.inf
    p = x - np.log(np.exp(x - x.max()).sum()) - x.max()
    if np.log(np.exp(p[FIRST:]).sum() + 1e-300) > p[:FIRST].max():
        x[:FIRST] = -np.inf
    return x


def log_softmax(x):
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


def search(m, heard, prompt, times, n_beams):
    """Beams as published: those that end are kept until there are enough; the mean of log-probabilities decides. Returns ids and the mean."""
    beams, done = [([], 0.0)], []
    for _ in range(m.n_ctx // 2):
        steps = []
        for said, total in beams:
            p = log_softmax(allowed(said, m.decode(heard, prompt + said)[-1], times))
            steps += [(total + p[t], said, int(t)) for t in np.argsort(-p)[: 2 * n_beams] if p[t] > -np.inf]
        beams = []
        for total, said, t in sorted(steps, key=lambda s: -s[0])[: 2 * n_beams]:
            if len(beams) == n_beams:
                break
            if t != END:
                beams.append((said + [t], total))
            elif len(done) < n_beams:
                done.append((said, total))
        if not beams or len(done) >= n_beams or len(prompt) + len(beams[0][0]) > m.n_ctx:
            break
    done += beams[: n_beams - len(done)]
    said, total = max(done, key=lambda d: d[1] / max(1, len(d[0])))
    return said, total / (len(said) + 1)


def cut(said, at, window):
    """Pieces (start, end, tokens) in ms, and where the next window begins, in rows."""
    marks = [is_time(t) for t in said]
    ends = [k for k in range(1, len(said)) if marks[k - 1] and marks[k]]
    alone = marks[-2:] == [False, True] or (len(said) == 1 and marks == [True])
    ms = lambda t: 20 * (t - FIRST)
    if not ends:
        last = [ms(t) for t in said if is_time(t) and t > FIRST]
        return [(0, last[-1] if last else 10 * window, said)], at + window
    pieces, first = [], 0
    for k in ends + ([len(said)] if alone else []):
        pieces.append((ms(said[first]), ms(said[k - 1]), said[first:k]))
        first = k
    return pieces, at + (window if alone else min(window, ms(said[first - 1]) // 10))  # a model of short windows may name later times


def transcribe(m, x, times, n_beams, language, translate, context, english=False, heads=None):
    """heads: [layer, head] of those that tell when words are said; None: no words."""
    n_window = 2 * m.n_sound
    n, rows = spectrogram(x, n_window)
    at, history, begin, out, token, last_end = 0, [], 0, [], None, 0.0
    while at < n:
        window = min(n_window, n - at)
        if token is None and not english:  # of the language, the sound is followed by silence; of words, by zeros
            token = language or EN + int(np.argmax(m.decode(m.encode(rows[at : at + n_window]), [START])[0][EN : YUE + 1]))
        heard = m.encode(np.concatenate([rows[at : at + window], np.zeros_like(rows[: n_window - window])]))
        said_before = history[begin:][-(m.n_ctx // 2 - 1) :]
        prompt = ([PREV] + said_before if said_before else []) + [START] + ([] if english else [token, TRANSLATE if translate else TRANSCRIBE]) + ([] if times else [NO_TIMES])
        silence = softmax(m.decode(heard, prompt)[prompt.index(START)])[SILENT]
        said, mean = search(m, heard, prompt, times, n_beams)
        if silence > 0.6 and mean < -1:
            at += window
            continue
        pieces, after = cut(said, at, window)
        placed = []  # in the sound, unlike published: what is said after its end is said in its last 20 ms
        for start, end, _ in pieces:
            stop = min(end, 10 * window)
            start = max(0, stop - 20) if start >= stop and end > start else min(start, stop)
            placed.append([max(at * 0.01 + start / 1000, placed[-1][0] if placed else 0), at * 0.01 + stop / 1000])
        if heads:
            orders = prompt[prompt.index(START) :][: 1 if english else 3]
            said_of = [[t for t in ids if t < END] for _, _, ids in pieces]
            words = find_words(m, heard, orders, said_of, window // 2, heads, not english and token == YUE) if window > 1 else [[] for _ in pieces]
            last_end = place_words(words, placed, at * 0.01, 0.01 * (at + window), last_end)
            if not (len(said) >= 2 and is_time(said[-1]) and not is_time(said[-2])) and last_end > at * 0.01:
                after = at + min(window, math.floor(100 * (last_end - at * 0.01) + 0.5))
        for (start, end, *own), (_, _, ids) in zip(placed, pieces):
            text = b"".join(BYTES[t] for t in ids if t < END)
            if end > start and text.strip(b" "):
                out.append((round(start, 2), round(end, 2), ids, mean, *own))
                history += ids
        if not context:
            begin = len(history)
        at = after if after > at else at + window
    return "en" if english else VOCABULARY[token].strip("<|>"), out


# --- comparing --------------------------------------------------------------------------------------


def run(a, files, *words):
    done = subprocess.run([a.transcribe, "-q", "-m", files + ".gguf", "--format", "json", "-ctk", "f32", "-ctv", "f32", *words, files + ".wav"], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0 or b"runtime error" in done.stderr:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.decode().strip()}")
    return json.loads(done.stdout)


def not_in_order(said, length):
    """What is wrong with the times of pieces and their words: all lie in the sound, words in their pieces, one after the other, and they are the piece's text."""
    wrong, last = [], 0
    for s in said["segments"]:
        words = s["words"] or [{"start": s["start"], "end": s["end"], "word": s["text"]}]  # a window of a row has none
        times = [last, *(t for w in words for t in (w["start"], w["end"])), length + 1e-9]
        text = "".join(w["word"] for w in words)
        if times != sorted(times) or [s["start"], s["end"]] != [times[1], times[-2]] or text != s["text"]:
            wrong.append((s["start"], s["end"], s["text"], times, text))
        last = times[-2]
    return wrong


def test_words(a, seed, g, m, x, files, meta, w, english):
    """Times of words: by the heads that the file names, or by all of the upper half of the layers."""
    heads = sorted({(int(g.integers(m.n_dec)), int(g.integers(m.n_head))) for _ in range(3)}) if seed % 3 else None
    if heads:
        gguf.write(files + ".gguf", meta | {"whisper.alignment_heads": [k for head in heads for k in head]}, w)
    heads = heads or [(l, h) for l in range(m.n_dec // 2, m.n_dec) for h in range(m.n_head)]
    language = YUE if seed % 5 == 1 and not english else EN  # one that is written without spaces
    got = run(a, files, "-bs", "1", "-tpi", "0", "-l", VOCABULARY[language].strip("<|>"), "--word-timestamps")
    wrong = not_in_order(got, len(x) / RATE)
    if wrong:
        print(f"   not in order: {wrong} FAILED")
    got = got["segments"]
    want = transcribe(m, x, True, 1, language, False, True, english, heads)[1]
    lines = [[[k["start"], k["end"], k["word"], k["probability"]] for k in s["words"]] for s in got]
    n = sum(len(line) for line in lines)
    ok = [s["tokens"] for s in got] == [p[2] for p in want] and [[k[2] for k in line] for line in lines] == [[k[2] for k in p[4]] for p in want]
    off = [abs(u - v) for line, p in zip(lines, want) for k, l in zip(line, p[4]) for u, v in zip(k[:2], l[:2])] if ok else [9]
    off += [abs(u - v) for s, p in zip(got, want) for u, v in ((s["start"], p[0]), (s["end"], p[1]))]
    far = max([abs(k[3] - l[3]) for line, p in zip(lines, want) for k, l in zip(line, p[4])], default=0)
    ok = ok and max(off) < 0.0201 and far < 1e-3  # a frame
    print(f"   {n} words by {len(heads)} heads {'ok' if ok else 'FAILED'} {sum(d > 0.0051 for d in off)} others, {max(off):.2f} s {far:.0e}")
    if not ok:
        print("   got", [(s["start"], s["end"], s["tokens"], l) for s, l in zip(got, lines)], "\n  want", want)
    return not ok or bool(wrong)


def test(a, seed):
    g = np.random.default_rng(seed)
    files = os.path.join(a.dir, f"transcribe-{os.getpid()}")
    meta, w, shape = make_model(g)
    x = make_sound(g)
    failed, english = 0, seed % 4 == 0
    if english or seed % 4 == 1:
        meta |= {"whisper.multilingual": not english}
    try:
        gguf.write(files + ".gguf", meta, w)
        write_wav(files + ".wav", x)
        m = Model(w, shape)
        times, translate, context = bool(g.integers(4)), bool(g.integers(3) == 0), bool(g.integers(3))
        language, n_beams = [None, DE, EN][int(g.integers(3))], int(g.choice([1, 1, 2, 5]))
        language = EN if english and language else language
        words = ["-bs", str(n_beams), "-tpi", "0"] + ([] if times else ["--no-timestamps"]) + (["--translate"] if translate else []) + ([] if context else ["-nc"])
        got = run(a, files, *words, *(["-l", VOCABULARY[language].strip("<|>")] if language else []))
        code, want = transcribe(m, x, times, n_beams, language, translate, context, english)
        same = [(s["start"], s["end"], s["tokens"]) for s in got["segments"]] == [p[:3] for p in want]
        off = max([abs(s["avg_logprob"] - p[3]) for s, p in zip(got["segments"], want)], default=0)
        ok = same and off < 1e-3 and (not want or got["language"] == code)
        failed += not ok
        print(f"{seed}{' English' if english else ''}: {len(x) / RATE:.1f} s, windows of {shape[5] / 50:.1f} s, {len(want)} pieces, {' '.join(words)} {'ok' if ok else 'FAILED'} {off:.0e}")
        if not same:
            print("   got", [(s["start"], s["end"], s["tokens"]) for s in got["segments"]], "\n  want", [p[:3] for p in want])
        failed += test_words(a, seed, g, m, x, files, meta, w, english)
        words = ["-bs", "1", "-bo", "3", "-lpt", "0", "-nth", "1", "-et", "0"]
        warm = run(a, files, *words)
        ok = all(s["temperature"] == 1 for s in warm["segments"]) and warm == run(a, files, *words, "-t", "2")
        failed += not ok
        print(f"   drawn texts {'ok' if ok else 'FAILED'}")
    finally:
        for end in (".gguf", ".wav"):
            if os.path.exists(files + end):
                os.unlink(files + end)
    return failed


def mistakes(a):
    """What people type, and broken sounds: each is a sentence with exit code 1 or 2; what is written of the others can be read again."""
    g, failed = np.random.default_rng(4), 0
    folder = tempfile.mkdtemp(dir=a.dir)
    at = lambda name: os.path.join(folder, name)
    meta, w, _ = make_model(g)
    gguf.write(at("m.gguf"), meta, w)
    x = make_sound(g)
    write_wav(at("s.wav"), x)
    write_wav(at("none.wav"), x[:0])
    write_wav(at("silence.wav"), np.zeros(90000, "<i2"))
    whole = open(at("s.wav"), "rb").read()
    for name, data in (("cut.wav", whole[: len(whole) // 2]), ("text.wav", b"no sound at all"), ("empty.wav", b"")):
        with open(at(name), "wb") as f:
            f.write(data)

    def tell(words, code, says, *checks, **more):
        nonlocal failed
        done = subprocess.run([a.transcribe, *words], cwd=folder, capture_output=True, timeout=60, **{"stdin": subprocess.DEVNULL, **more})
        ok = done.returncode == code and says in done.stderr.decode() and all(check(done.stdout.decode()) for check in checks)
        failed += not ok
        if not ok:
            print(f"{' '.join(words)} FAILED: {done.returncode}, {done.stderr.decode()[-300:]}")

    model, quick = ["-m", "m.gguf"], ["-bs", "1", "-tpi", "0"]
    for words, code, says in (
        ([*model], 2, "there is no sound"), (["s.wav"], 0, "no model is named (-m), so builtin:words listens"), ([*model, "nowhere.wav"], 1, "nowhere.wav"), ([*model, "."], 1, "directory"),
        ([*model, "text.wav"], 1, "as no kind of sound that is known here; samples without a header need --raw s16le or f32le, and ffmpeg may know other kinds: ffmpeg -i text.wav -ar 16000 -ac 1 out.wav"), ([*model, "empty.wav"], 1, "empty"), ([*model, "-l", "klingon", "s.wav"], 2, "the language 'klingon'; give a code or an English name: en, de, yue"),
        ([*model, "-ot", "999", "s.wav"], 2, "the sound ends before 999 seconds"), ([*model, "none.wav"], 0, "nothing to write down"),
        ([*model, *quick, "cut.wav"], 0, "before its header says"), ([*model, *quick, "silence.wav"], 0, ""), ([*model, "-o", "no/x.srt", "s.wav"], 1, "folder does not exist"),
        ([*model, "--output-dir", "no", "s.wav"], 1, "folder does not exist"), ([*model, "-o", "x", "s.wav", "cut.wav"], 2, "--output-dir"),
        ([*model, "--tokens", "1", "s.wav"], 2, "need each other"), ([*model, "--tokens", "99999", "--logits", "l.npy", "s.wav"], 2, "99999 is not in the vocabulary"),
        ([*model, "--dump", "mel", "s.wav"], 2, "-o FILE.npy"), (["-m", "builtin:stories", "s.wav"], 1, "does not hear"), ([*model, "-ml", "1", "s.wav"], 2, "--max-words-per-line 1, each word by itself"),
        ([*model, "--raw-rate", "8000", "s.wav"], 2, "are for --raw"), ([*model, *quick, "-o", "/dev/full", "s.wav"], 1, "/dev/full")):
        tell(words, code, says)
    language = lambda s: json.loads(s)["language"]
    for sound, words, good in (("none.wav", [], [None]), ("none.wav", ["-l", "german"], ["de"]), ("silence.wav", [], ["en", "de", "yue"]), ("silence.wav", ["-l", "de"], ["de"])):
        tell([*model, *quick, "--format", "json", *words, sound], 0, "", lambda s: language(s) in good)
    # what is written is neither the sound nor another one's text
    for folder_of in ("one", "two"):
        os.mkdir(at(folder_of))
        shutil.copyfile(at("s.wav"), at(folder_of + "/t.wav"))
    shutil.copyfile(at("s.wav"), at("t.txt"))
    for words, says in ((["-o", "s.wav", "s.wav"], "s.wav"), (["--logits", "one/t.wav", "--tokens", "1", "one/t.wav"], "one/t.wav"), (["--output-dir", ".", "t.txt"], "t.txt"),
                        (["--output-dir", ".", "one/t.wav", "two/t.wav"], "one/t.wav and two/t.wav would both be written to ./t.txt")):
        tell([*model, *quick, *words], 2, says)
    with open(at("s.wav"), "rb") as f:
        if f.read() != whole:
            print("a sound was overwritten FAILED")
            failed += 1

    def variant(name, n_ctx=None, lacks=(), suppressed=(), **keys):
        """Another model: with another context, without some tokens, with some that any model may suppress, or with other keys."""
        other = meta | {"whisper." + k: v for k, v in keys.items()} | {"tokenizer.ggml.tokens": [f"unused {i}" if t in lacks else t for i, t in enumerate(VOCABULARY)]}
        weights = dict(w)
        if suppressed:
            other |= {"tokenizer.ggml.suppress_tokens": list(suppressed)}
        if n_ctx:
            other |= {"whisper.context_length": n_ctx}
            weights["dec.position_embd.weight"] = (g.normal(size=(n_ctx, weights["dec.position_embd.weight"].shape[1])) / 4).astype(np.float32)
        gguf.write(at(name), other, weights)
        return ["-m", name, *quick]

    # a context longer than that of any published model, and the shortest ones
    tell([*variant("long.gguf", 4200), "--prompt", "a" * 4000, "s.wav"], 0, "")
    for n_ctx in (1, 2, 3, 4, 5, 8):
        for words in (["-l", "en"], ["-l", "en", "--no-timestamps", "--prompt", "abc"]):
            few = n_ctx < (5 if "--prompt" in words else 4)
            tell([*variant("short.gguf", n_ctx), *words, "s.wav"], 1 if few else 0, "short.gguf: the context has" if few else "")
    only = variant("english.gguf", multilingual=False)
    for words, code, says in (
        ([*variant("lacks-1.gguf", lacks=["<|transcribe|>"]), "s.wav"], 1, "there is no <|transcribe|>"), ([*variant("lacks-2.gguf", lacks=["<|translate|>"]), "--translate", "s.wav"], 1, "lack <|translate|>"),
        (["-m", "lacks-2.gguf", *quick, "s.wav"], 0, ""), ([*variant("lacks-3.gguf", lacks=["<|startofprev|>"]), "--prompt", "a", "s.wav"], 1, "lack <|startofprev|>"),
        ([*only, "--translate", "s.wav"], 0, "knows English alone: there is nothing to translate"), ([*only, "-l", "de", "s.wav"], 2, "knows English alone, and not the language 'de'; give en"),
        ([*only, "-l", "English", "s.wav"], 0, ""), ([*variant("key-1.gguf", multilingual=3), "s.wav"], 1, "key-1.gguf: key 'whisper.multilingual'"),
        ([*variant("key-2.gguf", suppress_tokens=["a"]), "s.wav"], 1, "key-2.gguf: key whisper.suppress_tokens is no list of tokens")):
        tell(words, code, says)
    # the list of tokens that any model may have counts beside the one of the family
    some, texts = list(range(40, TEXTS_FIRST + len(TEXTS) // 2)), []
    for name, of_family, of_all in (("one.gguf", [1], []), ("both.gguf", [1, *some], []), ("apart.gguf", [1], some)):
        tell([*variant(name, suppressed=of_all, suppress_tokens=of_family), "s.wav"], 0, "", lambda text: texts.append(text) or bool(text))
    if len(texts) != 3 or texts[1] != texts[2] or texts[0] == texts[1]:
        print(f"tokenizer.ggml.suppress_tokens FAILED: {texts}")
        failed += 1
    # a weight that makes scores infinite, and rows that are longer than the times of tokens
    w["token_embd.weight"][TEXTS_FIRST + 3] = 0
    w["token_embd.weight"][TEXTS_FIRST + 3, 0] = 3e38
    tell([*variant("huge.gguf"), "s.wav"], 1, "the model's numbers are not finite")
    w["token_embd.weight"][TEXTS_FIRST + 3, 0] = 0
    with open(folders_speech.DESCRIPTOR, encoding="utf-8") as f:
        slow = f.read().replace("step = 160, seconds = n_sound / 50,", "step = 1600, seconds = n_sound / 5,")
    with open(at("slow.arch"), "w", encoding="utf-8") as f:
        f.write(slow)
    # the scores are the same for all tokens: each window has a piece of 20 ms, and the next one begins after it
    same = ("dec.output_norm.weight", "dec.output_norm.bias", "token_embd.weight")
    old = {name: w[name].copy() for name in same}
    for name in same:
        w[name][:] = 0
    w["dec.output_norm.bias"][0] = 1
    w["token_embd.weight"][:, 0] = -5
    w["token_embd.weight"][[FIRST, FIRST + 1, TEXTS_FIRST], 0] = 6, 5, 3
    tell([*variant("slow.gguf"), "--arch", "slow.arch", "-l", "en", "s.wav"], 0, "")
    w.update(old)
    # heads of attention that tell when words are said: ones that do not exist are told of only if words are wanted
    for heads, says in (([9, 0], "a layer that the decoder lacks: .alignment_heads[2*i] = 9, n_dec ="), ([0, 7], "a head that its layers lack: .alignment_heads[2*i + 1] = 7, n_head ="),
                        ([0], "no pairs of a layer and a head"), ([0, 0] * 3000, "more alignment_heads than any decoder has: n_pair = 3000"), ([-1, 0], "without a head of the decoder")):
        words = variant("heads.gguf", alignment_heads=gguf.Typed(gguf.ARRAY, heads, gguf.I32))
        tell([*words, "--word-timestamps", "s.wav"], 1, says)
        tell([*words, "s.wav"], 0, "")
    tell([*variant("short.gguf", 10), "-l", "en", "--word-timestamps", "s.wav"], 0, "")
    tell([*variant("short.gguf", 5), "-l", "en", "--no-timestamps", "--word-timestamps", "s.wav"], 1, "the times of words need a context of")
    # models that do not say whether they know English alone: files from before GGUF, by the number of their tokens
    for n_vocab, alone in ((51864, True), (51865, False)):
        c = {"n_vocab": n_vocab, "n_sound": 50, "d": 8, "n_head": 1, "n_enc": 1, "n_text": 16, "n_dec": 1, "n_mel": N_MEL, "n_ff": 32, "end": 51864 - 1608 + (not alone)}
        text = [bytes([b]) for b in folders_speech.alphabet()[0]] + [b"%d" % i for i in range(1000, 1000 + c["end"] - 256)]
        with open(at("old.bin"), "wb") as f:
            f.write(folders_speech.legacy_file(c, folders_speech.weights_of(c, g), text, folders_speech.slaney(N_MEL), "f32", g)[0])
        convert = os.path.join(os.path.dirname(a.transcribe), "llm-convert")
        for name in ("old.bin", "new.gguf") if os.path.exists(convert) else ("old.bin",):
            if name == "new.gguf":
                subprocess.run([convert, at("old.bin"), "-o", at("new.gguf")], check=True, capture_output=True)
            tell(["-m", name, *quick, "-d", "1", "--translate", "s.wav"], 0, "knows English alone" if alone else "the language is")
    pieces = run_json = json.loads(subprocess.run([a.transcribe, "-q", *model, *quick, "--format", "json", "s.wav"], cwd=folder, capture_output=True, check=True).stdout)
    times = [(s["start"], s["end"]) for s in run_json["segments"]]
    length = len(x) / RATE
    beyond = [t for t in times if not t[0] < t[1] <= length + 0.005]
    failed += bool(beyond)
    if beyond:
        print(f"beyond the sound, which ends at {length}: {beyond} FAILED")
    stamp = lambda t: round(sum(float(p) * f for p, f in zip(t.replace(",", ".").split(":"), (3600, 60, 1))), 2)
    of = lambda text: [tuple(stamp(t) for t in line.split(" --> ")) for line in text.splitlines() if " --> " in line]
    tell([*model, *quick, "-osrt", "s.wav"], 0, "", lambda s: of(s) == times and s.startswith("1\n") == bool(times))
    tell([*model, *quick, "--format", "vtt", "s.wav"], 0, "", lambda s: of(s) == times and s.startswith("WEBVTT\n\n"))
    with open(at("s.wav"), "rb") as f:
        tell([*model, *quick, "--format", "srt", "-"], 0, "", stdin=f)
    with open(at("text.wav"), "rb") as f:
        tell([*model, "-"], 1, "llm-transcribe: standard input: begins with \"no s\", as no kind of sound that is known here; samples without a header need --raw s16le or f32le, and ffmpeg may know other kinds: ffmpeg -i - -ar 16000 -ac 1 -f wav -", stdin=f)
    # a signal ends it, and the file has what was said until then, in any format
    write_wav(at("long.wav"), np.tile(x, 200))
    for name, good in (("part.txt", len), ("part.srt", lambda s: len(of(s)) > 0), ("part.vtt", lambda s: len(of(s)) > 0), ("part.json", lambda s: json.loads(s)["segments"])):
        code, seen = terminals.run(a.transcribe, *model, "-l", "en", "-o", name, "long.wav", stop=b" of %d s" % (200 * len(x) // RATE), cwd=folder, env={**os.environ, "TERM": "xterm", "GGL_PROGRESS_DELAY": "0"})
        ok = code in (-2, 130) and "has what was said in the first" in seen and os.path.exists(at(name))
        if ok:
            with open(at(name), encoding="utf-8") as f:
                ok = good(f.read())
        failed += not ok
        if not ok:
            print(f"stopped: {name} FAILED: {code}, {seen}")
    # a sound that cannot be read leaves the others as they are
    tell([*model, *quick, "--output-dir", ".", "--format", "vtt", "s.wav", "text.wav", "silence.wav"], 1, "1 of 3 sounds could not be written down",
         lambda s: not os.path.exists(at("text.vtt")) and os.path.exists(at("s.vtt")) and os.path.exists(at("silence.vtt")))
    # nor does one that is missing, also as the first
    for name in ("s.vtt", "silence.vtt"):
        os.unlink(at(name))
    tell([*model, *quick, "--output-dir", ".", "--format", "vtt", "lost.wav", "s.wav", "gone.wav", "silence.wav"], 1, "2 of 4 sounds could not be written down",
         lambda s: not os.path.exists(at("lost.vtt")) and os.path.exists(at("s.vtt")) and os.path.exists(at("silence.vtt")))
    tell([*model, *quick, "lost.wav", "s.wav"], 1, "lost.wav: No such file", lambda s: len(s) > 0)
    tell([*model, *quick, "lost.wav"], 1, "lost.wav: No such file")
    tell([*model, *quick, "--output-dir", ".", "--format", "json", "s.wav", "silence.wav"], 0, "", lambda s: json.load(open(at("s.json"))) == pieces and os.path.exists(at("silence.json")))
    shutil.rmtree(folder)
    print(f"mistakes {'ok' if not failed else 'FAILED'}")
    return failed


def other_kinds(a):
    """Kinds that ffmpeg reads, by a script in its place and, if it is installed, by itself: the same text as of its samples. It is started without a shell, and is not waited for if it ends."""
    g, failed = np.random.default_rng(6), 0
    folder = tempfile.mkdtemp(dir=a.dir)
    at = lambda *name: os.path.join(folder, *name)
    meta, w, _ = make_model(g)
    gguf.write(at("m.gguf"), meta, w)
    x = make_sound(g)
    write_wav(at("s.wav"), x)
    for name in ("fake", "none", "temporary"):
        os.mkdir(at(name))
    samples = np.frombuffer(open(at("s.wav"), "rb").read()[44:], "<i2").astype("<f4") / 32768
    samples.tofile(at("samples"))

    def say(script):
        with open(at("fake", "ffmpeg"), "w") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(at("fake", "ffmpeg"), 0o700)

    def run(sound, path=at("fake"), **more):
        return subprocess.run([a.transcribe, "-m", "m.gguf", "-bs", "1", "-tpi", "0", "--format", "json", *([sound] if sound else ["-"])], cwd=folder, capture_output=True, timeout=90,
                              env={**os.environ, "PATH": path, "TMPDIR": at("temporary")}, **more)

    def tell(what, ok, done):
        nonlocal failed
        failed += not ok
        if not ok:
            print(f"{what} FAILED: {done.returncode}, {done.stderr.decode()[-300:]}")

    heads = {"a.m4a": b"\0\0\0\x20ftypM4A " + bytes(30), "a.webm": b"\x1a\x45\xdf\xa3" + bytes(30), "-i $(touch pwned);.aac": b"\xff\xf1\x50\x80" + bytes(30), "a.amr": b"#!AMR\n" + bytes(30)}
    kinds = {"a.m4a": "mov", "a.webm": "matroska", "-i $(touch pwned);.aac": "aac", "a.amr": "amr"}
    want = json.loads(run("s.wav").stdout)
    cat, echo, sleep = (shutil.which(name) for name in ("cat", "echo", "sleep"))
    for name, data in heads.items():
        with open(at(name), "wb") as f:
            f.write(data)
        say(f'for x in "$@"; do {echo} "$x" >> args; done\n{cat} samples\n')
        done = run("./" + name)
        args = open(at("args")).read().split("\n")
        tell(name, done.returncode == 0 and json.loads(done.stdout) == want and args[args.index("-i") + 1] == "file:./" + name and args[args.index("-f") + 1] == kinds[name] and
             args[args.index("-protocol_whitelist") + 1] == "file" and not os.path.exists(at("pwned")), done)
        os.remove(at("args"))
    with open(at("a.m4a"), "rb") as f:
        done = run(None, stdin=f)
    tell("standard input", done.returncode == 0 and json.loads(done.stdout) == want and not os.listdir(at("temporary")), done)
    piped = run(None, input=heads["a.m4a"])
    tell("a pipe", piped.returncode == 0 and json.loads(piped.stdout)["text"] and not os.listdir(at("temporary")), piped)
    for words in ("some words", "[mov,mp4 @ 0x55d0] some words", "file:a.m4a: some words"):
        say(f"{echo} '{words}' >&2; exit 1\n")
        done = run("a.m4a")
        tell("an error", done.returncode == 1 and b"a.m4a: is MP4, which ffmpeg cannot read: some words" in done.stderr, done)
    say("kill -9 $$\n")
    tell("a crash", b"which ffmpeg cannot read" in (done := run("a.webm")).stderr and done.returncode == 1, done)
    say(f"i=0; while [ $i -lt 3000 ]; do {echo} a long line of complaints that nobody reads >&2; i=$((i + 1)); done; {cat} samples\n")
    done = run("a.m4a")
    tell("a lot of words", done.returncode == 0 and json.loads(done.stdout) == want, done)
    done = run("a.m4a", path=at("none"))
    tell("no ffmpeg", done.returncode == 1 and b"a.m4a: is MP4, which is read by the program ffmpeg, where it is installed; or convert it: ffmpeg -i a.m4a" in done.stderr, done)
    real = shutil.which("ffmpeg")
    if not real:
        print("skipped: sounds that ffmpeg reads (it is not installed)")
    for name, codec in (("b.m4a", "aac"), ("b.webm", "libopus")) if real else ():
        made = subprocess.run([real, "-v", "error", "-i", "s.wav", "-c:a", codec, name], cwd=folder, capture_output=True)
        subprocess.run([real, "-v", "error", "-i", name, "-ac", "1", "-ar", str(RATE), "-c:a", "pcm_f32le", name + ".wav"], cwd=folder, capture_output=True)
        if made.returncode:
            print(f"skipped: {name} (ffmpeg does not make it)")
            continue
        done = run(name, path=os.path.dirname(real))
        tell(name, done.returncode == 0 and json.loads(done.stdout)["segments"] == json.loads(run(name + ".wav").stdout)["segments"], done)
    shutil.rmtree(folder)
    return failed


def golden(a, folder):
    """The recorded steps of a nano model in ggml's format before GGUF: spectrogram, encoder, logits."""
    load = lambda name: np.load(io.BytesIO(lzma.open(f"{folder}/{name}.npy.xz").read())).astype(np.float64)
    at = lambda name: os.path.join(a.dir, f"transcribe-{os.getpid()}.{name}")
    ids, failed = "50258,50259,50359,50363,440,1359,2848,15700,257,2099,8174,11", 0
    with open(at("bin"), "wb") as f:
        f.write(lzma.open(f"{folder}/whisper-80-f16.bin.xz").read())
    load("whisper-80-f16.44k.samples").astype("<f4").tofile(at("raw"))
    for name, words in (("31s", [f"{folder}/speech-31s.wav"]), ("44k", ["--raw", "f32le", at("raw")])):
        for step, out, limit in (("mel", ["--dump", "mel", "-o"], 1e-5), ("enc0", ["--dump", "encoder", "-o"], 1e-4), ("logits0", ["--tokens", ids, "--logits"], 1e-4)):
            subprocess.run([a.transcribe, "-q", "-m", at("bin"), *out, at("npy"), *words], stdin=subprocess.DEVNULL, check=True)
            want, got = load(f"whisper-80-f16.{name}.{step}"), np.load(at("npy"))
            off = np.abs(got - want).max() / (1 if step == "mel" else np.abs(want).max()) if got.shape == want.shape else np.inf
            failed += not off < limit
            print(f"{name} {step} {'ok' if off < limit else 'FAILED'} {off:.1e}")
    for name in ("bin", "raw", "npy"):
        os.unlink(at(name))
    return failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--transcribe", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("--cli")
    a = p.parse_args()
    media = os.path.join(os.environ.get("GGL_SHARED", ""), "stages/media")
    failed = sum(test(a, seed) for seed in today.sample("models", range(60), 6))
    failed += mistakes(a)
    failed += other_kinds(a)
    if os.path.exists(f"{media}/whisper-80-f16.bin.xz"):
        failed += golden(a, media)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
