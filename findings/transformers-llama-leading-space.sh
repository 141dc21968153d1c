#!/bin/sh
# transformers 5.24: LlamaTokenizer made of a SentencePiece file (tokenizer.model) gives a text that begins with a space one mark of a space less than
# SentencePiece itself does, which puts its own before each text: " the" becomes the tokens of "the". Neither legacy=True nor legacy=False changes it.
# Seen with transformers 5.24.0, sentencepiece 0.2.3 (PyPI), a BPE model with the settings of Llama 2: the pieces at the end.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 sentencepiece==0.2.3 protobuf 2>/dev/null
cd "$dir"
venv/bin/python - <<'PY' 2>/dev/null
import sentencepiece
import transformers
from transformers import LlamaTokenizer

with open("text", "w") as f:
    f.write("the quick brown fox\nthere these they then thin\nhello  world  two\n" * 50)
sentencepiece.SentencePieceTrainer.train(input="text", model_prefix="tokenizer", vocab_size=340, model_type="bpe", byte_fallback=True, split_digits=True, minloglevel=2,
                                         allow_whitespace_only_pieces=True, remove_extra_whitespaces=False, normalization_rule_name="identity", hard_vocab_limit=False)
own = sentencepiece.SentencePieceProcessor(model_file="tokenizer.model")
found = []
for text in ("the", " the", "  the"):
    row = [own.encode(text, out_type=str)]
    for more in ({}, {"legacy": True}, {"legacy": False}):
        t = LlamaTokenizer.from_pretrained(".", **more)
        row.append(t.convert_ids_to_tokens(t(text, add_special_tokens=False)["input_ids"]))
    found.append(row)
    print(repr(text), "sentencepiece", row[0], "transformers", row[1:])
print("transformers", transformers.__version__, "sentencepiece", sentencepiece.__version__)
marks = lambda pieces: "".join(pieces).count("\u2581")
raise SystemExit([[marks(x) for x in row] for row in found] != [[1, 1, 1, 1], [2, 1, 1, 1], [3, 2, 2, 2]])
PY
