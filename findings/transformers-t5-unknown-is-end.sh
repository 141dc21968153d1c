#!/bin/sh
# transformers 5.24: T5Tokenizer made of a SentencePiece file takes for granted that the unknown piece has the id 2. In a file with SentencePiece's own
# default ids (unknown 0, begin 1, end 2), a character that the vocabulary lacks becomes the end of the text, </s>, in the middle of it.
# Seen with transformers 5.24.0, sentencepiece 0.2.3 (PyPI): the ids of a text with a letter that was not in the training, by both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 sentencepiece==0.2.3 protobuf 2>/dev/null
cd "$dir"
venv/bin/python - <<'PY' 2>/dev/null
import sentencepiece
import transformers
from transformers import T5Tokenizer

with open("text", "w") as f:
    f.write("the quick brown fox\nthere these they then thin\nhello world two\n" * 50)
sentencepiece.SentencePieceTrainer.train(input="text", model_prefix="spiece", vocab_size=60, model_type="unigram", hard_vocab_limit=False, minloglevel=2)
own = sentencepiece.SentencePieceProcessor(model_file="spiece.model")
t = T5Tokenizer.from_pretrained(".", extra_ids=0)
text = "the \u0436 fox"
ids, other = own.encode(text), t(text, add_special_tokens=False)["input_ids"]
print("sentencepiece", sentencepiece.__version__, ids, [own.id_to_piece(i) for i in ids])
print("transformers", transformers.__version__, other, t.convert_ids_to_tokens(other))
raise SystemExit(not (0 in ids and 2 not in ids and 2 in other and t.convert_ids_to_tokens(2) == "</s>"))
PY
