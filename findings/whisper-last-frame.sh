#!/bin/sh
# transformers 5.24: WhisperFeatureExtractor cuts a sound to 30 s and then mirrors it behind its end, so that the last of the 3000 frames is made of sound that comes
# twice. openai-whisper pads the sound with zeros or goes on with what follows in it, and so does faster-whisper: their frames agree with each other. A sound that is shorter
# than the window has the same frames in all three.
# Seen with transformers 5.24.0, openai-whisper 20250625, faster-whisper 1.2.1 (PyPI): frames of a tone that rises, and the largest difference to openai-whisper's.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
cd "$dir"
venv/bin/python -m pip install --quiet torch==2.13.0 transformers==5.24.0 faster-whisper==1.2.1 numba==0.68.1 more-itertools==11.2.1 tqdm==4.70.1 tiktoken==0.14.0 setuptools wheel 2>/dev/null
venv/bin/python -m pip install --quiet --no-deps --no-build-isolation openai-whisper==20250625 2>/dev/null
venv/bin/python - <<'PY' 2>/dev/null
import faster_whisper
import numpy as np
import transformers
import whisper
from faster_whisper.feature_extractor import FeatureExtractor

RATE = 16000
t = np.arange(40 * RATE) / RATE
sound = (0.3 * np.sin(2 * np.pi * (200 * t + 20 * t * t)) + 0.01 * np.random.default_rng(1).standard_normal(len(t))).astype(np.float32)
print("openai-whisper", whisper.__version__, "transformers", transformers.__version__, "faster-whisper", faster_whisper.__version__)
right = True
for seconds in (10, 30, 40):
    x = sound[: seconds * RATE]
    own = whisper.pad_or_trim(whisper.log_mel_spectrogram(x, 80, padding=whisper.audio.N_SAMPLES), 3000).numpy()
    others = {"transformers": transformers.WhisperFeatureExtractor()(x, sampling_rate=RATE, return_tensors="np").input_features[0],
              "faster-whisper": FeatureExtractor()(x)[:, :3000]}
    for name, frames in others.items():
        difference = np.abs(own[:, : frames.shape[1]] - frames).max(0)
        other = np.nonzero(difference > 1e-3)[0].tolist()
        print(f"{seconds} s, {name}: {frames.shape[1]} frames, of which {other} differ, by up to {difference.max():.1e}")
        right &= other == ([2999] if name == "transformers" and seconds >= 30 else [])
raise SystemExit(not right)
PY
