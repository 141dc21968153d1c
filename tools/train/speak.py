"""Speaks words with synthesizers, in many voices: espeak-ng, flite and festival, all Debian packages.

    python3 speak.py --out DIR             writes DIR/train.npz and DIR/test.npz
    python3 speak.py --out DIR --say "one two" --voice flite:rms:1.0:0 --wav words.wav

Each voice says every word alone, and some rows of words in one breath. The voices of the test are not in the training: no
speaker of theirs, at no speed and no pitch. All sound has 16,000 samples a second, and no silence at its ends.
"""

import argparse
import multiprocessing
import os
import struct
import subprocess
import tempfile
import wave
from dataclasses import dataclass

import numpy as np

RATE = 16000
DIGITS = "zero one two three four five six seven eight nine".split()
WORDS = DIGITS + "yes no up down left right stop go start open close on off red green blue yellow black lamp music".split()

# Variants of espeak-ng are other voices: formants, pitch, breath. Whispering ones and robots without melody are left out.
VARIANTS = """Alex Alicia Andy Annie Denis Diogo Gene Gene2 Henrique Hugo Jacky Lee Marco Mario Mike Nguyen adam anika antonio aunty
 belinda benjamin boris caleb david ed edward edward2 f1 f2 f3 f5 grandma grandpa gustave iven iven2 iven3 john kaukovalta klatt klatt2 klatt3
 klatt4 m1 m2 m4 m5 m6 m7 m8 marcelo max michel miguel norbert paul pedro quincy rob robert sandro shelby steph steph2 travis victor""".split()
HELD_OUT = "Andrea Michael linda pablo f4 m3 iven4 steph3".split()
ACCENTS = "en-us en-us en-us en-gb en-gb-x-rp en-gb-scotland en-gb-x-gbcwmd en-gb-x-gbclan en-029 en-us-nyc".split()


@dataclass(frozen=True)
class Voice:
    program: str           # espeak, flite or festival
    name: str
    speed: float           # 1: as the program speaks by itself
    pitch: int             # of espeak 0 to 99; of flite Hz, 0: as it speaks by itself

    def __str__(self):
        return f"{self.program}:{self.name}:{self.speed:g}:{self.pitch}"


def parse_voice(text):
    program, name, speed, pitch = text.split(":")
    return Voice(program, name, float(speed), int(pitch))


def train_voices(g, n_espeak):
    voices = []
    for k in range(n_espeak):
        name = f"{ACCENTS[g.integers(len(ACCENTS))]}+{VARIANTS[k % len(VARIANTS)]}"
        voices.append(Voice("espeak", name, round(g.uniform(0.7, 1.35), 2), int(g.integers(25, 75))))
    speeds = (0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4)
    for speed in speeds:
        voices += [Voice("flite", "awb", speed, 0), Voice("flite", "kal16", speed, int(g.integers(85, 180))),
                   Voice("flite", "kal16", speed, int(g.integers(85, 180))), Voice("festival", "kal_diphone", speed, 0)]
    for speed in speeds:
        voices += [Voice("flite", "slt", speed, 0), Voice("festival", "cmu_us_slt_arctic_hts", speed, 0)]
    return voices


def test_voices(g):
    voices = [Voice("espeak", f"{('en-us', 'en-gb')[k % 2]}+{v}", round(g.uniform(0.8, 1.2), 2), 50) for k, v in enumerate(HELD_OUT)]
    for speed in (0.85, 1.0, 1.15):
        voices += [Voice("flite", "rms", speed, 0), Voice("festival", "ked_diphone", speed, 0)]
    return voices


# --- sound ------------------------------------------------------------------------------------------


def resample(x, old, new):
    """Exact for sound below half of either rate."""
    n = round(len(x) * new / old)
    f = np.fft.rfft(x)
    y = np.zeros(n // 2 + 1, complex)
    m = min(len(f), len(y))
    y[:m] = f[:m]
    return np.fft.irfft(y, n) * (n / len(x))


def read_wav(path):
    """Mono samples of -1 to 1, 16,000 a second."""
    with wave.open(path, "rb") as w:
        x = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float64) / 32768
        x = x.reshape(-1, w.getnchannels()).mean(1)
        return resample(x, w.getframerate(), RATE) if w.getframerate() != RATE else x


