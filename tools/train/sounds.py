"""Sounds for the training of ears: words of speak.py with pauses, rooms and noise, and what is to be written of them. NumPy alone."""

import numpy as np

from speak import RATE, WORDS

STEP = RATE // 50                  # samples of a time token, and of a row of the encoder
SECONDS = 5                        # of the window
N_ROWS = 50 * SECONDS

# Words are tokens: "Ġ" stands for a space.
TOKENS = ["Ġ" + w for w in WORDS] + ["<|endoftext|>", "<|startoftranscript|>", "<|nospeech|>", "<|notimestamps|>"] + \
    [f"<|{k * 0.02:.2f}|>" for k in range(N_ROWS + 1)]
END, START, SILENT, NO_TIMES, FIRST_TIME = range(len(WORDS), len(WORDS) + 5)
MOST_FIRST = 50                    # the first time is at most a second, as llm-transcribe has it
LONG_PAUSE = 0.6                   # seconds, between two segments


class Voices:
    """The sounds of a file of speak.py."""

    def __init__(self, path):
        f = np.load(path)
        self.samples, self.begin, self.text = f["samples"], f["begin"], [t.split() for t in f["text"]]
        self.alone, self.rows = {}, {}             # of a voice: for each word its sound; sounds of rows
        for k, voice in enumerate(f["voice"]):
            if len(self.text[k]) == 1:
                self.alone.setdefault(voice, {})[self.text[k][0]] = k
            else:
                self.rows.setdefault(voice, []).append(k)
        self.by_program = {}
        for voice in self.alone:
            self.by_program.setdefault(":".join(voice.split(":")[:2]) if voice.startswith("f") else "espeak", []).append(voice)

    def pick(self, g, share):
        """A voice. share: of each program's voices, espeak's or those of one speaker."""
        names = list(self.by_program)
        p = np.array([share.get(n, 0.1) for n in names])
        some = self.by_program[names[g.choice(len(names), p=p / p.sum())]]
        return some[g.integers(len(some))]

    def sound(self, k):
        return self.samples[self.begin[k]:self.begin[k + 1]].astype(np.float32) / 32768


SHARE = {"espeak": 0.4, "flite:awb": 0.2, "flite:kal16": 0.12, "festival:kal_diphone": 0.08, "flite:slt": 0.1, "festival:cmu_us_slt_arctic_hts": 0.1}


def stretched(x, rate):
    """Faster and higher, or slower and lower."""
    n = int(len(x) / rate)
    return np.interp(np.arange(n) * rate, np.arange(len(x)), x).astype(np.float32)


def noises(g, seconds=20):
    """Noise of several colours, hum, and the murmur of a crowd comes from others' voices: each with the power 1."""
    n = seconds * RATE
    f = np.fft.rfftfreq(n, 1 / RATE) + 20
    out = []
    for power in (0, 0.5, 1, 1.5):
        out.append(np.fft.irfft(np.fft.rfft(g.normal(size=n)) * f ** -power, n))
    t = np.arange(n) / RATE
    for base in (50, 60):
        out.append(sum(np.sin(2 * np.pi * base * k * t + g.uniform(0, 6)) / k for k in range(1, 12)) + 0.1 * g.normal(size=n))
    return [(x / np.sqrt((x * x).mean())).astype(np.float32) for x in out]


