#!/bin/sh
# A folder of model2vec can be loaded by model2vec and by sentence-transformers, which give different vectors of a text with a word that the vocabulary lacks:
# model2vec leaves the unknown token out, sentence-transformers' StaticEmbedding takes its row into the mean. Of a text of nothing else, one is all zeros.
# Seen with model2vec 0.10.0 and sentence-transformers 6.2.0 (PyPI): cosine 1 of known words, and below 0.95 with an unknown one among them.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 sentence-transformers==6.2.0 model2vec==0.10.0 2>/dev/null
cd "$dir"
venv/bin/python - <<'PY' 2>/dev/null
from importlib.metadata import version

import numpy as np
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers

t = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "red": 2, "green": 3}, unk_token="[UNK]"))
t.pre_tokenizer = pre_tokenizers.Whitespace()
StaticModel(vectors=np.random.default_rng(1).normal(size=(4, 16)).astype(np.float32), tokenizer=t).save_pretrained("model")
one, other = StaticModel.from_pretrained("model"), SentenceTransformer("model", device="cpu")
cosine = lambda a, b: float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
known, unknown = (cosine(one.encode(text), other.encode(text)) for text in ("red green", "red blue green"))
lengths = [float(np.linalg.norm(m.encode("blue"))) for m in (one, other)]
print({name: version(name) for name in ("model2vec", "sentence-transformers")}, "known words:", known, "an unknown one:", unknown, "lengths of an unknown word alone:", lengths)
raise SystemExit(not (known > 0.9999 and unknown < 0.95 and lengths[0] == 0 and lengths[1] > 0))
PY