def write_wav(path, x):
    with wave.open(path, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes(np.clip(np.round(x * 32767), -32768, 32767).astype("<i2").tobytes())


def trim(x, below=0.012):
    """Without the silence at its ends: steps of 10 ms that are quieter than `below` of the loudest."""
    n = len(x) // 160
    if n == 0:
        return x
    loud = np.sqrt((x[:160 * n].reshape(n, 160) ** 2).mean(1))
    at = np.flatnonzero(loud > below * loud.max())
    return x[160 * at[0]:160 * (at[-1] + 1)] if len(at) else x[:0]


# --- the programs -----------------------------------------------------------------------------------


def speak(voice, texts):
    """Returns a sound for each text."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{k}.wav") for k in range(len(texts))]
        if voice.program == "festival":           # it takes a while to start
            script = os.path.join(folder, "say.scm")
            with open(script, "w") as f:
                f.write(f"(voice_{voice.name})\n(Parameter.set 'Duration_Stretch {1 / voice.speed})\n")
                for path, text in zip(paths, texts):
                    f.write(f'(utt.save.wave (utt.synth (Utterance Text "{text}")) "{path}" (quote riff))\n')
            subprocess.run(["festival", "-b", script], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for path, text in zip(paths, texts):
            if voice.program == "espeak":
                command = ["espeak-ng", "-v", voice.name, "-s", str(round(150 * voice.speed)), "-p", str(voice.pitch), "-w", path, text]
            elif voice.program == "flite":
                command = ["flite", "-voice", voice.name, "--setf", f"duration_stretch={1 / voice.speed}", "-t", text, "-o", path]
                command[1:1] = ["--setf", f"int_f0_target_mean={voice.pitch}"] if voice.pitch else []
            else:
                break
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [trim(read_wav(path)) for path in paths]


def say_all(job):
    """Every word alone, `rows` rows in one breath."""
    voice, rows, seed = job
    g = np.random.default_rng(seed)
    said = [[w] for w in WORDS]
    for _ in range(rows):
        said.append([WORDS[k] for k in g.integers(0, len(WORDS), g.integers(2, 7))])
    marks = [", " if g.random() < 0.3 else " " for _ in said]
    return [(str(voice), " ".join(s), x) for s, x in zip(said, speak(voice, [m.join(s) for s, m in zip(said, marks)]))]


def save(path, said):
    """Voices, texts, where each sound begins, and all samples."""
    sound = [np.clip(np.round(x / max(np.abs(x).max(), 1e-9) * 30000), -32768, 32767).astype(np.int16) for _, _, x in said]
    np.savez(path, voice=np.array([v for v, _, _ in said]), text=np.array([t for _, t, _ in said]),
             begin=np.cumsum([0] + [len(x) for x in sound]), samples=np.concatenate(sound))
    seconds = sum(map(len, sound)) / RATE
    print(f"{path}: {len(said)} sounds of {len(set(v for v, _, _ in said))} voices, {seconds / 60:.0f} minutes", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", help="folder of train.npz and test.npz")
    ap.add_argument("--espeak", type=int, default=210, help="voices of espeak-ng in the training")
    ap.add_argument("--rows", type=int, default=10, help="rows of words for each voice")
    ap.add_argument("--processes", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--say", help="a text, for --wav")
    ap.add_argument("--voice", type=parse_voice, help="PROGRAM:NAME:SPEED:PITCH, which says it")
    ap.add_argument("--wav")
    args = ap.parse_args()
    if args.say:
        x = speak(args.voice, [args.say])[0]
        write_wav(args.wav, np.concatenate([np.zeros(4000), 0.6 * x / np.abs(x).max(), np.zeros(4000)]))
        return
    os.makedirs(args.out, exist_ok=True)
    g = np.random.default_rng(args.seed)
    sets = {"train": [(v, args.rows * (1 if v.program == "espeak" else 6)) for v in train_voices(g, args.espeak)], "test": [(v, 25) for v in test_voices(g)]}
    with multiprocessing.Pool(args.processes) as pool:
        for name, voices in sets.items():
            jobs = [(v, rows, [args.seed, k]) for k, (v, rows) in enumerate(voices)]
            save(os.path.join(args.out, name + ".npz"), [one for some in pool.imap(say_all, jobs) for one in some])


if __name__ == "__main__":
    main()