def crowd(g, voices, seconds=20):
    out = np.zeros(seconds * RATE, np.float32)
    all_rows = [k for some in voices.rows.values() for k in some]
    for _ in range(14 * seconds // 4):
        x = voices.sound(all_rows[g.integers(len(all_rows))])[::-1]      # backwards: it says none of the words
        at = g.integers(0, len(out))
        x = x[:len(out) - at]
        out[at:at + len(x)] += x
    return out / np.sqrt((out * out).mean())


def room(g, x):
    """In a room, and by another microphone."""
    n = len(x) + 8000
    n += -n % 2000                                 # a length that is quick to transform
    f = np.fft.rfftfreq(n, 1 / RATE)
    octaves = np.log2(np.maximum(f, 60) / 1000)
    gain = 10 ** ((g.uniform(-4, 4) * octaves + g.uniform(0, 5) * np.sin(octaves * g.uniform(1, 4) + g.uniform(0, 6))) / 20)
    if g.random() < 0.5:
        tail = np.zeros(n, np.float32)
        tail[0] = 1
        t = np.arange(6400) / RATE
        tail[80:6480] = g.normal(size=6400) * 10 ** (-3 * t / g.uniform(0.08, 0.4)) * g.uniform(0.01, 0.1)
        gain = gain * np.fft.rfft(tail)
    return np.fft.irfft(np.fft.rfft(x, n) * gain, n)[:len(x)].astype(np.float32)


class Scene:
    """A window of sound: samples, what is written of it, and which word each row of the encoder belongs to (0: none, -1: not known)."""

    def __init__(self, g, voices, noise, seconds, most_words, share=SHARE):
        n = round(seconds * RATE)
        self.samples, self.rows = np.zeros(n, np.float32), np.zeros(n // STEP, int)
        self.phrases = []                          # [words, begin, end] in samples
        self.said = []                             # the same, as it was spoken: mostly word by word
        self.cut = None                            # where a word begins that the window does not have whole
        if g.random() > 0.06:
            self.say(g, voices, seconds, most_words, share)
        x = self.samples
        if g.random() < 0.6:
            x = room(g, x)
        peak = np.abs(x).max()
        x = x / peak if peak > 0 else x
        if g.random() < 0.75:
            hiss = noise[g.integers(len(noise))]
            at = g.integers(0, len(hiss) - n)
            loud = np.sqrt((x * x).mean()) if self.phrases else 0.1
            x = x + hiss[at:at + n] * loud * 10 ** (-g.uniform(8, 40) / 20)
        else:
            x = x + g.normal(size=n).astype(np.float32) * 10 ** g.uniform(-6, -3.5)
        x = x * 10 ** g.uniform(-1.5, 0) / max(np.abs(x).max(), 1e-6)
        x = np.round(x * 32767) / 32768 if g.random() < 0.9 else x
        if self.cut is None and g.random() < 0.75: # the sound ends, and what follows in the window is silence without any noise
            last = self.phrases[-1][2] + int(RATE * g.uniform(0.02, 1.0)) if self.phrases else g.integers(RATE // 2, n)
            x[last:] = 0
        self.samples = x.astype(np.float32)

    def say(self, g, voices, seconds, most_words, share):
        n = len(self.samples)
        voice = voices.pick(g, share)
        rate = g.uniform(0.82, 1.25)
        at = int(RATE * (g.uniform(0, 0.08) if g.random() < 0.25 else g.uniform(0, 0.9) if g.random() < 0.9 else g.uniform(0.9, 2.2)))
        pause = (lambda: g.uniform(0.75, 1.3) if g.random() < 0.12 else g.uniform(0.0, 0.1) if g.random() < 0.4 else g.uniform(0.05, 0.42))
        breath = voices.rows.get(voice) and g.random() < 0.45        # rows as they were spoken
        left = g.integers(1, most_words + 1)
        while left > 0 and at < n:
            if breath:
                k = voices.rows[voice][g.integers(len(voices.rows[voice]))]
            else:
                k = voices.alone[voice][WORDS[g.integers(len(WORDS))]]
            words, x = voices.text[k], stretched(voices.sound(k), rate)
            if breath and at + len(x) > n:         # where its words end is not known, so none is cut
                if self.phrases:
                    break
                breath = False
                continue
            left -= len(words)
            self.add(at, x * g.uniform(0.6, 1), words, n)
            if self.cut is not None:
                break
            at += len(x) + int(RATE * pause())

    def add(self, at, x, words, n):
        end = at + len(x)
        part = x[:n - at]
        self.samples[at:at + len(part)] += part
        a, b = round(at / STEP), round(min(end, n) / STEP)
        self.rows[a:b] = 1 + WORDS.index(words[0]) if len(words) == 1 else -1
        if end > n - 0.02 * RATE:
            if n - at > 0.06 * RATE:
                self.cut = at
            return
        self.said.append([list(words), at, end])
        if self.phrases and at - self.phrases[-1][2] < LONG_PAUSE * RATE:
            self.phrases[-1][0] += words
            self.phrases[-1][2] = end
        else:
            self.phrases.append([list(words), at, end])

    def text(self, g, times):
        """Tokens in, and the token that follows each."""
        if not self.phrases:
            first = FIRST_TIME + int(g.integers(0, MOST_FIRST + 1)) if times else NO_TIMES
            if times:
                return [START, first], [SILENT, END]
            word = int(g.integers(len(WORDS)))     # without times there has to be a word: any, so that none is likely
            return [START, NO_TIMES, word], [SILENT, word, END]
        ids = []
        for words, begin, end in self.phrases:
            ids += [FIRST_TIME + round(begin / STEP)] * times + [WORDS.index(w) for w in words] + [FIRST_TIME + round(end / STEP)] * times
        if times:
            ids[0] = min(ids[0], FIRST_TIME + MOST_FIRST)
            if self.cut is not None:
                ids.append(max(FIRST_TIME + round(self.cut / STEP), ids[-1]))
            return [START, *ids], [*ids, END]
        return [START, NO_TIMES, *ids], [-100, *ids, END]


# --- spectrograms -----------------------------------------------------------------------------------


def filters(n_mel=80, warp=1.0):
    """(201, n_mel), Slaney's. warp: a throat so many times as short, with the same pitch."""
    hz = lambda m: np.where(m < 15, m * 200 / 3, 1000 * 6.4 ** ((m - 15) / 27))
    corner = hz(np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), n_mel + 2))
    bins = np.arange(201) * RATE / 400 / warp
    return np.stack([np.interp(bins, corner[b:b + 3], [0, 1, 0], 0, 0) * 2 / (corner[b + 2] - corner[b]) for b in range(n_mel)], 1)


WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)).astype(np.float32)
FILTERS = filters().astype(np.float32)
WARPED = [filters(warp=w).astype(np.float32) for w in np.linspace(0.88, 1.14, 14)]


def frames(x):
    """(rows, 400): what each row of the spectrogram shows."""
    padded = np.concatenate([x[1:201][::-1], x, np.zeros(400, np.float32)]).astype(np.float32)
    return np.lib.stride_tricks.as_strided(padded, (len(x) // 160, 400), (padded.strides[0] * 160, padded.strides[0])) * WINDOW


def log_mel(x):
    """(rows, 80), of one sound."""
    power = np.abs(np.fft.rfft(frames(x))) ** 2
    rows = np.log10(np.maximum(power @ FILTERS, 1e-10))
    return (np.maximum(rows, rows.max() - 8) + 4) / 4
