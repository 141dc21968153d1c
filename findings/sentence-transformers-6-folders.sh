#!/bin/sh
# sentence-transformers 6 writes modules.json with the new places of its classes (sentence_transformers.base.modules.transformer.Transformer), also where it
# has read a folder that named the old ones. Versions up to 5.3 cannot open such a folder: they look for a module that they do not have.
# Seen with sentence-transformers 6.2.0 and 5.3.0 (PyPI): what the first one saves, and the error of the second one.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
cd "$dir"
export HF_HUB_OFFLINE=1
venv/bin/python -m pip install --quiet torch==2.13.0 transformers==5.24.0 sentence-transformers==6.2.0 2>/dev/null
venv/bin/python - <<'PY' 2>/dev/null
import json
import os

from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

BertModel(BertConfig(vocab_size=4, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)).save_pretrained("old")
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]")), pad_token="[PAD]", unk_token="[UNK]").save_pretrained("old")
os.mkdir("old/1_Pooling")
for name, value in (("1_Pooling/config.json", {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True}),
                    ("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])):
    with open("old/" + name, "w") as f:
        json.dump(value, f)
SentenceTransformer("old", device="cpu").save_pretrained("new")
with open("new/modules.json") as f:
    types = [m["type"] for m in json.load(f)]
print("6.2.0 saves", types)
raise SystemExit(types != ["sentence_transformers.base.modules.transformer.Transformer", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"])
PY
venv/bin/python -m pip install --quiet sentence-transformers==5.3.0 2>/dev/null
venv/bin/python - <<'PY' 2>/dev/null
from sentence_transformers import SentenceTransformer, __version__

SentenceTransformer("old", device="cpu")
try:
    SentenceTransformer("new", device="cpu")
    print(__version__, "opens it")
    raise SystemExit(1)
except ModuleNotFoundError as e:
    print(__version__, "opens the folder that was there before, and of the new one says:", e)
PY
